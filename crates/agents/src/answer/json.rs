//! Extracts the JSON value from an answer's text, out of a Markdown fence or prose.

use milepost_core::base::foreign_text::without_mark;
use milepost_core::expr::json;
use serde_json::Value;

/// The JSON found in an answer's text.
#[derive(Debug, Clone, PartialEq)]
pub enum ExtractedJson {
    One {
        value: Value,
        /// True if other text is around it or its Markdown fence.
        in_prose: bool,
    },
    /// This many values.
    Several(usize),
    /// A value that does not end, because the answer is truncated.
    Cut,
    /// A value with a syntax error: the message with its position.
    Broken(String),
    /// No JSON.
    Nothing,
}

/// The state of a JSON text that may be cut off.
#[derive(Default)]
struct Candidates {
    values: Vec<Value>,
    cut: bool,
    broken: Option<String>,
}

/// Returns the JSON value of a text, which is alone, in a Markdown fence or inside prose. There, objects win over lists without
/// objects, such as the `[1]` of a citation.
pub fn extract_json(text: &str) -> ExtractedJson {
    let text = without_mark(text.trim());
    if let Ok(value) = json::parse(unfenced(text)) {
        return ExtractedJson::One {
            value,
            in_prose: false,
        };
    }
    let mut found = Candidates::default();
    found.read(text);
    if found.cut {
        return ExtractedJson::Cut;
    }
    if found.values.iter().any(holds_object) {
        found.values.retain(holds_object);
    } else if found.broken.is_some() {
        found.values.clear();
    }
    match (found.values.len(), found.values.pop(), found.broken) {
        (1, Some(value), _) => ExtractedJson::One {
            value,
            in_prose: true,
        },
        (0, _, Some(why)) => ExtractedJson::Broken(why),
        (0, ..) => ExtractedJson::Nothing,
        (count, ..) => ExtractedJson::Several(count),
    }
}

impl Candidates {
    /// Reads every object and list in the text, one after another.
    fn read(&mut self, text: &str) {
        let mut at = 0;
        while let Some(start) = text[at..].find(['{', '[']).map(|found| at + found) {
            let rest = &text[start..];
            let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
            let value = values.next();
            let end = values.byte_offset();
            // serde_json accepts duplicate keys and rounds integers, so parse the text again strictly.
            match value.map(|value| value.and_then(|_| json::parse(&rest[..end]))) {
                Some(Ok(value)) => {
                    self.values.push(value);
                    at = start + end;
                }
                Some(Err(error)) if error.is_eof() => {
                    self.cut = true;
                    return;
                }
                // Brackets of prose are stepped into, what began as JSON is stepped over: its parts are not the answer.
                Some(Err(error)) if begins_json(rest) => {
                    self.broken.get_or_insert_with(|| error.to_string());
                    at = start + end_of(rest);
                }
                _ => at = start + 1,
            }
        }
    }
}

/// Returns true if a text that begins with a bracket continues as JSON.
fn begins_json(text: &str) -> bool {
    let mut chars = text.chars().filter(|c| !c.is_whitespace());
    match (chars.next(), chars.next()) {
        (Some('{'), next) => matches!(next, Some('"' | '}')),
        (_, next) => matches!(next, Some('{' | '[' | '"')),
    }
}

/// Returns the length up to the matching bracket, ignoring brackets in strings; the whole length if there is none.
fn end_of(text: &str) -> usize {
    let (mut depth, mut quoted, mut escaped) = (0_usize, false, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            '{' | '[' if !quoted => depth += 1,
            '}' | ']' if !quoted => {
                depth -= 1;
                if depth == 0 {
                    return at + 1;
                }
            }
            _ => {}
        }
    }
    text.len()
}

/// Returns the content of a text that is one Markdown fence, which may lack its end; any other text as it is.
fn unfenced(text: &str) -> &str {
    let Some(inside) = text.strip_prefix("```") else {
        return text;
    };
    let inside = inside.trim_start_matches(char::is_alphanumeric);
    inside.strip_suffix("```").unwrap_or(inside)
}

