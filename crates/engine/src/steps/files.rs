//! The steps that make one file from another: `copy`, `render`, `ifc`, `pdf`.

use super::batch_context::{
    BatchContext, StepReport, StepResult, input_failure, output_failure, parse_failure,
};
use super::worker::{self, Work};
use jiff::tz::TimeZone;
use milepost_core::base::path::stem;
use milepost_core::base::source::Source;
use milepost_core::model::outcome::Outcome;
use milepost_core::model::step::{Geometry, IfcStep, TemplateFile};
use milepost_formats::ifc::Measured;
use milepost_formats::pdf;
use milepost_store::store::read::uninterrupted;
use serde::Deserialize as _;
use serde_json::Value;
use std::io::{self, Read, Write};
use std::sync::Arc;

/// Bytes of the first read: most files are not longer, and the buffer is cleared before each read.
const SMALL: usize = 1 << 13;

/// Returns the one file of an input or `out`.
///
/// # Errors
/// When the name has no file or is a list.
pub(crate) fn source(ctx: &BatchContext<'_>, name: &str) -> Result<Arc<dyn Source>, Outcome> {
    ctx.scope
        .source(name)
        .ok_or_else(|| input_failure(name, "expected one file, found a list or no file"))
}

/// Copies a file.
///
/// # Errors
/// When it cannot be read or written.
pub(crate) fn copy(ctx: &mut BatchContext<'_>, out: &str, input: &str) -> StepResult {
    let source = source(ctx, input)?;
    copy_of(ctx, out, &*source)?;
    Ok(StepReport::default())
}

/// Writes the content of a file.
///
/// # Errors
/// When it cannot be read or written.
pub(crate) fn copy_of(
    ctx: &BatchContext<'_>,
    out: &str,
    source: &dyn Source,
) -> Result<(), Outcome> {
    let mut reader = source
        .open()
        .map_err(|error| input_failure(&source.name(), error))?;
    let failed = |error: io::Error| output_failure(out, error);
    let mut sink = ctx.outputs.create(out, None).map_err(failed)?;
    let mut buffer = vec![0; SMALL];
    loop {
        let n = uninterrupted(|| reader.read(&mut buffer))
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

/// Writes the text of a template.
///
/// # Errors
/// When a name is missing or an input cannot be read.
pub(crate) fn render(ctx: &mut BatchContext<'_>, out: &str, file: &TemplateFile) -> StepResult {
    let scope = ctx.scope.context_of(&file.template)?;
    let template = Arc::clone(&file.template);
    let text = ctx.cancel.run_on_thread(move || template.render(&scope))?;
    let text = text.map_err(parse_failure)?;
    put(ctx, out, text.as_bytes())?;
    Ok(StepReport::default())
}

/// Reads a building model.
///
/// # Errors
/// When the file is not a building model, or `geometry` is not a known word.
pub(crate) fn model(ctx: &mut BatchContext<'_>, out: &str, step: &IfcStep) -> StepResult {
    let geometry = step.geometry.as_ref();
    let geometry = geometry.map(|word| word.geometry(&ctx.base)).transpose();
    let measured = match geometry.map_err(parse_failure)? {
        None | Some(Geometry::Off) => Measured::None,
        Some(Geometry::Missing) => Measured::Missing,
        Some(Geometry::All) => Measured::All,
    };
    let source = source(ctx, &step.input)?;
    let work = Work::Ifc {
        path: source.path().into(),
        name: source.name(),
        measured,
    };
    let failed = |error: io::Error| output_failure(out, error);
    let mut sink = ctx.outputs.create(out, None).map_err(failed)?;
    let summary: Value = worker::run(ctx, work, out, &mut sink)?;
    sink.finish().map_err(failed)?;
    let warnings = Vec::deserialize(&summary["warnings"]).map_err(parse_failure)?;
    Ok(StepReport {
        summary: Some(summary),
        warnings,
        ..StepReport::default()
    })
}

/// Converts Markdown to PDF. The title is the first heading, otherwise the file name.
///
/// # Errors
/// When the Markdown cannot be read or converted.
pub(crate) fn document(ctx: &mut BatchContext<'_>, out: &str, input: &str) -> StepResult {
    let source = source(ctx, input)?;
    let mut text = String::new();
    let read = source
        .open()
        .and_then(|mut file| file.read_to_string(&mut text));
    read.map_err(|error| input_failure(&source.name(), error))?;
    // An empty title stands for the first heading.
    let title = if text.lines().any(|line| line.starts_with("# ")) {
        String::new()
    } else {
        stem(&source.name()).to_owned()
    };
    let info = pdf::PdfInfo {
        title,
        date: Some(ctx.moment.to_zoned(TimeZone::UTC).date()),
        ..pdf::PdfInfo::default()
    };
    let set = ctx
        .cancel
        .run_on_thread(move || pdf::set_markdown(&text, &info))?;
    let document = set.map_err(parse_failure)?;
    put(ctx, out, &document.bytes)?;
    let mut report = StepReport::default();
    match document.missing {
        0 => {}
        1 => report.warnings.push(
            "1 character could not be drawn, and is shown as \u{FFFD}: no font of the PDF has it"
                .to_owned(),
        ),
        count => report.warnings.push(format!(
            "{count} different characters could not be drawn, and are shown as \u{FFFD}: no font of the PDF has them"
        )),
    }
    Ok(report)
}

/// Writes an output or `out`.
///
/// # Errors
/// When it cannot be written.
pub(crate) fn put(ctx: &BatchContext<'_>, out: &str, bytes: &[u8]) -> Result<(), Outcome> {
    let failed = |error: io::Error| output_failure(out, error);
    let mut sink = ctx.outputs.create(out, None).map_err(failed)?;
    sink.write_all(bytes).map_err(failed)?;
    sink.finish().map_err(failed)
}
