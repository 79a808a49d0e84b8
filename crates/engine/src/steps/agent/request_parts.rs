//! A request in parts, for external agents and for plans.

use milepost_agents::request::{AgentRequest, Attachment};
use milepost_core::base::digest::Digest;
use serde_json::{Map, Value, json};

#[derive(Debug, Clone)]
pub(crate) struct RequestParts {
    /// The output of the step.
    pub(crate) out: String,
    /// The id, text and address of each question; empty if the prompt is the question.
    pub(crate) questions: Vec<(String, Value, Digest)>,
    /// The address of the answer if the prompt is the question.
    pub(crate) address: Option<Digest>,
    /// True if the schema of an answer declares `id`.
    pub(crate) keeps_id: bool,
    pub(crate) request: AgentRequest,
}

impl RequestParts {
    /// Returns the whole prompt.
    pub(crate) fn prompt(&self) -> String {
        let system = self.request.system.as_deref().unwrap_or_default();
        format!("{system}{}", self.request.prompt)
    }

    /// Returns the attached files.
    pub(crate) fn attachments(&self) -> &[Attachment] {
        &self.request.attachments
    }

    /// Returns the JSON Schema of the whole answer; for questions, of a list with an answer for each. `None` if the schema refers
    /// to other files or the answer is not JSON.
    pub(crate) fn schema(&self) -> Option<Value> {
        let schema = self.request.schema.clone()?;
        if self.questions.is_empty() {
            return Some(schema);
        }
        let Value::Object(mut whole) = schema else {
            return None;
        };
        let item = whole["properties"]["answers"]["items"].clone();
        let mut list = Map::new();
        let dialect = "https://json-schema.org/draft/2020-12/schema";
        list.insert("$schema".to_owned(), json!(dialect));
        list.insert("type".to_owned(), json!("array"));
        let count = self.questions.len();
        list.insert("minItems".to_owned(), json!(count));
        list.insert("maxItems".to_owned(), json!(count));
        list.insert("items".to_owned(), item);
        for key in ["$defs", "definitions"] {
            if let Some(definitions) = whole.remove(key) {
                list.insert(key.to_owned(), definitions);
            }
        }
        Some(Value::Object(list))
    }
}
