//! Milepost: a Make-like state-machine runner over files. See `docs/design.md` for the layers.
pub mod base;
pub mod check;
pub mod expr;
