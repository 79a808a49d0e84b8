//! The files that runs and the jobs of a scheduler exchange: `.milepost/jobs/SUBMISSION`.
//!
//! `job.json` describes a submission, `tasks/N.json` lists the batches of its job N, and `id` holds the scheduler's id once it is
//! known. Each process of a job appends to a log of its own, `logs/N.PROCESS.jsonl`, and writes in a folder of its own,
//! `work/N.PROCESS`. So a job that runs twice, with its first process still alive, never writes a file twice.

use super::checksummed::{ChecksummedLog, open_line};
use super::disk::{Disk, DiskError};
use super::layout::{self, Layout};
use super::read;
use milepost_core::base::path::RelPath;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::PathBuf;

/// The folder of the logs of a submission.
const LOGS: &str = "logs";

/// One submission: an array of jobs.
#[derive(Clone, Debug)]
pub struct Submission {
    disk: Disk,
    layout: Layout,
    name: String,
}

impl Submission {
    /// Returns the submission of this name, which may not exist.
    pub fn new(disk: &Disk, layout: &Layout, name: &str) -> Self {
        Self {
            disk: disk.private(),
            layout: layout.clone(),
            name: name.to_owned(),
        }
    }

    /// Returns all submissions of a workspace, oldest first.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn all(disk: &Disk, layout: &Layout) -> io::Result<Vec<Self>> {
        let names = names(&layout.jobs())?;
        let all = names.iter().map(|name| Self::new(disk, layout, name));
        Ok(all.collect())
    }

    /// Returns its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the path of a file or folder of it, relative to the workspace.
    pub fn inside(&self, parts: &[&str]) -> RelPath {
        let all = [self.name.as_str()]
            .into_iter()
            .chain(parts.iter().copied());
        layout::jobs().with(&RelPath::of_parts(all))
    }

    /// Returns the absolute path of a file or folder of it.
    pub fn at(&self, parts: &[&str]) -> PathBuf {
        self.layout.at(&self.inside(parts))
    }

    /// Creates its folders.
    pub fn create(&self) -> Result<(), DiskError> {
        for folder in ["tasks", LOGS, "work", "output"] {
            self.disk.create_dir_all(&self.at(&[folder]))?;
        }
        Ok(())
    }

    /// Writes a file of it durably.
    pub fn write(&self, parts: &[&str], bytes: &[u8]) -> Result<(), DiskError> {
        self.disk.write_atomic(&self.at(parts), bytes)
    }

    /// Returns the content of a file of it; `None` if there is no such file.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn read(&self, parts: &[&str]) -> io::Result<Option<Vec<u8>>> {
        match read::bytes(self.at(parts)) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the processes of its jobs that have a log, such as `3.n2-4711`.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn processes(&self) -> io::Result<Vec<String>> {
        let names = names(&self.at(&[LOGS]))?;
        let processes = names
            .iter()
            .filter_map(|name| Some(name.strip_suffix(".jsonl")?.to_owned()));
        Ok(processes.collect())
    }

    /// Makes network file systems list the logs anew: a client that changes a folder reads it from the server.
    pub fn refresh(&self) {
        let mark = self.at(&[LOGS, ".seen"]);
        // Where that is impossible, the names appear when the cache is too old.
        let _ = self.disk.write_swap(&mark, b"");
        let _ = self.disk.remove_file(&mark);
    }

    /// Returns the log of a process, to append to.
    pub fn log(&self, process: &str) -> ProcessLog {
        let name = format!("{process}.jsonl");
        ProcessLog(ChecksummedLog::new(&self.disk, self.at(&[LOGS, &name])))
    }

    /// Returns the whole lines of the log of a process from a place on, and the place behind the last of them. What follows may still
    /// be on its way, or not be visible whole yet: the next call reads it again.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn lines(&self, process: &str, from: u64) -> io::Result<(Vec<String>, u64)> {
        let name = format!("{process}.jsonl");
        let mut file = read::open(self.at(&[LOGS, &name]))?;
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let (mut lines, mut read, mut end) = (Vec::new(), 0, 0);
        for line in bytes.split_inclusive(|&byte| byte == b'\n') {
            read += line.len() as u64;
            if let Some(text) = open_line(line).filter(|_| line.ends_with(b"\n")) {
                lines.push(text.to_owned());
                end = read;
            }
        }
        Ok((lines, from + end))
    }

    /// Removes the submission. Returns false if programs still write in it: then its description is gone, by which its processes
    /// notice that they are not needed, and the rest is for a later run to remove.
    ///
    /// # Errors
    /// When its description cannot be removed.
    pub fn remove(&self) -> Result<bool, DiskError> {
        self.disk.remove_file(&self.at(&["job.json"]))?;
        Ok(self.disk.remove_dir_all(&self.at(&[])).is_ok())
    }
}

