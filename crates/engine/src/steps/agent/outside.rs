//! Answers of someone outside: what they are asked, in parts, and what of their answer is right.

use super::one::{self, kept};
use super::sort::{What, Wrong, sort};
use milepost_agents::request::{Attachment, Reply, Request, Stop};
use milepost_core::base::digest::Digest;
use milepost_core::model::step::AnswerForm;
use milepost_core::model::usage::Usage;
use milepost_store::check::schema::Schema;
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
    pub(crate) request: Request,
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

/// What an answer is judged by.
pub(crate) struct Terms<'a> {
    /// The ids of the questions; empty: the answer is one.
    pub(crate) ids: Vec<&'a str>,
    /// Of one answer.
    pub(crate) schema: Option<&'a Schema>,
    /// Whether `id` is part of what an answer must be.
    pub(crate) keeps_id: bool,
    /// The form of an answer.
    pub(crate) form: AnswerForm,
    /// Values for keys that an answer lacks.
    pub(crate) defaults: &'a Map<String, Value>,
}

/// An answer, judged.
#[derive(Debug, Default)]
pub(crate) struct Judged {
    /// What is right, by the place of its question, as it is kept.
    pub(crate) right: Vec<(usize, Value)>,
    /// What is wrong.
    pub(crate) wrong: Vec<Wrong>,
}

/// Judges what someone outside answered, given as a text.
pub(crate) fn judge(text: &str, terms: &Terms<'_>) -> Judged {
    let reply = reply(text);
    if terms.ids.is_empty() {
        return judge_one(&reply, terms);
    }
    let violations = |answer: &Value| {
        let schema = terms.schema;
        schema.map_or_else(Vec::new, |schema| schema.violations(answer, "", 20))
    };
    let sorted = sort(&reply, &terms.ids, &violations, terms.keeps_id, true);
    Judged {
        right: sorted.answers,
        wrong: sorted.wrong,
    }
}

fn judge_one(reply: &Reply, terms: &Terms<'_>) -> Judged {
    let whole = |what, message: String| Wrong {
        what,
        id: None,
        pointer: String::new(),
        message,
    };
    let read = one::read(reply, terms.form, terms.defaults);
    let (answer, warnings) = match read {
        Ok(read) => read,
        Err(why) => {
            return Judged {
                wrong: vec![whole(What::Json, why)],
                ..Judged::default()
            };
        }
    };
    let schema = terms.schema.filter(|_| terms.form != AnswerForm::Text);
    let found = schema.map_or_else(Vec::new, |schema| schema.violations(&answer, "", 20));
    if !found.is_empty() {
        let wrong = found.into_iter().map(|violation| Wrong {
            pointer: violation.pointer,
            ..whole(What::Schema(violation.keyword), violation.message)
        });
        return Judged {
            wrong: wrong.collect(),
            ..Judged::default()
        };
    }
    Judged {
        right: vec![(0, kept(&answer, &warnings, &one::Used::NOTHING))],
        wrong: Vec::new(),
    }
}

fn reply(text: &str) -> Reply {
    Reply {
        text: text.to_owned(),
        structured: serde_json::from_str(text).ok(),
        stop: Stop::End,
        usage: Usage::NONE,
        told_cost: None,
        asked_model: String::new(),
        served_model: None,
        request_id: None,
        raw: Vec::new(),
    }
}
