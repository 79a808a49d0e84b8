//! Everything that a report of a workspace shows, for people who do not have Milepost.

use crate::ops::inspect::graph::{Graph, graph_of};
use crate::ops::inspect::history::timeline::{Timeline, Window};
use crate::ops::inspect::history::{History, Run};
use crate::ops::inspect::status::{Status, status};
use crate::ops::project::error::OpsError;
use crate::ops::project::open::open_recorded;
use crate::ops::project::open_project::OpenProject;
use crate::ops::project::request::Request;
use jiff::Timestamp;
use milepost_core::base::digest::Digest;
use milepost_core::base::glob::may_meet;
use milepost_core::decl::PROJECT_FILE;
use milepost_core::model::call::Spent;
use milepost_core::model::event::{Event, Record};
use milepost_store::store::calls;
use milepost_store::store::checkpoint as stored;
use milepost_store::store::files::digest_of;
use milepost_store::store::journal::{self, JournalError};
use milepost_store::store::{layout, read};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

/// The most failures, decisions, files and runs that a report lists.
const LISTED: usize = 200;

/// The most timelines: those of the last runs in which batches ran.
const TIMELINES: usize = 3;

/// The most bars of all timelines together, so that the report stays small.
const BARS: usize = 4000;

/// The most lanes of a timeline.
const LANES: usize = 100;

/// The width of a timeline in pixels.
const WIDTH: u32 = 900;

/// How a report begins, so that another file is not taken for one.
pub const BEGINNING: &str = "<!doctype html>\n<!-- A report of Milepost -->\n";

/// A list that may be cut.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CutList<T> {
    /// The entries.
    pub shown: Vec<T>,
    /// The number of further entries.
    pub left_out: u64,
}

impl<T> Default for CutList<T> {
    fn default() -> Self {
        Self::of(Vec::new())
    }
}

impl<T> CutList<T> {
    /// Cuts a list after the most entries that a report lists.
    pub fn of(mut all: Vec<T>) -> Self {
        let left_out = all.len().saturating_sub(LISTED) as u64;
        all.truncate(LISTED);
        Self {
            shown: all,
            left_out,
        }
    }
}

/// Everything that a report shows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WorkspaceReport {
    /// When the report was written, in UTC.
    pub written: Timestamp,
    /// The version of Milepost that wrote it.
    pub version: String,
    /// The status of each stage, and the cost.
    pub status: Status,
    /// The stages as a graph.
    pub graph: Graph,
    /// The runs, the last one first.
    pub runs: CutList<Run>,
    /// The timelines of the last runs in which batches ran, the last run first.
    pub timelines: Vec<Timeline>,
    /// The failed batches.
    pub failures: CutList<ReportedFailure>,
    /// The cost by day, agent and model.
    pub costs: CutList<CostLine>,
    /// The decisions of people, the last one first.
    pub decisions: CutList<PersonalDecision>,
    /// The checkpoints.
    pub checkpoints: Vec<CheckpointDigest>,
    /// The inputs of the workspace that the checkpoints list, with their recorded digests.
    pub inputs: CutList<FileDigest>,
    /// The files of the declaration with their present digests, and further files of the project with their recorded ones.
    pub declarations: CutList<FileDigest>,
    /// The journal.
    pub journal: JournalFacts,
}

/// A failed batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReportedFailure {
    /// The stage.
    pub stage: String,
    /// The batch; empty for the only one.
    pub batch: String,
    /// The error code and message.
    pub outcome: String,
    /// When it failed, in UTC; `None` if the journal does not say.
    pub when: Option<Timestamp>,
    /// The folder with the output of its programs, in the workspace.
    pub logs: Option<String>,
    /// The folder with its leftover files, in the workspace.
    pub quarantine: Option<String>,
}

/// The calls of one agent and model on one day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CostLine {
    /// The day, in UTC.
    pub day: String,
    /// The agent that was called.
    pub agent: String,
    /// The model that answered, or the requested one; `None` if neither is known.
    pub model: Option<String>,
    /// The cost.
    pub spent: Spent,
}

/// A decision of a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PersonalDecision {
    /// When, in UTC.
    pub when: Timestamp,
    /// `accepted`, `approved` or `corrected`.
    pub kind: String,
    /// The person; `None` if each correction names its own.
    pub who: Option<String>,
    /// The event, in one line.
    pub what: String,
    /// The reasons.
    pub why: CutList<String>,
}

