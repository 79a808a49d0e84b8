//! The recorded calls that a trace needs. The calls of a workspace may have gigabytes of answers, so no others are read.

use crate::ops::inspect::calls::{Refused, refused};
use crate::ops::project::error::OpsError;
use crate::ops::project::open_project::OpenProject;
use milepost_core::model::batched::CallId;
use milepost_core::model::record::BatchRecord;
use milepost_store::store::calls::CallRecord;
use milepost_store::store::named_calls::read_calls;
use std::collections::BTreeMap;

/// The violations in answers, read once for a way.
#[derive(Default)]
pub(super) struct Violations(Option<Refused>);

impl Violations {
    /// Returns the violations in the answers of all calls.
    pub(super) fn read(&mut self, opened: &OpenProject) -> &Refused {
        self.0
            .get_or_insert_with(|| refused(&opened.workspace.layout))
    }
}

/// Returns the calls that a batch was built from, as far as they are recorded here.
///
/// # Errors
/// When the records cannot be read.
pub(super) fn calls_of(
    opened: &OpenProject,
    record: &BatchRecord,
) -> Result<BTreeMap<CallId, CallRecord>, OpsError> {
    let ids = record.answers.iter().map(|from| CallId {
        run: from.run.clone(),
        number: from.call,
    });
    let folder = opened.workspace.layout.calls();
    read_calls(&folder, &ids.collect()).map_err(OpsError::unreadable(&folder.display()))
}
