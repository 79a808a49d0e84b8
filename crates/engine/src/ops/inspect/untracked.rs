//! Finds untracked files in the folders that stages write to.

use crate::ops::project::error::OpsError;
use crate::ops::project::open_project::OpenProject;
use milepost_core::base::glob::Glob;
use milepost_core::base::natural::natural;
use milepost_core::base::path::{FilePath, RelPath, Root};
use milepost_core::base::reserved::reserved;
use milepost_core::model::state::State;
use milepost_store::store::layout;
use std::collections::BTreeSet;

/// Returns the untracked files in natural order. Leaves out `inputs/` and the folders of the workspace that no stage writes to.
///
/// # Errors
/// When a folder cannot be read.
pub(crate) fn untracked(opened: &OpenProject, state: &State) -> Result<Vec<RelPath>, OpsError> {
    let root = opened.workspace.layout.root();
    let recorded: BTreeSet<&str> = state
        .stages
        .values()
        .flat_map(|stage| stage.outputs().map(|(_, made)| made.path.as_str()))
        .collect();
    let mut own: BTreeSet<&str> = BTreeSet::new();
    let mut folders: BTreeSet<String> = BTreeSet::new();
    let mut former: Vec<Glob> = Vec::new();
    for stage in &opened.pipeline.stages {
        let kept = stage.outputs.iter();
        let kept = kept.filter(|output| stage.keeps_former(&output.name));
        former.extend(kept.filter_map(|output| Glob::parse(&output.path.pattern()).ok()));
        own.insert(stage.progress.as_str());
        let paths = stage.outputs.iter().map(|output| &output.path);
        for path in paths.chain(&stage.marker) {
            let pattern = path.pattern();
            let literal = &pattern[..pattern.find('*').unwrap_or(pattern.len())];
            if let Some((folder, _)) = literal.rsplit_once('/') {
                folders.insert(folder.to_owned());
            }
        }
    }
    // Batches of stages that are no longer declared may have left files there.
    let mut found = BTreeSet::new();
    for folder in &folders {
        let walk = walkdir::WalkDir::new(root.join(folder)).into_iter();
        let walk = walk.filter_entry(|entry| entry.file_name() != layout::OWN);
        for entry in walk {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error)
                    if error
                        .io_error()
                        .is_some_and(|error| error.kind() == std::io::ErrorKind::NotFound) =>
                {
                    continue;
                }
                Err(error) => return Err(OpsError::World(error.to_string())),
            };
            if entry.file_type().is_dir() {
                continue;
            }
            let inside = entry
                .path()
                .strip_prefix(root)
                .ok()
                .and_then(|p| p.to_str());
            let Some(path) = inside.and_then(|text| RelPath::parse(text).ok()) else {
                continue;
            };
            let is_ours = recorded.contains(path.as_str())
                || own.contains(path.as_str())
                || former.iter().any(|glob| glob.matches(&path))
                || reserved(Root::Workspace, &path).is_some()
                || path.as_str().starts_with("inputs/")
                || opened
                    .files
                    .is_redirected(&FilePath::workspace(path.clone()));
            if !is_ours {
                found.insert(path);
            }
        }
    }
    let mut found: Vec<RelPath> = found.into_iter().collect();
    found.sort_by(|a, b| natural(a.as_str(), b.as_str()));
    Ok(found)
}
