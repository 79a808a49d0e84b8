//! Sorted runs in a file without a name, which the system removes when the process ends.

use crate::store::disk::{Disk, DiskError, DiskFile, Fill};
use crate::store::read;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

/// Bytes of a run that are read at once.
const BUFFER: u64 = 16 << 10;

/// A file of runs.
#[derive(Debug)]
pub(super) struct Runs {
    file: DiskFile,
    reader: File,
    /// Where each run ends.
    ends: Vec<u64>,
}

impl Runs {
    /// Creates the file, and takes its name away. If the process is killed in between, its name is one of those that `gc` removes.
    pub(super) fn create(disk: &Disk, path: &Path) -> Result<Self, DiskError> {
        let file = disk.create(path)?;
        let reader = read::open(path).map_err(|cause| DiskError::new("read", path, cause));
        disk.remove_file(path)?;
        Ok(Self {
            file,
            reader: reader?,
            ends: Vec::new(),
        })
    }

    /// Appends a run.
    pub(super) fn append(&mut self, fill: impl Fill) -> Result<(), DiskError> {
        self.file.fill(fill)?;
        self.ends.push(self.file.size()?);
        Ok(())
    }

    /// Readers of the runs, in their order.
    pub(super) fn readers(&self) -> impl Iterator<Item = BufReader<RunReader<'_>>> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(at, &end)| {
            let file = &self.reader;
            BufReader::with_capacity((end - at).min(BUFFER) as usize, RunReader { file, at, end })
        })
    }
}

pub(super) struct RunReader<'a> {
    file: &'a File,
    at: u64,
    end: u64,
}

impl Read for RunReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let size = (self.end - self.at).min(buffer.len() as u64) as usize;
        let read = self.file.read_at(&mut buffer[..size], self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}
