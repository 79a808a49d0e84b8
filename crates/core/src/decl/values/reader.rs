//! Reads files of the project, schemas and paths.

use crate::base::digest::Digest;
use crate::base::foreign_text::written_text;
use crate::base::glob::{Glob, is_pattern};
use crate::base::path::{RelPath, Root};
use crate::decl::problem::{Report, SourceFile};
use crate::decl::project_files::ProjectFiles;
use crate::decl::tables::located_text::LocatedText;
use crate::decl::values::names::{Sees, StageNames};
use crate::expr::json;
use crate::expr::place::nearest;
use crate::expr::template::Template;
use crate::model::pipeline::Asset;
use crate::model::stage::PathTemplate;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// Reads files and expressions, and collects their mistakes.
pub(crate) struct ValueReader<'a> {
    /// The project's files.
    pub(crate) files: &'a dyn ProjectFiles,
    /// The mistakes and warnings.
    pub(crate) report: Report,
    assets: RefCell<BTreeMap<RelPath, Result<Asset, String>>>,
}

impl<'a> ValueReader<'a> {
    /// Creates a reader.
    pub(crate) fn new(files: &'a dyn ProjectFiles) -> Self {
        Self {
            files,
            report: Report::default(),
            assets: RefCell::default(),
        }
    }

    /// Returns a file with its text; `None` if it does not exist. The error is a message.
    pub(crate) fn find(&self, path: &RelPath) -> Option<Result<Asset, String>> {
        if let Some(known) = self.assets.borrow().get(path) {
            return Some(known.clone());
        }
        let read = self.files.read(path)?;
        let read = read.and_then(|bytes| written_text(bytes).map_err(|error| error.to_string()));
        let asset = read.map(|text| Asset::new(path.clone(), text));
        self.assets.borrow_mut().insert(path.clone(), asset.clone());
        Some(asset)
    }

    /// Reports the prefix `project:` where it is not allowed, and returns true if there is one.
    pub(crate) fn has_prefix(&mut self, spot: &LocatedText<'_>) -> bool {
        let Some(rest) = spot.text.strip_prefix("project:") else {
            return false;
        };
        let problem = spot.problem(format!("`{}` is always a file of the project", spot.key));
        let help = format!("write {} = \"{rest}\"", spot.key);
        self.report.add(problem.label("no prefix here").help(help));
        true
    }

    /// Returns the file of the project that a declaration names. Mistakes are reported.
    pub(crate) fn asset(&mut self, spot: &LocatedText<'_>) -> Option<Asset> {
        self.asset_or(spot, None)
    }

    /// Like [`ValueReader::asset`], with the help to print if the file is missing.
    fn asset_or(&mut self, spot: &LocatedText<'_>, without: Option<&str>) -> Option<Asset> {
        if self.has_prefix(spot) {
            return None;
        }
        if spot.text.contains("{{") {
            let problem =
                spot.problem(format!("`{}` must name one file, not a template", spot.key));
            self.report
                .add(problem.label("expected the name of a file"));
            return None;
        }
        let path = match RelPath::parse(spot.text) {
            Ok(path) => path,
            Err(error) => {
                self.report.add(spot.problem(error.to_string()));
                return None;
            }
        };
        match self.find(&path) {
            Some(Ok(asset)) => Some(asset),
            Some(Err(message)) => {
                self.report
                    .add(spot.problem(format!("`{path}` cannot be read: {message}")));
                None
            }
            None => {
                let help = match (self.near_file(&path), without) {
                    (Some(near), _) => format!("did you mean `{near}`?"),
                    (None, Some(without)) => format!("create `{path}`, or {without}"),
                    (None, None) => format!("create `{path}`, a file of the project"),
                };
                let problem = spot
                    .problem(format!("there is no `{path}` in the project"))
                    .label("no such file");
                self.report.add(problem.help(help));
                None
            }
        }
    }

