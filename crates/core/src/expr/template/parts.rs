//! Rendered templates as text and values: the caller decides how each value is written.

use std::fmt;
use std::sync::Arc;

use minijinja::value::{Kwargs, Object, ObjectRepr, Value as Item, ValueKind};
use minijinja::{Environment, Error, ErrorKind, Output, State};
use serde_json::{Value, json};

use super::limits::{self, Bounded};

/// Begins a value in the rendered text, and ends it. JSON holds neither as it is.
const MARKS: [char; 2] = ['\u{1}', '\u{2}'];

/// Why a file of names cannot be written as text.
pub(super) const FILE_MESSAGE: &str =
    "`as_file` writes a file for a program: it can be used in `command` only";

/// A part of a rendered template.
#[derive(Debug, Clone, PartialEq)]
pub enum RenderedPart {
    /// Text around the values.
    Text(String),
    /// The value of a `{{ }}`.
    Value(Value),
    /// Names that are written to a file, whose path replaces them.
    File {
        names: Vec<String>,
        /// True if each ends with a NUL byte instead of a line feed.
        nul: bool,
    },
}

/// Names that become a file.
struct FileNames {
    names: Vec<String>,
    nul: bool,
}

impl fmt::Debug for FileNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "as_file({} names)", self.names.len())
    }
}

impl Object for FileNames {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }
}

/// `{{ paths.scans | as_file }}`: a file with one name a line; with `as_file(nul=true)` a NUL byte ends each.
pub(super) fn as_file(value: &Item, named: Kwargs) -> Result<Item, Error> {
    let nul = named.get::<Option<bool>>("nul")?.unwrap_or(false);
    named.assert_all_used()?;
    let wrong = |message: String| Error::new(ErrorKind::InvalidOperation, message);
    let name = |value: &Item| {
        let text = plain(value).ok_or_else(|| {
            wrong("`as_file` takes a list of texts, numbers or booleans".to_owned())
        })?;
        if !nul && text.contains('\n') {
            return Err(wrong(format!(
                "{text:?} has a line break, and `as_file` writes one value a line: write `as_file(nul=true)`, and let the program \
                 read values that end with a NUL byte"
            )));
        }
        Ok(text)
    };
    let names = if value.is_none() {
        Vec::new()
    } else if plain(value).is_some() {
        vec![name(value)?]
    } else {
        let values: Vec<Item> = value.try_iter()?.collect();
        values.iter().map(name).collect::<Result<_, _>>()?
    };
    Ok(Item::from_object(FileNames { names, nul }))
}

/// Returns a value as JSON, if it is not too long.
pub(super) fn json(value: &Item, indent: Option<usize>) -> Result<String, Error> {
    let mut text = Bounded::value();
    let written = match indent.filter(|spaces| *spaces > 0) {
        None => serde_json::to_writer(&mut text, value),
        Some(indent) => {
            let spaces = " ".repeat(indent.min(16));
            let style = serde_json::ser::PrettyFormatter::with_indent(spaces.as_bytes());
            let mut writer = serde_json::Serializer::with_formatter(&mut text, style);
            serde::Serialize::serialize(value, &mut writer)
        }
    };
    written.map_err(|error| {
        if error.is_io() {
            return limits::too_long();
        }
        Error::new(ErrorKind::BadSerialization, error.to_string())
    })?;
    text.take()
}

/// Text as it is, numbers and booleans as in JSON. `None` for everything else.
pub(crate) fn plain(value: &Item) -> Option<String> {
    match value.as_str() {
        Some(text) => Some(text.to_owned()),
        None if value.is_number() || value.kind() == ValueKind::Bool => {
            serde_json::to_string(value).ok()
        }
        None => None,
    }
}

/// Returns true if a value was made by `as_file`.
pub(super) fn is_file(value: &Item) -> bool {
    value.downcast_object_ref::<FileNames>().is_some()
}

/// Makes an engine mark values, to be read by [`of`].
pub(super) fn write_parts(env: &mut Environment<'static>) {
    env.set_formatter(
        |out: &mut Output<'_>, _: &mut State<'_, '_>, value: &Item| {
            if value.is_undefined() {
                return Ok(());
            }
            mark(out, value)
        },
    );
}

/// Writes a value with its marks.
pub(super) fn mark(out: &mut Output<'_>, value: &Item) -> Result<(), Error> {
    let marked = match value.downcast_object_ref::<FileNames>() {
        Some(file) => json!({ "names": file.names, "nul": file.nul }),
        None => json!({ "value": to_json(value)? }),
    };
    let marked = format!("{}{marked}{}", MARKS[0], MARKS[1]);
    limits::take(marked.len())?;
    Ok(out.write_str(&marked)?)
}

/// Returns a value as JSON, unless it is too long.
pub(super) fn to_json(value: &Item) -> Result<Value, Error> {
    if value.as_object().is_some() {
        json(value, None)?;
    }
    serde_json::to_value(value)
        .map_err(|error| Error::new(ErrorKind::BadSerialization, error.to_string()))
}

/// Returns the parts of a text that such an engine rendered. Marks that are none are text. `is_nested`: a value may hold marked
/// ones.
pub(super) fn of(rendered: &str, is_nested: bool) -> Vec<RenderedPart> {
    let mut parts = Vec::new();
    let mut text = String::new();
    let mut rest = rendered;
    while let Some((before, after)) = rest.split_once(MARKS[0]) {
        text.push_str(before);
        let marked = after.split_once(MARKS[1]);
        let marked = marked.and_then(|(json, after)| Some((part(json, is_nested)?, after)));
        match marked {
            Some((part, after)) => {
                if !text.is_empty() {
                    parts.push(RenderedPart::Text(std::mem::take(&mut text)));
                }
                parts.push(part);
                rest = after;
            }
            None => {
                text.push(MARKS[0]);
                rest = after;
            }
        }
    }
    text.push_str(rest);
    if !text.is_empty() {
        parts.push(RenderedPart::Text(text));
    }
    parts
}

fn part(json: &str, is_nested: bool) -> Option<RenderedPart> {
    let mut marked: Value = serde_json::from_str(json).ok()?;
    if let Some(value) = marked.get_mut("value") {
        return Some(RenderedPart::Value(match value.take() {
            Value::String(text) if is_nested => Value::String(plain_text(&text)),
            value => value,
        }));
    }
    let names = marked.get("names")?.as_array()?;
    let names = names.iter().map(|name| name.as_str().map(str::to_owned));
    Some(RenderedPart::File {
        names: names.collect::<Option<_>>()?,
        nul: marked.get("nul")?.as_bool()?,
    })
}

/// Returns a value as one word: text as it is, null as nothing, everything else as JSON.
pub fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// Returns the text of what a tag gathered, without marks.
fn plain_text(gathered: &str) -> String {
    let parts = of(gathered, true).into_iter().map(|part| match part {
        RenderedPart::Text(text) => text,
        RenderedPart::Value(value) => text(&value),
        RenderedPart::File { names, .. } => names.join("\n"),
    });
    parts.collect()
}
