mod decl;
//! All integration tests, as one binary.

mod ifc;
mod report;
