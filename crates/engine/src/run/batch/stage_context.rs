//! The context of attempts in one stage, and the result of an attempt.

use crate::run::batch::live::WaitingOutput;
use crate::run::check::batch_scanner::MARKER;
use crate::run::context::Context;
use crate::steps::agent::StageAgents;
use crate::steps::batch_context::AttemptLimits;
use crate::steps::calls::Calls;
use crate::steps::command::{StopSignal, StopTime};
use crate::steps::http::connection::Client;
use milepost_core::base::digest::Digest;
use milepost_core::base::path::{FilePath, RelPath};
use milepost_core::model::fingerprint::FactKind;
use milepost_core::model::job::JobOfBatch;
use milepost_core::model::outcome::{Outcome, OutcomeKind};
use milepost_core::model::record::{AnswersOf, FailedKeys, Made, Opinion};
use milepost_core::model::stage::Stage;
use milepost_core::plan::scan::BatchScan;
use milepost_core::plan::world::World;
use milepost_store::check::schemas::Schemas;
use milepost_store::store::clock::Stopwatch;
use milepost_store::store::scratch::{Scratch, ScratchPool};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The result of a successful attempt, as the log of a worker records it too.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Produced {
    /// The files, with their paths in the workspace until they are published. The marker is last.
    pub(crate) files: Vec<(Made, RelPath)>,
    /// The number of output elements.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) elements: Option<u64>,
    /// The summary and verdict of the stage.
    #[serde(default)]
    pub(crate) opinion: Opinion,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) warnings: Vec<String>,
    /// The failure, if these are the files of a placeholder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) placeholder: Option<Outcome>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) failed: Vec<FailedKeys>,
    /// The calls whose answers were used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) answers: Vec<AnswersOf>,
    /// An input that changed during the attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) stale: Option<String>,
    /// The files that its programs named in depfiles.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) read: Vec<FilePath>,
    /// The job of a scheduler that ran it.
    #[serde(skip)]
    pub(crate) job: Option<JobOfBatch>,
    /// Why a request of the batch must not be sent again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) sent: Option<String>,
}

/// The context of attempts in one stage.
pub(crate) struct StageContext<'a> {
    pub(crate) ctx: Context<'a>,
    pub(crate) stage: &'a Stage,
    /// The digest of the facts that its batches share.
    pub(crate) shared: &'a str,
    pub(crate) schemas: &'a Schemas,
    pub(crate) agents: &'a StageAgents,
    /// Known answers, the budget and the record of calls.
    pub(crate) calls: &'a dyn Calls,
    /// True if kept answers do not count.
    pub(crate) fresh: bool,
    pub(crate) client: &'a Client,
    pub(crate) environment: &'a BTreeMap<String, String>,
    pub(crate) stop: &'a dyn StopSignal,
    /// The flag that is set when the run is stopped.
    pub(crate) stopped: Arc<StopTime>,
    pub(crate) limits: AttemptLimits,
    /// How many threads all its batches may use.
    pub(crate) threads: usize,
    /// Measures the time since the batches of the stage started.
    pub(crate) begun: Stopwatch,
    /// The time limit of the stage.
    pub(crate) time: Option<Duration>,
    pub(crate) run_id: &'a str,
    /// How the ids of attempts begin, by which a later run finds their programs: the run, or a submission.
    pub(crate) token: &'a str,
    /// The run's id as a list: with `--fresh`, only answers of this run count.
    pub(crate) this_run: [String; 1],
    /// Folders of finished attempts, for reuse.
    pub(crate) scratch_pool: ScratchPool,
    /// True if the observer shows the programs of batches and what they print.
    pub(crate) live: bool,
    pub(crate) waiting_output: WaitingOutput,
    /// The outcome of every batch if a service of the stage is unavailable.
    pub(crate) lacks: Option<Outcome>,
}

pub(crate) struct AttemptResult {
    pub(crate) result: Result<Produced, Outcome>,
    /// The scratch folder, which is removed after publishing or moved to quarantine.
    pub(crate) scratch: Option<Scratch>,
    /// The path of the log in the workspace.
    pub(crate) log: Option<String>,
}

impl StageContext<'_> {
    /// Returns the time that the stage has left; `None` if it has no limit.
    pub(crate) fn left(&self) -> Option<Duration> {
        let time = self.time?;
        Some(time.saturating_sub(self.begun.elapsed()))
    }
}

/// Returns the digest and size of a file in scratch.
///
/// # Errors
/// When the file does not exist or cannot be read.
pub(crate) fn content(scratch: &Scratch, file: &RelPath) -> Result<(Digest, u64), Outcome> {
    let failed =
        |why: &dyn std::fmt::Display| Outcome::new(OutcomeKind::Output, format!("`{file}`: {why}"));
    match scratch.content(file) {
        Ok(Some(found)) => Ok((found.digest, found.size)),
        Ok(None) => Err(failed(&"it does not exist")),
        Err(error) => Err(failed(&error)),
    }
}

/// Writes the marker. It comes after the outputs, so that they are complete when it appears.
///
/// # Errors
/// When the marker cannot be written.
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

/// Returns an input that changed since the batch was decided.
///
/// # Errors
/// When an input cannot be read.
pub(crate) fn stale(
    stage_ctx: &StageContext<'_>,
    found: &BatchScan,
) -> Result<Option<String>, Outcome> {
    for (key, value) in found.own.iter() {
        let is_file = matches!(key.kind, FactKind::Input | FactKind::Dependency);
        if !is_file || value.is("absent") {
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
