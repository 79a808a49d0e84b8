//! Decides the batches of a stage, each with its inputs, facts and the files at its paths.

use crate::run::check::planned_disk::{BatchDisk, PlannedDisk};
use crate::run::check::preconditions;
use crate::run::check::restore::from_quarantine;
use crate::run::check::writers::Writers;
use crate::run::context::Context;
use milepost_core::base::collision::{check_owned, collisions};
use milepost_core::base::digest::Digest;
use milepost_core::base::glob::is_starred;
use milepost_core::base::in_order::in_order;
use milepost_core::base::path::{FilePath, RelPath};
use milepost_core::model::fingerprint::Facts;
use milepost_core::model::outcome::OutcomeKind;
use milepost_core::model::reason::Reason;
use milepost_core::model::record::BatchRecord;
use milepost_core::model::stage::{RUN, Stage};
use milepost_core::model::state::{StageState, State};
use milepost_core::plan::decide::{Decision, Found, RebuildPolicy, decide};
use milepost_core::plan::expand::{Batch, ExpandError};
use milepost_core::plan::inputs::{Missed, Resolved, resolve};
use milepost_core::plan::recorded::Recorded;
use milepost_core::plan::scan::{BatchScan, Collisions};
use milepost_core::plan::settings::{Settings, run_scope};
use milepost_core::plan::{facts, overrides, paths};
use milepost_store::store::files::FileError;
use milepost_store::store::publish::refusal;
use milepost_store::store::up_to_date::ChangedFiles;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::convert::Infallible;
use std::sync::Arc;

/// For which batches the scan keeps inputs, facts and targets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep<'a> {
    /// For batches that are out of date. The scan leaves the others out.
    OnlyUndone,
    /// For batches that are out of date. A million batches that are up to date would take much memory.
    Undone,
    /// For those, but for none if all are new and there are more than [`SLICE`].
    ///
    /// [`SLICE`]: crate::run::check::ahead::SLICE
    Slices,
    /// For those, and for the batch with this key.
    And(&'a str),
    /// For all.
    All,
}

/// Returns the names that every batch's scope has.
pub(super) fn base_scope(ctx: &Context<'_>) -> Map<String, Value> {
    let mut scope = ctx.settings.scope(ctx.pipeline);
    scope.insert(RUN.to_owned(), run_scope(ctx.moment()));
    scope
}

/// The values and facts that all batches of a stage share.
pub(super) struct CommonFacts {
    pub(super) settings: Settings,
    /// The accepted modifications by hand, if the stage mentions them.
    pub(super) overrides: Option<Arc<Value>>,
    pub(super) shared: Arc<Facts>,
    pub(super) shared_id: String,
    pub(super) writers: Writers,
}

impl CommonFacts {
    pub(super) fn of(ctx: &Context<'_>, stage: &Stage, state: &State) -> Self {
        // Names that nothing mentions are left out, so that programs that use the whole scope see no change.
        let overrides = facts::mentions_overrides(stage)
            .then(|| overrides::upstream(ctx.pipeline, stage, state));
        let settings = Settings {
            overrides: overrides.clone().unwrap_or_default(),
            ..ctx.settings.clone()
        };
        let mut shared = facts::shared(stage, ctx.pipeline, &settings);
        shared.hide_keys(&|text| matches!(ctx.redactor.text(text), Cow::Owned(_)));
        Self {
            settings,
            overrides: overrides.map(|list| Arc::new(json!(list))),
            shared_id: shared.id(),
            shared: Arc::new(shared),
            writers: Writers::of(ctx.pipeline, stage),
        }
    }
}

/// Decides batches of one stage.
pub(super) struct BatchScanner<'a, 'c> {
    pub(super) ctx: &'a Context<'c>,
    pub(super) stage: &'a Stage,
    pub(super) state: &'a State,
    pub(super) recorded: &'a Recorded<'a>,
    pub(super) written: &'a (dyn Fn(&str) -> bool + Sync),
    pub(super) world: &'a PlannedDisk<'a, 'c>,
    pub(super) common: &'a CommonFacts,
    /// Files of batches that no longer exist.
    pub(super) leaving: &'a HashSet<&'a RelPath>,
    pub(super) known: Option<&'a StageState>,
    pub(super) policy: &'a (dyn Fn(&str) -> RebuildPolicy + Sync),
    pub(super) keep: Keep<'a>,
    /// Files changed since the last up-to-date check; `None` if unknown.
    pub(super) differing: Option<&'a ChangedFiles>,
}

/// How many batches justify a thread.
const BATCHES_PER_THREAD: usize = 64;

impl BatchScanner<'_, '_> {
    pub(super) fn scan_all(
        &self,
        batches: Vec<Batch>,
        scope: &Map<String, Value>,
    ) -> Vec<BatchScan> {
        in_shares(batches, |share| self.look_at(share, scope))
            .into_iter()
            .flatten()
            .collect()
    }

