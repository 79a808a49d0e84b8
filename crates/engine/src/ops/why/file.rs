//! Explains a file: the inputs it was built from, through all stages, and what reads it.

use super::batch::journalled;
use super::explanation::{FileMade, FileState, FileWhy, Origin};
use super::makers::Makers;
use crate::ops::inspect::calls::batch_calls;
use crate::ops::inspect::graph::as_set;
use crate::ops::project::error::OpsError;
use crate::ops::project::open_project::OpenProject;
use milepost_core::base::digest::Digest;
use milepost_core::base::path::{FilePath, RelPath, Root};
use milepost_core::model::agent::{Cli, CliCommand, Provider};
use milepost_core::model::fingerprint::FactKind;
use milepost_core::model::pipeline::Asset;
use milepost_core::model::record::BatchRecord;
use milepost_core::model::state::State;
use milepost_core::plan::expand::batch_name;
use milepost_core::plan::lineage;
use milepost_core::plan::world::World;
use milepost_store::store::files::FileError;
use milepost_store::store::files::real_path;
use std::collections::BTreeSet;
use std::path::Path;

/// The most inputs listed of a batch.
pub(super) const LISTED: usize = 10;

/// The most readers listed.
const READERS: usize = 100;

/// Explains a file; `None` if nothing is known about it.
pub(crate) fn file_why(
    opened: &OpenProject,
    folder: &Path,
    state: &State,
    what: &str,
) -> Result<Option<FileWhy>, OpsError> {
    let makers = Makers::of(state);
    let Some((file, digest)) = place(opened, folder, &makers, what)? else {
        return Ok(None);
    };
    let name = file.to_string();
    let found = (file.root == Root::Workspace)
        .then(|| makers.get(file.path.as_str()))
        .flatten();
    let mut seen = BTreeSet::from([name.clone()]);
    let (from, more) = found.map_or_else(Default::default, |(_, record)| {
        origins(&makers, record, &mut seen)
    });
    let made = found.and_then(|(stage, record)| {
        let made = record.outputs.iter().find(|made| made.path == file.path)?;
        Some((stage, record, made))
    });
    let made = match made {
        Some((stage, record, made)) => Some(FileMade {
            stage: stage.to_owned(),
            batch: record.key.clone(),
            output: made.name.clone(),
            digest: made.digest,
            modified: record.overrides(stage).into_iter().find(|one| {
                let path = one.path.as_deref();
                path.is_none_or(|path| path == made.path.as_str())
            }),
            size: made.size,
            state: FileState::of(digest, made, record),
            run: record.run.clone(),
            when: journalled(opened, stage, &record.key)?.0,
            asked: batch_calls(opened, stage, &record.key, Some(record))?,
        }),
        None => None,
    };
    let mut read_by = readers(opened, state, &file);
    let more_readers = read_by.len().saturating_sub(READERS) as u64;
    read_by.truncate(READERS);
    let reads = |path: &milepost_core::model::stage::PathTemplate| {
        let shown = as_set(opened, path);
        let pattern = shown.strip_prefix("project:").unwrap_or(&shown);
        path.root == file.root && milepost_core::base::glob::may_meet(pattern, file.path.as_str())
    };
    let stages = opened.pipeline.stages.iter();
    let declared: Vec<String> = stages
        .filter(|stage| lineage::reads(stage).into_iter().any(reads))
        .map(|stage| stage.name.clone())
        .collect();
    if made.is_none() && digest.is_none() && read_by.is_empty() && declared.is_empty() {
        return Ok(None);
    }
    Ok(Some(FileWhy {
        path: name,
        digest,
        made,
        from,
        more,
        read_by,
        more_readers,
        declared,
    }))
}

/// Finds the file that a text names, by its declared path or by its path on this machine, with its present digest.
pub(crate) fn place(
    opened: &OpenProject,
    folder: &Path,
    makers: &Makers<'_>,
    what: &str,
) -> Result<Option<(FilePath, Option<Digest>)>, OpsError> {
    let ctx = opened.context();
    let candidates = candidates(opened, folder, what);
    for file in &candidates {
        let is_folder = ctx.files.resolve(file).is_ok_and(|path| path.is_dir());
        if is_folder {
            continue;
        }
        if let Err(error @ FileError::Own { .. }) = ctx.files.source(file) {
            return Err(OpsError::Outside(format!("`{file}` is not shown: {error}")));
        }
        let digest = ctx.digest(file).map_err(OpsError::World)?;
        let recorded = file.root == Root::Workspace && makers.get(file.path.as_str()).is_some();
        if digest.is_some() || recorded {
            return Ok(Some((file.clone(), digest)));
        }
    }
    Ok(candidates.into_iter().next().map(|file| (file, None)))
}

