//! The values of `--set` and `--agent` that a workspace keeps, with user and time, and notes about those that need attention.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// When a parameter was set for a workspace, and the default that the value replaced.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct SetParam {
    /// When it was set, in UTC.
    #[cfg_attr(debug_assertions, schemars(with = "String"))]
    pub at: Timestamp,
    /// The user who set it.
    pub by: String,
    /// The default that `milepost.toml` declared then.
    #[serde(default)]
    pub default: Value,
}

/// The agent that replaces another one in a workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct ChosenAgent {
    /// The agent that answers.
    pub agent: String,
    /// When it was chosen, in UTC.
    #[cfg_attr(debug_assertions, schemars(with = "String"))]
    pub at: Timestamp,
    /// The user who chose it.
    pub by: String,
}

/// Something about a stored value or agent that a person should know.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum StoredNote {
    /// A stored value hides a default that was changed after the value was set.
    HidesDefault {
        /// The parameter.
        name: String,
        /// The stored value.
        value: Value,
        /// The default that `milepost.toml` declares now.
        default: Value,
        /// When the value was set, in UTC.
        #[cfg_attr(debug_assertions, schemars(with = "String"))]
        at: Timestamp,
        /// The user who set it.
        by: String,
    },
    /// A value is stored for a parameter that is not declared.
    UnusedParam {
        /// The parameter.
        name: String,
        /// The stored value.
        value: Value,
    },
    /// Another agent is chosen for one that is not declared.
    UnusedAgent {
        /// The agent that is not declared.
        name: String,
        /// The agent that was chosen.
        agent: String,
    },
    /// `--unset` names a parameter that has no stored value.
    NotSet {
        /// The parameter.
        name: String,
        /// Its value, which is the default.
        value: Value,
    },
}
