//! Progress files, for people and programs that watch a run. They are rewritten at most five times a second.

use super::disk::{Disk, DiskError, parent};
use super::self_checked::{self, SelfCheck, SelfChecked};
use crate::store::read;
use milepost_core::base::digest::Digest;
use milepost_core::model::checkpoint::Progress;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Time between two versions of a progress file. A batch is counted within 250 ms: this leaves 50 ms to write the version.
pub(crate) const INTERVAL: Duration = Duration::from_millis(200);

/// Writing may take one part in this many of a run's time.
const COSTS: u32 = 20;

/// Numbers of batches up to which each is listed.
const LISTED: usize = 1000;

/// The writer of one progress file. The file is not flushed, so after a power failure an older version may be there.
#[derive(Debug)]
pub struct ProgressFile {
    path: PathBuf,
    written: Option<Duration>,
    /// How long it took to put the last one together.
    cost: Duration,
    /// Whether something happened that no version shows.
    changed: bool,
}

impl ProgressFile {
    /// Creates a writer for this path. The file need not exist.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            written: None,
            cost: Duration::ZERO,
            changed: true,
        }
    }

    /// Notes that the content has changed since the last version.
    pub fn changed(&mut self) {
        self.changed = true;
    }

    /// Returns how long to wait for the next version, at `elapsed` after the start of the run. `None` if the last version is
    /// current.
    pub fn due_in(&self, elapsed: Duration) -> Option<Duration> {
        let due = self.written.map_or(Duration::ZERO, |written| {
            written + INTERVAL + COSTS * self.cost
        });
        self.changed.then(|| due.saturating_sub(elapsed))
    }

    /// Notes how long it took to compute the content. Expensive versions, as of a million batches, are written less often.
    pub fn cost(&mut self, took: Duration) {
        self.cost = took;
    }

    /// Writes a version, at `elapsed` after the start of the run.
    ///
    /// # Errors
    /// Fails if the disk fails.
    pub fn write(
        &mut self,
        disk: &Disk,
        progress: &Progress,
        elapsed: Duration,
    ) -> Result<(), DiskError> {
        let bytes = self_checked::to_bytes(progress)
            .map_err(|error| DiskError::new("write", &self.path, error.into()))?;
        if self.written.is_none() {
            disk.create_dirs(parent(&self.path))?;
        }
        disk.write_swap(&self.path, &bytes)?;
        self.written = Some(elapsed);
        self.changed = false;
        Ok(())
    }
}

impl SelfChecked for Progress {
    fn checksum(&mut self) -> &mut Option<Digest> {
        &mut self.checksum
    }
}

/// Returns true if a person wrote or modified the file at this path. A missing file and the remains of a power failure do not
/// count.
pub fn is_by_hand(path: &Path) -> bool {
    check(path) == Some(SelfCheck::Changed)
}

/// Returns whether the file at this path is as it was written; `None` if there is none, or only the remains of a power failure.
pub fn check(path: &Path) -> Option<SelfCheck> {
    match read::bytes(path) {
        Ok(there) if there.iter().all(|byte| *byte == 0) => None,
        Ok(there) => Some(self_checked::read::<Progress>(&there).1),
        Err(_) => path
            .symlink_metadata()
            .is_ok()
            .then_some(SelfCheck::Changed),
    }
}

/// Returns numbers of batches as the progress file lists them: one by one, or as ranges such as `"1-1250"` if there are more than
/// 1,000. The numbers must ascend.
pub fn numbers(ascending: &[u64]) -> Vec<Value> {
    if ascending.len() <= LISTED {
        return ascending.iter().copied().map(Value::from).collect();
    }
    ascending
        .chunk_by(|a, b| a + 1 == *b)
        .map(|run| match run {
            [first, .., last] => Value::from(format!("{first}-{last}")),
            other => other.first().copied().map_or(Value::Null, Value::from),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn lists_numbers_or_runs() {
        assert_eq!(numbers(&[1, 2, 5]), [json!(1), json!(2), json!(5)]);
        let many: Vec<u64> = (1..=1250).chain([1252]).chain(1300..1302).collect();
        assert_eq!(
            numbers(&many),
            [json!("1-1250"), json!(1252), json!("1300-1301")]
        );
    }

    /// A file and a clock that only the test moves.
    struct Watched {
        folder: tempfile::TempDir,
        file: ProgressFile,
    }

    impl Watched {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let file = ProgressFile::new(folder.path().join("p/x.json"));
            Self { folder, file }
        }

        fn write(&mut self, at: u64, completed: &[u64]) {
            let progress = json!({
                "stage": "x", "total_batches": 9, "completed_batches": completed, "current_batch": null, "failed_batches": [],
                "status": "in_progress", "run_id": "R", "pid": 1, "updated": "2026-11-21T10:00:00Z"
            });
            let progress: Progress = serde_json::from_value(progress).unwrap();
            let at = Duration::from_millis(at);
            self.file.write(&Disk::real(), &progress, at).unwrap();
        }

        fn due_in(&self, at: u64) -> Option<u64> {
            let due = self.file.due_in(Duration::from_millis(at));
            due.map(|due| u64::try_from(due.as_millis()).unwrap())
        }

        fn shown(&self) -> Value {
            let text = std::fs::read(self.folder.path().join("p/x.json")).unwrap();
            serde_json::from_slice::<Value>(&text).unwrap()["completed_batches"].clone()
        }
    }

    #[test]
    fn the_first_version_is_due_at_once_and_the_next_only_after_a_change() {
        let mut watched = Watched::new();
        assert_eq!(watched.due_in(0), Some(0));
        watched.write(0, &[]);
        assert_eq!((watched.shown(), watched.due_in(10_000)), (json!([]), None));
        watched.file.changed();
        assert_eq!(watched.due_in(10_000), Some(0));
    }

    #[test]
    fn a_change_waits_for_the_rest_of_the_interval() {
        let mut watched = Watched::new();
        watched.write(0, &[]);
        watched.file.changed();
        assert_eq!(
            [1, 199, 200, 900].map(|at| watched.due_in(at)),
            [Some(199), Some(1), Some(0), Some(0)]
        );
        // A second change does not put the version off.
        watched.file.changed();
        assert_eq!(watched.due_in(199), Some(1));
        watched.write(200, &[1]);
        assert_eq!((watched.shown(), watched.due_in(200)), (json!([1]), None));
    }

    #[test]
    fn every_change_is_shown_within_250_ms_whenever_it_comes() {
        // Changes at every possible distance, each followed by the next decision.
        for distance in 1..400 {
            let mut watched = Watched::new();
            watched.write(0, &[]);
            let mut pending: Vec<u64> = Vec::new();
            let mut shown = 0;
            for now in 0..2000 {
                if now % distance == 0 && now < 1500 {
                    watched.file.changed();
                    pending.push(now);
                }
                if watched.due_in(now) == Some(0) {
                    watched.write(now, &[]);
                    let late = pending.iter().map(|since| now - since).max();
                    assert!(late.is_none_or(|late| late <= 200), "{distance}: {late:?}");
                    shown += pending.len();
                    pending.clear();
                }
            }
            assert_eq!(
                (pending.len(), shown),
                (0, 1499 / usize::try_from(distance).unwrap() + 1)
            );
        }
    }

    #[test]
    fn a_file_that_takes_long_to_put_together_is_written_less_often() {
        let mut watched = Watched::new();
        watched.write(0, &[]);
        watched.file.cost(Duration::from_millis(100));
        watched.file.changed();
        assert_eq!(
            [0, 2199, 2200].map(|at| watched.due_in(at)),
            [Some(2200), Some(1), Some(0)]
        );
    }
}
