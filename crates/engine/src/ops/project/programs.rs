//! The programs that commands name, as they are on this machine.

use super::open_project::OpenProject;
use crate::run::context::find_program;
use jiff::Timestamp;
use milepost_core::model::fingerprint::FactValue;
use milepost_core::plan::facts::{NamedProgram, programs};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A program of this size in bytes or more is not read: its size and its time stand for its content.
const LARGE: u64 = 16 << 20;

/// Returns the facts of the programs that the commands of a project name.
pub(super) fn observe(opened: &OpenProject) -> BTreeMap<String, FactValue> {
    let stages = opened.pipeline.stages.iter();
    let named = stages.flat_map(|stage| programs(stage, &opened.pipeline, &opened.settings));
    let mut found = BTreeMap::new();
    for NamedProgram { name, path } in named {
        if !found.contains_key(&name)
            && let Some(value) = fact(opened, &name, path)
        {
            found.insert(name, value);
        }
    }
    found
}

/// Returns the file of a program; `None` if it is not found.
pub(crate) fn located(opened: &OpenProject, name: &str, path: Option<String>) -> Option<PathBuf> {
    let path = path.or_else(|| opened.environment.get("PATH").cloned());
    let env: Vec<_> = path
        .map(|path| ("PATH".to_owned(), path))
        .into_iter()
        .collect();
    // A command runs in a new folder, in which a relative folder of `PATH` has no programs.
    let nowhere = Path::new("/nonexistent");
    match find_program(name, nowhere, &env) {
        Ok(file) => Some(file),
        // The script of an interpreter need not be executable.
        Err(_) => name.starts_with('/').then(|| name.into()),
    }
}

/// Returns the fact of a program; `None` if it is not found or cannot be examined.
fn fact(opened: &OpenProject, name: &str, path: Option<String>) -> Option<FactValue> {
    let file = located(opened, name, path)?;
    let data = file.metadata().ok().filter(std::fs::Metadata::is_file)?;
    if data.len() < LARGE
        && let Ok(seen) = opened.cache.look(&file)
    {
        return Some(seen.digest.into());
    }
    let time = Timestamp::try_from(data.modified().ok()?).ok()?;
    Some(format!("{}, {} bytes, {time}", file.display(), data.len()).into())
}