    /// Returns why an output cannot be put in place. `refusals` has the reasons by folder.
    fn unreachable(
        &self,
        found: &BatchScan,
        refusals: &mut BTreeMap<Option<RelPath>, Option<String>>,
    ) -> Option<Missed> {
        let layout = self.ctx.layout;
        let mut reasons = found.targets.iter().filter_map(|(name, path)| {
            let refused = refusals.entry(path.parent());
            let why = refused.or_insert_with(|| refusal(layout, path)).as_ref()?;
            Some(format!("output `{name}`: `{path}`: {why}"))
        });
        let why = reasons.next()?;
        Some(Missed {
            kind: OutcomeKind::Path,
            ..why.into()
        })
    }

    fn look_at(&self, batches: Vec<Batch>, scope: &Map<String, Value>) -> Vec<BatchScan> {
        let mut names = Value::Object(scope.clone());
        let keeps_all = self.keep != Keep::OnlyUndone;
        let mut refusals = BTreeMap::new();
        let mut scanned = Vec::with_capacity(if keeps_all { batches.len() } else { 0 });
        for batch in batches {
            set_items(&mut names, &batch);
            let mut found = self.look(batch, &names);
            if let (Ok(Decision::Will(_)), Some(why)) =
                (&found.decision, self.unreachable(&found, &mut refusals))
            {
                found.decision = Err(why);
            }
            if keeps_all || found.decision != Ok(Decision::UpToDate) {
                scanned.push(found);
            }
        }
        scanned
    }

    #[expect(clippy::too_many_lines)]
    pub(super) fn look(&self, batch: Batch, scope: &Value) -> BatchScan {
        let known = self.known.and_then(|known| known.batches.get(&batch.key));
        let record = known.and_then(|found| found.record.as_ref());
        let recorded_shared = self.known.zip(record);
        let recorded_shared = recorded_shared.map(|(known, record)| known.shared(record));
        let recorded_shared = recorded_shared.unwrap_or_default();
        if let Some(why) = batch.refused.clone() {
            return BatchScan {
                targets: self.targets(scope).unwrap_or_default(),
                decision: Err(Missed::from(why)),
                ..BatchScan::reused(batch)
            };
        }
        let policy = (self.policy)(&batch.key);
        let is_kept = match self.keep {
            Keep::All => true,
            Keep::And(key) => key == batch.key,
            Keep::OnlyUndone | Keep::Undone | Keep::Slices => false,
        };
        let forced = self.state.forced(&self.stage.name, &batch.key);
        let asked_since = || {
            let since = self.state.asked_since(&self.stage.name, &batch.key);
            since.map(<[String]>::to_vec)
        };
        let as_before = record.is_some_and(|record| self.is_as_before(record));
        if as_before && !is_kept && policy != RebuildPolicy::Forced && forced.is_none() {
            return BatchScan::reused(batch);
        }
        // Without targets, no placeholder is written where an output cannot be.
        let failed = |why: String| BatchScan {
            decision: Err(Missed::from(why)),
            ..BatchScan::reused(batch.clone())
        };
        let targets = match self.targets(scope) {
            Ok(targets) => targets,
            Err(why) => return failed(why),
        };
        let recorded = record.map(|record| &record.facts);
        let asked = BatchDisk::new(self.world, recorded);
        let written = |pattern: &str| {
            asked.lists(pattern);
            (self.written)(pattern)
        };
        let inputs = resolve(self.stage, scope, self.recorded, &asked, &written);
        let own = inputs.and_then(|inputs| {
            self.common.writers.check(&inputs)?;
            let own = facts::own(self.stage, &batch, &inputs, scope, &asked);
            let mut own = own.map_err(|error| self.missed(&inputs, error.to_string()))?;
            if let Some(recorded) = recorded {
                facts::add_dependencies(&mut own, self.stage, recorded, &asked)?;
            }
            let (pipeline, settings) = (self.ctx.pipeline, &self.common.settings);
            facts::add_picked(
                &mut own,
                self.stage,
                scope,
                &self.common.shared,
                pipeline,
                settings,
            )?;
            Ok((inputs, own))
        });
        let unread = asked.is_unread();
        let waits = asked.conditions();
        let (inputs, own) = match own {
            Ok(found) => found,
            Err(why) => {
                // A file that an earlier stage still makes is not missing.
                let is_made =
                    || record.is_some() || self.world.retired(&batch.key).next().is_some();
                let decision = match unread {
                    false => Err(why),
                    true if is_made() => Ok(Decision::May(waits)),
                    true => Ok(Decision::Will(vec![Reason::NeverMade])),
                };
                let scanned = BatchScan {
                    asked_since: asked_since(),
                    batch,
                    inputs: Vec::new(),
                    own: Arc::default(),
                    targets,
                    overrides: self.common.overrides.clone(),
                    decision,
                };
                return self.required(scanned, false);
            }
        };
        let is_settled = waits.is_empty();
        let plain = targets.values().filter(|path| !is_starred(path));
        let plain: Vec<RelPath> = plain.cloned().collect();
        let on_disk = match self.on_disk(&targets, record) {
            Ok(on_disk) => on_disk,
            Err(why) => return failed(why),
        };
        let found = Found {
            known,
            recorded_shared,
            shared: &self.common.shared,
            own: &own,
            paths: &plain,
            renamed: self.renamed(&targets, record),
            on_disk: &on_disk,
            made_elsewhere: &|path, content| self.recorded.has_made(path, content),
            pending: waits,
            policy,
            forced,
        };
        let restored = from_quarantine(self, &batch.key, &found, &targets);
        let decision = Ok(restored.unwrap_or_else(|| decide(&found)));
        if !is_kept && decision == Ok(Decision::UpToDate) {
            return BatchScan::reused(batch);
        }
        let scanned = BatchScan {
            asked_since: asked_since(),
            batch,
            inputs,
            own: Arc::new(own),
            targets,
            overrides: self.common.overrides.clone(),
            decision,
        };
        self.required(scanned, is_settled)
    }

