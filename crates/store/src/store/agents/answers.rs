//! Answers of agents by address: in the project for all its workspaces, and in each workspace a copy of those it used.
//!
//! A run appends to a file of its own (see [`super::checksummed`]), so that several can write at once. Answers are never modified:
//! the last answer of an address, in the order of files and lines, counts.

pub mod compact;

pub use super::asking::QuestionClaim;

use super::asking::Asking;
use super::checksummed::{ChecksummedLog, files, open_line};
use crate::store::disk::{Disk, DiskError};
use crate::store::layout::{self, Layout};
use crate::store::lock::SharedLock;
use crate::store::read;
use milepost_core::base::digest::Digest;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek as _, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Readings of a folder until one is whole.
const READINGS: usize = 5;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// The digest of the question, the prompt without elements, the agent and the step.
    pub address: Digest,
    pub answer: Value,
    /// The digest of the schema that it was valid by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Digest>,
    /// The agent that answered, in one line.
    pub agent: String,
    /// The run, and the number of its call.
    pub call: (String, u64),
}

/// Why answers cannot be read or kept. It can be cloned: a folder that cannot be read is reported to every caller.
#[derive(Debug, Clone, thiserror::Error)]
pub enum AnswerError {
    /// The folder of answers cannot be read.
    #[error("{folder}: {source}", folder = .folder.display())]
    Read {
        folder: PathBuf,
        source: Arc<io::Error>,
    },
    /// The shared answers cannot be locked, or their folder cannot be created.
    #[error(transparent)]
    Lock(Arc<DiskError>),
    /// An answer cannot be written.
    #[error("an answer cannot be kept: {0}")]
    Keep(Arc<DiskError>),
    /// An answer cannot be written as JSON.
    #[error("an answer cannot be written as JSON: {0}")]
    Json(Arc<serde_json::Error>),
}

impl From<DiskError> for AnswerError {
    fn from(error: DiskError) -> Self {
        Self::Lock(Arc::new(error))
    }
}

/// The answers of a project, and of one of its workspaces.
pub struct Answers {
    own: AnswerLog,
    shared: AnswerLog,
    /// The lock on the shared answers, taken at first use, so that no compaction runs meanwhile; `None` if they do not exist or
    /// this user may only read them.
    lock: OnceLock<Option<SharedLock>>,
    asking: Asking,
}

/// The answers in the files of one folder.
struct AnswerLog {
    folder: PathBuf,
    /// Read at the first call.
    known: OnceLock<Result<Mutex<KnownAnswers>, AnswerError>>,
    disk: Disk,
    run: String,
}

struct KnownAnswers {
    /// Each with the bytes that were read.
    files: Vec<(File, u64)>,
    /// Their positions.
    places: HashMap<PathBuf, usize>,
    /// The place of the last answer of an address: file, offset, bytes.
    spots: HashMap<Digest, (u32, u64, u32)>,
    writer: ChecksummedLog,
    /// Which of the files is the writer's.
    written: Option<u32>,
}

impl Answers {
    /// Opens the answers that a run can use. Files are read at the first call.
    pub fn open(disk: &Disk, project: &Path, layout: &Layout, run: &str) -> Self {
        let log = |folder: PathBuf| AnswerLog {
            folder,
            known: OnceLock::new(),
            disk: disk.private(),
            run: run.to_owned(),
        };
        let root = layout.root();
        let root = root.strip_prefix(project).unwrap_or(root);
        Self {
            own: log(layout.answers()),
            shared: log(layout::answers(project)),
            lock: OnceLock::new(),
            asking: Asking {
                disk: disk.private(),
                folder: layout::answers(project).join("asking"),
                run: run.to_owned(),
                workspace: root.display().to_string(),
            },
        }
    }

    /// Claims questions for this run, but none that another run is asking, and none that another run has answered since answers were
    /// last read: the caller finds those now. With `is_fresh`, what other runs ask and answer does not count.
    ///
    /// # Errors
    /// Fails if the disk fails.
    pub fn claim(
        &self,
        addresses: &[Digest],
        is_fresh: bool,
    ) -> Result<QuestionClaim, AnswerError> {
        let _turn = self.asking.turn()?;
        self.hold()?;
        let asked = self.asking.of_others()?;
        let answered = self.shared.read_more()?;
        let is_free = |address: &Digest| {
            is_fresh || !asked.contains_key(address) && !answered.contains(address)
        };
        let free = addresses.iter().copied().filter(is_free).collect();
        Ok(self.asking.claim(free)?)
    }

