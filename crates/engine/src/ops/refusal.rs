//! What could not be done: in one word, and what to do about it.

use super::open::OpsError;
use milepost_store::store::lock::LockError;

impl OpsError {
    /// What could not be done, in one word. `docs/reference/exit-codes.md` lists them.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::NoProject(_) => "no_project",
            Self::Usage(_) => "usage",
            Self::Outside(_) => "path",
            Self::Declarations(_) => "declaration",
            Self::NotAccepted(_) | Self::NotStored(_) => "not_accepted",
            Self::Lock(_) => "in_use",
            Self::Journal(_) => "journal",
            Self::Workspace(error) if error.is_wrong_folder() => "usage",
            Self::Workspace(_) | Self::Manifest(_) | Self::Lease(_) => "workspace",
            Self::Disk(_) => "disk",
            Self::Run(_) | Self::World(_) => "failed",
        }
    }

    /// What to do about it, for whoever called by a program.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NoProject(_) => {
                "start the server in a project's folder, or name one with `-C DIR`"
            }
            Self::Usage(_) => "change the arguments as the message says",
            Self::Outside(_) => {
                "name a file of the workspace, relative to it; no path leads out of the project"
            }
            Self::Declarations(_) => {
                "`problems` names file, line and column of each mistake: correct the declarations"
            }
            Self::Lock(error) if error.is_ours() => {
                "wait until the other call has ended, or cancel it; then call again"
            }
            Self::Lock(LockError::Taken { .. }) => {
                "wait until the other run has ended (`status` names it), then call again"
            }
            Self::Lock(_) | Self::Disk(_) => {
                "make room or give the permission that the message names, then call again: a run goes on where it stopped"
            }
            Self::Journal(_) | Self::Workspace(_) | Self::Manifest(_) | Self::Lease(_) => {
                "a person must look at the workspace: `milepost verify` says what is wrong"
            }
            Self::NotAccepted(_) | Self::NotStored(_) | Self::Run(_) | Self::World(_) => {
                "the message says what is in the way; `log` tells what happened before"
            }
        }
    }
}