/// Returns the files that a text may name, the likeliest first.
pub(super) fn candidates(opened: &OpenProject, folder: &Path, what: &str) -> Vec<FilePath> {
    let mut candidates: Vec<FilePath> = Vec::new();
    candidates.extend(what.parse::<FilePath>());
    let real = real_path(&folder.join(what));
    for (root, base) in [
        (Root::Workspace, opened.files.folder(Root::Workspace)),
        (Root::Project, opened.files.folder(Root::Project)),
    ] {
        let inside = real.strip_prefix(base).ok().and_then(Path::to_str);
        candidates.extend(
            inside
                .and_then(|text| RelPath::parse(text).ok())
                .map(|path| FilePath { root, path }),
        );
    }
    candidates.extend(RelPath::parse(what).map(FilePath::project));
    candidates
}

/// Returns the input files of a batch with their digests, in natural order.
pub(super) fn inputs(record: &BatchRecord) -> Vec<(&str, String)> {
    let mut inputs: Vec<(&str, String)> = record
        .facts
        .iter()
        .filter(|(key, value)| key.kind == FactKind::Input && !value.is("absent"))
        .map(|(key, value)| (&*key.name, value.to_string()))
        .collect();
    inputs.sort_by(|a, b| milepost_core::base::natural::natural(a.0, b.0));
    inputs
}

/// Returns the inputs of a batch in natural order, each with its own inputs if they are not in `seen` yet.
fn origins(
    makers: &Makers<'_>,
    record: &BatchRecord,
    seen: &mut BTreeSet<String>,
) -> (Vec<Origin>, u64) {
    let inputs = inputs(record);
    let more = inputs.len().saturating_sub(LISTED) as u64;
    let listed = inputs.into_iter().take(LISTED);
    let listed: Vec<Origin> = listed
        .map(|(path, digest)| {
            let found = makers.get(path).map(|(_, record)| record);
            let (from, more) = match found {
                Some(maker) if seen.insert(path.to_owned()) => origins(makers, maker, seen),
                _ => Default::default(),
            };
            Origin {
                path: path.to_owned(),
                digest,
                made_by: makers.name(path),
                from,
                more,
            }
        })
        .collect();
    (listed, more)
}

/// Returns the stages and batches whose records name a file, in the order of the stages.
fn readers(opened: &OpenProject, state: &State, file: &FilePath) -> Vec<String> {
    let shown = file.to_string();
    let in_project = file.path.as_str();
    let names = |kind: FactKind, name: &str| match kind {
        FactKind::Input => name == shown,
        FactKind::File | FactKind::Schema | FactKind::Check => {
            file.root == Root::Project && name == in_project
        }
        FactKind::Agent => {
            file.root == Root::Project
                && opened.pipeline.agents.get(name).is_some_and(|agent| {
                    let is_it = |asset: &Asset| asset.path == file.path;
                    match &agent.provider {
                        Provider::Rules(asset) => is_it(asset),
                        Provider::Jq(program) => program.files().any(is_it),
                        Provider::Cli(Cli {
                            command: CliCommand::List { files, .. },
                            ..
                        }) => files.iter().any(|(path, _)| *path == file.path),
                        _ => false,
                    }
                })
        }
        _ => false,
    };
    let mut readers = Vec::new();
    for stage in &opened.pipeline.stages {
        let Some(known) = state.stages.get(&stage.name) else {
            continue;
        };
        let mut by_all = BTreeSet::new();
        for (id, facts) in &known.facts {
            if facts.iter().any(|(key, _)| names(key.kind, &key.name)) {
                by_all.insert(id.as_str());
            }
        }
        if !by_all.is_empty() {
            readers.push(stage.name.clone());
            continue;
        }
        let mut keys: Vec<&str> = known
            .batches
            .iter()
            .filter(|(_, batch)| {
                let mut facts = batch.record.iter().flat_map(|record| record.facts.iter());
                facts.any(|(key, _)| names(key.kind, &key.name))
            })
            .map(|(key, _)| key.as_str())
            .collect();
        keys.sort_by(|a, b| milepost_core::base::natural::natural(a, b));
        readers.extend(keys.into_iter().map(|key| batch_name(&stage.name, key)));
    }
    readers
}
