//! JSON text read through a small buffer: values are skipped without being built, and one at a time is kept.
//!
//! It is as strict as `serde_json`, uses the same messages, and is several times faster than `serde_json` from a reader.

mod checked;
mod value;
mod words;

pub(crate) use checked::{Key, SkipChecked, add_key};
pub(crate) use value::{
    LARGEST, check_integers, memory_of, note_rounding, repeated_key, too_large, twice,
};
pub use value::{canonical, parse, parse_bytes};
pub use words::{key_text, kind, plain_text};

use std::io::{self, Read};

/// Bytes that are read at once.
const CHUNK: usize = 1 << 16;
/// No value is kept.
const NONE: usize = usize::MAX;

/// Why a text is not JSON.
#[derive(Debug)]
pub enum Fault {
    /// The text, from its beginning: line and column from 1, and what is wrong.
    Text {
        line: usize,
        /// The column, in bytes.
        column: usize,
        message: String,
        /// True if the text ends too early.
        ended: bool,
    },
    /// It could not be read.
    Io(io::Error),
}

/// A JSON text that is read from a reader in one pass.
pub struct Json<R> {
    reader: R,
    buffer: Vec<u8>,
    /// The next byte.
    at: usize,
    /// The start of the kept value; `NONE` without one.
    held: usize,
    /// Bytes, line feeds and bytes of the last line before the buffer.
    before: u64,
    lines: usize,
    column: usize,
    /// The closing brackets of the value that is skipped.
    open: Vec<u8>,
}

impl<R: Read> Json<R> {
    /// Reads from a reader, which needs no buffer.
    pub fn new(reader: R) -> Self {
        Self {
            reader,
            buffer: Vec::new(),
            at: 0,
            held: NONE,
            before: 0,
            lines: 0,
            column: 0,
            open: Vec::new(),
        }
    }

