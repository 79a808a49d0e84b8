//! Why a batch must run, as data.

use super::fingerprint::Change;
use super::outcome::Outcome;
use crate::base::path::RelPath;
use serde::{Deserialize, Serialize};

/// One reason to run a batch, with old and new values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum Reason {
    /// No record says that it was ever made.
    NeverMade,
    /// Something of its fingerprint differs.
    Changed(Change),
    /// An output is not there.
    Deleted {
        /// Which.
        #[cfg_attr(debug_assertions, schemars(with = "String"))]
        path: RelPath,
    },
    /// An output was altered, and the declaration or `--force` says to make it again.
    Altered {
        /// Which.
        #[cfg_attr(debug_assertions, schemars(with = "String"))]
        path: RelPath,
    },
    /// It failed when it was last tried.
    Failed {
        /// How.
        outcome: Outcome,
    },
    /// What was made is no longer valid by its schemas and checks.
    NotValid {
        /// How.
        outcome: Outcome,
    },
    /// An input changed while the batch ran.
    Stale {
        /// Which.
        input: String,
    },
    /// The user asked for it with `--force`.
    Forced,
    /// An earlier run with `--force` selected it and did not rebuild it.
    ForcedBefore {
        /// That run.
        run: String,
        /// Whether that run was interrupted; else it ended by a limit, a budget or a failed batch.
        interrupted: bool,
    },
}

/// What must come true for a batch that *may* run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(tag = "condition", rename_all = "snake_case")]
pub enum Condition {
    /// What an earlier stage makes differs from what it made before.
    OutputChanges {
        /// The stage that makes it.
        stage: String,
        /// The file or pattern that is read.
        path: String,
    },
    /// The item that the batch is for differs in what an earlier stage makes.
    ItemChanges {
        /// The stage that makes the file.
        stage: String,
        /// The file, or pattern, that the items of `each` come from.
        path: String,
    },
    /// The outputs no longer pass their schemas and checks.
    NotValid,
}
