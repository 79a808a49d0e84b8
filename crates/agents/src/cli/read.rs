//! What a command line's output means: the verdict from the exit code and the error flag, whatever else it says.

use super::{Envelope, Tool, claude, codex, gemini, opencode};
use crate::fault::{CallFault, ErrorBody, FaultKind, beginning, kind_of};
use crate::request::{Reply, Stop};
use milepost_core::model::usage::Usage;
use serde_json::Value;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// With this exit code.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// It was ended because it took too long.
    TimedOut,
    /// It was ended because the run was stopped.
    Cancelled,
}

/// What a command left behind.
#[derive(Debug, Clone, Copy)]
pub struct Output<'a> {
    /// How it ended.
    pub ended: Ended,
    /// What it printed.
    pub stdout: &'a [u8],
    /// What it complained.
    pub stderr: &'a [u8],
}

impl Tool {
    /// What the output means. `model` is the one that was asked for, if any.
    ///
    /// # Errors
    /// When it failed, or its output holds no answer. What was printed is kept, also when it took too long; so is what the
    /// failure cost, as far as the tool says.
    pub fn read(&self, model: Option<&str>, output: Output<'_>) -> Result<Reply, CallFault> {
        let stopped = match output.ended {
            Ended::TimedOut => Some((FaultKind::Timeout, "it took too long and was ended")),
            Ended::Cancelled => Some((
                FaultKind::Cancelled,
                "it was ended because the run was stopped",
            )),
            Ended::Code(_) | Ended::Signal(_) => None,
        };
        let read = match self.envelope {
            Envelope::Text => of_text(output),
            Envelope::Json | Envelope::Ndjson => of_values(output, self.preset.is_some()),
        };
        if let Some((kind, message)) = stopped {
            // What it says that it used by then is used.
            let (usage, told_cost) = match read {
                Ok(reply) => (reply.usage, reply.told_cost),
                Err(fault) => (fault.usage, fault.told_cost),
            };
            let fault = CallFault::new(kind, message).with_raw(output.stdout.to_vec());
            return Err(CallFault {
                usage,
                told_cost,
                ..fault
            });
        }
        let reply = read.map_err(|fault| keeping_raw(fault, output))?;
        if output.ended != Ended::Code(0) {
            let fault = failed(output, &ErrorBody::default(), None);
            return Err(CallFault {
                usage: reply.usage,
                told_cost: reply.told_cost,
                ..keeping_raw(fault, output)
            });
        }
        Ok(Reply {
            asked_model: model.unwrap_or_default().to_owned(),
            raw: output.stdout.to_vec(),
            ..reply
        })
    }
}

/// A reply that holds a text and nothing else.
pub(super) fn plain(text: String) -> Reply {
    Reply {
        text,
        structured: None,
        stop: Stop::End,
        usage: Usage::default(),
        told_cost: None,
        asked_model: String::new(),
        served_model: None,
        request_id: None,
        raw: Vec::new(),
    }
}

fn of_text(output: Output<'_>) -> Result<Reply, CallFault> {
    match std::str::from_utf8(output.stdout) {
        Ok(text) => Ok(plain(text.to_owned())),
        Err(error) => Err(CallFault::new(
            FaultKind::Unreadable,
            format!("its output is no UTF-8: {error}"),
        )),
    }
}

/// The answer in JSON values, in the form of whichever tool they are of: the keys of the known ones do not overlap. Only an
/// unknown tool may print yet another form.
fn of_values(output: Output<'_>, is_known: bool) -> Result<Reply, CallFault> {
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
    // What a known tool prints in another form than its own is none of its answers.
    let Some(value) = values.last().filter(|_| !is_known) else {
        // Gemini tells errors on standard error, as JSON among other lines.
        if let Some(error) = error_in(output.stderr) {
            let status = status_of(&error["error"]["code"]);
            return Err(failed(output, &ErrorBody::of(&error), status));
        }
        let cut = serde_json::from_slice::<Value>(output.stdout).is_err_and(|error| error.is_eof());
        return Err(match output.ended {
            Ended::Code(0) if cut && !output.stdout.is_empty() => {
                CallFault::new(FaultKind::Cut, "its output ends before its JSON does")
            }
            Ended::Code(0) => {
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

/// The JSON values that were printed: one, the members of a list, or one a line, with other lines left out.
fn values(printed: &[u8]) -> Vec<Value> {
    match serde_json::from_slice(printed) {
        Ok(Value::Array(list)) if list.iter().any(|value| value["type"].is_string()) => list,
        Ok(value) => vec![value],
        Err(_) => {
            let lines = printed.split(|byte| *byte == b'\n');
            let values = lines.filter_map(|line| serde_json::from_slice(line).ok());
            values
                .filter(|value: &Value| value.is_object() || value.is_array())
                .collect()
        }
    }
}

/// The last object with an `error` that stands in a text, from the beginning of a line on.
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

/// A status among numbers and texts.
pub(super) fn status_of(value: &Value) -> Option<u16> {
    let number = value.as_u64().or_else(|| value.as_str()?.parse().ok())?;
    u16::try_from(number)
        .ok()
        .filter(|status| (100..600).contains(status))
}

/// The code of a fault whose tool is not there: a shell says so by the exit code 127.
pub const NOT_FOUND: &str = "command_not_found";

/// What tools say when nobody is logged in; they tell no code.
const NOT_LOGGED_IN: [&str; 5] = [
    "invalid api key",
    "not logged in",
    "please log in",
    "/login",
    "unauthorized",
];

/// The fault that a tool told, or that its exit code and complaints tell where it said nothing.
pub(super) fn failed(output: Output<'_>, told: &ErrorBody, status: Option<u16>) -> CallFault {
    // Some give the API's whole error as the message.
    let inner = told
        .message
        .as_deref()
        .and_then(|message| serde_json::from_str::<Value>(message).ok());
    let inner = inner
        .filter(|inner| !inner["error"].is_null())
        .map(|inner| ErrorBody::of(&inner));
    let told = inner.as_ref().unwrap_or(told);
    let complaint = if output.stderr.trim_ascii().is_empty() {
        output.stdout
    } else {
        output.stderr
    };
    let complaint = &complaint[complaint.len().saturating_sub(2_000)..];
    let message = told.message.clone().unwrap_or_else(|| beginning(complaint));
    let kind = match kind_of(status, &told.types, &message) {
        FaultKind::Status(500) if status.is_none() => {
            let said = message.to_lowercase();
            if NOT_LOGGED_IN.iter().any(|words| said.contains(words)) {
                FaultKind::Auth
            } else {
                FaultKind::ToolFailed
            }
        }
        kind => kind,
    };
    let ended = match output.ended {
        Ended::Code(code) => format!("exit code {code}"),
        Ended::Signal(signal) => format!("ended by signal {signal}"),
        Ended::TimedOut | Ended::Cancelled => "ended".to_owned(),
    };
    let is_missing = output.ended == Ended::Code(127);
    let code = told.types.first().cloned();
    CallFault {
        code: code.or_else(|| is_missing.then(|| NOT_FOUND.to_owned())),
        ..CallFault::new(kind, format!("{ended}: {message}"))
    }
}

/// Keeps what a failed tool printed: its output, or its complaints where it printed nothing.
fn keeping_raw(fault: CallFault, output: Output<'_>) -> CallFault {
    let raw = if output.stdout.is_empty() {
        output.stderr
    } else {
        output.stdout
    };
    fault.with_raw(raw.to_vec())
}
