//! Records that stay in their files: finds the position of each, and reads them again.

use super::batch_context::{BatchContext, input_failure, parse_failure};
use super::values;
use milepost_core::base::in_order::in_order;
use milepost_core::base::source::Source;
use milepost_core::base::texts::Texts;
use milepost_core::expr::jq::{EvaluationInput, Evaluator, JqError, Limited};
use milepost_core::expr::json;
use milepost_core::expr::select::{ReadError, Select};
use milepost_core::model::outcome::Outcome;
use milepost_core::model::stage::Program;
use milepost_store::store::read;
use serde_json::{Map, Value};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The position of a record's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RecordPosition {
    /// The index of the file.
    pub(crate) file: u32,
    /// The length in bytes.
    pub(crate) length: u32,
    /// The offset in the file, in bytes.
    pub(crate) start: u64,
}

/// The files that hold the records of a step.
pub(crate) struct Records {
    files: Vec<Arc<dyn Source>>,
    /// The path of the records in each.
    rest: Select,
}

impl Records {
    /// Finds the files that a path over the scope names. In a list of files, the first `[]` of the path enters the list.
    ///
    /// # Errors
    /// When the path names no files, or a list that it does not enter. `step` is the step's name, for the message.
    pub(crate) fn of(
        ctx: &BatchContext<'_>,
        step: &str,
        records: &Select,
    ) -> Result<Self, Outcome> {
        let name = records.first();
        let files = ctx.scope.sources(name).ok_or_else(|| {
            let what = "reads records of input files or of the `out` of an earlier step";
            input_failure(name, format!("`{step}` {what}"))
        })?;
        Ok(Self {
            files,
            rest: values::within(ctx, records)?,
        })
    }

    /// Creates records in files outside of a batch; `rest` is their path in each.
    pub(crate) fn in_files(files: Vec<PathBuf>, rest: Select) -> Self {
        let files = files.into_iter();
        let files = files.map(|path| -> Arc<dyn Source> { Arc::new(PlainFile(path)) });
        Self {
            files: files.collect(),
            rest,
        }
    }

    /// Passes what `result` returns of the only output of a program for every record to `each`, in the order of the records.
    /// Without a program its output is the record. Programs and `result` run on this many threads.
    ///
    /// # Errors
    /// When a file cannot be read or is not JSON, and when the program, `result` or `each` fails.
    pub(crate) fn map<R: Send>(
        &self,
        threads: usize,
        program: Option<&RecordProgram<'_>>,
        result: &(dyn Fn(&str) -> Result<R, String> + Sync),
        each: &mut dyn FnMut(R, RecordPosition) -> Result<(), String>,
    ) -> Result<(), Outcome> {
        let enough = match program {
            Some(program) => program.at_once().map_err(parse_failure)?,
            None => CHUNK,
        };
        let failed = |file: u32, why: &dyn std::fmt::Display| {
            input_failure(&self.files[file as usize].name(), why)
        };
        in_order(
            threads,
            &|| {
                let mut limited = program.map(RecordProgram::limited);
                Box::new(move |chunk: RecordChunk| {
                    let results = match &mut limited {
                        Some(Ok(limited)) => chunk
                            .outputs(limited)
                            .map_err(|error| error.to_string())
                            .and_then(|texts| texts.iter().map(result).collect()),
                        Some(Err(error)) => Err(error.to_string()),
                        None => chunk
                            .texts
                            .iter()
                            .map(|text| result(&written(text)?))
                            .collect(),
                    };
                    let results: Result<Vec<R>, String> = results;
                    (chunk.places, results)
                })
            },
            |give| {
                for (file, source) in (0..).zip(&self.files) {
                    let mut chunk = RecordChunk::default();
                    let opened = source.open().map_err(|error| failed(file, &error))?;
                    let read = self.rest.read_text(opened, &mut |text, start| {
                        chunk.add(file, text, start);
                        if chunk.texts.length() < enough {
                            return Ok(());
                        }
                        give(std::mem::take(&mut chunk))
                    });
                    read.map_err(|error| match error {
                        ReadError::Each(outcome) => outcome,
                        error @ ReadError::Select(_) => failed(file, &error),
                    })?;
                    if !chunk.places.is_empty() {
                        give(chunk)?;
                    }
                }
                Ok(())
            },
            &mut |(places, results)| {
                let file = places[0].file;
                let results = results.map_err(|why| failed(file, &why))?;
                let mut both = results.into_iter().zip(places);
                both.try_for_each(|(result, place)| each(result, place))
                    .map_err(|why| failed(file, &why))
            },
        )
    }

