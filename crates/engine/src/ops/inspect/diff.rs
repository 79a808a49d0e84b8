//! Compares a workspace with another one, with an earlier revision of its records, or with its state before the last run.

use crate::ops::inspect::elements::{ElementsDiff, FieldChange, Records, compare, differing};
use crate::ops::inspect::revision::{DeclaredDiff, Revision, declared};
use crate::ops::project::error::OpsError;
use crate::ops::project::open::open_recorded;
use crate::ops::project::open_project::OpenProject;
use crate::ops::project::request::Request;
use crate::ops::project::snapshot::Snapshot;
use milepost_core::base::digest::Digest;
use milepost_core::base::natural::natural;
use milepost_core::expr::scope::Format;
use milepost_core::expr::select::{PathStep, Select};
use milepost_core::model::event::Event;
use milepost_core::model::stage::{Output, Stage};
use milepost_core::model::state::StageState;
use milepost_core::model::step::Part;
use milepost_store::store::files::digest_of;
use milepost_store::store::journal;
use milepost_store::store::layout::Layout;
use milepost_store::store::read;
use milepost_store::store::workspace::Workspace;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The size up to which a document is compared value by value, in bytes.
const SMALL: u64 = 4 << 20;

/// The fields that are tried as keys if none is declared.
const USUAL: [&str; 4] = ["global_id", "id", "key", "name"];

/// The two sides of a comparison.
#[derive(Debug, Clone)]
pub struct DiffOptions {
    /// The old side: another workspace, or a file of records. `None` for the earlier revision that the workspace has, or else the state
    /// before the last run.
    pub other: Option<PathBuf>,
    /// The stages whose outputs are compared file by file; empty for all, or by revision if the project declares how.
    pub stages: Vec<String>,
    /// The most keys, changes and files to list of each kind.
    pub limit: usize,
}

/// The differences between two workspaces.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Diff {
    /// The old side: the folder of a workspace, a file of records, or `before run ID`.
    pub old: String,
    /// The new side: the folder of a workspace.
    pub new: String,
    /// True if only digests of the old side are known, because its files are not kept.
    pub digests_only: bool,
    /// The changes by record, if a step `diff` declares what is compared; the outputs are not listed then.
    pub revision: Option<Revision>,
    /// The outputs that differ, by stage.
    pub outputs: Vec<OutputDiff>,
    /// The number of equal outputs.
    pub same: u64,
}

/// The differences of an output.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct OutputDiff {
    /// The stage's name.
    pub stage: String,
    /// The output's name in the declaration.
    pub output: String,
    /// The number of equal files.
    pub same: u64,
    /// The files that differ.
    pub different: Vec<String>,
    /// The files that only the new side has.
    pub added: Vec<String>,
    /// The files that only the old side has.
    pub removed: Vec<String>,
    /// The number of files that the three lists leave out.
    pub more: u64,
    /// The records that differ, if the output is a list of records.
    pub elements: Option<ElementsDiff>,
    /// The values that differ, if the output is one small JSON document.
    pub values: Vec<FieldChange>,
    /// Why the content could not be compared.
    pub problem: Option<String>,
}

impl Diff {
    /// Returns true if nothing differs.
    pub fn is_same(&self) -> bool {
        let revision = self.revision.as_ref().map(|revision| &revision.totals);
        let has_changes = revision.is_some_and(|all| all.added + all.removed + all.changed > 0);
        self.outputs.is_empty() && !has_changes
    }
}

/// The files of an output with their digests.
type Side = BTreeMap<String, Digest>;

/// Compares two workspaces. Nothing is written.
///
/// # Errors
/// When there is no project, a workspace cannot be read, or the other one has no run.
pub fn diff(request: &Request, options: &DiffOptions) -> Result<Diff, OpsError> {
    let opened = open_recorded(request)?;
    let names = options.stages.iter();
    let names = names.map(|name| Ok(opened.stage(name)?.name.clone()));
    let options = &DiffOptions {
        stages: names.collect::<Result<_, OpsError>>()?,
        ..options.clone()
    };
    let by_revision = options.stages.is_empty().then(|| declared(&opened));
    let by_revision = by_revision.flatten();
    let baseline = match (&options.other, &by_revision) {
        (None, Some(declared)) => declared.baseline(&opened)?,
        _ => None,
    };
    let other = options
        .other
        .as_ref()
        .map(|other| request.folder.join(other));
    let Some(old) = other.or(baseline) else {
        return with_last_run(&opened, options);
    };
    if old.is_file() {
        let Some(declared) = by_revision else {
            return Err(OpsError::Usage(format!(
                "`{}` is a file, and no step `diff` declares how its records are compared: name the folder of a workspace",
                old.display()
            )));
        };
        let new = &opened.workspace.layout;
        let are = Snapshot::read(new)?;
        let found = declared.with_file(&opened, &old, (&are.state, options.limit))?;
        return Ok(Diff::of_revision(old.display().to_string(), new, found));
    }
    if let Some(named) = options.other.as_ref().filter(|_| !old.exists()) {
        return Err(OpsError::Usage(format!(
            "there is no file or folder `{}`: name a file of records, or the folder of a workspace, which contains `.milepost`",
            named.display()
        )));
    }
    let old = Workspace::open(&old, opened.clock.now())?;
    if !old.is_made {
        let other = options
            .other
            .as_deref()
            .unwrap_or_else(|| old.layout.root());
        return Err(OpsError::Usage(format!(
            "`{}` is not a workspace with a run: name the folder that contains `.milepost`",
            other.display()
        )));
    }
    with_other(&opened, &old, by_revision, options)
}