    /// Returns the batch; it fails if it would run and a precondition does not hold.
    fn required(&self, mut found: BatchScan, is_settled: bool) -> BatchScan {
        if matches!(found.decision, Ok(Decision::Will(_)))
            && let Some(refused) = preconditions::refused(self.ctx, self.stage, &found, is_settled)
        {
            found.decision = Err(refused);
        }
        found
    }

    /// Returns why the inputs of a batch are unavailable, such as a link that leaves its folder.
    fn missed(&self, inputs: &[Resolved], why: String) -> Missed {
        let leaves = |file: &FilePath| {
            let found = self.ctx.files.resolve(file);
            matches!(found, Err(FileError::Leaves { .. }))
        };
        let mut files = inputs.iter().flat_map(|input| &input.files);
        Missed {
            kind: if files.any(leaves) {
                OutcomeKind::Path
            } else {
                OutcomeKind::Input
            },
            ..why.into()
        }
    }

    /// Returns true if no input or output of a batch changed since it was up to date.
    fn is_as_before(&self, record: &BatchRecord) -> bool {
        self.differing.is_some_and(|differing| {
            let mut facts = record.facts.iter();
            let mut outputs = record.outputs.iter();
            record.stale.is_none()
                && record.shared == self.common.shared_id
                && !facts.any(|(key, _)| differing.has(&key.name))
                && !outputs.any(|made| differing.has(made.path.as_str()))
        })
    }

    /// Checks that each file that the stage writes belongs to one batch. Returns the names of files that some file systems take for one.
    ///
    /// # Errors
    /// If two batches have a file in common.
    pub(super) fn collisions(&self, batches: &[BatchScan]) -> Result<Collisions, ExpandError> {
        let inputs = self.world.listed();
        let inputs: Vec<&str> = inputs.iter().map(|name| &**name).collect();
        let seen: Option<HashSet<&str>> = (self.keep == Keep::OnlyUndone)
            .then(|| batches.iter().map(|it| it.batch.key.as_str()).collect());
        // The files of iterations have the same names in every batch with the same path.
        let is_named = |name: &str, path: &RelPath| {
            let output = || self.stage.output(name);
            !is_starred(path) || output().is_some_and(|output| output.per_round)
        };
        let outputs = check_owned(&|emit| {
            for found in batches {
                let key = found.batch.key.as_str();
                if found.targets.is_empty()
                    && let Some(known) = self.known
                    && let Some(batch) = known.batches.get(key)
                {
                    for path in batch.files() {
                        emit(key, path.as_str());
                    }
                }
                let targets = found.targets.iter();
                let named = targets.filter(|(name, path)| is_named(name, path));
                named.for_each(|(_, path)| emit(key, path.as_str()));
            }
            // The scan left out those that are up to date.
            for (key, batch) in self.known.iter().flat_map(|known| &known.batches) {
                let seen = seen.as_ref();
                if seen.is_some_and(|seen| !seen.contains(key.as_str())) {
                    let staying = batch.files().filter(|path| !self.leaving.contains(path));
                    staying.for_each(|path| emit(key, path.as_str()));
                }
            }
        });
        let outputs = outputs.map_err(|shared| {
            let (stage, path) = (self.stage.name.clone(), shared.path.to_owned());
            let batches = shared.owners.map(str::to_owned);
            match shared.inside.map(str::to_owned) {
                Some(inside) => ExpandError::NestedOutput {
                    stage,
                    path,
                    batches,
                    inside,
                },
                None => ExpandError::SharedOutput {
                    stage,
                    path,
                    batches,
                    names: distinguishing(self.stage),
                },
            }
        })?;
        Ok(Collisions {
            inputs: collisions(&inputs),
            outputs,
        })
    }

