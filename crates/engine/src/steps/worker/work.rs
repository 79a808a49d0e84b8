//! The work of a worker: reads one foreign file, or runs one jq program. Each kind does the same in a worker and in the program.

use crate::steps::batch_context::{input_failure, parse_failure};
use milepost_core::base::in_order::no_thread::no_thread;
use milepost_core::expr::jq::{Bound, EvaluationInput, Jq};
use milepost_core::expr::select::Select;
use milepost_core::model::outcome::{Outcome, OutcomeKind};
use milepost_formats::ifc::{self, Measured};
use milepost_formats::pdf_text;
use milepost_formats::xlsx;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, BufReader, Cursor, Read, Write};
use std::path::Path;
use std::rc::Rc;
use std::sync::mpsc::sync_channel;
use std::thread;

/// The memory that reading a PDF may take if the stage declares no limit, in bytes.
pub(crate) const PDF_MEMORY: u64 = 1 << 30;

/// The memory that reading a workbook may take, in bytes.
const XLSX_MEMORY: u64 = 1 << 30;

/// The work. `path` is absolute, `name` is the name of the file in messages.
#[derive(Serialize, Deserialize)]
pub(crate) enum Work {
    /// Checks beginning and end of a PDF: `Result<(), PdfTextError>`.
    PdfCheck { path: OsString, name: String },
    /// Reads the text of a PDF: `Result<Result<PdfText, PdfTextError>, PdfTextError>`, where the outer error is that of the
    /// check.
    PdfText { path: OsString, name: String },
    /// Reads a building model and writes its elements: the summary.
    Ifc {
        path: OsString,
        name: String,
        measured: Measured,
    },
    /// Reads columns of a workbook: `Result<SheetColumns, XlsxReadError>`.
    Xlsx {
        path: OsString,
        name: String,
        sheet: String,
        headers: Vec<String>,
    },
    /// Reads a row of a workbook: `Result<SheetRow, XlsxReadError>`.
    XlsxRow {
        path: OsString,
        name: String,
        sheet: String,
        row: u32,
    },
    /// Runs a jq program for each input: `Vec<Result<Vec<Value>, String>>`. The values are read apart from the request, each
    /// with the depth that JSON may have.
    Jq {
        program: JqValues,
        /// The variables that each input sets.
        set: Vec<String>,
        inputs: Vec<JqInput>,
        /// Whether more than one output, or none, is an error.
        only: bool,
    },
    /// Runs a jq program while `inputs` reads the records of files: its values.
    JqStream {
        program: JqValues,
        input: Box<RawValue>,
        /// The path of the records in each file.
        records: String,
        files: Vec<RecordFile>,
    },
}

/// A jq program with the values of its variables.
#[derive(Serialize, Deserialize)]
pub(crate) struct JqValues {
    name: String,
    source: String,
    names: Vec<String>,
    vars: Vec<Box<RawValue>>,
}

/// An input of a jq program, and the values of the variables that each input sets.
#[derive(Serialize, Deserialize)]
pub(crate) struct JqInput {
    pub(crate) value: Box<RawValue>,
    pub(crate) variables: Vec<Box<RawValue>>,
}

/// A file with records.
#[derive(Serialize, Deserialize)]
pub(crate) struct RecordFile {
    pub(crate) name: String,
    pub(crate) path: OsString,
    /// The content, if it lies in memory.
    pub(crate) content: Option<String>,
}

impl JqValues {
    /// Returns a program with the JSON texts of its variables.
    ///
    /// # Errors
    /// When a text is not JSON.
    pub(crate) fn new(jq: &Jq, vars: &[String]) -> serde_json::Result<Self> {
        let vars = vars.iter().map(|text| RawValue::from_string(text.clone()));
        Ok(Self {
            name: jq.name().to_owned(),
            source: jq.source().to_owned(),
            names: jq.vars().to_vec(),
            vars: vars.collect::<Result<_, _>>()?,
        })
    }

    fn values(&self) -> Result<Vec<Value>, Outcome> {
        let values = self.vars.iter().map(|raw| serde_json::from_str(raw.get()));
        values.collect::<Result<_, _>>().map_err(parse_failure)
    }
}

impl Work {
    /// Returns what is done, as the subject of a message.
    pub(super) fn subject(&self) -> String {
        match self {
            Self::PdfCheck { name, .. } | Self::PdfText { name, .. } => {
                format!("`pdf_text` of `{name}`")
            }
            Self::Ifc { name, .. } => format!("`ifc` of `{name}`"),
            Self::Xlsx { name, .. } | Self::XlsxRow { name, .. } => format!("reading `{name}`"),
            Self::Jq { program, .. } | Self::JqStream { program, .. } => {
                format!("the jq program `{}`", program.name)
            }
        }
    }

    /// Returns the limit of memory if the stage declares none, in bytes.
    pub(super) fn default_memory(&self) -> u64 {
        match self {
            Self::PdfCheck { .. } | Self::PdfText { .. } => PDF_MEMORY,
            Self::Xlsx { .. } | Self::XlsxRow { .. } => XLSX_MEMORY,
            Self::Ifc { .. } | Self::Jq { .. } | Self::JqStream { .. } => 4 << 30,
        }
    }

