//! A `summary` in words, for the text of a record.

use serde_json::Value;

/// The most entries of a list in the words.
const LISTED_NAMES: usize = 5;

/// Returns the counts, names and lists of a summary in words, such as `20 topics`, `status partial` and `no warnings`.
pub(crate) fn in_words(summary: &Value) -> Vec<String> {
    let fields = summary.as_object().into_iter().flatten();
    let fields = fields.map(|(key, value)| (key.replace('_', " "), value));
    let words = fields.filter_map(|(key, value)| match value {
        Value::Number(number) => Some(format!("{number} {key}")),
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
            Some(format!("{} {key}{names}", all.len()))
        }
        _ => None,
    });
    words.collect()
}