impl Diff {
    fn of_revision(old: String, new: &Layout, revision: Revision) -> Self {
        Self {
            old,
            new: new.root().display().to_string(),
            digests_only: false,
            revision: Some(revision),
            outputs: Vec::new(),
            same: 0,
        }
    }
}

fn stages<'a>(
    opened: &'a OpenProject,
    options: &'a DiffOptions,
) -> impl Iterator<Item = &'a Stage> {
    let chosen = |stage: &&Stage| options.stages.is_empty() || options.stages.contains(&stage.name);
    opened.pipeline.stages.iter().filter(chosen)
}

fn with_other(
    opened: &OpenProject,
    old: &Workspace,
    by_revision: Option<DeclaredDiff<'_>>,
    options: &DiffOptions,
) -> Result<Diff, OpsError> {
    let new = &opened.workspace.layout;
    let (were, are) = (Snapshot::read(&old.layout)?, Snapshot::read(new)?);
    if let Some(declared) = by_revision {
        let name = old.layout.root().display().to_string();
        let found =
            declared.with_workspace(opened, (old, &were.state), (&are.state, options.limit))?;
        return Ok(Diff::of_revision(name, new, found));
    }
    let mut diff = Diff {
        old: old.layout.root().display().to_string(),
        new: new.root().display().to_string(),
        ..Diff::default()
    };
    for stage in stages(opened, options) {
        for output in &stage.outputs {
            let was = side(&old.layout, were.state.stages.get(&stage.name), output)?;
            let is = side(new, are.state.stages.get(&stage.name), output)?;
            let found = files(stage, &output.name, &was, &is, options.limit);
            if found == unchanged(stage, &output.name, found.same) {
                diff.same += u64::from(!is.is_empty());
                continue;
            }
            let mut found = found;
            content(
                stage,
                output,
                (&old.layout, &was),
                (new, &is),
                options.limit,
                &mut found,
            );
            // The same records may be packed into other batches.
            diff.outputs.push(found);
        }
    }
    Ok(diff)
}

/// Returns the files of an output with their present digests.
fn side(layout: &Layout, known: Option<&StageState>, output: &Output) -> Result<Side, OpsError> {
    let mut side = Side::new();
    for (_, made) in known.into_iter().flat_map(StageState::outputs) {
        if made.name != output.name {
            continue;
        }
        let found = digest_of(&layout.at(&made.path)).map_err(OpsError::unreadable(&made.path))?;
        if let Some((digest, _)) = found {
            side.insert(made.path.to_string(), digest);
        }
    }
    Ok(side)
}

fn unchanged(stage: &Stage, output: &str, same: u64) -> OutputDiff {
    OutputDiff {
        stage: stage.name.clone(),
        output: output.to_owned(),
        same,
        ..OutputDiff::default()
    }
}

fn files(stage: &Stage, output: &str, old: &Side, new: &Side, limit: usize) -> OutputDiff {
    let mut found = unchanged(stage, output, 0);
    for (path, digest) in new {
        match old.get(path) {
            None => found.added.push(path.clone()),
            Some(was) if was == digest => found.same += 1,
            Some(_) => found.different.push(path.clone()),
        }
    }
    let gone = old.keys().filter(|path| !new.contains_key(*path));
    found.removed.extend(gone.cloned());
    for list in [&mut found.different, &mut found.added, &mut found.removed] {
        list.sort_by(|a, b| natural(a, b));
        found.more += list.len().saturating_sub(limit) as u64;
        list.truncate(limit);
    }
    found
}

/// Compares the content of an output's files by record, or value by value.
fn content(
    stage: &Stage,
    output: &Output,
    old: (&Layout, &Side),
    new: (&Layout, &Side),
    limit: usize,
    found: &mut OutputDiff,
) {
    if output.format != Format::Json || old.1.is_empty() || new.1.is_empty() {
        return;
    }
    let places = |(layout, side): (&Layout, &Side)| -> Vec<PathBuf> {
        let mut paths: Vec<&String> = side.keys().collect();
        paths.sort_by(|a, b| natural(a, b));
        paths
            .into_iter()
            .map(|path| layout.root().join(path))
            .collect()
    };
    let (was, is) = (places(old), places(new));
    if let Some((items, key)) = records(stage, output, &is) {
        let records = |files: Vec<PathBuf>| Records {
            files,
            items: items.clone(),
            key: key.clone(),
        };
        match compare(&records(was), &records(is), limit) {
            Ok(elements) => found.elements = Some(elements),
            Err(why) => found.problem = Some(why),
        }
        return;
    }
    let ([was], [is]) = (was.as_slice(), is.as_slice()) else {
        return;
    };
    let (Some(was), Some(is)) = (small(was), small(is)) else {
        return;
    };
    differing("", Some(&was), Some(&is), &mut found.values);
    found.values.truncate(limit);
}

