//! Progress files: information for whoever watches, rewritten whole a few times a second at most.

use super::disk::{Disk, DiskError, parent};
use crate::base::digest::Digest;
use crate::model::checkpoint::Progress;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Time between two versions of a progress file.
pub const INTERVAL: Duration = Duration::from_millis(250);

/// It may take one part of so many of a run's time.
const COSTS: u32 = 20;

/// Numbers of batches up to which each is listed.
const LISTED: usize = 1000;

/// Writes one progress file. It is not flushed: after a crash of the machine, an older one may be there.
#[derive(Debug)]
pub struct ProgressFile {
    path: PathBuf,
    written: Option<Duration>,
    /// How long it took to put the last one together.
    cost: Duration,
}

impl ProgressFile {
    /// The file at this path, which nobody needs to have made.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            written: None,
            cost: Duration::ZERO,
        }
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether a version would be written at this moment, `elapsed` after the run began.
    pub fn is_due(&self, elapsed: Duration) -> bool {
        self.written
            .is_none_or(|written| elapsed.saturating_sub(written) >= INTERVAL + COSTS * self.cost)
    }

    /// Notes how long it took to put the file together: of a million batches it is long enough to be done less often.
    pub fn cost(&mut self, took: Duration) {
        self.cost = took;
    }

    /// Writes a version if one is due, or if it must be: before a checkpoint, and at the end. Whether it was written.
    pub fn write(
        &mut self,
        disk: &Disk,
        progress: &Progress,
        elapsed: Duration,
        must: bool,
    ) -> Result<bool, DiskError> {
        if !must && !self.is_due(elapsed) {
            return Ok(false);
        }
        let bytes =
            bytes(progress).map_err(|error| DiskError::new("write", &self.path, error.into()))?;
        if self.written.is_none() {
            disk.create_dirs(parent(&self.path))?;
        }
        disk.write_swap(&self.path, &bytes)?;
        self.written = Some(elapsed);
        Ok(true)
    }
}

/// The bytes of a progress file, with the checksum of the rest.
fn bytes(progress: &Progress) -> serde_json::Result<Vec<u8>> {
    let without = Progress {
        checksum: None,
        ..progress.clone()
    };
    let with = Progress {
        checksum: Some(Digest::of(plain(&without)?)),
        ..without
    };
    plain(&with)
}

fn plain(progress: &Progress) -> serde_json::Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec_pretty(progress)?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// Returns true if a person wrote or modified what lies at the path of a progress file. Nothing, and what a failure of the power
/// leaves of a file that was not flushed, is no person's.
pub fn is_by_hand(path: &Path) -> bool {
    let Ok(there) = std::fs::read(path) else {
        return path.symlink_metadata().is_ok();
    };
    if there.iter().all(|byte| *byte == 0) {
        return false;
    }
    let Ok(found) = serde_json::from_slice::<Progress>(&there) else {
        return true;
    };
    // Earlier versions wrote no checksum.
    let written = match found.checksum {
        Some(_) => bytes(&found),
        None => plain(&found),
    };
    written.ok() != Some(there)
}

/// Numbers of batches as the progress file lists them: each one, or, of more than 1,000, runs of them such as `"1-1250"`.
/// The numbers ascend.
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

    #[test]
    fn is_written_a_few_times_a_second() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = ProgressFile::new(folder.path().join("p/x.json"));
        let progress: Progress = serde_json::from_value(json!({
            "stage": "x", "total_batches": 2, "completed_batches": [1], "current_batch": 2, "failed_batches": [],
            "status": "in_progress", "run_id": "R", "pid": 1, "updated": "2026-11-21T10:00:00Z"
        }))
        .unwrap();
        let disk = Disk::real();
        let mut write = |millis, must| {
            let elapsed = Duration::from_millis(millis);
            file.write(&disk, &progress, elapsed, must).unwrap()
        };
        assert_eq!(
            [write(0, false), write(249, false), write(249, true)],
            [true, false, true]
        );
        assert_eq!([write(498, false), write(499, false)], [false, true]);
        let text = std::fs::read(file.path()).unwrap();
        assert_eq!(serde_json::from_slice::<Progress>(&text).unwrap(), progress);
    }
}
