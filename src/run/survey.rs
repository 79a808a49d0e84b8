//! Looks at a stage: its batches, their inputs, what is recorded and what lies on the disk; and has each decided.

use super::context::Context;
use crate::base::digest::Digest;
use crate::base::glob::{Glob, is_pattern};
use crate::base::path::{FilePath, RelPath, Root};
use crate::expr::scope::Format;
use crate::model::fingerprint::{FactKind, FactValue, Facts};
use crate::model::pipeline::Pipeline;
use crate::model::reason::{Condition, Reason};
use crate::model::record::BatchRecord;
use crate::model::stage::{EachSource, Stage};
use crate::model::state::{BatchState, State};
use crate::plan::decide::{Decision, Found, Wish, decide};
use crate::plan::expand::{Batch, expand};
use crate::plan::inputs::{Resolved, resolve};
use crate::plan::pending::Pending;
use crate::plan::recorded::Recorded;
use crate::plan::world::World;
use crate::plan::{facts, lineage, paths};
use serde_json::{Map, Value, json};
use std::cell::{Cell, RefCell};
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

/// A batch as it was found.
#[derive(Debug, Clone)]
pub struct Surveyed {
    /// The batch.
    pub batch: Batch,
    /// The files of its inputs.
    pub inputs: Vec<Resolved>,
    /// Its own facts.
    pub own: Facts,
    /// The path, or pattern, of each output and of the marker.
    pub targets: BTreeMap<String, RelPath>,
    /// What becomes of it; when an input cannot be had, why.
    pub decision: Result<Decision, String>,
}

impl Surveyed {
    /// The names that every scope has, and the batch's items, paths and digests: plain values.
    pub fn base(&self, ctx: &Context<'_>) -> Map<String, Value> {
        let mut base = ctx.settings.scope(ctx.pipeline);
        for (name, item) in &self.batch.items {
            base.insert(name.clone(), item.scope_value());
        }
        insert_files(&mut base, &self.inputs, &self.own, &self.targets);
        base
    }
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
    wish: &dyn Fn(&str) -> Wish,
) -> Result<Survey, String> {
    let scope = ctx.settings.scope(ctx.pipeline);
    let written = |pattern: &str| !lineage::writers(ctx.pipeline, stage, pattern).is_empty();
    let shared = Arc::new(facts::shared(stage, ctx.pipeline, ctx.settings));
    let shared_id = shared.id();
    let world = Later {
        inner: ctx,
        pipeline: ctx.pipeline,
        stage,
        pending,
        lists: RefCell::default(),
    };
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
    let mut surveyed = Vec::with_capacity(batches.len());
    // One scope for all batches: each puts its items in the place of those before.
    let mut names = Value::Object(scope);
    for batch in batches {
        let found = known.and_then(|known| known.batches.get(&batch.key));
        let record = found.and_then(|found| found.record.as_ref());
        let recorded_shared = known
            .zip(record)
            .map(|(known, record)| known.shared(record))
            .unwrap_or_default();
        let wish = wish(&batch.key);
        let one = One {
            ctx,
            stage,
            recorded: &recorded,
            written: &written,
            world: &world,
            shared: &shared,
            leaving: &leaving,
        };
        if let Value::Object(names) = &mut names {
            for (name, item) in &batch.items {
                names.insert(name.clone(), item.scope_value());
            }
        }
        surveyed.push(one.look(batch, &names, found, record, recorded_shared, wish)?);
    }
    Ok(Survey {
        shared,
        shared_id,
        batches: surveyed,
        certain,
        gone,
    })
}

struct One<'a, 'c> {
    ctx: &'a Context<'c>,
    stage: &'a Stage,
    recorded: &'a Recorded<'a>,
    written: &'a dyn Fn(&str) -> bool,
    world: &'a Later<'a, 'c>,
    shared: &'a Facts,
    /// Files of batches that there are no more.
    leaving: &'a HashSet<&'a RelPath>,
}

