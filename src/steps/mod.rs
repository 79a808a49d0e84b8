//! The kinds of step: each does one attempt of one batch, and knows no journal.

pub mod ifc;
