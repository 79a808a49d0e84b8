//! The one test binary: every part of the tests is a module of it.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stderr,
    clippy::too_many_arguments,
    clippy::too_many_lines,
    clippy::type_complexity,
    clippy::unwrap_used,
    reason = "tests write files, start the program, say what they skip, and stop at what is wrong; a situation is told in one piece"
)]

mod agents;
mod architecture;
mod classification;
mod cli;
mod command;
mod crash;
mod decl;
mod documents;
mod examples;
mod external;
mod hostile;
mod ifc;
mod mcp;
mod model;
mod mutated;
mod ops;
mod pages;
mod remote;
mod report;
mod situations;
mod store;
mod support;
mod watch;
mod web;
mod workspaces;
