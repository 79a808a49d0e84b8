//! The task of an agent step, resolved for one batch.

use super::handle::AgentHandle;
use crate::steps::batch_context::{BatchContext, input_failure};
use milepost_core::model::outcome::{Outcome, OutcomeKind};
use milepost_core::model::pipeline::Asset;
use milepost_core::model::stage::Program;
use milepost_core::model::step::{AnswerForm, Items, TemplateFile};
use milepost_store::check::schema::Schema;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The task of an agent step.
pub(crate) struct AgentTask<'a> {
    pub(crate) out: &'a str,
    /// True if it answers the questions that `split` wrote.
    pub(crate) questions: bool,
    /// The items that it sends one request for.
    pub(crate) each: Option<&'a Items>,
    pub(crate) answer: AnswerForm,
    /// Names whose files are attached.
    pub(crate) attach: &'a [String],
    /// Defaults for missing keys.
    pub(crate) defaults: &'a Map<String, Value>,
    pub(crate) agent: &'a str,
    pub(crate) prompt: &'a TemplateFile,
    /// The schema of one answer.
    pub(crate) schema: Option<&'a Asset>,
    /// Makes a record from an answer and an element.
    pub(crate) result: Option<&'a Program>,
    /// The names of the step's failures.
    pub(crate) errors: &'a BTreeMap<String, String>,
    /// The most requests for one question.
    pub(crate) attempts: u32,
    /// The time limit of one call.
    pub(crate) timeout: Duration,
}

impl AgentTask<'_> {
    /// Returns the agent, and the schema of one answer.
    pub(super) fn resolved(
        &self,
        ctx: &BatchContext<'_>,
    ) -> Result<(Arc<AgentHandle>, Option<Arc<Schema>>), Outcome> {
        let handle = ctx.agents.get(self.agent);
        let undeclared = || input_failure(self.agent, "this agent is not declared");
        let handle = handle.ok_or_else(undeclared)?;
        let schema = self.schema.map(|asset| ctx.schemas.get(asset));
        let schema = schema
            .transpose()
            .map_err(|error| Outcome::new(OutcomeKind::Schema, error.to_string()))?;
        Ok((Arc::clone(handle), schema))
    }
}
