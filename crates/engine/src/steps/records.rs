//! Records that stay in their files: where the text of each lies, and how it is read again.

use super::values;
use super::work::{Work, input_failure};
use milepost_core::base::source::Source;
use milepost_core::expr::select::Select;
use milepost_core::model::outcome::Outcome;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// Where a record's text lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// In which of the files.
    pub(crate) file: u32,
    /// Its length in bytes.
    pub(crate) length: u32,
    /// Where in the file it begins.
    pub(crate) start: u64,
}

/// The files that hold the records of a step.
pub(crate) struct Records {
    files: Vec<Arc<dyn Source>>,
    /// The path of the records in each.
    rest: Select,
}

impl Records {
    /// Those that a path over the scope names. A list of files is entered by the path's first `[]`; in a single file the path
    /// goes on at once.
    ///
    /// # Errors
    /// When it names no files, or a list that it does not enter. `step` is the step's name.
    pub(crate) fn of(work: &Work<'_>, step: &str, records: &Select) -> Result<Self, Outcome> {
        let name = records.first();
        let files = work.scope.sources(name).ok_or_else(|| {
            let what = "reads records of input files or of what an earlier step made";
            input_failure(name, format!("`{step}` {what}"))
        })?;
        Ok(Self {
            files,
            rest: values::within(work, records)?,
        })
    }

    /// Goes through all records as text, file by file.
    ///
    /// # Errors
    /// When a file cannot be read, is not JSON, or `each` fails.
    pub(crate) fn each(
        &self,
        each: &mut dyn FnMut(&str, Place) -> Result<(), String>,
    ) -> Result<(), Outcome> {
        for (file, source) in self.files.iter().enumerate() {
            let failed = |error: &dyn std::fmt::Display| input_failure(&source.name(), error);
            let opened = source.open().map_err(|error| failed(&error))?;
            self.rest
                .read_text(opened, &mut |text, start| -> Result<(), String> {
                    let place = Place {
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

    /// As [`Records::each`], where a path that names an array stands for its items.
    #[must_use]
    pub(crate) fn items(self) -> Self {
        Self {
            files: self.files,
            rest: self.rest.items(),
        }
    }

    /// Reads records again.
    pub(crate) fn reader(&self) -> Reader<'_> {
        Reader {
            files: &self.files,
            open: None,
        }
    }
}

/// Reads records again; the file read last stays open.
pub(crate) struct Reader<'a> {
    files: &'a [Arc<dyn Source>],
    open: Option<(u32, File)>,
}

impl Reader<'_> {
    /// The text of a record.
    ///
    /// # Errors
    /// When its file cannot be read.
    pub(crate) fn read(&mut self, place: Place) -> Result<Vec<u8>, Outcome> {
        let source = &self.files[place.file as usize];
        let failed = |error: io::Error| input_failure(&source.name(), error);
        let file = match self.open.take() {
            Some((number, file)) if number == place.file => file,
            _ => File::open(source.path()).map_err(failed)?,
        };
        let mut text = vec![0; place.length as usize];
        file.read_exact_at(&mut text, place.start).map_err(failed)?;
        self.open = Some((place.file, file));
        Ok(text)
    }
}
