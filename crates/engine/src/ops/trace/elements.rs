//! Follows an element by its key, from a file back to the line of the input.

use super::answers::AskedElement;
use super::key_paths::RecordPath;
use super::records::{FoundRecord, Misfit, find_record, haystack, question_of};
use super::search::{Haystack, Spellings, line_around, line_of, search};
use super::station::{Gap, StationKind, TracedSource};
use super::tracer::{BatchRef, Tracer};
use crate::ops::inspect::elements::differing;
use crate::ops::project::error::OpsError;
use milepost_core::base::path::FilePath;
use milepost_core::expr::scope;
use milepost_core::model::outcome::Outcome;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io;

/// The most bytes that are shown of a line of an input.
const LINE: u64 = 4000;

/// The length of the shortest key that is not a part of other text: a shorter one, such as `3`, is not searched in text.
const SURE: usize = 4;

/// The element that is followed.
pub(super) struct Element {
    pub(super) key: String,
    pub(super) field: Option<String>,
    /// The part of a file (0 to 1) at which its key is expected.
    around: f64,
    /// The size of the files that `around` comes from: larger ones say it better.
    measured: u64,
}

/// A record of the element.
pub(super) struct Held<'a> {
    pub(super) file: FilePath,
    pub(super) record: FoundRecord,
    /// The batch that wrote the file.
    pub(super) maker: Option<BatchRef<'a>>,
    /// The batch of the way that read it.
    pub(super) reader: Option<BatchRef<'a>>,
}

impl Element {
    pub(super) fn new(key: &str, field: Option<&str>) -> Self {
        Self {
            key: key.to_owned(),
            field: field.map(str::to_owned),
            around: 0.0,
            measured: 0,
        }
    }
}

