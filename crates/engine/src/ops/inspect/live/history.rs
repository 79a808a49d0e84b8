//! The history of a watched workspace, and the follower that continues it.

use super::allowance::Allowance;
use crate::ops::inspect::follow::{Follower, Position};
use crate::ops::inspect::history::History;
use crate::ops::project::error::OpsError;
use crate::ops::project::request::Request;
use milepost_store::store::clock::Stopwatch;

/// A history, and the follower that continues it.
pub(super) struct FollowedHistory {
    pub(super) history: History,
    follower: Follower,
    allowance: Allowance,
    /// True if the journal was read to its end once.
    is_whole: bool,
}

impl FollowedHistory {
    /// Begins at the start of the journal.
    ///
    /// # Errors
    /// When the workspace cannot be read.
    pub(super) fn start(request: &Request) -> Result<Self, OpsError> {
        Ok(Self {
            history: History::default(),
            follower: Follower::after(request, Position::START)?,
            allowance: Allowance::start(),
            is_whole: false,
        })
    }

    /// Adds some of the next records. Returns false if there is none.
    ///
    /// # Errors
    /// When the journal cannot be read, or was replaced.
    pub(super) fn add_some(&mut self) -> Result<bool, OpsError> {
        let records = self.follower.read()?;
        for (_, record) in &records {
            self.history.add(record);
        }
        self.is_whole |= records.is_empty();
        Ok(!records.is_empty())
    }

    /// Adds the records that were written since; while a run is in progress, and once the journal was read to its end, as many as there
    /// is time for.
    ///
    /// # Errors
    /// The errors of [`Self::add_some`].
    pub(super) fn follow(&mut self, is_running: bool) -> Result<(), OpsError> {
        while !(is_running && self.is_whole) || self.allowance.has_time() {
            let watch = Stopwatch::start();
            if !self.add_some()? {
                break;
            }
            if is_running {
                self.allowance.spend(watch.elapsed());
            }
        }
        Ok(())
    }
}
