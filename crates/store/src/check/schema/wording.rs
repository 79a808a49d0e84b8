//! Messages for people about violations.

use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use jsonschema::{JsonType, ValidationError};
use serde_json::{Value, json};

use milepost_core::expr::place::excerpt;

/// Characters of a value that are shown.
const SHOWN: usize = 120;

/// Returns the number of a text with a decimal comma, if the pattern accepts it with a decimal point.
fn with_point(pattern: &str, value: &Value) -> Option<String> {
    let text = value.as_str().filter(|text| text.contains(','))?;
    let number = text.replace(',', ".");
    number.parse::<f64>().ok()?;
    jsonschema::is_valid(&json!({ "pattern": pattern }), &json!(number)).then_some(number)
}

/// Returns the beginning of a value.
pub(crate) fn shown(value: &Value) -> String {
    excerpt(&value.to_string(), SHOWN)
}

/// Returns what was expected and what was found; `base` is the pointer of the validated value in its document.
#[expect(clippy::too_many_lines)]
pub(crate) fn message(error: &ValidationError<'_>, base: &str) -> String {
    let pointer = format!("{base}{}", error.instance_path());
    let last = pointer.rsplit('/').next().unwrap_or_default();
    // The noun in messages: an item of a list is an element.
    let what = if !last.is_empty() && last.bytes().all(|byte| byte.is_ascii_digit()) {
        "element"
    } else {
        "object"
    };
    let value = excerpt(&error.instance().to_string(), 60);
    match error.kind() {
        Kind::Required { property } => format!("Missing {} in {what}", plain(property)),
        Kind::Not { schema } => match forbidden(schema, error.instance()).as_slice() {
            [] => format!(
                "{value} matches a forbidden schema: {}",
                excerpt(&schema.to_string(), SHOWN)
            ),
            // Of anything but an object `required` says nothing, and so its negation is broken.
            _ if !error.instance().is_object() => format!("{value}, an object was expected"),
            [one] => format!("{one} is not allowed here"),
            many => format!("{} are not allowed together here", many.join(" and ")),
        },
        Kind::FalseSchema => format!("{} is not allowed here", unescaped(last)),
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            let verb = if unexpected.len() == 1 { "is" } else { "are" };
            format!(
                "{} {verb} not allowed here",
                excerpt(&unexpected.join(", "), SHOWN)
            )
        }
        Kind::Enum { options } => {
            let options: Vec<String> = match &**options {
                Value::Array(options) => options.iter().map(ToString::to_string).collect(),
                other => vec![other.to_string()],
            };
            let shown = options
                .iter()
                .take(12)
                .cloned()
                .collect::<Vec<_>>()
                .join(", ");
            let more = match options.len().saturating_sub(12) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            format!("{value} is not one of {}{more}", excerpt(&shown, 300))
        }
        Kind::Constant { expected_value } => format!(
            "{value} is not {}",
            excerpt(&expected_value.to_string(), SHOWN)
        ),
        Kind::Type { kind } => {
            let wanted: Vec<&str> = match kind {
                TypeKind::Single(one) => vec![noun(*one)],
                TypeKind::Multiple(set) => set.iter().map(noun).collect(),
            };
            let found = match error.instance().as_ref() {
                Value::Number(number) if number.is_f64() => "a number with a fraction",
                other => noun(JsonType::from(other)),
            };
            match error.instance().as_ref() {
                Value::Null => format!("null, {} was expected", wanted.join(" or ")),
                Value::Array(_) | Value::Object(_) => {
                    format!("{found}, {} was expected", wanted.join(" or "))
                }
                _ => format!("{value} is {found}, {} was expected", wanted.join(" or ")),
            }
        }
        Kind::Minimum { limit } => format!("{value} is less than {limit}"),
        Kind::Maximum { limit } => format!("{value} is more than {limit}"),
        Kind::ExclusiveMinimum { limit } => format!("{value} is not more than {limit}"),
        Kind::ExclusiveMaximum { limit } => format!("{value} is not less than {limit}"),
        Kind::MultipleOf { multiple_of } => format!("{value} is not a multiple of {multiple_of}"),
        Kind::MinLength { limit: 1 } => "an empty text, and it must not be empty".to_owned(),
        Kind::MinLength { limit } => format!("{value} is shorter than {limit} characters"),
        Kind::MaxLength { limit } => format!("{value} is longer than {limit} characters"),
        Kind::MinItems { limit } | Kind::MinProperties { limit } => {
            format!("{}, at least {limit} are needed", count(error.instance()))
        }
        Kind::MaxItems { limit } | Kind::MaxProperties { limit } => {
            format!("{}, at most {limit} are allowed", count(error.instance()))
        }
        Kind::AdditionalItems { limit } => {
            let limit = *limit as u64;
            format!("{}, at most {limit} are allowed", count(error.instance()))
        }
        Kind::UniqueItems => "two items are equal".to_owned(),
        Kind::Pattern { pattern } => {
            let hint = with_point(pattern, error.instance());
            let hint = hint.map_or_else(String::new, |number| format!(": write {number}"));
            format!("{value} does not match {}{hint}", excerpt(pattern, SHOWN))
        }
        Kind::Format { format } => format!("{value} is not a {format}"),
        Kind::PropertyNames { error } => format!("a key is not allowed: {}", message(error, "")),
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => {
            // The form that was most likely meant: the one with the fewest faults, met deepest inside.
            let nearest = context
                .iter()
                .filter(|faults| !faults.is_empty())
                .min_by_key(|faults| {
                    let depth = faults
                        .iter()
                        .map(|fault| fault.instance_path().as_str().matches('/').count())
                        .max();
                    let of_type = faults.iter().any(|fault| {
                        matches!(fault.kind(), Kind::Type { .. })
                            && fault.instance_path().as_str().is_empty()
                    });
                    (of_type, faults.len(), std::cmp::Reverse(depth))
                })
                .and_then(|faults| faults.first());
            match nearest {
                Some(fault) => {
                    let at = fault.instance_path();
                    let at = if at.as_str().is_empty() {
                        String::new()
                    } else {
                        format!("{at}: ")
                    };
                    format!(
                        "it matches none of the {} allowed schemas; of the nearest, {at}{}",
                        context.len(),
                        message(fault, &pointer)
                    )
                }
                None => "it matches no allowed schema".to_owned(),
            }
        }
        Kind::OneOfMultipleValid { .. } => {
            "it matches more than one schema where exactly one is allowed".to_owned()
        }
        _ => excerpt(&error.to_string(), 300),
    }
}

