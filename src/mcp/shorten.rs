//! Shortens results for agents: long lists, tables and texts are truncated, and each truncation is listed.

use milepost_core::expr::pointer;
use serde::Serialize;
use serde_json::{Map, Value, json};

/// The most items of a list.
const ITEMS: usize = 20;

/// The most entries of a table.
const ENTRIES: usize = 60;

/// The most characters of a text: its start and its end, in equal parts.
const CHARACTERS: usize = 4_000;

/// Lists that are never shortened.
const WHOLE: [&str; 2] = ["stages", "problems"];

/// A list, a table or a text that was shortened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub(super) struct Shortened {
    /// Place in the result, as a JSON pointer.
    pub(super) at: String,
    /// Number of items, entries or characters in the result.
    pub(super) shown: usize,
    /// Number of items, entries or characters in all.
    pub(super) of: usize,
}

/// Shortens the data. `cut` then lists what was shortened, and `whole` says where the complete data is.
pub(super) fn shorten_result(mut data: Map<String, Value>, whole: &str) -> Map<String, Value> {
    let mut cuts = Vec::new();
    shorten_entries(&mut data, &mut String::new(), &mut cuts);
    if !cuts.is_empty() {
        data.insert("cut".to_owned(), json!(cuts));
        data.insert("whole".to_owned(), whole.into());
    }
    data
}

fn shorten(value: &mut Value, name: &str, at: &mut String, cuts: &mut Vec<Shortened>) {
    match value {
        Value::Array(list) => {
            if list.len() > ITEMS && !WHOLE.contains(&name) {
                cuts.push(of(at, ITEMS, list.len()));
                list.truncate(ITEMS);
            }
            for (index, item) in list.iter_mut().enumerate() {
                let length = at.len();
                at.push_str(&format!("/{index}"));
                shorten(item, "", at, cuts);
                at.truncate(length);
            }
        }
        Value::Object(entries) => {
            if entries.len() > ENTRIES {
                cuts.push(of(at, ENTRIES, entries.len()));
                let beyond: Vec<String> = entries.keys().skip(ENTRIES).cloned().collect();
                for key in &beyond {
                    entries.shift_remove(key);
                }
            }
            shorten_entries(entries, at, cuts);
        }
        Value::String(text) => {
            let length = text.chars().count();
            if length > CHARACTERS {
                cuts.push(of(at, CHARACTERS, length));
                let half = CHARACTERS / 2;
                let beginning: String = text.chars().take(half).collect();
                let end: String = text.chars().skip(length - half).collect();
                *text = format!("{beginning}\n…\n{end}");
            }
        }
        _ => {}
    }
}

fn shorten_entries(entries: &mut Map<String, Value>, at: &mut String, cuts: &mut Vec<Shortened>) {
    for (key, value) in entries {
        let length = at.len();
        pointer::push(at, key);
        shorten(value, key, at, cuts);
        at.truncate(length);
    }
}

fn of(at: &str, shown: usize, of: usize) -> Shortened {
    Shortened {
        at: at.to_owned(),
        shown,
        of,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_data_is_shortened_and_listed() {
        let list: Vec<usize> = (0..50).collect();
        let stages: Vec<Value> = (0..30).map(|n| json!({"n": n, "will": list})).collect();
        let text = "é".repeat(5_000);
        let table: Map<String, Value> = (0..70).map(|n| (n.to_string(), n.into())).collect();
        let data = json!({"stages": stages, "a/b": text, "table": table, "few": [1, 2]});
        let found = shorten_result(data.as_object().unwrap().clone(), "`milepost plan --json`");
        assert_eq!(found["stages"].as_array().unwrap().len(), 30);
        assert_eq!(found["stages"][29]["will"].as_array().unwrap().len(), 20);
        assert_eq!(found["few"], json!([1, 2]));
        assert_eq!(found["a/b"].as_str().unwrap().chars().count(), 4_003);
        assert_eq!(found["table"].as_object().unwrap().len(), 60);
        let cuts = found["cut"].as_array().unwrap();
        assert_eq!(cuts.len(), 32);
        assert_eq!(
            cuts[29],
            json!({"at": "/stages/29/will", "shown": 20, "of": 50})
        );
        assert_eq!(cuts[30], json!({"at": "/a~1b", "shown": 4000, "of": 5000}));
        assert_eq!(cuts[31], json!({"at": "/table", "shown": 60, "of": 70}));
        assert_eq!(found["whole"], "`milepost plan --json`");
    }
}
