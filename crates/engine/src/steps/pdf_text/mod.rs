//! The step `pdf_text`: extracts the text of a PDF page by page, with the first engine whose result is plausible.

mod poppler;

use super::batch_context::{BatchContext, StepReport, StepResult, input_failure, parse_failure};
use super::files;
use milepost_core::model::outcome::{Outcome, OutcomeKind};
use milepost_core::model::step::PdfEngine;
use milepost_formats::pdf_text::{self as formats, PdfText, PdfTextError, TextCounts};
use serde_json::json;
use std::io::Read as _;
use std::sync::Arc;
use std::time::Duration;

/// Reads the text of a PDF.
///
/// # Errors
/// The outcome `engines` if no engine returns text, with the most informative reason.
pub(crate) fn pdf_text(
    ctx: &mut BatchContext<'_>,
    out: &str,
    input: &str,
    engines: &[PdfEngine],
    time: Duration,
) -> StepResult {
    let source = files::source(ctx, input)?;
    let name = source.name();
    let mut bytes = Vec::new();
    let read = source
        .open()
        .and_then(|mut file| file.read_to_end(&mut bytes));
    read.map_err(|error| input_failure(&name, error))?;
    let failed = |fault: &PdfTextError, details: Vec<String>| {
        let message = format!("`{name}` {fault}");
        Outcome::new(OutcomeKind::Engines, message).with_details(details)
    };
    formats::check_file(&bytes).map_err(|fault| failed(&fault, Vec::new()))?;
    let bytes = Arc::new(bytes);
    let mut faults: Vec<(PdfEngine, PdfTextError)> = Vec::new();
    for engine in engines {
        let found = match engine {
            PdfEngine::Builtin => {
                let bytes = Arc::clone(&bytes);
                let found = ctx.cancel.run_on_thread(move || formats::read(&bytes))?;
                found.map(|text| (text, formats::VERSION.to_owned()))
            }
            PdfEngine::Pdftotext => match poppler::version(ctx)? {
                Err(fault) => Err(fault),
                Ok(version) => {
                    let found = poppler::read(ctx, source.path(), time)?;
                    found.map(|text| (text, version))
                }
            },
        };
        let checked = found.and_then(|(text, version)| {
            let counted = formats::check_text(&text)?;
            Ok((text, version, counted))
        });
        match checked {
            Ok((text, version, counted)) => {
                let warnings = warnings(&faults, *engine, &counted);
                return write(ctx, out, *engine, &version, &text, &counted, warnings);
            }
            Err(fault) => faults.push((*engine, fault)),
        }
    }
    let details = faults
        .iter()
        .map(|(engine, fault)| format!("{}: {fault}", engine.name()));
    let details: Vec<String> = details.collect();
    let told = faults
        .iter()
        .map(|(_, fault)| fault)
        .max_by_key(|fault| fault.weight());
    let none = PdfTextError::Program("no engine is named".to_owned());
    Err(failed(told.unwrap_or(&none), details))
}

/// Returns warnings about an extracted text.
fn warnings(
    faults: &[(PdfEngine, PdfTextError)],
    engine: PdfEngine,
    counted: &TextCounts,
) -> Vec<String> {
    let mut warnings = Vec::new();
    for (other, fault) in faults {
        let (other, engine) = (other.name(), engine.name());
        warnings.push(format!("read by {engine}, since by {other} it {fault}"));
    }
    if !counted.empty.is_empty() {
        let pages: Vec<String> = counted.empty.iter().map(u32::to_string).collect();
        let pages = pages.join(", ");
        warnings.push(format!("no text on page {pages}: blank, or a picture"));
    }
    if counted.unknown > 0 {
        let unknown = counted.unknown;
        warnings.push(format!("{unknown} letters have no Unicode"));
    }
    warnings
}

fn write(
    ctx: &BatchContext<'_>,
    out: &str,
    engine: PdfEngine,
    version: &str,
    text: &PdfText,
    counted: &TextCounts,
    warnings: Vec<String>,
) -> StepResult {
    let content = json!({
        "engine": engine.name(),
        "total_pages": text.pages.len(),
        "pages": text.pages,
        "outline": text.outline,
        "headings": text.headings,
        "warnings": warnings,
    });
    let mut bytes = serde_json::to_vec_pretty(&content).map_err(parse_failure)?;
    bytes.push(b'\n');
    files::put(ctx, out, &bytes)?;
    let summary = json!({
        "engine": engine.name(),
        // Installed engines differ between machines, so the engine is a warning and no part of the output.
        "engine_version": version,
        "pages": text.pages.len(),
        "letters": counted.letters,
        "letters_without_unicode": counted.unknown,
        "pages_without_text": counted.empty,
    });
    Ok(StepReport {
        summary: Some(summary),
        warnings,
        ..StepReport::default()
    })
}
