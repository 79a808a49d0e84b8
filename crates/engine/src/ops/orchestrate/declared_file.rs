//! Finds what is declared of a file: its stage and batch, its schema, its marker.

use crate::ops::project::error::OpsError;
use crate::ops::project::open_project::{OpenProject, scan_stage};
use crate::ops::project::snapshot::Snapshot;
use crate::run::check::batch_scanner::Keep;
use milepost_core::base::glob::Glob;
use milepost_core::base::path::{FilePath, RelPath, Root};
use milepost_core::expr::select::Select;
use milepost_core::model::pipeline::Asset;
use milepost_core::model::stage::{PathTemplate, Stage};
use milepost_core::model::step::Part;
use milepost_core::plan::decide::RebuildPolicy;
use milepost_core::plan::paths;
use milepost_core::plan::scan::BatchScan;
use serde_json::Value;

/// The name of a batch's marker among its targets.
const MARKER: &str = "marker";

/// The declarations about a file.
#[derive(Debug, Clone)]
pub(super) struct Declared<'a> {
    /// The stage that builds the file or waits for it.
    pub(crate) stage: &'a Stage,
    /// The batch; `None` if no present batch has this file.
    pub(crate) batch: Option<String>,
    /// The schema of the file.
    pub(crate) schema: Option<&'a Asset>,
    /// The list that is validated record by record.
    pub(crate) stream: Option<&'a Select>,
    /// The marker of the file; `None` if none is declared, or the batch is not known.
    pub(crate) marker: Option<RelPath>,
    /// True if a marker is declared.
    pub(crate) marked: bool,
    /// True if a step waits for the file, and no stage builds it.
    pub(crate) awaited: bool,
}

/// Returns what is declared of a file of the workspace.
///
/// # Errors
/// When the workspace cannot be read.
pub(super) fn declared<'a>(
    opened: &'a OpenProject,
    path: &RelPath,
) -> Result<Option<Declared<'a>>, OpsError> {
    for stage in &opened.pipeline.stages {
        if let Some(found) = awaited(opened, stage, path)? {
            return Ok(Some(found));
        }
        for output in &stage.outputs {
            if !matches(&output.path, path) {
                continue;
            }
            let batch = batches(opened, stage)?.into_iter().find(|batch| {
                let target = batch.targets.get(&output.name);
                target.is_some_and(|target| same(target, path))
            });
            let marker = batch.as_ref().and_then(|batch| batch.targets.get(MARKER));
            return Ok(Some(Declared {
                stage,
                schema: output.schema.as_ref(),
                stream: output.stream.as_ref(),
                marker: marker.cloned(),
                marked: stage.marker.is_some(),
                awaited: false,
                batch: batch.map(|batch| batch.batch.key),
            }));
        }
    }
    Ok(None)
}

/// Returns what a step `wait` of the stage declares of a file.
fn awaited<'a>(
    opened: &'a OpenProject,
    stage: &'a Stage,
    path: &RelPath,
) -> Result<Option<Declared<'a>>, OpsError> {
    for step in &stage.steps {
        let (mut awaited, mut marker) = (None, None);
        for (_, part) in step.kind.parts() {
            match part {
                Part::Awaited(path) => awaited = Some(path),
                Part::AwaitedMarker(path) => marker = Some(path),
                _ => {}
            }
        }
        let Some(template) = awaited else {
            continue;
        };
        if !matches(template, path) {
            continue;
        }
        let ctx = opened.context();
        let output = stage.output(&step.out);
        let mut found = Declared {
            stage,
            batch: None,
            schema: output.and_then(|output| output.schema.as_ref()),
            stream: output.and_then(|output| output.stream.as_ref()),
            marker: None,
            marked: marker.is_some(),
            awaited: true,
        };
        for batch in batches(opened, stage)? {
            let scope = Value::Object(batch.base(ctx.pipeline, ctx.settings, ctx.moment()));
            let place = FilePath::workspace(path.clone());
            if paths::render(template, &scope).is_ok_and(|rendered| rendered == place) {
                let marker = marker.map(|marker| paths::render(marker, &scope));
                found.marker = marker
                    .and_then(Result::ok)
                    .filter(|marker| marker.root == Root::Workspace)
                    .map(|marker| marker.path);
                found.batch = Some(batch.batch.key);
                break;
            }
        }
        return Ok(Some(found));
    }
    Ok(None)
}

/// Returns the stage's batches; empty if they are not known before earlier stages ran.
fn batches(opened: &OpenProject, stage: &Stage) -> Result<Vec<BatchScan>, OpsError> {
    let present = Snapshot::read(&opened.workspace.layout)?;
    let (ctx, policy) = (opened.context(), RebuildPolicy::Needed);
    let found = scan_stage(&ctx, stage, &present.state, policy, Keep::All);
    Ok(found.map(|found| found.batches).unwrap_or_default())
}

/// Returns true if a template in the workspace covers a path.
pub(super) fn matches(template: &PathTemplate, path: &RelPath) -> bool {
    template.root == Root::Workspace
        && Glob::parse(&template.pattern()).is_ok_and(|glob| glob.matches_hidden(path))
}

/// Returns true if a target, which may be a pattern, covers a path.
fn same(target: &RelPath, path: &RelPath) -> bool {
    target == path || Glob::of_output(target).is_ok_and(|glob| glob.matches_hidden(path))
}
