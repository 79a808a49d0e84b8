//! How an attempt ended: the full space, not just ok or error.

use crate::expr::scope::ScopeError;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The kinds of failure that `[errors]` can name.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum OutcomeKind {
    /// A `[[check]]` was not true.
    Check,
    /// Keys were lost, doubled or invented.
    Conserve,
    /// A program ended with another exit code than 0, or by a signal.
    Exit,
    /// An input is missing or could not be read.
    Input,
    /// A step could not make sense of its input, or an expression failed.
    Parse,
    /// A path left its folder.
    Path,
    /// A step did not write an output that is declared.
    Output,
    /// Something does not match its schema.
    Schema,
    /// It took too long.
    Timeout,
    /// The run was stopped.
    Cancelled,
}

impl OutcomeKind {
    /// The name in `[errors]` and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Check => "check",
            Self::Conserve => "conserve",
            Self::Exit => "exit",
            Self::Input => "input",
            Self::Parse => "parse",
            Self::Path => "path",
            Self::Output => "output",
            Self::Schema => "schema",
            Self::Timeout => "timeout",
            Self::Cancelled => "cancelled",
        }
    }

    /// Whether another try of the same step could end otherwise.
    pub fn is_worth_another_try(self) -> bool {
        !matches!(self, Self::Cancelled | Self::Path | Self::Input)
    }
}

/// How an attempt failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Outcome {
    /// The kind.
    pub kind: OutcomeKind,
    /// The declared name of the error, else the kind in capitals.
    pub code: String,
    /// One line for people.
    pub message: String,
    /// More lines: violations with their pointers, the end of a program's output.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<String>,
}

impl Outcome {
    /// An outcome that carries the kind's own name as code.
    pub fn new(kind: OutcomeKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            code: kind.name().to_uppercase(),
            message: message.into(),
            details: Vec::new(),
        }
    }

    /// The same with details.
    #[must_use]
    pub fn with_details(mut self, details: Vec<String>) -> Self {
        self.details = details;
        self
    }
}

impl From<ScopeError> for Outcome {
    fn from(error: ScopeError) -> Self {
        Self::new(OutcomeKind::Input, error.to_string())
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}
