//! Checks the journal, and the manifests against it.

use super::audit::Audit;
use super::findings::Severity;
use crate::ops::project::error::OpsError;
use milepost_core::model::event::Event;
use milepost_core::model::state::State;
use milepost_core::plan::expand::batch_name;
use milepost_core::plan::machine::apply;
use milepost_store::store::{journal, layout, manifest};

impl Audit<'_> {
    /// Reads the whole journal: its chain, and the state that follows from it.
    pub(super) fn journal(&mut self) -> Result<State, OpsError> {
        let mut state = State::default();
        let mut refused = None;
        let mut records = 0;
        let read = journal::read_all(&self.opened.workspace.layout, &mut |place, record| {
            records += 1;
            // Earlier records repeat what the manifests contain.
            if matches!(record.event, Event::Sealed { .. }) || refused.is_some() {
                return;
            }
            if let Err(error) = apply(&mut state, &record.run_id, &record.event) {
                refused = Some(format!("{place}: {error}"));
            }
        });
        self.checked.records = records;
        match read {
            Ok(tail) if tail.torn > 0 => self.note(
                None,
                None,
                "the last record of the journal is incomplete, because the run was killed while writing it: the next run removes it".to_owned(),
            ),
            Ok(_) => {}
            Err(error @ journal::JournalError::Read { .. }) => return Err(error.into()),
            Err(error) => self.add(Severity::Altered, None, None, None, error.to_string()),
        }
        if let Some(message) = refused {
            self.add(Severity::Altered, None, None, None, message);
        }
        Ok(state)
    }

    /// Compares the manifests with the journal.
    pub(super) fn manifests(&mut self, recorded: &State, present: &State) {
        if self
            .findings
            .iter()
            .any(|finding| finding.severity == Severity::Altered)
        {
            return;
        }
        for (name, known) in &present.stages {
            let folder = layout::manifest(name);
            let expected = recorded.stages.get(name).map(manifest::kept);
            let expected = expected.unwrap_or_default();
            for (key, batch) in &manifest::kept(known).batches {
                if expected.batches.get(key) != Some(batch) {
                    let message = format!(
                        "the manifest and the journal differ about {}",
                        batch_name(name, key)
                    );
                    self.add(
                        Severity::Altered,
                        Some(name),
                        Some(key),
                        Some(&folder),
                        message,
                    );
                }
            }
            let missing = expected
                .batches
                .iter()
                .filter(|(key, batch)| batch.record.is_some() && !known.batches.contains_key(*key))
                .count();
            if missing > 0 {
                let message = format!("{missing} batches of the journal are not in the manifest");
                self.add(Severity::Altered, Some(name), None, Some(&folder), message);
            }
        }
    }
}
