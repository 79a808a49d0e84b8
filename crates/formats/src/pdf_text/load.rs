//! Loads a document with bounded memory. The parser allocates and recurses by what the file says before it looks at it, so the
//! file is looked at first.
//!
//! What cannot be bounded from outside: the time for objects that many entries of the cross-reference table share, and an
//! encrypted document, whose objects the parser copies before it looks at a limit. Run the reader in a process with limits.

use super::limits::{OBJECT_STREAM, OBJECTS, ReadError, VALUES, check, check_row};
use super::tokens::{Token, Tokens};
use lopdf::{Document, LoadOptions, Object, ObjectId};
use std::cell::Cell;
use std::collections::HashSet;
use std::panic::{catch_unwind, resume_unwind};

/// Loads a document.
pub(crate) fn load(bytes: &[u8]) -> Result<Document, ReadError> {
    let has_streams = check_sections(bytes)?;
    check_lengths(bytes, has_streams)?;
    let options = LoadOptions {
        filter: Some(count),
        ..LoadOptions::with_max_decompressed_size(OBJECT_STREAM)
    };
    // Overlapping objects could make more of a file than it has bytes.
    BUDGET.set(LoadBudget {
        values: VALUES,
        bytes: 2 * bytes.len(),
    });
    match catch_unwind(|| Document::load_mem_with_options(bytes, options)) {
        Ok(loaded) => Ok(loaded?),
        Err(panic) => Err(*panic
            .downcast::<ReadError>()
            .unwrap_or_else(|p| resume_unwind(p))),
    }
}

/// The memory that is left for a document while it is loaded.
#[derive(Clone, Copy)]
struct LoadBudget {
    values: usize,
    bytes: usize,
}

thread_local! {
    static BUDGET: Cell<LoadBudget> = const { Cell::new(LoadBudget { values: 0, bytes: 0 }) };
}

/// Counts an object that the parser has read. Too many end the parser, which has no other way out.
#[allow(
    clippy::unnecessary_wraps,
    reason = "the parser leaves out an object whose filter returns `None`"
)]
fn count(id: ObjectId, object: &mut Object) -> Option<(ObjectId, Object)> {
    let counted = || {
        let left = BUDGET.get();
        let bytes = match &*object {
            Object::Stream(stream) => {
                check_row(&stream.dict)?;
                stream.content.len()
            }
            _ => 0,
        };
        check(bytes, left.bytes, "bytes in its streams")?;
        let values = values(object);
        check(values, left.values, "values in its objects")?;
        BUDGET.set(LoadBudget {
            values: left.values - values,
            bytes: left.bytes - bytes,
        });
        Ok::<(), ReadError>(())
    };
    if let Err(error) = counted() {
        // No hook of the process reports this as a panic.
        resume_unwind(Box::new(error));
    }
    // The parser keeps its own copy of a stream, and drops this one.
    let object = match object {
        Object::Stream(_) => Object::Null,
        object => object.clone(),
    };
    Some((id, object))
}

/// How many values an object holds. The parser nests them 100 deep at the most.
fn values(object: &Object) -> usize {
    let inside = match object {
        Object::Array(items) => items.iter().map(values).sum(),
        Object::Dictionary(items) => items.iter().map(|(_, value)| values(value)).sum(),
        Object::Stream(stream) => stream.dict.iter().map(|(_, value)| values(value)).sum(),
        _ => 0,
    };
    1_usize.saturating_add(inside)
}

/// Checks the sizes that cross-reference streams declare. Returns whether there are any.
fn check_sections(bytes: &[u8]) -> Result<bool, ReadError> {
    let header = find(bytes, 0, b"%PDF-").unwrap_or(0);
    let bytes = &bytes[header..];
    let mut has_streams = false;
    let mut seen = HashSet::new();
    let mut next: Vec<i64> = Vec::new();
    for at in all(bytes, b"startxref") {
        let mut tokens = Tokens::new(bytes, at + b"startxref".len());
        next.extend(tokens.next().and_then(|token| token.integer()));
    }
    while let Some(offset) = next.pop() {
        let Some(at) = usize::try_from(offset).ok().filter(|at| *at < bytes.len()) else {
            continue;
        };
        if !seen.insert(at) {
            continue;
        }
        let is_table = bytes[at..].trim_ascii_start().starts_with(b"xref");
        let mut tokens = Tokens::new(bytes, at);
        let dictionary = if is_table {
            find(bytes, at, b"trailer").map(|at| at + b"trailer".len())
        } else {
            // The number and generation of the stream.
            let head = tokens.find(|token| token.integer().is_none());
            (head == Some(Token::Word(b"obj"))).then_some(tokens.at)
        };
        has_streams |= !is_table;
        if let Some(dictionary) = dictionary {
            check_section(bytes, dictionary, is_table, &mut next)?;
        }
    }
    Ok(has_streams)
}

