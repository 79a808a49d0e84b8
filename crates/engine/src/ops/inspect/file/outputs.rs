//! The recorded outputs of a workspace or a stage, to be opened and downloaded.

use super::LARGEST;
use crate::ops::inspect::live::Live;
use crate::ops::project::error::OpsError;
use milepost_core::base::natural::natural;
use milepost_core::model::stage::Stage;
use milepost_core::model::state::{BatchState, State};
use milepost_core::plan::lineage;
use serde::Serialize;

/// The folder of results.
const RESULTS: &str = "outputs/";

/// Above this number of files of a stage, they are in the order of the batches.
const SORTED: usize = 10_000;

/// Recorded outputs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct RecordedOutputs {
    /// The first files.
    pub files: Vec<OutputLink>,
    /// Stages with files that `files` leaves out, each with their number.
    pub more: Vec<(String, u64)>,
}

/// A recorded output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OutputLink {
    /// The stage.
    pub stage: String,
    /// The path in the workspace.
    pub path: String,
    /// The recorded size in bytes.
    pub size: u64,
    /// True if [`Live::raw`] returns it.
    pub is_sent: bool,
}

impl Live {
    /// Returns the outputs of a stage, at most `most`.
    ///
    /// # Errors
    /// When the stage is not declared, the declarations are wrong, or the workspace cannot be read.
    pub fn stage_outputs(&self, stage: &str, most: usize) -> Result<RecordedOutputs, OpsError> {
        self.with_state(|opened, state, _| {
            let stage = opened.stage(stage)?;
            let mut found = RecordedOutputs::default();
            found.add(stage, state, most, |_| true);
            Ok(found)
        })?
    }

    /// Returns the results of the workspace, at most `most`, those of the last stage first. Results are the files under `outputs/`.
    /// If there are none, they are the outputs of stages from which no stage reads.
    ///
    /// # Errors
    /// When the declarations are wrong, or the workspace cannot be read.
    pub fn results(&self, most: usize) -> Result<RecordedOutputs, OpsError> {
        self.with_state(|opened, state, _| {
            let pipeline = &opened.pipeline;
            let mut found = RecordedOutputs::default();
            for stage in pipeline.stages.iter().rev() {
                found.add(stage, state, most, |path| path.starts_with(RESULTS));
            }
            if found.files.is_empty() {
                for stage in pipeline.stages.iter().rev() {
                    if lineage::downstream(pipeline, &stage.name).is_empty() {
                        found.add(stage, state, most, |_| true);
                    }
                }
            }
            found
        })
    }
}

impl RecordedOutputs {
    /// Adds the files of a stage that `is_wanted` selects, until there are `most`.
    fn add(&mut self, stage: &Stage, state: &State, most: usize, is_wanted: impl Fn(&str) -> bool) {
        let known = state.stages.get(&stage.name);
        // Earlier outputs of a failed batch do not count.
        let is_present = |batch: &&BatchState| batch.last_failure().is_none();
        let batches = known.into_iter().flat_map(|known| known.batches.values());
        let records = batches
            .filter(is_present)
            .filter_map(|batch| batch.record.as_ref());
        let mut files: Vec<_> = records
            .flat_map(|record| &record.outputs)
            .filter(|made| is_wanted(made.path.as_str()))
            .collect();
        if files.len() <= SORTED {
            files.sort_by(|a, b| natural(a.path.as_str(), b.path.as_str()));
        }
        let room = most - self.files.len();
        let left_out = files.len().saturating_sub(room) as u64;
        if left_out > 0 {
            self.more.push((stage.name.clone(), left_out));
        }
        self.files
            .extend(files.into_iter().take(room).map(|made| OutputLink {
                stage: stage.name.clone(),
                path: made.path.to_string(),
                size: made.size,
                is_sent: made.size <= LARGEST,
            }));
    }
}
