//! The result of `trace`: the stations of a value, from the report back to the input.

use crate::ops::inspect::calls::Exchange;
use crate::ops::inspect::elements::FieldChange;
use jiff::Timestamp;
use milepost_core::base::digest::Digest;
use milepost_core::model::call::Spent;
use milepost_core::model::outcome::Outcome;
use milepost_core::model::record::Override;
use serde::Serialize;
use serde_json::Value;

/// The lineage of a value, from the report back to the input.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Trace {
    /// The traced value.
    pub question: TraceQuestion,
    /// The stations. Each leads to an earlier one, named by `to`.
    pub stations: Vec<Station>,
    /// Places where the lineage cannot be followed, or is not followed further.
    pub gaps: Vec<Gap>,
}

/// The traced value.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct TraceQuestion {
    /// The key or the file, as it was given.
    pub what: String,
    /// The file where the lineage begins; `None` if a key was given without one.
    pub file: Option<String>,
    /// The key of the element; `None` if files are followed.
    pub key: Option<String>,
    /// The field of the element; `None` for the whole record.
    pub field: Option<String>,
}

/// A station of the lineage.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Station {
    /// The station that this one leads to, by its place in `stations` from 0; `None` for the first.
    pub to: Option<usize>,
    /// The file; `None` for a batch and a call.
    pub file: Option<TracedFile>,
    /// The kind of station.
    #[serde(flatten)]
    pub about: StationKind,
}

/// What a station is.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(tag = "station", rename_all = "snake_case")]
pub enum StationKind {
    /// A cell of a workbook.
    Cell(TracedCell),
    /// The record of the element in an output.
    Record(Box<TracedRecord>),
    /// A value that a person corrected by a table of corrections.
    Correction(TracedCorrection),
    /// A file that a person modified and accepted.
    Modification(Override),
    /// A batch.
    Batch(Box<TracedBatch>),
    /// An answer of an agent.
    Answer(Box<TracedAnswer>),
    /// The record of the element that an agent was asked about.
    Question(Box<TracedRecord>),
    /// The element as it was read from the input.
    Element(Box<TracedRecord>),
    /// The place of the key in an input of the workspace.
    Source(TracedSource),
    /// A file that is followed as a whole.
    File,
}

/// A file of the way, checked against the record.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct TracedFile {
    /// The path in the workspace, or in the project with the prefix `project:`.
    pub path: String,
    /// The present digest; `None` if the file does not exist or cannot be read.
    pub digest: Option<Digest>,
    /// The recorded digest: of the batch that wrote the file, or for an input of the batch that read it.
    pub recorded: Option<Digest>,
    /// The digest that the next batch of the way read, if it is another than `recorded`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_as: Option<Digest>,
    /// The result of the comparison.
    pub check: FileCheck,
    /// The stage that wrote it; `None` for an input.
    pub stage: Option<String>,
    /// The batch that wrote it; empty for the only one of its stage.
    pub batch: Option<String>,
    /// The run that wrote it.
    pub run: Option<String>,
    /// When it was written, in UTC.
    #[cfg_attr(debug_assertions, schemars(with = "Option<String>"))]
    pub when: Option<Timestamp>,
}

/// Whether a file has the recorded bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FileCheck {
    /// It has the recorded bytes.
    Matches,
    /// It has the recorded bytes, which a person modified and accepted.
    Accepted,
    /// It has other bytes than recorded.
    Modified,
    /// It does not exist.
    Missing,
    /// No batch recorded it.
    NotRecorded,
    /// It cannot be read.
    Unreadable,
}

/// A cell of a workbook.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct TracedCell {
    /// The sheet.
    pub sheet: String,
    /// The cell, such as `G12`.
    pub cell: String,
    /// The header of its column.
    pub header: Option<String>,
    /// Its value; `None` if it is empty.
    pub value: Option<Value>,
    /// The formula of the cell, as the workbook has it.
    pub formula: Option<String>,
    /// The jq program that computes the column.
    pub program: Option<String>,
}

/// The record of an element in a file.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct TracedRecord {
    /// The JSON pointer of the record; `None` if the file is too large to count its records.
    pub pointer: Option<String>,
    /// The line of the record in the file, from 1.
    pub line: Option<u64>,
    /// The offset of the record in the file, in bytes; `None` in a table.
    pub offset: Option<u64>,
    /// The record.
    pub value: Value,
    /// The value of the field; absent if the record has no such field.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<Value>,
    /// The differences from the record that it was built from.
    pub changes: Vec<FieldChange>,
    /// The question about the element, if several elements share one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked: Option<Value>,
    /// The number of other records in the file that have the key; `None` if the file is too large to count them.
    pub others: Option<u64>,
}

