//! The steps that make one file from another: `copy`, `render`, `ifc`, `pdf`.

use super::work::{Said, StepResult, Work, input_failure, output_failure, parse_failure};
use jiff::tz::TimeZone;
use milepost_core::base::path::stem;
use milepost_core::base::source::Source;
use milepost_core::model::outcome::Outcome;
use milepost_core::model::step::TemplateFile;
use milepost_formats::{ifc, pdf};
use std::io::{self, Read, Write};
use std::sync::Arc;

/// Bytes that are read first: most files are no longer, and memory is cleared before it is read into.
const SMALL: usize = 1 << 13;

/// The one file of an input or `out`.
///
/// # Errors
/// When it is none, or a list.
pub(crate) fn source(work: &Work<'_>, name: &str) -> Result<Arc<dyn Source>, Outcome> {
    work.scope.source(name).ok_or_else(|| {
        input_failure(
            name,
            "one file was expected: it is a list, absent, or no file",
        )
    })
}

/// Copies a file.
///
/// # Errors
/// When it cannot be read or written.
pub(crate) fn copy(work: &mut Work<'_>, out: &str, input: &str) -> StepResult {
    let source = source(work, input)?;
    copy_of(work, out, &*source)?;
    Ok(Said::default())
}

/// Writes what a file holds.
///
/// # Errors
/// When it cannot be read or written.
pub(crate) fn copy_of(work: &Work<'_>, out: &str, source: &dyn Source) -> Result<(), Outcome> {
    let mut reader = source
        .open()
        .map_err(|error| input_failure(&source.name(), error))?;
    let failed = |error: io::Error| output_failure(out, error);
    let mut sink = work.outs.create(out, None).map_err(failed)?;
    let mut buffer = vec![0; SMALL];
    loop {
        let n = reader
            .read(&mut buffer)
            .map_err(|error| input_failure(&source.name(), error))?;
        if n == 0 {
            break;
        }
        sink.write_all(&buffer[..n]).map_err(failed)?;
        if n == SMALL {
            buffer.resize(1 << 17, 0);
        }
    }
    sink.finish().map_err(failed)
}

/// Writes text by a template.
///
/// # Errors
/// When a name is missing or an input cannot be read.
pub(crate) fn render(work: &mut Work<'_>, out: &str, file: &TemplateFile) -> StepResult {
    let scope = work.scope.context_of(&file.template)?;
    let template = Arc::clone(&file.template);
    let text = work.alarm.apart(move || template.render(&scope))?;
    let text = text.map_err(parse_failure)?;
    put(work, out, text.as_bytes())?;
    Ok(Said::default())
}

/// Reads a building model.
///
/// # Errors
/// When it is no model.
pub(crate) fn model(work: &mut Work<'_>, out: &str, input: &str) -> StepResult {
    let source = source(work, input)?;
    let file_name = source
        .name()
        .rsplit('/')
        .next()
        .unwrap_or_default()
        .to_owned();
    let failed = |error: io::Error| output_failure(out, error);
    let mut sink = work.outs.create(out, None).map_err(failed)?;
    let looked = || work.alarm.look();
    let found = ifc::extract_while(source.path(), &file_name, &mut sink, &looked);
    let found = found.map_err(|error| {
        // It begins with the file's own name, and its path is told already.
        let said = error.to_string();
        let own = format!("{file_name}: ");
        input_failure(&source.name(), said.strip_prefix(&own).unwrap_or(&said))
    })?;
    sink.finish().map_err(failed)?;
    let warnings = found.warnings.clone();
    let summary = serde_json::to_value(&found).map_err(parse_failure)?;
    Ok(Said {
        summary: Some(summary),
        warnings,
        ..Said::default()
    })
}

/// Sets Markdown as PDF. Its title is the first heading, else the file's name.
///
/// # Errors
/// When the Markdown cannot be read or set.
pub(crate) fn document(work: &mut Work<'_>, out: &str, input: &str) -> StepResult {
    let source = source(work, input)?;
    let mut text = String::new();
    let read = source
        .open()
        .and_then(|mut file| file.read_to_string(&mut text));
    read.map_err(|error| input_failure(&source.name(), error))?;
    // Without one, the first heading is the title, as it reads and not as it is written.
    let title = if text.lines().any(|line| line.starts_with("# ")) {
        String::new()
    } else {
        stem(&source.name()).to_owned()
    };
    let info = pdf::PdfInfo {
        title,
        date: Some(work.moment.to_zoned(TimeZone::UTC).date()),
        ..pdf::PdfInfo::default()
    };
    let set = work
        .alarm
        .apart(move || pdf::markdown_to_pdf(&text, &info))?;
    let bytes = set.map_err(parse_failure)?;
    put(work, out, &bytes)?;
    Ok(Said::default())
}

/// Writes an output or `out`.
///
/// # Errors
/// When it cannot be written.
pub(crate) fn put(work: &Work<'_>, out: &str, bytes: &[u8]) -> Result<(), Outcome> {
    let failed = |error: io::Error| output_failure(out, error);
    let mut sink = work.outs.create(out, None).map_err(failed)?;
    sink.write_all(bytes).map_err(failed)?;
    sink.finish().map_err(failed)
}
