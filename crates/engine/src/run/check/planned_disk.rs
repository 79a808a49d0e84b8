//! The disk as a plan sees it: records which files earlier stages may still change.

use crate::run::context::Context;
use milepost_core::base::digest::Digest;
use milepost_core::base::glob::{Glob, is_pattern};
use milepost_core::base::path::{FilePath, RelPath, Root};
use milepost_core::expr::jq::Evaluator;
use milepost_core::expr::scope::Reading;
use milepost_core::model::fingerprint::{FactKind, Facts};
use milepost_core::model::reason::Condition;
use milepost_core::model::record::BatchRecord;
use milepost_core::model::stage::{EachSource, Stage};
use milepost_core::plan::pending::Pending;
use milepost_core::plan::world::{Matches, World};
use milepost_store::store::folders::{Folders, FoundFile};
use milepost_store::store::quarantine::RetiredBatches;
use serde_json::Value;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The disk, together with the stages that are still to run.
pub(crate) struct PlannedDisk<'a, 'c> {
    inner: &'a Context<'c>,
    stage: &'a Stage,
    pending: &'a Pending,
    /// Cached lists of files: many batches need the same.
    lists: Mutex<Lists>,
    folders: Folders<'a>,
    /// Whether contents matter, or only which files there are.
    has_contents: bool,
    retired: OnceLock<RetiredBatches>,
}

type Lists = BTreeMap<(Root, String), Result<Matches, String>>;

impl<'a, 'c> PlannedDisk<'a, 'c> {
    pub(crate) fn new(inner: &'a Context<'c>, stage: &'a Stage, pending: &'a Pending) -> Self {
        Self {
            inner,
            stage,
            pending,
            lists: Mutex::default(),
            folders: Folders::new(inner.files),
            has_contents: true,
            retired: OnceLock::new(),
        }
    }

    /// Returns the disk with any digest for a file that exists.
    pub(crate) fn without_contents(self) -> Self {
        Self {
            has_contents: false,
            ..self
        }
    }

    /// Returns the records of a retired batch, each with the folder of its outputs in quarantine.
    pub(crate) fn retired(&self, key: &str) -> impl Iterator<Item = (&RelPath, BatchRecord)> {
        let layout = self.inner.layout;
        let retired = self.retired.get_or_init(|| RetiredBatches::list(layout));
        retired.of(layout, &self.stage.name, key)
    }

    /// Takes over the cached lists of files of another one.
    pub(crate) fn take_lists(&self, other: Self) {
        let mut lists = self.lists.lock().unwrap_or_else(PoisonError::into_inner);
        lists.extend(
            other
                .lists
                .into_inner()
                .unwrap_or_else(PoisonError::into_inner),
        );
    }

    /// Returns the present digest of a file; `None` if it does not exist.
    pub(crate) fn digest(&self, file: &FilePath) -> Result<Option<Digest>, String> {
        let ctx = self.inner;
        if file.root == Root::Workspace && ctx.imports.contains_key(&file.path) {
            return ctx.digest(file);
        }
        let seen = match self.folders.look(file) {
            FoundFile::File(_) if !self.has_contents => return Ok(Some(Digest::of(""))),
            FoundFile::File(stamp) => match ctx.cache.known(stamp) {
                Some(seen) => Some(seen),
                None => return ctx.digest(file),
            },
            FoundFile::Nothing => None,
            FoundFile::Unclear => return ctx.digest(file),
        };
        ctx.asked.file(file, seen);
        Ok(seen.map(|seen| seen.digest))
    }

    /// Returns the files that matched patterns so far.
    pub(crate) fn listed(&self) -> Vec<Arc<str>> {
        let lists = self.lists.lock().unwrap_or_else(PoisonError::into_inner);
        let found = lists.iter().filter_map(|((root, _), found)| {
            let files = found.as_ref().ok()?.files.iter().cloned();
            Some(files.map(|path| FilePath { root: *root, path }.text()))
        });
        found.flatten().collect()
    }

    /// Returns true if a file will be removed.
    pub(crate) fn goes(&self, path: &RelPath) -> bool {
        self.pending.goes(path)
    }

    /// Returns the earlier stage that may still change a file.
    fn changer(&self, file: &FilePath) -> Option<String> {
        if file.root != Root::Workspace {
            return None;
        }
        self.pending
            .may_change(self.inner.pipeline, self.stage, &file.path)
    }

    /// Returns the conditions under which the items of a batch change: the files that they come from, if those may still
    /// change.
    fn items_may_differ(&self) -> impl Iterator<Item = Condition> {
        self.stage.each.iter().filter_map(|each| {
            let EachSource::From { file, .. } = &each.source else {
                return None;
            };
            let path = file.pattern();
            let (pipeline, before) = (self.inner.pipeline, self.stage);
            let stage = self.pending.may_change_by(pipeline, before, &path)?;
            Some(Condition::ItemChanges { stage, path })
        })
    }

