//! What of a reply answers which question, and what is wrong with the rest.

use crate::agents::request::Reply;
use crate::agents::salvage::{Salvaged, salvage};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// A reply, sorted.
#[derive(Debug, Default, PartialEq)]
pub struct Sorted {
    /// Valid answers, by the place of their question.
    pub answers: Vec<(usize, Value)>,
    /// What is wrong, a line each.
    pub violations: Vec<String>,
}

/// Sorts a reply to the questions with these ids. `violations` says what is wrong with an answer; `keeps_id` whether its `id` is
/// part of it.
pub fn sort(
    reply: &Reply,
    ids: &[&str],
    violations: &dyn Fn(&Value) -> Vec<String>,
    keeps_id: bool,
) -> Sorted {
    let mut sorted = Sorted::default();
    let value = match (&reply.structured, salvage(&reply.text)) {
        (Some(value), _) => value.clone(),
        (None, Salvaged::One { value, .. }) => value,
        (None, Salvaged::Several { first, count }) => {
            sorted.violations.push(format!(
                "{count} JSON values: one was expected, the first was read"
            ));
            first
        }
        (None, wrong) => {
            sorted.violations.push(match wrong {
                Salvaged::Cut => "the JSON does not end".to_owned(),
                Salvaged::Broken(why) => format!("the JSON is wrong: {why}"),
                _ => "there is no JSON in it".to_owned(),
            });
            return sorted;
        }
    };
    let Some(entries) = entries(&value, ids) else {
        sorted.violations.push(
            "a JSON array was expected, with an object for each question that has its `id`"
                .to_owned(),
        );
        return sorted;
    };
    let mut found: BTreeMap<usize, Vec<Value>> = BTreeMap::new();
    for (id, entry) in entries {
        let Some(id) = id else {
            let line = "an answer without `id`".to_owned();
            sorted.violations.push(line);
            continue;
        };
        match ids.iter().position(|known| *known == id) {
            Some(place) => found
                .entry(place)
                .or_default()
                .push(answer(entry, keeps_id)),
            None => sorted
                .violations
                .push(format!("{id}: there is no question with this id")),
        }
    }
    for (place, id) in ids.iter().enumerate() {
        let Some(mut answers) = found.remove(&place) else {
            sorted.violations.push(format!("{id}: no answer"));
            continue;
        };
        answers.dedup();
        if answers.len() > 1 {
            let line = format!("{id}: {} answers that differ", answers.len());
            sorted.violations.push(line);
            continue;
        }
        for answer in answers {
            let wrong = violations(&answer);
            if wrong.is_empty() {
                sorted.answers.push((place, answer));
            } else {
                let lines = wrong.into_iter().map(|line| format!("{id}: {line}"));
                sorted.violations.extend(lines);
            }
        }
    }
    sorted
}

/// The entries of a reply, each with the id of its question: an array, one under `answers` or as the only array of an object, or an
/// object whose keys are ids.
fn entries<'a>(value: &'a Value, ids: &[&str]) -> Option<Vec<(Option<String>, &'a Value)>> {
    let of_list = |list: &'a Vec<Value>| {
        let entries = list.iter();
        entries.map(|entry| (text(&entry["id"]), entry)).collect()
    };
    match value {
        Value::Array(list) => Some(of_list(list)),
        Value::Object(object) => {
            if object.keys().any(|key| ids.contains(&key.as_str())) {
                let entries = object.iter();
                return Some(
                    entries
                        .map(|(id, entry)| (Some(id.clone()), entry))
                        .collect(),
                );
            }
            let mut lists = object.values().filter_map(Value::as_array);
            match (lists.next(), lists.next()) {
                (Some(list), None) => Some(of_list(list)),
                // The answer to the only question, without a list around it.
                (None, _) if object.contains_key("id") => Some(vec![(text(&object["id"]), value)]),
                _ if ids.len() == 1 && object.contains_key("id") => {
                    Some(vec![(text(&object["id"]), value)])
                }
                _ => None,
            }
        }
        _ => None,
    }
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// What an entry answers, without the id that only tells to which question.
fn answer(entry: &Value, keeps_id: bool) -> Value {
    let Value::Object(object) = entry else {
        return entry.clone();
    };
    let is_wrapped = object.keys().all(|key| key == "id" || key == "answer");
    if let Some(answer) = object.get("answer").filter(|_| is_wrapped) {
        return answer.clone();
    }
    let kept: Map<String, Value> = object
        .iter()
        .filter(|(key, _)| keeps_id || key.as_str() != "id")
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    Value::Object(kept)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::request::Stop;
    use serde_json::json;

    fn sorted(text: &str) -> (Vec<(usize, Value)>, Vec<String>) {
        let reply = Reply {
            text: text.to_owned(),
            structured: None,
            stop: Stop::End,
            usage: crate::model::usage::Usage::default(),
            told_cost: None,
            asked_model: String::new(),
            served_model: None,
            request_id: None,
            raw: Vec::new(),
        };
        let wrong = |answer: &Value| match answer["n"].as_i64() {
            Some(_) => Vec::new(),
            None => vec!["/n: a number was expected".to_owned()],
        };
        let sorted = sort(&reply, &["q1", "q2"], &wrong, false);
        (sorted.answers, sorted.violations)
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