fn holds_object(value: &Value) -> bool {
    match value {
        Value::Object(_) => true,
        Value::Array(list) => {
            list.is_empty()
                || list
                    .iter()
                    .any(|value| value.is_object() || value.is_array())
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn one(value: Value, in_prose: bool) -> ExtractedJson {
        ExtractedJson::One { value, in_prose }
    }

    #[test]
    fn values_are_found_wherever_they_stand() {
        let a = json!({"a": [1, {"b": "}]"}]});
        let cases = [
            (r#" {"a":[1,{"b":"}]"}]} "#, one(a.clone(), false)),
            ("\u{feff}[]", one(json!([]), false)),
            ("42", one(json!(42), false)),
            (
                "Here it is:\n```json\n{\"a\":[1,{\"b\":\"}]\"}]}\n```\nAs [1] says.",
                one(a.clone(), true),
            ),
            (
                "I cannot tell. The format would be\n```json\n{\"points\":0}\n```",
                one(json!({"points": 0}), true),
            ),
            ("```JSON\r\n{\"x\":1}\r\n```\n", one(json!({"x": 1}), false)),
            ("```json\n{\"x\":1}", one(json!({"x": 1}), false)),
            ("```{\"x\":\"```\"}```", one(json!({"x": "```"}), false)),
            ("```\n[{\"x\":1}]\n```", one(json!([{"x": 1}]), false)),
            (
                "As [1] and {said} show, {\"a\":[1,{\"b\":\"}]\"}]} is it.",
                one(a.clone(), true),
            ),
            (
                "```sh\necho done\n```\n```json\n{\"x\":2}\n```",
                one(json!({"x": 2}), true),
            ),
            ("The numbers are [1, 2].", one(json!([1, 2]), true)),
        ];
        for (text, expected) in cases {
            assert_eq!(extract_json(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_told_apart() {
        let broken = |text: &str| matches!(extract_json(text), ExtractedJson::Broken(_));
        assert_eq!(extract_json(""), ExtractedJson::Nothing);
        assert_eq!(
            extract_json("I cannot classify these elements (see {note})."),
            ExtractedJson::Nothing
        );
        assert_eq!(
            extract_json(r#"{"answers":[{"id":"q1","code":"Ss_25"},{"id":"q2","#),
            ExtractedJson::Cut
        );
        assert_eq!(
            extract_json("```json\n{\"answers\":[{\"id\":\"q1\"},"),
            ExtractedJson::Cut
        );
        assert_eq!(
            extract_json(r#"As [1] says: {"answers":[{"id":"q1"},"#),
            ExtractedJson::Cut
        );
        // Nothing inside of a broken value is the answer.
        assert!(broken("{\"a\": \"line\nbreak\", \"b\": {\"c\": 1}}"));
        assert!(broken(r#"{"n": 1e999, "b": {"c": 1}}"#));
        assert!(broken(r#"{"n": NaN}"#));
        assert!(broken(&"[".repeat(200_000)));
        assert_eq!(extract_json(r#"{"a":1}, no: {"a":"#), ExtractedJson::Cut);
        // A fence makes no value of several the answer.
        for twice in [
            r#"{"a":1} or rather {"a":2}"#,
            "{\"a\":1} or rather\n```json\n{\"a\":2}\n```",
            "```json\n{\"a\":1}\n```\nor\n```json\n{\"a\":2}\n```",
            "```python\n{\"a\":1}\n```\nor\n```json\n{\"a\":2}\n```",
        ] {
            assert_eq!(extract_json(twice), ExtractedJson::Several(2));
        }
    }

    proptest::proptest! {
        /// A cut answer is never taken for a smaller whole one, and prose around a whole one does not hide it.
        #[test]
        fn no_part_of_an_object_is_the_answer(
            names in proptest::collection::vec("[a-zß\"\\\\{}\\[\\] ]{0,6}", 1..5),
            numbers in proptest::collection::vec(-1e9..1e9_f64, 1..5),
            share in 0.0..1.0_f64,
        ) {
            let inner: serde_json::Map<_, _> = names.iter().cloned().zip(numbers.iter().map(|n| json!([n, names]))).collect();
            let value = json!({"answers": [inner, {"code": "Ss_25"}], "none": null});
            let text = value.to_string();
            let cut = 1 + (share * (text.len() - 2) as f64) as usize;
            let end = (cut..text.len()).find(|at| text.is_char_boundary(*at)).unwrap();
            proptest::prop_assert_eq!(extract_json(&text[..end]), ExtractedJson::Cut);
            let around = format!("Sure! As [1] says:\n\n{text}\n\nI hope (that) helps.");
            proptest::prop_assert_eq!(extract_json(&around), one(value, true));
        }
    }
}
