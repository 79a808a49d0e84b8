//! The result of a run, and the error of any command, as `--json` prints them.

use crate::ops::exit_code::exit_code;
use crate::ops::plan::{AwaitedApproval, Awaits, Blocker, ModifiedOutput};
use crate::ops::run::{Report, StageReport, StageStatus};
use crate::run::record::quarantined::KeptFile;
use milepost_core::model::choice::StoredNote;
use milepost_core::model::outcome::Outcome;
use serde::Serialize;
use serde_json::Value;

/// The result of a run.
#[derive(Debug, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct RunResult {
    /// The result in one word: `complete`, `partial`, `held`, `failed`, `altered`, `interrupted`, or `the verdict is no`.
    pub(crate) status: String,
    /// The exit code.
    pub(crate) exit_code: u8,
    /// The id of the run.
    pub(crate) run_id: String,
    /// The path of the workspace.
    pub(crate) workspace: String,
    /// True if the user stopped it.
    pub(crate) interrupted: bool,
    /// Provider batches that are not finished: the next run fetches their answers.
    pub(crate) under_way: u64,
    /// The duration in seconds.
    pub(crate) seconds: f64,
    /// Stages that are no longer declared, whose outputs went to quarantine.
    pub(crate) forgotten: Vec<String>,
    /// Files that went to quarantine: outputs that nothing builds any more, and files modified by hand that were replaced.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) quarantined: Vec<KeptFile>,
    /// The stages, in the order of their numbers.
    pub(crate) stages: Vec<StageResult>,
    /// Warnings and notes about values and agents stored in the workspace.
    pub(crate) stored: Vec<StoredNote>,
}

/// The result of a stage.
#[derive(Debug, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub(crate) struct StageResult {
    /// The stage's name.
    pub(crate) stage: String,
    /// The stage's number.
    pub(crate) number: u32,
    /// How it ended.
    pub(crate) status: StageStatus,
    /// Why it could not begin, or what it waits for.
    pub(crate) why: Option<String>,
    /// The earlier stage that blocks it.
    pub(crate) blocked_by: Option<Blocker>,
    /// The number of batches.
    pub(crate) batches: u64,
    /// Batches that ran.
    pub(crate) ran: u64,
    /// Batches that were up to date.
    pub(crate) reused: u64,
    /// Batches whose outputs were restored from quarantine, without a run.
    pub(crate) restored: u64,
    /// Batches that were revalidated without a run.
    pub(crate) validated_again: u64,
    /// Batches that no longer exist, whose outputs went to quarantine.
    pub(crate) retired: u64,
    /// True if the run only wrote the missing checkpoint.
    pub(crate) checkpoint_rewritten: bool,
    /// Batches that did not run.
    pub(crate) left: u64,
    /// The approval that the stage waits for; its batches are counted in `left`.
    pub(crate) approval: Option<AwaitedApproval>,
    /// The external agents that the stage waits for; its batches are counted in `left`.
    pub(crate) awaits: Option<Awaits>,
    /// The failed batches.
    pub(crate) failed: Vec<FailedBatch>,
    /// Outputs that were modified by hand.
    pub(crate) altered: Vec<ModifiedOutput>,
    /// The result of the stage's `verdict`.
    pub(crate) verdict: Option<bool>,
    /// The number of elements in the outputs.
    pub(crate) elements: Option<u64>,
    /// Its outputs below `outputs/`.
    pub(crate) outputs: Vec<String>,
    /// The duration in seconds.
    pub(crate) seconds: f64,
}

/// A batch that failed.
#[derive(Debug, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub(crate) struct FailedBatch {
    /// The batch; empty for the only one.
    pub(crate) batch: String,
    /// The failure.
    pub(crate) outcome: Outcome,
}

/// The error of a command.
#[derive(Debug, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct CommandError {
    /// Always `error`.
    pub status: String,
    /// The exit code.
    pub exit_code: u8,
    /// The error.
    pub error: ErrorDetails,
}

/// An error of a command.
#[derive(Debug, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct ErrorDetails {
    /// The code of the error.
    pub kind: String,
    /// The message.
    pub message: String,
    /// The mistakes in the declarations, each with file, line and column.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problems: Option<Value>,
}

impl RunResult {
    /// Builds the result from a report; `status` is its word.
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
            why: stage.reason().cloned(),
            blocked_by: stage.blocked_by.clone(),
            batches: stage.batches,
            ran: stage.ran,
            reused: stage.reused,
            restored: stage.restored,
            validated_again: stage.judged,
            retired: stage.retired,
            checkpoint_rewritten: stage.checkpoint_rewritten,
            left: stage.left,
            approval: stage.approval.clone(),
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
