//! The template engine as every template has it: its filters and how values are written.

use std::borrow::Cow;
use std::path::Path;
use std::sync::OnceLock;

use minijinja::filters;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{ArgType, Kwargs, StringInput, Value};
use minijinja::{AutoEscape, Environment, Error, ErrorKind, Output, State, UndefinedBehavior};

use super::limits::{self, Bounded};
use super::parts::{FILE_MESSAGE, as_file, is_file, json, plain};

/// The widest indentation.
const WIDEST: usize = 200;

/// The most parts of `slice`, and the most items of a part of `batch`: as many as `range` counts.
const MOST: usize = 100_000;

/// An engine that writes texts.
pub(crate) fn texts() -> Environment<'static> {
    static BASE: OnceLock<Environment<'static>> = OnceLock::new();
    BASE.get_or_init(|| {
        let mut env = Environment::new();
        env.set_undefined_behavior(UndefinedBehavior::Strict);
        env.set_auto_escape_callback(|_| AutoEscape::None);
        env.set_formatter(write_text);
        env.set_debug(true);
        if let Ok(syntax) = SyntaxConfig::builder().keep_trailing_newline(true).build() {
            env.set_syntax(syntax);
        }
        env.add_filter("stem", stem);
        env.add_filter("tojson", tojson);
        env.add_filter("fixed", fixed);
        env.add_filter("urlencode", urlencode);
        env.add_filter("as_file", as_file);
        env.add_filter("join", join);
        env.add_filter("string", string);
        env.add_filter("indent", indent);
        env.add_filter("slice", slice);
        env.add_filter("batch", batch);
        env.add_filter("pprint", |value: &Value| json(value, Some(4)));
        env.add_filter(limits::CONCATENATED, concatenated);
        limits::limit(&mut env, text);
        env
    })
    .clone()
}

/// Makes an engine write each value as a component of a path, as `write` returns it.
pub(crate) fn write_components(env: &mut Environment<'static>, write: fn(&str) -> String) {
    env.set_formatter(move |out, _, value| {
        if value.is_undefined() {
            return Ok(());
        }
        let text = plain(value).ok_or_else(|| {
            let what = if value.is_none() {
                "null"
            } else {
                "a list or an object"
            };
            Error::new(
                ErrorKind::InvalidOperation,
                format!("{what} cannot be a part of a path"),
            )
        })?;
        Ok(out.write_str(&write(&text))?)
    });
}

/// A JSON value as the engine's.
pub(crate) fn of_json(value: &serde_json::Value) -> Value {
    use serde_json::Value as Json;
    match value {
        Json::Null => Value::from(()),
        Json::Bool(flag) => Value::from(*flag),
        Json::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(integer), _) => Value::from(integer),
            (None, Some(integer)) => Value::from(integer),
            (None, None) => Value::from(number.as_f64()),
        },
        Json::String(text) => Value::from(text),
        Json::Array(items) => Value::from(items.iter().map(of_json).collect::<Vec<_>>()),
        Json::Object(map) => {
            Value::from_pairs(map.iter().map(|(key, value)| (key.clone(), of_json(value))))
        }
    }
}

/// Writes a value in a text.
fn write_text(out: &mut Output<'_>, _: &mut State<'_, '_>, value: &Value) -> Result<(), Error> {
    let text = text(value)?;
    limits::take(text.len())?;
    Ok(out.write_str(&text)?)
}

/// Returns a value as it is written in a text: strings as they are, null as nothing, all else as JSON.
fn text(value: &Value) -> Result<Cow<'_, str>, Error> {
    if let Some(text) = value.as_str() {
        return Ok(text.into());
    }
    if is_file(value) {
        return Err(Error::new(ErrorKind::InvalidOperation, FILE_MESSAGE));
    }
    if value.is_undefined() || value.is_none() {
        return Ok("".into());
    }
    json(value, None).map(Cow::Owned)
}

/// Checks an operand of `~`, and returns it as `{{ }}` writes it.
fn concatenated(value: &Value) -> Result<Value, Error> {
    if value.is_undefined() {
        return Ok(value.clone());
    }
    let text = text(value)?;
    limits::check_length(text.len())?;
    Ok(Value::from(text))
}

