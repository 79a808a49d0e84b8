//! Reads what happened in a workspace: records of the journal, calls of agents, and what programs printed.

use crate::ops::inspect::calls::{self, Exchange};
use crate::ops::inspect::follow::{Follower, Position};
use crate::ops::project::error::OpsError;
use crate::ops::project::open::open_recorded;
use crate::ops::project::open_project::OpenProject;
use crate::ops::project::request::Request;
use crate::ops::why::naming;
use milepost_core::base::path::RelPath;
use milepost_core::model::event::{Event, EventType, Record};
use milepost_core::plan::selection::Target;
use milepost_store::store::read;
use milepost_store::store::{journal, layout, quarantine};
use serde::Serialize;
use std::collections::{BTreeSet, VecDeque};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// The part shown of the end of a log file, in bytes.
const SHOWN: u64 = 1 << 16;

/// The most log files shown of a batch: the newest.
const FILES: usize = 8;

/// Which records to return.
#[derive(Debug, Clone, Default)]
pub struct LogOptions {
    /// `STAGE` or `STAGE/BATCH`; `None` for all.
    pub target: Option<String>,
    /// The run, by the beginning of its id; `None` for all.
    pub run: Option<String>,
    /// Only errors.
    pub errors: bool,
    /// Calls of agents with request and answer, instead of records.
    pub calls: bool,
    /// The most records to return: the latest.
    pub limit: Option<usize>,
    /// True to read only the lines that name the target, without a check that the journal is whole.
    pub unchecked: bool,
}

/// The history of a workspace.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Log {
    /// The records of the journal.
    pub records: Vec<Record>,
    /// Calls of agents with request and answer, if they were requested instead of records.
    pub calls: Vec<Exchange>,
    /// The number of earlier records or calls that are left out.
    pub left_out: u64,
    /// The output of the batch's programs, and details of its failures; empty unless a batch is selected.
    pub printed: Vec<Printed>,
    /// Where the journal is broken: later records are missing.
    pub broken: Option<String>,
}

/// A text file about a batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Printed {
    /// The path in the workspace.
    pub path: RelPath,
    /// The text, or its end.
    pub text: String,
    /// The bytes before the text that are left out.
    pub cut: u64,
}

/// Returns records of the journal, the oldest first. Nothing is written.
///
/// # Errors
/// When there is no project, a stage is not declared, or the journal cannot be read.
pub fn log(request: &Request, options: &LogOptions) -> Result<Log, OpsError> {
    let opened = open_recorded(request)?;
    let filter = Filter::new(&opened, options)?;
    if options.calls {
        return calls(&opened, options, filter.target.as_ref());
    }
    Ok(records(&opened, options, &filter)?.0)
}

/// Returns records as [`log`] does, and a follower that returns those written later; none if the journal is broken.
///
/// # Errors
/// The errors of [`log`].
pub fn follow_log(
    request: &Request,
    options: &LogOptions,
) -> Result<(Log, Option<LogFollower>), OpsError> {
    let opened = open_recorded(request)?;
    let filter = Filter::new(&opened, options)?;
    let (log, end) = records(&opened, options, &filter)?;
    let follower = end.map(|end| Follower::after(request, end)).transpose()?;
    let follower = follower.map(|follower| LogFollower { follower, filter });
    Ok((log, follower))
}

/// Returns the selected records as runs append them.
pub struct LogFollower {
    follower: Follower,
    filter: Filter,
}

impl LogFollower {
    /// Returns the selected records that were written since the last call.
    ///
    /// # Errors
    /// The errors of [`Follower::read`].
    pub fn read(&mut self) -> Result<Vec<Record>, OpsError> {
        let records = self.follower.read()?.into_iter();
        let records = records.map(|(_, record)| record);
        Ok(records
            .filter(|record| self.filter.is_about(record) && self.filter.is_shown(record))
            .collect())
    }
}

/// Selects records.
struct Filter {
    target: Option<Target>,
    run: Option<String>,
    errors: bool,
}

impl Filter {
    fn new(opened: &OpenProject, options: &LogOptions) -> Result<Self, OpsError> {
        Ok(Self {
            target: target(opened, options)?,
            run: options.run.clone(),
            errors: options.errors,
        })
    }

    /// Returns true if the record is of the target and of the run.
    fn is_about(&self, record: &Record) -> bool {
        let of_run = self
            .run
            .as_ref()
            .is_none_or(|run| record.run_id.starts_with(run.as_str()));
        of_run && is_wanted(record, self.target.as_ref())
    }

    fn is_shown(&self, record: &Record) -> bool {
        !self.errors || record.event_type == EventType::Error
    }
}