    /// Returns the other run that is asking a question, if there is one.
    ///
    /// # Errors
    /// Fails if the disk fails.
    pub fn asked_by(&self, address: Digest) -> Result<Option<String>, AnswerError> {
        let _turn = self.asking.turn()?;
        Ok(self.asking.of_others()?.remove(&address))
    }

    fn hold(&self) -> Result<(), AnswerError> {
        if self.lock.get().is_some() {
            return Ok(());
        }
        let path = layout::answers_lock(&self.shared.folder);
        let lock = match SharedLock::take(&self.shared.disk, &path) {
            Ok(lock) => Some(lock),
            Err(error) => match error.source.kind() {
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => None,
                _ => return Err(error.into()),
            },
        };
        // Another thread may have been first: its lock is as good.
        let _ = self.lock.set(lock);
        Ok(())
    }

    /// Returns the answers at addresses, `None` where there is none. Answers that only other workspaces have used are copied to
    /// this one, by one write.
    ///
    /// # Errors
    /// Fails if answers cannot be read or the copy cannot be written.
    pub fn get_all(&self, addresses: &[Digest]) -> Result<Vec<Option<Answer>>, AnswerError> {
        let mut found = Vec::with_capacity(addresses.len());
        let mut of_others = Vec::new();
        for &address in addresses {
            let mut answer = self.own.get(address)?;
            if answer.is_none() {
                if self.shared.folder.exists() {
                    self.hold()?;
                }
                answer = self.shared.get(address)?;
                of_others.extend(answer.clone());
            }
            found.push(answer);
        }
        if !of_others.is_empty() {
            self.own.put(&of_others)?;
        }
        Ok(found)
    }

    /// Returns the answer at an address, without writing anything.
    ///
    /// # Errors
    /// Fails if answers cannot be read.
    pub fn peek(&self, address: Digest) -> Result<Option<Answer>, AnswerError> {
        match self.own.get(address)? {
            Some(answer) => Ok(Some(answer)),
            None => self.shared.get(address),
        }
    }

    /// Keeps several answers by one write.
    ///
    /// # Errors
    /// Fails if an answer cannot be written.
    pub fn put_all(&self, answers: &[Answer], sharing: Sharing) -> Result<(), AnswerError> {
        if answers.is_empty() {
            return Ok(());
        }
        if sharing == Sharing::Project {
            self.shared.disk.create_dir_all(&self.shared.folder)?;
            self.hold()?;
            self.shared.put(answers)?;
        }
        self.own.put(answers)
    }
}

/// Which workspaces may use an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    /// All workspaces of the project.
    Project,
    /// This workspace.
    Workspace,
}

impl AnswerLog {
    fn known(&self) -> Result<&Mutex<KnownAnswers>, AnswerError> {
        let known = self.known.get_or_init(|| {
            let writer =
                ChecksummedLog::new(&self.disk, self.folder.join(format!("{}.jsonl", self.run)));
            let mut known = KnownAnswers {
                files: Vec::new(),
                places: HashMap::new(),
                spots: HashMap::new(),
                writer,
                written: None,
            };
            // A compaction may remove a file between listing and reading; its answers are then in another file.
            for reading in 1.. {
                match known.read(&self.folder) {
                    Ok(_) => break,
                    Err(error) if error.kind() == io::ErrorKind::NotFound && reading < READINGS => {
                        known.files.clear();
                        known.places.clear();
                        known.spots.clear();
                    }
                    Err(error) => return Err(self.unreadable(error)),
                }
            }
            Ok(Mutex::new(known))
        });
        known.as_ref().map_err(Clone::clone)
    }

    /// Reads what other runs have added, and returns the addresses of these answers.
    fn read_more(&self) -> Result<HashSet<Digest>, AnswerError> {
        let mut known = self.known()?.lock().unwrap_or_else(PoisonError::into_inner);
        let more = known.read(&self.folder);
        more.map_err(|error| self.unreadable(error))
    }