/// A checkpoint with its digests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CheckpointDigest {
    /// The stage.
    pub stage: String,
    /// The path of the file, in the workspace.
    pub path: String,
    /// The digest of the file.
    pub digest: Digest,
    /// The digest of the output, or of the list of outputs.
    pub output: Digest,
    /// The folder with the list of all outputs.
    pub manifest: String,
    /// When the stage was finished, in UTC.
    pub when: Timestamp,
    /// The version of Milepost that finished it.
    pub version: String,
}

/// A file and its digest.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct FileDigest {
    /// The path.
    pub path: String,
    /// The digest, with the name of its algorithm.
    pub digest: String,
}

/// The journal of a workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct JournalFacts {
    /// The number of records.
    pub records: u64,
    /// The digest of the last record.
    pub head: Option<Digest>,
    /// Where the journal is broken: later records are missing.
    pub broken: Option<String>,
}

/// A report that was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SavedReport {
    /// The path of the file, as it was given.
    pub path: String,
    /// The size in bytes.
    pub bytes: u64,
}

/// Returns everything that a report shows. Nothing is written.
///
/// # Errors
/// When there is no project, or the workspace cannot be read.
pub fn report(request: &Request) -> Result<WorkspaceReport, OpsError> {
    let opened = open_recorded(request)?;
    let status = status(request)?;
    let mut seen = Seen::default();
    let layout = &opened.workspace.layout;
    let read = journal::read_all(layout, &mut |_, record| seen.add(&record));
    match read {
        Ok(tail) => seen.journal.head = tail.last,
        Err(error @ JournalError::Disk(_)) => return Err(error.into()),
        Err(error) => seen.journal.broken = Some(error.to_string()),
    }
    let timelines = timelines(&seen.history, opened.clock.now());
    let mut runs = seen.history.runs().to_vec();
    runs.retain(|run| !is_decision(run));
    runs.reverse();
    seen.decisions.shown.reverse();
    let failures = failures(&status, &mut seen.failed);
    let (checkpoints, inputs, files) = checkpoints(&opened);
    let mut declarations = declared(&opened);
    declarations.extend(files);
    Ok(WorkspaceReport {
        written: request.now(),
        version: request.version.clone(),
        graph: graph_of(&opened, &status),
        runs: CutList::of(runs),
        timelines,
        failures,
        costs: costs(&opened)?,
        decisions: seen.decisions,
        checkpoints,
        inputs: CutList::of(inputs),
        declarations: CutList::of(declarations),
        journal: seen.journal,
        status,
    })
}

/// Writes a report to a file outside the workspace.
///
/// # Errors
/// When the path is in the workspace, another file is there, or the disk fails.
pub fn save(request: &Request, report: &str, path: &Path) -> Result<SavedReport, OpsError> {
    let opened = open_recorded(request)?;
    let shown = path.display();
    let name = path.file_name().ok_or_else(|| {
        OpsError::Usage(format!(
            "`{shown}` is not the path of a file: name one, such as `--out report.html`"
        ))
    })?;
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let real = folder
        .canonicalize()
        .map_err(OpsError::unreadable(&folder.display()))?;
    let workspace = opened.workspace.layout.root();
    let workspace = workspace
        .canonicalize()
        .unwrap_or_else(|_| workspace.to_owned());
    let place = real.join(name);
    if place.starts_with(&workspace) {
        return Err(OpsError::Usage(format!(
            "`{shown}` is in the workspace, whose files are inputs, outputs and records: choose another place with `--out FILE`"
        )));
    }
    let found = match read::bytes(&place) {
        Ok(found) => Some(found),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(OpsError::unreadable(&shown)(error)),
    };
    if found.is_some_and(|found| !found.starts_with(BEGINNING.as_bytes())) {
        return Err(OpsError::Usage(format!(
            "`{shown}` is not a report of Milepost, so it is not replaced: remove it, or choose another place with `--out FILE`"
        )));
    }
    let disk = request.disk.open_to_umask();
    disk.write_atomic(&place, report.as_bytes())?;
    Ok(SavedReport {
        path: shown.to_string(),
        bytes: report.len() as u64,
    })
}

