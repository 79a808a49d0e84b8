//! Collects the stations of a way: checks each file, and notes batches, modifications and gaps.

use super::calls::Violations;
use super::key_paths::KeyPaths;
use super::records::haystack;
use super::search::Haystack;
use super::station::{FileCheck, Gap, Station, StationKind, TracedBatch, TracedFile};
use crate::ops::inspect::file::shown_place;
use crate::ops::inspect::graph::as_set;
use crate::ops::project::error::OpsError;
use crate::ops::project::open_project::OpenProject;
use crate::ops::why::makers::Makers;
use jiff::Timestamp;
use milepost_core::base::digest::Digest;
use milepost_core::base::path::{FilePath, Root};
use milepost_core::model::event::Event;
use milepost_core::model::fingerprint::{FactKey, FactKind, FactValue};
use milepost_core::model::outcome::Outcome;
use milepost_core::model::record::BatchRecord;
use milepost_core::model::stage::{EachSource, Stage};
use milepost_core::model::state::State;
use milepost_core::plan::world::World;
use milepost_store::store::journal;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io;

/// The most batches whose times are searched by their names. For more, every record of a batch is read.
const NAMED: usize = 32;

/// A batch with its stage.
#[derive(Clone, Copy)]
pub(super) struct BatchRef<'a> {
    pub(super) stage: &'a str,
    pub(super) record: &'a BatchRecord,
}

/// The way so far.
pub(super) struct Tracer<'a> {
    pub(super) opened: &'a OpenProject,
    pub(super) state: &'a State,
    pub(super) makers: &'a Makers<'a>,
    pub(super) keys: KeyPaths<'a>,
    pub(super) violations: Violations,
    pub(super) stations: Vec<Station>,
    pub(super) gaps: Vec<Gap>,
    /// True if a link to a file of Milepost's own is not followed.
    confined: bool,
    /// The batches that have a station, and its place.
    batches: BTreeMap<(String, String), usize>,
}

impl<'a> Tracer<'a> {
    pub(super) fn new(
        opened: &'a OpenProject,
        state: &'a State,
        makers: &'a Makers<'a>,
        confined: bool,
    ) -> Self {
        Self {
            opened,
            state,
            makers,
            keys: KeyPaths::of(opened),
            violations: Violations::default(),
            stations: Vec::new(),
            gaps: Vec::new(),
            confined,
            batches: BTreeMap::new(),
        }
    }

    /// Adds a station, and returns its place.
    pub(super) fn add(
        &mut self,
        to: Option<usize>,
        file: Option<TracedFile>,
        about: StationKind,
    ) -> usize {
        self.stations.push(Station { to, file, about });
        self.stations.len() - 1
    }

    /// Adds a gap once.
    pub(super) fn gap(&mut self, gap: Gap) {
        if !self.gaps.contains(&gap) {
            self.gaps.push(gap);
        }
    }

    /// Returns an input to search; `None` if it does not exist.
    ///
    /// # Errors
    /// When it may not be read.
    pub(super) fn input(&self, file: &FilePath) -> io::Result<Option<Haystack>> {
        if self.confined {
            shown_place(self.opened, self.state, file).map_err(io::Error::other)?;
        }
        haystack(&self.opened.files, file)
    }

