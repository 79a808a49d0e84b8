//! Readers and writers of file formats: IFC, XLSX and PDF. Nothing here knows the runner.

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
