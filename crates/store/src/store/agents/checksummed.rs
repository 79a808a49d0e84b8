//! Files of checksummed lines: each line follows its digest, so that torn and damaged lines are recognised and skipped.
//!
//! Each run appends to a file of its own. A crash or power failure may leave a part of a line that was not flushed; it is skipped.

use crate::store::disk::{Disk, DiskError, DiskFile, parent};
use crate::store::read;
use milepost_core::base::digest::Digest;
use std::path::{Path, PathBuf};

/// Digits of a seal.
pub(super) const SEAL: usize = 64;

/// Bytes that a power failure leaves in place of unflushed ones.
const ZEROS: [u8; 8] = [0; 8];

/// A file of sealed lines that one run appends to. It is made with its first line.
pub(crate) struct ChecksummedLog {
    disk: Disk,
    path: PathBuf,
    file: Option<DiskFile>,
    size: u64,
    /// True if an append failed and a part of it is behind the lines.
    is_torn: bool,
}

impl ChecksummedLog {
    /// The file at this path, to append to.
    pub(crate) fn new(disk: &Disk, path: PathBuf) -> Self {
        Self {
            disk: disk.clone(),
            path,
            file: None,
            size: 0,
            is_torn: false,
        }
    }

    /// Where it lies.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Appends a line, which holds no line break, durably. Returns where in the file it begins, and its bytes.
    ///
    /// # Errors
    /// Fails if the disk fails.
    pub(crate) fn append(&mut self, text: &str) -> Result<(u64, u64), DiskError> {
        let places = self.append_all(&[text])?;
        Ok(places.first().copied().unwrap_or_default())
    }

    /// Appends several lines by one write and one flush, and returns their places.
    pub(crate) fn append_all(
        &mut self,
        texts: &[impl AsRef<str>],
    ) -> Result<Vec<(u64, u64)>, DiskError> {
        let mut lines = String::new();
        let mut places = Vec::with_capacity(texts.len());
        for text in texts.iter().map(AsRef::as_ref) {
            let begin = lines.len();
            lines.push_str(&Digest::of(text).hex());
            lines.push(' ');
            lines.push_str(text);
            lines.push('\n');
            places.push((begin as u64, (lines.len() - begin) as u64));
        }
        let is_new = self.file.is_none();
        let file = match &mut self.file {
            Some(file) => file,
            None => {
                self.disk.create_dir_all(parent(&self.path))?;
                let file = self.disk.open_append(&self.path)?;
                self.size = file.size()?;
                self.file.insert(file)
            }
        };
        for (at, _) in &mut places {
            *at += self.size;
        }
        if self.is_torn {
            file.truncate(self.size)?;
            self.is_torn = false;
        }
        let written = file.write_bytes(lines.as_bytes());
        if let Err(error) = written.and_then(|()| file.flush_data()) {
            // The disk may be full: the next line must not follow half a line.
            self.is_torn = file.truncate(self.size).is_err();
            return Err(error);
        }
        self.size += lines.len() as u64;
        if is_new {
            self.disk.sync_dir(parent(&self.path))?;
        }
        Ok(places)
    }
}

/// Returns the text of a line; `None` if its checksum does not match.
pub(crate) fn open_line(line: &[u8]) -> Option<&str> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let (seal, text) = line.split_at_checked(SEAL)?;
    let text = text.strip_prefix(b" ")?;
    let whole = Digest::of(text).hex();
    (whole.as_bytes() == seal).then(|| std::str::from_utf8(text).ok())?
}

/// Returns the texts of the whole lines of a file, and the numbers of the damaged ones, from 1. A last line that a crash tore is
/// neither.
pub fn lines(bytes: &[u8]) -> impl Iterator<Item = Result<&str, usize>> {
    let lines = bytes.split_inclusive(|&byte| byte == b'\n');
    let mut lines = (1..).zip(lines).peekable();
    std::iter::from_fn(move || {
        let (number, line) = lines.next()?;
        match open_line(line) {
            Some(text) => Some(Ok(text)),
            None if lines.peek().is_none() && is_torn(line) => None,
            None => Some(Err(number)),
        }
    })
}

/// Returns the texts of the whole lines of a file.
pub fn whole_lines(bytes: &[u8]) -> impl Iterator<Item = &str> {
    lines(bytes).filter_map(Result::ok)
}

/// Returns true if a crash left this of a last line: its end is missing, or a power failure left zeros in it.
fn is_torn(line: &[u8]) -> bool {
    // A last line that lacks nothing but its line break has another byte instead.
    let is_cut = !line.ends_with(b"\n") && open_line(&line[..line.len() - 1]).is_none();
    is_cut || line.windows(ZEROS.len()).any(|part| part == ZEROS)
}

/// Returns the files of a folder whose names end in `.jsonl`, by name; none if there is no folder.
///
/// # Errors
/// When the folder cannot be read.
pub fn files(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut names = read::names(folder)?;
    names.retain(|name| name.strip_suffix(".jsonl").is_some());
    Ok(names.iter().map(|name| folder.join(name)).collect())
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests damage files by hand")]
mod tests {
    use super::*;

    fn damaged_lines(bytes: &[u8]) -> Vec<usize> {
        lines(bytes).filter_map(Result::err).collect()
    }

    #[test]
    fn only_whole_lines_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("calls/run.jsonl");
        let mut sealed = ChecksummedLog::new(&Disk::real(), path.clone());
        assert_eq!(sealed.append("one").unwrap(), (0, 69));
        assert_eq!(sealed.append_all(&["two"]).unwrap(), [(69, 69)]);
        let bytes = std::fs::read(&path).unwrap();
        let several = sealed.append_all(&["a", "bc"]).unwrap();
        assert_eq!(several, [(138, 67), (205, 68)]);
        assert_eq!(std::fs::read(&path).unwrap().len(), 273);
        assert_eq!(whole_lines(&bytes).collect::<Vec<_>>(), ["one", "two"]);
        for cut in 69..bytes.len() - 1 {
            let read: Vec<&str> = whole_lines(&bytes[..cut]).collect();
            assert_eq!(read, ["one"], "{cut}");
        }
        assert_eq!(damaged_lines(&bytes), [] as [usize; 0]);
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            // Without its line break, the first line is one with the second.
            assert_eq!(damaged_lines(&damaged), [1 + at / 69], "{at}");
            assert_eq!(damaged_lines(&bytes[..at]), [] as [usize; 0], "{at}");
        }
        let mut zeros = bytes.clone();
        zeros[70..100].fill(0);
        assert_eq!(damaged_lines(&zeros), [] as [usize; 0]);
        for at in 0..69 {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            let read: Vec<&str> = whole_lines(&damaged).collect();
            assert!(read == ["two"] || (at == 68 && read.is_empty()), "{at}");
        }
        // The next run writes a file of its own, and appends to one that it finds.
        std::fs::write(&path, &bytes[..100]).unwrap();
        let mut again = ChecksummedLog::new(&Disk::real(), path.clone());
        again.append("three").unwrap();
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(whole_lines(&bytes).collect::<Vec<_>>(), ["one"]);
        assert_eq!(files(folder.path()).unwrap(), Vec::<PathBuf>::new());
        assert_eq!(files(path.parent().unwrap()).unwrap(), [path]);
    }
}
