//! What an agent step asks, as its declaration gives it for a batch.

use milepost_core::model::pipeline::Asset;
use milepost_core::model::stage::Program;
use milepost_core::model::step::{AnswerForm, TemplateFile};
use serde_json::{Map, Value};
use std::time::Duration;

/// An agent step, as it is declared.
pub(crate) struct Asking<'a> {
    /// The output that it makes.
    pub(crate) out: &'a str,
    /// Whether it asks what `split` wrote.
    pub(crate) questions: bool,
    /// The form of an answer.
    pub(crate) answer: AnswerForm,
    /// Names whose files are sent along.
    pub(crate) attach: &'a [String],
    /// Values for keys that an answer lacks.
    pub(crate) defaults: &'a Map<String, Value>,
    /// The agent's name.
    pub(crate) agent: &'a str,
    /// What it is asked.
    pub(crate) prompt: &'a TemplateFile,
    /// Of one answer.
    pub(crate) schema: Option<&'a Asset>,
    /// Makes the record of answer and element.
    pub(crate) result: Option<&'a Program>,
    /// Requests for one question, at most.
    pub(crate) attempts: u32,
    /// One call.
    pub(crate) timeout: Duration,
}
