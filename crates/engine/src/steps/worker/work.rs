//! The work of a worker: reads one foreign file, or runs one jq program. Each kind does the same in a worker and in the program.

use crate::steps::batch_context::{input_failure, parse_failure};
use milepost_core::expr::jq::Jq;
use milepost_core::model::outcome::Outcome;
use milepost_formats::{ifc, pdf_text};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;
use std::rc::Rc;

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
    /// Runs a jq program: its only value. The values are read apart from the request, each with the depth that JSON may have.
    Jq {
        name: String,
        source: String,
        names: Vec<String>,
        input: Box<RawValue>,
        vars: Vec<Box<RawValue>>,
    },
}

impl Work {
    /// Returns what is done, as the subject of a message.
    pub(super) fn subject(&self) -> String {
        match self {
            Self::PdfCheck { name, .. } | Self::PdfText { name, .. } => {
                format!("`pdf_text` of `{name}`")
            }
            Self::Ifc { name, .. } => format!("`ifc` of `{name}`"),
            Self::Jq { name, .. } => format!("the jq program `{name}`"),
        }
    }

    /// Returns the limit of memory if the stage declares none, in bytes.
    pub(super) fn default_memory(&self) -> u64 {
        match self {
            Self::PdfCheck { .. } | Self::PdfText { .. } => PDF_MEMORY,
            Self::Ifc { .. } | Self::Jq { .. } => 4 << 30,
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
            Self::Jq {
                name,
                source,
                names,
                input,
                vars,
            } => {
                let jq = compiled(name, source, names)?;
                let value = |raw: &RawValue| serde_json::from_str::<Value>(raw.get());
                let vars = vars
                    .iter()
                    .map(|raw| value(raw))
                    .collect::<Result<Vec<_>, _>>();
                let input = value(input).map_err(parse_failure)?;
                let found = jq.one(input, &vars.map_err(parse_failure)?);
                serde_json::to_string(&found.map_err(parse_failure)?)
            }
        };
        result.map_err(parse_failure)
    }
}

thread_local! {
    /// The programs that were compiled last, by their text and variables.
    static COMPILED: RefCell<BTreeMap<(String, Vec<String>), Rc<Jq>>> = RefCell::default();
}

/// The most compiled programs that are kept.
const KEPT: usize = 64;

/// Returns a compiled program.
fn compiled(name: &str, source: &str, names: &[String]) -> Result<Rc<Jq>, Outcome> {
    COMPILED.with_borrow_mut(|programs| {
        let key = (source.to_owned(), names.to_vec());
        if let Some(found) = programs.get(&key).filter(|found| found.name() == name) {
            return Ok(Rc::clone(found));
        }
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let jq = Rc::new(Jq::compile(name, source, &names).map_err(parse_failure)?);
        if programs.len() >= KEPT {
            programs.clear();
        }
        programs.insert(key, Rc::clone(&jq));
        Ok(jq)
    })
}

fn read(path: &OsString, name: &str) -> Result<Vec<u8>, Outcome> {
    milepost_store::store::read::bytes(path).map_err(|error| input_failure(name, error))
}
