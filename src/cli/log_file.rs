//! `--log-file`: a debug log of JSON lines with the words of the journal, without keys and control characters.

use super::env::Environment;
use milepost_core::base::redact::Redactor;
use milepost_core::base::visible::visible_lines;
use milepost_engine::ops::project::{OpsError, append_file};
use serde_json::{Map, Value};
use std::fmt::{self, Debug};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Mutex;
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime as _, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

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
    let log = tracing_subscriber::fmt()
        .with_ansi(false)
        .event_format(JsonLine)
        .with_writer(Mutex::new(writer))
        .with_max_level(tracing::Level::DEBUG)
        .finish();
    tracing::subscriber::set_global_default(log).map_err(|error| OpsError::Usage(error.to_string()))
}

/// Writes an event as one line: time, level, and its fields. A field `record` is JSON, whose fields become those of the line.
struct JsonLine;

impl<S, N> FormatEvent<S, N> for JsonLine
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut time = String::new();
        SystemTime.format_time(&mut Writer::new(&mut time))?;
        let level = event.metadata().level().as_str().to_ascii_lowercase();
        let mut fields = LineFields::default();
        fields.0.insert("timestamp".to_owned(), time.into());
        fields.0.insert("level".to_owned(), level.into());
        event.record(&mut fields);
        writeln!(writer, "{}", Value::Object(fields.0))
    }
}

#[derive(Default)]
struct LineFields(Map<String, Value>);

impl Visit for LineFields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let text = format!("{value:?}");
        match serde_json::from_str(&text) {
            Ok(Value::Object(record)) if field.name() == "record" => self.0.extend(record),
            _ => drop(self.0.insert(field.name().to_owned(), text.into())),
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.into());
    }
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
