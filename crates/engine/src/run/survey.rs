//! Looks at a stage: its batches, their inputs, what is recorded and what lies on the disk; and has each decided.

use super::context::Context;
use super::later::{Asked, Later};
use super::require;
use jiff::Timestamp;
use milepost_core::base::digest::Digest;
use milepost_core::base::glob::is_pattern;
use milepost_core::base::path::{FilePath, RelPath};
use milepost_core::model::fingerprint::{FactKind, Facts};
use milepost_core::model::outcome::OutcomeKind;
use milepost_core::model::reason::Reason;
use milepost_core::model::record::BatchRecord;
use milepost_core::model::stage::{
    Each, EachSource, Input, InputSource, OVERRIDES, PathTemplate, RUN, Stage,
};
use milepost_core::model::state::{BatchState, StageState, State};
use milepost_core::plan::decide::{Decision, Found, Wish, decide};
use milepost_core::plan::expand::{Batch, expand};
use milepost_core::plan::inputs::{Missed, Resolved, resolve};
use milepost_core::plan::pending::Pending;
use milepost_core::plan::recorded::Recorded;
use milepost_core::plan::settings::{Settings, run_scope};
use milepost_core::plan::{facts, lineage, overrides, paths};
use milepost_store::store::files::FileError;
use milepost_store::store::glance::Differing;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

/// A stage as it was found.
#[derive(Debug)]
pub struct Survey {
    /// The facts that its batches share.
    pub shared: Arc<Facts>,
    /// Their id.
    pub shared_id: String,
    /// Its batches, in order.
    pub batches: Vec<Surveyed>,
    /// Whether the batches are known, or may be others once earlier stages ran.
    pub certain: bool,
    /// Keys of recorded batches that there are no more.
    pub gone: Vec<String>,
}

impl Survey {
    /// All facts of a batch whose own were kept, in short.
    pub fn facts(&self, batch: &Surveyed) -> String {
        format!("{}{}", self.shared_id, batch.own.id())
    }
}

/// A batch as it was found.
#[derive(Debug, Clone)]
pub struct Surveyed {
    /// The batch.
    pub batch: Batch,
    /// The files of its inputs; see [`Keep`].
    pub inputs: Vec<Resolved>,
    /// Its own facts; see [`Keep`].
    pub own: Facts,
    /// The path, or pattern, of each output and of the marker; see [`Keep`].
    pub targets: BTreeMap<String, RelPath>,
    /// The accepted modifications by hand that what it reads rests on, if the stage mentions them; see [`Keep`].
    pub overrides: Option<Arc<Value>>,
    /// What becomes of it; when an input cannot be had or a precondition does not hold, why.
    pub decision: Result<Decision, Missed>,
    /// The runs whose answers of agents alone count for it; `None`: every answer that is kept counts.
    pub asked_since: Option<Vec<String>>,
}

impl Surveyed {
    /// A batch of which nothing but its name is kept.
    fn reused(batch: Batch) -> Self {
        Self {
            batch,
            inputs: Vec::new(),
            own: Facts::default(),
            targets: BTreeMap::new(),
            overrides: None,
            decision: Ok(Decision::Reused),
            asked_since: None,
        }
    }

    /// The names that every scope has, and the batch's items, paths and digests: plain values. `moment` is shown as `run`.
    pub fn base(&self, ctx: &Context<'_>, moment: Timestamp) -> Map<String, Value> {
        let mut base = ctx.settings.scope(ctx.pipeline);
        base.insert(RUN.to_owned(), run_scope(moment));
        for (name, item) in &self.batch.items {
            base.insert(name.clone(), item.scope_value());
        }
        if let Some(overrides) = &self.overrides {
            base.insert(OVERRIDES.to_owned(), (**overrides).clone());
        }
        insert_files(&mut base, &self.inputs, &self.own, &self.targets);
        base
    }
}

/// Of which batches the inputs, the facts and the targets are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep<'a> {
    /// Of those that are not reused: of a million that are, it is much for nothing.
    Undone,
    /// Of those, and of the batch with this key.
    And(&'a str),
    /// Of all.
    All,
}

