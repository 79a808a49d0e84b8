//! Readers and writers of file formats, for untrusted input and large files.
//!
//! | module | format |
//! |---|---|
//! | [`ifc`] | reads building models (IFC) and writes their elements as JSON |
//! | [`pdf`] | sets Markdown as PDF reports with tables and bar charts |
//! | [`pdf_text`] | reads the text of PDF documents, page by page |
//! | [`xlsx`] | writes Excel workbooks row by row, with charts |
//!
//! Each module can be used alone: this crate depends on no other package of the project. Nothing here reads the clock, the
//! environment or the network, and the same input gives the same bytes.

#![warn(missing_docs, unreachable_pub)]
#![cfg_attr(
    test,
    allow(
        clippy::disallowed_methods,
        clippy::unwrap_used,
        reason = "tests write files and stop at what is wrong"
    )
)]

pub mod ifc;
pub mod pdf;
pub mod pdf_text;
pub mod xlsx;