    /// Returns the path that a key without prefix names; a wrong one is reported.
    pub(crate) fn rel_path(
        &mut self,
        file: &SourceFile,
        text: &str,
        span: Range<usize>,
    ) -> Option<RelPath> {
        RelPath::parse(text)
            .map_err(|error| self.report.add(file.problem(span, error.to_string())))
            .ok()
    }

    /// Reads a schema.
    pub(crate) fn schema(&mut self, spot: &LocatedText<'_>) -> Option<Asset> {
        self.schema_or(spot, "remove `schema` where nothing is to be validated")
    }

    /// Returns the schema of an output, which can also be `false`.
    pub(crate) fn output_schema(&mut self, spot: &LocatedText<'_>) -> Option<Asset> {
        self.schema_or(
            spot,
            "write schema = false where nothing is to be validated",
        )
    }

    fn schema_or(&mut self, spot: &LocatedText<'_>, without: &str) -> Option<Asset> {
        let asset = self.asset_or(spot, Some(without))?;
        self.schema_asset(asset, spot.file, spot.span.clone())
    }

    /// Checks that an asset is JSON, and reads the files that it refers to; `used` is where the declaration takes it from.
    pub(crate) fn schema_asset(
        &mut self,
        asset: Asset,
        used: &SourceFile,
        span: Range<usize>,
    ) -> Option<Asset> {
        let error = match json::parse(&asset.text) {
            Ok(value) if value.is_object() || value.is_boolean() => {
                return self.with_references(asset, used, span);
            }
            Ok(_) => "a JSON Schema must be an object".to_owned(),
            Err(error) => format!("this is not JSON: {error}"),
        };
        let file = SourceFile::new(asset.path.as_str(), asset.text.clone());
        let at = json::parse(&asset.text).err().map_or(0, |error| {
            let before: usize = asset
                .text
                .split_inclusive('\n')
                .take(error.line().saturating_sub(1))
                .map(str::len)
                .sum();
            before + error.column().saturating_sub(1)
        });
        self.report.add(
            file.problem(at..at + 1, error)
                .also(used, span, "used here"),
        );
        None
    }

    /// Returns true if the project has this file.
    pub(crate) fn exists(&self, path: &RelPath) -> bool {
        let folder = path
            .parent()
            .map_or(String::new(), |folder| folder.to_string());
        self.files
            .list(&folder)
            .iter()
            .any(|name| name == path.file_name())
    }

    /// Checks that a file that an argument names with `project:` exists. `before` is the text in front of it.
    pub(crate) fn project_file(&mut self, spot: &LocatedText<'_>, before: &str, path: &str) {
        let problem = match RelPath::parse(path) {
            Ok(path) if self.exists(&path) => return,
            Ok(path) => {
                let near = self.near_file(&path);
                let near = near.map(|near| format!("did you mean `{before}project:{near}`?"));
                let as_text =
                    || format!("to pass the text itself, write {before}{{{{ 'project:' }}}}{path}");
                let near = near.or_else(|| (!before.is_empty()).then(as_text));
                spot.problem(format!("there is no `{path}` in the project"))
                    .label("no such file")
                    .maybe_help(near)
            }
            Err(error) => spot.problem(error.to_string()),
        };
        self.report.add(problem);
    }

    /// Returns the file of the project that a word of a command line names with `project:`, and its digest. A wrong one is reported.
    pub(crate) fn named_file(&mut self, spot: &LocatedText<'_>) -> Option<(RelPath, Digest)> {
        let path = spot.text.strip_prefix("project:")?;
        match RelPath::parse(path).map(|path| (self.files.read(&path), path)) {
            Ok((Some(Ok(bytes)), path)) => return Some((path, Digest::of(bytes))),
            Ok((Some(Err(error)), path)) => {
                self.report.add(spot.problem(format!("`{path}`: {error}")));
            }
            _ => self.project_file(spot, "", path),
        }
        None
    }

