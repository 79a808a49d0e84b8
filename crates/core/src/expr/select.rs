//! Plain paths such as `.a.b[].c`, read from a file as a stream with one selected value in memory at a time.
//!
//! A path means the same as in jq, with two differences that prevent unnoticed loss of data: a missing key is an error, and
//! null instead of an object or a list selects no values.

mod parse;
mod read;
mod steps;

use std::fmt;
use std::io::Read;

use serde_json::Value;

use super::json::{self, TakeError};
use crate::expr::name::is_name;
pub use read::fields;
pub use steps::{PathStep, ReadError, SelectError};

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Select(Vec<PathStep>);

impl Select {
    /// Parses a path: `.`, `.a.b`, `.a[]`, `.a[][].b`, `."odd key"`, `.["odd key"]`.
    ///
    /// # Errors
    /// If the text is any other jq, which cannot be read as a stream.
    pub fn parse(text: &str) -> Result<Select, SelectError> {
        parse::parse(text).map(Select)
    }

    /// Creates a path.
    pub fn of(steps: impl IntoIterator<Item = PathStep>) -> Select {
        Select(steps.into_iter().collect())
    }

    /// Returns the steps.
    pub fn steps(&self) -> &[PathStep] {
        &self.0
    }

    /// Returns the name that the path begins with; empty if it begins with `[]`.
    pub fn first(&self) -> &str {
        match self.0.first() {
            Some(PathStep::Field(name)) => name,
            _ => "",
        }
    }

    /// Returns the dotted name that a path over the scope mentions: `params.x` for `.params.x[]`.
    pub(crate) fn name(&self) -> Option<String> {
        match self.0.as_slice() {
            [PathStep::Field(name), PathStep::Field(member), ..] => {
                Some(format!("{name}.{member}"))
            }
            [PathStep::Field(name), ..] => Some(name.clone()),
            _ => None,
        }
    }

    /// Returns the path without its first step.
    #[must_use]
    pub fn rest(&self) -> Select {
        Select(self.0.iter().skip(1).cloned().collect())
    }

    /// Returns the path of the list: without an `[]` at the end.
    #[must_use]
    pub fn list(&self) -> Select {
        let mut steps = self.0.clone();
        if steps.last() == Some(&PathStep::Each) {
            steps.pop();
        }
        Select(steps)
    }

    /// Returns the path of the items of the list: with an `[]` at the end.
    #[must_use]
    pub fn items(&self) -> Select {
        let Select(mut steps) = self.list();
        steps.push(PathStep::Each);
        Select(steps)
    }

    /// Passes every selected value of a JSON document to `each`, in order, and returns their number.
    ///
    /// # Errors
    /// If the document does not fit or is not JSON, and errors of `each`.
    pub fn read<E>(
        &self,
        reader: impl Read,
        each: &mut dyn FnMut(Value) -> Result<(), E>,
    ) -> Result<u64, ReadError<E>> {
        read::read(&self.0, reader, &mut |text, _| {
            each(json::parse(text)?).map_err(TakeError::Other)
        })
    }

    /// Passes the text of every selected value to `each`, with its offset in bytes, to copy values without parsing them.
    ///
    /// # Errors
    /// The errors of [`Select::read`].
    pub fn read_text<E>(
        &self,
        reader: impl Read,
        each: &mut dyn FnMut(&str, u64) -> Result<(), E>,
    ) -> Result<u64, ReadError<E>> {
        read::read(&self.0, reader, &mut |text, start| {
            each(text, start).map_err(TakeError::Other)
        })
    }

    /// Passes every selected value of a value in memory to `each`, and returns their number.
    ///
    /// # Errors
    /// If the value does not fit, and errors of `each`.
    pub(crate) fn select_value<E>(
        &self,
        value: &Value,
        each: &mut dyn FnMut(&Value) -> Result<(), E>,
    ) -> Result<u64, ReadError<E>> {
        read::select(&self.0, value, each)
    }
}

impl fmt::Display for Select {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !matches!(self.0.first(), Some(PathStep::Field(_))) {
            f.write_str(".")?;
        }
        self.0.iter().try_for_each(|step| match step {
            PathStep::Each => f.write_str("[]"),
            PathStep::Field(name) if is_name(name) => write!(f, ".{name}"),
            PathStep::Field(name) => write!(f, ".{}", Value::from(name.as_str())),
        })
    }
}

impl std::str::FromStr for Select {
    type Err = SelectError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

#[cfg(test)]
#[path = "select/tests.rs"]
mod tests;
