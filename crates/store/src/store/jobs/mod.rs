//! What runs hand to the jobs of a scheduler, and what they get back: `.milepost/jobs/SUBMISSION`.
//!
//! `job.json` describes a submission, `shares/N` says what its job N may spend if it asks agents, `tasks/N.json` lists the batches of
//! its job N, and `id` holds the scheduler's id once it is known. Each process of a job appends to a log of its own,
//! `logs/N.PROCESS.jsonl`, and writes in a folder of its own, `work/N.PROCESS`. So a job that runs twice, with its first process still
//! alive, never writes a file twice.

use super::checksummed::{ChecksummedLog, open_line};
use super::disk::{Disk, DiskError};
use super::layout::{self, Layout};
use super::read;
use milepost_core::base::path::RelPath;
use std::collections::BTreeSet;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

/// The folder of the logs of a submission.
const LOGS: &str = "logs";

/// The folder of what each job may spend: `N`, and `N.taken` once a process of the job has taken it.
const SHARES: &str = "shares";

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
        for folder in ["tasks", SHARES, LOGS, "work", "output"] {
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

    /// Makes network file systems list the logs anew.
    pub fn refresh(&self) {
        refresh(&self.disk, &self.at(&[LOGS]));
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

    /// Writes what a job may spend.
    pub fn write_share(&self, job: u64, bytes: &[u8]) -> Result<(), DiskError> {
        self.write(&[SHARES, &job.to_string()], bytes)
    }

    /// Returns what a job may spend, taken or not; `None` if the runner has taken it back.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn share(&self, job: u64) -> io::Result<Option<Vec<u8>>> {
        // It may be taken between the two.
        match self.read(&[SHARES, &job.to_string()])? {
            Some(bytes) => Ok(Some(bytes)),
            None => self.read(&[SHARES, &format!("{job}.taken")]),
        }
    }

    /// Returns what each job may spend, taken or not, by its index.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn shares(&self) -> io::Result<Vec<(u64, Vec<u8>)>> {
        let names = names(&self.at(&[SHARES]))?;
        let jobs = names.iter().map(|name| name.trim_end_matches(".taken"));
        let jobs: BTreeSet<u64> = jobs.filter_map(|job| job.parse().ok()).collect();
        let mut shares = Vec::new();
        // Without its description, programs may have left files of it, and no job makes a call.
        let is_there = self.read(&["job.json"])?.is_some();
        for job in jobs.into_iter().filter(|_| is_there) {
            shares.extend(self.share(job)?.map(|bytes| (job, bytes)));
        }
        Ok(shares)
    }

    /// Takes what a job may spend, and returns it; `None` if another process of the job has it, or the runner has taken it back.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn take_share(&self, job: u64) -> io::Result<Option<Vec<u8>>> {
        let free = self.at(&[SHARES, &job.to_string()]);
        let taken = self.at(&[SHARES, &format!("{job}.taken")]);
        let bytes = self.read(&[SHARES, &job.to_string()])?;
        // Of several processes, one finds the file.
        let is_ours = self.disk.rename(&free, &taken).is_ok();
        Ok(bytes.filter(|_| is_ours))
    }

    /// Returns true if the process that took the share of a job still has it: neither the share nor the submission is gone. Opening a
    /// file asks the server of a network file system.
    pub fn has_share(&self, job: u64) -> bool {
        let taken = format!("{job}.taken");
        let is_there = |parts: &[&str]| read::open(self.at(parts)).is_ok();
        is_there(&[SHARES, &taken]) && is_there(&["job.json"])
    }

    /// Takes the share of a job back: no process of it begins another call.
    pub fn take_share_back(&self, job: u64) -> Result<(), DiskError> {
        for name in [job.to_string(), format!("{job}.taken")] {
            self.disk.remove_file(&self.at(&[SHARES, &name]))?;
        }
        self.disk.sync_dir(&self.at(&[SHARES]))
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

/// Makes network file systems list a folder anew: whoever changes a folder reads it from the server.
pub fn refresh(disk: &Disk, folder: &Path) {
    let mark = folder.join(".seen");
    // Where that is impossible, the names appear when the cache is too old.
    let _ = disk.write_swap(&mark, b"");
    let _ = disk.remove_file(&mark);
}

/// Flushes files that a job wrote, and their folders, so that another machine reads them whole.
pub fn flush(disk: &Disk, layout: &Layout, files: &[RelPath]) -> Result<(), DiskError> {
    let mut folders = BTreeSet::new();
    for file in files {
        let path = layout.at(file);
        disk.sync_file(&path)?;
        folders.extend(path.parent().map(Path::to_owned));
    }
    folders.iter().try_for_each(|folder| disk.sync_dir(folder))
}

/// The names in a folder, in order; none where there is no folder.
fn names(folder: &Path) -> io::Result<Vec<String>> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut names = Vec::new();
    for entry in entries {
        names.extend(entry?.file_name().into_string().ok());
    }
    names.retain(|name| !name.starts_with('.'));
    names.sort();
    Ok(names)
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests damage files by hand")]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn one_process_of_a_job_has_its_share_until_it_is_taken_back() {
        let folder = tempfile::tempdir().unwrap();
        let submission = Submission::new(&Disk::real(), &Layout::new(folder.path()), "A");
        submission.create().unwrap();
        submission.write(&["job.json"], b"{}").unwrap();
        for job in [0, 1, 2] {
            submission.write_share(job, b"all").unwrap();
        }
        assert!(!submission.has_share(0));
        assert_eq!(submission.take_share(0).unwrap().unwrap(), b"all");
        assert_eq!(submission.take_share(0).unwrap(), None);
        assert!(submission.has_share(0));
        assert_eq!(submission.share(0).unwrap().unwrap(), b"all");
        let all = b"all".to_vec();
        let expected: Vec<(u64, Vec<u8>)> = (0..3).map(|job| (job, all.clone())).collect();
        assert_eq!(submission.shares().unwrap(), expected);
        submission.take_share_back(0).unwrap();
        assert!(!submission.has_share(0));
        assert_eq!(submission.share(0).unwrap(), None);
        // One that nobody took cannot be taken then.
        submission.take_share_back(1).unwrap();
        assert_eq!(submission.take_share(1).unwrap(), None);
        // Without the submission, no process has a share.
        submission.take_share(2).unwrap().unwrap();
        assert!(submission.has_share(2));
        std::fs::remove_file(submission.at(&["job.json"])).unwrap();
        assert!(!submission.has_share(2));
        assert_eq!(submission.shares().unwrap(), []);
    }

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
