//! The scope of a batch: project values, items and inputs.

use crate::run::context::Context;
use crate::steps::cancel::CancelToken;
use jiff::Timestamp;
use milepost_core::base::path::FilePath;
use milepost_core::base::source::Source;
use milepost_core::expr::scope::{Format, Reading, Scope};
use milepost_core::model::outcome::{Outcome, OutcomeKind};
use milepost_core::model::stage::{Input, RUN, Stage};
use milepost_core::plan::expand::BatchItem;
use milepost_core::plan::scan::BatchScan;
use milepost_store::store::files::FileError;
use std::sync::Arc;

/// A file and how its content is read.
pub(crate) type Readable = (Arc<dyn Source>, Reading);

/// Returns the scope of a batch before its steps: values, items and inputs. `moment` becomes `run`.
///
/// # Errors
/// When an input that is not optional is missing, or a file leaves its folder.
pub(crate) fn of_inputs(
    ctx: &Context<'_>,
    stage: &Stage,
    found: &BatchScan,
    moment: Timestamp,
    cancel: &Arc<CancelToken>,
) -> Result<Scope, Outcome> {
    let mut scope = of_values(ctx, found, moment);
    // An item is usually an input too.
    let mut items = Vec::new();
    for (name, item) in &found.batch.items {
        if let BatchItem::File(file) = item {
            let format = Format::of_path(file.path.as_str());
            let source = source(ctx, file, cancel)?;
            items.push((file, Arc::clone(&source)));
            scope.insert_file(&format!("{name}.data"), source, format);
        }
    }
    for resolved in &found.inputs {
        let Some(declared) = stage.input(&resolved.name) else {
            continue;
        };
        let there = match (items.as_slice(), resolved.files.as_slice()) {
            ([(item, source)], [file]) if *item == file => {
                vec![(Arc::clone(source), declared.reading(file))]
            }
            (_, inputs) => files(ctx, declared, inputs, cancel)?,
        };
        insert(&mut scope, &resolved.name, resolved.many, there);
    }
    Ok(scope)
}

/// Returns the scope of a batch without the content of files.
pub(crate) fn of_values(ctx: &Context<'_>, found: &BatchScan, moment: Timestamp) -> Scope {
    let mut scope = Scope::new();
    let is_item = |name: &str| found.batch.items.iter().any(|(item, _)| item == name);
    for (name, value) in found.values(ctx.pipeline, ctx.settings, moment) {
        if name == RUN && !is_item(RUN) {
            scope.insert_unlisted(&name, value);
        } else {
            scope.insert_value(&name, value);
        }
    }
    // A batch may have many inputs, and few expressions use their paths and digests.
    let found = Arc::new(found.clone());
    let same = Arc::clone(&found);
    scope.insert_lazy("paths", move || same.paths());
    scope.insert_lazy("digests", move || found.digests());
    scope
}

/// Returns the files of an input that exist.
///
/// # Errors
/// When a file is missing and the input is not optional.
pub(crate) fn files(
    ctx: &Context<'_>,
    declared: &Input,
    files: &[FilePath],
    cancel: &Arc<CancelToken>,
) -> Result<Vec<Readable>, Outcome> {
    let mut there = Vec::with_capacity(files.len());
    for file in files {
        if declared.optional && matches!(ctx.files.exists(file), Ok(false)) {
            continue;
        }
        there.push((source(ctx, file, cancel)?, declared.reading(file)));
    }
    Ok(there)
}

/// Adds the files of a name to a scope: a list, the only one, or none.
pub(crate) fn insert(scope: &mut Scope, name: &str, many: bool, files: Vec<Readable>) {
    if many {
        scope.insert_files(name, files);
        return;
    }
    match files.into_iter().next() {
        Some((source, reading)) => scope.insert_file(name, source, reading),
        None => scope.absent(name),
    }
}

/// Returns a file that another process writes; `None` if it does not exist.
///
/// # Errors
/// When the path leaves its folder or is not a file.
pub(crate) fn awaited(
    ctx: &Context<'_>,
    file: &FilePath,
    cancel: &Arc<CancelToken>,
) -> Result<Option<Arc<dyn Source>>, Outcome> {
    match ctx.files.source(file) {
        Ok(found) => Ok(Some(cancel.source(found))),
        Err(FileError::Missing { .. }) => Ok(None),
        Err(error) => Err(Outcome::new(OutcomeKind::Path, error.to_string())),
    }
}

/// Returns a file to read. `cancel` ends reading.
///
/// # Errors
/// When the file does not exist or leaves its folder.
pub(crate) fn source(
    ctx: &Context<'_>,
    file: &FilePath,
    cancel: &Arc<CancelToken>,
) -> Result<Arc<dyn Source>, Outcome> {
    let found = ctx.files.source(file);
    match found {
        Ok(found) => Ok(cancel.source(found)),
        Err(error) => {
            let kind = match error {
                FileError::Leaves { .. } => OutcomeKind::Path,
                _ => OutcomeKind::Input,
            };
            Err(Outcome::new(kind, error.to_string()))
        }
    }
}
