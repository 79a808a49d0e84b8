//! Walks a document along a plain path without holding it.

use std::fmt;
use std::io::Read;

use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::Value;

use super::{ReadError, SelectError, Step};

/// What every level of the walk shares.
struct Walk<'f, T, E> {
    pointer: Vec<Part>,
    /// The error that ended the walk; the parser's own is only its messenger.
    stop: Option<ReadError<E>>,
    each: &'f mut dyn FnMut(T) -> Result<(), E>,
    count: u64,
}

enum Part {
    Key(String),
    Index(usize),
}

impl<T, E> Walk<'_, T, E> {
    fn stop<D: serde::de::Error>(&mut self, error: impl Into<ReadError<E>>) -> D {
        self.stop.get_or_insert(error.into());
        D::custom("stopped")
    }

    fn shape<D: serde::de::Error>(&mut self, found: &'static str, expected: &'static str) -> D {
        let pointer = self.at();
        self.stop(SelectError::Shape {
            pointer,
            found,
            expected,
        })
    }

    fn at(&self) -> String {
        let mut text = String::new();
        for part in &self.pointer {
            match part {
                Part::Key(key) => push_key(&mut text, key),
                Part::Index(index) => push_key(&mut text, &index.to_string()),
            }
        }
        text
    }
}

/// Adds a step to a JSON pointer (RFC 6901).
pub fn push_key(pointer: &mut String, key: &str) {
    pointer.push('/');
    pointer.push_str(&key.replace('~', "~0").replace('/', "~1"));
}

/// Reads a document.
pub fn read<T: DeserializeOwned, E>(
    steps: &[Step],
    reader: impl Read,
    each: &mut dyn FnMut(T) -> Result<(), E>,
) -> Result<u64, ReadError<E>> {
    let mut walk = Walk {
        pointer: Vec::new(),
        stop: None,
        each,
        count: 0,
    };
    let mut document = serde_json::Deserializer::from_reader(reader);
    let read = Level {
        steps,
        walk: &mut walk,
    }
    .deserialize(&mut document)
    .and_then(|()| document.end());
    match (walk.stop, read) {
        (Some(stop), _) => Err(stop),
        (None, Ok(())) => Ok(walk.count),
        (None, Err(error)) => Err(json_error(&error).into()),
    }
}

/// What the parser says.
pub fn json_error(error: &serde_json::Error) -> SelectError {
    if error.is_io() {
        return SelectError::Io(error.to_string());
    }
    let message = error.to_string();
    let message = message.split(" at line ").next().unwrap_or_default();
    SelectError::Json {
        line: error.line(),
        column: error.column(),
        message: if error.is_eof() {
            format!("the file ends too early: {message}")
        } else {
            message.to_owned()
        },
    }
}

struct Level<'w, 'f, T, E> {
    steps: &'w [Step],
    walk: &'w mut Walk<'f, T, E>,
}

impl<'de, T: DeserializeOwned, E> DeserializeSeed<'de> for Level<'_, '_, T, E> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        if !self.steps.is_empty() {
            return deserializer.deserialize_any(self);
        }
        let value = T::deserialize(deserializer)?;
        self.walk.count += 1;
        (self.walk.each)(value).map_err(|error| self.walk.stop(ReadError::Each(error)))
    }
}

impl<'f, T: DeserializeOwned, E> Level<'_, 'f, T, E> {
    fn expected(&self) -> &'static str {
        match self.steps.first() {
            Some(Step::Each) => "a list",
            _ => "an object",
        }
    }

    fn wrong<D: serde::de::Error>(self, found: &'static str) -> Result<(), D> {
        let expected = self.expected();
        Err(self.walk.shape(found, expected))
    }

    fn inner(&mut self, part: Part) -> Level<'_, 'f, T, E> {
        self.walk.pointer.push(part);
        Level {
            steps: &self.steps[1..],
            walk: self.walk,
        }
    }
}