/// The log of one process of a job. Each line is durable before the next.
pub struct ProcessLog(ChecksummedLog);

impl ProcessLog {
    /// Appends a line, which holds no line break.
    pub fn append(&mut self, line: &str) -> Result<(), DiskError> {
        self.0.append(line).map(|_| ())
    }
}

/// Flushes files that a job wrote, and their folders, so that another machine reads them whole.
pub fn flush(disk: &Disk, layout: &Layout, files: &[RelPath]) -> Result<(), DiskError> {
    let mut folders = std::collections::BTreeSet::new();
    for file in files {
        let path = layout.at(file);
        disk.sync_file(&path)?;
        folders.extend(path.parent().map(std::path::Path::to_owned));
    }
    folders.iter().try_for_each(|folder| disk.sync_dir(folder))
}

/// Returns the names in a folder, in order; none if there is no folder.
fn names(folder: &std::path::Path) -> io::Result<Vec<String>> {
    let mut names = read::names(folder)?;
    names.retain(|name| !name.starts_with('.'));
    Ok(names)
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests damage files by hand")]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn a_log_is_read_line_by_line_while_it_grows() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::new(folder.path());
        let disk = Disk::real();
        assert!(Submission::all(&disk, &layout).unwrap().is_empty());
        let submission = Submission::new(&disk, &layout, "A");
        submission.create().unwrap();
        submission.write(&["id"], b"17").unwrap();
        assert_eq!(submission.read(&["id"]).unwrap().unwrap(), b"17");
        assert_eq!(submission.read(&["none"]).unwrap(), None);
        let mut log = submission.log("0.n1-1");
        log.append("one").unwrap();
        let (lines, place) = submission.lines("0.n1-1", 0).unwrap();
        assert_eq!(lines, ["one"]);
        log.append("two").unwrap();
        let path = submission.at(&[LOGS, "0.n1-1.jsonl"]);
        let mut torn = std::fs::OpenOptions::new()
            .append(true)
            .open(&path)
            .unwrap();
        torn.write_all(b"half of a li").unwrap();
        let (lines, place) = submission.lines("0.n1-1", place).unwrap();
        assert_eq!(lines, ["two"]);
        assert_eq!(submission.lines("0.n1-1", place).unwrap().0.len(), 0);
        // A line whose end is visible before its beginning is read again when it is whole.
        torn.set_len(place).unwrap();
        log.append("three").unwrap();
        let whole = std::fs::read(&path).unwrap();
        let mut hidden = whole.clone();
        hidden[place as usize..whole.len() - 3].fill(0);
        std::fs::write(&path, hidden).unwrap();
        assert_eq!(
            submission.lines("0.n1-1", place).unwrap(),
            (Vec::new(), place)
        );
        std::fs::write(&path, &whole).unwrap();
        let (lines, place) = submission.lines("0.n1-1", place).unwrap();
        assert_eq!(
            (lines, place),
            (vec!["three".to_owned()], whole.len() as u64)
        );
        submission.refresh();
        assert_eq!(submission.processes().unwrap(), ["0.n1-1"]);
        let all = Submission::all(&disk, &layout).unwrap();
        assert_eq!(all.len(), 1);
        assert_eq!(all[0].inside(&["work"]).as_str(), ".milepost/jobs/A/work");
        assert!(all[0].remove().unwrap());
        assert!(Submission::all(&disk, &layout).unwrap().is_empty());
    }
}
