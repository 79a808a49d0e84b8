//! All integration tests, as one binary.

mod classification;
mod ifc;
