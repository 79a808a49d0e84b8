//! Files of a scope as bytes and text, and why a name has no value.

use std::io::{BufRead, BufReader, Read};

use crate::base::foreign_text::{EncodingError, is_utf16, without_mark};
use crate::base::source::Source;
use crate::expr::json;
use crate::expr::place::listed;
use crate::expr::select::SelectError;

/// Why a name has no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScopeError {
    /// The name is unknown.
    #[error("`{name}` is not a name of this stage; it has {}{}", listed(.has.iter().map(String::as_str)), did_you_mean(.near.as_deref()))]
    Unknown {
        name: String,
        /// The nearest name that is there.
        near: Option<String>,
        /// The names that are there.
        has: Vec<String>,
    },
    /// The file has no content to show.
    #[error("`{name}` ({file}) is a binary file without a value; use `paths.{name}`")]
    Binary { name: String, file: String },
    /// The file could not be read.
    #[error("{file}: cannot be read: {message}")]
    Read {
        file: String,
        /// The error of the file system.
        message: String,
    },
    /// The content is not of its format.
    #[error("{file}: {message}")]
    Parse {
        file: String,
        /// The problem, with its line.
        message: String,
    },
    /// A plain path does not fit the content.
    #[error("{file}: {error}")]
    Unfit {
        /// The file, or the name of a value.
        file: String,
        /// Where it does not fit.
        error: Box<SelectError>,
    },
}

fn did_you_mean(near: Option<&str>) -> String {
    near.map(|near| format!("; did you mean `{near}`?"))
        .unwrap_or_default()
}

/// Opens a source.
pub(crate) fn open(source: &dyn Source) -> Result<Box<dyn Read + Send>, ScopeError> {
    source.open().map_err(|error| read_error(source, &error))
}

pub(crate) fn read_error(source: &dyn Source, error: &std::io::Error) -> ScopeError {
    ScopeError::Read {
        file: source.name(),
        message: error.to_string(),
    }
}

pub(crate) fn wrong(source: &dyn Source, message: impl Into<String>) -> ScopeError {
    ScopeError::Parse {
        file: source.name(),
        message: message.into(),
    }
}

pub(crate) fn text(source: &dyn Source) -> Result<String, ScopeError> {
    text_within(source, json::LARGEST)
}

pub(super) fn text_within(source: &dyn Source, most: usize) -> Result<String, ScopeError> {
    // Most files are not longer, so one read suffices.
    let mut bytes = Vec::with_capacity(1 << 13);
    open(source)?
        .take(most as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| read_error(source, &error))?;
    if bytes.len() > most {
        return Err(wrong(source, json::too_large()));
    }
    if is_utf16(&bytes) {
        return Err(wrong(source, EncodingError::Utf16.to_string()));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let before = String::from_utf8_lossy(&error.as_bytes()[..error.utf8_error().valid_up_to()]);
        let line = before.matches('\n').count() + 1;
        wrong(
            source,
            format!("line {line} is not UTF-8 text; a binary file is used by `paths`"),
        )
    })?;
    Ok(match without_mark(&text) {
        bare if bare.len() < text.len() => bare.to_owned(),
        _ => text,
    })
}

/// The lines of a file, which may lack ends.
pub(crate) struct Lines<'s> {
    source: &'s dyn Source,
    reader: Box<dyn BufRead + Send>,
    longest: usize,
    line: String,
}

impl<'s> Lines<'s> {
    pub(crate) fn of(source: &'s dyn Source) -> Result<Self, ScopeError> {
        Self::within(source, json::LARGEST)
    }

    fn within(source: &'s dyn Source, longest: usize) -> Result<Self, ScopeError> {
        let reader = BufReader::with_capacity(1 << 16, open(source)?);
        Ok(Self {
            source,
            reader: Box::new(reader),
            longest,
            line: String::new(),
        })
    }

    /// Returns the next line without its end.
    pub(crate) fn next(&mut self) -> Result<Option<&str>, ScopeError> {
        self.line.clear();
        let mut limited = (&mut self.reader).take(self.longest as u64 + 1);
        let read = limited.read_line(&mut self.line);
        if read.map_err(|error| read_error(self.source, &error))? == 0 {
            return Ok(None);
        }
        if self.line.len() > self.longest {
            return Err(wrong(self.source, json::too_large()));
        }
        let line = self.line.strip_suffix('\n').unwrap_or(&self.line);
        Ok(Some(line.strip_suffix('\r').unwrap_or(line)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;
    use std::path::Path;

    /// A file without end.
    struct Endless(&'static str);

    impl Source for Endless {
        fn name(&self) -> String {
            self.0.to_owned()
        }

        fn path(&self) -> &Path {
            Path::new(self.0)
        }

        fn open(&self) -> io::Result<Box<dyn Read + Send>> {
            Ok(Box::new(
                io::Cursor::new("1\r\n2\n").chain(io::repeat(b'0')),
            ))
        }
    }

    #[test]
    fn a_file_without_end_is_refused() {
        let file = Endless("a.ndjson");
        let refused = wrong(&file, json::too_large());
        assert_eq!(text_within(&file, 1 << 20), Err(refused.clone()));
        let mut lines = Lines::within(&file, 1 << 20).unwrap();
        assert_eq!(lines.next(), Ok(Some("1")));
        assert_eq!(lines.next(), Ok(Some("2")));
        assert_eq!(lines.next(), Err(refused));
    }
}
