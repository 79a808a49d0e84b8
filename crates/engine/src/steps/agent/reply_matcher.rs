//! Matches the answers in a reply to their questions, and reports the errors.

use milepost_agents::answer::json::{ExtractedJson, extract_json};
use milepost_agents::answer::reasoning::without_reasoning;
use milepost_agents::request::Reply;
use milepost_core::expr::json::key_text;
use milepost_core::expr::pointer::below;
use milepost_store::check::schema::Violation;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// A reply whose answers are matched to questions.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct MatchedReply {
    /// Valid answers, with the positions of their questions.
    pub(crate) answers: Vec<(usize, Value)>,
    pub(crate) wrong: Vec<ReplyError>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReplyError {
    pub(crate) kind: ReplyErrorKind,
    /// The id of the question; `None` for the whole reply or an answer without an id.
    pub(crate) id: Option<String>,
    /// The JSON pointer into the reply; empty for the whole.
    pub(crate) pointer: String,
    pub(crate) message: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ReplyErrorKind {
    /// It is not JSON, or more than one value.
    Json,
    /// It is neither a list of answers nor an object of them.
    Shape,
    /// An answer has no id.
    NoId,
    /// There is no question with this id.
    Unknown,
    /// A question has no answer.
    Missing,
    /// A question has more than one answer.
    Doubled,
    /// An answer does not match its schema: the keyword that it breaks.
    Schema(String),
}

impl ReplyError {
    fn whole(kind: ReplyErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            id: None,
            pointer: String::new(),
            message: message.into(),
        }
    }

    fn of(kind: ReplyErrorKind, id: &str, pointer: &str, message: impl Into<String>) -> Self {
        Self {
            kind,
            id: Some(id.to_owned()),
            pointer: pointer.to_owned(),
            message: message.into(),
        }
    }

    /// Returns the error in one line, as it is sent to a model.
    pub(crate) fn line(&self) -> String {
        match &self.id {
            Some(id) => format!("{id}: {}", self.message),
            None => self.message.clone(),
        }
    }
}

impl MatchedReply {
    /// Returns the ids of answers without a question.
    pub(crate) fn invented(&self) -> impl Iterator<Item = &str> {
        let wrong = self
            .wrong
            .iter()
            .filter(|wrong| wrong.kind == ReplyErrorKind::Unknown);
        wrong.filter_map(|wrong| wrong.id.as_deref())
    }

    /// Returns the errors, one line each.
    pub(crate) fn violations(&self) -> Vec<String> {
        self.wrong.iter().map(ReplyError::line).collect()
    }
}

/// An answer in a reply.
struct ReplyEntry<'a> {
    id: Option<String>,
    /// The JSON pointer in the reply.
    pointer: String,
    value: &'a Value,
}

