//! The recorded calls of the workspace, read once for a way.

use crate::ops::inspect::calls::{Refused, calls, refused};
use crate::ops::project::error::OpsError;
use crate::ops::project::open_project::OpenProject;
use milepost_store::store::calls::CallRecord;
use std::collections::BTreeMap;

/// All calls of the workspace, read once.
#[derive(Default)]
pub(super) struct CallRecords(Option<ReadCalls>);

pub(super) struct ReadCalls {
    /// The calls by run and number.
    pub(super) calls: BTreeMap<(String, u64), CallRecord>,
    /// The violations in their answers.
    pub(super) refused: Refused,
}

impl CallRecords {
    /// Returns the calls.
    ///
    /// # Errors
    /// When the records cannot be read.
    pub(super) fn read(&mut self, opened: &OpenProject) -> Result<&ReadCalls, OpsError> {
        if self.0.is_none() {
            let all = calls(opened, None, None)?.into_iter();
            self.0 = Some(ReadCalls {
                calls: all
                    .map(|call| ((call.run.clone(), call.number), call))
                    .collect(),
                refused: refused(&opened.workspace.layout),
            });
        }
        // It was set above.
        self.0
            .as_ref()
            .ok_or_else(|| OpsError::World("the calls cannot be read".to_owned()))
    }
}