/// Looks at a stage.
///
/// # Errors
/// When its batches cannot be told, or a path leaves its folder.
pub fn survey(
    ctx: &Context<'_>,
    stage: &Stage,
    state: &State,
    pending: &Pending,
    wish: &(dyn Fn(&str) -> Wish + Sync),
    keep: Keep<'_>,
) -> Result<Survey, String> {
    let mut scope = ctx.settings.scope(ctx.pipeline);
    scope.insert(RUN.to_owned(), run_scope(ctx.moment()));
    let written = |pattern: &str| !lineage::writers(ctx.pipeline, stage, pattern).is_empty();
    // A name that nothing mentions is in no scope: what a program takes whole is as it was before there was such a name.
    let overrides =
        facts::mentions_overrides(stage).then(|| overrides::upstream(ctx.pipeline, stage, state));
    let settings = Settings {
        overrides: overrides.clone().unwrap_or_default(),
        ..ctx.settings.clone()
    };
    let overrides = overrides.map(|list| Arc::new(json!(list)));
    let mut shared = facts::shared(stage, ctx.pipeline, &settings);
    shared.hide_keys(&|text| matches!(ctx.redactor.text(text), Cow::Owned(_)));
    let shared = Arc::new(shared);
    let shared_id = shared.id();
    let world = Later::new(ctx, stage, pending);
    let differing = match keep {
        Keep::Undone | Keep::And(_) if pending.is_empty() => ctx.asked.differing(),
        _ => None,
    };
    let differing = differing.filter(|differing| tells_all(stage, differing));
    let certain = !world.batches_may_differ();
    let recorded = Recorded::of(state);
    let batches = match expand(stage, &scope, &recorded, ctx, &written) {
        Ok(batches) => batches,
        Err(_) if !certain => Vec::new(),
        Err(error) => return Err(error.to_string()),
    };
    let known = state.stages.get(&stage.name);
    let live: BTreeSet<&str> = batches.iter().map(|batch| batch.key.as_str()).collect();
    let gone = known.map_or_else(Vec::new, |known| {
        known
            .batches
            .keys()
            .filter(|key| !live.contains(key.as_str()))
            .cloned()
            .collect()
    });
    // They go to quarantine before any batch runs.
    let leaving: HashSet<&RelPath> = known
        .into_iter()
        .flat_map(|known| gone.iter().filter_map(|key| known.batches.get(key)))
        .flat_map(BatchState::files)
        .collect();
    let one = One {
        ctx,
        stage,
        state,
        recorded: &recorded,
        written: &written,
        world: &world,
        shared: &shared,
        leaving: &leaving,
        known,
        wish,
        keep,
        differing: differing.as_ref(),
        shared_id: &shared_id,
        settings: &settings,
        overrides: &overrides,
    };
    Ok(Survey {
        batches: one.look_at_all(batches, &scope)?,
        shared,
        shared_id,
        certain,
        gone,
    })
}

/// Whether what differs tells all that a batch of the stage may be made again for: the files that its record names. A list of
/// recorded files is another when a batch was made, and files that a file names are others when it is.
fn tells_all(stage: &Stage, differing: &Differing) -> bool {
    let from_a_file = |each: &Each| matches!(each.source, EachSource::From { .. });
    let is_plain = |input: &Input| match &input.source {
        InputSource::Path(path) => !differing.wrote() || !path.is_pattern(),
        InputSource::From { .. } => false,
    };
    let is_listed = |path: &PathTemplate| !differing.wrote() || !path.is_pattern();
    !stage.each.iter().any(from_a_file)
        && stage.inputs.iter().all(is_plain)
        && stage.reads.iter().all(is_listed)
}

struct One<'a, 'c> {
    ctx: &'a Context<'c>,
    stage: &'a Stage,
    state: &'a State,
    recorded: &'a Recorded<'a>,
    written: &'a (dyn Fn(&str) -> bool + Sync),
    world: &'a Later<'a, 'c>,
    shared: &'a Facts,
    /// Files of batches that there are no more.
    leaving: &'a HashSet<&'a RelPath>,
    known: Option<&'a StageState>,
    wish: &'a (dyn Fn(&str) -> Wish + Sync),
    keep: Keep<'a>,
    /// The files that differ from when all batches were reused, where that is known.
    differing: Option<&'a Differing>,
    shared_id: &'a str,
    settings: &'a Settings,
    /// The accepted modifications by hand, if the stage mentions them.
    overrides: &'a Option<Arc<Value>>,
}

/// So many batches are worth a thread: what takes time is files that must be read.
const WORTH_A_THREAD: usize = 64;

