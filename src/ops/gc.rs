//! Takes away what no run needs any more: old quarantine, scratch of runs that ended, beginnings of files.

use super::hold::hold;
use super::open::{OpsError, Request, open};
use crate::run::keeper::Keeper;
use crate::run::recover;
use crate::store::gc::{find, remove};
use serde::Serialize;
use std::collections::BTreeSet;
use std::time::Duration;

/// What is to be taken away.
#[derive(Debug, Clone, Default)]
pub struct WantedGc {
    /// What was set aside longer ago than this goes too; none: quarantine stays.
    pub older_than: Option<Duration>,
    /// Only say what would be.
    pub dry_run: bool,
    /// The command line, for the lock.
    pub command: String,
}

/// What was taken away, or would be.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Collected {
    /// What it was.
    pub removed: Vec<Removed>,
    /// Bytes of all.
    pub bytes: u64,
    /// Whether nothing was done but looking.
    pub dry_run: bool,
}

/// One thing that was taken away.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Removed {
    /// `scratch`, `quarantine` or `leftover`.
    pub kind: String,
    /// Where it lay, in the workspace.
    pub path: String,
    /// Files in it.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Takes away what no run needs. Journal, manifests and outputs are never touched.
///
/// # Errors
/// When another run has the workspace, or the disk fails.
pub fn gc(request: &Request, wanted: &WantedGc) -> Result<Collected, OpsError> {
    let mut opened = open(request)?;
    let mut done = Collected {
        dry_run: wanted.dry_run,
        ..Collected::default()
    };
    if !opened.workspace.is_made {
        return Ok(done);
    }
    let before = wanted.older_than.map(|age| opened.clock.now() - age);
    let held = if wanted.dry_run {
        None
    } else {
        let held = hold(&mut opened, &wanted.command)?;
        // What a killed run had published and not put into place lies in its scratch.
        let mut keeper = Keeper::new(opened.context(), held.state, held.journal, &wanted.command);
        recover::recover(&mut keeper, Duration::from_secs(5))?;
        keeper.flush()?;
        Some(held.lock)
    };
    let layout = &opened.workspace.layout;
    let garbage = find(layout, &BTreeSet::new(), before)?;
    for one in &garbage {
        done.bytes += one.size;
        done.removed.push(Removed {
            kind: one.kind.word().to_owned(),
            path: one.path.to_string(),
            files: one.files,
            bytes: one.size,
        });
    }
    if held.is_some() {
        remove(&opened.disk, layout, &garbage)?;
    }
    drop(held);
    Ok(done)
}
