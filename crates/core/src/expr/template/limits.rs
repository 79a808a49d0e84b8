//! Limits of templates: depth, steps, the length of a text, and the memory of all texts that a template builds.

use std::borrow::Cow;
use std::cell::Cell;
use std::io::{self, Write as _};

use minijinja::value::{Rest, Value, ValueKind};
use minijinja::{Environment, Error, ErrorKind, UndefinedBehavior};

use super::tags::{ident, string, tags};
use crate::base::size::show_size;

/// The filter of an operand of `~`.
pub(super) const CONCATENATED: &str = "milepost_concatenated";

/// The filter of a sum or a product.
pub(super) const BUILT: &str = "milepost_built";

/// The most steps of a template. A loop over 100,000 elements with ten values each takes a few million.
const STEPS: u64 = if cfg!(test) { 2_000_000 } else { 500_000_000 };

/// The longest text that an expression builds, in bytes.
const TEXT: usize = if cfg!(test) { 1 << 20 } else { 64 << 20 };

/// The most bytes of all texts that the expressions of a template build, and of the text that it renders to.
const ALL: usize = if cfg!(test) { 16 << 20 } else { 1 << 30 };

/// The most items of a list that `+` or `*` builds.
const ITEMS: usize = 10_000_000;

/// The most operators of a tag, and the most `elif` of a template. The engine takes a part of the stack for each.
pub(super) const OPERATORS: usize = 1000;

/// The widest number and the most decimals of `format`.
const WIDTH: usize = 1000;

/// Filters of the engine that build texts or lists, with no more memory than their value takes.
const LINEAR: [&str; 13] = [
    "capitalize",
    "e",
    "escape",
    "format",
    "lines",
    "list",
    "lower",
    "replace",
    "reverse",
    "split",
    "title",
    "trim",
    "upper",
];

thread_local! {
    /// The bytes that the template which this thread renders has built.
    static TAKEN: Cell<usize> = const { Cell::new(0) };
}

/// Returns the first tag that has too many operators, or an `elif` too many before it.
pub(super) fn too_deep(source: &str) -> Option<&str> {
    let mut branches = 0;
    let mut bodies = tags(source).into_iter().map(|tag| tag.body);
    bodies.find(|body| {
        branches += usize::from(ident(body.trim_start_matches(['-', '+', ' '])) == Some("elif"));
        branches > OPERATORS || operators(body) > OPERATORS
    })
}

fn operators(body: &str) -> usize {
    let (mut count, mut at) = (0, 0);
    while let Some(c) = body[at..].chars().next() {
        let rest = &body[at..];
        let word = ident(rest);
        count += usize::from(match (word, c) {
            (Some(word), _) => matches!(word, "and" | "if" | "in" | "is" | "not" | "or"),
            (None, ',' | ':' | '"' | '\'' | ')' | ']' | '}') => false,
            (None, c) => c.is_ascii_punctuation(),
        });
        at += match c {
            '"' | '\'' => string(rest),
            c => word.map_or(c.len_utf8(), str::len),
        };
    }
    count
}

/// Begins to count for another template.
pub(super) fn begin() {
    TAKEN.set(0);
}

/// Counts bytes that a template builds.
///
/// # Errors
/// If they are too many.
pub(super) fn take(bytes: usize) -> Result<(), Error> {
    let taken = TAKEN.get().saturating_add(bytes);
    TAKEN.set(taken);
    if taken <= ALL {
        return Ok(());
    }
    let most = show_size(ALL as u64);
    refused(format!("its texts would take more than {most}"))
}

fn refused<T>(message: String) -> Result<T, Error> {
    Err(Error::new(ErrorKind::InvalidOperation, message))
}

/// Returns the failure of a text that would be too long.
pub(super) fn too_long() -> Error {
    let message = format!("a text would be longer than {}", show_size(TEXT as u64));
    Error::new(ErrorKind::InvalidOperation, message)
}

/// Counts the bytes of a text, if it is not too long.
pub(super) fn check_length(bytes: usize) -> Result<(), Error> {
    if bytes > TEXT {
        return Err(too_long());
    }
    take(bytes)
}

/// Returns the reason why the engine ended a template, if a limit did.
pub(super) fn reason(kind: ErrorKind) -> Option<String> {
    match kind {
        ErrorKind::OutOfFuel => Some(format!(
            "it takes more than {} million steps",
            STEPS / 1_000_000
        )),
        ErrorKind::WriteFailure => Some(format!(
            "its text would be longer than {}",
            show_size(ALL as u64)
        )),
        _ => None,
    }
}