/// The facts for the report, collected in one pass over the journal.
#[derive(Default)]
struct Seen {
    history: History,
    /// The last decisions, the last one at the end.
    decisions: CutList<PersonalDecision>,
    /// Failed batches that were not built since, by stage and batch.
    failed: BTreeMap<(String, String), FailedRecord>,
    journal: JournalFacts,
}

struct FailedRecord {
    when: Timestamp,
    run: String,
    quarantine: Option<String>,
}

impl Seen {
    fn add(&mut self, record: &Record) {
        self.journal.records += 1;
        self.history.add(record);
        let decision = |kind: &str, who: Option<&String>, why: Vec<String>| PersonalDecision {
            when: record.timestamp,
            kind: kind.to_owned(),
            who: who.cloned(),
            what: record.summary.clone(),
            why: CutList::of(why),
        };
        match &record.event {
            Event::BatchFailed {
                stage,
                batch,
                quarantine,
                ..
            }
            | Event::ElementsFailed {
                stage,
                batch,
                quarantine,
                ..
            } => {
                let failed = FailedRecord {
                    when: record.timestamp,
                    run: record.run_id.clone(),
                    quarantine: quarantine.clone(),
                };
                self.failed.insert((stage.clone(), batch.clone()), failed);
            }
            Event::Published {
                stage,
                record: built,
                ..
            } if built.failed.is_empty() && !self.failed.is_empty() => {
                self.failed.remove(&(stage.clone(), built.key.clone()));
            }
            Event::Accepted { pin, .. } | Event::ChangeAccepted { pin, .. } => {
                self.decide(decision("accepted", Some(&pin.who), vec![pin.why.clone()]));
            }
            Event::Approved { pin, .. } => {
                self.decide(decision("approved", Some(&pin.who), vec![pin.why.clone()]));
            }
            Event::CorrectionsImported {
                corrections, added, ..
            } => {
                let mut imported = decision("corrected", None, corrections.clone());
                imported.why.left_out += added.saturating_sub(corrections.len() as u64);
                self.decide(imported);
            }
            _ => {}
        }
    }

    /// Keeps a decision in the place of the first one, if there are too many.
    fn decide(&mut self, decision: PersonalDecision) {
        if self.decisions.shown.len() == LISTED {
            self.decisions.shown.remove(0);
            self.decisions.left_out += 1;
        }
        self.decisions.shown.push(decision);
    }
}

/// Returns true for what a person decided without running a batch: the decisions list it.
fn is_decision(run: &Run) -> bool {
    let status = run.status.as_deref();
    run.batches == 0 && matches!(status, Some("accepted" | "approved" | "imported"))
}

/// Returns the timelines of the last runs in which batches ran, the last run first.
fn timelines(history: &History, now: Timestamp) -> Vec<Timeline> {
    let worked = history.runs().iter().rev().filter(|run| run.batches > 0);
    let worked: Vec<&Run> = worked.take(TIMELINES).collect();
    let window = |run: &Run, bars| Window {
        run: Some(run.run.clone()),
        now: now.as_millisecond(),
        width: WIDTH,
        bars,
        lanes: LANES,
    };
    let view = |bars: Option<usize>| -> Vec<Timeline> {
        let all = worked.iter().map(|run| history.view(&window(run, bars)));
        all.collect()
    };
    let all = view(None);
    let lanes: usize = all.iter().map(|timeline| timeline.lanes.len()).sum();
    let bars = all.iter().flat_map(|timeline| &timeline.lanes);
    match bars.map(|lane| lane.bars.len()).sum::<usize>() {
        bars if bars > BARS => view(Some(BARS / lanes.max(1))),
        _ => all,
    }
}

