//! The questions that runs are asking, so that no other run of the project asks them meanwhile.
//!
//! A claim is a file with the workspace and the addresses of questions, which the run has locked: the kernel frees it when the run ends in any way.

use crate::store::disk::{Disk, DiskError};
use crate::store::id::made_at;
use crate::store::lock::SharedLock;
use crate::store::read;
use milepost_core::base::digest::Digest;
use std::collections::HashMap;
use std::path::PathBuf;

/// The claims of all runs of a project.
pub(super) struct Asking {
    pub(super) disk: Disk,
    pub(super) folder: PathBuf,
    pub(super) run: String,
    /// The workspace, seen from the project.
    pub(super) workspace: String,
}

/// Questions that only this run asks, until it is dropped.
pub struct QuestionClaim {
    /// The addresses of the questions.
    pub addresses: Vec<Digest>,
    /// `None` if there is no question.
    file: Option<(Disk, PathBuf, SharedLock)>,
}

impl Asking {
    /// Waits until no other run claims questions: for a moment.
    ///
    /// # Errors
    /// Fails if the disk fails.
    pub(super) fn turn(&self) -> Result<SharedLock, DiskError> {
        self.disk.create_own_dir(&self.folder)?;
        SharedLock::wait_alone(&self.disk, &self.folder.join("lock"))
    }

    /// Claims questions. The caller has the turn, and no other run asks them.
    ///
    /// # Errors
    /// Fails if the disk fails.
    pub(super) fn claim(&self, addresses: Vec<Digest>) -> Result<QuestionClaim, DiskError> {
        let Some(first) = addresses.first() else {
            let file = None;
            return Ok(QuestionClaim { addresses, file });
        };
        let path = self
            .folder
            .join(format!("{}-{}.claim", self.run, first.hex()));
        let mut lock = SharedLock::wait_alone(&self.disk, &path)?;
        let lines = addresses.iter().map(|address| format!("\n{address}"));
        let lines: String = lines.collect();
        lock.write(&format!("{}{lines}\n", self.workspace))?;
        let file = Some((self.disk.clone(), path, lock));
        Ok(QuestionClaim { addresses, file })
    }

    /// Returns the questions that other runs are asking, each with its run, and removes the claims of runs that have died. The caller has the turn.
    ///
    /// # Errors
    /// Fails if the disk fails.
    pub(super) fn of_others(&self) -> Result<HashMap<Digest, String>, DiskError> {
        let failed = |cause| DiskError::new("read", &self.folder, cause);
        let mut asked = HashMap::new();
        let mut names = read::names(&self.folder).map_err(failed)?;
        names.retain(|name| is_claim(name) && !name.starts_with(&self.run));
        for name in names {
            let path = self.folder.join(&name);
            if let Some(_dead) = SharedLock::take_alone(&self.disk, &path)? {
                self.disk.remove_file(&path)?;
                continue;
            }
            // The file has no text if it was just released.
            let text = read::text(&path).unwrap_or_default();
            let mut lines = text.lines();
            let run = shown(&name, lines.next().unwrap_or_default());
            let addresses = lines.filter_map(|line| line.parse().ok());
            asked.extend(addresses.map(|address| (address, run.clone())));
        }
        Ok(asked)
    }
}

/// Returns true for the name of a claim: `RUN-DIGEST.claim`.
fn is_claim(name: &str) -> bool {
    let name = name.strip_suffix(".claim");
    let parts = name.and_then(|name| name.split_once('-'));
    parts.is_some_and(|(run, hex)| made_at(run).is_some() && Digest::from_hex(hex).is_ok())
}

/// Returns the run of a claim with this name: id, workspace and start.
fn shown(name: &str, workspace: &str) -> String {
    let run = name.split('-').next().unwrap_or_default();
    let since = made_at(run).unwrap_or_default();
    format!("run {run} in {workspace}, since {since:.0}")
}

impl Drop for QuestionClaim {
    fn drop(&mut self) {
        if let Some((disk, path, _lock)) = &self.file {
            // The claim of a run that has ended is free, also if its file stays.
            let _ = disk.remove_file(path);
        }
    }
}
