//! The output of a command line, and what all tools have in common.

use crate::fault::{CallFault, ErrorBody, FaultKind, beginning, kind_of};
use crate::request::Reply;
use serde_json::Value;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandExit {
    /// It exited with this code.
    Code(i32),
    /// A signal ended it.
    Signal(i32),
    /// It exceeded its time limit.
    TimedOut,
    /// The run was stopped.
    Cancelled,
}

#[derive(Debug, Clone, Copy)]
pub struct CommandOutput<'a> {
    /// How it ended.
    pub ended: CommandExit,
    /// The bytes of its standard output.
    pub stdout: &'a [u8],
    /// The bytes of its standard error.
    pub stderr: &'a [u8],
}

/// A reply that holds a text and nothing else.
pub(super) fn plain(text: String) -> Reply {
    Reply {
        text,
        ..Reply::default()
    }
}

/// A status among numbers and texts.
pub(super) fn status_of(value: &Value) -> Option<u16> {
    let number = value.as_u64().or_else(|| value.as_str()?.parse().ok())?;
    u16::try_from(number)
        .ok()
        .filter(|status| (100..600).contains(status))
}

/// The code of a fault whose program does not exist. A shell reports that by the exit code 127.
pub const NOT_FOUND: &str = "command_not_found";

/// Messages of tools without a login. They have no code.
const NOT_LOGGED_IN: [&str; 5] = [
    "invalid api key",
    "not logged in",
    "please log in",
    "/login",
    "unauthorized",
];

/// Returns the fault that a tool reported; without a report, the fault by its exit code and standard error.
pub(super) fn failed(
    output: CommandOutput<'_>,
    told: &ErrorBody,
    status: Option<u16>,
) -> CallFault {
    // Some tools print the API's whole error as the message.
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
        CommandExit::Code(code) => format!("exit code {code}"),
        CommandExit::Signal(signal) => format!("ended by signal {signal}"),
        CommandExit::TimedOut | CommandExit::Cancelled => "ended".to_owned(),
    };
    let is_missing = output.ended == CommandExit::Code(127);
    let code = told.types.first().cloned();
    CallFault {
        code: code.or_else(|| is_missing.then(|| NOT_FOUND.to_owned())),
        ..CallFault::new(kind, format!("{ended}: {message}"))
    }
}
