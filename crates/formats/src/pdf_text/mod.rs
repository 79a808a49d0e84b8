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
//! | `tokens` | PDF syntax, token by token |
//! | `load` | the document, with bounded memory |
//! | `outline` | the bookmarks |
//! | `fonts`, `metrics` | codes; widths and looks |
//! | `content` | the operators of a content stream |
//! | `glyphs` | what these operators draw |
//! | `pieces` | the text of a page, piece by piece |
//! | `lines` | lines of these pieces |
//! | `document` | pages, code and headings of these lines |
//! | `text` | the result, and whether it can be trusted |

mod builtin;
mod content;
mod document;
mod fonts;
mod glyphs;
mod limits;
mod lines;
mod load;
mod metrics;
mod outline;
mod pieces;
mod text;
mod tokens;

pub use builtin::{VERSION, read};
pub use text::{
    Code, Heading, PdfPage, PdfText, PdfTextError, TextCounts, check_file, check_text,
    from_pdftotext,
};
