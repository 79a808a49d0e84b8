//! Reads text, bookmarks, headings and code of a PDF. The parser searches a damaged file for its objects, and reads an object when
//! it is needed, so a broken one that no page needs does no harm.
//!
//! Damage that would change the text is an error: a missing page, or content that breaks off. The parser inflates object streams as
//! a whole, which this reader cannot limit. Run it in a process with limits.

use super::document;
use super::limits::{NOTES, ReadError, TEXT, check};
use super::lines::lines;
use super::outline;
use super::pages::PageReader;
use super::text::{PdfText, PdfTextError};
use hayro_syntax::object::dict::keys::{
    ANNOTS, CONTENTS as NOTE, COUNT, PAGES, PARENT, SUBTYPE, V, WIDGET,
};
use hayro_syntax::object::{Array, Dict, Name, Object};
use hayro_syntax::{DecryptionError, LoadPdfError, Pdf};

/// Reads the text, bookmarks, headings and code of a PDF.
///
/// # Errors
/// When the document needs a password, pages or parts of pages are missing, nothing is found in it, or it exceeds a limit.
pub(crate) fn read(bytes: &[u8]) -> Result<PdfText, PdfTextError> {
    let pdf = Pdf::new(bytes.to_vec()).map_err(|error| match error {
        LoadPdfError::Decryption(DecryptionError::PasswordProtected) => {
            PdfTextError::Password("it cannot be opened without one".to_owned())
        }
        LoadPdfError::Decryption(_) => {
            PdfTextError::Password("its encryption is not supported".to_owned())
        }
        LoadPdfError::Invalid => PdfTextError::Damaged("no pages were found in it".to_owned()),
    })?;
    let found = pdf.pages();
    let catalog = pdf.xref().get::<Dict<'_>>(pdf.xref().root_id());
    let told = catalog.as_ref().and_then(|catalog| {
        let pages = catalog.get::<Dict<'_>>(PAGES)?;
        pages.get::<i32>(COUNT)
    });
    // The declared number shows that a page is lost.
    let Some(told) = told else {
        let message = "its number of pages is missing";
        return Err(PdfTextError::Damaged(message.to_owned()));
    };
    if usize::try_from(told).ok() != Some(found.len()) {
        let found = found.len();
        let message = format!("{found} of its {told} pages were found");
        return Err(PdfTextError::Cut(message));
    }
    let mut reader = PageReader::new();
    let mut pages = Vec::new();
    let mut with_notes = Vec::new();
    let mut letters = 0;
    for (number, page) in (1..).zip(found.iter()) {
        let failed = |error: ReadError| error.of_page(number);
        let lines = lines(reader.read(page).map_err(failed)?);
        letters += lines.iter().map(|line| line.text.len()).sum::<usize>();
        check(letters, TEXT, "bytes of text").map_err(failed)?;
        pages.push((number, lines));
        let notes = page.raw().get::<Array<'_>>(ANNOTS);
        if notes.is_some_and(|notes| notes.iter::<Dict<'_>>().take(NOTES).any(has_text)) {
            with_notes.push(number);
        }
    }
    let outline = match &catalog {
        Some(catalog) => {
            outline::read(catalog, found, pdf.xref()).map_err(ReadError::of_document)?
        }
        None => (Vec::new(), false),
    };
    Ok(document::of(pages, outline, with_notes))
}

/// Returns true if an annotation shows text on its page: a note, or a form field that is filled in.
fn has_text(note: Dict<'_>) -> bool {
    let key = match note.get::<Name<'_>>(SUBTYPE).as_deref() {
        Some(b"FreeText") => NOTE,
        Some(WIDGET) => V,
        _ => return false,
    };
    let of_field = || note.get::<Dict<'_>>(PARENT)?.get::<Object<'_>>(key);
    match note.get::<Object<'_>>(key).or_else(of_field) {
        Some(Object::String(text)) => !text.is_empty(),
        // Several choices, or a long text.
        Some(Object::Array(_) | Object::Stream(_)) => true,
        _ => false,
    }
}
