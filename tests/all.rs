//! The one test binary: every part is a module of it.

mod command;
mod disk;
