//! How much of a document is read. Documents come from anywhere: a few hundred bytes can ask for more than any machine has.
//! Sound documents stay far below these limits; one that does not is refused with [`super::PdfTextError::Limit`].

use super::text::PdfTextError;
use lopdf::{DecompressError, Error};

/// Bytes that the content of one page, or of a form on it, may inflate to.
pub(crate) const CONTENT: usize = 64 << 20;

/// Bytes that one byte may inflate to, beyond [`INFLATED`]. Content streams have about 10.
pub(crate) const RATIO: usize = 100;

/// Bytes that a stream may inflate to at any ratio.
pub(crate) const INFLATED: usize = 4 << 20;

/// Bytes that all contents of a document may inflate to. A form counts each time that it is drawn.
pub(crate) const CONTENTS: usize = 2 << 30;

/// Bytes that an object stream or a cross-reference stream may inflate to.
pub(crate) const OBJECT_STREAM: usize = 32 << 20;

/// Bytes of a row of samples, as a PNG predictor declares it.
pub(crate) const ROW: usize = 1 << 20;

/// Objects of a document, as ISO 32000-1, annex C has it.
pub(crate) const OBJECTS: i64 = 8_388_607;

/// Values within all objects.
pub(crate) const VALUES: usize = 8_000_000;

/// Operators of a document.
pub(crate) const OPERATORS: usize = 20_000_000;

/// Operands of one operator, those inside of arrays included.
pub(crate) const OPERANDS: usize = 1 << 18;

/// Graphics states that are saved and not restored. ISO 32000-1 allows 28.
pub(crate) const STATES: usize = 10_000;

/// Forms that the forms of one page draw. Those that the page draws itself, such as the marks of a plot, are bounded by its size.
pub(crate) const FORMS: usize = 5_000;

/// Forms inside of forms that are followed.
pub(crate) const FORM_DEPTH: usize = 12;

/// Page tree nodes above a page.
pub(crate) const PARENTS: usize = 256;

/// Characters that a page shows.
pub(crate) const CHARACTERS: usize = 1_000_000;

/// Bytes of the text of a document, and of its bookmarks.
pub(crate) const TEXT: usize = 64 << 20;

/// Bytes that the map of one font to Unicode may inflate to.
pub(crate) const MAP: usize = 16 << 20;

/// Bytes that the maps of all fonts may inflate to.
pub(crate) const MAPS: usize = 64 << 20;

/// Codes that ranges of these maps may cover.
pub(crate) const CODES: usize = 2_000_000;

/// Widths of all fonts.
pub(crate) const WIDTHS: usize = 8_000_000;

/// Why a part of a document is not read.
#[derive(Debug)]
pub(crate) enum ReadError {
    /// It exceeds a limit: which, and how much is read.
    Limit(String),
    /// It is damaged.
    Damaged(Error),
    /// It is damaged, as another parser than lopdf found.
    Broken(String),
}

impl ReadError {
    /// The error of a document.
    pub(crate) fn of_document(self) -> PdfTextError {
        match self {
            Self::Limit(what) => PdfTextError::Limit(what),
            Self::Damaged(error @ (Error::Decryption(_) | Error::InvalidPassword)) => {
                PdfTextError::Password(error.to_string())
            }
            Self::Damaged(error) => PdfTextError::Damaged(error.to_string()),
            Self::Broken(why) => PdfTextError::Damaged(why),
        }
    }

    /// The error of a page.
    pub(crate) fn of_page(self, number: u32) -> PdfTextError {
        match self {
            Self::Limit(what) => PdfTextError::Limit(format!("page {number}: {what}")),
            Self::Damaged(why) => PdfTextError::Cut(format!("page {number}: {why}")),
            Self::Broken(why) => PdfTextError::Cut(format!("page {number}: {why}")),
        }
    }
}

impl From<Error> for ReadError {
    fn from(error: Error) -> Self {
        match error {
            Error::Decompress(DecompressError::MemoryLimitExceeded { limit }) => {
                Self::Limit(format!("a stream inflates to more than {limit} bytes"))
            }
            error => Self::Damaged(error),
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

/// The content of a stream, without its filters, if it has at most `most` bytes.
pub(crate) fn inflated(stream: &lopdf::Stream, most: usize) -> Result<Vec<u8>, ReadError> {
    check_row(&stream.dict)?;
    let own = stream.content.len().saturating_mul(RATIO).max(INFLATED);
    Ok(stream.get_plain_content_with_limit(most.min(own))?)
}

/// An error if a predictor asks for rows of more than [`ROW`] bytes: the parser allocates a row before it reads one.
pub(crate) fn check_row(stream: &lopdf::Dictionary) -> Result<(), ReadError> {
    let parameters = stream.get(b"DecodeParms").and_then(lopdf::Object::as_dict);
    let Ok(parameters) = parameters else {
        return Ok(());
    };
    let number = |key: &[u8]| {
        let number = parameters.get(key).and_then(lopdf::Object::as_i64);
        usize::try_from(number.unwrap_or(1).max(1)).unwrap_or(usize::MAX)
    };
    let samples = number(b"Columns").saturating_mul(number(b"Colors"));
    let bits = number(b"BitsPerComponent").max(8);
    check(
        samples.saturating_mul(bits) / 8,
        ROW,
        "bytes in a row of samples",
    )
}
