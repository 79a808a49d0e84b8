//! Where the records of elements are, and where their keys: the paths that `[conserve]` declares, by file.

use crate::ops::inspect::graph::as_set;
use crate::ops::project::open_project::OpenProject;
use milepost_core::base::glob::Glob;
use milepost_core::base::path::{FilePath, Root};
use milepost_core::expr::scope::{Format, Reading};
use milepost_core::expr::select::{PathStep, Select};
use milepost_core::model::stage::{EachSource, Input, InputSource, Output, Stage};

/// The files with records of elements that a project declares.
pub(super) struct KeyPaths<'a>(Vec<KeyPath<'a>>);

struct KeyPath<'a> {
    root: Root,
    glob: Glob,
    key: Select,
    file: DeclaredFile<'a>,
}

/// The declaration that says how a file is read.
enum DeclaredFile<'a> {
    Input(&'a Input),
    Output(&'a Output),
    Each,
}

/// The records in a file, and their keys.
pub(super) struct RecordPath {
    /// The key in the file, such as `.elements[].global_id`.
    pub(super) key: Select,
    /// How the file is read.
    pub(super) reading: Reading,
}

impl RecordPath {
    /// Returns the steps to a record and the steps from there to its key. A file without a list is one record.
    pub(super) fn split(&self) -> (&[PathStep], &[PathStep]) {
        let steps = self.key.steps();
        let last = steps.iter().rposition(|step| *step == PathStep::Each);
        steps.split_at(last.map_or(0, |place| place + 1))
    }

    /// Returns the field with the key, such as `global_id`.
    pub(super) fn field(&self) -> Option<String> {
        let (_, steps) = self.split();
        let names = steps.iter().map(|step| match step {
            PathStep::Field(name) => name.as_str(),
            PathStep::Each => "",
        });
        let names: Vec<&str> = names.collect();
        (!names.is_empty()).then(|| names.join("."))
    }
}

impl<'a> KeyPaths<'a> {
    /// Collects the paths of all stages.
    pub(super) fn of(opened: &'a OpenProject) -> Self {
        let mut found = Vec::new();
        for stage in &opened.pipeline.stages {
            let Some(conserve) = &stage.conserve else {
                continue;
            };
            found.extend(of_output(stage, &conserve.output));
            found.extend(of_input(opened, stage, &conserve.input));
        }
        Self(found)
    }

    /// Returns the names of all fields with keys.
    pub(super) fn fields(&self) -> Vec<String> {
        let paths = self.0.iter().map(|path| path.key.clone());
        let paths = paths.map(|key| RecordPath {
            key,
            reading: Reading {
                format: Format::Json,
                columns: None,
            },
        });
        paths.filter_map(|path| path.field()).collect()
    }

    /// Returns where the records of a file are; `None` if no declaration says so.
    pub(super) fn get(&self, file: &FilePath) -> Option<RecordPath> {
        let is_it = |path: &&KeyPath<'_>| path.root == file.root && path.glob.matches(&file.path);
        let path = self.0.iter().find(is_it)?;
        Some(RecordPath {
            key: path.key.clone(),
            reading: match path.file {
                DeclaredFile::Input(input) => input.reading(file),
                DeclaredFile::Output(output) => output.reading(),
                DeclaredFile::Each => Reading {
                    format: Format::of_path(file.path.as_str()),
                    columns: None,
                },
            },
        })
    }
}

fn of_output<'a>(stage: &'a Stage, select: &Select) -> Option<KeyPath<'a>> {
    let output = stage.output(select.first())?;
    Some(KeyPath {
        root: Root::Workspace,
        glob: Glob::parse(&output.path.pattern()).ok()?,
        key: of_one(select.rest(), output.is_many()),
        file: DeclaredFile::Output(output),
    })
}

fn of_input<'a>(opened: &OpenProject, stage: &'a Stage, select: &Select) -> Option<KeyPath<'a>> {
    if let Some(input) = stage.input(select.first()) {
        let InputSource::Path(path) = &input.source else {
            return None;
        };
        let shown = as_set(opened, path);
        return Some(KeyPath {
            root: path.root,
            glob: Glob::parse(shown.strip_prefix("project:").unwrap_or(&shown)).ok()?,
            key: of_one(select.rest(), path.is_pattern()),
            file: DeclaredFile::Input(input),
        });
    }
    let each = stage.each.iter().find(|each| each.name == select.first())?;
    let EachSource::Path(path) = &each.source else {
        return None;
    };
    // An item has the path of its file, and the content as `data`.
    let rest = select.rest();
    (rest.first() == "data").then_some(())?;
    Some(KeyPath {
        root: path.root,
        glob: Glob::parse(&path.pattern()).ok()?,
        key: rest.rest(),
        file: DeclaredFile::Each,
    })
}

/// Returns the path in one file of those that a name selects.
fn of_one(select: Select, is_many: bool) -> Select {
    match select.steps().first() {
        Some(PathStep::Each) if is_many => select.rest(),
        _ => select,
    }
}
