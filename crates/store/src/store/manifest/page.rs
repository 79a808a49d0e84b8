//! The pieces that a manifest's pages are made of, and how a stage is put together from them again.

use super::text::{self, ManifestError, NamedOutput, PAGE_LINES, PageLine};
use milepost_core::base::digest::Digest;
use milepost_core::base::natural::natural;
use milepost_core::base::path::RelPath;
use milepost_core::model::record::{BatchRecord, Made};
use milepost_core::model::state::{BatchState, Phase, StageState};
use milepost_core::model::totals::{self, BatchTotals};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The smallest unit of a page: a batch, or 1,000 outputs of a batch that has more.
struct ManifestPiece<'a> {
    key: &'a str,
    part: usize,
    batch: &'a BatchState,
}

/// The identity of a piece.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PieceId {
    pub(crate) key: String,
    pub(crate) part: usize,
}

/// All pieces of a stage, in order.
pub(super) struct Pieces<'a>(Vec<ManifestPiece<'a>>);

impl<'a> Pieces<'a> {
    pub(super) fn of(state: &'a StageState) -> Self {
        let batches = state.in_order();
        let mut pieces = Vec::with_capacity(batches.len());
        for (key, batch) in batches {
            let record = batch.record.as_ref();
            let outputs = record.map_or(0, |record| record.outputs.len());
            let parts = outputs.div_ceil(PAGE_LINES).max(1);
            pieces.extend((0..parts).map(|part| ManifestPiece { key, part, batch }));
        }
        Self(pieces)
    }

    /// Lines that each piece counts as.
    pub(super) fn sizes(&self) -> Vec<usize> {
        let pieces = self.0.iter();
        pieces.map(|piece| piece.outputs().len().max(1)).collect()
    }

    /// Returns the number of pieces.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Lines that pieces count as.
    pub(super) fn lines(&self, pieces: Range<usize>) -> usize {
        let pieces = self.0[pieces].iter();
        pieces.map(|piece| piece.outputs().len().max(1)).sum()
    }

    /// Returns the pieces of the batches after this key.
    pub(super) fn after(&self, key: Option<&str>) -> Range<usize> {
        let is_before = |piece: &ManifestPiece<'_>| {
            key.is_some_and(|key| natural(piece.key, key) != Ordering::Greater)
        };
        self.0.partition_point(is_before)..self.0.len()
    }

    /// Returns the key of the batch of a piece.
    pub(super) fn key(&self, piece: usize) -> &'a str {
        self.0[piece].key
    }

    /// Returns true if the outputs of one batch span several of these pieces.
    pub(super) fn are_split(&self, pieces: Range<usize>) -> bool {
        self.0[pieces].iter().any(|piece| piece.part > 0)
    }

    /// Returns the totals of the batches that begin in these pieces.
    pub(super) fn totals(&self, pieces: Range<usize>) -> BatchTotals {
        let all = &self.0[pieces];
        let begin = || all.iter().filter(|piece| piece.part == 0);
        let inputs = totals::inputs(begin().map(|piece| piece.batch));
        BatchTotals {
            inputs: (!inputs.is_empty()).then(|| totals::inputs_digest(&inputs)),
            ..BatchTotals::of(begin().map(|piece| (piece.key, piece.batch)))
        }
    }

    /// Returns true if a piece comes before another one.
    pub(super) fn is_before(&self, piece: usize, other: &PieceId) -> bool {
        let piece = &self.0[piece];
        let order = natural(piece.key, &other.key);
        order.then(piece.part.cmp(&other.part)) == Ordering::Less
    }

    /// Returns the page that these pieces make.
    pub(super) fn text(
        &self,
        stage: &str,
        state: &StageState,
        pieces: Range<usize>,
    ) -> Result<String, ManifestError> {
        let pieces = &self.0[pieces];
        let mut page = text::header(stage, state.number);
        let whole = pieces.iter().filter(|piece| piece.part == 0);
        let records = whole.filter_map(|piece| piece.batch.record.as_ref());
        let shared = records.filter_map(|record| state.facts.get_key_value(&record.shared));
        let shared: BTreeMap<&str, _> = shared.map(|(id, facts)| (id.as_str(), facts)).collect();
        for (id, facts) in shared {
            text::facts(&mut page, id, facts)?;
        }
        for piece in pieces {
            piece.write(&mut page)?;
        }
        let digest = Digest::of(&page);
        page.push_str(&format!("{} {}\n", text::END, digest.hex()));
        Ok(page)
    }
}

