//! The up-to-date check: whether anything changed since a run that had nothing to do. If not, the next run has nothing to do either.
//!
//! A run notes what it reads of the disk, with the results ([`Observations`]). When it found nothing to do, the notes are kept in
//! `.milepost/glance` under the digest of everything else that the run depends on. [`again`] repeats the observations: the stamp of
//! each file (one `stat`), the names in each folder. If only files changed, it names them, and a run checks what depends on them;
//! after any other change a run checks everything. A run that did something notes at its end the state of what it wrote.
//! The file is a cache: removing it costs only time.
//!
//! - If a file has a new stamp but the same size, the run reads it, so a file that was only touched counts as unchanged.
//! - A stamp proves content only if the file had been left alone for 0.1 s when it was hashed (2 s on file systems with coarse
//!   times or on another machine). For younger files the notes keep the digest, and the next run reads them. Notes from the
//!   future are not trusted, because a clock that was set back repeats its times.
//! - `watch` passes on the paths that the system reported. Then only these files of the workspace are checked, and only those
//!   blocks of the notes are read that have their names.
//! - A run compares what it read with the notes that it continues. If a file changed that the check did not name, the run
//!   writes no notes, and the next check finds the change (`agreement`).
//! - A log of more than 4 MB is sorted by file and appended to a file without a name, which the system removes when the process
//!   ends. At the end the sorted parts are merged into the notes (`log`). If the disk is full, the run writes no notes.
//! - Large notes are not rewritten for a few files: `.milepost/glance-changes` holds the changes and the checksum of the notes.
//!   When it reaches an eighth of them, both become one file. The stat cache does the same.
//! - A run that reads through a symbolic link, imports a file by `--set` or selects something writes no notes.

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
pub use check::{NotesId, Recheck, again, notes_id, payload};
pub use observations::{ChangedFiles, NotedManifest, NotedPages, Observations};

#[cfg(test)]
mod tests;