/// Returns the selected records, and the end of the journal if it was checked and is whole.
fn records(
    opened: &OpenProject,
    options: &LogOptions,
    filter: &Filter,
) -> Result<(Log, Option<Position>), OpsError> {
    let limit = options.limit.unwrap_or(usize::MAX);
    let mut records = VecDeque::new();
    let mut left_out = 0;
    let mut runs = BTreeSet::new();
    let mut folders = BTreeSet::new();
    let mut take = |record: Record| {
        if !filter.is_about(&record) {
            return;
        }
        runs.insert(record.run_id.clone());
        if let Event::BatchFailed { quarantine, .. } = &record.event {
            folders.extend(quarantine.clone());
        }
        if !filter.is_shown(&record) {
            return;
        }
        if records.len() == limit {
            records.pop_front();
            left_out += 1;
        }
        if limit > 0 {
            records.push_back(record);
        }
    };
    let layout = &opened.workspace.layout;
    let target = filter.target.as_ref().filter(|_| options.unchecked);
    let (end, broken) = if let Some(target) = target {
        let texts = naming(&target.stage, target.batch.as_deref().unwrap_or_default());
        journal::read_with(layout, &texts, &mut take)?;
        (None, None)
    } else {
        match journal::read_all(layout, &mut |_, record| take(record)) {
            Ok(tail) => (Some(tail.end()), None),
            Err(error @ journal::JournalError::Disk(_)) => return Err(error.into()),
            Err(error) => (None, Some(error.to_string())),
        }
    };
    let printed = match &filter.target {
        Some(Target {
            stage,
            batch: Some(batch),
        }) => printed(opened, (stage, batch), &runs, &folders)?,
        _ => Vec::new(),
    };
    let log = Log {
        records: records.into(),
        calls: Vec::new(),
        left_out,
        printed,
        broken,
    };
    Ok((log, end))
}

/// Returns the selected calls.
fn calls(
    opened: &OpenProject,
    options: &LogOptions,
    target: Option<&Target>,
) -> Result<Log, OpsError> {
    let stage = target.map(|target| target.stage.as_str());
    let batch = target.and_then(|target| target.batch.as_deref());
    let mut calls = calls::calls(opened, stage, batch)?;
    calls.retain(|call| {
        let run = options.run.as_deref();
        let of_run = run.is_none_or(|run| call.run.starts_with(run));
        let is_error = call
            .response
            .as_ref()
            .is_none_or(|response| response.message.is_some());
        of_run && (is_error || !options.errors)
    });
    let left_out = calls
        .len()
        .saturating_sub(options.limit.unwrap_or(usize::MAX));
    let calls = calls.split_off(left_out);
    Ok(Log {
        records: Vec::new(),
        calls: calls::exchanges(opened, calls),
        left_out: left_out as u64,
        printed: Vec::new(),
        broken: None,
    })
}

/// Returns the stage and the batch of a target; of a stage with one batch, that batch.
fn target(opened: &OpenProject, options: &LogOptions) -> Result<Option<Target>, OpsError> {
    let Some(text) = &options.target else {
        return Ok(None);
    };
    let mut target = Target::parse(&opened.pipeline, text)?;
    let stage = opened.pipeline.stage(&target.stage);
    if target.batch.is_none() && stage.is_some_and(|stage| stage.is_read && stage.each.is_empty()) {
        target.batch = Some(String::new());
    }
    Ok(Some(target))
}

fn is_wanted(record: &Record, target: Option<&Target>) -> bool {
    let Some(target) = target else { return true };
    let of_stage = record.event.stage() == Some(&target.stage);
    let of_batch = |batch: &String| batch.is_empty() || record.event.is_about(batch);
    of_stage && target.batch.as_ref().is_none_or(of_batch)
}

/// Returns what the programs of a batch printed in these runs, and details of its failures, the oldest first.
fn printed(
    opened: &OpenProject,
    (stage, batch): (&str, &str),
    runs: &BTreeSet<String>,
    folders: &BTreeSet<String>,
) -> Result<Vec<Printed>, OpsError> {
    let layout = &opened.workspace.layout;
    // Another stage may have the same name.
    let earlier = Some(layout::earlier_log_stem(stage, batch))
        .filter(|name| opened.pipeline.stage(name).is_none());
    let stems = earlier.into_iter().chain([layout::log_stem(stage, batch)]);
    let prefixes: Vec<String> = stems.map(|stem| format!("{stem}-")).collect();
    let mut paths = Vec::new();
    for run in runs {
        let Some(folder) = layout::log(run, stage, batch, 0).parent() else {
            continue;
        };
        let mut names = read::names(layout.at(&folder)).unwrap_or_default();
        names.retain(|file| prefixes.iter().any(|prefix| is_log_of(file, prefix)));
        paths.extend(names.iter().filter_map(|name| folder.join(name).ok()));
        let of_run = folders
            .iter()
            .filter(|folder| folder.contains(run.as_str()));
        paths
            .extend(of_run.filter_map(|folder| {
                RelPath::parse(&format!("{folder}/{}", quarantine::WHY)).ok()
            }));
    }
    let newest = paths.len().saturating_sub(FILES);
    let mut printed = Vec::new();
    for path in paths.split_off(newest) {
        match tail(&layout.at(&path)) {
            Ok((text, cut)) => printed.push(Printed { path, text, cut }),
            // `gc` may have removed it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(OpsError::unreadable(&path)(error)),
        }
    }
    Ok(printed)
}

/// Returns true if a file name consists of the prefix, a number and `.log`.
fn is_log_of(file: &str, prefix: &str) -> bool {
    let number = file
        .strip_prefix(prefix)
        .and_then(|rest| rest.strip_suffix(".log"));
    number.is_some_and(|digits| {
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// Returns the end of a file as text, and the number of bytes before it.
fn tail(path: &Path) -> io::Result<(String, u64)> {
    let mut file = read::open(path)?;
    let cut = file.metadata()?.len().saturating_sub(SHOWN);
    file.seek(SeekFrom::Start(cut))?;
    let mut bytes = Vec::new();
    file.take(SHOWN).read_to_end(&mut bytes)?;
    Ok((String::from_utf8_lossy(&bytes).into_owned(), cut))
}