/// Checks one cross-reference dictionary and collects the offsets of others.
fn check_section(
    bytes: &[u8],
    at: usize,
    is_table: bool,
    next: &mut Vec<i64>,
) -> Result<(), ReadError> {
    let refuse = |what: &str| Err(ReadError::Limit(format!("a cross-reference stream {what}")));
    let mut depth = 0_usize;
    let mut tokens = Tokens::new(bytes, at);
    while let Some(token) = tokens.next() {
        match &token {
            Token::Open => depth += 1,
            Token::Close => depth = depth.saturating_sub(1),
            Token::Name(name) if name == b"Prev" || name == b"XRefStm" => {
                next.extend(tokens.clone().next().and_then(|token| token.integer()));
            }
            Token::Name(name) if !is_table => {
                let ahead = tokens.clone();
                let numbers: Vec<i64> = ahead
                    .skip_while(|token| *token == Token::Open)
                    .map_while(|token| token.integer())
                    .collect();
                match name.as_slice() {
                    b"W" if numbers.iter().any(|width| *width > 8) => {
                        return refuse("has fields of more than 8 bytes");
                    }
                    b"W" if numbers.iter().all(|width| *width <= 0) => {
                        return refuse("has entries of no bytes");
                    }
                    b"Index" if counts(&numbers) > OBJECTS => {
                        return refuse(&format!("has more than {OBJECTS} entries"));
                    }
                    b"Size" if numbers.first().is_some_and(|size| *size > OBJECTS) => {
                        return refuse(&format!("has more than {OBJECTS} entries"));
                    }
                    b"Columns" | b"Colors" | b"BitsPerComponent"
                        if numbers.first().is_some_and(|number| *number > 1024) =>
                    {
                        return refuse("has rows of more than 1024 bytes");
                    }
                    _ => {}
                }
            }
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    Ok(())
}

/// The counts of an index, which is a list of pairs of a first number and a count.
fn counts(index: &[i64]) -> i64 {
    let counts = index.chunks_exact(2).map(|pair| pair[1].max(0));
    counts.fold(0, i64::saturating_add)
}

/// Checks that lengths of streams are numbers: the parser follows them from stream to stream, as deep as they lead.
fn check_lengths(bytes: &[u8], has_streams: bool) -> Result<(), ReadError> {
    let mut lengths = HashSet::new();
    for at in all(bytes, b"/") {
        if !matches!(bytes.get(at + 1), Some(b'L' | b'#')) {
            continue;
        }
        let mut tokens = Tokens::new(&bytes[..bytes.len().min(at + 200)], at);
        if tokens.next() == Some(Token::Name(b"Length".to_vec()))
            && let (Some(first), Some(second)) = (tokens.next(), tokens.next())
            && let (Some(id), Some(_)) = (first.integer(), second.integer())
            && tokens.next() == Some(Token::Word(b"R"))
        {
            lengths.insert(id);
        }
    }
    let mut plain = HashSet::new();
    for at in all(bytes, b"obj") {
        let Some(id) = id_before(&bytes[..at]).filter(|id| lengths.contains(id)) else {
            continue;
        };
        let value = Tokens::new(bytes, at + b"obj".len()).next();
        if !matches!(value, Some(Token::Number(_))) {
            let message = format!("object {id} is the length of a stream, and no number");
            return Err(ReadError::Limit(message));
        }
        plain.insert(id);
    }
    match lengths.difference(&plain).min() {
        Some(id) if has_streams => Err(ReadError::Limit(format!(
            "object {id} is the length of a stream, and inside of another stream"
        ))),
        _ => Ok(()),
    }
}

/// The number of the object whose `obj` follows `text`.
fn id_before(text: &[u8]) -> Option<i64> {
    let number = |text: &[u8]| {
        let text = text.trim_ascii_end();
        let digits = text.iter().rev().take_while(|byte| byte.is_ascii_digit());
        let begin = text.len() - digits.count();
        (begin < text.len()).then_some((begin, text.len()))
    };
    let (begin, _) = number(text)?;
    let (begin, end) = number(&text[..begin])?;
    std::str::from_utf8(&text[begin..end]).ok()?.parse().ok()
}

/// Where `what` begins in `bytes`, from `at` on.
fn find(bytes: &[u8], at: usize, what: &[u8]) -> Option<usize> {
    let rest = bytes.get(at..)?;
    rest.windows(what.len())
        .position(|window| window == what)
        .map(|found| at + found)
}

/// Everywhere that `what` begins in `bytes`.
fn all<'a>(bytes: &'a [u8], what: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
    let windows = bytes.windows(what.len()).enumerate();
    windows.filter_map(move |(at, window)| (window == what).then_some(at))
}
