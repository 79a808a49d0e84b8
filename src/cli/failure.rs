//! Errors of commands: the exit code and the message.

use super::print::Printer;
use milepost_core::base::redact::redact;
use milepost_engine::ops::project::OpsError;
use milepost_engine::ops::run::result::{CommandError, ErrorDetails};
use serde_json::json;

/// Exit code: a stage failed, a verdict is negative, or Milepost could not continue.
pub(crate) const FAILED: u8 = 1;
/// Exit code: wrong usage.
pub(crate) const USAGE: u8 = 2;
/// Exit code: invalid declaration.
pub(crate) const DECLARATION: u8 = 4;
/// Exit code: partial or waiting.
pub(crate) const WAITING: u8 = 3;
/// Exit code: an output was modified by hand.
pub(crate) const MODIFIED: u8 = 5;

/// Returns the exit code of an error. `docs/reference/exit-codes.md` holds the same table.
fn exit_code(error: &OpsError) -> u8 {
    match error.kind() {
        "no_project" | "usage" | "path" => USAGE,
        "declaration" => DECLARATION,
        _ => FAILED,
    }
}

/// Returns an error as data.
pub(crate) fn refusal(error: &OpsError) -> ErrorDetails {
    let problems = match error {
        OpsError::Declarations(problems) => Some(problems.to_json()),
        _ => None,
    };
    ErrorDetails {
        kind: error.kind().to_owned(),
        message: redact(&error.to_string()).into_owned(),
        problems,
    }
}

/// Prints an error, and returns the exit code.
pub(crate) fn print(printer: &Printer, error: &OpsError) -> u8 {
    let code = exit_code(error);
    if printer.json {
        let refused = CommandError {
            status: "error".to_owned(),
            exit_code: code,
            error: refusal(error),
        };
        printer.result_json(&json!(refused));
    }
    match error {
        OpsError::Declarations(problems) => {
            printer.say(problems.render(printer.err.on).trim_end());
            let many = match problems.0.len() {
                1 => "1 error in the declarations".to_owned(),
                many => format!("{many} errors in the declarations"),
            };
            printer.say(&format!(
                "\n{} {many}; nothing was run",
                printer.err.bad("error:")
            ));
        }
        other => printer.error(&other.to_string()),
    }
    code
}
