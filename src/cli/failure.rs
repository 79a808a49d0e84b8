//! Errors of commands: the exit code and the message.

use super::print::Printer;
use crate::view::text::words::count;
use milepost_core::base::redact::redact;
use milepost_core::decl::Problems;
use milepost_engine::ops::exit_code;
use milepost_engine::ops::project::OpsError;
use milepost_engine::ops::run::result::{CommandError, ErrorDetails};
use serde_json::json;
use std::sync::{Arc, Once};

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

/// Returns a function that prints the mistakes in the declarations once, for a command that shows what is recorded all the same.
pub(crate) fn warn_once(printer: &Printer) -> Arc<dyn Fn(&Problems) + Send + Sync> {
    let (printer, printed) = (printer.clone(), Once::new());
    Arc::new(move |problems| {
        printed.call_once(|| {
            printer.say(problems.render_as_warnings(printer.err.on).trim_end());
            printer.say(&format!(
                "\n{} {}: no run can begin, and this shows only what is recorded",
                printer.err.warn("warning:"),
                in_declarations(problems)
            ));
        });
    })
}

fn in_declarations(problems: &Problems) -> String {
    let errors = count(problems.0.len() as u64, "error", "errors");
    format!("{errors} in the declarations")
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
            printer.say(&format!(
                "\n{} {}; nothing was run",
                printer.err.bad("error:"),
                in_declarations(problems)
            ));
        }
        other => printer.error(&other.to_string()),
    }
    code
}
