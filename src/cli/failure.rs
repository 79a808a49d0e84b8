//! What could not be done: its kind, its exit code, and the message.

use super::print::Printer;
use milepost_core::base::redact::redact;
use milepost_engine::ops::project::OpsError;
use milepost_engine::ops::run::result::{CommandError, ErrorDetails};
use serde_json::json;

/// A stage failed, a verdict said no, or Milepost itself could not go on.
pub(crate) const FAILED: u8 = 1;
/// The command line says something that cannot be.
pub(crate) const USAGE: u8 = 2;
/// The declarations are wrong.
pub(crate) const DECLARATION: u8 = 4;
/// Exit code: partial, or held by a limit.
pub(crate) const HELD: u8 = 3;
/// Somebody altered what was made.
pub(crate) const ALTERED: u8 = 5;

/// The exit code of what could not be done. `docs/reference/exit-codes.md` holds the same table.
fn exit_code(error: &OpsError) -> u8 {
    match error.kind() {
        "no_project" | "usage" | "path" => USAGE,
        "declaration" => DECLARATION,
        _ => FAILED,
    }
}

/// What could not be done, as data.
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

/// Says what could not be done, and gives the exit code.
pub(crate) fn tell(printer: &Printer, error: &OpsError) -> u8 {
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
                1 => "1 mistake in the declarations".to_owned(),
                many => format!("{many} mistakes in the declarations"),
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
