//! The step `pdf_text`: extracts the text of a PDF page by page, with the first engine whose result is plausible.

mod poppler;

use super::batch_context::{BatchContext, StepReport, StepResult, parse_failure};
use super::files;
use super::worker::{self, Work};
use milepost_core::base::digest::Digest;
use milepost_core::base::source::Source;
use milepost_core::base::words::count;
use milepost_core::model::outcome::{Outcome, OutcomeKind};
use milepost_core::model::step::PdfEngine;
use milepost_formats::pdf_text::{self as formats, PdfText, PdfTextError, TextCounts};
use serde_json::json;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The pages of PDFs that this process has read, as [`pages`] returns them.
static KNOWN: Mutex<BTreeMap<Digest, Option<(u64, u64)>>> = Mutex::new(BTreeMap::new());

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
    if engines.first() == Some(&PdfEngine::Pdftotext) {
        let work = Work::PdfCheck {
            path: OsString::from(source.path()),
            name: name.clone(),
        };
        let checked: Result<(), _> = worker::run(ctx, work, out, &mut io::sink())?;
        checked.map_err(|fault| failed(&name, &fault, Vec::new()))?;
    }
    let mut faults: Vec<(PdfEngine, PdfTextError)> = Vec::new();
    let mut ended = None;
    for engine in engines {
        let found = match engine {
            PdfEngine::Builtin => by_parser(ctx, &*source, out, &mut ended)?,
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
                let warnings = warnings(&faults, *engine, &text, &counted);
                return write(ctx, out, *engine, &version, &text, &counted, warnings);
            }
            Err(fault) => faults.push((*engine, fault)),
        }
    }
    let details = faults
        .iter()
        .map(|(engine, fault)| format!("{}: {fault}", engine.name()));
    let details: Vec<String> = details.collect();
    if let Some(outcome) = ended {
        return Err(outcome.with_details(details));
    }
    let told = faults
        .iter()
        .map(|(_, fault)| fault)
        .max_by_key(|fault| fault.weight());
    let none = PdfTextError::Program("no engine is named".to_owned());
    Err(failed(&name, told.unwrap_or(&none), details))
}

/// Reads the text in a worker, with the version of the parser. A worker that its limits end is kept in `ended`.
///
/// # Errors
/// The outer error if the file is not a PDF, or the run is stopped.
fn by_parser(
    ctx: &BatchContext<'_>,
    source: &dyn Source,
    out: &str,
    ended: &mut Option<Outcome>,
) -> Result<Result<(PdfText, String), PdfTextError>, Outcome> {
    let work = Work::PdfText {
        path: OsString::from(source.path()),
        name: source.name(),
    };
    let found: Result<Result<Result<PdfText, _>, PdfTextError>, _> =
        worker::run(ctx, work, out, &mut io::sink());
    match found {
        Ok(Ok(read)) => Ok(read.map(|text| (text, formats::VERSION.to_owned()))),
        Ok(Err(no_pdf)) => Err(failed(&source.name(), &no_pdf, Vec::new())),
        // Another engine may do better.
        Err(outcome) if outcome.is_about_limits() => {
            let fault = format!("ended its reader ({})", outcome.code);
            ended.get_or_insert(outcome);
            Ok(Err(PdfTextError::Program(fault)))
        }
        Err(outcome) => Err(outcome),
    }
}

/// Returns the number of pages, and the bytes of their text. `None` if Milepost cannot read all of it.
///
/// # Errors
/// If the run is stopped.
pub(crate) fn pages(
    ctx: &BatchContext<'_>,
    source: &dyn Source,
    bytes: &[u8],
) -> Result<Option<(u64, u64)>, Outcome> {
    let digest = Digest::of(bytes);
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(&pages) = known().get(&digest) {
        return Ok(pages);
    }
    let (text, _) = match by_parser(ctx, source, &source.name(), &mut None) {
        Ok(Ok(read)) => read,
        Err(outcome) if outcome.kind != OutcomeKind::Engines => return Err(outcome),
        Ok(Err(_)) | Err(_) => return Ok(None),
    };
    let is_whole = text.with_notes.is_empty();
    let bytes = text.pages.iter().map(|page| page.text.len() as u64).sum();
    let pages = is_whole.then_some((text.pages.len() as u64, bytes));
    known().insert(digest, pages);
    Ok(pages)
}

fn failed(name: &str, fault: &PdfTextError, details: Vec<String>) -> Outcome {
    let message = format!("`{name}` {fault}");
    Outcome::new(OutcomeKind::Engines, message).with_details(details)
}

/// Returns warnings about an extracted text.
fn warnings(
    faults: &[(PdfEngine, PdfTextError)],
    engine: PdfEngine,
    text: &PdfText,
    counted: &TextCounts,
) -> Vec<String> {
    let mut warnings = Vec::new();
    for (other, fault) in faults {
        let (other, engine) = (other.name(), engine.name());
        warnings.push(format!("read by {engine}; with {other}, it {fault}"));
    }
    let listed = |pages: &[u32]| {
        let pages: Vec<String> = pages.iter().map(u32::to_string).collect();
        pages.join(", ")
    };
    if !counted.empty.is_empty() {
        let pages = listed(&counted.empty);
        warnings.push(format!("no text on page {pages}: blank, or a picture"));
    }
    if !text.with_notes.is_empty() {
        let pages = listed(&text.with_notes);
        warnings.push(format!(
            "the form fields and notes on page {pages} are not read: print the document to a new PDF"
        ));
    }
    if counted.unknown > 0 {
        let unknown = counted.unknown as u64;
        let unknown = count(unknown, "letter has", "letters have");
        warnings.push(format!("{unknown} no Unicode"));
    }
    if text.has_ring {
        warnings.push("the bookmarks link to themselves: each was read once".to_owned());
    }
    warnings
}

#[expect(clippy::too_many_arguments)]
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
