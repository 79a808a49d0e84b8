//! Templates that each batch chooses: the files of the project that a path with `{{ }}` matches.

use crate::base::glob::Glob;
use crate::base::path::{RelPath, Root};
use crate::decl::problem::Report;
use crate::decl::project_files::ProjectFiles;
use crate::decl::tables::located_text::LocatedText;
use crate::decl::values::names::{Sees, StageNames};
use crate::decl::values::reader::ValueReader;
use crate::model::stage::PathTemplate;
use crate::model::step::{Picked, TemplateChoice};
use std::collections::BTreeMap;

impl ValueReader<'_> {
    /// Reads the template of a step: a file of the project, or a path with `{{ }}` that each batch renders.
    pub(crate) fn template_choice(
        &mut self,
        spot: &LocatedText<'_>,
        names: &StageNames<'_>,
        sees: Sees,
    ) -> Option<TemplateChoice> {
        if spot.text.contains("{{") {
            return self.picked(spot, names, sees).map(TemplateChoice::Picked);
        }
        let file = self.template_file(spot, names, sees)?;
        Some(TemplateChoice::One(file))
    }

    fn picked(
        &mut self,
        spot: &LocatedText<'_>,
        names: &StageNames<'_>,
        sees: Sees,
    ) -> Option<Picked> {
        if self.has_prefix(spot) {
            return None;
        }
        // Which one it is is a fact of the batch: it must be known before that runs.
        let path = PathTemplate {
            root: Root::Project,
            ..self.path(spot, names, Sees::Batch)?
        };
        let wrong = if path.is_whole() {
            Some("write a folder before the name, such as \"prompts/{{ params.prompt }}\"")
        } else if path.is_pattern() {
            Some("write the path of one file, with `{{ }}` for what differs")
        } else {
            None
        };
        if let Some(help) = wrong {
            let problem = spot.problem(format!("`{}` can match any file", spot.key));
            self.report.add(problem.help(help));
            return None;
        }
        let pattern = path.pattern();
        let glob = match Glob::parse(&pattern) {
            Ok(glob) => glob,
            Err(error) => {
                self.report.add(spot.problem(error.to_string()));
                return None;
            }
        };
        let mut files = BTreeMap::new();
        for candidate in candidates(self.files, &pattern) {
            if !glob.matches(&candidate) || self.find(&candidate).is_none() {
                continue;
            }
            // Others may be for other stages, or no templates at all: what is wrong with one concerns the batch that picks it.
            let outer = std::mem::take(&mut self.report);
            let named = LocatedText {
                text: candidate.as_str(),
                ..spot.clone()
            };
            let read = self.template_file(&named, names, sees);
            let report = std::mem::replace(&mut self.report, outer);
            let read = read.ok_or_else(|| told(report, &candidate));
            files.insert(candidate, read);
        }
        if files.is_empty() {
            let problem = spot.problem(format!("no file of the project matches `{pattern}`"));
            self.report.add(
                problem
                    .label("no such files")
                    .help("each batch uses one of the existing files"),
            );
            return None;
        }
        Some(Picked { path, files })
    }
}

/// Returns the first mistake of a file, in one line.
fn told(report: Report, file: &RelPath) -> String {
    match report.finish() {
        Err(problems) if !problems.0.is_empty() => problems.0[0].to_string(),
        _ => format!("`{file}` cannot be read"),
    }
}

/// Returns true if the project has a file that a pattern matches.
pub(crate) fn any(files: &dyn ProjectFiles, pattern: &str) -> bool {
    let Ok(glob) = Glob::parse(pattern) else {
        return false;
    };
    candidates(files, pattern)
        .iter()
        .any(|path| glob.matches(path) && is_file(files, path))
}

/// Returns true if a path of the project is a file.
fn is_file(files: &dyn ProjectFiles, path: &RelPath) -> bool {
    let folder = path
        .parent()
        .map_or(String::new(), |folder| folder.to_string());
    files
        .list(&folder)
        .iter()
        .any(|name| name == path.file_name())
        && files.list(path.as_str()).is_empty()
}

/// Returns the paths of the project that a pattern may match.
fn candidates(files: &dyn ProjectFiles, pattern: &str) -> Vec<RelPath> {
    let mut found = vec![String::new()];
    for part in pattern.split('/') {
        let below = |folder: &String, name: &str| match folder.as_str() {
            "" => name.to_owned(),
            folder => format!("{folder}/{name}"),
        };
        found = found
            .iter()
            .flat_map(|folder| {
                let names = if part.contains('*') {
                    files.list(folder)
                } else {
                    vec![part.to_owned()]
                };
                names.into_iter().map(move |name| below(folder, &name))
            })
            .collect();
    }
    found
        .iter()
        .filter_map(|path| RelPath::parse(path).ok())
        .collect()
}
