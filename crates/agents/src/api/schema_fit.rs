//! Reduces a JSON Schema to the keywords that a provider accepts for structured output. Answers are validated against the full
//! schema later.

use serde_json::{Map, Value, json};

/// Whose rules a schema is fitted to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SchemaDialect {
    /// Anthropic's `output_config.format`.
    Anthropic,
    /// OpenAI's strict `json_schema`: every property required.
    OpenAi,
}

/// Keywords that are kept as they are.
const KEPT: [&str; 7] = [
    "type",
    "enum",
    "const",
    "description",
    "title",
    "$ref",
    "required",
];

/// Keywords that say nothing about values.
const SILENT: [&str; 6] = [
    "$schema",
    "$id",
    "$comment",
    "examples",
    "deprecated",
    "default",
];

/// Formats that both providers know.
const FORMATS: [&str; 8] = [
    "date-time",
    "time",
    "date",
    "duration",
    "email",
    "hostname",
    "ipv4",
    "uuid",
];

/// Returns the schema in the provider's dialect; unsupported keywords become text in the description. `None` if the shape itself
/// cannot be expressed: then the prompt must contain the schema.
pub(crate) fn fit(schema: &Value, rules: SchemaDialect) -> Option<Value> {
    let map = schema.as_object()?;
    // Both take an object at the top only.
    if map.get("type") != Some(&json!("object")) || is_recursive(schema) {
        return None;
    }
    part(schema, rules)
}

fn part(schema: &Value, rules: SchemaDialect) -> Option<Value> {
    let Value::Object(map) = schema else {
        // `true` allows everything, which no provider takes.
        return None;
    };
    let mut fitted = Map::new();
    let mut words = Vec::new();
    for (key, value) in map {
        match key.as_str() {
            key if KEPT.contains(&key) => {
                fitted.insert(key.to_owned(), value.clone());
            }
            key if SILENT.contains(&key) => {}
            "properties" | "$defs" | "definitions" => {
                let parts = value.as_object()?.iter();
                let parts = parts.map(|(name, value)| Some((name.clone(), part(value, rules)?)));
                fitted.insert(key.clone(), Value::Object(parts.collect::<Option<_>>()?));
            }
            "items" => {
                fitted.insert(key.clone(), part(value, rules)?);
            }
            "anyOf" | "oneOf" => {
                let parts = value.as_array()?.iter().map(|value| part(value, rules));
                fitted.insert(
                    "anyOf".to_owned(),
                    Value::Array(parts.collect::<Option<_>>()?),
                );
            }
            "format"
                if value
                    .as_str()
                    .is_some_and(|format| FORMATS.contains(&format)) =>
            {
                fitted.insert(key.clone(), value.clone());
            }
            // An open object is none that they can make.
            "additionalProperties" if value != &json!(false) => return None,
            "additionalProperties" => {}
            "patternProperties" | "prefixItems" | "allOf" | "if" | "not" | "dependentSchemas" => {
                return None;
            }
            "minItems"
                if rules == SchemaDialect::Anthropic && matches!(value.as_u64(), Some(0 | 1)) =>
            {
                fitted.insert(key.clone(), value.clone());
            }
            _ => words.push(format!("{key}: {value}")),
        }
    }
    if fitted.contains_key("properties") || names_object(fitted.get("type")) {
        let properties = fitted.get("properties").and_then(Value::as_object)?;
        let required = fitted.get("required").and_then(Value::as_array);
        let is_required =
            |name: &String| required.is_some_and(|names| names.contains(&json!(name)));
        if rules == SchemaDialect::OpenAi && !properties.keys().all(is_required) {
            return None;
        }
        fitted.insert("additionalProperties".to_owned(), json!(false));
    }
    // Strict mode wants nothing beside a reference.
    if rules == SchemaDialect::OpenAi && fitted.contains_key("$ref") {
        fitted.retain(|key, _| key == "$ref");
    } else if !words.is_empty() {
        let before = fitted
            .get("description")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let said = format!("{before} ({})", words.join(", "));
        fitted.insert("description".to_owned(), json!(said.trim_start()));
    }
    (!fitted.is_empty()).then_some(Value::Object(fitted))
}

