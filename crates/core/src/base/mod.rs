//! Shared values: digests, paths, patterns, durations, time, sources and sinks. Pure.

pub mod clock;
pub mod digest;
mod display;
pub mod duration;
pub mod foreign_text;
pub mod glob;
pub mod in_order;
mod names;
pub mod natural;
pub(crate) mod parsed;
pub mod path;
pub mod redact;
pub mod size;
pub mod source;
pub mod texts;

pub use display::{cells, visible, words};
pub use names::{collision, reserved, safe_name};