impl<'a> ManifestPiece<'a> {
    fn outputs(&self) -> &'a [Made] {
        let record = self.batch.record.as_ref();
        let all = record.map_or(&[][..], |record| &record.outputs);
        let from = (self.part * PAGE_LINES).min(all.len());
        &all[from..all.len().min(from + PAGE_LINES)]
    }

    fn write(&self, page: &mut String) -> Result<(), ManifestError> {
        let outputs = self.outputs();
        if self.part > 0 {
            text::more(page, self.key, self.part, outputs)?;
            return Ok(());
        }
        let batch = self.batch;
        if let Some(record) = &batch.record {
            text::batch(page, record, outputs)?;
        }
        if let Phase::Failed { outcome } = &batch.phase {
            text::failed(page, self.key, outcome)?;
        }
        if !batch.remains.is_empty() {
            text::remains(page, self.key, &batch.remains)?;
        }
        let is_failed = matches!(batch.phase, Phase::Failed { .. });
        if batch.record.is_none() && batch.remains.is_empty() && !is_failed {
            text::waiting(page, self.key)?;
        }
        Ok(())
    }
}

/// Returns the first piece on a page.
pub(super) fn first_piece(path: &Path, bytes: &[u8]) -> Result<Option<PieceId>, ManifestError> {
    for line in text::lines(path, bytes)? {
        let (key, part) = match text::line(path, line)? {
            PageLine::Batch(record, _) => (record.key, 0),
            PageLine::More(more) => (more.key, more.part),
            PageLine::Failed(failed) => (failed.key, 0),
            PageLine::Remains(remains) => (remains.key, 0),
            PageLine::Waiting(waiting) => (waiting.key, 0),
            PageLine::Header(_) | PageLine::Facts(..) | PageLine::Output(..) | PageLine::End => {
                continue;
            }
        };
        return Ok(Some(PieceId { key, part }));
    }
    Ok(None)
}

/// The lines of a page, up to the first that cannot be read.
pub(super) struct ParsedPage {
    path: PathBuf,
    lines: Vec<(usize, Result<PageLine, ManifestError>)>,
}

impl ParsedPage {
    pub(super) fn parse(path: PathBuf, bytes: &[u8]) -> Result<Self, ManifestError> {
        let mut lines = Vec::new();
        for line in text::lines(&path, bytes)? {
            let read = text::line(&path, line);
            let is_last = read.is_err();
            lines.push((line.0, read));
            if is_last {
                break;
            }
        }
        if !text::is_as_written(bytes) {
            let line = lines.len();
            let problem = "the digest in the last line is not that of the lines before";
            lines.push((line, Err(text::damaged(&path, line, problem))));
        }
        Ok(Self { path, lines })
    }
}

/// A stage being read, page by page.
#[derive(Default)]
pub(super) struct ManifestReader {
    stage: Option<String>,
    state: StageState,
    /// As they come: a map that is made of all of them has full nodes.
    batches: Vec<(String, BatchState)>,
    /// Batches whose outputs span several pieces, with the page and the line of each record.
    records: BTreeMap<String, (BatchRecord<NamedOutput>, usize, PathBuf, usize)>,
    /// Their outputs by key and part. A crash between two pages may leave a piece on both; it is stored once.
    outputs: BTreeMap<(String, usize), Vec<Made>>,
}

impl ManifestReader {
    /// Takes a page.
    pub(super) fn take(&mut self, page: ParsedPage) -> Result<(), ManifestError> {
        let path = &page.path;
        let mut open: Option<Open> = None;
        let mut ended = false;
        let mut count = 0;
        for (number, read) in page.lines {
            count = number;
            let damaged = |problem: &str| text::damaged(path, number, problem);
            let read = read?;
            if ended {
                return Err(damaged("there is data after the end of the page"));
            }
            if number == 1 && !matches!(read, PageLine::Header(_)) {
                return Err(damaged("a page begins with `# milepost manifest`"));
            }
            if let PageLine::Output(digest, file) = read {
                let whole = open.as_mut().map(|open| open.fill(digest, file));
                if whole != Some(true) {
                    return Err(damaged("a file is listed without a batch"));
                }
                continue;
            }
            if let Some(open) = open.take() {
                if open.is_missing() {
                    return Err(damaged("a file of the batch before is missing"));
                }
                self.close(open);
            }
            match read {
                PageLine::Header(header) => {
                    if number != 1 {
                        return Err(damaged("a second header"));
                    }
                    self.stage = Some(header.stage);
                    self.state.number = header.number;
                }
                PageLine::Facts(id, facts) => {
                    self.state.facts.insert(id, Arc::new(facts));
                }
                PageLine::Batch(mut record, parts) => {
                    let named = std::mem::take(&mut record.outputs);
                    if parts > 1 {
                        let key = record.key.clone();
                        self.batch(&key).record = None;
                        let place = (record, parts, path.clone(), number);
                        self.records.insert(key.clone(), place);
                        open = Some(Open::new(Owner::Piece(key, 0), named));
                    } else {
                        self.records.remove(&record.key);
                        open = Some(Open::new(Owner::Whole(Box::new(record)), named));
                    }
                }
                PageLine::More(more) => {
                    let owner = Owner::Piece(more.key, more.part);
                    open = Some(Open::new(owner, more.outputs));
                }
                PageLine::Failed(failed) => {
                    self.batch(&failed.key).phase = Phase::Failed {
                        outcome: Box::new(failed.outcome),
                    };
                }
                PageLine::Remains(remains) => self.batch(&remains.key).remains = remains.files,
                PageLine::Waiting(waiting) => {
                    self.batch(&waiting.key);
                }
                PageLine::End => ended = true,
                PageLine::Output(..) => {}
            }
        }
        if ended {
            Ok(())
        } else {
            Err(text::damaged(path, count + 1, "the page is cut off"))
        }
    }

