//! `--log-file`: a debug log without keys and control characters.

use super::env::Environment;
use milepost_core::base::redact::Redactor;
use milepost_core::base::visible::visible_lines;
use milepost_engine::ops::project::{OpsError, append_file};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Mutex;
use tracing_subscriber::fmt;

/// Starts a debug log, from which the keys of the environment are removed.
///
/// # Errors
/// If the file cannot be created.
pub(crate) fn begin(file: &Path, environment: &Environment) -> Result<(), OpsError> {
    let is_key = |name: &str| {
        let words = ["KEY", "TOKEN", "SECRET", "PASSWORD"];
        words.iter().any(|word| name.ends_with(word))
    };
    let variables = environment.variables.iter();
    let keys = variables.filter(|(name, _)| is_key(name));
    let writer = Hiding {
        file: append_file(file)?,
        redactor: Redactor::new(keys.map(|(_, value)| value.clone())),
    };
    let log = fmt()
        .with_writer(Mutex::new(writer))
        .with_ansi(false)
        .with_max_level(tracing::Level::DEBUG)
        .finish();
    tracing::subscriber::set_global_default(log).map_err(|error| OpsError::Usage(error.to_string()))
}

/// Removes keys and control characters from each record. A record arrives in one piece.
struct Hiding<W> {
    file: W,
    redactor: Redactor,
}

impl<W: Write> Write for Hiding<W> {
    fn write(&mut self, record: &[u8]) -> io::Result<usize> {
        let record_shown = self.redactor.bytes(record);
        let shown = String::from_utf8_lossy(&record_shown);
        self.file.write_all(visible_lines(&shown).as_bytes())?;
        Ok(record.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
