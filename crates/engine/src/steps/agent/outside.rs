//! Answers of external agents, checked by the ids of their questions and the schema.

use super::one::{self, kept};
use super::sort::{What, Wrong, sort};
use milepost_agents::request::{Reply, StopReason};
use milepost_core::model::step::AnswerForm;
use milepost_core::model::usage::Usage;
use milepost_store::check::schema::Schema;
use serde_json::{Map, Value};

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
        stop: StopReason::End,
        usage: Usage::NONE,
        reported_cost: None,
        asked_model: String::new(),
        served_model: None,
        request_id: None,
        raw: Vec::new(),
    }
}
