//! The schemas of the arguments and results of tools, derived from the types in debug builds only.

use super::plain_values::widen;
use super::shorten::Shortened;
use super::tool_error::ToolError;
use milepost_engine::ops::schema::{read, written};
use schemars::JsonSchema;
use serde_json::{Map, Value, json};

/// Longer definitions, in bytes, are replaced by their description: `milepost schema` prints them.
const LONGEST: usize = 1_600;

/// Returns the schema of arguments.
pub(super) fn arguments<T: JsonSchema>() -> Map<String, Value> {
    let mut schema = object(read::<T>());
    tidy(&mut schema);
    widen(&mut schema);
    schema.entry("properties").or_insert_with(|| json!({}));
    schema.insert("additionalProperties".to_owned(), false.into());
    schema
}

/// Returns the schema of a result or an error.
pub(super) fn result<T: JsonSchema>() -> Map<String, Value> {
    let mut defs = Map::new();
    let mut result = part::<T>("Result", &mut defs);
    let also = json!({
        "success": {"type": "boolean", "description": "True if the tool succeeded"},
        "cut": {
            "type": "array",
            "items": {"$ref": "#/$defs/Cut"},
            "description": "The shortened fields; absent if there are none",
        },
        "whole": {"type": "string", "description": "The location of the complete data"},
    });
    let properties = result.entry("properties").or_insert_with(|| json!({}));
    if let (Some(properties), Value::Object(also)) = (properties.as_object_mut(), also) {
        for (name, schema) in also {
            properties.entry(name).or_insert(schema);
        }
    }
    let required = result.entry("required").or_insert_with(|| json!([]));
    if let Some(required) = required.as_array_mut()
        && !required.iter().any(|name| name == "success")
    {
        required.push("success".into());
    }
    let shortened = part::<Shortened>("Cut", &mut defs);
    let error = part::<ToolError>("Fault", &mut defs);
    for (name, schema) in [("Result", result), ("Fault", error), ("Cut", shortened)] {
        defs.insert(name.to_owned(), schema.into());
    }
    let schema = json!({
        "type": "object",
        "anyOf": [{"$ref": "#/$defs/Result"}, {"$ref": "#/$defs/Fault"}],
        "$defs": defs,
    });
    object(schema)
}

/// Returns the schema of a type, and adds the definitions it refers to.
fn part<T: JsonSchema>(name: &str, defs: &mut Map<String, Value>) -> Map<String, Value> {
    let mut schema = object(written::<T>());
    tidy(&mut schema);
    schema.insert("title".to_owned(), name.into());
    if let Some(Value::Object(own)) = schema.remove("$defs") {
        for (name, mut schema) in own {
            if schema.to_string().len() > LONGEST {
                let description = schema.get("description").cloned();
                schema = json!({"description": description.unwrap_or_default()});
            }
            defs.entry(name).or_insert(schema);
        }
    }
    schema
}

fn tidy(schema: &mut Map<String, Value>) {
    schema.shift_remove("$schema");
    schema.shift_remove("title");
}

fn object(schema: Value) -> Map<String, Value> {
    match schema {
        Value::Object(schema) => schema,
        _ => Map::new(),
    }
}
