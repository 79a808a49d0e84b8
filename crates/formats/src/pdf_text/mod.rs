//! The text of a PDF, page by page, and whether it can be believed.

pub mod builtin;
mod fonts;
mod glyphs;
mod lines;
pub mod text;
