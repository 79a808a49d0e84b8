//! A file that a batch made.

use crate::base::digest::Digest;
use crate::base::path::RelPath;
use serde::{Deserialize, Serialize};

/// A file that a batch made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Made {
    /// The output's name in the declaration; `marker` for the marker.
    pub name: String,
    /// Where it lies in the workspace.
    pub path: RelPath,
    /// Its digest.
    pub digest: Digest,
    /// Its size in bytes.
    pub size: u64,
}
