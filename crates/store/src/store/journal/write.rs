//! Writes the journal: one writer appends, flushes and seals.

use super::head::{is_led_to, write_head};
use super::read::{Tail, read_since_seal};
use super::{JournalError, JournalPlace};
use crate::store::disk::{Disk, DiskFile};
use crate::store::layout::Layout;
use crate::store::manifest;
use milepost_core::base::clock::Clock;
use milepost_core::base::digest::Digest;
use milepost_core::model::approval::ApprovedStage;
use milepost_core::model::event::{Event, EventType, Record};
use milepost_core::model::forced::Forced;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Bytes of lines that are handed to the system at once.
const GATHERED: usize = 1 << 18;

/// Bytes above which a segment ends at the next seal. Every command reads the last segment.
pub(super) const FULL: u64 = 1 << 18;

/// The journal of a workspace, open for one run. The caller holds the lock of the workspace.
pub struct Journal {
    disk: Disk,
    layout: Layout,
    clock: Arc<dyn Clock>,
    session_id: String,
    run_id: String,
    file: DiskFile,
    segment: u64,
    lines: u64,
    size: u64,
    last: Option<Digest>,
    dirty: bool,
    stopped: bool,
    /// Lines that are not with the system yet.
    waiting: Vec<u8>,
    gathers: bool,
    /// The last line that is with the system, and how many are.
    written: (Option<Digest>, u64),
    unsealed: BTreeSet<String>,
    head: Head,
}

/// The action of the next flush on the head of the journal.
#[derive(PartialEq, Eq)]
enum Head {
    /// Never writes: the head that exists belongs to another journal. It stays, for `verify` to report.
    Foreign,
    /// Writes nothing: a run is in progress.
    Current,
    /// Writes the head: the last record ends a run.
    Due,
}

/// A journal that was just opened.
pub struct OpenedJournal {
    /// The journal, for appending.
    pub journal: Journal,
    /// The records since the last seal.
    pub records: Vec<Record>,
    /// The torn tail that was removed, if any.
    pub cut: Option<TornTail>,
}

/// A torn line that was removed: an earlier run was killed while it wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TornTail {
    /// The position of the line.
    pub place: JournalPlace,
    /// The size in bytes.
    pub bytes: u64,
}

impl Journal {
    /// Opens or creates the journal for a run. A torn tail is removed.
    pub fn open(
        disk: &Disk,
        layout: &Layout,
        clock: Arc<dyn Clock>,
        session_id: &str,
        run_id: &str,
    ) -> Result<OpenedJournal, JournalError> {
        let (records, tail) = read_since_seal(layout)?;
        let head = if is_led_to(layout, &records, &tail) {
            Head::Current
        } else {
            Head::Foreign
        };
        disk.create_dir_all(&layout.journal())?;
        let Tail {
            segment,
            lines,
            size,
            torn,
            last,
        } = tail;
        let is_new = segment == 0;
        let segment = segment.max(1);
        let path = layout.segment(segment);
        let file = disk.open_append(&path)?;
        if is_new {
            disk.sync_dir(&layout.journal())?;
        }
        let cut = if torn > 0 {
            file.truncate(size)?;
            file.sync()?;
            let place = JournalPlace {
                path,
                segment,
                line: lines + 1,
                offset: size,
            };
            Some(TornTail { place, bytes: torn })
        } else {
            None
        };
        let journal = Self {
            disk: disk.clone(),
            layout: layout.clone(),
            clock,
            session_id: session_id.to_owned(),
            run_id: run_id.to_owned(),
            file,
            segment,
            lines,
            size,
            last,
            dirty: false,
            stopped: false,
            waiting: Vec::new(),
            gathers: false,
            written: (last, lines),
            unsealed: records
                .iter()
                .filter_map(|record| record.event.stage().map(str::to_owned))
                .collect(),
            head,
        };
        Ok(OpenedJournal {
            journal,
            records,
            cut,
        })
    }

    /// Returns the id of the run that writes.
    pub fn run_id(&self) -> &str {
        &self.run_id
    }

    /// Returns the number of the open segment.
    pub fn segment(&self) -> u64 {
        self.segment
    }

    /// Returns the stages that a record mentioned since the last seal when it was opened. Their manifests may be older.
    pub fn unsealed(&self) -> &BTreeSet<String> {
        &self.unsealed
    }

