//! An output file of a batch.

use crate::base::digest::Digest;
use crate::base::path::RelPath;
use serde::{Deserialize, Serialize};

/// An output file of a batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Made {
    /// The output's name in the declaration; `marker` for the marker.
    pub name: String,
    /// The path in the workspace.
    pub path: RelPath,
    /// Its digest.
    pub digest: Digest,
    /// Its size in bytes.
    pub size: u64,
}
