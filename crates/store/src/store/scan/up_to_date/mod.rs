//! The up-to-date check: whether anything changed since a run that had nothing to do. If not, the next run has nothing to do either.
//!
//! A run notes what it reads of the disk, with the results ([`Observations`]). When it found nothing to do, the notes are kept in
//! `.milepost/glance` under the digest of everything else that the run depends on. [`again`] repeats the observations: the stamp of
//! each file (one `stat`), the names in each folder. If only files changed, it names them, and a run checks what depends on them;
//! after any other change a run checks everything. A run that did something notes at its end the state of what it wrote.
//! The file is a cache: removing it costs only time.

mod agreement;
mod candidates;
mod changes;
mod check;
mod form;
mod keep;
mod log;
mod observations;
mod place;
mod runs;
mod write;

pub use candidates::Candidates;
pub use check::{NotesId, Recheck, again, notes_id, told};
pub use observations::{ChangedFiles, NotedManifest, NotedPages, Observations};

#[cfg(test)]
mod tests;
