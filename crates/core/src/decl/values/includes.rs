//! jq programs with the definitions of the files that they include.

use crate::base::path::RelPath;
use crate::decl::problem::{Problem, SourceFile};
use crate::decl::tables::located_text::LocatedText;
use crate::decl::values::reader::ValueReader;
use crate::expr::jq::{check_definitions, includes};
use crate::expr::place::Place;
use crate::model::pipeline::Asset;
use std::ops::Range;
use std::sync::Arc;

/// The folder of what an inline program includes.
const FILTERS: &str = "filters";

/// A program with the text of each included file in place of its `include`.
pub(crate) struct WholeProgram<'a> {
    /// The declaration that has or names the program.
    spot: &'a LocatedText<'a>,
    /// The file of the program, if it is not inline.
    asset: Option<&'a Asset>,
    pub(crate) text: Arc<str>,
    /// The included files, each once.
    pub(crate) included: Vec<Asset>,
    /// The parts of the text, in order.
    pieces: Vec<FilePart>,
}

/// A part of the text, up to the next one.
struct FilePart {
    start: usize,
    /// The included file that it comes from; `None` for the program itself.
    file: Option<usize>,
    /// Where it begins in that file.
    offset: usize,
}

impl WholeProgram<'_> {
    /// Returns a mistake at its place in the file that it comes from.
    pub(crate) fn problem(&self, place: Option<&Place>, message: String) -> Problem {
        let Some(place) = place else {
            return match self.asset {
                Some(asset) => self.problem_in(Some(asset), 0..asset.text.len().min(1), message),
                None => self.spot.problem(message),
            };
        };
        let range = &place.range;
        let after = self
            .pieces
            .partition_point(|piece| piece.start <= range.start);
        let piece = &self.pieces[after.saturating_sub(1)];
        let end = self.pieces.get(after).map_or(usize::MAX, |next| next.start);
        let from = |at: usize| at.min(end) - piece.start + piece.offset;
        let file = piece.file.map(|file| &self.included[file]);
        let range = from(range.start)..from(range.end);
        self.problem_in(file.or(self.asset), range, message)
    }

    fn problem_in(&self, file: Option<&Asset>, range: Range<usize>, message: String) -> Problem {
        match file {
            Some(file) => SourceFile::new(file.path.as_str(), file.text.clone())
                .problem(range, message)
                .also(self.spot.file, self.spot.span.clone(), "used here"),
            None => self.spot.problem_at(&range, message),
        }
    }
}

impl ValueReader<'_> {
    /// Reads the files that a program includes. Mistakes are reported.
    pub(crate) fn whole_program<'a>(
        &mut self,
        spot: &'a LocatedText<'a>,
        asset: Option<&'a Asset>,
    ) -> Option<WholeProgram<'a>> {
        let own = asset.map_or_else(|| Arc::from(spot.text), |asset| asset.text.clone());
        let mut whole = WholeProgram {
            spot,
            asset,
            text: Arc::clone(&own),
            included: Vec::new(),
            pieces: Vec::new(),
        };
        let mut text = String::new();
        let mut open: Vec<RelPath> = asset.iter().map(|asset| asset.path.clone()).collect();
        self.add_program(&mut whole, &mut text, None, &own, &mut open)?;
        if !whole.included.is_empty() {
            whole.text = text.into();
        }
        Some(whole)
    }

    /// Adds the text of a program or of an included file. `open` are the files in which it is included.
    fn add_program(
        &mut self,
        whole: &mut WholeProgram<'_>,
        text: &mut String,
        file: Option<usize>,
        source: &str,
        open: &mut Vec<RelPath>,
    ) -> Option<()> {
        let mut offset = 0;
        for include in includes(source) {
            add_piece(whole, text, file, source, offset..include.statement.start);
            offset = include.statement.end;
            let found = self.included(open.last(), &include.name, open);
            let asset = found.map_err(|(message, help)| {
                let from = file.map(|file| whole.included[file].clone());
                let problem = whole.problem_in(from.as_ref().or(whole.asset), include.at, message);
                self.report.add(problem.maybe_help(help));
            });
            let asset = asset.ok()?;
            if whole.included.iter().any(|known| known.path == asset.path) {
                continue;
            }
            let inner = whole.included.len();
            whole.included.push(asset.clone());
            if let Err(error) = check_definitions(asset.path.as_str(), &asset.text) {
                let range = error.place.map_or(0..0, |place| place.range);
                let problem = whole.problem_in(Some(&asset), range, error.message);
                self.report.add(problem.maybe_help(error.hint));
                return None;
            }
            open.push(asset.path.clone());
            self.add_program(whole, text, Some(inner), &asset.text, open)?;
            open.pop();
            // The file may end with a comment.
            text.push('\n');
        }
        add_piece(whole, text, file, source, offset..source.len());
        Some(())
    }

    /// Returns the file that an `include` in the file `parent` means, or a message and a help.
    fn included(
        &self,
        parent: Option<&RelPath>,
        name: &str,
        open: &[RelPath],
    ) -> Result<Asset, (String, Option<String>)> {
        let folder = match parent {
            Some(parent) => parent.parent(),
            None => RelPath::parse(FILTERS).ok(),
        };
        let name = match name.strip_suffix(".jq") {
            Some(bare) => {
                let help = format!("write include \"{bare}\";");
                return Err(("a name in `include` has no ending".to_owned(), Some(help)));
            }
            None => format!("{name}.jq"),
        };
        let path = match folder {
            Some(folder) => folder.join(&name),
            None => RelPath::parse(&name),
        };
        let path = path.map_err(|error| (error.to_string(), None))?;
        if let Some(first) = open.iter().position(|known| *known == path) {
            let names = open[first..].iter().chain([&path]);
            let names: Vec<&str> = names.map(RelPath::as_str).collect();
            let message = format!("`{path}` includes itself: {}", names.join(" → "));
            return Err((message, None));
        }
        match self.find(&path) {
            Some(Ok(asset)) => Ok(asset),
            Some(Err(why)) => Err((format!("`{path}` cannot be read: {why}"), None)),
            None => {
                let near = self.near_file(&path);
                let help = near.map(|near| format!("did you mean `{near}`?"));
                Err((format!("there is no `{path}` in the project"), help))
            }
        }
    }
}

fn add_piece(
    whole: &mut WholeProgram<'_>,
    text: &mut String,
    file: Option<usize>,
    source: &str,
    part: Range<usize>,
) {
    let (start, offset) = (text.len(), part.start);
    whole.pieces.push(FilePart {
        start,
        file,
        offset,
    });
    text.push_str(&source[part]);
}