/// The engine's `string`, with the text that `{{ }}` writes.
fn string(value: &Value) -> Result<String, Error> {
    text(value).map(Cow::into_owned)
}

/// The engine's `join`, with the texts that `{{ }}` writes.
fn join(
    state: &mut State<'_, '_>,
    value: Value,
    joiner: Option<StringInput<'_>>,
    attribute: Option<&str>,
    named: Kwargs,
) -> Result<String, Error> {
    let joiner = joiner.or(named.get("d")?);
    let attribute = attribute.or(named.get("attribute")?);
    named.assert_all_used()?;
    let items = match attribute {
        Some(name) => {
            let named = Kwargs::from_iter([("attribute", Value::from(name))]);
            state.apply_filter("map", &[value, named.into()])?
        }
        None => value,
    };
    let iter = items.try_iter().map_err(|error| {
        let message = format!("cannot join value of type {}", items.kind());
        Error::new(ErrorKind::InvalidOperation, message).with_source(error)
    })?;
    let mut joined = Bounded::value();
    for (number, item) in iter.enumerate() {
        if number > 0 {
            joined.push(joiner.as_ref().map_or("", StringInput::as_str))?;
        }
        joined.push(&text(&item)?)?;
    }
    joined.take()
}

/// `{{ "inputs/a.b.ifc" | stem }}` is `a.b`: the file's name without folder and ending.
fn stem(path: &Value) -> Result<String, Error> {
    let path = text(path)?;
    let stem = Path::new(&*path).file_stem().unwrap_or_default();
    Ok(stem.to_string_lossy().into_owned())
}

/// JSON, not escaped for HTML; `indent` is a number of spaces.
fn tojson(value: &Value, indent: Option<usize>, named: Kwargs) -> Result<String, Error> {
    let indent = indent.or(named.get::<Option<usize>>("indent")?);
    named.assert_all_used()?;
    json(value, indent)
}

/// A number with this many decimals, without separators of thousands.
fn fixed(value: f64, decimals: usize) -> String {
    format!("{value:.*}", decimals.min(17))
}

/// One part of a URL, escaped.
fn urlencode(value: &Value) -> Result<String, Error> {
    one_part(value).map(|text| percent_encoded(&text))
}

/// Returns the text of a value that can be a part of a URL.
pub(super) fn one_part(value: &Value) -> Result<String, Error> {
    plain(value).ok_or_else(|| {
        let message = "only text, numbers and booleans can be a part of a URL";
        Error::new(ErrorKind::InvalidOperation, message)
    })
}

/// Writes all but letters, digits and `-._~` as `%` and two digits (RFC 3986, section 2.3).
pub(super) fn percent_encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(byte.into());
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

/// The engine's `indent`, whose width may come from an input.
fn indent(
    value: &Value,
    width: Option<usize>,
    first: Option<bool>,
    blank: Option<bool>,
    named: Kwargs,
) -> Result<Value, Error> {
    let width = width.or(named.get::<Option<usize>>("width")?);
    at_most(width.unwrap_or_default(), WIDEST)?;
    let text = Value::from(text(value)?);
    filters::indent(
        <StringInput<'_> as ArgType<'_>>::from_value(Some(&text))?,
        width,
        first,
        blank,
        named,
    )
}

/// The engine's `slice`, whose count may come from an input.
fn slice(
    state: &State<'_, '_>,
    value: Value,
    count: usize,
    fill: Option<Value>,
) -> Result<Value, Error> {
    at_most(count, MOST)?;
    filters::slice(state, value, count, fill)
}

/// The engine's `batch`, whose count may come from an input.
fn batch(
    state: &State<'_, '_>,
    value: Value,
    count: usize,
    fill: Option<Value>,
) -> Result<Value, Error> {
    at_most(count, MOST)?;
    filters::batch(state, value, count, fill)
}

/// Checks a number that decides how much is written.
fn at_most(number: usize, most: usize) -> Result<(), Error> {
    if number <= most {
        return Ok(());
    }
    let message = format!("{number} is too large: the maximum is {most}");
    Err(Error::new(ErrorKind::InvalidOperation, message))
}
