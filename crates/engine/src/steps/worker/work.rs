//! The work of a worker: reads one foreign file. Each kind does the same in a worker and in the program.

use crate::steps::batch_context::{input_failure, parse_failure};
use milepost_core::model::outcome::Outcome;
use milepost_formats::{ifc, pdf_text};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;

/// The memory that reading a PDF may take if the stage declares no limit, in bytes.
pub(crate) const PDF_MEMORY: u64 = 1 << 30;

/// The work. `path` is absolute, `name` is what people know the file by.
#[derive(Serialize, Deserialize)]
pub(crate) enum Work {
    /// Checks beginning and end of a PDF: `Result<(), PdfTextError>`.
    PdfCheck { path: OsString, name: String },
    /// Reads the text of a PDF: `Result<Result<PdfText, PdfTextError>, PdfTextError>`, where the outer error is that of the
    /// check.
    PdfText { path: OsString, name: String },
    /// Reads a building model and writes its elements: the summary.
    Ifc { path: OsString, name: String },
}

impl Work {
    /// Returns the kind of the step.
    pub(super) fn step(&self) -> &'static str {
        match self {
            Self::PdfCheck { .. } | Self::PdfText { .. } => "pdf_text",
            Self::Ifc { .. } => "ifc",
        }
    }

    /// Returns the name of the file.
    pub(super) fn file(&self) -> &str {
        match self {
            Self::PdfCheck { name, .. } | Self::PdfText { name, .. } | Self::Ifc { name, .. } => {
                name
            }
        }
    }

    /// Returns the limit of memory if the stage declares none, in bytes.
    pub(super) fn default_memory(&self) -> u64 {
        match self {
            Self::PdfCheck { .. } | Self::PdfText { .. } => PDF_MEMORY,
            Self::Ifc { .. } => 4 << 30,
        }
    }

    /// Does the work: writes its data to `out`, and returns the result as JSON. `look` ends it with an error.
    pub(super) fn perform(
        &self,
        out: &mut dyn Write,
        look: &dyn Fn() -> io::Result<()>,
    ) -> Result<String, Outcome> {
        let result = match self {
            Self::PdfCheck { path, name } => {
                let bytes = read(path, name)?;
                serde_json::to_string(&pdf_text::check_file(&bytes))
            }
            Self::PdfText { path, name } => {
                let bytes = read(path, name)?;
                let found = pdf_text::check_file(&bytes).map(|()| pdf_text::read(&bytes));
                serde_json::to_string(&found)
            }
            Self::Ifc { path, name } => {
                let file_name = name.rsplit('/').next().unwrap_or_default();
                let found = ifc::extract_while(Path::new(path), file_name, out, look);
                let found = found.map_err(|error| {
                    // The message starts with the name of the file, which the outcome names too.
                    let said = error.to_string();
                    let own = format!("{file_name}: ");
                    input_failure(name, said.strip_prefix(&own).unwrap_or(&said))
                })?;
                serde_json::to_string(&found)
            }
        };
        result.map_err(parse_failure)
    }
}

fn read(path: &OsString, name: &str) -> Result<Vec<u8>, Outcome> {
    milepost_store::store::read::bytes(path).map_err(|error| input_failure(name, error))
}