    /// Returns true if an `each` depends on files that an earlier stage may still change.
    pub(crate) fn batches_may_differ(&self) -> bool {
        let sources = self.stage.each.iter().map(|each| &each.source);
        let mut sources = sources.filter_map(|source| match source {
            EachSource::Path(path) => Some((path, false)),
            EachSource::From { file, .. } => Some((file, true)),
            EachSource::Values(_) | EachSource::Count(_) => None,
        });
        sources.any(|(path, by_content)| {
            let pattern = path.pattern();
            let (pipeline, before) = (self.inner.pipeline, self.stage);
            let stage = if by_content {
                self.pending.may_change_by(pipeline, before, &pattern)
            } else {
                self.pending.may_make(pipeline, before, &pattern)
            };
            stage.is_some()
        })
    }
}

/// The disk as one batch sees it. For a file that an earlier stage may still change, the recorded digest is used and the wait
/// is noted.
pub(crate) struct BatchDisk<'a, 'b, 'c> {
    world: &'a PlannedDisk<'b, 'c>,
    recorded: Option<&'a Facts>,
    /// Files and patterns with the stages that may change them.
    waits: RefCell<BTreeMap<String, String>>,
    /// Returns true if the batch needs the content of a file that does not exist and may still change.
    unread: Cell<bool>,
}

impl<'a, 'b, 'c> BatchDisk<'a, 'b, 'c> {
    pub(crate) fn new(world: &'a PlannedDisk<'b, 'c>, recorded: Option<&'a Facts>) -> Self {
        Self {
            world,
            recorded,
            waits: RefCell::default(),
            unread: Cell::new(false),
        }
    }

    /// Returns true if the batch needs the content of a file that does not exist and may still change.
    pub(crate) fn is_unread(&self) -> bool {
        self.unread.get()
    }

    /// Notes that the batch uses a list of files.
    pub(crate) fn lists(&self, pattern: &str) {
        let world = self.world;
        if let Some(stage) = world
            .pending
            .may_make(world.inner.pipeline, world.stage, pattern)
        {
            self.waits.borrow_mut().insert(pattern.to_owned(), stage);
        }
    }

    /// Returns the conditions. Files that a noted pattern covers are left out.
    pub(crate) fn conditions(self) -> Vec<Condition> {
        let waits = self.waits.into_inner();
        let patterns = waits.keys().filter(|path| is_pattern(path));
        let patterns: Vec<Glob> = patterns.filter_map(|path| Glob::parse(path).ok()).collect();
        let covered = |path: &str| {
            let parsed = RelPath::parse(path);
            parsed.is_ok_and(|path| patterns.iter().any(|pattern| pattern.matches(&path)))
        };
        waits
            .into_iter()
            .filter(|(path, _)| is_pattern(path) || !covered(path))
            .map(|(path, stage)| Condition::OutputChanges { stage, path })
            .chain(self.world.items_may_differ())
            .collect()
    }
}

impl World for BatchDisk<'_, '_, '_> {
    fn content(&self, file: &FilePath, reading: &Reading) -> Result<Value, String> {
        let content = self.world.inner.content(file, reading);
        if let Some(stage) = self.world.changer(file) {
            self.waits.borrow_mut().insert(file.to_string(), stage);
            if content.is_err() {
                self.unread.set(true);
            }
        }
        content
    }

    fn matches(&self, root: Root, pattern: &str) -> Result<Matches, String> {
        let lists = self.world.lists.lock();
        let mut lists = lists.unwrap_or_else(PoisonError::into_inner);
        let list = lists.entry((root, pattern.to_owned()));
        let list = list.or_insert_with(|| self.world.inner.matches(root, pattern));
        list.clone()
    }

    fn is_folder(&self, file: &FilePath) -> Result<bool, String> {
        self.world.inner.is_folder(file)
    }

    fn digest(&self, file: &FilePath) -> Result<Option<Digest>, String> {
        let Some(stage) = self.world.changer(file) else {
            if file.root == Root::Workspace && self.world.pending.goes(&file.path) {
                return Ok(None);
            }
            return self.world.digest(file);
        };
        self.waits.borrow_mut().insert(file.to_string(), stage);
        let name = file.text();
        let mut kinds = [FactKind::Input, FactKind::Dependency].into_iter();
        let recorded = kinds.find_map(|kind| self.recorded?.get(kind, &name)?.digest());
        Ok(Some(recorded.unwrap_or_else(|| Digest::of(""))))
    }

    fn evaluator(&self, stage: &Stage) -> Box<dyn Evaluator> {
        self.world.inner.evaluator(stage)
    }
}