    fn get(&self, address: Digest) -> Result<Option<Answer>, AnswerError> {
        let known = self.known()?.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(&(file, at, length)) = known.spots.get(&address) else {
            return Ok(None);
        };
        let mut line = vec![0; length as usize];
        let read = known.files[file as usize].0.read_exact_at(&mut line, at);
        read.map_err(|error| self.unreadable(error))?;
        let answer = open_line(&line).and_then(|text| serde_json::from_str::<Answer>(text).ok());
        Ok(answer.filter(|answer| answer.address == address))
    }

    fn put(&self, answers: &[Answer]) -> Result<(), AnswerError> {
        let mut known = self.known()?.lock().unwrap_or_else(PoisonError::into_inner);
        let texts = answers.iter().map(serde_json::to_string);
        let texts: Result<Vec<String>, _> = texts.collect();
        let texts = texts.map_err(|error| AnswerError::Json(Arc::new(error)))?;
        let places = known.writer.append_all(&texts);
        let places = places.map_err(|error| AnswerError::Keep(Arc::new(error)))?;
        known
            .note(answers, &places)
            .map_err(|error| self.unreadable(error))
    }

    fn unreadable(&self, error: io::Error) -> AnswerError {
        AnswerError::Read {
            folder: self.folder.clone(),
            source: Arc::new(error),
        }
    }
}

impl KnownAnswers {
    /// Reads what was not read yet, and returns the addresses of these answers.
    fn read(&mut self, folder: &Path) -> io::Result<HashSet<Digest>> {
        let mut read = HashSet::new();
        for path in files(folder)? {
            let file = match self.places.get(&path) {
                Some(_) if path == self.writer.path() => continue,
                Some(&file) => file,
                None => {
                    self.files.push((read::open(&path)?, 0));
                    self.places.insert(path, self.files.len() - 1);
                    self.files.len() - 1
                }
            };
            let (source, at) = &mut self.files[file];
            if source.metadata()?.len() <= *at {
                continue;
            }
            source.seek(SeekFrom::Start(*at))?;
            let mut lines = BufReader::with_capacity(1 << 18, source);
            let mut line = Vec::new();
            loop {
                line.clear();
                let length = lines.read_until(b'\n', &mut line)?;
                let text = open_line(&line);
                // Another run may be writing the rest of the last line.
                if text.is_none() && !line.ends_with(b"\n") {
                    break;
                }
                if let Some(address) = text.and_then(address_of) {
                    let spot = (file as u32, *at, length as u32);
                    self.spots.insert(address, spot);
                    read.insert(address);
                }
                *at += length as u64;
            }
        }
        Ok(read)
    }

    /// Records the places of answers in the file of the writer.
    fn note(&mut self, answers: &[Answer], places: &[(u64, u64)]) -> io::Result<()> {
        let file = match self.written {
            Some(file) => file,
            None => {
                let path = self.writer.path().to_owned();
                let opened = read::open(&path)?;
                self.files.push((opened, 0));
                let file = self.files.len() as u32 - 1;
                self.places.insert(path, file as usize);
                self.written = Some(file);
                file
            }
        };
        for (answer, &(at, length)) in answers.iter().zip(places) {
            let spot = (file, at, length as u32);
            self.spots.insert(answer.address, spot);
        }
        Ok(())
    }
}

/// Returns the address on a line: only it is read, as there may be a million.
fn address_of(text: &str) -> Option<Digest> {
    let rest = text.strip_prefix("{\"address\":\"")?;
    rest.get(..rest.find('"')?)?.parse().ok()
}

/// The part of an answer that identifies its call.
#[derive(Deserialize)]
struct AnswerCall {
    call: (String, u64),
}

/// Returns the run and the number of the call that gave the answer on a line.
fn call_of(text: &str) -> Option<(String, u64)> {
    let found: AnswerCall = serde_json::from_str(text).ok()?;
    Some(found.call)
}

/// Returns how many answers of each call, by run and number, a folder has.
///
/// # Errors
/// Fails if a file cannot be read.
pub fn answers_of_calls(folder: &Path) -> io::Result<HashMap<(String, u64), u64>> {
    let mut found = HashMap::new();
    for path in files(folder)? {
        let bytes = read::bytes(&path)?;
        for call in super::checksummed::whole_lines(&bytes).filter_map(call_of) {
            *found.entry(call).or_default() += 1;
        }
    }
    Ok(found)
}