/// Returns the keys that `not: {required: […]}` forbids, or `not: {anyOf: [{required: […]}, …]}`: of those the ones that are there.
/// None if it says something else.
fn forbidden<'a>(schema: &'a Value, instance: &Value) -> Vec<&'a str> {
    let required = |schema: &'a Value| -> Option<Vec<&'a str>> {
        let only = schema
            .as_object()?
            .keys()
            .all(|key| matches!(key.as_str(), "required" | "type"));
        let names = schema
            .get("required")?
            .as_array()?
            .iter()
            .filter_map(Value::as_str);
        only.then(|| names.collect())
    };
    let Some(Value::Array(forms)) = schema.get("anyOf") else {
        return required(schema).unwrap_or_default();
    };
    forms
        .iter()
        .filter_map(required)
        .find(|names| names.iter().all(|name| instance.get(name).is_some()))
        .unwrap_or_default()
}

fn plain(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

fn unescaped(token: &str) -> String {
    token.replace("~1", "/").replace("~0", "~")
}

fn count(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("there are {} items", items.len()),
        Value::Object(map) => format!("there are {} keys", map.len()),
        other => other.to_string(),
    }
}

fn noun(kind: JsonType) -> &'static str {
    match kind {
        JsonType::Null => "null",
        JsonType::Boolean => "a boolean",
        JsonType::Integer => "a whole number",
        JsonType::Number => "a number",
        JsonType::String => "a string",
        JsonType::Array => "a list",
        JsonType::Object => "an object",
    }
}