    /// Returns the batch that wrote a file.
    pub(super) fn maker(&self, file: &FilePath) -> Option<BatchRef<'a>> {
        let found = (file.root == Root::Workspace)
            .then(|| self.makers.get(file.path.as_str()))
            .flatten();
        found.map(|(stage, record)| BatchRef { stage, record })
    }

    /// Returns the declaration of a batch's stage; `None` if the project has no such stage any more.
    pub(super) fn declared(&self, batch: BatchRef<'_>) -> Option<&'a Stage> {
        self.opened.pipeline.stage(batch.stage)
    }

    /// Returns all recorded facts of a batch: its own, then those it shares.
    pub(super) fn facts(&self, batch: BatchRef<'a>) -> Vec<(FactKey, FactValue)> {
        let shared = self.state.stages.get(batch.stage);
        let shared = shared.map(|known| known.shared(batch.record));
        let own = batch.record.facts.iter();
        let copied = |(key, value): (&FactKey, &FactValue)| (key.clone(), value.clone());
        let mut all: Vec<(FactKey, FactValue)> = own.map(copied).collect();
        all.extend(shared.iter().flat_map(|facts| facts.iter()).map(copied));
        all
    }

    /// Returns the files that a batch read, in natural order: its recorded inputs, and the files with the items of its `each`.
    pub(super) fn inputs(&self, batch: BatchRef<'a>) -> Vec<FilePath> {
        let facts = self.facts(batch).into_iter();
        let read = facts.filter(|(key, value)| key.kind == FactKind::Input && !value.is("absent"));
        let mut paths: Vec<String> = read.map(|(key, _)| key.name.to_string()).collect();
        let each = self.declared(batch).map_or(&[][..], |stage| &stage.each);
        let files = each.iter().filter_map(|each| match &each.source {
            EachSource::From { file, .. } => Some(as_set(self.opened, file)),
            EachSource::Path(_) | EachSource::Values(_) | EachSource::Count(_) => None,
        });
        paths.extend(files.filter(|path| !path.contains('*')));
        paths.sort_by(|a, b| milepost_core::base::natural::natural(a, b));
        paths.dedup();
        let paths = paths.iter().filter_map(|path| path.parse().ok());
        paths.collect()
    }

    /// Checks a file against the record. `reader`: the batch of the way that read it.
    pub(super) fn check(&mut self, file: &FilePath, reader: Option<BatchRef<'a>>) -> TracedFile {
        let maker = self.maker(file);
        let made = maker.and_then(|batch| {
            let mut outputs = batch.record.outputs.iter();
            outputs.find(|made| made.path == file.path)
        });
        let path = file.to_string();
        let read = reader.and_then(|batch| self.read_as(batch, &path));
        let recorded = made.map(|made| made.digest).or(read);
        let recorded = recorded.or_else(|| self.read_by_any(&path));
        let (digest, problem) = match self.opened.context().digest(file) {
            Ok(digest) => (digest, None),
            Err(problem) => (None, Some(problem)),
        };
        let check = match (digest, recorded) {
            _ if problem.is_some() => FileCheck::Unreadable,
            (None, _) => FileCheck::Missing,
            (Some(_), None) => FileCheck::NotRecorded,
            (Some(there), Some(recorded)) if there != recorded => FileCheck::Modified,
            _ if maker.is_some_and(|batch| batch.record.is_by_hand(&file.path)) => {
                FileCheck::Accepted
            }
            _ => FileCheck::Matches,
        };
        if let Some(problem) = problem {
            let file = path.clone();
            self.gap(Gap::Unreadable { file, problem });
        }
        TracedFile {
            path,
            digest,
            recorded,
            read_as: read.filter(|read| Some(*read) != recorded),
            check,
            stage: maker.map(|batch| batch.stage.to_owned()),
            batch: maker.map(|batch| batch.record.key.clone()),
            run: maker.map(|batch| batch.record.run.clone()),
            when: None,
        }
    }

    /// Returns the digest of an input as a batch recorded it.
    fn read_as(&self, batch: BatchRef<'_>, path: &str) -> Option<Digest> {
        let own = batch.record.facts.get(FactKind::Input, path);
        if let Some(value) = own {
            return value.digest();
        }
        let shared = self.state.stages.get(batch.stage)?.shared(batch.record);
        shared.get(FactKind::Input, path)?.digest()
    }

    /// Returns the digest of an input as any batch recorded it. A batch does not record the file that lists the items of its stage.
    fn read_by_any(&self, path: &str) -> Option<Digest> {
        self.state.stages.iter().find_map(|(stage, known)| {
            let mut records = known.batches.values().filter_map(|it| it.record.as_ref());
            records.find_map(|record| self.read_as(BatchRef { stage, record }, path))
        })
    }

    /// Adds the accepted modifications of a file.
    pub(super) fn add_modifications(&mut self, file: &FilePath, to: usize) {
        let Some(batch) = self.maker(file) else {
            return;
        };
        for one in batch.record.overrides(batch.stage) {
            let is_it = |path: &String| path == file.path.as_str();
            if one.path.as_ref().is_none_or(is_it) {
                self.add(Some(to), None, StationKind::Modification(one));
            }
        }
    }

    /// Adds a batch, if it has no station yet, and returns its place and whether it is new.
    pub(super) fn add_batch(
        &mut self,
        batch: BatchRef<'a>,
        failed: Option<Outcome>,
        to: Option<usize>,
    ) -> (usize, bool) {
        let BatchRef { stage, record } = batch;
        let id = (stage.to_owned(), record.key.clone());
        if let Some(place) = self.batches.get(&id) {
            return (*place, false);
        }
        let traced = TracedBatch {
            stage: stage.to_owned(),
            batch: record.key.clone(),
            description: self.declared(batch).and_then(|it| it.description.clone()),
            run: record.run.clone(),
            when: None,
            attempts: record.attempts,
            seconds: record.duration_ms as f64 / 1000.0,
            answers: record.answers.iter().map(|one| one.answers).sum(),
            spent: record.spent.as_deref().copied(),
            failed: failed.or_else(|| record.placeholder.as_deref().cloned()),
            more_answers: 0,
            more_inputs: 0,
        };
        let place = self.add(to, None, StationKind::Batch(Box::new(traced)));
        self.batches.insert(id, place);
        (place, true)
    }

    /// Adds the times of the batches, and removes keys from all values and texts.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub(super) fn finish(&mut self) -> Result<(), OpsError> {
        let times = self.times()?;
        let time = |stage: &str, batch: &str| {
            let id = (stage.to_owned(), batch.to_owned());
            times.get(&id).copied()
        };
        let redactor = &self.opened.redactor;
        for station in &mut self.stations {
            if let Some(file) = &mut station.file
                && let (Some(stage), Some(batch)) = (&file.stage, &file.batch)
            {
                file.when = time(stage, batch);
            }
            match &mut station.about {
                StationKind::Batch(batch) => batch.when = time(&batch.stage, &batch.batch),
                StationKind::Cell(cell) => {
                    cell.value
                        .iter_mut()
                        .for_each(|value| redactor.known_value(value));
                }
                StationKind::Record(record)
                | StationKind::Question(record)
                | StationKind::Element(record) => {
                    let changes = record.changes.iter_mut();
                    let changes = changes.flat_map(|change| [&mut change.old, &mut change.new]);
                    let fields = changes.chain([&mut record.field]).flatten();
                    let hide = |value: &mut Value| redactor.known_value(value);
                    fields.for_each(hide);
                    redactor.known_value(&mut record.value);
                }
                StationKind::Correction(correction) => {
                    redactor.known_value(&mut correction.from);
                    redactor.known_value(&mut correction.to);
                }
                StationKind::Source(source) => {
                    source.text = redactor.text(&source.text).into_owned();
                }
                StationKind::Answer(_) | StationKind::Modification(_) | StationKind::File => {}
            }
        }
        Ok(())
    }

    /// Returns when each batch of the way was last published.
    fn times(&self) -> Result<BTreeMap<(String, String), Timestamp>, OpsError> {
        let mut wanted = BTreeSet::new();
        for station in &self.stations {
            if let Some(file) = &station.file
                && let (Some(stage), Some(batch)) = (&file.stage, &file.batch)
            {
                wanted.insert((stage.clone(), batch.clone()));
            }
            if let StationKind::Batch(batch) = &station.about {
                wanted.insert((batch.stage.clone(), batch.batch.clone()));
            }
        }
        let texts: Vec<String> = if wanted.len() > NAMED {
            vec![r#""kind":"published""#.to_owned()]
        } else {
            let keys: BTreeSet<&String> = wanted.iter().map(|(_, batch)| batch).collect();
            let keys = keys.into_iter();
            keys.map(|key| format!("\"key\":{}", Value::from(key.as_str())))
                .collect()
        };
        let mut times = BTreeMap::new();
        journal::read_with(&self.opened.workspace.layout, &texts, &mut |record| {
            if let Event::Published {
                stage,
                record: made,
                ..
            } = record.event
            {
                let id = (stage, made.key);
                if wanted.contains(&id) {
                    times.insert(id, record.timestamp);
                }
            }
        })?;
        Ok(times)
    }
}
