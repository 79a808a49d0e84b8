//! Follows a value from the report back to the line of the input.

mod answers;
mod calls;
mod cell;
mod corrections;
mod elements;
mod files;
mod find;
mod key_paths;
mod records;
mod search;
mod station;
mod tracer;

pub use find::{FoundElement, FoundElements, find_elements};
pub use station::{
    FileCheck, Gap, Station, StationKind, Trace, TraceQuestion, TracedAnswer, TracedBatch,
    TracedCell, TracedCorrection, TracedFile, TracedImport, TracedRecord, TracedRule, TracedSource,
};

use crate::ops::inspect::file::check_shown;
use crate::ops::project::error::OpsError;
use crate::ops::project::open::open_recorded;
use crate::ops::project::request::Request;
use crate::ops::project::snapshot::Snapshot;
use crate::ops::why::file::place;
use crate::ops::why::makers::Makers;
use answers::AskedElement;
use elements::{Element, Held};
use milepost_core::base::glob::Glob;
use milepost_core::base::path::{FilePath, stem};
use milepost_core::expr::place::excerpt;
use milepost_core::expr::pointer::{below, steps};
use milepost_core::expr::scope::Format;
use milepost_core::expr::select::PathStep;
use milepost_core::model::stage::{Each, EachSource};
use records::{FoundRecord, field_of, haystack, key_of, value_at};
use search::line_of;
use serde_json::Value;
use tracer::{BatchRef, Tracer};

/// The most outputs with the same name that an error lists.
const NAMED: usize = 10;

/// The key or place to trace.
#[derive(Debug, Clone, Default)]
pub struct TraceOptions {
    /// The key of an element, or a file of the workspace.
    pub what: String,
    /// A cell of the file, such as `Elements!G12`.
    pub cell: Option<String>,
    /// The JSON pointer of a value in the file.
    pub pointer: Option<String>,
    /// The key of an element in the file.
    pub element: Option<String>,
    /// The field of the element.
    pub field: Option<String>,
    /// True if only files that a page shows are traced, as for a request that is confined.
    pub confined: bool,
}

/// Follows a value back to the inputs. Nothing is written.
///
/// # Errors
/// When there is no project, the workspace cannot be read, there is no such value, or its file is not
/// shown to this client.
pub fn trace(request: &Request, options: &TraceOptions) -> Result<Trace, OpsError> {
    let opened = open_recorded(request)?;
    let present = Snapshot::read(&opened.workspace.layout)?;
    let makers = Makers::of(&present.state);
    let confined = request.confined || options.confined;
    let mut tracer = Tracer::new(&opened, &present.state, &makers, confined);
    let mut question = TraceQuestion {
        what: options.what.clone(),
        field: options.field.clone(),
        ..TraceQuestion::default()
    };
    if options.what.is_empty() || options.element.as_deref() == Some("") {
        return Err(OpsError::Usage(
            "expected a key or a file, found nothing".to_owned(),
        ));
    }
    let named = if may_be_path(&options.what) {
        place(&opened, &request.folder, &makers, &options.what)?
    } else {
        None
    };
    let file = match named {
        Some((file, Some(_))) => Some(file),
        Some((file, None)) if tracer.maker(&file).is_some() => Some(file),
        _ => None,
    };
    let place = options.cell.as_ref().map(|_| "--cell");
    let place = place.or(options.pointer.as_ref().map(|_| "--pointer"));
    let place = place.or(options.element.as_ref().map(|_| "--element"));
    let file = match (file, place) {
        (None, Some(option)) => Some(only_output(&makers, &options.what, option)?),
        (file, _) => file,
    };
    match file {
        Some(file) => {
            if confined {
                check_shown(&opened, &present.state, &file)?;
            }
            question.file = Some(file.to_string());
            tracer.of_file(&file, options, &mut question)?;
        }
        None => tracer.of_key(&options.what, &mut question)?,
    }
    tracer.finish()?;
    let texts = [&mut question.key, &mut question.field];
    for text in texts.into_iter().flatten().chain([&mut question.what]) {
        *text = opened.redactor.known_text(text).into_owned();
    }
    Ok(Trace {
        question,
        stations: tracer.stations,
        gaps: tracer.gaps,
    })
}

/// Returns the only recorded output with a file name, for an option that needs a file.
fn only_output(makers: &Makers<'_>, name: &str, option: &str) -> Result<FilePath, OpsError> {
    let found = makers.named(name);
    if let [path] = found[..]
        && let Ok(file) = path.parse()
    {
        return Ok(file);
    }
    let found: Vec<String> = found.iter().map(|path| format!("`{path}`")).collect();
    let several = match found.len() {
        0 => String::new(),
        _ => format!(". Outputs with this name: {}", some_of(&found)),
    };
    Err(OpsError::Usage(format!(
        "`{name}` is not a file of the workspace: `{option}` needs one{several}"
    )))
}

