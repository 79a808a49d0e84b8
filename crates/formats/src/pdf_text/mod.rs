//! The text of PDF documents (ISO 32000-1), page by page, with a check of whether the text can be trusted.
//!
//! ```
//! use milepost_formats::pdf::{PdfInfo, markdown_to_pdf};
//! use milepost_formats::pdf_text;
//!
//! let pdf = markdown_to_pdf("# Walls\n\nOne of concrete.\n", &PdfInfo::default())?;
//! pdf_text::check_file(&pdf)?;
//! let text = pdf_text::Parser::Builtin.read(&pdf)?;
//! assert!(text.pages[0].text.contains("One of concrete."));
//! assert!(pdf_text::check_text(&text)?.letters > 20);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The text is in the order in which the page draws it. Scans have no text: [`check_text`] reports them. The documents may come
//! from anywhere: sizes, counts and depths are limited ([`PdfTextError::Limit`]), links may form rings, and a panic of the parser
//! becomes an error.
//!
//! | file | holds |
//! |---|---|
//! | `limits` | how much of a document is read |
//! | `tokens` | PDF syntax, token by token |
//! | `load` | the document, with bounded memory |
//! | `outline` | the bookmarks |
//! | `fonts`, `metrics` | codes; widths and looks |
//! | `content` | the operators of a content stream |
//! | `glyphs` | what these operators draw |
//! | `builtin` | a document by all of these |
//! | `hayro` | the same by another parser |
//! | `pieces` | the text of a page, piece by piece |
//! | `lines` | lines of these pieces |
//! | `document` | pages, code and headings of these lines |
//! | `text` | the result, and whether it can be trusted |

mod builtin;
mod content;
mod document;
mod fonts;
mod glyphs;
mod hayro;
mod limits;
mod lines;
mod load;
mod metrics;
mod outline;
mod pieces;
mod text;
mod tokens;

use serde::{Deserialize, Serialize};
use std::panic::{AssertUnwindSafe, catch_unwind};

pub use text::{
    Code, Heading, PdfPage, PdfText, PdfTextError, TextCounts, check_file, check_text,
    from_pdftotext,
};

/// What reads a PDF. The two have nothing in common but the names of letters and what follows the letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Parser {
    /// `lopdf`. It keeps to the format, and refuses most damaged files.
    Builtin,
    /// `hayro-syntax`. It searches damaged files for their objects.
    Hayro,
}

impl Parser {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Builtin, Self::Hayro];

    /// Returns the name and version of the library.
    pub fn version(self) -> &'static str {
        match self {
            Self::Builtin => builtin::VERSION,
            Self::Hayro => hayro::VERSION,
        }
    }

    /// Reads the text, bookmarks, headings and code of a PDF.
    ///
    /// # Errors
    /// When the document needs a password, is truncated, cannot be parsed, or exceeds a limit.
    pub fn read(self, bytes: &[u8]) -> Result<PdfText, PdfTextError> {
        let read = match self {
            Self::Builtin => builtin::read,
            Self::Hayro => hayro::read,
        };
        // What comes from outside may be wrong in ways that the parser does not expect.
        let done = catch_unwind(AssertUnwindSafe(|| read(bytes)));
        done.unwrap_or_else(|_| Err(PdfTextError::Damaged("the reader broke down".to_owned())))
    }
}
