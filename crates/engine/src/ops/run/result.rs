//! How a run ended, and what could not be done, as `--json` prints it.

use crate::ops::plan::{Awaits, Blocker, ModifiedOutput};
use crate::ops::run::{Report, StageReport, StageStatus, exit_code};
use crate::run::record::quarantined::KeptFile;
use milepost_core::model::choice::StoredNote;
use milepost_core::model::outcome::Outcome;
use serde::Serialize;
use serde_json::Value;

/// How a run ended.
#[derive(Debug, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct RunResult {
    /// In one word: `complete`, `partial`, `held`, `failed`, `altered`, `interrupted`, or `the verdict is no`.
    pub(crate) status: String,
    /// The exit code.
    pub(crate) exit_code: u8,
    /// The run's id.
    pub(crate) run_id: String,
    /// The workspace's folder.
    pub(crate) workspace: String,
    /// Whether it was stopped by the user.
    pub(crate) interrupted: bool,
    /// Batches of requests that providers go on with: the next run takes the answers.
    pub(crate) under_way: u64,
    /// How long it took, in seconds.
    pub(crate) seconds: f64,
    /// Stages that are no longer declared, whose outputs went to quarantine.
    pub(crate) forgotten: Vec<String>,
    /// Files that were moved to quarantine: outputs that are no longer made, and what a person wrote where others were put.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) quarantined: Vec<KeptFile>,
    /// Stage by stage.
    pub(crate) stages: Vec<StageResult>,
    /// Warnings and notes about values and agents that the workspace keeps.
    pub(crate) stored: Vec<StoredNote>,
}

/// What became of a stage.
#[derive(Debug, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub(crate) struct StageResult {
    /// Its name.
    pub(crate) stage: String,
    /// Its number.
    pub(crate) number: u32,
    /// How it ended.
    pub(crate) status: StageStatus,
    /// Why it could not begin.
    pub(crate) why: Option<String>,
    /// The earlier stage that is in its way.
    pub(crate) blocked_by: Option<Blocker>,
    /// Batches that there are.
    pub(crate) batches: u64,
    /// Batches that ran.
    pub(crate) ran: u64,
    /// Batches that were reused.
    pub(crate) reused: u64,
    /// Batches that were validated again without a run.
    pub(crate) validated_again: u64,
    /// Batches that there are no more, whose outputs went to quarantine.
    pub(crate) retired: u64,
    /// Whether nothing was done but that its checkpoint, which was not there, was written.
    pub(crate) checkpoint_rewritten: bool,
    /// Batches that were not tried.
    pub(crate) left: u64,
    /// What it waits for from outside: these batches are among those that were not tried.
    pub(crate) awaits: Option<Awaits>,
    /// Batches that failed, with how.
    pub(crate) failed: Vec<FailedBatch>,
    /// Files that somebody altered.
    pub(crate) altered: Vec<ModifiedOutput>,
    /// What the stage's `verdict` says.
    pub(crate) verdict: Option<bool>,
    /// Elements that came out.
    pub(crate) elements: Option<u64>,
    /// Its outputs that lie under `outputs/`.
    pub(crate) outputs: Vec<String>,
    /// How long it took, in seconds.
    pub(crate) seconds: f64,
}

/// A batch that failed.
#[derive(Debug, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub(crate) struct FailedBatch {
    /// The batch; empty for the only one.
    pub(crate) batch: String,
    /// How.
    pub(crate) outcome: Outcome,
}

/// What could not be done, by any command.
#[derive(Debug, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct CommandError {
    /// Always `error`.
    pub status: String,
    /// The exit code.
    pub exit_code: u8,
    /// Why.
    pub error: ErrorDetails,
}

/// Why something could not be done.
#[derive(Debug, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct ErrorDetails {
    /// In one word.
    pub kind: String,
    /// In a sentence.
    pub message: String,
    /// Mistakes in the declarations, each with its file, line and column.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problems: Option<Value>,
}

impl RunResult {
    /// Of a report; `status` is the word for it.
    pub fn of(report: &Report, status: &str) -> Self {
        Self {
            status: status.to_owned(),
            exit_code: exit_code(report),
            run_id: report.run_id.clone(),
            workspace: report.workspace.clone(),
            interrupted: report.interrupted,
            under_way: report.under_way,
            seconds: report.seconds,
            forgotten: report.forgotten.clone(),
            quarantined: report.quarantined.clone(),
            stages: report.stages.iter().map(StageResult::of).collect(),
            stored: report.stored.clone(),
        }
    }
}

impl StageResult {
    fn of(stage: &StageReport) -> Self {
        let failed = stage.failed.iter().map(|(batch, outcome)| FailedBatch {
            batch: batch.clone(),
            outcome: outcome.clone(),
        });
        Self {
            stage: stage.stage.clone(),
            number: stage.number,
            status: stage.status,
            why: stage.why.clone(),
            blocked_by: stage.blocked_by.clone(),
            batches: stage.batches,
            ran: stage.ran,
            reused: stage.reused,
            validated_again: stage.judged,
            retired: stage.retired,
            checkpoint_rewritten: stage.checkpoint_rewritten,
            left: stage.left,
            awaits: stage.awaits.clone(),
            failed: failed.collect(),
            altered: stage
                .altered
                .iter()
                .cloned()
                .map(ModifiedOutput::of)
                .collect(),
            verdict: stage.verdict,
            elements: stage.elements,
            outputs: stage.outputs.clone(),
            seconds: stage.seconds,
        }
    }
}
