//! The effects of earlier stages that a plan expects before a stage's turn.

use crate::base::digest::Digest;
use crate::base::glob::{is_starred, may_meet};
use crate::base::path::RelPath;
use crate::model::pipeline::Pipeline;
use crate::model::record::{BatchRecord, Made};
use crate::model::stage::{Output, Stage};
use crate::model::state::{StageState, State};
use crate::plan::lineage;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// The changes that earlier stages may still make. Empty for a run, where they have happened.
#[derive(Debug, Default, Clone)]
pub struct Pending {
    /// Files that may come out differently, with the stage that makes them.
    files: BTreeMap<RelPath, String>,
    /// Stages that may make other files than those known of.
    open: BTreeSet<String>,
    /// Files that go to quarantine because no batch makes them any more.
    going: BTreeSet<RelPath>,
}

/// The change that a plan expects of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expected {
    /// It stays as it is.
    Same,
    /// Outputs may change.
    Perhaps,
    /// It runs, and makes files at its paths.
    Runs,
}

impl Pending {
    /// Returns the earlier stage that may still change this file.
    pub fn may_change(
        &self,
        pipeline: &Pipeline,
        before: &Stage,
        path: &RelPath,
    ) -> Option<String> {
        let known = self.files.get(path).cloned();
        known.or_else(|| self.may_make(pipeline, before, path.as_str()))
    }

    /// Returns the earlier stage that may still write unknown files that match a pattern.
    pub fn may_make(&self, pipeline: &Pipeline, before: &Stage, pattern: &str) -> Option<String> {
        if self.open.is_empty() {
            return None;
        }
        let writers = lineage::writers(pipeline, before, pattern);
        let mut names = writers.into_iter().map(|stage| stage.name.clone());
        names.find(|name| self.open.contains(name))
    }

    /// Returns true if no change is expected.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.open.is_empty() && self.going.is_empty()
    }

    /// Returns true if the file will be moved to quarantine.
    pub fn goes(&self, path: &RelPath) -> bool {
        self.going.contains(path)
    }

    /// Records that a stage is no longer declared.
    pub(crate) fn forget(&mut self, state: &mut Cow<'_, State>, stage: &str) {
        if let Some(known) = state.to_mut().stages.remove(stage) {
            self.going.extend(known.files().cloned());
        }
    }

    /// Returns the earlier stage that may still change a file at a path or pattern.
    pub fn may_change_by(
        &self,
        pipeline: &Pipeline,
        before: &Stage,
        pattern: &str,
    ) -> Option<String> {
        let mut known = self.files.iter();
        let known = known.find(|(path, _)| may_meet(path.as_str(), pattern));
        let known = known.map(|(_, stage)| stage.clone());
        known.or_else(|| self.may_make(pipeline, before, pattern))
    }

    /// Records the expected changes of a stage, and puts the expected records of its files into the state. `certain` is true if its
    /// batches are known; `gone` are the batches that it no longer has.
    pub(crate) fn expect<'a>(
        &mut self,
        state: &mut Cow<'_, State>,
        stage: &Stage,
        certain: bool,
        gone: &[String],
        batches: impl Iterator<Item = (&'a str, Expected, &'a BTreeMap<String, RelPath>)>,
    ) {
        for key in gone {
            if let Some(batch) = known(state, stage).batches.remove(key) {
                self.going.extend(batch.files().cloned());
            }
        }
        // Which files a `*` stands for, and whether a step is skipped, is known when the batch has run.
        let may_make_others = stage.outputs.iter().any(Output::is_many)
            || stage.steps.iter().any(|step| step.when.is_some());
        let mut open = !certain;
        for (key, expected, targets) in batches {
            if expected == Expected::Same {
                continue;
            }
            open |= may_make_others;
            let known_stage = state.stages.get(&stage.name);
            let recorded = known_stage.and_then(|known| known.batches.get(key)?.record.as_ref());
            let made = recorded.iter().flat_map(|record| &record.outputs);
            let mut paths: BTreeSet<RelPath> = made.map(|made| made.path.clone()).collect();
            if expected == Expected::Runs {
                // Rebuilt outputs are no longer an accepted edit.
                if recorded.is_some_and(|record| record.pin.is_some())
                    && let Some(batch) = known(state, stage).batches.get_mut(key)
                    && let Some(record) = &mut batch.record
                {
                    record.pin = None;
                }
                let known_stage = state.stages.get(&stage.name);
                let recorded =
                    known_stage.and_then(|known| known.batches.get(key)?.record.as_ref());
                let stays = |made: &Made| match targets.get(&made.name) {
                    Some(target) => is_starred(target) || *target == made.path,
                    None => false,
                };
                let leaves = recorded.is_some_and(|record| !record.outputs.iter().all(stays));
                if leaves
                    && let Some(record) = known(state, stage)
                        .batches
                        .entry(key.to_owned())
                        .or_default()
                        .record
                        .as_mut()
                {
                    let (stay, go): (Vec<Made>, Vec<Made>) = std::mem::take(&mut record.outputs)
                        .into_iter()
                        .partition(stays);
                    record.outputs = stay;
                    for made in go {
                        paths.remove(&made.path);
                        if !stage.keeps_former(&made.name) {
                            self.going.insert(made.path);
                        }
                    }
                }
                let plain = targets.iter().filter(|(_, path)| !is_starred(path));
                for (name, path) in plain.filter(|(_, path)| !paths.contains(path)) {
                    let batches = &mut known(state, stage).batches;
                    let batch = batches.entry(key.to_owned()).or_default();
                    let record = batch.record.get_or_insert_with(|| unmade(key));
                    record.outputs.push(unread(name, path));
                    self.files.insert(path.clone(), stage.name.clone());
                }
            }
            let paths = paths.into_iter().map(|path| (path, stage.name.clone()));
            self.files.extend(paths);
        }
        if open {
            self.open.insert(stage.name.clone());
        }
    }
}

fn known<'a>(state: &'a mut Cow<'_, State>, stage: &Stage) -> &'a mut StageState {
    state.to_mut().stages.entry(stage.name.clone()).or_default()
}

/// A record of a batch that will be made.
fn unmade(key: &str) -> BatchRecord {
    BatchRecord {
        key: key.to_owned(),
        ..BatchRecord::default()
    }
}

/// Returns the record of a file that will be made. The digest is not known yet, and is not read, since the file may change.
fn unread(name: &str, path: &RelPath) -> Made {
    Made {
        name: name.to_owned(),
        path: path.clone(),
        digest: Digest::of(""),
        size: 0,
    }
}
