//! The errors of a run: the disk, the journal, a defect.

/// The reason why Milepost itself cannot continue. A failed step is an outcome, not an error.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The disk failed.
    #[error(transparent)]
    Disk(#[from] milepost_store::store::disk::DiskError),
    /// The journal cannot be written.
    #[error(transparent)]
    Journal(#[from] milepost_store::store::journal::JournalError),
    /// A manifest cannot be written.
    #[error(transparent)]
    Manifest(#[from] milepost_store::store::manifest::ManifestError),
    /// A checkpoint cannot be written.
    #[error(transparent)]
    Checkpoint(#[from] milepost_store::store::checkpoint::CheckpointError),
    /// A scratch folder cannot be created.
    #[error(transparent)]
    Scratch(#[from] milepost_store::store::scratch::ScratchError),
    /// Files cannot be moved into place.
    #[error(transparent)]
    Publish(#[from] milepost_store::store::publish::PublishError),
    /// An event that the state does not allow: a defect of Milepost.
    #[error(
        "the state machine refused an event ({0}): this is a defect of Milepost, please report it"
    )]
    Machine(#[from] milepost_core::plan::machine::IllegalTransition),
    /// A file cannot be read.
    #[error("{0}")]
    World(String),
}
