//! Errors of commands: the exit code and the message.

use super::print::Printer;
use milepost_core::base::redact::redact;
use milepost_engine::ops::exit_code;
use milepost_engine::ops::project::OpsError;
use milepost_engine::ops::run::result::{CommandError, ErrorDetails};
use serde_json::json;

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
    let code = exit_code::of_error(error);
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
