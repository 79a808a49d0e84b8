//! Compacts answers for `gc`: writes the last answer of each address into one file, without old answers that are not in use.
//!
//! The file has the name of the last file that it replaces, so that files of later runs still come after it. The other files are
//! removed when it is durable. The caller holds the lock, so no run writes there.

use super::{address_of, call_of};
use crate::store::agents::checksummed::{files, open_line};
use crate::store::disk::{Disk, DiskError};
use crate::store::id::made_at;
use crate::store::read;
use jiff::Timestamp;
use milepost_core::base::digest::Digest;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

/// The file while it is written.
const UNFINISHED: &str = ".compact.tmp";

/// Bytes that are gathered before they are written.
const GATHERED: usize = 1 << 18;

/// Which answers may be removed, besides superseded ones.
pub struct RemovableAnswers<'a> {
    /// Returns true if the answer of this call of a run is in use.
    pub in_use: &'a dyn Fn(&str, u64) -> bool,
    /// Answers of runs before this time may be removed if they are not in use; `None` removes none.
    pub before: Option<Timestamp>,
}

/// The planned compaction of a folder.
pub struct Compaction {
    folder: PathBuf,
    files: Vec<PathBuf>,
    /// The lines to keep, in order: file, offset, bytes.
    stays: Vec<(usize, u64, usize)>,
    /// The number of bytes that it frees.
    pub freed: u64,
}

struct AnswerLine {
    spot: (usize, u64, usize),
    stays: bool,
    is_used: bool,
    /// The number of the run, and that of the call in it.
    call: Option<(usize, u64)>,
}

/// Plans the compaction of a folder of answers; `None` if there is nothing to do.
///
/// # Errors
/// Fails if the folder cannot be read.
pub fn look(folder: &Path, unneeded: &RemovableAnswers<'_>) -> io::Result<Option<Compaction>> {
    let files = files(folder)?;
    let mut lines: Vec<AnswerLine> = Vec::new();
    let mut last: HashMap<Digest, usize> = HashMap::new();
    let mut runs: HashMap<String, usize> = HashMap::new();
    let mut size = 0;
    for (file, path) in files.iter().enumerate() {
        let mut reader = BufReader::with_capacity(GATHERED, read::open(path)?);
        let (mut line, mut at) = (Vec::new(), 0);
        loop {
            line.clear();
            if reader.read_until(b'\n', &mut line)? == 0 {
                break;
            }
            let spot = (file, at, line.len());
            at += line.len() as u64;
            // Torn and damaged lines are dropped.
            let Some(text) = open_line(&line) else {
                continue;
            };
            let Some(address) = address_of(text) else {
                lines.push(AnswerLine {
                    spot,
                    stays: true,
                    is_used: true,
                    call: None,
                });
                continue;
            };
            let mut line = unneeded.line(spot, text, &mut runs);
            if let Some(before) = last.insert(address, lines.len()) {
                // Of an address that is in use, the last answer counts. Outputs may contain the earlier one, of another call.
                let before = &mut lines[before];
                line.stays |= before.stays;
                before.stays &= before.is_used && before.call != line.call;
            }
            lines.push(line);
        }
        size += at;
    }
    let stays: Vec<_> = lines.iter().filter(|line| line.stays).collect();
    let stays: Vec<_> = stays.into_iter().map(|line| line.spot).collect();
    let leftover = folder.join(UNFINISHED).metadata();
    let leftover = leftover.map(|found| found.len());
    let left: u64 = stays.iter().map(|spot| spot.2 as u64).sum();
    let is_in_order = files.len() <= 1 && size == left && leftover.is_err();
    Ok((!is_in_order).then(|| Compaction {
        folder: folder.to_owned(),
        freed: size - left + leftover.unwrap_or(0),
        files,
        stays,
    }))
}

impl RemovableAnswers<'_> {
    fn line(
        &self,
        spot: (usize, u64, usize),
        text: &str,
        runs: &mut HashMap<String, usize>,
    ) -> AnswerLine {
        // A later version may have written a line without a readable call: keep it.
        let Some((run, number)) = call_of(text) else {
            return AnswerLine {
                spot,
                stays: true,
                is_used: true,
                call: None,
            };
        };
        let before = self.before.zip(made_at(&run));
        let is_old = before.is_some_and(|(before, at)| at < before);
        let is_used = (self.in_use)(&run, number);
        let next = runs.len();
        AnswerLine {
            spot,
            stays: is_used || !is_old,
            is_used,
            call: Some((*runs.entry(run).or_insert(next), number)),
        }
    }
}

impl Compaction {
    /// Returns by how many files the folder shrinks.
    pub fn files(&self) -> u64 {
        (self.files.len() as u64).saturating_sub(u64::from(!self.stays.is_empty()))
    }

    /// Compacts the folder durably. If it is interrupted at any point, no answer that stays is lost.
    ///
    /// # Errors
    /// Fails if the disk fails.
    pub fn carry_out(&self, disk: &Disk) -> Result<(), DiskError> {
        let unfinished = self.folder.join(UNFINISHED);
        let mut gone = self.files.as_slice();
        if let Some((last, others)) = self.files.split_last().filter(|_| !self.stays.is_empty()) {
            self.write(disk, &unfinished)?;
            disk.rename(&unfinished, last)?;
            disk.sync_dir(&self.folder)?;
            gone = others;
        } else {
            disk.remove_file(&unfinished)?;
        }
        for path in gone {
            disk.remove_file(path)?;
        }
        disk.sync_dir(&self.folder)
    }