#[cfg(test)]
impl Answers {
    /// Returns the answer at one address.
    fn get(&self, address: Digest) -> Result<Option<Answer>, AnswerError> {
        Ok(self.get_all(&[address])?.pop().flatten())
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests damage files by hand")]
mod tests {
    use super::*;
    use serde_json::json;

    struct Place(tempfile::TempDir);

    impl Place {
        fn answers(&self, workspace: &str, run: &str) -> Answers {
            let layout = Layout::new(self.0.path().join(workspace));
            Answers::open(&Disk::real(), self.0.path(), &layout, run)
        }
    }

    fn answer(to: &str, value: &str) -> Answer {
        Answer {
            address: Digest::of(to),
            answer: json!({ "said": value }),
            schema: Some(Digest::of("schema")),
            agent: "openai gpt".to_owned(),
            call: ("run".to_owned(), 1),
        }
    }

    #[test]
    fn workspaces_share_what_is_shared_and_keep_what_they_used() {
        let place = Place(tempfile::tempdir().unwrap());
        let (one, two) = (answer("one", "1"), answer("two", "2"));
        let first = place.answers("a", "01A");
        assert_eq!(first.get(one.address).unwrap(), None);
        first
            .put_all(std::slice::from_ref(&one), Sharing::Project)
            .unwrap();
        first
            .put_all(std::slice::from_ref(&two), Sharing::Workspace)
            .unwrap();
        assert_eq!(first.get(one.address).unwrap(), Some(one.clone()));
        let other = place.answers("b", "01B");
        assert_eq!(other.peek(one.address).unwrap(), Some(one.clone()));
        assert!(!place.0.path().join("b").exists());
        assert_eq!(other.get(one.address).unwrap(), Some(one.clone()));
        assert_eq!(other.get(two.address).unwrap(), None);
        // A workspace keeps copies of the answers that it used.
        std::fs::remove_dir_all(layout::answers(place.0.path())).unwrap();
        let later = place.answers("b", "01C");
        assert_eq!(later.get(one.address).unwrap(), Some(one));
        assert_eq!(
            place.answers("a", "01D").get(two.address).unwrap(),
            Some(two)
        );
    }

    #[test]
    fn a_claim_finds_answers_of_files_between_those_that_are_known() {
        let place = Place(tempfile::tempdir().unwrap());
        let write = |run: &str, name: &str| {
            let answers = place.answers("a", run);
            answers
                .put_all(&[answer(name, run)], Sharing::Project)
                .unwrap();
        };
        write("01B", "one");
        write("01D", "two");
        let first = place.answers("b", "01E");
        assert_eq!(first.peek(Digest::of("three")).unwrap(), None);
        for (run, name) in [("01A", "three"), ("01C", "four"), ("01D", "five")] {
            write(run, name);
            let address = Digest::of(name);
            let claimed = first.claim(&[address], false).unwrap();
            assert_eq!(claimed.addresses, [], "{name}");
            assert_eq!(first.peek(address).unwrap(), Some(answer(name, run)));
            // It is known now, and a run that asks again does not need it.
            for is_fresh in [false, true] {
                let claimed = first.claim(&[address], is_fresh).unwrap();
                assert_eq!(claimed.addresses, [address], "{name}");
            }
        }
        assert_eq!(
            first.peek(Digest::of("one")).unwrap(),
            Some(answer("one", "01B"))
        );
    }

    #[test]
    fn the_last_answer_counts_and_a_damaged_one_is_none() {
        let place = Place(tempfile::tempdir().unwrap());
        let first = place.answers("a", "01A");
        first
            .put_all(&[answer("one", "1")], Sharing::Workspace)
            .unwrap();
        first
            .put_all(&[answer("two", "2")], Sharing::Workspace)
            .unwrap();
        place
            .answers("a", "01B")
            .put_all(&[answer("one", "3")], Sharing::Workspace)
            .unwrap();
        let later = place.answers("a", "01C");
        let said = |answers: &Answers, to: &str| {
            let found = answers.get(Digest::of(to)).unwrap();
            found.map(|found| found.answer["said"].clone())
        };
        assert_eq!(said(&later, "one"), Some(json!("3")));
        let path = place.0.path().join("a/.milepost/answers/01A.jsonl");
        let mut bytes = std::fs::read(&path).unwrap();
        let last = bytes.len() - 10;
        bytes[last] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        assert_eq!(said(&place.answers("a", "01D"), "two"), None);
    }
}
