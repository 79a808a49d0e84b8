//! Exit codes of the program. `docs/reference/exit-codes.md` holds the same table.

use super::project::OpsError;
use super::run::{Report, StageReport, StageStatus};

/// The run is complete, or the command succeeded.
pub const OK: u8 = 0;
/// A batch failed, a verdict is negative, or Milepost could not continue.
pub const FAILED: u8 = 1;
/// Wrong usage.
pub const USAGE: u8 = 2;
/// Partial by policy, or waiting.
pub const WAITING: u8 = 3;
/// Invalid declaration.
pub const DECLARATION: u8 = 4;
/// An output was modified by hand.
pub const MODIFIED: u8 = 5;
/// Another process uses the workspace.
pub const IN_USE: u8 = 6;
/// Interrupted, as a shell reports Ctrl-C.
pub const INTERRUPTED: u8 = 130;

/// Returns the exit code of a report, the first that applies: interrupted, modified by hand, failed, partial or waiting, complete.
pub fn exit_code(report: &Report) -> u8 {
    let any = |status: StageStatus| report.stages.iter().any(|stage| stage.status == status);
    let failed = |stage: &StageReport| stage.failure || stage.verdict == Some(false);
    if report.interrupted {
        INTERRUPTED
    } else if any(StageStatus::Modified) {
        MODIFIED
    } else if report.stages.iter().any(failed) {
        FAILED
    } else if any(StageStatus::Partial) || any(StageStatus::Held) || any(StageStatus::Blocked) {
        WAITING
    } else {
        OK
    }
}

/// Returns the exit code of an error.
pub fn of_error(error: &OpsError) -> u8 {
    match error.kind() {
        "no_project" | "usage" | "path" => USAGE,
        "declaration" => DECLARATION,
        "in_use" => IN_USE,
        _ => FAILED,
    }
}