impl One<'_, '_> {
    fn look_at_all(
        &self,
        batches: Vec<Batch>,
        scope: &Map<String, Value>,
    ) -> Result<Vec<Surveyed>, String> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = cores.min(batches.len() / WORTH_A_THREAD).max(1);
        let share = batches.len().div_ceil(threads).max(1);
        let mut batches = batches.into_iter();
        let shares: Vec<Vec<Batch>> = (0..threads)
            .map(|_| batches.by_ref().take(share).collect())
            .collect();
        if threads == 1 {
            return shares
                .into_iter()
                .map(|share| self.look_at(share, scope))
                .next()
                .unwrap_or_else(|| Ok(Vec::new()));
        }
        std::thread::scope(|scoped| {
            let mut threads = Vec::with_capacity(shares.len());
            for share in shares {
                threads.push(scoped.spawn(|| self.look_at(share, scope)));
            }
            let mut all = Vec::new();
            for thread in threads {
                match thread.join() {
                    Ok(found) => all.append(&mut found?),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            Ok(all)
        })
    }

    fn look_at(
        &self,
        batches: Vec<Batch>,
        scope: &Map<String, Value>,
    ) -> Result<Vec<Surveyed>, String> {
        // One scope for all batches: each puts its items in the place of those before.
        let mut names = Value::Object(scope.clone());
        let mut surveyed = Vec::with_capacity(batches.len());
        for batch in batches {
            if let Value::Object(names) = &mut names {
                for (name, item) in &batch.items {
                    names.insert(name.clone(), item.scope_value());
                }
            }
            surveyed.push(self.look(batch, &names)?);
        }
        Ok(surveyed)
    }

    fn look(&self, batch: Batch, scope: &Value) -> Result<Surveyed, String> {
        let known = self.known.and_then(|known| known.batches.get(&batch.key));
        let record = known.and_then(|found| found.record.as_ref());
        let recorded_shared = self
            .known
            .zip(record)
            .map(|(known, record)| known.shared(record))
            .unwrap_or_default();
        let wish = (self.wish)(&batch.key);
        let is_kept = match self.keep {
            Keep::All => true,
            Keep::And(key) => key == batch.key,
            Keep::Undone => false,
        };
        let forced = self.state.forced(&self.stage.name, &batch.key);
        let asked_since = || {
            let since = self.state.asked_since(&self.stage.name, &batch.key);
            since.map(<[String]>::to_vec)
        };
        let as_before = record.is_some_and(|record| self.is_as_before(record));
        if as_before && !is_kept && wish != Wish::Forced && forced.is_none() {
            return Ok(Surveyed::reused(batch));
        }
        let targets = self.targets(scope)?;
        let recorded = record.map(|record| &record.facts);
        let asked = Asked::new(self.world, recorded);
        let written = |pattern: &str| {
            asked.lists(pattern);
            (self.written)(pattern)
        };
        let inputs = resolve(self.stage, scope, self.recorded, &asked, &written);
        let own = inputs.and_then(|inputs| {
            let own = facts::own(self.stage, &batch, &inputs, scope, &asked);
            let mut own = own.map_err(|why| self.missed(&inputs, why))?;
            let (pipeline, settings) = (self.ctx.pipeline, self.settings);
            facts::add_picked(&mut own, self.stage, scope, self.shared, pipeline, settings)?;
            Ok((inputs, own))
        });
        let unread = asked.is_unread();
        let waits = asked.conditions();
        let (inputs, own) = match own {
            Ok(found) => found,
            Err(why) => {
                // What an earlier stage still makes cannot be missed yet.
                let decision = match (unread, record) {
                    (false, _) => Err(why),
                    (true, Some(_)) => Ok(Decision::May(waits)),
                    (true, None) => Ok(Decision::Will(vec![Reason::NeverMade])),
                };
                let surveyed = Surveyed {
                    asked_since: asked_since(),
                    batch,
                    inputs: Vec::new(),
                    own: Facts::default(),
                    targets,
                    overrides: self.overrides.clone(),
                    decision,
                };
                return Ok(self.required(surveyed, false));
            }
        };
        let is_settled = waits.is_empty();
        let plain: Vec<RelPath> = targets
            .values()
            .filter(|path| !path.as_str().contains('*'))
            .cloned()
            .collect();
        let on_disk = self.on_disk(&targets, record)?;
        let found = Found {
            known,
            recorded_shared,
            shared: self.shared,
            own: &own,
            paths: &plain,
            on_disk: &on_disk,
            pending: waits,
            wish,
            forced,
        };
        let decision = Ok(decide(&found));
        if !is_kept && decision == Ok(Decision::Reused) {
            return Ok(Surveyed::reused(batch));
        }
        let surveyed = Surveyed {
            asked_since: asked_since(),
            batch,
            inputs,
            own,
            targets,
            overrides: self.overrides.clone(),
            decision,
        };
        Ok(self.required(surveyed, is_settled))
    }

    /// The batch, which does not begin where it would run and a precondition does not hold.
    fn required(&self, mut found: Surveyed, is_settled: bool) -> Surveyed {
        if matches!(found.decision, Ok(Decision::Will(_)))
            && let Some(refused) = require::refused(self.ctx, self.stage, &found, is_settled)
        {
            found.decision = Err(refused);
        }
        found
    }

    /// Why a batch cannot have its inputs: one leaves its folder by a link, or whatever else.
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
            code: None,
            why,
        }
    }

    /// Whether nothing differs that a batch was made from or made, since it was reused.
    fn is_as_before(&self, record: &BatchRecord) -> bool {
        self.differing.is_some_and(|differing| {
            // A name that is a pattern may stand for what was written meanwhile.
            let differs = |name: &str| differing.has(name) || differing.wrote() && is_pattern(name);
            let mut facts = record.facts.iter();
            let mut outputs = record.outputs.iter();
            record.stale.is_none()
                && record.shared == self.shared_id
                && !facts.any(|(key, _)| differs(&key.name))
                && !outputs.any(|made| differing.has(made.path.as_str()))
        })
    }

    /// Where each output and the marker goes.
    fn targets(&self, scope: &Value) -> Result<BTreeMap<String, RelPath>, String> {
        let mut targets = BTreeMap::new();
        let outputs = self
            .stage
            .outputs
            .iter()
            .map(|output| (output.name.as_str(), &output.path));
        let marker = self.stage.marker.iter().map(|path| (MARKER, path));
        for (name, path) in outputs.chain(marker) {
            let place =
                paths::render(path, scope).map_err(|why| format!("output `{name}`: {why}"))?;
            // Of a pattern only its folder can be looked at; a plain path is looked at as what lies there is.
            if is_pattern(place.path.as_str()) {
                self.ctx
                    .files
                    .resolve(&place)
                    .map_err(|error| format!("output `{name}`: {error}"))?;
            }
            targets.insert(name.to_owned(), place.path);
        }
        Ok(targets)
    }

    /// What lies at the paths that the batch writes, and at those that it is recorded to have written.
    fn on_disk(
        &self,
        targets: &BTreeMap<String, RelPath>,
        record: Option<&BatchRecord>,
    ) -> Result<BTreeMap<RelPath, Digest>, String> {
        let plain = targets
            .iter()
            .filter(|(_, path)| !path.as_str().contains('*'));
        let plain = plain.map(|(name, path)| (name.as_str(), path));
        let recorded = record
            .iter()
            .flat_map(|record| record.outputs.iter())
            .map(|made| (made.name.as_str(), &made.path));
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

/// The `paths` and `digests` of a scope: of inputs and outputs, relative, so that nothing depends on where the workspace lies.
fn insert_files(
    base: &mut Map<String, Value>,
    inputs: &[Resolved],
    own: &Facts,
    targets: &BTreeMap<String, RelPath>,
) {
    let mut paths = Map::new();
    let mut digests = Map::new();
    for input in inputs.iter().filter(|input| !input.name.is_empty()) {
        let names: Vec<String> = input.files.iter().map(ToString::to_string).collect();
        let sums: Vec<Value> = names
            .iter()
            .map(|name| {
                let known = own.get(FactKind::Input, name);
                let known = known.filter(|value| !value.is("absent"));
                known.map_or(Value::Null, |value| json!(value))
            })
            .collect();
        let one = |list: Vec<Value>| {
            if input.many {
                Value::Array(list)
            } else {
                list.into_iter().next().unwrap_or(Value::Null)
            }
        };
        paths.insert(
            input.name.clone(),
            one(names.into_iter().map(Value::from).collect()),
        );
        digests.insert(input.name.clone(), one(sums));
    }
    for (name, path) in targets {
        paths.insert(name.clone(), json!(path.as_str()));
    }
    base.insert("paths".into(), Value::Object(paths));
    base.insert("digests".into(), Value::Object(digests));
}

/// The marker's name among outputs.
pub const MARKER: &str = "marker";
