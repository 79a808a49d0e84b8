//! How much of a document is read. Documents come from anywhere: a few hundred bytes can ask for more than any machine has.
//! Sound documents stay far below these limits; one that does not is refused with [`super::PdfTextError::Limit`].

use super::text::PdfTextError;

/// Bytes that the content of one page, or of a form on it, may inflate to.
pub(crate) const CONTENT: usize = 64 << 20;

/// Bytes that one byte may inflate to, beyond [`INFLATED`]. Content streams have about 10.
pub(crate) const RATIO: usize = 100;

/// Bytes that a stream may inflate to at any ratio.
pub(crate) const INFLATED: usize = 4 << 20;

/// Bytes that all contents of a document may inflate to. A form counts each time that it is drawn.
pub(crate) const CONTENTS: usize = 2 << 30;

/// Bytes of a row of samples, as a PNG predictor declares it.
pub(crate) const ROW: usize = 1 << 20;

/// Operators of a document.
pub(crate) const OPERATORS: usize = 20_000_000;

/// Graphics states that are saved and not restored. ISO 32000-1 allows 28.
pub(crate) const STATES: usize = 10_000;

/// Forms that the forms of one page draw. Those that the page draws itself, such as the marks of a plot, are bounded by its size.
pub(crate) const FORMS: usize = 5_000;

/// Forms inside of forms that are followed.
pub(crate) const FORM_DEPTH: usize = 12;

/// Characters that a page shows.
pub(crate) const CHARACTERS: usize = 1_000_000;

/// Bytes of the text of a document, and of its bookmarks.
pub(crate) const TEXT: usize = 64 << 20;

/// Bytes that the map of one font to Unicode may inflate to.
pub(crate) const MAP: usize = 16 << 20;

/// Bytes that the maps of all fonts may inflate to.
pub(crate) const MAPS: usize = 64 << 20;

/// Widths of one font. It has 65,536 codes at most, and no reason to list one twice.
pub(crate) const FONT_WIDTHS: usize = 1 << 17;

/// Widths of all fonts.
pub(crate) const WIDTHS: usize = 8_000_000;

/// Annotations of a page that are searched for text.
pub(crate) const NOTES: usize = 10_000;

/// Why a part of a document is not read.
#[derive(Debug)]
pub(crate) enum ReadError {
    /// It exceeds a limit: which, and how much is read.
    Limit(String),
    /// It is damaged.
    Broken(String),
}

impl ReadError {
    pub(crate) fn of_document(self) -> PdfTextError {
        match self {
            Self::Limit(what) => PdfTextError::Limit(what),
            Self::Broken(why) => PdfTextError::Damaged(why),
        }
    }

    pub(crate) fn of_page(self, number: u32) -> PdfTextError {
        match self {
            Self::Limit(what) => PdfTextError::Limit(format!("page {number}: {what}")),
            Self::Broken(why) => PdfTextError::Cut(format!("page {number}: {why}")),
        }
    }
}

/// An error if there are more of `what` than `most`.
pub(crate) fn check(count: usize, most: usize, what: &str) -> Result<(), ReadError> {
    if count > most {
        return Err(ReadError::Limit(format!("more than {most} {what}")));
    }
    Ok(())
}