fn small(path: &Path) -> Option<Value> {
    let is_small = path.metadata().is_ok_and(|found| found.len() <= SMALL);
    let bytes = is_small.then(|| read::bytes(path).ok())??;
    serde_json::from_slice(&bytes).ok()
}

/// Returns where the records of an output and their keys are: as declared by conservation or by the step, otherwise by a usual name in
/// the list that is validated record by record.
fn records(stage: &Stage, output: &Output, files: &[PathBuf]) -> Option<(Select, Select)> {
    if let Some(conserve) = &stage.conserve
        && conserve.output.first() == output.name
    {
        let mut steps = conserve.output.rest().steps().to_vec();
        if output.is_many() && steps.first() == Some(&PathStep::Each) {
            steps.remove(0);
        }
        let last = steps.iter().rposition(|step| *step == PathStep::Each)?;
        let key = steps.split_off(last + 1);
        return (!key.is_empty()).then(|| (Select::of(steps), Select::of(key)));
    }
    let steps = stage.steps.iter().filter(|step| step.out == output.name);
    let mut parts = steps.flat_map(|step| step.kind.parts());
    let merged = parts.find_map(|(_, part)| match part {
        Part::RecordKey(key) => Select::parse(&key.source).ok(),
        _ => None,
    });
    let elements = Select::of([PathStep::Field("elements".to_owned()), PathStep::Each]);
    if let Some(key) = merged {
        return Some((elements, key));
    }
    let items = output.stream.as_ref().map(Select::items)?;
    let key = usual_key(&items, files)?;
    Some((items, Select::of([PathStep::Field(key.to_owned())])))
}

/// Returns the first usual key that the first record has.
fn usual_key(items: &Select, files: &[PathBuf]) -> Option<&'static str> {
    let mut first = None;
    for path in files {
        let file = read::open(path).ok()?;
        // The error only ends reading after the first record.
        let _ = items.read::<()>(file, &mut |value| {
            first = Some(value);
            Err(())
        });
        if first.is_some() {
            break;
        }
    }
    let first = first?;
    USUAL.into_iter().find(|key| first.get(key).is_some())
}

/// The last two recorded digests of a file, and the run that recorded the last.
#[derive(Default)]
struct History {
    stage: String,
    output: String,
    run: String,
    was: Option<Digest>,
    is: Option<Digest>,
}

fn with_last_run(opened: &OpenProject, options: &DiffOptions) -> Result<Diff, OpsError> {
    let layout = &opened.workspace.layout;
    let mut files_of: BTreeMap<String, History> = BTreeMap::new();
    let mut last: Option<String> = None;
    journal::read_all(layout, &mut |_, record| {
        let mut set = |stage: &str, output: &str, path: String, digest: Option<Digest>| {
            let entry = files_of.entry(path).or_default();
            if entry.run != record.run_id {
                entry.run.clone_from(&record.run_id);
                entry.was = entry.is;
            }
            if !output.is_empty() {
                output.clone_into(&mut entry.output);
            }
            stage.clone_into(&mut entry.stage);
            entry.is = digest;
            last = Some(record.run_id.clone());
        };
        match &record.event {
            Event::Published { stage, record, .. } => {
                for made in &record.outputs {
                    set(stage, &made.name, made.path.to_string(), Some(made.digest));
                }
            }
            Event::Accepted { stage, outputs, .. } => {
                for made in outputs {
                    set(stage, &made.name, made.path.to_string(), Some(made.digest));
                }
            }
            Event::Retired { stage, files, .. } => {
                for path in files.keys() {
                    set(stage, "", path.to_string(), None);
                }
            }
            _ => {}
        }
    })?;
    let Some(last) = last else {
        return Err(OpsError::Usage(
            "this workspace has no outputs: there is nothing to compare".to_owned(),
        ));
    };
    let mut diff = Diff {
        old: format!("before run {last}"),
        new: layout.root().display().to_string(),
        digests_only: true,
        revision: None,
        outputs: Vec::new(),
        same: 0,
    };
    for stage in stages(opened, options) {
        for output in &stage.outputs {
            let mut old = Side::new();
            let mut new = Side::new();
            let of_output = files_of
                .iter()
                .filter(|(_, entry)| entry.stage == stage.name && entry.output == output.name);
            for (path, entry) in of_output {
                let was = if entry.run == last {
                    entry.was
                } else {
                    entry.is
                };
                old.extend(was.map(|digest| (path.clone(), digest)));
                new.extend(entry.is.map(|digest| (path.clone(), digest)));
            }
            let found = files(stage, &output.name, &old, &new, options.limit);
            if found == unchanged(stage, &output.name, found.same) {
                diff.same += u64::from(!new.is_empty());
            } else {
                diff.outputs.push(found);
            }
        }
    }
    Ok(diff)
}
