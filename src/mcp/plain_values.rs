//! Arguments of another JSON type whose meaning is plain: the published schemas list these types, and a call takes them.

use serde_json::{Map, Number, Value, json};

/// Adds the types that a call takes besides the first one of each argument.
#[cfg(debug_assertions)]
pub(super) fn widen(schema: &mut Map<String, Value>) {
    let Some(Value::Object(arguments)) = schema.get_mut("properties") else {
        return;
    };
    for argument in arguments.values_mut() {
        let more: &[&str] = match types(argument).first() {
            Some(&"array") if takes_numbers(&argument["items"]) => &["string", "number"],
            Some(&"array" | &"integer") => &["string"],
            _ => continue,
        };
        let mut all: Vec<String> = types(argument).into_iter().map(str::to_owned).collect();
        all.splice(1..1, more.iter().map(ToString::to_string));
        argument["type"] = json!(all);
    }
}

/// Converts the arguments of a call to the first type that the schema lists for each.
pub(super) fn convert(
    arguments: Map<String, Value>,
    schema: &Map<String, Value>,
) -> Map<String, Value> {
    let properties = schema.get("properties");
    let known = |name: &str| properties.and_then(|known| known.get(name));
    let converted = arguments.into_iter().map(|(name, value)| {
        let value = match known(&name) {
            Some(schema) => converted(value, schema),
            None => value,
        };
        (name, value)
    });
    converted.collect()
}

fn converted(value: Value, schema: &Value) -> Value {
    match (types(schema).first(), value) {
        (Some(&"array"), Value::Array(items)) => {
            let items = items.into_iter();
            let items = items.map(|item| converted(item, &schema["items"]));
            items.collect()
        }
        (Some(&"array"), item @ (Value::String(_) | Value::Number(_))) => {
            json!([converted(item, &schema["items"])])
        }
        (Some(&"integer"), Value::String(text)) => match text.trim().parse::<i64>() {
            Ok(number) => number.into(),
            Err(_) => text.into(),
        },
        (Some(&"integer"), Value::Number(number)) => whole(&number).into(),
        (Some(&"string"), Value::Number(number)) if takes_numbers(schema) => {
            // Without an exponent, and without decimals that are zero.
            match number.as_f64().filter(|_| number.is_f64()) {
                Some(number) => number.to_string().into(),
                None => number.to_string().into(),
            }
        }
        (_, value) => value,
    }
}

/// Returns the number without decimals, if they are zero: `3.0` is 3.
fn whole(number: &Number) -> Number {
    let text = number.to_string();
    let digits = text.strip_suffix(".0").unwrap_or(&text);
    digits
        .parse::<i64>()
        .map_or_else(|_| number.clone(), Number::from)
}

fn takes_numbers(schema: &Value) -> bool {
    types(schema).contains(&"number")
}

/// Returns the types that a schema lists.
fn types(schema: &Value) -> Vec<&str> {
    match &schema["type"] {
        Value::String(one) => vec![one],
        Value::Array(all) => all.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(value: Value) -> Map<String, Value> {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn values_whose_meaning_is_plain_are_converted() {
        let mut schema = object(json!({"properties": {
            "limit": {"type": ["integer", "null"]},
            "names": {"type": "array", "items": {"type": "string"}},
            "stages": {"type": "array", "items": {"type": ["string", "number"]}},
            "money": {"type": ["string", "number", "null"]},
            "name": {"type": "string"},
            "any": {},
        }}));
        widen(&mut schema);
        let published = &schema["properties"];
        assert_eq!(
            published["limit"]["type"],
            json!(["integer", "string", "null"])
        );
        assert_eq!(published["names"]["type"], json!(["array", "string"]));
        assert_eq!(
            published["stages"]["type"],
            json!(["array", "string", "number"])
        );
        assert_eq!(published["name"]["type"], "string");
        for (name, given, meant) in [
            ("limit", json!("3"), json!(3)),
            ("limit", json!(3.0), json!(3)),
            ("limit", json!(3.5), json!(3.5)),
            ("limit", json!("many"), json!("many")),
            ("limit", json!(null), json!(null)),
            ("names", json!("rate"), json!(["rate"])),
            ("names", json!(3), json!([3])),
            ("stages", json!(3), json!(["3"])),
            ("stages", json!([3, "rate"]), json!(["3", "rate"])),
            ("money", json!(2.5), json!("2.5")),
            ("money", json!(2), json!("2")),
            ("money", json!(1e-7), json!("0.0000001")),
            ("stages", json!([1.0]), json!(["1"])),
            ("stages", json!(1.5), json!(["1.5"])),
            ("name", json!(7), json!(7)),
            ("any", json!("7"), json!("7")),
            ("unknown", json!("7"), json!("7")),
        ] {
            let given = object(json!({ name: given }));
            assert_eq!(convert(given, &schema)[name], meant, "{name}");
        }
    }
}
