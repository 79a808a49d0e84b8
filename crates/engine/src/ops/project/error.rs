//! Errors of the operations, each with a code and a hint for programs.

use milepost_core::decl::Problems;
use milepost_core::plan::selection::NoSuchStage;
use milepost_store::store::lock::LockError;
use std::fmt::Display;

/// The reason why an operation failed. A failed batch is not an error: the report lists it.
#[derive(Debug, thiserror::Error)]
pub enum OpsError {
    /// No folder contains `milepost.toml`.
    #[error(
        "no `milepost.toml` in `{0}` or above: change to a project, name one with `-C DIR`, or create one with `milepost init`"
    )]
    NoProject(String),
    /// The declarations are wrong: each mistake has a place.
    #[error("the declarations are wrong")]
    Declarations(Box<Problems>),
    /// An argument or option is wrong.
    #[error("{0}")]
    Usage(String),
    /// A path leads out of project and workspace.
    #[error("{0}")]
    Outside(String),
    /// The workspace cannot be opened or made.
    #[error(transparent)]
    Workspace(#[from] milepost_store::store::workspace::WorkspaceError),
    /// The journal cannot be read or written.
    #[error(transparent)]
    Journal(#[from] milepost_store::store::journal::JournalError),
    /// A manifest cannot be read or written.
    #[error(transparent)]
    Manifest(#[from] milepost_store::store::manifest::ManifestError),
    /// Another process has locked the workspace.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// Another client builds the batch that it answered.
    #[error(
        "the batch of another client is being built in this workspace: try again when it is built"
    )]
    LeasesBusy,
    /// A lease cannot be read or written.
    #[error(transparent)]
    Lease(#[from] milepost_store::store::leases::LeaseError),
    /// The disk failed.
    #[error(transparent)]
    Disk(#[from] milepost_store::store::disk::DiskError),
    /// A run had to stop.
    #[error(transparent)]
    Run(#[from] crate::run::error::RunError),
    /// Outputs cannot be accepted: one reason a line.
    #[error("nothing was accepted:\n  {}", .0.join("\n  "))]
    NotAccepted(Vec<String>),
    /// Stages cannot be approved: one reason a line.
    #[error("nothing was approved:\n  {}", .0.join("\n  "))]
    NotApproved(Vec<String>),
    /// The state has changed since it was shown to the person.
    #[error("nothing was {0}: it has changed since it was shown")]
    NotAsShown(&'static str),
    /// Cells of a workbook cannot be imported: one reason a line.
    #[error("nothing was imported:\n  {}", .0.join("\n  "))]
    NotImported(Vec<String>),
    /// Accepted content cannot be stored.
    #[error(transparent)]
    NotStored(#[from] milepost_store::store::accepted::AcceptedError),
    /// A file cannot be read.
    #[error("cannot read `{path}`: {error}")]
    Unreadable {
        /// The path, as the user knows it.
        path: String,
        /// The system's error.
        error: String,
    },
    /// A file, agent or other part of the environment failed.
    #[error("{0}")]
    World(String),
}

impl From<NoSuchStage> for OpsError {
    fn from(error: NoSuchStage) -> Self {
        Self::Usage(error.to_string())
    }
}

impl OpsError {
    /// Returns a function that turns the error of reading this path into an `OpsError`.
    pub(crate) fn unreadable<E: Display>(path: &impl Display) -> impl FnOnce(E) -> Self {
        let path = path.to_string();
        move |error| Self::Unreadable {
            path,
            error: error.to_string(),
        }
    }

    /// Returns the code of the error, for programs. `docs/reference/exit-codes.md` lists the codes.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::NoProject(_) => "no_project",
            Self::Usage(_) => "usage",
            Self::Outside(_) => "path",
            Self::Declarations(_) => "declaration",
            Self::NotAccepted(_) | Self::NotStored(_) => "not_accepted",
            Self::NotApproved(_) => "not_approved",
            Self::NotAsShown(_) => "changed",
            Self::NotImported(_) => "not_imported",
            Self::Lock(LockError::Taken { .. }) | Self::LeasesBusy => "in_use",
            Self::Journal(_) => "journal",
            Self::Workspace(error) if error.is_wrong_folder() => "usage",
            Self::Workspace(_) | Self::Manifest(_) | Self::Lease(_) => "workspace",
            Self::Lock(LockError::Disk(_)) | Self::Disk(_) => "disk",
            Self::Run(_) | Self::Unreadable { .. } | Self::World(_) => "failed",
        }
    }

    /// Returns what a calling program can do about the error.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NoProject(_) => {
                "start the server in a project's folder, or name one with `-C DIR`"
            }
            Self::Usage(_) => "change the arguments as described in the message",
            Self::Outside(_) => {
                "name a file of the workspace, relative to it; no path leads out of the project"
            }
            Self::Declarations(_) => {
                "`problems` lists file, line and column of each mistake: correct the declarations"
            }
            Self::Lock(error) if error.is_ours() => {
                "wait until the other call has ended, or cancel it; then call again"
            }
            Self::LeasesBusy => "wait until the other batch is built, then call again",
            Self::Lock(LockError::Taken { .. }) => {
                "wait until the other run has ended (`status` names it), then call again"
            }
            Self::Lock(_) | Self::Disk(_) => {
                "free space or grant the permission that the message names, then call again: a run continues where it stopped"
            }
            Self::Journal(_) | Self::Workspace(_) | Self::Manifest(_) | Self::Lease(_) => {
                "ask a person to check the workspace: `milepost verify` shows what is wrong"
            }
            Self::NotAccepted(_)
            | Self::NotApproved(_)
            | Self::NotAsShown(_)
            | Self::NotImported(_)
            | Self::NotStored(_)
            | Self::Run(_)
            | Self::Unreadable { .. }
            | Self::World(_) => {
                "remove the cause that the message names; `log` shows what happened before"
            }
        }
    }
}
