//! Forms for answers: fields from the JSON Schema of an answer, and the answer from the fields.

use serde::Serialize;
use serde_json::{Map, Value};

/// A field of a form.
#[derive(Serialize)]
pub(super) struct FormField {
    /// The name in the form.
    name: String,
    /// The name of the property; empty for a whole answer.
    property: String,
    /// The description of the schema.
    about: String,
    kind: FieldKind,
    /// The values to choose from, with what a person reads.
    choices: Vec<(String, String)>,
    is_required: bool,
}

impl FormField {
    /// Returns the name in the form.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Returns true if this is the name in the form.
    pub(super) fn is_named(&self, name: &str) -> bool {
        self.name == name
    }
}

/// How a field is filled in.
#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum FieldKind {
    /// One of some values.
    Choice,
    Number,
    /// A line of text.
    Text,
    /// Any number of lines, for an answer that is no JSON.
    Lines,
    /// JSON.
    Json,
}

/// Returns the name in the form of a property of an answer. `question` is empty if the prompt is the question.
pub(super) fn name(question: &str, property: &str) -> String {
    format!("answer:{question}:{property}")
}

/// Returns the fields of an answer to a question, the required ones first. A property whose value has parts is written as JSON, and
/// so is an answer whose schema lists no properties.
pub(super) fn fields(schema: Option<&Value>, is_json: bool, question: &str) -> Vec<FormField> {
    let whole = |kind| FormField {
        name: name(question, ""),
        property: String::new(),
        about: String::new(),
        kind,
        choices: Vec::new(),
        is_required: false,
    };
    if !is_json {
        return vec![whole(FieldKind::Lines)];
    }
    let properties = schema.and_then(|schema| schema["properties"].as_object());
    let Some(properties) = properties.filter(|properties| !properties.is_empty()) else {
        return vec![whole(FieldKind::Json)];
    };
    let required = schema.and_then(|schema| schema["required"].as_array());
    let is_required = |property: &str| {
        let mut required = required.into_iter().flatten();
        required.any(|name| name.as_str() == Some(property))
    };
    // The page adds the id of the question.
    let properties = properties.iter();
    let properties = properties.filter(|(property, _)| question.is_empty() || *property != "id");
    let fields = properties.map(|(property, schema)| {
        let (kind, choices) = kind(schema);
        FormField {
            name: name(question, property),
            property: property.clone(),
            about: schema["description"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
            kind,
            choices,
            is_required: is_required(property),
        }
    });
    let mut fields: Vec<FormField> = fields.collect();
    fields.sort_by_key(|field| !field.is_required);
    fields
}

fn kind(schema: &Value) -> (FieldKind, Vec<(String, String)>) {
    let choice = |value: &Value| {
        let label = match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        (value.to_string(), label)
    };
    if let Some(values) = schema["enum"].as_array() {
        return (FieldKind::Choice, values.iter().map(choice).collect());
    }
    let types: Vec<&str> = match &schema["type"] {
        Value::String(one) => vec![one],
        Value::Array(many) => many.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let mut bare = types.iter().filter(|name| **name != "null");
    let kind = match (bare.next(), bare.next()) {
        (Some(&"string"), None) => FieldKind::Text,
        (Some(&("number" | "integer")), None) => FieldKind::Number,
        (Some(&"boolean"), None) => {
            let choices = [true, false].map(|value| choice(&Value::Bool(value)));
            return (FieldKind::Choice, choices.to_vec());
        }
        _ => FieldKind::Json,
    };
    (kind, Vec::new())
}

/// Returns the answer in a form, and the problems of its fields by their names. An empty field is left out: the schema tells whether
/// it may be missing.
pub(super) fn answer<'a>(
    fields: &[FormField],
    question: &str,
    filled: impl Fn(&str) -> Option<&'a str>,
) -> Result<Option<Value>, Vec<(String, String)>> {
    let (mut object, mut problems) = (Map::new(), Vec::new());
    for field in fields {
        let Some(text) = filled(&field.name) else {
            continue;
        };
        let value = match field.kind {
            FieldKind::Text | FieldKind::Lines => Ok(Value::from(text)),
            // The schema says what is expected instead.
            FieldKind::Number => Ok(serde_json::from_str(text).unwrap_or_else(|_| text.into())),
            FieldKind::Choice | FieldKind::Json => serde_json::from_str::<Value>(text),
        };
        match value {
            Ok(value) if field.property.is_empty() => match value {
                Value::Object(fields) if !question.is_empty() => object.extend(fields),
                other => return Ok(Some(other)),
            },
            Ok(value) => {
                object.insert(field.property.clone(), value);
            }
            Err(error) => problems.push((field.name.clone(), format!("expected JSON: {error}"))),
        }
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    if object.is_empty() {
        return Ok(None);
    }
    if !question.is_empty() {
        object.insert("id".to_owned(), Value::from(question));
    }
    Ok(Some(Value::Object(object)))
}