impl<'de, T: DeserializeOwned, E> Visitor<'de> for Level<'_, '_, T, E> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected())
    }

    fn visit_unit<D: serde::de::Error>(self) -> Result<(), D> {
        Ok(())
    }

    fn visit_bool<D: serde::de::Error>(self, _: bool) -> Result<(), D> {
        self.wrong("a boolean")
    }

    fn visit_i64<D: serde::de::Error>(self, _: i64) -> Result<(), D> {
        self.wrong("a number")
    }

    fn visit_u64<D: serde::de::Error>(self, _: u64) -> Result<(), D> {
        self.wrong("a number")
    }

    fn visit_f64<D: serde::de::Error>(self, _: f64) -> Result<(), D> {
        self.wrong("a number")
    }

    fn visit_str<D: serde::de::Error>(self, _: &str) -> Result<(), D> {
        self.wrong("a string")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
        if self.steps.first() != Some(&Step::Each) {
            return self.wrong("a list");
        }
        let mut index = 0;
        while items
            .next_element_seed(self.inner(Part::Index(index)))?
            .is_some()
        {
            self.walk.pointer.pop();
            index += 1;
        }
        self.walk.pointer.pop();
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut entries: A) -> Result<(), A::Error> {
        let steps = self.steps;
        let Some(Step::Field(name)) = steps.first() else {
            while let Some(key) = entries.next_key::<String>()? {
                entries.next_value_seed(self.inner(Part::Key(key)))?;
                self.walk.pointer.pop();
            }
            return Ok(());
        };
        let mut found = false;
        while let Some(is_it) = entries.next_key_seed(Is(name))? {
            if !is_it {
                entries.next_value::<IgnoredAny>()?;
                continue;
            }
            if found {
                let (pointer, key) = (self.walk.at(), name.clone());
                return Err(self.walk.stop(SelectError::Twice { pointer, key }));
            }
            found = true;
            entries.next_value_seed(self.inner(Part::Key(name.clone())))?;
            self.walk.pointer.pop();
        }
        if found {
            return Ok(());
        }
        let (pointer, key) = (self.walk.at(), name.clone());
        Err(self.walk.stop(SelectError::Missing { pointer, key }))
    }
}

/// Whether a key is this one, without keeping it.
struct Is<'a>(&'a str);

impl<'de> DeserializeSeed<'de> for Is<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Is<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<D: serde::de::Error>(self, key: &str) -> Result<bool, D> {
        Ok(key == self.0)
    }
}

/// Walks a value in memory.
pub fn select<E>(
    steps: &[Step],
    value: &Value,
    each: &mut dyn FnMut(&Value) -> Result<(), E>,
) -> Result<u64, ReadError<E>> {
    fn level<E>(
        steps: &[Step],
        value: &Value,
        pointer: &str,
        each: &mut dyn FnMut(&Value) -> Result<(), E>,
    ) -> Result<u64, ReadError<E>> {
        let below = |key: &str| {
            let mut pointer = pointer.to_owned();
            push_key(&mut pointer, key);
            pointer
        };
        let pointer = || pointer.to_owned();
        let Some((step, rest)) = steps.split_first() else {
            each(value).map_err(ReadError::Each)?;
            return Ok(1);
        };
        match (step, value) {
            (_, Value::Null) => Ok(0),
            (Step::Field(key), Value::Object(map)) => match map.get(key) {
                Some(inner) => level(rest, inner, &below(key), each),
                None => Err(SelectError::Missing {
                    pointer: pointer(),
                    key: key.clone(),
                }
                .into()),
            },
            (Step::Each, Value::Array(items)) => {
                items
                    .iter()
                    .enumerate()
                    .try_fold(0, |count, (index, item)| {
                        Ok(count + level(rest, item, &below(&index.to_string()), each)?)
                    })
            }
            (Step::Each, Value::Object(map)) => map.iter().try_fold(0, |count, (key, item)| {
                Ok(count + level(rest, item, &below(key), each)?)
            }),
            (Step::Field(_), found) => Err(SelectError::Shape {
                pointer: pointer(),
                found: kind(found),
                expected: "an object",
            }
            .into()),
            (Step::Each, found) => Err(SelectError::Shape {
                pointer: pointer(),
                found: kind(found),
                expected: "a list",
            }
            .into()),
        }
    }
    level(steps, value, "", each)
}

/// What a value is, in a sentence.
pub fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
