//! A request in parts: what an external agent is asked, and what a plan shows.

use milepost_agents::request::{AgentRequest, Attachment};
use milepost_core::base::digest::Digest;
use serde_json::{Map, Value, json};

/// A request in parts.
#[derive(Debug, Clone)]
pub(crate) struct Parts {
    /// The output that its step makes.
    pub(crate) out: String,
    /// Its questions: id, question, and the address of the answer. None: the prompt is the question.
    pub(crate) questions: Vec<(String, Value, Digest)>,
    /// The address of the answer, where the prompt is the question.
    pub(crate) address: Option<Digest>,
    /// Whether `id` is part of what an answer must be.
    pub(crate) keeps_id: bool,
    /// The request.
    pub(crate) request: AgentRequest,
}

impl Parts {
    /// What is asked, as one text.
    pub(crate) fn prompt(&self) -> String {
        let system = self.request.system.as_deref().unwrap_or_default();
        format!("{system}{}", self.request.prompt)
    }

    /// Files that are sent along.
    pub(crate) fn attachments(&self) -> &[Attachment] {
        &self.request.attachments
    }

    /// The JSON Schema of the whole answer: of questions a list with an answer for each. None where that of one answer refers to other
    /// files, or the answer is no JSON.
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