/// Matches a reply to the questions with these ids. `violations` validates an answer. With `keeps_id` the `id` is part of an
/// answer; with `once` even two equal answers are an error.
pub(crate) fn match_reply(
    reply: &Reply,
    ids: &[&str],
    violations: &dyn Fn(&Value) -> Vec<Violation>,
    keeps_id: bool,
    once: bool,
) -> MatchedReply {
    let mut sorted = MatchedReply::default();
    let value = match (
        &reply.structured,
        extract_json(without_reasoning(&reply.text)),
    ) {
        (Some(value), _) => value.clone(),
        (None, ExtractedJson::One { value, .. }) => value,
        (None, wrong) => {
            let message = match wrong {
                ExtractedJson::Several(count) => {
                    format!("{count} JSON values: one was expected")
                }
                ExtractedJson::Cut => "the JSON does not end".to_owned(),
                ExtractedJson::Broken(why) => format!("the JSON is wrong: {why}"),
                _ => "there is no JSON in it".to_owned(),
            };
            sorted
                .wrong
                .push(ReplyError::whole(ReplyErrorKind::Json, message));
            return sorted;
        }
    };
    let Some(entries) = entries(&value, ids) else {
        let message =
            "a JSON array was expected, with an object for each question that has its `id`";
        sorted
            .wrong
            .push(ReplyError::whole(ReplyErrorKind::Shape, message));
        return sorted;
    };
    let mut found: BTreeMap<usize, Vec<(String, Value)>> = BTreeMap::new();
    for ReplyEntry { id, pointer, value } in entries {
        let Some(id) = id else {
            let wrong = ReplyError::whole(ReplyErrorKind::NoId, "an answer without `id`");
            sorted.wrong.push(ReplyError { pointer, ..wrong });
            continue;
        };
        match ids.iter().position(|known| *known == id) {
            Some(place) => {
                let (inside, answer) = answer(value, keeps_id);
                let pointer = format!("{pointer}{inside}");
                found.entry(place).or_default().push((pointer, answer));
            }
            None => {
                let message = "there is no question with this id";
                let wrong = ReplyError::of(ReplyErrorKind::Unknown, &id, &pointer, message);
                sorted.wrong.push(wrong);
            }
        }
    }
    for (place, id) in ids.iter().enumerate() {
        let Some(mut answers) = found.remove(&place) else {
            let wrong = ReplyError::of(ReplyErrorKind::Missing, id, "", "no answer");
            sorted.wrong.push(wrong);
            continue;
        };
        let all = answers.len();
        answers.dedup_by(|a, b| a.1 == b.1);
        let [(pointer, answer), others @ ..] = answers.as_slice() else {
            continue;
        };
        if all > 1 && (once || !others.is_empty()) {
            let message = match others {
                [] => format!("{all} answers"),
                others => format!("{} answers that differ", others.len() + 1),
            };
            let pointer = others.last().map_or(pointer, |(pointer, _)| pointer);
            let wrong = ReplyError::of(ReplyErrorKind::Doubled, id, pointer, message);
            sorted.wrong.push(wrong);
            continue;
        }
        let wrong = violations(answer);
        if wrong.is_empty() {
            sorted.answers.push((place, answer.clone()));
            continue;
        }
        for violation in wrong {
            let message = violation.to_string();
            let pointer = format!("{pointer}{}", violation.pointer);
            let kind = ReplyErrorKind::Schema(violation.keyword);
            sorted
                .wrong
                .push(ReplyError::of(kind, id, &pointer, message));
        }
    }
    sorted
}

/// Returns the answers in a reply: the items of an array, of the only array in an object, or the values of an object whose keys
/// are ids.
fn entries<'a>(value: &'a Value, ids: &[&str]) -> Option<Vec<ReplyEntry<'a>>> {
    let of_list = |list: &'a Vec<Value>, at: &str| {
        let entries = list.iter().enumerate();
        let entry = |(place, value): (usize, &'a Value)| ReplyEntry {
            id: key_text(&value["id"]),
            pointer: format!("{at}/{place}"),
            value,
        };
        entries.map(entry).collect()
    };
    let alone = |id: &'a Value| ReplyEntry {
        id: key_text(id),
        pointer: String::new(),
        value,
    };
    match value {
        Value::Array(list) => Some(of_list(list, "")),
        Value::Object(object) => {
            if object.keys().any(|key| ids.contains(&key.as_str())) {
                let entry = |(id, value): (&String, &'a Value)| ReplyEntry {
                    id: Some(id.clone()),
                    pointer: below("", id),
                    value,
                };
                return Some(object.iter().map(entry).collect());
            }
            let mut lists = object
                .iter()
                .filter_map(|(key, value)| Some((key, value.as_array()?)));
            match (lists.next(), lists.next()) {
                (Some((key, list)), None) => Some(of_list(list, &below("", key))),
                // The answer to the only question, without a list.
                (None, _) if object.contains_key("id") => Some(vec![alone(&object["id"])]),
                _ if ids.len() == 1 && object.contains_key("id") => {
                    Some(vec![alone(&object["id"])])
                }
                _ => None,
            }
        }
        _ => None,
    }
}

/// Returns the answer in an entry without the question's id, and its pointer in the entry.
fn answer(entry: &Value, keeps_id: bool) -> (&'static str, Value) {
    let Value::Object(object) = entry else {
        return ("", entry.clone());
    };
    let is_wrapped = object.keys().all(|key| key == "id" || key == "answer");
    if let Some(answer) = object.get("answer").filter(|_| is_wrapped) {
        return ("/answer", answer.clone());
    }
    let kept: Map<String, Value> = object
        .iter()
        .filter(|(key, _)| keeps_id || key.as_str() != "id")
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    ("", Value::Object(kept))
}

