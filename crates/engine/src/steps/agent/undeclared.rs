//! Warns of answer keys that the schema does not declare and `result` leaves out.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Schema keywords that allow more keys than `properties` lists.
const MORE: [&str; 10] = [
    "additionalProperties",
    "patternProperties",
    "unevaluatedProperties",
    "propertyNames",
    "$ref",
    "allOf",
    "anyOf",
    "oneOf",
    "if",
    "dependentSchemas",
];

/// Counts answer keys that the schema does not declare and `result` leaves out.
pub(crate) struct Undeclared<'a> {
    path: &'a str,
    /// The declared keys; `None` if the schema does not restrict them.
    declared: Option<BTreeSet<String>>,
    found: BTreeMap<String, u64>,
}

impl<'a> Undeclared<'a> {
    /// Starts to count; `text` is the schema of an answer, and `path` its file.
    pub(crate) fn of(path: &'a str, text: &str) -> Self {
        let schema: Option<Value> = serde_json::from_str(text).ok();
        let schema = schema.filter(|schema| MORE.iter().all(|key| schema.get(key).is_none()));
        let declared = schema.and_then(|schema| {
            let properties = schema.get("properties")?.as_object()?;
            Some(properties.keys().cloned().collect())
        });
        Self {
            path,
            declared,
            found: BTreeMap::new(),
        }
    }

    /// Counts the keys of an answer that its record, as JSON, lacks.
    ///
    /// # Errors
    /// When the record is not JSON.
    pub(crate) fn see(&mut self, answer: &Value, record: &str) -> Result<(), String> {
        let (Some(declared), Some(answer)) = (&self.declared, answer.as_object()) else {
            return Ok(());
        };
        let is_unknown = |key: &&String| *key != "id" && !declared.contains(*key);
        let mut unknown = answer.keys().filter(is_unknown).peekable();
        if unknown.peek().is_none() {
            return Ok(());
        }
        let record: Value = serde_json::from_str(record).map_err(|error| error.to_string())?;
        for key in unknown.filter(|key| record.get(key).is_none()) {
            *self.found.entry(key.clone()).or_default() += 1;
        }
        Ok(())
    }

    /// Returns a line for each key.
    pub(crate) fn warnings(self) -> impl Iterator<Item = String> {
        let path = self.path;
        self.found.into_iter().map(move |(key, count)| {
            let records = match count {
                1 => "1 record leaves".to_owned(),
                many => format!("{many} records leave"),
            };
            format!("{records} out `{key}` of the answer, a key that {path} does not declare")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn warnings(schema: &Value, answer: &Value, record: &Value) -> Vec<String> {
        let text = schema.to_string();
        let mut undeclared = Undeclared::of("a.json", &text);
        let mut see = |answer: &Value, record: &Value| {
            undeclared.see(answer, &record.to_string()).unwrap();
        };
        see(answer, record);
        see(&json!({"id": "q2", "word": "B"}), &json!({"word": "B"}));
        undeclared.warnings().collect()
    }

    #[test]
    fn a_key_that_nobody_declared_and_no_record_has_is_named() {
        let open = json!({"properties": {"word": {}}});
        let answer = json!({"id": "q1", "word": "A", "note": "rare", "why": "x"});
        let record = json!({"word": "A", "why": "x"});
        assert_eq!(
            warnings(&open, &answer, &record),
            ["1 record leaves out `note` of the answer, a key that a.json does not declare"]
        );
        let none: [&str; 0] = [];
        for schema in [
            json!({"properties": {"word": {}}, "additionalProperties": true}),
            json!({"properties": {"word": {}}, "allOf": [{"required": ["note"]}]}),
            json!({"required": ["word"]}),
            json!(true),
        ] {
            assert_eq!(warnings(&schema, &answer, &record), none, "{schema}");
        }
        assert_eq!(warnings(&open, &json!("A"), &json!("A")), none);
    }
}
