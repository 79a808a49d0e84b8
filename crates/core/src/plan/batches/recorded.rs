//! The recorded files of all stages, sorted so that a pattern finds its files without a scan of all.

use crate::base::digest::Digest;
use crate::base::glob::Glob;
use crate::base::path::{FilePath, RelPath};
use crate::model::state::State;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, OnceLock, PoisonError};

/// The contents of files that Milepost wrote, by the state at the first question.
#[derive(Default)]
pub struct MadeFiles(OnceLock<HashMap<RelPath, Vec<Digest>>>);

impl MadeFiles {
    /// Returns true if Milepost wrote this content of a file, for any batch of any stage.
    pub fn has(&self, state: &State, path: &RelPath, content: Digest) -> bool {
        let made = self.0.get_or_init(|| {
            let mut made: HashMap<RelPath, Vec<Digest>> = HashMap::new();
            let stages = state.stages.values();
            for batch in stages.flat_map(|stage| stage.batches.values()) {
                for (path, digest) in batch.made() {
                    made.entry(path.clone()).or_default().push(digest);
                }
            }
            made
        });
        made.get(path).is_some_and(|made| made.contains(&content))
    }
}

/// The recorded files of all stages.
pub struct Recorded<'a> {
    state: &'a State,
    sorted: OnceLock<Vec<&'a RelPath>>,
    made: MadeFiles,
    lists: Mutex<BTreeMap<String, Vec<FilePath>>>,
}

impl<'a> Recorded<'a> {
    /// Collects the recorded files of a state.
    pub fn of(state: &'a State) -> Self {
        Self {
            state,
            sorted: OnceLock::new(),
            made: MadeFiles::default(),
            lists: Mutex::default(),
        }
    }

    /// Returns true if Milepost wrote this content of a file, for any batch of any stage.
    pub fn has_made(&self, path: &RelPath, content: Digest) -> bool {
        self.made.has(self.state, path, content)
    }

    fn sorted(&self) -> &[&'a RelPath] {
        self.sorted.get_or_init(|| {
            let stages = self.state.stages.values();
            let made = stages.flat_map(|stage| stage.outputs().map(|(_, made)| &made.path));
            let mut paths: Vec<&RelPath> = made.collect();
            paths.sort_unstable_by_key(|path| path.as_str());
            paths.dedup();
            paths
        })
    }

    /// Returns the files that match a pattern, in no particular order.
    ///
    /// # Errors
    /// If it is not a pattern, or the state lacks records.
    pub(crate) fn matching(&self, pattern: &str) -> Result<Vec<FilePath>, String> {
        if self
            .state
            .stages
            .values()
            .any(|stage| stage.unread().count() > 0)
        {
            return Err(format!(
                "not all records are known that may match `{pattern}`"
            ));
        }
        let mut lists = self.lists.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = lists.get(pattern) {
            return Ok(known.clone());
        }
        let glob = Glob::parse(pattern).map_err(|error| error.to_string())?;
        let fixed = glob.as_str();
        let fixed = &fixed[..fixed.find(['*', '?', '[', '{']).unwrap_or(fixed.len())];
        let sorted = self.sorted();
        let from = sorted.partition_point(|path| path.as_str() < fixed);
        let found: Vec<FilePath> = sorted[from..]
            .iter()
            .take_while(|path| path.as_str().starts_with(fixed))
            .filter(|path| glob.matches(path))
            .map(|path| FilePath::workspace((*path).clone()))
            .collect();
        lists.insert(pattern.to_owned(), found.clone());
        Ok(found)
    }
}
