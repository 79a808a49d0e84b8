//! The result of an audit: what was found, and what was checked.

use milepost_core::base::digest::Digest;
use milepost_core::model::approval::Approval;
use milepost_core::model::record::Override;
use serde::Serialize;
use std::collections::BTreeMap;

/// The result of an audit.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Verified {
    /// The findings, the worst first; those about outputs before those about records of Milepost.
    pub findings: Vec<Finding>,
    /// Numbers of checked items.
    pub checked: Checked,
    /// Outputs that were modified by hand and accepted: their digests match the record.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overrides: Vec<Override>,
    /// The last approval of each stage that a person approved, as the journal records it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub approvals: BTreeMap<String, Approval>,
    /// The digest of the last record of the journal. Kept elsewhere, it shows later that nothing before it was rewritten.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<Digest>,
    /// True if schemas, checks and conservation were checked again.
    pub deep: bool,
}

/// Something that is wrong or worth knowing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Finding {
    /// How severe it is.
    pub severity: Severity,
    /// The stage concerned.
    pub stage: Option<String>,
    /// The batch concerned.
    pub batch: Option<String>,
    /// The file concerned, in the workspace.
    pub path: Option<String>,
    /// The finding in one line.
    pub message: String,
}

/// How severe a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// A file does not match its record: exit code 5.
    #[serde(rename = "altered")]
    Modified,
    /// A recorded file, answer or call is gone: exit code 5.
    Missing,
    /// An output violates a declared schema, check or conservation: exit code 1.
    Invalid,
    /// Nothing is wrong.
    Note,
}

/// Numbers of what was checked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Checked {
    /// Files compared with their digests.
    pub files: u64,
    /// Bytes of these files.
    pub bytes: u64,
    /// Records of the journal.
    pub records: u64,
    /// Checkpoints.
    pub checkpoints: u64,
    /// Batches checked again.
    pub batches: u64,
}

impl Verified {
    /// Returns the exit code: 0 fine, 1 invalid, 5 modified.
    pub fn exit_code(&self) -> u8 {
        match self.findings.first().map(|finding| finding.severity) {
            Some(Severity::Modified | Severity::Missing) => 5,
            Some(Severity::Invalid) => 1,
            Some(Severity::Note) | None => 0,
        }
    }
}