#[cfg(test)]
mod tests {
    use super::*;
    use milepost_agents::request::StopReason;
    use serde_json::json;

    fn sorted(text: &str) -> (Vec<(usize, Value)>, Vec<String>) {
        let reply = Reply {
            text: text.to_owned(),
            structured: None,
            stop: StopReason::End,
            usage: milepost_core::model::usage::Usage::default(),
            reported_cost: None,
            served_model: None,
            request_id: None,
            raw: Vec::new(),
        };
        let wrong = |answer: &Value| match answer["n"].as_i64() {
            Some(_) => Vec::new(),
            None => vec![Violation {
                pointer: "/n".to_owned(),
                keyword: "type".to_owned(),
                message: "a number was expected".to_owned(),
                value_excerpt: String::new(),
            }],
        };
        let sorted = match_reply(&reply, &["q1", "q2"], &wrong, false, false);
        let violations = sorted.violations();
        (sorted.answers, violations)
    }

    #[test]
    fn whole_replies_in_every_form() {
        let whole = (vec![(0, json!({"n": 1})), (1, json!({"n": 2}))], vec![]);
        for text in [
            r#"[{"id": "q1", "n": 1}, {"id": "q2", "n": 2}]"#,
            r#"[{"id": "q2", "n": 2}, {"id": "q1", "n": 1}]"#,
            r#"{"answers": [{"id": "q1", "n": 1}, {"id": "q2", "n": 2}]}"#,
            r#"{"answers": [{"id": "q1", "answer": {"n": 1}}, {"id": "q2", "answer": {"n": 2}}]}"#,
            r#"{"q1": {"n": 1}, "q2": {"n": 2}}"#,
            r#"<think>[{"id": "q1", "n": 9}]</think>[{"id": "q1", "n": 1}, {"id": "q2", "n": 2}]"#,
            "Here you are:\n```json\n[{\"id\": \"q1\", \"n\": 1}, {\"id\": \"q2\", \"n\": 2}]\n```\nAnything else?",
            r#"[{"id": "q1", "n": 1}, {"id": "q1", "n": 1}, {"id": "q2", "n": 2}]"#,
        ] {
            assert_eq!(sorted(text), whole, "{text}");
        }
    }

    #[test]
    fn what_is_lost_invented_doubled_or_wrong_is_told() {
        let first = || vec![(0, json!({"n": 1}))];
        let lines = |lines: &[&str]| lines.iter().map(ToString::to_string).collect::<Vec<_>>();
        for (text, answers, told) in [
            (
                r#"[{"id": "q1", "n": 1}]"#,
                first(),
                lines(&["q2: no answer"]),
            ),
            (
                r#"[{"id": "q1", "n": 1}, {"id": "q9", "n": 2}]"#,
                first(),
                lines(&["q9: there is no question with this id", "q2: no answer"]),
            ),
            (
                r#"[{"id": "q1", "n": 1}, {"id": "q2", "n": 2}, {"id": "q2", "n": 3}]"#,
                first(),
                lines(&["q2: 2 answers that differ"]),
            ),
            (
                r#"[{"id": "q1", "n": 1}, {"id": "q2", "n": "two"}]"#,
                first(),
                lines(&["q2: /n: a number was expected"]),
            ),
            (
                r#"[{"id": "q1", "n": 1}, {"n": 2}]"#,
                first(),
                lines(&["an answer without `id`", "q2: no answer"]),
            ),
            (
                r#"[{"id": "q1", "n": 1}, {"id": "q"#,
                vec![],
                lines(&["the JSON does not end"]),
            ),
            (
                "[{\"id\": \"q1\", \"n\": 9}], no:\n```json\n[{\"id\": \"q1\", \"n\": 1}]\n```",
                vec![],
                lines(&["2 JSON values: one was expected"]),
            ),
            (
                "I cannot do that.",
                vec![],
                lines(&["there is no JSON in it"]),
            ),
            (
                "7",
                vec![],
                lines(&[
                    "a JSON array was expected, with an object for each question that has its `id`",
                ]),
            ),
        ] {
            assert_eq!(sorted(text), (answers, told), "{text}");
        }
    }
}
