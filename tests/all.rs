//! The one test binary: every part of the tests is a module of it.

mod command;
mod classification;
mod ifc;
mod model;
mod ops;
mod report;
mod store;
