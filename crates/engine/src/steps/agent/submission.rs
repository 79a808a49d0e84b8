//! Answers of external agents, checked by the ids of their questions and the schema.

use super::reply_matcher::{ReplyError, ReplyErrorKind, match_reply};
use super::single_answer::{self, kept};
use milepost_agents::request::Reply;
use milepost_core::expr::json;
use milepost_core::model::step::AnswerForm;
use milepost_store::check::schema::Schema;
use serde_json::{Map, Value};

/// The rules that an answer is checked by.
pub(crate) struct SubmissionRules<'a> {
    /// The ids of the questions; empty if there is a single answer.
    pub(crate) ids: Vec<&'a str>,
    /// The schema of one answer.
    pub(crate) schema: Option<&'a Schema>,
    /// True if the schema of an answer declares `id`.
    pub(crate) keeps_id: bool,
    pub(crate) form: AnswerForm,
    /// Defaults for missing keys.
    pub(crate) defaults: &'a Map<String, Value>,
}

#[derive(Debug, Default)]
pub(crate) struct CheckedSubmission {
    /// Valid answers as they are kept, with the positions of their questions.
    pub(crate) right: Vec<(usize, Value)>,
    pub(crate) wrong: Vec<ReplyError>,
}

/// Checks the answer of an external agent.
pub(crate) fn check_submission(text: &str, rules: &SubmissionRules<'_>) -> CheckedSubmission {
    let reply = reply(text);
    if rules.ids.is_empty() {
        return check_single(&reply, rules);
    }
    let violations = |answer: &Value| {
        let schema = rules.schema;
        schema.map_or_else(Vec::new, |schema| schema.violations(answer, "", 20))
    };
    let matched = match_reply(&reply, &rules.ids, &violations, rules.keeps_id, true);
    CheckedSubmission {
        right: matched.answers,
        wrong: matched.wrong,
    }
}

fn check_single(reply: &Reply, rules: &SubmissionRules<'_>) -> CheckedSubmission {
    let whole = |kind, message: String| ReplyError {
        kind,
        id: None,
        pointer: String::new(),
        message,
    };
    let read = single_answer::read(
        &reply.text,
        reply.structured.as_ref(),
        rules.form,
        rules.defaults,
        rules.schema.is_some(),
    );
    let (answer, warnings) = match read {
        Ok(read) => read,
        Err(why) => {
            return CheckedSubmission {
                wrong: vec![whole(ReplyErrorKind::Json, why)],
                ..CheckedSubmission::default()
            };
        }
    };
    let schema = rules.schema.filter(|_| rules.form != AnswerForm::Text);
    let found = schema.map_or_else(Vec::new, |schema| schema.violations(&answer, "", 20));
    if !found.is_empty() {
        let wrong = found.into_iter().map(|violation| ReplyError {
            pointer: violation.pointer,
            ..whole(ReplyErrorKind::Schema(violation.keyword), violation.message)
        });
        return CheckedSubmission {
            wrong: wrong.collect(),
            ..CheckedSubmission::default()
        };
    }
    CheckedSubmission {
        right: vec![(
            0,
            kept(
                reply,
                &answer,
                &warnings,
                &single_answer::RequestUsage::NOTHING,
            ),
        )],
        wrong: Vec::new(),
    }
}

fn reply(text: &str) -> Reply {
    Reply {
        text: text.to_owned(),
        structured: json::parse(text).ok(),
        ..Reply::default()
    }
}
