//! Reads text, bookmarks, headings and code of a PDF.

use super::glyphs::PageReader;
use super::limits::{ReadError, TEXT, check};
use super::lines::lines;
use super::text::{PdfText, PdfTextError};
use super::{document, fonts, load, outline};
use lopdf::{Document, Error, ObjectId};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Name and version of the parser.
pub const VERSION: &str = "lopdf 0.44";

/// Reads the text, bookmarks, headings and code of a PDF.
///
/// # Errors
/// When the document needs a password, is truncated, cannot be parsed, or exceeds a limit.
pub fn read(bytes: &[u8]) -> Result<PdfText, PdfTextError> {
    // What comes from outside may be wrong in ways that the parser does not expect.
    let done = catch_unwind(AssertUnwindSafe(|| text_of(bytes)));
    done.unwrap_or_else(|_| Err(PdfTextError::Damaged("the reader broke down".to_owned())))
}

fn text_of(bytes: &[u8]) -> Result<PdfText, PdfTextError> {
    let doc = load::load(bytes).map_err(damaged)?;
    if doc.is_encrypted() {
        return Err(PdfTextError::Password(
            "the password is not the empty one".to_owned(),
        ));
    }
    // Collecting from the iterator would allocate what `/Count` says.
    let mut found: Vec<(u32, ObjectId)> = Vec::new();
    for (number, id) in (1..).zip(doc.page_iter()) {
        found.push((number, id));
    }
    let told = told_pages(&doc);
    if told.is_some_and(|told| told != found.len() as i64) {
        let told = told.unwrap_or_default();
        return Err(PdfTextError::Cut(format!(
            "{} of its {told} pages are there",
            found.len()
        )));
    }
    let dictionaries = fonts::collect(&doc);
    let fonts = fonts::read(&doc, &dictionaries).map_err(damaged)?;
    let reader = PageReader {
        doc: &doc,
        fonts: &fonts,
        operators: Cell::default(),
        contents: Cell::default(),
    };
    let mut pages = Vec::new();
    let mut letters = 0;
    for (number, id) in &found {
        let failed = |error| match error {
            ReadError::Limit(what) => PdfTextError::Limit(format!("page {number}: {what}")),
            ReadError::Damaged(why) => PdfTextError::Cut(format!("page {number}: {why}")),
        };
        let lines = lines(reader.read(*id).map_err(failed)?);
        letters += lines.iter().map(|line| line.text.len()).sum::<usize>();
        check(letters, TEXT, "bytes of text").map_err(failed)?;
        pages.push((*number, lines));
    }
    let numbers = found.iter().map(|(number, id)| (*id, *number)).collect();
    let (outline, has_ring) = outline::read(&doc, &numbers).map_err(damaged)?;
    Ok(document::of(pages, outline, has_ring))
}

fn damaged(error: ReadError) -> PdfTextError {
    match error {
        ReadError::Limit(what) => PdfTextError::Limit(what),
        ReadError::Damaged(error @ (Error::Decryption(_) | Error::InvalidPassword)) => {
            PdfTextError::Password(error.to_string())
        }
        ReadError::Damaged(error) => PdfTextError::Damaged(error.to_string()),
    }
}

/// How many pages the document says that it has.
fn told_pages(doc: &Document) -> Option<i64> {
    let pages = doc.catalog().ok()?.get_deref(b"Pages", doc).ok()?;
    let count = pages.as_dict().ok()?.get_deref(b"Count", doc).ok()?;
    count.as_i64().ok()
}
