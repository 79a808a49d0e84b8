//! Files that a run moves to quarantine: what each of them is, why it moved, and the note beside it that says so.

use milepost_core::base::digest::Digest;
use milepost_core::base::path::RelPath;
use milepost_core::model::state::{BatchState, State};
use milepost_core::plan::recorded::MadeFiles;
use milepost_store::store::accepted;
use milepost_store::store::layout::Layout;
use serde::{Deserialize, Serialize};

/// A file that was moved to quarantine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct KeptFile {
    /// The stage; empty for an input.
    pub stage: String,
    /// The batch; empty for the only one of the stage, a checkpoint and an input.
    pub batch: String,
    /// Where it was, in the workspace.
    pub path: String,
    /// Where it is now, in the workspace.
    pub quarantine: String,
    /// Why it was moved.
    pub why: Removal,
    /// The state of the file.
    pub was: Content,
}

/// Why a file was moved to quarantine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Removal {
    /// A new version replaced it.
    Replaced,
    /// Its batch no longer produces it.
    Retired,
    /// Its batch failed, so it is out of date.
    Failed,
    /// `milepost clean` removed it.
    Cleaned,
}

/// The state of a file at the path of an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Content {
    /// As Milepost wrote it.
    AsMade,
    /// Modified by hand, and not accepted.
    Modified,
    /// Modified by hand, and accepted.
    Accepted,
    /// Not written by Milepost.
    Untracked,
}

impl Content {
    /// Returns what a file with this digest is, by what is recorded of the batch that makes it.
    pub(crate) fn of(
        layout: &Layout,
        (state, made): (&State, &MadeFiles),
        (stage, key): (&str, &str),
        path: &RelPath,
        there: Digest,
    ) -> Self {
        let known = state.stages.get(stage);
        let known = known.and_then(|known| known.batches.get(key));
        match known.map_or(Self::Untracked, |known| {
            Self::of_batch(layout, known, path, there)
        }) {
            Self::Untracked | Self::Modified if made.has(state, path, there) => Self::AsMade,
            content => content,
        }
    }

    fn of_batch(layout: &Layout, known: &BatchState, path: &RelPath, there: Digest) -> Self {
        let record = known.record.as_ref();
        let made = record.and_then(|record| record.outputs.iter().find(|made| made.path == *path));
        let by_hand = record.is_some_and(|record| record.is_by_hand(path));
        match (made, known.remains.get(path)) {
            (Some(made), _) if made.digest == there && by_hand => Self::Accepted,
            (Some(made), _) if made.digest == there => Self::AsMade,
            (_, Some(ours)) if *ours == there => {
                if accepted::has(layout, there) {
                    Self::Accepted
                } else {
                    Self::AsMade
                }
            }
            (None, None) => Self::Untracked,
            _ => Self::Modified,
        }
    }

    /// Returns true if a person wrote these bytes.
    pub fn is_by_hand(self) -> bool {
        self != Self::AsMade
    }

    /// Returns the description for people.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::AsMade => "as Milepost wrote it",
            Self::Modified => "modified by hand",
            Self::Accepted => "modified by hand and accepted",
            Self::Untracked => "not written by Milepost",
        }
    }
}

impl KeptFile {
    /// A file on its way to quarantine.
    pub(crate) fn new(
        (stage, batch): (&str, &str),
        (path, quarantine): (&RelPath, &RelPath),
        why: Removal,
        was: Content,
    ) -> Self {
        Self {
            stage: stage.to_owned(),
            batch: batch.to_owned(),
            path: path.to_string(),
            quarantine: quarantine.to_string(),
            why,
            was,
        }
    }

    /// Returns the folder of quarantine that it is moved to.
    pub(crate) fn folder(&self) -> Option<RelPath> {
        let folder = self.quarantine.strip_suffix(&self.path)?;
        RelPath::parse(folder.trim_end_matches('/')).ok()
    }

    /// Returns why it was moved, for people.
    pub(crate) fn reason(&self) -> &'static str {
        match self.why {
            Removal::Replaced => "replaced",
            Removal::Retired => "no longer produced",
            Removal::Failed => "its batch failed",
            Removal::Cleaned => "removed by `milepost clean`",
        }
    }
}
