//! A `summary` in words, for the text of a record.

use serde_json::Value;
use std::collections::BTreeMap;

/// The most entries of a list in the words.
const LISTED_NAMES: usize = 5;

/// Returns summaries in words, each after `; ` and its name; leaves out those without words.
pub(crate) fn all_in_words(summaries: &BTreeMap<String, Value>) -> String {
    let words = summaries
        .iter()
        .map(|(of, summary)| (of, in_words(summary)));
    words
        .filter(|(_, words)| !words.is_empty())
        .map(|(of, words)| format!("; {of}: {}", words.join(", ")))
        .collect()
}

/// Returns the counts, names and lists of a summary in words, such as `20 topics`, `status partial` and `no warnings`.
pub(crate) fn in_words(summary: &Value) -> Vec<String> {
    let fields = summary.as_object().into_iter().flatten();
    let fields = fields.map(|(key, value)| (key.replace('_', " "), value));
    let words = fields.filter_map(|(key, value)| match value {
        Value::Number(number) => Some(format!("{number} {}", noun(&key, number.as_u64()))),
        Value::String(text) => Some(format!("{key} {text}")),
        Value::Array(all) if all.is_empty() => Some(format!("no {key}")),
        Value::Array(all) => {
            let names: Vec<&str> = all
                .iter()
                .filter_map(Value::as_str)
                .take(LISTED_NAMES)
                .collect();
            let more = if all.len() > names.len() && !names.is_empty() {
                "; …"
            } else {
                ""
            };
            let names = match names.join("; ") {
                names if names.is_empty() => names,
                names => format!(" ({names}{more})"),
            };
            let noun = noun(&key, Some(all.len() as u64));
            Some(format!("{} {noun}{names}", all.len()))
        }
        _ => None,
    });
    words.collect()
}

/// Returns the key as the noun of a count: of one, without the `s` of its plural.
fn noun(key: &str, count: Option<u64>) -> &str {
    let one = key.strip_suffix('s').filter(|one| !one.ends_with('s'));
    one.filter(|_| count == Some(1)).unwrap_or(key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn counts_names_and_lists_are_words() {
        let summary = json!({
            "result_type": "approved_plan", "revisions": 1, "topics": 20, "class": 1, "done": true,
            "warnings": [], "flags": ["a"], "courses": ["a", "b", "c", "d", "e", "f"], "rows": [1, 2]
        });
        assert_eq!(
            in_words(&summary),
            [
                "result type approved_plan",
                "1 revision",
                "20 topics",
                "1 class",
                "no warnings",
                "1 flag (a)",
                "6 courses (a; b; c; d; e; …)",
                "2 rows",
            ]
        );
        assert_eq!(in_words(&json!(3)), Vec::<String>::new());
    }
}
