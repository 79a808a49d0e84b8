mod decl;
//! All integration tests, as one binary.

mod ifc;
mod report;
//! The one test binary; every part of the tests is a module of it.

mod model;
//! The one test binary: every part is a module of it.

mod command;
mod disk;
