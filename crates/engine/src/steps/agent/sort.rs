//! What of a reply answers which question, and what is wrong with the rest.

use milepost_agents::answer::json::{ExtractedJson, extract_json};
use milepost_agents::request::Reply;
use milepost_store::check::schema::Violation;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// A reply, sorted.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Sorted {
    /// Valid answers, by the place of their question.
    pub(crate) answers: Vec<(usize, Value)>,
    /// What is wrong.
    pub(crate) wrong: Vec<Wrong>,
}

/// One thing that is wrong with a reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wrong {
    /// What kind of thing.
    pub(crate) what: What,
    /// The id of the question that it is about; none: it is about the whole reply, or an answer without an id.
    pub(crate) id: Option<String>,
    /// JSON pointer into the reply; empty for the whole.
    pub(crate) pointer: String,
    /// What is wrong, in words.
    pub(crate) message: String,
}

/// What can be wrong with a reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum What {
    /// It is no JSON, or more than one value.
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

impl Wrong {
    fn whole(what: What, message: impl Into<String>) -> Self {
        Self {
            what,
            id: None,
            pointer: String::new(),
            message: message.into(),
        }
    }

    fn of(what: What, id: &str, pointer: &str, message: impl Into<String>) -> Self {
        Self {
            what,
            id: Some(id.to_owned()),
            pointer: pointer.to_owned(),
            message: message.into(),
        }
    }

    /// The same in a line, as a model is told it.
    pub(crate) fn line(&self) -> String {
        match &self.id {
            Some(id) => format!("{id}: {}", self.message),
            None => self.message.clone(),
        }
    }
}

impl Sorted {
    /// Returns the ids of answers to questions that were not asked.
    pub(crate) fn invented(&self) -> impl Iterator<Item = &str> {
        let wrong = self
            .wrong
            .iter()
            .filter(|wrong| wrong.what == What::Unknown);
        wrong.filter_map(|wrong| wrong.id.as_deref())
    }

    /// What is wrong, a line each.
    pub(crate) fn violations(&self) -> Vec<String> {
        self.wrong.iter().map(Wrong::line).collect()
    }
}

/// An answer in a reply.
struct Entry<'a> {
    id: Option<String>,
    /// Where it stands.
    pointer: String,
    value: &'a Value,
}

/// Sorts a reply to the questions with these ids. `violations` says what is wrong with an answer; `keeps_id` whether its `id` is
/// part of it; `once` that the same answer twice is wrong, too.
pub(crate) fn sort(
    reply: &Reply,
    ids: &[&str],
    violations: &dyn Fn(&Value) -> Vec<Violation>,
    keeps_id: bool,
    once: bool,
) -> Sorted {
    let mut sorted = Sorted::default();
    let value = match (&reply.structured, extract_json(&reply.text)) {
        (Some(value), _) => value.clone(),
        (None, ExtractedJson::One { value, .. }) => value,
        (None, ExtractedJson::Several { first, count }) => {
            let message = format!("{count} JSON values: one was expected, the first was read");
            sorted.wrong.push(Wrong::whole(What::Json, message));
            first
        }
        (None, wrong) => {
            let message = match wrong {
                ExtractedJson::Cut => "the JSON does not end".to_owned(),
                ExtractedJson::Broken(why) => format!("the JSON is wrong: {why}"),
                _ => "there is no JSON in it".to_owned(),
            };
            sorted.wrong.push(Wrong::whole(What::Json, message));
            return sorted;
        }
    };
    let Some(entries) = entries(&value, ids) else {
        let message =
            "a JSON array was expected, with an object for each question that has its `id`";
        sorted.wrong.push(Wrong::whole(What::Shape, message));
        return sorted;
    };
    let mut found: BTreeMap<usize, Vec<(String, Value)>> = BTreeMap::new();
    for Entry { id, pointer, value } in entries {
        let Some(id) = id else {
            let wrong = Wrong::whole(What::NoId, "an answer without `id`");
            sorted.wrong.push(Wrong { pointer, ..wrong });
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
                let wrong = Wrong::of(What::Unknown, &id, &pointer, message);
                sorted.wrong.push(wrong);
            }
        }
    }
    for (place, id) in ids.iter().enumerate() {
        let Some(mut answers) = found.remove(&place) else {
            let wrong = Wrong::of(What::Missing, id, "", "no answer");
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
            let wrong = Wrong::of(What::Doubled, id, pointer, message);
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
            let what = What::Schema(violation.keyword);
            sorted.wrong.push(Wrong::of(what, id, &pointer, message));
        }
    }
    sorted
}

/// The entries of a reply, each with the id of its question: an array, one under `answers` or as the only array of an object, or an
/// object whose keys are ids.
fn entries<'a>(value: &'a Value, ids: &[&str]) -> Option<Vec<Entry<'a>>> {
    let of_list = |list: &'a Vec<Value>, at: &str| {
        let entries = list.iter().enumerate();
        let entry = |(place, value): (usize, &'a Value)| Entry {
            id: text(&value["id"]),
            pointer: format!("{at}/{place}"),
            value,
        };
        entries.map(entry).collect()
    };
    let alone = |id: &'a Value| Entry {
        id: text(id),
        pointer: String::new(),
        value,
    };
    match value {
        Value::Array(list) => Some(of_list(list, "")),
        Value::Object(object) => {
            if object.keys().any(|key| ids.contains(&key.as_str())) {
                let entry = |(id, value): (&String, &'a Value)| Entry {
                    id: Some(id.clone()),
                    pointer: format!("/{}", escaped(id)),
                    value,
                };
                return Some(object.iter().map(entry).collect());
            }
            let mut lists = object
                .iter()
                .filter_map(|(key, value)| Some((key, value.as_array()?)));
            match (lists.next(), lists.next()) {
                (Some((key, list)), None) => Some(of_list(list, &format!("/{}", escaped(key)))),
                // The answer to the only question, without a list around it.
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

/// A key as it stands in a JSON pointer (RFC 6901).
fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// What an entry answers, without the id that only tells to which question; and where in the entry it stands.
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
            asked_model: String::new(),
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
        let sorted = sort(&reply, &["q1", "q2"], &wrong, false, false);
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