/// A value that a person corrected.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct TracedCorrection {
    /// The field.
    pub field: String,
    /// The value before.
    pub from: Value,
    /// The value after.
    pub to: Value,
    /// The person.
    pub who: String,
    /// The reason.
    pub why: String,
    /// The line of the correction in the table, from 1; `None` if the table has no such row any more.
    pub line: Option<u64>,
    /// The workbook that it was imported from; `None` if the journal names none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub imported: Option<TracedImport>,
}

/// The import of a correction by `milepost import-review`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct TracedImport {
    /// The name of the workbook.
    pub workbook: String,
    /// The correction as the journal has it, with its cell.
    pub correction: String,
    /// When it was imported, in UTC.
    #[cfg_attr(debug_assertions, schemars(with = "String"))]
    pub when: Timestamp,
}

/// A batch of the way.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct TracedBatch {
    /// The stage.
    pub stage: String,
    /// The batch; empty for the only one of its stage.
    pub batch: String,
    /// The description of the stage.
    pub description: Option<String>,
    /// The run that built its outputs.
    pub run: String,
    /// When they were published, in UTC.
    #[cfg_attr(debug_assertions, schemars(with = "Option<String>"))]
    pub when: Option<Timestamp>,
    /// The number of attempts.
    pub attempts: u32,
    /// The duration of the last attempt, in seconds.
    pub seconds: f64,
    /// The number of answers that its outputs contain.
    pub answers: u64,
    /// The cost of its calls; `None` if there were none.
    pub spent: Option<Spent>,
    /// The failure of the batch or of the element.
    pub failed: Option<Outcome>,
    /// The number of its answers that the way leaves out.
    pub more_answers: u64,
    /// The number of its inputs that the way leaves out.
    pub more_inputs: u64,
}

/// An answer of an agent.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(tag = "by", rename_all = "snake_case")]
pub enum TracedAnswer {
    /// A recorded call.
    Call {
        /// The call, with prompt and answer.
        #[serde(flatten)]
        exchange: Box<Exchange>,
        /// True if the request contains the key or the question of the element; false if no request of the batch does, so that
        /// any of its calls may be the one; `None` if files are followed.
        names_element: Option<bool>,
        /// The part of the answer that is about the element, if the request numbers its questions.
        part: Option<Value>,
    },
    /// A call that another workspace recorded: its answer was kept in the project.
    Elsewhere {
        /// The run.
        run: String,
        /// The number of the call in the run.
        call: u64,
    },
    /// A call whose record is no longer kept.
    Removed {
        /// The run.
        run: String,
        /// The number of the call in the run.
        call: u64,
    },
    /// An agent that Milepost computes: there is no call.
    Computed {
        /// The agent's name.
        agent: String,
        /// The provider in one line.
        provider: String,
        /// The rule that the record names.
        rule: Option<TracedRule>,
    },
    /// An agent that was not called, as far as the records say.
    Unrecorded {
        /// The agent's name.
        agent: String,
        /// The provider in one line.
        provider: String,
    },
}

/// A rule of an agent with rules.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct TracedRule {
    /// Its name.
    pub name: String,
    /// The line of its name in the file, from 1.
    pub line: u64,
    /// The rule as the file has it.
    pub text: String,
}

/// The place of a key in an input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct TracedSource {
    /// The line, from 1.
    pub line: u64,
    /// The offset of the line in bytes.
    pub offset: u64,
    /// The line.
    pub text: String,
    /// True if the line is longer than `text`.
    pub cut: bool,
}

/// A place where the way cannot be followed, or is not followed further.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(tag = "gap", rename_all = "snake_case")]
pub enum Gap {
    /// The outputs of a stage do not contain the key.
    NotInOutputs {
        /// The stage.
        stage: String,
    },
    /// A batch that reads the element failed: nothing after it has the element.
    BatchFailed {
        /// The stage.
        stage: String,
        /// The batch.
        batch: String,
        /// The failure.
        message: String,
    },
    /// No input of a batch contains the key.
    NotInInputs {
        /// The stage.
        stage: String,
        /// The batch; empty for the only one.
        batch: String,
    },
    /// The workbook has no column with keys, or the row has no key: its files are followed.
    NoKey {
        /// The sheet.
        sheet: String,
        /// The number of the row.
        row: u32,
    },
    /// The value at the pointer is no part of a record with a key: its files are followed.
    NoRecord {
        /// The file.
        file: String,
        /// The pointer.
        pointer: String,
    },
    /// A file is missing, so the lineage through it is unknown.
    Missing {
        /// The file.
        file: String,
    },
    /// A file cannot be read as its format demands.
    Unreadable {
        /// The file.
        file: String,
        /// The problem.
        problem: String,
    },
    /// There are more files than are followed.
    MoreFiles {
        /// The number of files that are left out at least.
        files: u64,
    },
}
