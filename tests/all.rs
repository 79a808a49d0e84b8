//! The one test binary: every part of the tests is a module of it.

mod classification;
mod command;
mod ifc;
mod model;
mod report;
mod store;