    fn write(&self, disk: &Disk, to: &Path) -> Result<(), DiskError> {
        let mut file = disk.private().create(to)?;
        let mut gathered = Vec::new();
        let mut from: Option<(usize, File)> = None;
        for &(index, at, length) in &self.stays {
            let path = &self.files[index];
            let failed = |cause| DiskError::new("read", path, cause);
            let source = match &mut from {
                Some((open, source)) if *open == index => source,
                _ => &mut from.insert((index, read::open(path).map_err(failed)?)).1,
            };
            let begin = gathered.len();
            gathered.resize(begin + length, 0);
            source
                .read_exact_at(&mut gathered[begin..], at)
                .map_err(failed)?;
            // A line that a crash tore of its end, and of nothing else.
            if !gathered.ends_with(b"\n") {
                gathered.push(b'\n');
            }
            if gathered.len() >= GATHERED {
                file.write_bytes(&gathered)?;
                gathered.clear();
            }
        }
        file.write_bytes(&gathered)?;
        file.sync()
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests damage files by hand")]
mod tests {
    use super::*;
    use crate::store::agents::answers::{Answer, Answers, Sharing};
    use crate::store::layout::Layout;
    use serde_json::{Value, json};

    /// Runs of 1970 and of 2026.
    const OLD: &str = "00000000010000000000000000";
    const NEWER: &str = "00000000020000000000000000";
    const NEW: &str = "01KAH000000000000000000000";

    struct Place(tempfile::TempDir);

    impl Place {
        fn put(&self, run: &str, to: &str, said: &str) {
            let layout = Layout::new(self.0.path());
            let answers = Answers::open(&Disk::real(), self.0.path(), &layout, run);
            let answer = Answer {
                address: Digest::of(to),
                answer: json!(said),
                schema: None,
                agent: "openai gpt".to_owned(),
                call: (run.to_owned(), 1),
            };
            answers.put_all(&[answer], Sharing::Workspace).unwrap();
        }

        fn said(&self, to: &str) -> Option<Value> {
            let layout = Layout::new(self.0.path());
            let answers = Answers::open(&Disk::real(), self.0.path(), &layout, "none");
            let found = answers.get(Digest::of(to)).unwrap();
            found.map(|found| found.answer)
        }

        fn folder(&self) -> PathBuf {
            Layout::new(self.0.path()).answers()
        }

        fn look(&self, before: Option<Timestamp>, used: &[&str]) -> Option<Compaction> {
            let unneeded = RemovableAnswers {
                in_use: &|run, _| used.contains(&run),
                before,
            };
            look(&self.folder(), &unneeded).unwrap()
        }

        fn names(&self) -> Vec<String> {
            let files = files(&self.folder()).unwrap();
            let name = |path: &PathBuf| path.file_stem().unwrap().to_str().unwrap().to_owned();
            files.iter().map(name).collect()
        }
    }

    fn place() -> Place {
        let place = Place(tempfile::tempdir().unwrap());
        place.put(OLD, "one", "1");
        place.put(OLD, "two", "2");
        place.put(NEWER, "one", "3");
        place.put(NEW, "three", "4");
        place
    }

    fn now() -> Timestamp {
        made_at(NEW).unwrap()
    }

    #[test]
    fn the_last_of_each_address_stays_in_one_file() {
        let place = place();
        let found = place.look(None, &[]).unwrap();
        assert_eq!((found.stays.len(), found.files()), (3, 2));
        assert!(found.freed > 64);
        found.carry_out(&Disk::real()).unwrap();
        assert_eq!(place.names(), [NEW]);
        for (to, said) in [("one", "3"), ("two", "2"), ("three", "4")] {
            assert_eq!(place.said(to), Some(json!(said)), "{to}");
        }
        assert!(place.look(None, &[]).is_none());
        // A file that was begun goes; what cannot be read is nothing, and what is not understood stays.
        std::fs::write(place.folder().join(UNFINISHED), "beginning").unwrap();
        let path = place.folder().join(format!("{NEW}.jsonl"));
        let mut bytes = std::fs::read(&path).unwrap();
        let other = "{\"other\":1}";
        bytes.extend(format!("torn{} {other}", Digest::of(other).hex()).into_bytes());
        bytes.extend(format!("\n{} {other}", Digest::of(other).hex()).into_bytes());
        std::fs::write(&path, &bytes).unwrap();
        place
            .look(None, &[])
            .unwrap()
            .carry_out(&Disk::real())
            .unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().count(), 4);
        assert!(text.ends_with(&format!(" {other}\n")), "{text}");
        assert!(place.look(None, &[]).is_none());
        assert_eq!(place.said("two"), Some(json!("2")));
    }

    #[test]
    fn what_is_old_and_of_no_use_goes() {
        let place = place();
        let found = place.look(Some(now()), &[OLD]).unwrap();
        // Of the first address the older answer is in use: it stays, and the newer one counts.
        assert_eq!(found.stays.len(), 4);
        found.carry_out(&Disk::real()).unwrap();
        assert_eq!(place.said("one"), Some(json!("3")));
        assert!(place.look(Some(now()), &[OLD, NEWER]).is_none());
        let found = place.look(Some(now()), &[]).unwrap();
        assert_eq!((found.stays.len(), found.files()), (1, 0));
        found.carry_out(&Disk::real()).unwrap();
        assert_eq!(
            (place.said("two"), place.said("three")),
            (None, Some(json!("4")))
        );
        let later = now() + std::time::Duration::from_secs(1);
        let found = place.look(Some(later), &[]).unwrap();
        assert_eq!((found.stays.len(), found.files()), (0, 1));
        found.carry_out(&Disk::real()).unwrap();
        assert_eq!(place.names(), Vec::<String>::new());
    }
}
