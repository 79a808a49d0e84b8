//! Files of the project that a command names by a relative path, which does not exist where the command runs.

use crate::base::path::RelPath;
use crate::decl::problem::{Problem, SourceFile};
use crate::decl::tables::located_text::LocatedText;
use crate::decl::tables::tree::TomlNode;
use crate::decl::values::reader::ValueReader;
use crate::expr::shell::{run_by, script_of};
use std::ops::Range;

impl ValueReader<'_> {
    /// Reports the files of the project that the words of a command name by a relative path. One that the command would run is a
    /// mistake, since it cannot be there; any other may be a word that is not a path: a warning.
    pub(crate) fn relative_files(&mut self, file: &SourceFile, items: &[TomlNode], shell: bool) {
        if shell {
            if let [item] = items {
                self.relative_in_script(file, item);
            }
            return;
        }
        let texts: Vec<&str> = items.iter().filter_map(TomlNode::text).collect();
        let script = script_of(texts.iter().copied());
        let run = run_by(&texts);
        for (at, (item, text)) in items.iter().zip(&texts).enumerate() {
            let Some(path) = self
                .file_of_the_project(text)
                .filter(|_| Some(at) != script)
            else {
                continue;
            };
            let problem =
                wrong(file, item.span.clone(), &path).help(format!("write \"project:{path}\""));
            if run == Some(at) {
                self.report.add(problem);
            } else if at > 0 && text.contains(['/', '.']) {
                self.report.warn(problem);
            }
        }
    }

    /// The same of a command that is one string: of its first words only, as what follows may go somewhere else first.
    fn relative_in_script(&mut self, file: &SourceFile, item: &TomlNode) {
        let Some(text) = item.text() else { return };
        let words: Vec<&str> = text.split_whitespace().collect();
        let Some(at) = run_by(&words) else { return };
        let Some(path) = self.file_of_the_project(words[at]) else {
            return;
        };
        let start = words[at].as_ptr() as usize - text.as_ptr() as usize;
        let spot = LocatedText {
            file,
            key: "command",
            text,
            span: item.span.clone(),
        };
        let span = spot.problem_at(&(start..start + words[at].len()), "").span;
        let before: String = words[..at]
            .iter()
            .map(|word| format!("\"{word}\", "))
            .collect();
        let help = format!("write a list: command = [{before}\"project:{path}\", …]");
        self.report
            .add(wrong(file, span.unwrap_or(item.span.clone()), &path).help(help));
    }

    /// Returns the file of the project that a relative path names.
    fn file_of_the_project(&self, text: &str) -> Option<RelPath> {
        let path = RelPath::parse(text.strip_prefix("./").unwrap_or(text)).ok()?;
        let is_file = self.exists(&path) && self.files.list(path.as_str()).is_empty();
        is_file.then_some(path)
    }
}

fn wrong(file: &SourceFile, span: Range<usize>, path: &RelPath) -> Problem {
    let message = format!(
        "`{path}` is a file of the project, and the command runs in a scratch folder without it"
    );
    file.problem(span, message).label("a relative path")
}
