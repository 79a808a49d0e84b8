//! Errors of the operations: what they show, their code for programs, and a hint.

use milepost_core::decl::Problems;
use milepost_store::store::lock::LockError;

/// Why something could not be done. A failed step is no error but part of a report.
#[derive(Debug, thiserror::Error)]
pub enum OpsError {
    /// There is no project.
    #[error(
        "no `milepost.toml` in `{0}` or above: go to a project, name one with `-C DIR`, or make one with `milepost init`"
    )]
    NoProject(String),
    /// The declarations are wrong. They are shown with their places.
    #[error("the declarations are wrong")]
    Declarations(Box<Problems>),
    /// A flag says something that cannot be.
    #[error("{0}")]
    Usage(String),
    /// A path that a client names leaves project and workspace.
    #[error("{0}")]
    Outside(String),
    /// The workspace.
    #[error(transparent)]
    Workspace(#[from] milepost_store::store::workspace::WorkspaceError),
    /// The journal.
    #[error(transparent)]
    Journal(#[from] milepost_store::store::journal::JournalError),
    /// A manifest.
    #[error(transparent)]
    Manifest(#[from] milepost_store::store::manifest::ManifestError),
    /// Another run has the workspace.
    #[error(transparent)]
    Lock(#[from] milepost_store::store::lock::LockError),
    /// A lease.
    #[error(transparent)]
    Lease(#[from] milepost_store::store::leases::LeaseError),
    /// The disk.
    #[error(transparent)]
    Disk(#[from] milepost_store::store::disk::DiskError),
    /// A run could not go on.
    #[error(transparent)]
    Run(#[from] crate::run::error::RunError),
    /// Outputs that cannot be accepted, with why.
    #[error("nothing was accepted:\n  {}", .0.join("\n  "))]
    NotAccepted(Vec<String>),
    /// Accepted content that could not be stored.
    #[error(transparent)]
    NotStored(#[from] milepost_store::store::accepted::AcceptedError),
    /// A file that could not be looked at.
    #[error("{0}")]
    World(String),
}

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
