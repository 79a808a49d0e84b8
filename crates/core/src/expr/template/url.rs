//! Rendered templates as URLs: each value is one escaped part, except the value that a URL begins with.

use super::engine::{one_part, percent_encoded};
use super::parts::{FILE_MESSAGE, RenderedPart, is_file, mark, plain, text};
use crate::expr::place::excerpt;
use minijinja::value::{Object, ObjectRepr, Value};
use minijinja::{Environment, Error, ErrorKind};
use std::fmt;
use std::sync::Arc;

/// A text that the filter `safe` inserts as it is. Other filters set the engine's own flag too.
#[derive(Debug)]
struct Inserted(String);

impl Object for Inserted {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Makes an engine mark values, which are escaped once, with `urlencode` or without, and write those of the filter `safe` as they are.
pub(super) fn write_urls(env: &mut Environment<'static>) {
    env.add_filter("urlencode", |value: &Value| {
        one_part(value).map(Value::from)
    });
    env.add_filter("safe", |value: &Value| match plain(value) {
        Some(text) => Value::from_object(Inserted(text)),
        None => value.clone(),
    });
    env.set_formatter(|out, _, value| {
        let refused = |message: &'static str| Err(Error::new(ErrorKind::InvalidOperation, message));
        if value.is_undefined() {
            return Ok(());
        }
        if is_file(value) {
            return refused(FILE_MESSAGE);
        }
        if let Some(Inserted(text)) = value.downcast_object_ref() {
            return Ok(out.write_str(text)?);
        }
        match plain(value) {
            Some(_) => mark(out, value),
            None if value.is_none() => refused("null cannot be a part of a URL"),
            None => refused("a list or an object cannot be a part of a URL"),
        }
    });
}

/// Returns the URL of rendered parts. A value that it begins with is kept: the address of a service.
///
/// # Errors
/// If a value would change the path or the host instead of being a part of them, or an address could not go on.
pub(super) fn url(parts: Vec<RenderedPart>) -> Result<String, String> {
    let mut url = String::new();
    let goes_on = parts.len() > 1;
    for (number, part) in parts.into_iter().enumerate() {
        match part {
            RenderedPart::Text(text) => url.push_str(&text),
            RenderedPart::Value(value) if number == 0 => {
                url = text(&value);
                let mut marks = ["?", "#", ".."].iter();
                if let Some(mark) = marks.find(|mark| goes_on && url.contains(**mark)) {
                    return Err(format!(
                        "`{}` contains `{mark}`, so the rest of the URL would not be its path: to write it all the same, use the filter \
                         `safe`",
                        excerpt(&url, 60)
                    ));
                }
            }
            RenderedPart::Value(value) => {
                let value = text(&value);
                check(&url, &value)?;
                url.push_str(&percent_encoded(&value));
            }
            RenderedPart::File { .. } => return Err(FILE_MESSAGE.to_owned()),
        }
    }
    Ok(url)
}

/// Checks a value that follows the beginning of a URL.
fn check(before: &str, value: &str) -> Result<(), String> {
    let after_scheme = before.split_once("://").map_or(before, |(_, rest)| rest);
    let is_in = |marks: &[char]| after_scheme.contains(marks);
    if is_in(&['?', '#']) {
        return Ok(());
    }
    match value {
        "" => Err("an empty text cannot be a part of the path of a URL".to_owned()),
        "." | ".." => Err(format!(
            "`{value}` cannot be a part of the path of a URL: it leads to another path"
        )),
        _ if !is_in(&['/', '\\'])
            && value.contains(|c: char| {
                c.is_ascii() && percent_encoded(c.encode_utf8(&mut [0; 4])).len() > 1
            }) =>
        {
            Err(format!(
                "`{}` cannot be a part of the host of a URL: for a host with its port, write the filter `safe`",
                excerpt(value, 60)
            ))
        }
        _ => Ok(()),
    }
}