    /// Returns the most threads that compute at once.
    pub(super) fn threads(&self) -> u64 {
        match self {
            Self::Ifc { .. } => {
                thread::available_parallelism().map_or(1, |count| count.get() as u64)
            }
            Self::PdfCheck { .. }
            | Self::PdfText { .. }
            | Self::Jq { .. }
            | Self::JqStream { .. }
            | Self::Xlsx { .. }
            | Self::XlsxRow { .. } => 1,
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
            Self::Ifc {
                path,
                name,
                measured,
            } => {
                let file_name = name.rsplit('/').next().unwrap_or_default();
                let found = ifc::extract_while(Path::new(path), file_name, *measured, out, look);
                let found = found.map_err(|error| {
                    // The message starts with the name of the file, which the outcome names too.
                    let said = error.to_string();
                    let own = format!("{file_name}: ");
                    input_failure(name, said.strip_prefix(&own).unwrap_or(&said))
                })?;
                serde_json::to_string(&found)
            }
            Self::Xlsx {
                path,
                name,
                sheet,
                headers,
            } => {
                let file = milepost_store::store::read::open(path);
                let file = file.map_err(|error| input_failure(name, error))?;
                serde_json::to_string(&xlsx::read_columns(BufReader::new(file), sheet, headers))
            }
            Self::XlsxRow {
                path,
                name,
                sheet,
                row,
            } => {
                let file = milepost_store::store::read::open(path);
                let file = file.map_err(|error| input_failure(name, error))?;
                serde_json::to_string(&xlsx::read_row(BufReader::new(file), sheet, *row))
            }
            Self::Jq {
                program,
                set,
                inputs,
                only,
            } => {
                let jq = compiled(program)?;
                let mut bound = jq.bind(&program.values()?).map_err(parse_failure)?;
                let set: Vec<&str> = set.iter().map(String::as_str).collect();
                let mut of = |input: &JqInput| {
                    let variables = input.variables.iter().map(|text| text.get().into());
                    let input = EvaluationInput {
                        value: input.value.get().into(),
                        variables: variables.collect(),
                    };
                    bound.values_of_text(&set, &input, *only)
                };
                let found = inputs
                    .iter()
                    .map(|input| of(input).map_err(|error| error.message));
                serde_json::to_string(&found.collect::<Vec<_>>())
            }
            Self::JqStream {
                program,
                input,
                records,
                files,
            } => {
                let jq = compiled(program)?;
                let bound = jq.bind(&program.values()?).map_err(parse_failure)?;
                let input = serde_json::from_str(input.get()).map_err(parse_failure)?;
                let records = Select::parse(records).map_err(parse_failure)?;
                serde_json::to_string(&streamed(&bound, input, &records, files, look)?)
            }
        };
        result.map_err(parse_failure)
    }
}

/// How many records are handed over at once.
const AHEAD: usize = 64;

/// Runs a program that reads records with `inputs`. jq pulls records and the reader pushes them, so a thread reads ahead.
fn streamed(
    bound: &Bound<'_>,
    input: Value,
    records: &Select,
    files: &[RecordFile],
    look: &dyn Fn() -> io::Result<()>,
) -> Result<Vec<Value>, Outcome> {
    let (sender, receiver) = sync_channel::<Result<Vec<String>, String>>(4);
    thread::scope(|threads| {
        let read_ahead = move || {
            for file in files {
                let mut texts = Vec::with_capacity(AHEAD);
                let send = |texts: &mut Vec<String>| {
                    let ready = std::mem::replace(texts, Vec::with_capacity(AHEAD));
                    sender.send(Ok(ready)).map_err(|_| "not wanted".to_owned())
                };
                let read = file.open().map_err(|error| error.to_string());
                let read = read.and_then(|opened| {
                    let mut each = |text: &str, _| {
                        texts.push(text.to_owned());
                        if texts.len() < AHEAD {
                            return Ok(());
                        }
                        send(&mut texts)
                    };
                    let read = records.read_text(opened, &mut each);
                    read.map_err(|error| error.to_string())
                });
                let read = read.and_then(|_| send(&mut texts));
                if let Err(error) = read {
                    // The receiver may be gone already.
                    let _ = sender.send(Err(format!("{}: {error}", file.name)));
                    return;
                }
            }
        };
        let started = thread::Builder::new().spawn_scoped(threads, read_ahead);
        started.map_err(|error| Outcome::new(OutcomeKind::Memory, no_thread(&error)))?;
        let mut inputs = receiver.into_iter().flat_map(|texts| match texts {
            // Checked once for each chunk.
            Ok(texts) => match look() {
                Ok(()) => texts.into_iter().map(Ok).collect(),
                Err(error) => vec![Err(error.to_string())],
            },
            Err(error) => vec![Err(error)],
        });
        bound
            .stream_texts(input, &mut inputs)
            .map_err(parse_failure)
    })
}

impl RecordFile {
    fn open(&self) -> io::Result<Box<dyn Read + '_>> {
        Ok(match &self.content {
            Some(content) => Box::new(Cursor::new(content.as_bytes())),
            None => Box::new(milepost_store::store::read::open(&self.path)?),
        })
    }
}

thread_local! {
    /// The programs that were compiled last, by their text and variables.
    #[expect(clippy::type_complexity)]
    static COMPILED: RefCell<BTreeMap<(String, Vec<String>), Rc<Jq>>> = RefCell::default();
}

/// The most compiled programs that are kept.
const KEPT: usize = 64;

/// Returns a compiled program.
fn compiled(program: &JqValues) -> Result<Rc<Jq>, Outcome> {
    let JqValues {
        name,
        source,
        names,
        ..
    } = program;
    COMPILED.with_borrow_mut(|programs| {
        let key = (source.clone(), names.clone());
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