/// Returns the failed batches of the status, with what the journal knows of them.
fn failures(
    status: &Status,
    failed: &mut BTreeMap<(String, String), FailedRecord>,
) -> CutList<ReportedFailure> {
    let all = status.stages.iter().flat_map(|stage| {
        let of_stage = stage.failed.iter();
        of_stage.map(|failed| (stage.stage.clone(), failed))
    });
    let mut left_out = 0;
    let mut shown = Vec::new();
    for (stage, batch) in all {
        if shown.len() == LISTED {
            left_out += 1;
            continue;
        }
        let known = failed.remove(&(stage.clone(), batch.batch.clone()));
        let logs = known
            .as_ref()
            .and_then(|known| layout::log(&known.run, &stage, &batch.batch, 0).parent());
        shown.push(ReportedFailure {
            stage,
            batch: batch.batch.clone(),
            outcome: batch.outcome.clone(),
            when: known.as_ref().map(|known| known.when),
            logs: logs.map(|folder| folder.to_string()),
            quarantine: known.and_then(|known| known.quarantine),
        });
    }
    CutList { shown, left_out }
}

/// Returns the cost of each agent and model on each day, the last day first.
fn costs(opened: &OpenProject) -> Result<CutList<CostLine>, OpsError> {
    let mut lines: BTreeMap<(String, String, Option<String>), Spent> = BTreeMap::new();
    let folder = opened.workspace.layout.calls();
    let read = calls::read_without_text(&folder);
    let (calls, _) = read.map_err(OpsError::unreadable(&folder.display()))?;
    for call in calls {
        let served = call
            .response
            .as_ref()
            .and_then(|response| response.served.clone());
        let asked = (!call.sent.model.is_empty()).then(|| call.sent.model.clone());
        let day = call.when.strftime("%F").to_string();
        let line = lines.entry((day, call.sent.agent.clone(), served.or(asked)));
        *line.or_default() += Spent::of(&call.sent, call.response.as_ref());
    }
    let lines = lines
        .into_iter()
        .rev()
        .map(|((day, agent, model), spent)| CostLine {
            day,
            agent,
            model,
            spent,
        });
    Ok(CutList::of(lines.collect()))
}

/// Returns the checkpoints, the inputs that they list, and the files of the project that the outputs were made by.
fn checkpoints(opened: &OpenProject) -> (Vec<CheckpointDigest>, Vec<FileDigest>, Vec<FileDigest>) {
    let layout = &opened.workspace.layout;
    let mut lines = Vec::new();
    let mut inputs = BTreeMap::new();
    let mut files = BTreeSet::new();
    for stage in &opened.pipeline.stages {
        // A checkpoint that cannot be read is a finding of `verify`; the stage is then shown without one.
        let Ok(Some(found)) = stored::read(layout, stage.number) else {
            continue;
        };
        let checkpoint = found.checkpoint;
        if checkpoint.stage != stage.name {
            continue;
        }
        inputs.extend(checkpoint.inputs);
        let facts = checkpoint.fingerprint.iter().chain(&checkpoint.schemas);
        for (fact, digest) in facts {
            let file = fact.strip_prefix("file ");
            if let Some(path) = file.or_else(|| fact.strip_prefix("schema ")) {
                files.insert(FileDigest {
                    path: path.to_owned(),
                    digest: digest.clone(),
                });
            }
        }
        lines.push(CheckpointDigest {
            stage: checkpoint.stage,
            path: layout::checkpoint(stage.number).to_string(),
            digest: found.digest,
            output: checkpoint.checksums.output,
            manifest: checkpoint.manifest.to_string(),
            when: checkpoint.timestamp,
            version: checkpoint.milepost,
        });
    }
    let outputs = opened
        .pipeline
        .stages
        .iter()
        .flat_map(|stage| &stage.outputs);
    let outputs: Vec<String> = outputs.map(|output| output.path.pattern()).collect();
    let inputs = inputs.into_iter().filter(|(path, _)| {
        let is_written = outputs.iter().any(|output| may_meet(output, path));
        !is_written
    });
    let inputs = inputs.map(|(path, digest)| FileDigest { path, digest });
    (lines, inputs.collect(), files.into_iter().collect())
}

/// Returns the files of the declaration with their present digests.
fn declared(opened: &OpenProject) -> Vec<FileDigest> {
    let stages = opened.pipeline.stages.iter();
    let files = stages.map(|stage| stage.file.to_string());
    let files = std::iter::once(PROJECT_FILE.to_owned()).chain(files);
    let digest = |path: String| {
        let digest = digest_of(&opened.project.join(&path)).ok()??.0;
        Some(FileDigest {
            path,
            digest: digest.to_string(),
        })
    };
    files.filter_map(digest).collect()
}
