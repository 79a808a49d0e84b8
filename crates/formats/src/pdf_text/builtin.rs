//! Reads text, bookmarks, headings and code of a PDF.

use super::glyphs::PageReader;
use super::limits::{ReadError, TEXT, check};
use super::lines::lines;
use super::text::{PdfText, PdfTextError};
use super::{document, fonts, load, outline};
use lopdf::{Document, ObjectId};
use std::cell::Cell;

/// Name and version of the parser.
pub(crate) const VERSION: &str = "lopdf 0.44";

/// Reads the text, bookmarks, headings and code of a PDF.
///
/// # Errors
/// When the document needs a password, is truncated, cannot be parsed, or exceeds a limit.
pub(crate) fn read(bytes: &[u8]) -> Result<PdfText, PdfTextError> {
    let doc = load::load(bytes).map_err(ReadError::of_document)?;
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
    let fonts = fonts::read(&doc, &dictionaries).map_err(ReadError::of_document)?;
    let reader = PageReader {
        doc: &doc,
        fonts: &fonts,
        operators: Cell::default(),
        contents: Cell::default(),
    };
    let mut pages = Vec::new();
    let mut letters = 0;
    for (number, id) in &found {
        let failed = |error: ReadError| error.of_page(*number);
        let lines = lines(reader.read(*id).map_err(failed)?);
        letters += lines.iter().map(|line| line.text.len()).sum::<usize>();
        check(letters, TEXT, "bytes of text").map_err(failed)?;
        pages.push((*number, lines));
    }
    let numbers = found.iter().map(|(number, id)| (*id, *number)).collect();
    let (outline, has_ring) = outline::read(&doc, &numbers).map_err(ReadError::of_document)?;
    Ok(document::of(pages, outline, has_ring))
}

/// How many pages the document says that it has.
fn told_pages(doc: &Document) -> Option<i64> {
    let pages = doc.catalog().ok()?.get_deref(b"Pages", doc).ok()?;
    let count = pages.as_dict().ok()?.get_deref(b"Count", doc).ok()?;
    count.as_i64().ok()
}