    /// Appends a record and returns its digest. It is written at once unless lines are gathered, and durable after
    /// [`Journal::flush`].
    pub fn append(
        &mut self,
        event_type: EventType,
        agent_name: &str,
        event: Event,
        summary: impl Into<String>,
        artifact_refs: Vec<String>,
    ) -> Result<Digest, JournalError> {
        let ends = matches!(event, Event::RunFinished { .. });
        let record = self.record(event_type, agent_name, event, summary.into(), artifact_refs);
        if self.stopped {
            let path = self.file.path().to_owned();
            return Err(JournalError::Stopped { path });
        }
        let digest = add_line(&mut self.waiting, &record)?;
        self.lines += 1;
        self.last = Some(digest);
        if self.head != Head::Foreign {
            self.head = if ends { Head::Due } else { Head::Current };
        }
        if !self.gathers || self.waiting.len() >= GATHERED {
            self.write()?;
        }
        Ok(digest)
    }

    /// Gathers lines in memory until the next flush, for records that count only together.
    pub fn gather(&mut self) {
        self.gathers = true;
    }

    /// Hands to the system what waits.
    fn write(&mut self) -> Result<(), JournalError> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let waiting = std::mem::take(&mut self.waiting);
        if let Err(cause) = self.file.write_bytes(&waiting) {
            // Half a line may be there. Were it to stay, the next record would break the chain; and none may follow some that
            // were taken for appended.
            self.stopped = self.file.truncate(self.size).is_err() || self.gathers;
            (self.last, self.lines) = self.written;
            return Err(cause.into());
        }
        self.size += waiting.len() as u64;
        self.written = (self.last, self.lines);
        self.waiting = waiting;
        self.waiting.clear();
        self.dirty = true;
        Ok(())
    }

    /// Flushes the appended records. After the record of the run's end, the head is written.
    pub fn flush(&mut self) -> Result<(), JournalError> {
        self.write()?;
        self.gathers = false;
        if self.dirty {
            self.file.flush_data()?;
            self.dirty = false;
            if self.head == Head::Due {
                let end = Tail {
                    segment: self.segment,
                    lines: self.lines,
                    size: self.size,
                    torn: 0,
                    last: self.last,
                };
                write_head(&self.disk, &self.layout, &end)?;
            }
        }
        Ok(())
    }

    /// Records that the manifests contain everything before, durably. A full segment ends there, and the next one begins.
    pub fn seal(
        &mut self,
        checkpoints: BTreeMap<String, Digest>,
        forced: Vec<Forced>,
        approvals: BTreeMap<String, ApprovedStage>,
    ) -> Result<(), JournalError> {
        self.flush()?;
        let event = Event::Sealed {
            segment: self.segment,
            checkpoints,
            pages: manifest::page_counts(&self.layout)?,
            forced,
            approvals,
        };
        let summary = "the manifests contain all records before".to_owned();
        if self.size < FULL {
            self.append(EventType::Complete, "milepost", event, summary, Vec::new())?;
            return self.flush();
        }
        let record = self.record(EventType::Complete, "milepost", event, summary, Vec::new());
        let mut line = Vec::new();
        let digest = add_line(&mut line, &record)?;
        let path = self.layout.segment(self.segment + 1);
        // If the new segment exists and a later step fails, a record in the old segment would precede a seal.
        self.stopped = true;
        self.disk.write_atomic(&path, &line)?;
        self.file = self.disk.open_append(&path)?;
        self.stopped = false;
        self.segment += 1;
        self.lines = 1;
        self.size = line.len() as u64;
        self.last = Some(digest);
        self.written = (self.last, self.lines);
        Ok(())
    }

    fn record(
        &self,
        event_type: EventType,
        agent_name: &str,
        event: Event,
        summary: String,
        artifact_refs: Vec<String>,
    ) -> Record {
        Record {
            timestamp: self.clock.now(),
            session_id: self.session_id.clone(),
            run_id: self.run_id.clone(),
            agent_name: agent_name.to_owned(),
            event_type,
            event,
            summary,
            artifact_refs,
            prev: self.last,
        }
    }
}

/// Appends a record as a line, and returns the digest of the line without its end.
fn add_line(lines: &mut Vec<u8>, record: &Record) -> Result<Digest, JournalError> {
    let start = lines.len();
    if let Err(error) = serde_json::to_writer(&mut *lines, record) {
        lines.truncate(start);
        return Err(error.into());
    }
    let digest = Digest::of(&lines[start..]);
    lines.push(b'\n');
    Ok(digest)
}
