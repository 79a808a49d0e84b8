//! What an attempt at a batch needs of its stage, and what it results in.

use crate::run::check::scan::MARKER;
use crate::run::context::Context;
use crate::steps::agent::Answerers;
use crate::steps::calls::Calls;
use crate::steps::command::Stop;
use crate::steps::work::Limits;
use milepost_agents::http::SharedHttp;
use milepost_core::base::digest::Digest;
use milepost_core::base::path::{FilePath, RelPath};
use milepost_core::model::fingerprint::FactKind;
use milepost_core::model::outcome::{Outcome, OutcomeKind};
use milepost_core::model::record::{AnswersOf, FailedKeys, Made, Opinion};
use milepost_core::model::stage::Stage;
use milepost_core::plan::scan::BatchScan;
use milepost_core::plan::world::World;
use milepost_store::check::schemas::Schemas;
use milepost_store::store::clock::Stopwatch;
use milepost_store::store::scratch::{Scratch, ScratchPool};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// What was made of a batch.
#[derive(Debug)]
pub(crate) struct Produced {
    /// The files, with where each lies in the workspace until it is published. The marker is last.
    pub(crate) files: Vec<(Made, RelPath)>,
    /// Elements that came out.
    pub(crate) elements: Option<u64>,
    /// What the stage says of it.
    pub(crate) opinion: Opinion,
    /// Warnings for people.
    pub(crate) warnings: Vec<String>,
    /// Set when these are a placeholder's files.
    pub(crate) placeholder: Option<Outcome>,
    /// Elements that failed.
    pub(crate) failed: Vec<FailedKeys>,
    /// The calls of agents whose answers it was made from.
    pub(crate) answers: Vec<AnswersOf>,
    /// An input that changed meanwhile.
    pub(crate) stale: Option<String>,
}

/// What a worker needs of the stage.
pub(crate) struct StageContext<'a> {
    /// What the run needs.
    pub(crate) ctx: Context<'a>,
    /// The stage.
    pub(crate) stage: &'a Stage,
    /// The id of the facts that its batches share, without their details.
    pub(crate) shared: &'a str,
    /// Its schemas.
    pub(crate) schemas: &'a Schemas,
    /// The agents that the stage asks.
    pub(crate) agents: &'a Answerers,
    /// What stands behind those that cost something.
    pub(crate) calls: &'a dyn Calls,
    /// Whether everything is asked once more.
    pub(crate) fresh: bool,
    /// The HTTP client of the run.
    pub(crate) http: &'a SharedHttp,
    /// The environment of programs.
    pub(crate) environment: &'a BTreeMap<String, String>,
    /// The wish to stop.
    pub(crate) stop: &'a dyn Stop,
    /// The same wish, for work that looks now and then.
    pub(crate) wished: Arc<AtomicBool>,
    /// Limits of an attempt.
    pub(crate) limits: Limits,
    /// Since the stage's batches run.
    pub(crate) begun: Stopwatch,
    /// How long they may, in all.
    pub(crate) time: Option<Duration>,
    /// The run's id.
    pub(crate) run_id: &'a str,
    /// The same as a list: with `--fresh`, only answers of these runs count.
    pub(crate) this_run: [String; 1],
    /// Folders of attempts that are over.
    pub(crate) spares: ScratchPool,
    /// How each batch fails before its first step: a service that the stage needs is not there.
    pub(crate) lacks: Option<Outcome>,
}

/// One try at one batch.
pub(crate) struct AttemptResult {
    /// What was made, or how it failed.
    pub(crate) result: Result<Produced, Outcome>,
    /// The scratch folder: to be removed after publishing, or to go to quarantine.
    pub(crate) scratch: Option<Scratch>,
    /// Where what programs printed is kept, in the workspace.
    pub(crate) log: Option<String>,
}

impl StageContext<'_> {
    /// What is left of the stage's time; none: it has no limit.
    pub(crate) fn left(&self) -> Option<Duration> {
        let time = self.time?;
        Some(time.saturating_sub(self.begun.elapsed()))
    }
}

/// Digest and size of a file in scratch.
///
/// # Errors
/// When it is not there, or cannot be read.
pub(crate) fn content(scratch: &Scratch, file: &RelPath) -> Result<(Digest, u64), Outcome> {
    let failed =
        |why: &dyn std::fmt::Display| Outcome::new(OutcomeKind::Output, format!("`{file}`: {why}"));
    match scratch.content(file) {
        Ok(Some(found)) => Ok((found.digest, found.size)),
        Ok(None) => Err(failed(&"it is not there")),
        Err(error) => Err(failed(&error)),
    }
}

/// The marker comes after the outputs: whoever sees it finds them whole.
///
/// # Errors
/// When it cannot be written.
pub(crate) fn add_marker(
    stage_ctx: &StageContext<'_>,
    found: &BatchScan,
    scratch: &Scratch,
    made: &mut Vec<(Made, RelPath)>,
) -> Result<(), Outcome> {
    let Some(path) = stage_ctx
        .stage
        .marker
        .as_ref()
        .and_then(|_| found.targets.get(MARKER))
    else {
        return Ok(());
    };
    let failed = |error: &dyn std::fmt::Display| {
        Outcome::new(OutcomeKind::Output, format!("marker `{path}`: {error}"))
    };
    let sink = scratch.sink(path).map_err(|error| failed(&error))?;
    sink.finish().map_err(|error| failed(&error))?;
    let (digest, size) = content(scratch, path)?;
    made.push((
        Made {
            name: MARKER.to_owned(),
            path: path.clone(),
            digest,
            size,
        },
        scratch.inside(path),
    ));
    Ok(())
}

/// An input that is not what it was when the batch was decided.
///
/// # Errors
/// When it cannot be read.
pub(crate) fn stale(
    stage_ctx: &StageContext<'_>,
    found: &BatchScan,
) -> Result<Option<String>, Outcome> {
    for (key, value) in found.own.iter() {
        if key.kind != FactKind::Input || value.is("absent") {
            continue;
        }
        let file: FilePath = key
            .name
            .parse()
            .map_err(|error| Outcome::new(OutcomeKind::Path, format!("{error}")))?;
        let is_same = |digest: Option<Digest>| digest.is_some() && digest == value.digest();
        if is_same(stage_ctx.ctx.cached(&file)) {
            continue;
        }
        let digest = stage_ctx
            .ctx
            .digest(&file)
            .map_err(|why| Outcome::new(OutcomeKind::Input, why))?;
        if !is_same(digest) {
            return Ok(Some(key.name.to_string()));
        }
    }
    Ok(None)
}
