//! Reads the output of a command line. The exit code and the error flag decide whether it succeeded.

use super::output::{CommandExit, CommandOutput, failed, plain, status_of};
use super::{Envelope, Tool, claude, codex, gemini, opencode};
use crate::fault::{CallFault, ErrorBody, FaultKind, beginning};
use crate::request::Reply;
use milepost_core::expr::json;
use serde_json::Value;

impl Tool {
    /// Reads the output of the tool.
    ///
    /// # Errors
    /// Fails if the tool failed or its output has no answer. The fault contains the output, also after a timeout, and the cost that
    /// the tool reports.
    pub fn read(&self, output: CommandOutput<'_>) -> Result<Reply, CallFault> {
        let stopped = match output.ended {
            CommandExit::TimedOut => Some((
                FaultKind::Timeout,
                "it exceeded its time limit and was stopped",
            )),
            CommandExit::Cancelled => Some((FaultKind::Cancelled, "it was stopped with the run")),
            CommandExit::Code(_) | CommandExit::Signal(_) => None,
        };
        let read = match self.envelope {
            Envelope::Text => of_text(output),
            Envelope::Json | Envelope::Ndjson => of_values(output, self.preset.is_some()),
        };
        if let Some((kind, message)) = stopped {
            // A stopped call still costs the tokens that it reported.
            let (usage, reported_cost) = match read {
                Ok(reply) => (reply.usage, reply.reported_cost),
                Err(fault) => (fault.usage, fault.reported_cost),
            };
            let fault = CallFault::new(kind, message).with_raw(output.stdout.to_vec());
            return Err(CallFault {
                usage,
                reported_cost,
                ..fault
            });
        }
        let reply = read.map_err(|fault| keeping_raw(fault, output))?;
        if output.ended != CommandExit::Code(0) {
            let fault = failed(output, &ErrorBody::default(), None);
            return Err(CallFault {
                usage: reply.usage,
                reported_cost: reply.reported_cost,
                ..keeping_raw(fault, output)
            });
        }
        Ok(Reply {
            raw: output.stdout.to_vec(),
            ..reply
        })
    }
}

fn of_text(output: CommandOutput<'_>) -> Result<Reply, CallFault> {
    match std::str::from_utf8(output.stdout) {
        Ok(text) => Ok(plain(text.to_owned())),
        Err(error) => Err(CallFault::new(
            FaultKind::Unreadable,
            format!("its output is not UTF-8: {error}"),
        )),
    }
}

/// Returns the answer in JSON values, in the form of whichever tool they are of: the keys of the known ones do not overlap. Only an
/// unknown tool may print yet another form.
fn of_values(output: CommandOutput<'_>, is_known: bool) -> Result<Reply, CallFault> {
    let values = values(output.stdout);
    let is = |known: fn(&Value) -> bool| values.iter().any(known);
    if is(claude::is_event) {
        return claude::read(&values, output);
    }
    if is(codex::is_event) {
        return codex::read(&values, output);
    }
    if is(opencode::is_event) {
        return opencode::read(&values, output);
    }
    if is(gemini::is_event) {
        return gemini::read(&values, output);
    }
    // JSON that a known tool prints in another form than its own is not its answer.
    let Some(value) = values.last().filter(|_| !is_known) else {
        // Gemini tells errors on standard error, as JSON among other lines.
        if let Some(error) = error_in(output.stderr) {
            let status = status_of(&error["error"]["code"]);
            return Err(failed(output, &ErrorBody::of(&error), status));
        }
        let cut = serde_json::from_slice::<Value>(output.stdout).is_err_and(|error| error.is_eof());
        return Err(match output.ended {
            CommandExit::Code(0) if cut && !output.stdout.is_empty() => {
                CallFault::new(FaultKind::Cut, "its output ends before its JSON does")
            }
            CommandExit::Code(0) => {
                let message = format!("it printed no answer in JSON: {}", beginning(output.stdout));
                CallFault::new(FaultKind::Unreadable, message)
            }
            _ => failed(output, &ErrorBody::default(), None),
        });
    };
    if value["is_error"] == true || !(value["error"].is_null() || value["error"] == false) {
        return Err(failed(output, &ErrorBody::of(value), None));
    }
    let names = [
        "result", "response", "text", "content", "output", "message", "answer",
    ];
    let held = names
        .iter()
        .map(|name| &value[*name])
        .find(|held| !held.is_null());
    Ok(match held {
        Some(Value::String(text)) => plain(text.clone()),
        // Neither a known envelope nor one that can be guessed: the value is the answer.
        Some(_) | None => Reply {
            structured: Some(value.clone()),
            ..plain(value.to_string())
        },
    })
}

/// Returns the JSON values that were printed: one, the members of a list, or one a line, with other lines left out.
fn values(printed: &[u8]) -> Vec<Value> {
    match json::parse_bytes(printed) {
        Ok(Value::Array(list)) if list.iter().any(|value| value["type"].is_string()) => list,
        Ok(value) => vec![value],
        Err(_) => {
            let lines = printed.split(|byte| *byte == b'\n');
            let values = lines.filter_map(|line| json::parse_bytes(line).ok());
            values
                .filter(|value: &Value| value.is_object() || value.is_array())
                .collect()
        }
    }
}

/// Returns the last object with an `error` that starts at the beginning of a line.
fn error_in(stderr: &[u8]) -> Option<Value> {
    let text = String::from_utf8_lossy(stderr);
    let starts = text
        .match_indices('{')
        .filter(|(at, _)| text[..*at].ends_with('\n') || *at == 0);
    let read = |(at, _): (usize, &str)| {
        let mut values = serde_json::Deserializer::from_str(&text[at..]).into_iter::<Value>();
        values
            .next()?
            .ok()
            .filter(|value| !value["error"].is_null())
    };
    starts.filter_map(read).next_back()
}

/// Keeps what a failed tool printed: its output, or its complaints where it printed nothing.
fn keeping_raw(fault: CallFault, output: CommandOutput<'_>) -> CallFault {
    let raw = if output.stdout.is_empty() {
        output.stderr
    } else {
        output.stdout
    };
    fault.with_raw(raw.to_vec())
}