impl<'a> Tracer<'a> {
    /// Finds the record of the element in the outputs of the last stage that has one.
    ///
    /// # Errors
    /// When no output contains the key.
    pub(super) fn find_anywhere(&mut self, element: &mut Element) -> Option<Held<'a>> {
        let mut stages: Vec<&'a str> = self.state.stages.keys().map(String::as_str).collect();
        stages.sort_by_key(|stage| std::cmp::Reverse(self.state.stages[*stage].number));
        for stage in stages {
            let outputs = self.state.stages[stage].outputs();
            let files = outputs.map(|(_, made)| FilePath::workspace(made.path.clone()));
            let mut files: Vec<FilePath> = files.filter(|it| self.keys.get(it).is_some()).collect();
            if files.is_empty() {
                continue;
            }
            files.sort_by(natural);
            if let Some(held) = self.find_in(files, element, None) {
                return Some(held);
            }
            self.gap(Gap::NotInOutputs {
                stage: stage.to_owned(),
            });
        }
        None
    }

    /// Finds the record of the element in the outputs of a batch, or else in its inputs.
    pub(super) fn find_behind(
        &mut self,
        batch: BatchRef<'a>,
        element: &mut Element,
    ) -> Option<Held<'a>> {
        let outputs = batch.record.outputs.iter();
        let outputs = outputs.map(|made| FilePath::workspace(made.path.clone()));
        let outputs = outputs
            .filter(|file| self.keys.get(file).is_some())
            .collect();
        let found = self.find_in(outputs, element, None);
        found.or_else(|| self.find_before(batch, element))
    }

    /// Finds the record of the element in the inputs of a batch: first in those of the latest stage.
    pub(super) fn find_before(
        &mut self,
        batch: BatchRef<'a>,
        element: &mut Element,
    ) -> Option<Held<'a>> {
        let mut by_stage: BTreeMap<u32, Vec<FilePath>> = BTreeMap::new();
        for file in self.inputs(batch) {
            if self.keys.get(&file).is_some() {
                let maker = self.maker(&file);
                let known = maker.and_then(|maker| self.state.stages.get(maker.stage));
                let number = known.map_or(0, |known| known.number);
                by_stage.entry(number).or_default().push(file);
            }
        }
        let mut groups = by_stage.into_values().rev();
        groups.find_map(|files| self.find_in(files, element, Some(batch)))
    }

    /// Finds the record of the element in one of these files.
    pub(super) fn find_in(
        &mut self,
        files: Vec<FilePath>,
        element: &mut Element,
        reader: Option<BatchRef<'a>>,
    ) -> Option<Held<'a>> {
        let mut there: Vec<(FilePath, RecordPath)> = Vec::new();
        let mut haystacks: Vec<Haystack> = Vec::new();
        for file in files {
            let Some(path) = self.keys.get(&file) else {
                continue;
            };
            match haystack(&self.opened.files, &file) {
                Ok(Some(found)) => {
                    there.push((file, path));
                    haystacks.push(found);
                }
                Ok(None) => self.gap(Gap::Missing {
                    file: file.to_string(),
                }),
                Err(error) => self.unreadable(&file, &error),
            }
        }
        let is_json = there
            .iter()
            .all(|(_, path)| path.reading.format == scope::Format::Json);
        let spellings = Spellings::in_document(&element.key, is_json);
        let mut read_whole = BTreeSet::new();
        let mut misfits: Vec<(FilePath, Misfit)> = Vec::new();
        let files = &self.opened.files;
        let found = search(
            &haystacks,
            &spellings,
            element.around,
            &mut |place, offset| {
                let ((file, path), haystack) = (&there[place], &haystacks[place]);
                if read_whole.contains(&place) {
                    return Ok(None);
                }
                match find_record(files, file, haystack, path, &element.key, offset) {
                    Ok(Some(record)) => return Ok(Some((place, offset, record))),
                    Ok(None) => {}
                    Err(misfit) => misfits.push((file.clone(), misfit)),
                }
                read_whole.insert(place);
                Ok(None)
            },
        );
        for (file, misfit) in misfits {
            self.unreadable(&file, &misfit);
        }
        let (place, offset, record) = match found {
            Ok(found) => found?,
            Err(error) => {
                if let Some((file, _)) = there.first() {
                    self.unreadable(file, &error);
                }
                return None;
            }
        };
        let total: u64 = haystacks.iter().map(|haystack| haystack.size).sum();
        if total >= element.measured / 2 {
            let before: u64 = haystacks[..place]
                .iter()
                .map(|haystack| haystack.size)
                .sum();
            element.around = (before + offset) as f64 / total.max(1) as f64;
            element.measured = total;
        }
        let (file, _) = there.swap_remove(place);
        let maker = self.maker(&file);
        Some(Held {
            file,
            record,
            maker,
            reader,
        })
    }

    fn unreadable(&mut self, file: &FilePath, problem: &dyn std::fmt::Display) {
        self.gap(Gap::Unreadable {
            file: file.to_string(),
            problem: problem.to_string(),
        });
    }

    /// Adds the stations of the element from a record back to the input.
    ///
    /// # Errors
    /// When the records of calls cannot be read.
    pub(super) fn follow(
        &mut self,
        element: &mut Element,
        first: Held<'a>,
        mut to: Option<usize>,
    ) -> Result<(), OpsError> {
        let mut at = first;
        let (mut is_question, mut asked) = (false, None);
        let mut seen = BTreeSet::new();
        loop {
            seen.insert(at.file.to_string());
            let before = at.maker.and_then(|maker| self.find_before(maker, element));
            let before = before.filter(|before| !seen.contains(&before.file.to_string()));
            let place = self.add_record(element, &at, before.as_ref(), is_question, to);
            if let StationKind::Question(record) = &mut self.stations[place].about {
                record.asked = asked.take();
            }
            to = Some(place);
            self.add_modifications(&at.file, place);
            let Some(maker) = at.maker else {
                return Ok(());
            };
            self.add_corrections(&element.key, &at.record.value, maker, place);
            is_question = self.asks(maker);
            let failed = Self::failure_of(element, maker);
            if is_question || failed.is_some() || maker.record.placeholder.is_some() {
                let (batch, is_new) = self.add_batch(maker, failed, Some(place));
                asked = before
                    .as_ref()
                    .and_then(|before| self.question_of(maker, before));
                if is_new {
                    let about = AskedElement {
                        key: &element.key,
                        question: asked.as_ref(),
                        record: &at.record.value,
                    };
                    self.add_answers(maker, Some(about), batch)?;
                }
                to = Some(batch);
            }
            match before {
                Some(before) => at = before,
                None => return self.add_sources(element, maker, place, to),
            }
        }
    }

    fn add_record(
        &mut self,
        element: &Element,
        held: &Held<'a>,
        before: Option<&Held<'a>>,
        is_question: bool,
        to: Option<usize>,
    ) -> usize {
        let mut changes = Vec::new();
        if let Some(before) = before {
            let (old, new) = (&before.record.value, &held.record.value);
            differing("", Some(old), Some(new), &mut changes);
        }
        let field = element.field.as_deref();
        let record = Box::new(held.record.clone().traced(field, changes));
        let about = match before {
            _ if is_question => StationKind::Question(record),
            None => StationKind::Element(record),
            Some(_) => StationKind::Record(record),
        };
        let file = self.check(&held.file, held.reader);
        self.add(to, Some(file), about)
    }

    /// Returns the question of a batch about an element; `None` if the batch has no questions.
    pub(super) fn question_of(&self, batch: BatchRef<'a>, held: &Held<'a>) -> Option<Value> {
        let mut steps = self.declared(batch)?.steps.iter();
        steps.find(|step| step.kind.agent().is_some_and(|agent| agent.questions))?;
        let number = held.record.pointer.as_ref()?.rsplit('/').next()?;
        let haystack = haystack(&self.opened.files, &held.file).ok()??;
        question_of(&haystack, number.parse().ok()?)
    }

    /// Returns why the element failed in a batch.
    pub(super) fn failure_of(element: &Element, batch: BatchRef<'a>) -> Option<Outcome> {
        let mut failed = batch.record.failed.iter();
        let failed = failed.find(|failed| failed.keys.contains(&element.key))?;
        Some(failed.outcome.clone())
    }

    /// Adds the places of the key in the inputs of the workspace that a batch read; if there is none, those inputs as files. `first`
    /// is the first record of the element, which was read from an input or computed.
    fn add_sources(
        &mut self,
        element: &Element,
        batch: BatchRef<'a>,
        first: usize,
        to: Option<usize>,
    ) -> Result<(), OpsError> {
        let inputs = self.inputs(batch);
        let mut found = false;
        for file in &inputs {
            if self.maker(file).is_some() {
                continue;
            }
            match source_of(self, file, element) {
                Ok(Some(source)) => {
                    found = true;
                    let file = self.check(file, Some(batch));
                    self.add(to, Some(file), StationKind::Source(source));
                }
                Ok(None) => {}
                Err(error) => self.unreadable(file, &error),
            }
        }
        if !found {
            let station = &mut self.stations[first].about;
            if let StationKind::Element(record) = station {
                *station = StationKind::Record(std::mem::take(record));
            }
            self.gap(Gap::NotInInputs {
                stage: batch.stage.to_owned(),
                batch: batch.record.key.clone(),
            });
            self.follow_batch(batch, to)?;
        }
        Ok(())
    }
}