    /// Returns the recorded outputs whose files have another name now, with that name: earlier versions wrote safe names of values
    /// with a shorter digest. Every other change of a name is a changed fact, or that of a run.
    pub(super) fn renamed(
        &self,
        targets: &BTreeMap<String, RelPath>,
        record: Option<&BatchRecord>,
    ) -> Vec<(RelPath, RelPath)> {
        let outputs = record.iter().flat_map(|record| record.outputs.iter());
        let renamed = outputs.filter_map(|made| {
            let target = targets.get(&made.name).filter(|path| !is_starred(path))?;
            let output = self.stage.output(&made.name).map(|output| &output.path);
            let path = output.or(self.stage.marker.as_ref());
            let names_run = path.is_some_and(|path| self.stage.names_run(path));
            let is_other = *target != made.path && !names_run;
            is_other.then(|| (made.path.clone(), target.clone()))
        });
        renamed.collect()
    }

    /// Returns the paths of the outputs and the marker.
    fn targets(&self, scope: &Value) -> Result<BTreeMap<String, RelPath>, String> {
        let mut targets = BTreeMap::new();
        let outputs = self.stage.outputs.iter();
        let outputs = outputs.map(|output| (output.name.as_str(), &output.path));
        let marker = self.stage.marker.iter().map(|path| (MARKER, path));
        for (name, path) in outputs.chain(marker) {
            let failed = |why: &dyn std::fmt::Display| format!("output `{name}`: {why}");
            let target = paths::render(path, scope).map_err(|why| failed(&why))?.path;
            // For a pattern only its folder is checked; a plain path is checked with its file.
            if is_starred(&target) {
                let place = FilePath::workspace(target.clone());
                let resolved = self.ctx.files.resolve(&place);
                resolved.map_err(|error| failed(&error))?;
            }
            targets.insert(name.to_owned(), target);
        }
        Ok(targets)
    }

    /// Returns the files at the paths that the batch writes or wrote.
    fn on_disk(
        &self,
        targets: &BTreeMap<String, RelPath>,
        record: Option<&BatchRecord>,
    ) -> Result<BTreeMap<RelPath, Digest>, String> {
        let plain = targets.iter().filter(|(_, path)| !is_starred(path));
        let plain = plain.map(|(name, path)| (name.as_str(), path));
        let recorded = record.iter().flat_map(|record| &record.outputs);
        let recorded = recorded.map(|made| (made.name.as_str(), &made.path));
        let mut found = BTreeMap::new();
        for (name, path) in plain.chain(recorded) {
            if found.contains_key(path) || self.leaving.contains(path) || self.world.goes(path) {
                continue;
            }
            let digest = self.world.digest(&FilePath::workspace(path.clone()));
            if let Some(digest) = digest.map_err(|why| format!("output `{name}`: {why}"))? {
                found.insert(path.clone(), digest);
            }
        }
        Ok(found)
    }
}

/// Returns expressions of what distinguishes the batches of a stage.
pub(crate) fn distinguishing(stage: &Stage) -> String {
    let names = stage
        .each
        .iter()
        .map(|each| format!("{{{{ {} }}}}", each.distinguishing()));
    names.collect::<Vec<_>>().join(" and ")
}

/// Does work on shares of a list, one for each processor if there are many items, and returns the results in order.
pub(super) fn in_shares<T: Send, R: Send>(
    mut items: Vec<T>,
    work: impl Fn(Vec<T>) -> R + Sync,
) -> Vec<R> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = cores.min(items.len() / BATCHES_PER_THREAD).max(1);
    if threads == 1 {
        return vec![work(items)];
    }
    let share = items.len().div_ceil(threads);
    let mut shares: Vec<Vec<T>> = (1..threads)
        .rev()
        .map(|number| items.split_off((number * share).min(items.len())))
        .collect();
    shares.push(items);
    let mut done = Vec::with_capacity(threads);
    let Ok(()) = in_order::<_, _, Infallible>(
        threads,
        &|| Box::new(&work),
        |each| shares.into_iter().rev().try_for_each(each),
        &mut |result| {
            done.push(result);
            Ok(())
        },
    );
    done
}

/// Sets the items of a batch in a scope that all batches share.
pub(super) fn set_items(names: &mut Value, batch: &Batch) {
    if let Value::Object(names) = names {
        for (name, item) in &batch.items {
            names.insert(name.clone(), item.scope_value());
        }
    }
}

/// The name of the marker among outputs.
pub(crate) const MARKER: &str = "marker";
