//! The steps of a plain path, and why a path does not fit a document.

use crate::expr::place::Place;

/// One step of a plain path.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum PathStep {
    /// `.name`: the field of an object.
    Field(String),
    /// `[]`: every item of a list, or every value of an object.
    Each,
}

/// The error of a plain path, or of a document that it does not fit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectError {
    /// The path itself.
    #[error("`{select}`, {place}: {message} ({hint})")]
    Syntax {
        select: String,
        /// Where in it.
        place: Place,
        message: String,
        hint: String,
    },
    /// The value is not an object or list.
    #[error("{} is {found}, expected {expected}", shown(.pointer))]
    Shape {
        /// JSON pointer into the document.
        pointer: String,
        /// The kind of the value.
        found: &'static str,
        /// The kind that the path needs.
        expected: &'static str,
    },
    /// An object lacks the key.
    #[error("{} has no `{key}`", shown(.pointer))]
    Missing {
        /// JSON pointer of the object.
        pointer: String,
        key: String,
    },
    /// An object has the key twice: one of the values would be lost.
    #[error("{} has `{key}` twice", shown(.pointer))]
    Twice {
        /// JSON pointer of the object.
        pointer: String,
        key: String,
    },
    /// The text is not JSON, or cut.
    #[error("line {line}, column {column}: {message}")]
    Json {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// The message of the parser.
        message: String,
    },
    /// The file could not be read.
    #[error("{0}")]
    Io(String),
}

/// Why reading stopped: an error of the document, or of the function that takes the values.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError<E> {
    /// The path does not fit the document, or the document cannot be read.
    #[error("{0}")]
    Select(#[from] SelectError),
    /// The error of the function that takes the values.
    #[error("{0}")]
    Each(E),
}

fn shown(pointer: &str) -> &str {
    if pointer.is_empty() {
        "the document"
    } else {
        pointer
    }
}