impl One<'_, '_> {
    fn look(
        &self,
        batch: Batch,
        scope: &Value,
        known: Option<&BatchState>,
        record: Option<&BatchRecord>,
        recorded_shared: Arc<Facts>,
        wish: Wish,
    ) -> Result<Surveyed, String> {
        let targets = self.targets(scope)?;
        let recorded = record.map(|record| &record.facts);
        let asked = Asked {
            world: self.world,
            recorded,
            waits: RefCell::default(),
            unread: Cell::new(false),
        };
        let written = |pattern: &str| {
            asked.lists(pattern);
            (self.written)(pattern)
        };
        let inputs = resolve(self.stage, scope, self.recorded, &asked, &written);
        let own = inputs.and_then(|inputs| {
            let own = facts::own(self.stage, &batch, &inputs, scope, &asked)?;
            Ok((inputs, own))
        });
        let unread = asked.unread.get();
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
                return Ok(Surveyed {
                    batch,
                    inputs: Vec::new(),
                    own: Facts::default(),
                    targets,
                    decision,
                });
            }
        };
        let plain: Vec<RelPath> = targets
            .values()
            .filter(|path| !path.as_str().contains('*'))
            .cloned()
            .collect();
        let on_disk = self.on_disk(&plain, record)?;
        let found = Found {
            known,
            recorded_shared,
            shared: self.shared,
            own: &own,
            paths: &plain,
            on_disk: &on_disk,
            pending: waits,
            wish,
        };
        let decision = Ok(decide(&found));
        Ok(Surveyed {
            batch,
            inputs,
            own,
            targets,
            decision,
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
            self.ctx
                .files
                .resolve(&place)
                .map_err(|error| format!("output `{name}`: {error}"))?;
            targets.insert(name.to_owned(), place.path);
        }
        Ok(targets)
    }

    fn on_disk(
        &self,
        targets: &[RelPath],
        record: Option<&BatchRecord>,
    ) -> Result<BTreeMap<RelPath, Digest>, String> {
        let recorded = record
            .iter()
            .flat_map(|record| record.outputs.iter().map(|made| &made.path));
        let all: BTreeSet<&RelPath> = targets.iter().chain(recorded).collect();
        let mut found = BTreeMap::new();
        let goes = |path: &RelPath| self.leaving.contains(path) || self.world.pending.goes(path);
        for path in all.into_iter().filter(|path| !goes(path)) {
            if let Some(digest) = self.ctx.digest(&FilePath::workspace(path.clone()))? {
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
    for input in inputs {
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

/// The disk, with the stages that are still to run kept in mind.
struct Later<'a, 'c> {
    inner: &'a Context<'c>,
    pipeline: &'a Pipeline,
    stage: &'a Stage,
    pending: &'a Pending,
    /// Lists that batches asked for: many ask for the same, and a folder is walked for each.
    lists: RefCell<BTreeMap<(Root, String), Result<Vec<RelPath>, String>>>,
}

impl Later<'_, '_> {
    /// The earlier stage that may still change a file.
    fn changer(&self, file: &FilePath) -> Option<String> {
        if file.root != Root::Workspace {
            return None;
        }
        self.pending
            .may_change(self.pipeline, self.stage, &file.path)
    }

    /// Whether an `each` depends on what an earlier stage may still make or change.
    fn batches_may_differ(&self) -> bool {
        let mut sources = self
            .stage
            .each
            .iter()
            .filter_map(|each| match &each.source {
                EachSource::Path(path) => Some((path, false)),
                EachSource::From { file, .. } => Some((file, true)),
                EachSource::Values(_) | EachSource::Count(_) => None,
            });
        sources.any(|(path, by_content)| {
            let pattern = path.pattern();
            let made = self.pending.may_make(self.pipeline, self.stage, &pattern);
            made.is_some() || by_content && self.pending.may_change_at(&pattern)
        })
    }
}

/// The disk for one batch: a file that an earlier stage may still change is taken as it was recorded, and the wait is noted.
struct Asked<'a, 'b, 'c> {
    world: &'a Later<'b, 'c>,
    recorded: Option<&'a Facts>,
    /// Files and patterns, with the stages that they wait for.
    waits: RefCell<BTreeMap<String, String>>,
    /// Whether the content of a file was wanted that may still change, and is not there.
    unread: Cell<bool>,
}

impl Asked<'_, '_, '_> {
    /// A list of files is asked for.
    fn lists(&self, pattern: &str) {
        let world = self.world;
        if let Some(stage) = world.pending.may_make(world.pipeline, world.stage, pattern) {
            self.waits.borrow_mut().insert(pattern.to_owned(), stage);
        }
    }

    /// What must come true. Of files that a pattern covers, the pattern says enough.
    fn conditions(self) -> Vec<Condition> {
        let waits = self.waits.into_inner();
        let patterns: Vec<Glob> = waits
            .keys()
            .filter(|path| is_pattern(path))
            .filter_map(|path| Glob::parse(path).ok())
            .collect();
        let covered = |path: &str| {
            let parsed = RelPath::parse(path);
            parsed.is_ok_and(|path| patterns.iter().any(|pattern| pattern.matches(&path)))
        };
        waits
            .into_iter()
            .filter(|(path, _)| is_pattern(path) || !covered(path))
            .map(|(path, stage)| Condition::OutputChanges { stage, path })
            .collect()
    }
}

impl World for Asked<'_, '_, '_> {
    fn content(&self, file: &FilePath, format: Format) -> Result<Value, String> {
        let content = self.world.inner.content(file, format);
        if let Some(stage) = self.world.changer(file) {
            self.waits.borrow_mut().insert(file.to_string(), stage);
            if content.is_err() {
                self.unread.set(true);
            }
        }
        content
    }

    fn matches(&self, root: Root, pattern: &str) -> Result<Vec<RelPath>, String> {
        let mut lists = self.world.lists.borrow_mut();
        let list = lists.entry((root, pattern.to_owned()));
        let list = list.or_insert_with(|| self.world.inner.matches(root, pattern));
        list.clone()
    }

    fn is_folder(&self, file: &FilePath) -> bool {
        self.world.inner.is_folder(file)
    }

    fn digest(&self, file: &FilePath) -> Result<Option<Digest>, String> {
        let Some(stage) = self.world.changer(file) else {
            if file.root == Root::Workspace && self.world.pending.goes(&file.path) {
                return Ok(None);
            }
            return self.world.inner.digest(file);
        };
        self.waits.borrow_mut().insert(file.to_string(), stage);
        let recorded = self
            .recorded
            .and_then(|facts| facts.get(FactKind::Input, &file.text()))
            .and_then(FactValue::digest);
        Ok(Some(recorded.unwrap_or_else(|| Digest::of(""))))
    }
}
