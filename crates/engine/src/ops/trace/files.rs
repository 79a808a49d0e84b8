//! Follows files: the batch that wrote each, its answers, and the files that it read.

use super::station::{Gap, StationKind};
use super::tracer::{BatchRef, Tracer};
use crate::ops::project::error::OpsError;
use milepost_core::base::path::FilePath;
use std::collections::{BTreeSet, VecDeque};

/// The most inputs of a batch that are followed.
const INPUTS: usize = 10;

/// The most files that are followed.
const FILES: usize = 100;

/// A file to follow: the batch that read it, and the station that it leads to.
type QueuedFile<'a> = (FilePath, Option<BatchRef<'a>>, Option<usize>);

impl<'a> Tracer<'a> {
    /// Follows a file back to the inputs of the workspace.
    ///
    /// # Errors
    /// When the records of calls cannot be read.
    pub(super) fn follow_file(
        &mut self,
        file: &FilePath,
        to: Option<usize>,
    ) -> Result<(), OpsError> {
        self.walk(VecDeque::from([(file.clone(), None, to)]))
    }

    /// Follows a batch: its answers, and the files that it read.
    ///
    /// # Errors
    /// The errors of [`Self::follow_file`].
    pub(super) fn follow_batch(
        &mut self,
        batch: BatchRef<'a>,
        to: impl Into<Option<usize>>,
    ) -> Result<(), OpsError> {
        let mut queue = VecDeque::new();
        let (place, is_new) = self.add_batch(batch, None, to.into());
        if is_new {
            self.add_answers(batch, None, place)?;
        }
        self.queue_inputs(batch, place, &mut queue);
        self.walk(queue)
    }

    /// Adds the files of a queue and the files that they were built from, in the order of their distance.
    fn walk(&mut self, mut queue: VecDeque<QueuedFile<'a>>) -> Result<(), OpsError> {
        let mut seen: BTreeSet<String> = BTreeSet::new();
        while let Some((file, reader, to)) = queue.pop_front() {
            if seen.contains(&file.to_string()) {
                continue;
            }
            if seen.len() == FILES {
                let files = queue.len() as u64 + 1;
                self.gap(Gap::MoreFiles { files });
                break;
            }
            seen.insert(file.to_string());
            let traced = self.check(&file, reader);
            let place = self.add(to, Some(traced), StationKind::File);
            self.add_modifications(&file, place);
            let Some(maker) = self.maker(&file) else {
                continue;
            };
            let (batch, is_new) = self.add_batch(maker, None, Some(place));
            if is_new {
                self.add_answers(maker, None, batch)?;
                self.queue_inputs(maker, batch, &mut queue);
            }
        }
        Ok(())
    }

    fn queue_inputs(
        &mut self,
        batch: BatchRef<'a>,
        place: usize,
        queue: &mut VecDeque<QueuedFile<'a>>,
    ) {
        let inputs = self.inputs(batch);
        let more = inputs.len().saturating_sub(INPUTS) as u64;
        if let StationKind::Batch(traced) = &mut self.stations[place].about {
            traced.more_inputs = more;
        }
        let inputs = inputs.into_iter().take(INPUTS);
        queue.extend(inputs.map(|file| (file, Some(batch), Some(place))));
    }
}
