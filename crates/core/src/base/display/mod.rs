//! Texts and numbers for people: on screens, in messages, in cells of tables.

pub mod cells;
pub mod visible;
pub mod words;
