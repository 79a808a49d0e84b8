//! The keys of the language, in one table that the reader and the published schemas use.

mod agent;
mod executor;
mod project;
mod stage;
mod step;

pub(crate) use agent::AGENT;
pub(crate) use executor::{COMMAND, EXECUTOR, MORE, RESOURCES};
pub(crate) use project::{LIMITS, PARAM, PARAM_FILE, PROJECT, SERVICE, WORKSPACES};
pub(crate) use stage::{
    APPROVE, CHECK, CONSERVE, EACH, ESTIMATE, INPUT, OUTPUT, POLICY, REFINE, REQUIRE, STAGE,
    STAGE_LIMITS,
};
pub(crate) use step::STEP;

use crate::model::keys::key;
pub(crate) use crate::model::keys::{KeySpec, Need, TableSpec, ValueKind};

/// The words of `format`.
pub(crate) const FORMATS: &[&str] = &[
    "json", "ndjson", "csv", "toml", "text", "tap", "png", "pdf", "xlsx",
];

/// The outcomes that `[errors]` may name.
pub(crate) const OUTCOMES: &[&str] = &[
    "auth",
    "budget",
    "check",
    "connect",
    "conserve",
    "crash",
    "cut",
    "engines",
    "exit",
    "input",
    "job",
    "job_cancelled",
    "memory",
    "node",
    "output",
    "parse",
    "path",
    "preempted",
    "refine",
    "refused",
    "schema",
    "status",
    "timeout",
];

/// Returns all tables of a stage file, with those of names and lists.
pub(crate) fn stage_tables() -> [&'static TableSpec; 14] {
    [
        &STAGE,
        &EACH,
        &INPUT,
        &OUTPUT,
        &STEP,
        &REFINE,
        &APPROVE,
        &CONSERVE,
        &REQUIRE,
        &CHECK,
        &POLICY,
        &STAGE_LIMITS,
        &RESOURCES,
        &ESTIMATE,
    ]
}