/// Finds the line of an input that has the key: in a building model as a value in quotes, elsewhere as a whole word.
fn source_of(
    tracer: &mut Tracer<'_>,
    file: &FilePath,
    element: &Element,
) -> io::Result<Option<TracedSource>> {
    let Some(haystack) = tracer.input(file)? else {
        tracer.gap(Gap::Missing {
            file: file.to_string(),
        });
        return Ok(None);
    };
    let is_model = file.path.as_str().to_ascii_lowercase().ends_with(".ifc");
    if !is_model && element.key.len() < SURE {
        return Ok(None);
    }
    let quoted = format!("'{}'", element.key);
    let spelling = if is_model { &quoted } else { &element.key };
    let key = Spellings::plain(spelling);
    let files = std::slice::from_ref(&haystack);
    search(files, &key, element.around, &mut |_, offset| {
        let (start, line) = line_around(&haystack, offset, LINE)?;
        let at = (offset - start) as usize;
        let is_part = |byte: Option<&u8>| {
            byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$'))
        };
        let before = at.checked_sub(1).and_then(|place| line.get(place));
        if !is_model && (is_part(before) || is_part(line.get(at + spelling.len()))) {
            return Ok(None);
        }
        Ok(Some(TracedSource {
            line: line_of(&haystack, offset)?,
            offset: start,
            text: String::from_utf8_lossy(&line).into_owned(),
            cut: line.len() as u64 >= LINE,
        }))
    })
}

fn natural(a: &FilePath, b: &FilePath) -> std::cmp::Ordering {
    milepost_core::base::natural::natural(a.path.as_str(), b.path.as_str())
}