    /// Reads more bytes. Bytes before the kept value are dropped.
    #[cold]
    fn fill(&mut self) -> Result<bool, Fault> {
        let keep = self.held.min(self.at);
        let (lines, column) = place(&self.buffer[..keep], (self.lines, self.column));
        (self.lines, self.column) = (lines, column);
        self.before += keep as u64;
        self.buffer.drain(..keep);
        self.at -= keep;
        if self.held != NONE {
            self.held -= keep;
        }
        let filled = self.buffer.len();
        if filled > LARGEST {
            return Err(self.wrong(&too_large()));
        }
        // A long value is read in ever larger pieces, so that it is moved a few times only.
        self.buffer.resize(filled + CHUNK.max(filled), 0);
        let read = loop {
            match self.reader.read(&mut self.buffer[filled..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other,
            }
        };
        let read = match read {
            Ok(read) => read,
            Err(error) => {
                self.buffer.truncate(filled);
                return Err(Fault::Io(error));
            }
        };
        self.buffer.truncate(filled + read);
        Ok(read > 0)
    }

    #[inline]
    fn byte(&mut self) -> Result<Option<u8>, Fault> {
        if self.at == self.buffer.len() && !self.fill()? {
            return Ok(None);
        }
        Ok(Some(self.buffer[self.at]))
    }

    /// Returns the next byte that is not white space, without consuming it.
    ///
    /// # Errors
    /// If the text cannot be read.
    #[inline]
    pub fn peek(&mut self) -> Result<Option<u8>, Fault> {
        loop {
            match self.byte()? {
                Some(b' ' | b'\n' | b'\t' | b'\r') => self.at += 1,
                other => return Ok(other),
            }
        }
    }

    /// Returns an error at the next byte.
    pub fn wrong(&self, message: &str) -> Fault {
        let seen = self.buffer.len().min(self.at + 1);
        let (line, column) = place(&self.buffer[..seen], (self.lines, self.column));
        Fault::Text {
            line: line + 1,
            column,
            message: message.to_owned(),
            ended: false,
        }
    }

    fn ended(&self, inside: &str) -> Fault {
        let (line, column) = place(&self.buffer, (self.lines, self.column));
        Fault::Text {
            line: line + 1,
            column,
            message: format!("EOF while parsing {inside}"),
            ended: true,
        }
    }

    /// Returns the error of `serde_json` for the kept value, with its place in the whole text.
    fn of_held(&self, error: &serde_json::Error) -> Fault {
        let (lines, column) = place(&self.buffer[..self.held], (self.lines, self.column));
        let message = error.to_string();
        Fault::Text {
            line: lines + error.line(),
            column: error.column() + if error.line() == 1 { column } else { 0 },
            message: message
                .split(" at line ")
                .next()
                .unwrap_or_default()
                .to_owned(),
            ended: error.is_eof(),
        }
    }

    /// Enters a list or an object (`open` is its bracket). Returns true if it has a first item.
    ///
    /// # Errors
    /// The errors of [`Json::skip`].
    pub fn enter(&mut self, open: u8) -> Result<bool, Fault> {
        self.at += 1;
        match self.peek()? {
            None => Err(self.ended(name(open))),
            Some(byte) if byte == closing(open) => {
                self.at += 1;
                Ok(false)
            }
            Some(_) => Ok(true),
        }
    }

    /// Continues in a list or an object. Returns true if another item follows.
    ///
    /// # Errors
    /// The errors of [`Json::skip`].
    pub fn next(&mut self, open: u8) -> Result<bool, Fault> {
        match self.peek()? {
            None => Err(self.ended(name(open))),
            Some(byte) if byte == closing(open) => {
                self.at += 1;
                Ok(false)
            }
            Some(b',') => {
                self.at += 1;
                match self.peek()? {
                    None => Err(self.ended(if open == b'[' { "a value" } else { name(open) })),
                    Some(byte) if byte == closing(open) => Err(self.wrong("trailing comma")),
                    Some(_) => Ok(true),
                }
            }
            Some(_) if open == b'[' => Err(self.wrong("expected `,` or `]`")),
            Some(_) => Err(self.wrong("expected `,` or `}`")),
        }
    }

    /// Enters the values that the steps of a pointer name. Returns false if there is no such value.
    ///
    /// # Errors
    /// The errors of [`Json::skip`].
    pub fn enter_all(&mut self, steps: &[String]) -> Result<bool, Fault> {
        for step in steps {
            let open = self.peek()?;
            let is_list = open == Some(b'[');
            let Some(open) = open.filter(|open| matches!(open, b'[' | b'{')) else {
                return Ok(false);
            };
            let is_index = !step.is_empty() && step.bytes().all(|byte| byte.is_ascii_digit());
            let index: Option<u64> = is_index.then(|| step.parse().ok()).flatten();
            if is_list && index.is_none() {
                return Ok(false);
            }
            let mut more = self.enter(open)?;
            let mut at = 0;
            loop {
                if !more {
                    return Ok(false);
                }
                let is_it = if is_list {
                    index == Some(at)
                } else {
                    self.key(|key| key == step)?
                };
                if is_it {
                    break;
                }
                self.skip()?;
                more = self.next(open)?;
                at += 1;
            }
        }
        Ok(true)
    }

    /// Reads a key with its colon, and returns the result of `read`.
    ///
    /// # Errors
    /// The errors of [`Json::skip`].
    pub fn key<T>(&mut self, read: impl FnOnce(&str) -> T) -> Result<T, Fault> {
        if self.peek()? != Some(b'"') {
            return Err(self.wrong("key must be a string"));
        }
        self.held = self.at;
        self.string()?;
        let text = std::str::from_utf8(&self.buffer[self.held..self.at]);
        let result = match text {
            Ok(text) if !text.contains('\\') => read(&text[1..text.len() - 1]),
            Ok(text) => match serde_json::from_str::<String>(text) {
                Ok(key) => read(&key),
                Err(error) => return Err(self.of_held(&error)),
            },
            Err(_) => return Err(self.wrong("invalid unicode code point")),
        };
        self.held = NONE;
        self.colon()?;
        Ok(result)
    }

    fn colon(&mut self) -> Result<(), Fault> {
        match self.peek()? {
            Some(b':') => {
                self.at += 1;
                Ok(())
            }
            Some(_) => Err(self.wrong("expected `:`")),
            None => Err(self.ended("an object")),
        }
    }

    /// Passes the text of the next value to `take`, with its offset in bytes. Errors of `take` get their place in the whole
    /// text.
    ///
    /// # Errors
    /// The errors of [`Json::skip`]; errors of `take` are `Ok(Err(_))`.
    pub fn value<T, E>(
        &mut self,
        take: impl FnOnce(&str, u64) -> Result<T, TakeError<E>>,
    ) -> Result<Result<T, E>, Fault> {
        self.peek()?;
        self.held = self.at;
        self.skip()?;
        let Ok(text) = std::str::from_utf8(&self.buffer[self.held..self.at]) else {
            return Err(self.wrong("invalid unicode code point"));
        };
        match take(text, self.before + self.held as u64) {
            Ok(taken) => {
                self.held = NONE;
                Ok(Ok(taken))
            }
            Err(TakeError::Text(error)) => Err(self.of_held(&error)),
            Err(TakeError::Other(error)) => Ok(Err(error)),
        }
    }

    /// Skips the next value.
    ///
    /// # Errors
    /// If the text is not JSON or cannot be read.
    pub fn skip(&mut self) -> Result<(), Fault> {
        let depth = self.open.len();
        loop {
            match self.peek()? {
                Some(b'"') => self.string()?,
                Some(b'-' | b'0'..=b'9') => self.number()?,
                Some(b't') => self.word(b"true")?,
                Some(b'f') => self.word(b"false")?,
                Some(b'n') => self.word(b"null")?,
                Some(open @ (b'[' | b'{')) => {
                    if self.enter(open)? {
                        self.open.push(open);
                        if open == b'{' {
                            self.pass_key()?;
                        }
                        continue;
                    }
                }
                Some(_) => return Err(self.wrong("expected value")),
                None => return Err(self.ended("a value")),
            }
            loop {
                if self.open.len() == depth {
                    return Ok(());
                }
                let open = self.open[self.open.len() - 1];
                if self.next(open)? {
                    if open == b'{' {
                        self.pass_key()?;
                    }
                    break;
                }
                self.open.pop();
            }
        }
    }

    fn pass_key(&mut self) -> Result<(), Fault> {
        if self.peek()? != Some(b'"') {
            return Err(self.wrong("key must be a string"));
        }
        self.string()?;
        self.colon()
    }

    fn string(&mut self) -> Result<(), Fault> {
        self.at += 1;
        loop {
            match special(&self.buffer[self.at..]) {
                None => {
                    self.at = self.buffer.len();
                    if !self.fill()? {
                        return Err(self.ended("a string"));
                    }
                }
                Some(ahead) => {
                    self.at += ahead;
                    match self.buffer[self.at] {
                        b'"' => {
                            self.at += 1;
                            return Ok(());
                        }
                        b'\\' => self.escape()?,
                        _ => {
                            let message =
                                "control character (\\u0000-\\u001F) found while parsing a string";
                            return Err(self.wrong(message));
                        }
                    }
                }
            }
        }
    }

    fn escape(&mut self) -> Result<(), Fault> {
        self.at += 1;
        match self.byte()? {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 1,
            Some(b'u') => {
                self.at += 1;
                for _ in 0..4 {
                    match self.byte()? {
                        Some(byte) if byte.is_ascii_hexdigit() => self.at += 1,
                        Some(_) => return Err(self.wrong("invalid escape")),
                        None => return Err(self.ended("a string")),
                    }
                }
            }
            Some(_) => return Err(self.wrong("invalid escape")),
            None => return Err(self.ended("a string")),
        }
        Ok(())
    }

    fn number(&mut self) -> Result<(), Fault> {
        if self.byte()? == Some(b'-') {
            self.at += 1;
        }
        if self.byte()? == Some(b'0') {
            self.at += 1;
            if let Some(b'0'..=b'9') = self.byte()? {
                return Err(self.wrong("invalid number"));
            }
        } else {
            self.digits()?;
        }
        if self.byte()? == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.byte()? {
            self.at += 1;
            if let Some(b'+' | b'-') = self.byte()? {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    /// At least one.
    fn digits(&mut self) -> Result<(), Fault> {
        match self.byte()? {
            Some(b'0'..=b'9') => {}
            _ => return Err(self.wrong("invalid number")),
        }
        while let Some(b'0'..=b'9') = self.byte()? {
            self.at += 1;
        }
        Ok(())
    }

    fn word(&mut self, word: &[u8]) -> Result<(), Fault> {
        for expected in word {
            match self.byte()? {
                Some(byte) if byte == *expected => self.at += 1,
                Some(_) => return Err(self.wrong("expected ident")),
                None => return Err(self.ended("a value")),
            }
        }
        Ok(())
    }

    /// Checks that nothing follows.
    ///
    /// # Errors
    /// The errors of [`Json::skip`].
    pub fn end(&mut self) -> Result<(), Fault> {
        match self.peek()? {
            None => Ok(()),
            Some(_) => Err(self.wrong("trailing characters")),
        }
    }
}

/// Why a value could not be read.
#[derive(Debug)]
pub enum TakeError<E> {
    /// It is not what the caller expects.
    Text(serde_json::Error),
    /// Another reason.
    Other(E),
}

impl<E> From<serde_json::Error> for TakeError<E> {
    fn from(error: serde_json::Error) -> Self {
        Self::Text(error)
    }
}

/// Returns the place of the first byte that ends a run of plain bytes in a string: a quote, a backslash or a control character.
fn special(bytes: &[u8]) -> Option<usize> {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    const HIGHEST: u64 = ONES << 7;
    let words = bytes.chunks_exact(8);
    let rest = words.remainder();
    for (at, word) in words.enumerate() {
        let word = word.try_into().map_or(0, u64::from_le_bytes);
        // The lowest of these bits is that of the first byte below the limit.
        let below = |word: u64, limit: u64| word.wrapping_sub(ONES * limit) & !word & HIGHEST;
        let quote = below(word ^ (ONES * u64::from(b'"')), 1);
        let backslash = below(word ^ (ONES * u64::from(b'\\')), 1);
        let found = quote | backslash | below(word, 0x20);
        if found != 0 {
            return Some(at * 8 + found.trailing_zeros() as usize / 8);
        }
    }
    let is_special = |&byte: &u8| matches!(byte, b'"' | b'\\') || byte < 0x20;
    let in_rest = rest.iter().position(is_special)?;
    Some(bytes.len() - rest.len() + in_rest)
}

fn closing(open: u8) -> u8 {
    if open == b'[' { b']' } else { b'}' }
}

fn name(open: u8) -> &'static str {
    if open == b'[' { "a list" } else { "an object" }
}

/// Returns the number of line feeds and of bytes after the last one, up to the end of `bytes`, starting from the given counts.
fn place(bytes: &[u8], (lines, column): (usize, usize)) -> (usize, usize) {
    let is_feed = |byte: &u8| *byte == b'\n';
    match bytes.iter().rposition(is_feed) {
        None => (lines, column + bytes.len()),
        Some(last) => {
            let before = bytes[..last].iter().filter(|byte| is_feed(byte)).count();
            (lines + before + 1, bytes.len() - last - 1)
        }
    }
}

#[cfg(test)]
mod tests;
