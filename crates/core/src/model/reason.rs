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
    /// It has never been built.
    NeverMade,
    /// A fact of its fingerprint changed.
    Changed(Change),
    /// An output is missing.
    Deleted {
        /// The output.
        #[cfg_attr(debug_assertions, schemars(with = "String"))]
        path: RelPath,
    },
    /// The file of an output has another name now.
    Renamed {
        /// The recorded path.
        #[cfg_attr(debug_assertions, schemars(with = "String"))]
        from: RelPath,
        /// The path that it has now.
        #[cfg_attr(debug_assertions, schemars(with = "String"))]
        to: RelPath,
    },
    /// An output was modified by hand, and the declaration or `--force` rebuilds it.
    #[serde(rename = "altered")]
    Modified {
        /// The output.
        #[cfg_attr(debug_assertions, schemars(with = "String"))]
        path: RelPath,
    },
    /// Its last attempt failed.
    Failed {
        /// The failure.
        outcome: Outcome,
    },
    /// An input changed while the batch ran.
    Stale {
        /// The input.
        input: String,
    },
    /// `--force` selected it.
    Forced,
    /// An earlier run with `--force` selected it and did not rebuild it.
    ForcedBefore {
        /// That run.
        run: String,
        /// True if that run was interrupted; false if it ended by a limit, the budget or a failed batch.
        interrupted: bool,
    },
}

/// The condition under which a batch *may* run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(tag = "condition", rename_all = "snake_case")]
pub enum Condition {
    /// The output of an earlier stage changes.
    OutputChanges {
        /// The earlier stage.
        stage: String,
        /// The file or pattern that the batch reads.
        path: String,
    },
    /// The item of the batch changes in the output of an earlier stage.
    ItemChanges {
        /// The stage that makes the file.
        stage: String,
        /// The file, or pattern, that the items of `each` come from.
        path: String,
    },
    /// The budget of the run allows its calls: earlier stages decide which there are.
    BudgetAllows,
    /// External agents have answered what it asks: earlier stages decide what that is.
    Answered {
        /// The agents.
        agents: Vec<String>,
    },
    /// An earlier stage has a batch whose run depends on the budget or on external agents.
    StageCompletes {
        /// The earlier stage.
        stage: String,
    },
}
