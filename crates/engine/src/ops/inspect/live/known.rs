//! The state of a watched workspace by its manifests and its journal, updated with each new record.

use super::allowance::Allowance;
use super::running::Running;
use crate::ops::inspect::follow::{Follower, Position};
use crate::ops::inspect::status::SeenRecords;
use crate::ops::project::error::OpsError;
use crate::ops::project::open_project::{OpenProject, replay};
use crate::ops::project::request::Request;
use jiff::Timestamp;
use milepost_core::model::event::{Event, Record};
use milepost_core::model::state::State;
use milepost_core::plan::machine::apply;
use milepost_store::store::clock::Stopwatch;
use milepost_store::store::journal;
use std::collections::VecDeque;

/// The latest records that are kept, and the most that one answer to [`super::Live::changes`] has.
const LATEST: usize = 40;

/// The state by the manifests and the journal.
pub(super) struct Known {
    pub(super) state: State,
    pub(super) seen: SeenRecords,
    pub(super) running: Running,
    /// The latest records with their numbers, oldest first. Those that were read with the manifests have the number 0.
    pub(super) latest: VecDeque<(u64, Record)>,
    /// The number of the last record: records are counted since the workspace is watched.
    pub(super) written: u64,
    pub(super) follower: Follower,
    /// The time of the last record that was read, if there was no time for those after it.
    pub(super) as_of: Option<Timestamp>,
    /// True if a record did not follow: records after it may be lost.
    is_broken: bool,
}

impl Known {
    /// Reads the manifests and the journal. Records that are written later have numbers after `written`.
    pub(super) fn read(
        request: &Request,
        opened: &OpenProject,
        written: u64,
    ) -> Result<Self, OpsError> {
        let layout = &opened.workspace.layout;
        // Records that are written while this reads are applied again by `follow`, which may fail and read again.
        let (records, tail) = journal::read_since_seal(layout)?;
        let position = match tail.segment {
            0 => Position::START,
            segment => Position {
                segment,
                offset: tail.size,
            },
        };
        let state = replay(layout, &records)?;
        let (mut seen, mut running) = (SeenRecords::default(), Running::default());
        for record in &records {
            seen.add(record);
            running.add(record);
        }
        Ok(Self {
            state,
            seen,
            running,
            latest: journal::latest(layout, LATEST)?
                .into_iter()
                .map(|record| (0, record))
                .collect(),
            written,
            follower: Follower::after(request, position)?,
            as_of: None,
            is_broken: false,
        })
    }

    /// Applies the records that were written since, as many as `allowance` has time for. Returns false if one does not follow, or
    /// the journal was replaced: this is of no use any more.
    pub(super) fn follow(&mut self, allowance: Option<&mut Allowance>) -> bool {
        self.is_broken = self.is_broken || self.follow_journal(allowance).is_err();
        !self.is_broken
    }

    fn follow_journal(&mut self, mut allowance: Option<&mut Allowance>) -> Result<(), OpsError> {
        while allowance
            .as_ref()
            .is_none_or(|allowance| allowance.has_time())
        {
            let watch = Stopwatch::start();
            let records = self.follower.read()?;
            self.as_of = records.last().map(|(_, record)| record.timestamp);
            if records.is_empty() {
                break;
            }
            for (_, record) in records {
                apply(&mut self.state, &record.run_id, &record.event)
                    .map_err(crate::run::error::RunError::from)?;
                self.seen.add(&record);
                self.running.add(&record);
                // Each batch has several such records; the last ones of the stages tell as much.
                let is_minor = matches!(record.event, Event::ChildStarted(_) | Event::Barrier);
                if !is_minor {
                    if self.latest.len() == LATEST {
                        self.latest.pop_front();
                    }
                    self.written += 1;
                    self.latest.push_back((self.written, record));
                }
            }
            if let Some(allowance) = &mut allowance {
                allowance.spend(watch.elapsed());
            }
        }
        Ok(())
    }
}
