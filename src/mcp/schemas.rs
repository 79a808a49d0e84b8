//! The schemas of a tool's arguments and results, from the types: debug builds only.

use super::cut::Cut;
use super::fault::Fault;
use milepost_engine::ops::schema::{read, written};
use schemars::JsonSchema;
use serde_json::{Map, Value, json};

/// A definition longer than this is told by its description only: `milepost schema` has the whole.
const LONGEST: usize = 1_600;

/// The schema of arguments.
pub(super) fn arguments<T: JsonSchema>() -> Map<String, Value> {
    let mut schema = object(read::<T>());
    tidy(&mut schema);
    schema.entry("properties").or_insert_with(|| json!({}));
    schema.insert("additionalProperties".to_owned(), false.into());
    schema
}

/// The schema of a result: what a tool gives, or a fault.
pub(super) fn result<T: JsonSchema>() -> Map<String, Value> {
    let mut defs = Map::new();
    let mut result = part::<T>("Result", &mut defs);
    let also = json!({
        "success": {"type": "boolean", "description": "Whether what was asked for is done"},
        "cut": {
            "type": "array",
            "items": {"$ref": "#/$defs/Cut"},
            "description": "What is not given whole; absent: nothing",
        },
        "whole": {"type": "string", "description": "Where the whole is"},
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
    let cut = part::<Cut>("Cut", &mut defs);
    let fault = part::<Fault>("Fault", &mut defs);
    for (name, schema) in [("Result", result), ("Fault", fault), ("Cut", cut)] {
        defs.insert(name.to_owned(), schema.into());
    }
    let schema = json!({
        "type": "object",
        "anyOf": [{"$ref": "#/$defs/Result"}, {"$ref": "#/$defs/Fault"}],
        "$defs": defs,
    });
    object(schema)
}

/// The schema of a type, with what it refers to put among `defs`.
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