/// Returns the first of several texts, and how many follow.
fn some_of(texts: &[String]) -> String {
    let shown = texts.iter().take(NAMED).cloned().collect::<Vec<_>>();
    match texts.len().saturating_sub(NAMED) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// Returns true if a text is short enough for the path of a file.
fn may_be_path(text: &str) -> bool {
    text.len() <= 4096 && text.split('/').all(|name| name.len() <= 255)
}

impl<'a> Tracer<'a> {
    /// Follows an element from the last output that has its key.
    fn of_key(&mut self, key: &str, question: &mut TraceQuestion) -> Result<(), OpsError> {
        question.key = Some(key.to_owned());
        let mut element = Element::new(key, question.field.as_deref());
        let Some(held) = self.find_anywhere(&mut element) else {
            return Err(self.unknown(key));
        };
        let to = self.add_later_failures(&element, &held)?;
        self.follow(&mut element, held, to)
    }

    /// Adds the batches after a record that failed, as a whole or for this element, with the answers that were not valid.
    fn add_later_failures(
        &mut self,
        element: &Element,
        held: &Held<'a>,
    ) -> Result<Option<usize>, OpsError> {
        let mut stages: Vec<_> = self.state.stages.iter().collect();
        stages.sort_by_key(|(_, known)| std::cmp::Reverse(known.number));
        let maker = held
            .maker
            .and_then(|maker| self.state.stages.get(maker.stage));
        let mut to = None;
        for (stage, known) in stages {
            if Some(known.number) <= maker.map(|maker| maker.number) {
                continue;
            }
            for (key, batch) in &known.batches {
                if let Some(outcome) = batch.last_failure()
                    && self.reads(stage, key, &held.file)
                {
                    self.gap(Gap::BatchFailed {
                        stage: stage.clone(),
                        batch: key.clone(),
                        message: outcome.to_string(),
                    });
                }
                let Some(record) = &batch.record else {
                    continue;
                };
                let batch = BatchRef { stage, record };
                let Some(outcome) = Self::failure_of(element, batch) else {
                    continue;
                };
                let (place, _) = self.add_batch(batch, Some(outcome), to);
                let question = self.question_of(batch, held);
                let asked = AskedElement {
                    key: &element.key,
                    question: question.as_ref(),
                    record: &held.record.value,
                };
                self.add_refused_answers(batch, asked, place)?;
                to = Some(place);
            }
        }
        Ok(to)
    }

    /// Returns true if a batch is declared to read a file: its key is the stem, as `each` names batches of files.
    fn reads(&self, stage: &str, batch: &str, file: &FilePath) -> bool {
        let stage = self.opened.pipeline.stage(stage);
        let each = stage.map_or(&[][..], |stage| &stage.each);
        let matches = |each: &Each| match &each.source {
            EachSource::Path(path) => {
                let glob = Glob::parse(&path.pattern());
                path.root == file.root && glob.is_ok_and(|glob| glob.matches(&file.path))
            }
            _ => false,
        };
        each.iter().any(matches) && stem(file.path.as_str()) == batch
    }

    /// Follows a file, or the element that an option names in it.
    fn of_file(
        &mut self,
        file: &FilePath,
        options: &TraceOptions,
        question: &mut TraceQuestion,
    ) -> Result<(), OpsError> {
        if let Some(pointer) = &options.pointer {
            return self.of_pointer(file, pointer, question);
        }
        if let Some(name) = &options.cell {
            let maker = self.maker(file);
            let read = cell::read_cell(self.opened, file, maker, &self.keys, name)?;
            let (sheet, row) = (read.cell.sheet.clone(), read.row);
            let traced = self.check(file, None);
            let place = self.add(None, Some(traced), StationKind::Cell(read.cell));
            self.add_modifications(file, place);
            question.key = read.key;
            question.field = question.field.take().or(read.field);
            let Some(key) = question.key.clone() else {
                self.gap(Gap::NoKey { sheet, row });
                return self.follow_maker(file, place);
            };
            return self.of_element(file, &key, question, place);
        }
        let Some(key) = &options.element else {
            if let Some(field) = &options.field {
                return Err(OpsError::Usage(format!(
                    "`--field {field}` needs a key: `trace KEY`, or `trace FILE --element KEY`"
                )));
            }
            return self.follow_file(file, None);
        };
        question.key = Some(key.clone());
        if self.keys.get(file).is_some() {
            let mut element = Element::new(key, question.field.as_deref());
            return match self.find_in(vec![file.clone()], &mut element, None) {
                Some(held) => self.follow(&mut element, held, None),
                None => Err(self.unknown(key)),
            };
        }
        let traced = self.check(file, None);
        let place = self.add(None, Some(traced), StationKind::File);
        self.add_modifications(file, place);
        self.of_element(file, key, question, place)
    }

    /// Follows an element from the files beside or behind a file that was computed from it.
    fn of_element(
        &mut self,
        file: &FilePath,
        key: &str,
        question: &TraceQuestion,
        to: usize,
    ) -> Result<(), OpsError> {
        let mut element = Element::new(key, question.field.as_deref());
        let held = self.maker(file);
        let held = held.and_then(|maker| self.find_behind(maker, &mut element));
        match held {
            Some(held) => self.follow(&mut element, held, Some(to)),
            None => Err(self.unknown(key)),
        }
    }

    /// Follows the value at a JSON pointer: as part of a record with a key, else the file that has it.
    fn of_pointer(
        &mut self,
        file: &FilePath,
        pointer: &str,
        question: &mut TraceQuestion,
    ) -> Result<(), OpsError> {
        let all = steps(pointer).ok_or_else(|| {
            OpsError::Usage(format!(
                "`{pointer}` is not a JSON pointer: write one such as `/elements/12`"
            ))
        })?;
        let shown = file.to_string();
        let found = haystack(&self.opened.files, file).map_err(OpsError::unreadable(&shown))?;
        let haystack = found.ok_or_else(|| OpsError::Unreadable {
            path: shown.clone(),
            error: "the file does not exist".to_owned(),
        })?;
        let path = self
            .keys
            .get(file)
            .filter(|path| path.reading.format == Format::Json);
        let steps = path.as_ref().map(|path| path.split().0.to_vec());
        let fits = |steps: &Vec<PathStep>| {
            let fits = |(step, token): (&PathStep, &String)| match step {
                PathStep::Field(name) => name == token,
                PathStep::Each => true,
            };
            steps.len() <= all.len() && steps.iter().zip(&all).all(fits)
        };
        let depth = steps.filter(fits).map(|steps| steps.len());
        let (to_record, to_field) = all.split_at(depth.unwrap_or(all.len()));
        let value = value_at(&haystack, to_record).map_err(OpsError::unreadable(&shown))?;
        let (value, offset) = value
            .ok_or_else(|| OpsError::Usage(format!("`{shown}` has no value at `{pointer}`")))?;
        let line = line_of(&haystack, offset).map_err(OpsError::unreadable(&shown))?;
        let mut record = FoundRecord {
            pointer: Some(pointer.to_owned()),
            line: Some(line),
            offset: Some(offset),
            value,
            others: None,
        };
        let tail = path.filter(|_| depth.is_some());
        let key = tail.and_then(|path| {
            let (_, tail) = path.split();
            match key_of(&record.value, tail)? {
                Value::String(text) => Some(text.clone()),
                Value::Null => None,
                other => Some(other.to_string()),
            }
        });
        let Some(key) = key else {
            self.gap(Gap::NoRecord {
                file: shown,
                pointer: pointer.to_owned(),
            });
            let traced = self.check(file, None);
            let about = StationKind::Record(Box::new(record.traced(None, Vec::new())));
            let place = self.add(None, Some(traced), about);
            self.add_modifications(file, place);
            return self.follow_maker(file, place);
        };
        let pointer_of = |names: &[String]| {
            let names = names.iter();
            names.fold(String::new(), |to, name| below(&to, name))
        };
        record.pointer = Some(pointer_of(to_record));
        if !to_field.is_empty() {
            let field = pointer_of(to_field);
            if field_of(&record.value, &field).is_none() {
                return Err(OpsError::Usage(format!(
                    "`{shown}` has no value at `{pointer}`"
                )));
            }
            question.field = Some(field);
        }
        question.key = Some(key.clone());
        let mut element = Element::new(&key, question.field.as_deref());
        let held = Held {
            file: file.clone(),
            record,
            maker: self.maker(file),
            reader: None,
        };
        self.follow(&mut element, held, None)
    }

    /// Follows what a file was built from.
    fn follow_maker(&mut self, file: &FilePath, place: usize) -> Result<(), OpsError> {
        match self.maker(file) {
            Some(maker) => self.follow_batch(maker, place),
            None => Ok(()),
        }
    }

    /// Returns the error for a key that no file has.
    fn unknown(&self, key: &str) -> OpsError {
        let searched = self.gaps.iter().filter_map(|gap| match gap {
            Gap::NotInOutputs { stage } => Some(format!("the outputs of {stage} do not have it")),
            Gap::Missing { file } => Some(format!("`{file}` is missing")),
            Gap::Unreadable { file, problem } => Some(format!("`{file}`: {problem}")),
            _ => None,
        });
        let searched: Vec<String> = searched.take(10).collect();
        let searched = if searched.is_empty() {
            "no stage with `[conserve]` has outputs with keys; name a file to follow it".to_owned()
        } else {
            searched.join("; ")
        };
        let key = excerpt(key, 200);
        OpsError::Usage(format!(
            "`{key}` is neither a file of the workspace nor a known element: {searched}"
        ))
    }
}