    /// Reports a pattern that no file of the project matches.
    pub(crate) fn project_files(&mut self, spot: &LocatedText<'_>, pattern: &str) {
        let glob = match Glob::parse(pattern) {
            Ok(glob) => glob,
            Err(error) => {
                self.report.add(spot.problem(error.to_string()));
                return;
            }
        };
        let folder = glob
            .folder()
            .map_or(String::new(), |folder| folder.to_string());
        let mut open = vec![folder];
        while let Some(folder) = open.pop() {
            for name in self.files.list(&folder) {
                let path = if folder.is_empty() {
                    name
                } else {
                    format!("{folder}/{name}")
                };
                let Ok(place) = RelPath::parse(&path) else {
                    continue;
                };
                // A match that lists no names is a file; an empty folder counts as one. Folders are searched only for patterns that
                // reach below them.
                if glob.matches(&place) && self.files.list(&path).is_empty() {
                    return;
                }
                if glob.is_deep() {
                    open.push(path);
                }
            }
        }
        let problem = spot.problem(format!("no file of the project matches `{pattern}`"));
        let help = "name existing files; `**` as a part of a path matches any folders";
        self.report.add(problem.label("matches nothing").help(help));
    }

    /// Returns the file that a wrong path most likely means: a similar name in the same folder, or in a usual folder of
    /// projects.
    pub(crate) fn near_file(&self, path: &RelPath) -> Option<String> {
        let folder = path
            .parent()
            .map_or(String::new(), |folder| folder.to_string());
        let folders = [
            folder.as_str(),
            "",
            "schemas",
            "prompts",
            "rules",
            "filters",
            "templates",
            "data",
        ];
        folders.into_iter().find_map(|folder| {
            let names = self.files.list(folder);
            let near = nearest(path.file_name(), names.iter().map(String::as_str))?;
            Some(if folder.is_empty() {
                near.to_owned()
            } else {
                format!("{folder}/{near}")
            })
        })
    }

    /// Reads a path template. Mistakes are reported.
    pub(crate) fn path(
        &mut self,
        spot: &LocatedText<'_>,
        names: &StageNames<'_>,
        sees: Sees,
    ) -> Option<PathTemplate> {
        let (root, text) = match spot.text.strip_prefix("project:") {
            Some(rest) => (Root::Project, rest),
            None => (Root::Workspace, spot.text),
        };
        if text.contains("{%") || text.contains("{#") {
            self.report.add(
                spot.problem("a path can contain only `{{ }}`")
                    .label("this path"),
            );
            return None;
        }
        let shift = spot.text.len() - text.len();
        // a template renders to one safe part of a path; only the text around it can be wrong here
        let around = without_templates(text);
        if !around.trim().is_empty() && around != "x" {
            if let Err(error) = RelPath::parse(&around) {
                let part = shift..spot.text.len();
                let message = error.to_string().replace(&around, text);
                self.report
                    .add(spot.problem_at(&part, message).label("this path"));
                return None;
            }
            if is_pattern(&around)
                && let Err(error) = crate::base::glob::Glob::parse(&around)
            {
                self.report.add(spot.problem(error.to_string()));
                return None;
            }
        }
        let template = self.template(spot, names, sees)?;
        let template = if shift == 0 {
            template
        } else {
            // the prefix is not part of what is rendered
            Arc::new(Template::compile(&format!("{}: {}", spot.file.name, spot.key), text).ok()?)
        };
        let is_whole = around == "x" && text.starts_with("{{");
        Some(PathTemplate {
            root,
            text: text.to_owned(),
            is_param: is_whole && names.project.are_values(template.names()),
            template,
        })
    }
}

/// Returns the path with each `{{ }}` taken as one letter.
fn without_templates(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(start) = rest.find("{{") {
        out.push_str(&rest[..start]);
        out.push('x');
        rest = rest[start..]
            .find("}}")
            .map_or("", |end| &rest[start + end + 2..]);
    }
    out.push_str(rest);
    out
}
