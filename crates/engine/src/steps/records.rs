//! Records that stay in their files: finds the position of each, and reads them again.

use super::batch_context::{BatchContext, input_failure};
use super::values;
use milepost_core::base::source::Source;
use milepost_core::expr::jq::{EvaluationInput, Gathered, Limited};
use milepost_core::expr::select::Select;
use milepost_core::model::outcome::Outcome;
use milepost_store::store::read;
use serde_json::Value;
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
            let what = "reads records of input files or of what an earlier step made";
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

    /// Passes the text of every record to `each`, file by file.
    ///
    /// # Errors
    /// When a file cannot be read, is not JSON, or `each` fails.
    pub(crate) fn each(
        &self,
        each: &mut dyn FnMut(&str, RecordPosition) -> Result<(), String>,
    ) -> Result<(), Outcome> {
        for (file, source) in self.files.iter().enumerate() {
            let failed = |error: &dyn std::fmt::Display| input_failure(&source.name(), error);
            let opened = source.open().map_err(|error| failed(&error))?;
            self.rest
                .read_text(opened, &mut |text, start| -> Result<(), String> {
                    let place = RecordPosition {
                        file: file as u32,
                        length: text.len() as u32,
                        start,
                    };
                    each(text, place)
                })
                .map_err(|error| failed(&error))?;
        }
        Ok(())
    }

    /// Passes the only output of a program for every record to `each`, file by file.
    ///
    /// # Errors
    /// As [`Records::each`], and when the program fails.
    pub(crate) fn values(
        &self,
        program: &mut Limited<'_>,
        each: &mut dyn FnMut(Value, RecordPosition) -> Result<(), String>,
    ) -> Result<(), Outcome> {
        for (file, source) in self.files.iter().enumerate() {
            let failed = |error: &dyn std::fmt::Display| input_failure(&source.name(), error);
            let mut records = Gathered::new(program.at_once());
            let mut give = |records: Vec<(EvaluationInput, RecordPosition)>| {
                let (inputs, places): (_, Vec<RecordPosition>) = records.into_iter().unzip();
                let values = program.one_of_each(&[], inputs);
                let values = values.map_err(|error| error.to_string())?;
                let mut both = values.into_iter().zip(places);
                both.try_for_each(|(value, place)| each(value, place))
            };
            let opened = source.open().map_err(|error| failed(&error))?;
            self.rest
                .read_text(opened, &mut |text, start| {
                    let place = RecordPosition {
                        file: file as u32,
                        length: text.len() as u32,
                        start,
                    };
                    match records.add((text.to_owned().into(), place), text.len()) {
                        Some(records) => give(records),
                        None => Ok(()),
                    }
                })
                .map_err(|error| failed(&error))?;
            give(records.rest()).map_err(|error| failed(&error))?;
        }
        Ok(())
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

/// Reads records at known positions; the last file stays open.
pub(crate) struct RecordReader<'a> {
    files: &'a [Arc<dyn Source>],
    open: Option<(u32, File)>,
}

impl RecordReader<'_> {
    /// Returns the text of a record.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(crate) fn read(&mut self, place: RecordPosition) -> Result<Vec<u8>, Outcome> {
        let source = &self.files[place.file as usize];
        let failed = |error: io::Error| input_failure(&source.name(), error);
        let file = match self.open.take() {
            Some((number, file)) if number == place.file => file,
            _ => read::open(source.path()).map_err(failed)?,
        };
        let mut text = vec![0; place.length as usize];
        file.read_exact_at(&mut text, place.start).map_err(failed)?;
        self.open = Some((place.file, file));
        Ok(text)
    }
}