    fn batch(&mut self, key: &str) -> &mut BatchState {
        if self.batches.last().is_none_or(|(last, _)| last != key) {
            self.batches.push((key.to_owned(), BatchState::default()));
        }
        let last = self.batches.len() - 1;
        &mut self.batches[last].1
    }

    fn close(&mut self, open: Open) {
        match open.owner {
            Owner::Whole(record) => self.keep(record.with_outputs(open.outputs)),
            Owner::Piece(key, part) => {
                self.outputs.insert((key, part), open.outputs);
            }
        }
    }

    fn keep(&mut self, record: BatchRecord) {
        let batch = self.batch(&record.key);
        if !matches!(batch.phase, Phase::Failed { .. }) {
            batch.phase = Phase::Complete;
        }
        batch.record = Some(record);
    }

    /// The stage's name and what is known of it; none when there was no page.
    pub(super) fn finish(mut self) -> Result<Option<(String, StageState)>, ManifestError> {
        let Some(stage) = self.stage.take() else {
            return Ok(None);
        };
        for (key, (record, parts, path, line)) in std::mem::take(&mut self.records) {
            let mut outputs = Vec::new();
            for part in 0..parts {
                let Some(more) = self.outputs.get_mut(&(key.clone(), part)) else {
                    let problem = format!("files of batch `{key}` are missing (part {part})");
                    return Err(text::damaged(&path, line, &problem));
                };
                outputs.append(more);
            }
            self.keep(record.with_outputs(outputs));
        }
        self.batches.sort_by(|(key, _), (other, _)| key.cmp(other));
        self.batches.dedup_by(|(later, batch), (key, known)| {
            let is_same = later == key;
            if is_same {
                add(known, std::mem::take(batch));
            }
            is_same
        });
        self.state.batches = self.batches.into_iter().collect();
        Ok(Some((stage, self.state)))
    }
}

/// Merges the part of a batch on a later page.
fn add(known: &mut BatchState, later: BatchState) {
    let is_failed = |batch: &BatchState| matches!(batch.phase, Phase::Failed { .. });
    if is_failed(&later) || later.phase == Phase::Complete && !is_failed(known) {
        known.phase = later.phase;
    }
    known.record = later.record.or(known.record.take());
    if !later.remains.is_empty() {
        known.remains = later.remains;
    }
}

/// The batch or piece whose outputs are being read.
enum Owner {
    Whole(Box<BatchRecord<NamedOutput>>),
    /// A piece of the batch with this key.
    Piece(String, usize),
}

/// A batch whose files are being read.
struct Open {
    owner: Owner,
    named: std::vec::IntoIter<NamedOutput>,
    outputs: Vec<Made>,
}

impl Open {
    fn new(owner: Owner, named: Vec<NamedOutput>) -> Self {
        Self {
            owner,
            outputs: Vec::with_capacity(named.len()),
            named: named.into_iter(),
        }
    }

    fn is_missing(&self) -> bool {
        self.named.len() > 0
    }

    /// Takes the next file; false when there is none more to come.
    fn fill(&mut self, digest: Digest, path: RelPath) -> bool {
        let Some(NamedOutput { name, size }) = self.named.next() else {
            return false;
        };
        self.outputs.push(Made {
            name,
            path,
            digest,
            size,
        });
        true
    }
}
