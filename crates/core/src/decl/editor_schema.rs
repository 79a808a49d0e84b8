//! JSON Schemas of declarations for editors, generated from the keys of the language.

use crate::decl::keys::{self, KeySpec, Need, TableSpec, ValueKind};
use crate::expr::scope::CellType;
use serde_json::{Map, Value, json};

/// Schema of `milepost.toml`.
pub fn project_schema() -> Value {
    document(
        "milepost.toml",
        "A Milepost project: parameters, environment and agents.",
        &keys::PROJECT,
    )
}

/// Schema of `stages/N_name.toml`.
pub fn stage_schema() -> Value {
    document(
        "stages/N_name.toml",
        "A stage of a Milepost project.",
        &keys::STAGE,
    )
}

fn document(title: &str, description: &str, table: &'static TableSpec) -> Value {
    let mut schema = Map::new();
    schema.insert(
        "$schema".to_owned(),
        "https://json-schema.org/draft/2020-12/schema".into(),
    );
    schema.insert("title".to_owned(), title.into());
    schema.insert("description".to_owned(), description.into());
    if let Value::Object(rest) = of_table(table) {
        schema.extend(rest);
    }
    Value::Object(schema)
}

fn of_table(table: &'static TableSpec) -> Value {
    let mut schema = Map::new();
    schema.insert("type".to_owned(), "object".into());
    let properties: Map<String, Value> = table
        .keys
        .iter()
        .map(|key| (key.name.to_owned(), of_key(key)))
        .collect();
    schema.insert("properties".to_owned(), properties.into());
    schema.insert("additionalProperties".to_owned(), false.into());
    let required: Vec<&str> = table
        .keys
        .iter()
        .filter(|key| key.need == Need::Required)
        .map(|key| key.name)
        .collect();
    if !required.is_empty() {
        schema.insert("required".to_owned(), required.into());
    }
    let whats: Vec<Value> = table
        .whats()
        .map(|what| json!({ "required": [what] }))
        .collect();
    if !whats.is_empty() {
        schema.insert("oneOf".to_owned(), whats.into());
    }
    let beside = beside(table);
    if !beside.is_empty() {
        schema.insert("dependentRequired".to_owned(), beside.into());
    }
    Value::Object(schema)
}

/// Returns the keys that require each other: `prompt` with `agent`, and `agent` with `prompt`.
fn beside(table: &'static TableSpec) -> Map<String, Value> {
    let mut beside: Map<String, Value> = Map::new();
    let mut add = |key: &str, other: &str| {
        let list = beside
            .entry(key)
            .or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(list) = list {
            list.push(other.into());
        }
    };
    for key in table.keys {
        match key.need {
            Need::RequiredBeside(what) => {
                add(what, key.name);
                add(key.name, what);
            }
            Need::Beside([what]) => add(key.name, what),
            _ => {}
        }
    }
    beside
}

fn of_key(key: &KeySpec) -> Value {
    let mut schema = of_kind(key.kind);
    let mut description = key.doc.to_owned();
    if !key.default.is_empty() {
        description.push_str(" Default: ");
        description.push_str(key.default);
        description.push('.');
    }
    if let Value::Object(map) = &mut schema {
        map.insert("description".to_owned(), description.into());
    }
    schema
}

fn of_kind(kind: ValueKind) -> Value {
    let text = json!({ "type": "string", "minLength": 1 });
    let template = json!({ "type": "string", "pattern": "\\{\\{" });
    let count = json!({ "type": "integer", "minimum": 1 });
    match kind {
        ValueKind::Choice(words) => json!({ "enum": words }),
        ValueKind::Text
        | ValueKind::Plain
        | ValueKind::Name
        | ValueKind::Path
        | ValueKind::Place
        | ValueKind::FileName
        | ValueKind::Folder
        | ValueKind::File
        | ValueKind::Jq
        | ValueKind::Select => text,
        ValueKind::FileOrFalse => json!({ "anyOf": [text, { "const": false }] }),
        ValueKind::Duration => {
            json!({ "type": "string", "pattern": "\\{\\{|^\\s*([0-9.]+(ms|s|m|min|h|d)\\s*)+$" })
        }
        ValueKind::Size => {
            json!({ "type": "string", "pattern": "^\\s*[0-9]+\\s*([KMGT]i?)?B\\s*$" })
        }
        ValueKind::Count => json!({ "anyOf": [count, template] }),
        ValueKind::Integer => count,
        ValueKind::Number => json!({ "type": "number", "minimum": 0 }),
        ValueKind::CountOrShare => {
            json!({ "anyOf": [{ "type": "integer", "minimum": 0 }, { "type": "number", "minimum": 0, "maximum": 1 }] })
        }
        ValueKind::Bool => json!({ "type": "boolean" }),
        ValueKind::True => json!({ "const": true }),
        ValueKind::Concurrency => {
            let names = json!({ "type": "object", "minProperties": 1, "maxProperties": 1,
                "additionalProperties": { "anyOf": [count, template] } });
            json!({ "anyOf": [count, template, names] })
        }
        ValueKind::Command => {
            json!({ "anyOf": [text, { "type": "array", "minItems": 1, "items": { "type": "string" } }] })
        }
        ValueKind::Names => {
            json!({ "type": "array", "minItems": 1, "items": { "type": "string" } })
        }
        ValueKind::Values => json!({ "type": "array" }),
        ValueKind::Any => json!({}),
        ValueKind::AnyNumber => json!({ "type": "number" }),
        ValueKind::Table(table) => of_table(table),
        ValueKind::Named(table) => {
            let item = of_table(table);
            let item = if table.short.is_some() {
                json!({ "anyOf": [text, item] })
            } else {
                item
            };
            json!({ "type": "object", "propertyNames": { "pattern": NAME }, "additionalProperties": item })
        }
        ValueKind::Free => json!({ "type": "object" }),
        ValueKind::Strings => {
            json!({ "type": "object", "additionalProperties": { "type": "string" } })
        }
        ValueKind::Items => {
            json!({ "type": "object", "minProperties": 1, "maxProperties": 1, "propertyNames": { "pattern": NAME }, "additionalProperties": text })
        }
        ValueKind::Columns => {
            let types = CellType::NAMES.iter();
            let types: Vec<String> = types
                .flat_map(|name| [(*name).to_owned(), format!("{name}?")])
                .collect();
            json!({ "type": "object", "minProperties": 1, "additionalProperties": { "enum": types } })
        }
        ValueKind::Outcomes => {
            let names: Map<String, Value> = keys::OUTCOMES
                .iter()
                .map(|&name| (name.to_owned(), json!({ "type": "string" })))
                .collect();
            json!({ "type": "object", "properties": names, "additionalProperties": false })
        }
        ValueKind::Params => {
            let file = of_table(&keys::PARAM_FILE);
            let declared = of_table(&keys::PARAM);
            let keys = ["file", "base", "type", "default"].map(|key| json!({ "required": [key] }));
            let value = json!({ "not": { "type": "object", "anyOf": keys } });
            json!({ "type": "object", "propertyNames": { "pattern": NAME }, "additionalProperties": { "anyOf": [file, declared, value] } })
        }
        ValueKind::OneOrMany(table) => {
            let one = of_table(table);
            json!({ "anyOf": [one, { "type": "array", "minItems": 1, "items": one }] })
        }
        ValueKind::Many(table) => {
            json!({ "type": "array", "minItems": 1, "items": of_table(table) })
        }
    }
}

/// Names that expressions can use.
const NAME: &str = "^[A-Za-z_][A-Za-z0-9_]*$";