    /// Returns records whose path enters the array that it names.
    #[must_use]
    pub(crate) fn items(self) -> Self {
        Self {
            files: self.files,
            rest: self.rest.items(),
        }
    }

    /// Returns a reader for records at known positions.
    pub(crate) fn reader(&self) -> RecordReader<'_> {
        RecordReader {
            files: &self.files,
            open: None,
            text: Vec::new(),
        }
    }
}

/// A file by its path.
struct PlainFile(PathBuf);

impl Source for PlainFile {
    fn name(&self) -> String {
        self.0.display().to_string()
    }

    fn path(&self) -> &Path {
        &self.0
    }

    fn open(&self) -> io::Result<Box<dyn Read + Send>> {
        Ok(Box::new(read::open(&self.0)?))
    }
}

/// The bytes of records that a thread gets at once.
pub(crate) const CHUNK: usize = 64 << 10;

/// A program that runs for every record, with the names that it sees.
pub(crate) struct RecordProgram<'a> {
    pub(crate) program: &'a Program,
    pub(crate) scope: &'a Map<String, Value>,
    pub(crate) evaluator: &'a dyn Evaluator,
}

impl<'a> RecordProgram<'a> {
    /// Returns the program for one thread.
    ///
    /// # Errors
    /// The errors of [`Program::limited`].
    pub(crate) fn limited(&self) -> Result<Limited<'a>, JqError> {
        self.program.limited(self.scope, self.evaluator)
    }

    /// Returns the bytes of records that are best given at once.
    ///
    /// # Errors
    /// The errors of [`Program::limited`].
    pub(crate) fn at_once(&self) -> Result<usize, JqError> {
        Ok(self.limited()?.at_once().max(CHUNK))
    }
}

/// Records on the way to a thread: their texts and their positions.
#[derive(Default)]
struct RecordChunk {
    texts: Texts,
    places: Vec<RecordPosition>,
}

impl RecordChunk {
    fn add(&mut self, file: u32, text: &str, start: u64) {
        self.texts.add(text);
        self.places.push(RecordPosition {
            file,
            length: text.len() as u32,
            start,
        });
    }

    fn outputs(&self, limited: &mut Limited<'_>) -> Result<Texts, JqError> {
        let inputs: Vec<EvaluationInput<'_>> = self.texts.iter().map(Into::into).collect();
        limited.text_of_each(&[], &inputs)
    }
}

/// Returns a JSON text as Milepost writes it.
fn written(text: &str) -> Result<String, String> {
    let value = json::parse(text).map_err(|error| error.to_string())?;
    Ok(value.to_string())
}

/// Reads records at known positions; the last file stays open.
pub(crate) struct RecordReader<'a> {
    files: &'a [Arc<dyn Source>],
    open: Option<(u32, File)>,
    text: Vec<u8>,
}

impl RecordReader<'_> {
    /// Returns the text of a record.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(crate) fn read(&mut self, place: RecordPosition) -> Result<&mut Vec<u8>, Outcome> {
        let source = &self.files[place.file as usize];
        let failed = |error: io::Error| input_failure(&source.name(), error);
        let file = match self.open.take() {
            Some((number, file)) if number == place.file => file,
            _ => read::open(source.path()).map_err(failed)?,
        };
        self.text.resize(place.length as usize, 0);
        let read = file.read_exact_at(&mut self.text, place.start);
        read.map_err(failed)?;
        self.open = Some((place.file, file));
        Ok(&mut self.text)
    }
}
