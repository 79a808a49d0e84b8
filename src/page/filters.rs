//! Filters of the templates: numbers, money, times and sizes as people read them.

use crate::view::text::table;
use crate::view::text::words;
use milepost_core::model::money::NanoUsd;
use minijinja::{Environment, Error, ErrorKind, HtmlEscape, Value};

/// Adds the filters: `grouped`, `bytes`, `usd`, `time`, `seconds`, `batches`, `short`, `cut`, `field` and `q`.
pub(super) fn add(environment: &mut Environment<'_>) {
    environment.add_filter("grouped", words::grouped);
    environment.add_filter("bytes", words::bytes);
    environment.add_filter("usd", |nano: u64| NanoUsd(nano).to_string());
    environment.add_filter("time", time);
    environment.add_filter("seconds", words::seconds);
    environment.add_filter("batches", words::batches);
    environment.add_filter("short", |digest: String| {
        digest.chars().take(12).collect::<String>()
    });
    environment.add_filter("cut", |text: String, most: usize| cut(&text, most));
    environment.add_filter("field", field);
    environment.add_filter("q", |text: String| {
        form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>()
    });
}

/// Returns a text, or its beginning and how much is left out.
pub(crate) fn cut(text: &str, most: usize) -> String {
    let Some((end, _)) = text.char_indices().nth(most) else {
        return text.to_owned();
    };
    let left = text.len() - end;
    format!(
        "{}… ({} more bytes)",
        &text[..end],
        words::grouped(left as u64)
    )
}

/// Escapes a value of a form for HTML only: the browser sends it back, so nothing in it may be shown as an escape.
fn field(value: &Value) -> Value {
    let text = value.to_string();
    let text = HtmlEscape(&text).to_string();
    // A browser reads a CR in HTML as the end of a line.
    Value::from_safe_string(text.replace('\r', "&#13;"))
}

/// Formats a timestamp as tables of the terminal do.
fn time(text: &str) -> Result<String, Error> {
    let parsed: Result<jiff::Timestamp, _> = text.parse();
    let broken = |error| Error::new(ErrorKind::InvalidOperation, format!("`{text}`: {error}"));
    parsed.map(table::time).map_err(broken)
}
