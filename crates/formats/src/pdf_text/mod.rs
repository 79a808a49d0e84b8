//! The text of PDF documents (ISO 32000-1), page by page, with a check of whether the text can be trusted.
//!
//! ```
//! use milepost_formats::pdf::{PdfInfo, markdown_to_pdf};
//! use milepost_formats::pdf_text;
//!
//! let pdf = markdown_to_pdf("# Walls\n\nOne of concrete.\n", &PdfInfo::default())?;
//! pdf_text::check_file(&pdf)?;
//! let text = pdf_text::read(&pdf)?;
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
//! | `reader` | a document by all of these |
//! | `outline` | the bookmarks |
//! | `streams` | the content of a stream |
//! | `fonts`, `codes`, `letters`, `metrics` | fonts; their codes; the letters of codes; widths and looks |
//! | `pages` | what the operators of a page draw |
//! | `pieces` | the text of a page, piece by piece |
//! | `lines` | lines of these pieces |
//! | `document` | pages, code and headings of these lines |
//! | `text` | the result, and whether it can be trusted |

mod codes;
mod document;
mod fonts;
mod letters;
mod limits;
mod lines;
mod metrics;
mod outline;
mod pages;
mod pieces;
mod reader;
mod streams;
mod text;

use std::panic::{AssertUnwindSafe, catch_unwind};

pub use text::{
    Code, Heading, PdfPage, PdfText, PdfTextError, TextCounts, check_file, check_text,
    from_pdftotext,
};

/// The name and version of the parser.
pub const VERSION: &str = "hayro-syntax 0.9";

/// Reads the text, bookmarks, headings and code of a PDF.
///
/// # Errors
/// When the document needs a password, pages or parts of pages are missing, nothing is found in it, or it exceeds a limit.
pub fn read(bytes: &[u8]) -> Result<PdfText, PdfTextError> {
    // A malformed file may make the parser panic.
    let done = catch_unwind(AssertUnwindSafe(|| reader::read(bytes)));
    done.unwrap_or_else(|_| Err(PdfTextError::Damaged("the reader crashed".to_owned())))
}
