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
//! from anywhere: a page that would inflate to more than 256 MB is an error, and a panic of the parser becomes one.

mod builtin;
mod fonts;
mod glyphs;
mod lines;
mod text;

pub use builtin::{VERSION, read};
pub use text::{
    Code, Heading, PdfPage, PdfText, PdfTextError, TextCounts, check_file, check_text,
    from_pdftotext,
};
