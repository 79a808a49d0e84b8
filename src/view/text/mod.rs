//! Common parts of the views: words, tables, colours, reasons, and the commands they suggest.

pub(crate) mod collisions;
pub(crate) mod next_steps;
pub(crate) mod overrides;
pub mod reason;
pub(crate) mod reason_groups;
pub(crate) mod style;
pub(crate) mod table;
pub mod words;
