//! Walks a document along a plain path without holding it.

use std::io::Read;

use serde_json::Value;

use super::steps::{PathStep, ReadError, SelectError};
use crate::expr::json::{self, Fault, Json, TakeError};
use crate::expr::pointer;

/// Gives the text and the place (bytes from the beginning) of each value that is selected.
pub(crate) type Take<'a, E> = dyn FnMut(&str, u64) -> Result<(), TakeError<E>> + 'a;

/// Reads a document; returns the number of selected values.
pub(crate) fn read<E>(
    steps: &[PathStep],
    reader: impl Read,
    take: &mut Take<'_, E>,
) -> Result<u64, ReadError<E>> {
    let mut walk = Walk {
        text: Json::new(reader),
        take,
        count: 0,
    };
    walk.level(steps)?;
    walk.text.end()?;
    Ok(walk.count)
}

impl From<Fault> for SelectError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Io(error) => SelectError::Io(error.to_string()),
            Fault::Text {
                line,
                column,
                message,
                ended,
            } => SelectError::Json {
                line,
                column,
                message: if ended {
                    format!("the file ends too early: {message}")
                } else {
                    message
                },
            },
        }
    }
}

impl<E> From<Fault> for ReadError<E> {
    fn from(fault: Fault) -> Self {
        ReadError::Select(fault.into())
    }
}

struct Walk<'f, 't, R, E> {
    text: Json<R>,
    take: &'f mut Take<'t, E>,
    count: u64,
}

impl<R: Read, E> Walk<'_, '_, R, E> {
    fn level(&mut self, steps: &[PathStep]) -> Result<(), ReadError<E>> {
        let Some((step, rest)) = steps.split_first() else {
            self.count += 1;
            let take = &mut *self.take;
            let taken = self.text.value(|text, start| take(text, start))?;
            return taken.map_err(ReadError::Each);
        };
        match (self.text.peek()?, step) {
            (Some(open @ b'{'), PathStep::Field(name)) => self.field(open, name, rest),
            (Some(open @ b'['), PathStep::Each) => {
                let mut index = 0_usize;
                let mut more = self.text.enter(open)?;
                while more {
                    self.level(rest)
                        .map_err(|error| below(error, &index.to_string()))?;
                    index += 1;
                    more = self.text.next(open)?;
                }
                Ok(())
            }
            (Some(open @ b'{'), PathStep::Each) => {
                let mut more = self.text.enter(open)?;
                while more {
                    let key = self.text.key(str::to_owned)?;
                    self.level(rest).map_err(|error| below(error, &key))?;
                    more = self.text.next(open)?;
                }
                Ok(())
            }
            (first, _) => {
                let found = match first {
                    Some(b'[') => "a list",
                    Some(b'"') => "a string",
                    Some(b't' | b'f') => "a boolean",
                    Some(b'-' | b'0'..=b'9') => "a number",
                    // Null holds nothing; skipping anything else says what is wrong.
                    _ => return Ok(self.text.skip()?),
                };
                if found != "a list" {
                    self.text.skip()?;
                }
                Err(ReadError::Select(SelectError::Shape {
                    pointer: String::new(),
                    found,
                    expected: match step {
                        PathStep::Each => "a list",
                        PathStep::Field(_) => "an object",
                    },
                }))
            }
        }
    }

    fn field(&mut self, open: u8, name: &str, rest: &[PathStep]) -> Result<(), ReadError<E>> {
        let mut found = false;
        let mut more = self.text.enter(open)?;
        while more {
            if self.text.key(|key| key == name)? {
                if found {
                    return Err(ReadError::Select(SelectError::Twice {
                        pointer: String::new(),
                        key: name.to_owned(),
                    }));
                }
                found = true;
                self.level(rest).map_err(|error| below(error, name))?;
            } else {
                self.text.skip()?;
            }
            more = self.text.next(open)?;
        }
        if found {
            return Ok(());
        }
        Err(ReadError::Select(SelectError::Missing {
            pointer: String::new(),
            key: name.to_owned(),
        }))
    }
}

/// Returns the error of something inside, seen from one step further up.
fn below<E>(mut error: ReadError<E>, key: &str) -> ReadError<E> {
    if let ReadError::Select(
        SelectError::Shape { pointer, .. }
        | SelectError::Missing { pointer, .. }
        | SelectError::Twice { pointer, .. },
    ) = &mut error
    {
        let mut whole = String::new();
        pointer::push(&mut whole, key);
        whole.push_str(pointer);
        *pointer = whole;
    }
    error
}

/// Returns an object of those of `keys` that the object in a document has, read in one pass; `None` if it is not an object, or
/// cannot be read.
pub fn fields(keys: &std::collections::BTreeSet<&str>, reader: impl Read) -> Option<Value> {
    let mut text = Json::new(reader);
    let mut found = serde_json::Map::new();
    if text.peek().ok()? != Some(b'{') {
        return None;
    }
    let mut more = text.enter(b'{').ok()?;
    while more {
        let wanted = text.key(|key| keys.get(key).copied()).ok()?;
        match wanted {
            Some(key) => {
                let value = text.value(|text, _| json::parse(text).map_err(TakeError::<()>::Text));
                if found.insert(key.to_owned(), value.ok()?.ok()?).is_some() {
                    return None;
                }
            }
            None => text.skip().ok()?,
        }
        more = text.next(b'{').ok()?;
    }
    text.end().ok()?;
    Some(Value::Object(found))
}

/// Walks a value in memory.
pub(crate) fn select<E>(
    steps: &[PathStep],
    value: &Value,
    each: &mut dyn FnMut(&Value) -> Result<(), E>,
) -> Result<u64, ReadError<E>> {
    fn level<E>(
        steps: &[PathStep],
        value: &Value,
        pointer: &str,
        each: &mut dyn FnMut(&Value) -> Result<(), E>,
    ) -> Result<u64, ReadError<E>> {
        let below = |key: &str| {
            let mut pointer = pointer.to_owned();
            pointer::push(&mut pointer, key);
            pointer
        };
        let pointer = || pointer.to_owned();
        let Some((step, rest)) = steps.split_first() else {
            each(value).map_err(ReadError::Each)?;
            return Ok(1);
        };
        match (step, value) {
            (_, Value::Null) => Ok(0),
            (PathStep::Field(key), Value::Object(map)) => match map.get(key) {
                Some(inner) => level(rest, inner, &below(key), each),
                None => Err(SelectError::Missing {
                    pointer: pointer(),
                    key: key.clone(),
                }
                .into()),
            },
            (PathStep::Each, Value::Array(items)) => {
                items
                    .iter()
                    .enumerate()
                    .try_fold(0, |count, (index, item)| {
                        Ok(count + level(rest, item, &below(&index.to_string()), each)?)
                    })
            }
            (PathStep::Each, Value::Object(map)) => map.iter().try_fold(0, |count, (key, item)| {
                Ok(count + level(rest, item, &below(key), each)?)
            }),
            (PathStep::Field(_), found) => Err(SelectError::Shape {
                pointer: pointer(),
                found: json::kind(found),
                expected: "an object",
            }
            .into()),
            (PathStep::Each, found) => Err(SelectError::Shape {
                pointer: pointer(),
                found: json::kind(found),
                expected: "a list",
            }
            .into()),
        }
    }
    level(steps, value, "", each)
}