/// Limits an engine, whose filters get null, lists and truth values as `text` writes them: its own way is Python's.
pub(super) fn limit(
    env: &mut Environment<'static>,
    text: fn(&Value) -> Result<Cow<'_, str>, Error>,
) {
    env.set_fuel(Some(STEPS));
    env.add_filter(BUILT, built);
    let mut engine = Environment::new();
    engine.set_undefined_behavior(UndefinedBehavior::Strict);
    for name in LINEAR {
        let engine = engine.clone();
        env.add_filter(name, move |mut values: Rest<Value>| {
            for value in values.iter_mut().filter(|value| is_python(name, value)) {
                *value = Value::from(text(value)?);
            }
            match name {
                "replace" => check_replace(&values)?,
                "format" => check_format(&values)?,
                _ => {}
            }
            let made = engine.empty_state().apply_filter(name, &values)?;
            let items = made
                .len()
                .filter(|_| made.as_str().is_none())
                .unwrap_or_default();
            check_items(items)?;
            take(made.as_str().map_or(items * size_of::<Value>(), str::len))?;
            Ok::<_, Error>(made)
        });
    }
}

/// Returns true if a filter would write a value differently from `{{ }}`.
fn is_python(filter: &str, value: &Value) -> bool {
    match value.kind() {
        ValueKind::None => !matches!(filter, "list" | "reverse"),
        ValueKind::Bool => filter != "format",
        ValueKind::Seq => !matches!(filter, "lines" | "list" | "reverse" | "split"),
        _ => false,
    }
}

/// Checks a sum or a product.
fn built(value: &Value) -> Result<Value, Error> {
    match (value.as_str(), value.len()) {
        (Some(text), _) => check_length(text.len())?,
        (None, Some(items)) => check_items(items)?,
        (None, None) => {}
    }
    Ok(value.clone())
}

fn check_items(items: usize) -> Result<(), Error> {
    if items <= ITEMS {
        return Ok(());
    }
    refused(format!(
        "a list would have more than {} million items",
        ITEMS / 1_000_000
    ))
}

/// Checks the length of what `replace` returns.
fn check_replace(values: &[Value]) -> Result<(), Error> {
    let [value, from, to, ..] = values else {
        return Ok(());
    };
    if let (Some(text), Some(from), Some(to)) = (value.as_str(), from.as_str(), to.as_str()) {
        let longer = to.len().saturating_sub(from.len());
        let count = if longer > 0 {
            text.matches(from).count()
        } else {
            0
        };
        if count.saturating_mul(longer).saturating_add(text.len()) > TEXT {
            return Err(too_long());
        }
    }
    Ok(())
}

/// Checks the widths that `format` writes numbers and texts with.
fn check_format(values: &[Value]) -> Result<(), Error> {
    let Some(format) = values.first().and_then(Value::as_str) else {
        return Ok(());
    };
    let fields = format.split('%').skip(1).map(|field| {
        let end = field
            .find(|c: char| c.is_ascii_alphabetic())
            .unwrap_or(field.len());
        &field[..end]
    });
    for field in fields {
        let mut numbers = field
            .split(|c: char| !c.is_ascii_digit())
            .filter(|digits| !digits.is_empty());
        if numbers.any(|digits| !digits.parse().is_ok_and(|width: usize| width <= WIDTH)) {
            return refused(format!("`%{field}` is too wide: at most {WIDTH}"));
        }
        // A width among the arguments.
        let is_wide = |value: &Value| value.as_usize().is_some_and(|width| width > WIDTH);
        if field.contains('*') && values.iter().any(is_wide) {
            return refused(format!("`%{field}` is too wide: at most {WIDTH}"));
        }
    }
    Ok(())
}

/// A text that refuses to grow beyond a limit.
pub(super) struct Bounded {
    pub(super) bytes: Vec<u8>,
    most: usize,
}

impl Bounded {
    /// The text of a value.
    pub(super) fn value() -> Self {
        Self {
            bytes: Vec::new(),
            most: TEXT,
        }
    }

    /// The text of a template.
    pub(super) fn template() -> Self {
        Self {
            bytes: Vec::new(),
            most: ALL,
        }
    }

    /// Adds a text.
    pub(super) fn push(&mut self, more: &str) -> Result<(), Error> {
        self.write_all(more.as_bytes()).map_err(|_| too_long())
    }

    /// Counts the text and returns it.
    pub(super) fn take(self) -> Result<String, Error> {
        take(self.bytes.len())?;
        String::from_utf8(self.bytes)
            .map_err(|error| Error::new(ErrorKind::BadSerialization, error.to_string()))
    }
}

impl io::Write for Bounded {
    fn write(&mut self, more: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + more.len() > self.most {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        self.bytes.extend_from_slice(more);
        Ok(more.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