fn names_object(kind: Option<&Value>) -> bool {
    match kind {
        Some(Value::Array(kinds)) => kinds.contains(&json!("object")),
        kind => kind == Some(&json!("object")),
    }
}

/// Returns true if a definition refers to itself, or a reference leaves the definitions.
fn is_recursive(schema: &Value) -> bool {
    fn reaches(root: &Value, value: &Value, open: &mut Vec<String>) -> bool {
        match value {
            Value::Object(map) => map.iter().any(|(key, value)| match (key.as_str(), value) {
                ("$ref", Value::String(to)) => {
                    let Some(target) = to
                        .strip_prefix('#')
                        .and_then(|pointer| root.pointer(pointer))
                    else {
                        return true;
                    };
                    if to == "#" || open.contains(to) {
                        return true;
                    }
                    open.push(to.clone());
                    let found = reaches(root, target, open);
                    open.pop();
                    found
                }
                // A definition is followed from where it is used.
                ("$defs" | "definitions", _) => false,
                (_, value) => reaches(root, value, open),
            }),
            Value::Array(list) => list.iter().any(|value| reaches(root, value, open)),
            _ => false,
        }
    }
    reaches(schema, schema, &mut Vec::new())
}

/// Instruction about the form of the answer, for models without structured output.
pub(crate) fn schema_instruction(schema: &Value) -> String {
    format!(
        "Answer with JSON only: no Markdown fence, no words before or after it. It must be valid against this JSON Schema:\n{schema}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers() -> Value {
        json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "required": ["answers"],
            "properties": {"answers": {"type": "array", "minItems": 3, "items": {"$ref": "#/$defs/answer"}}},
            "$defs": {"answer": {
                "type": "object",
                "required": ["code", "confidence"],
                "properties": {
                    "code": {"type": "string", "pattern": "^Ss_", "description": "A code"},
                    "confidence": {"type": "number", "minimum": 0, "maximum": 1}
                }
            }}
        })
    }

    #[test]
    fn what_is_refused_is_said_in_words() {
        let expected = json!({
            "type": "object",
            "required": ["answers"],
            "properties": {"answers": {
                "type": "array", "items": {"$ref": "#/$defs/answer"}, "description": "(minItems: 3)"
            }},
            "$defs": {"answer": {
                "type": "object",
                "required": ["code", "confidence"],
                "properties": {
                    "code": {"type": "string", "description": "A code (pattern: \"^Ss_\")"},
                    "confidence": {"type": "number", "description": "(minimum: 0, maximum: 1)"}
                },
                "additionalProperties": false
            }},
            "additionalProperties": false
        });
        assert_eq!(
            fit(&answers(), SchemaDialect::Anthropic),
            Some(expected.clone())
        );
        assert_eq!(fit(&answers(), SchemaDialect::OpenAi), Some(expected));
    }

    #[test]
    fn strict_wants_every_property() {
        let mut schema = answers();
        schema["$defs"]["answer"]["required"] = json!(["code"]);
        assert!(fit(&schema, SchemaDialect::Anthropic).is_some());
        assert_eq!(fit(&schema, SchemaDialect::OpenAi), None);
    }

    #[test]
    fn shapes_that_cannot_be_said() {
        let object =
            |inner: Value| json!({"type": "object", "required": ["a"], "properties": {"a": inner}});
        let cases = [
            json!({"type": "array", "items": {"type": "string"}}),
            json!({"type": "object"}),
            object(json!(true)),
            object(json!({})),
            object(json!({"type": "object", "additionalProperties": {"type": "string"}})),
            object(json!({"$ref": "#"})),
            object(json!({"$ref": "https://example.com/other.json"})),
            object(json!({"allOf": [{"type": "string"}]})),
        ];
        for schema in cases {
            assert_eq!(fit(&schema, SchemaDialect::Anthropic), None, "{schema}");
        }
    }
}
