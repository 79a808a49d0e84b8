//! Accepts the answer of an external client: validates and keeps it, and builds its batch by an ordinary run.

use super::busy;
use super::refusals;
use super::results::{AnswerFile, Left, Refusal, Submitted, WhyRefused};
use super::workspace::{is_made, with_workspace};
use crate::ops::project::error::OpsError;
use crate::ops::project::open::open;
use crate::ops::project::open_project::{OpenProject, scan_stage, state_for_reading};
use crate::ops::project::request::Request;
use crate::ops::run::{Report, RunOptions, Silent, StageReport, StageStatus, StopFlag, run};
use crate::run::agents::external::{
    AnswerFormat, LeasedAnswer, SubmissionResult, accept_submission, fingerprint,
};
use crate::run::check::batch_scanner::Keep;
use crate::run::record::recorder::Recorder;
use milepost_core::model::checkpoint::Status;
use milepost_core::plan::decide::{Decision, RebuildPolicy};
use milepost_store::store::layout;
use milepost_store::store::leases::{Lease, LeaseState, Leases};
use milepost_store::store::read;
use serde_json::Value;
use std::io::Read as _;
use std::path::Path;

/// The longest answer that is read, in bytes.
const LONGEST: u64 = 64 << 20;

/// An answer to a leased batch.
#[derive(Debug, Clone, Default)]
pub struct Submission {
    /// The id of the lease.
    pub lease: String,
    /// The name of the client, under which the lease must have been taken; `None`: not checked.
    pub client: Option<String>,
    /// The answer; a string if its form is not JSON. `None`: the file at the output path of the lease.
    pub answer: Option<Value>,
}

/// The outcome of validating an answer, before its batch is built.
enum Validated {
    /// No part of the answer is kept.
    Refused(Refusal),
    /// The valid answers are kept; the refusal gives the reason why the batch is not built.
    Kept(SubmissionResult, Option<Refusal>),
}

/// Submits the answer to a leased batch. Valid answers are kept. If all are valid, the batch is built, checked and published.
/// Otherwise the result lists every violation, and the lease stays. `stop` ends the wait for a batch that another client builds,
/// and interrupts the build; the answers are kept in that case.
///
/// # Errors
/// When there is no project, its declarations are wrong, another process runs in the workspace, or the disk fails.
pub fn submit_batch(
    request: &Request,
    submission: &Submission,
    stop: &StopFlag,
) -> Result<Submitted, OpsError> {
    let mut opened = open(request)?;
    opened.workspace.prepare(&opened.disk)?;
    let leases = busy::lock(&opened, stop)?;
    let mut submitted = Submitted {
        lease: submission.lease.clone(),
        ..Submitted::default()
    };
    let refused = |refusal: Refusal, submitted: Submitted| Submitted {
        refused: Some(refusal),
        ..submitted
    };
    let Some(mut lease) = leases.get(&submission.lease)? else {
        return Ok(refused(refusals::unknown(&submission.lease), submitted));
    };
    submitted.stage = Some(lease.stage.clone());
    submitted.batch = Some(lease.batch.clone());
    let now = opened.clock.now();
    if let Some(refusal) = refusals::unusable(&lease, submission.client.as_deref(), now) {
        return Ok(refused(refusal, submitted));
    }
    let file = leases.folder(&lease.id).join(&lease.answer);
    let text = match text(submission, &lease, &file) {
        Ok(text) => text,
        Err(refusal) => {
            submitted.expires = Some(lease.expires);
            return Ok(refused(refusal, submitted));
        }
    };
    let sent = leases.request(&lease.id)?;
    let command = format!(
        "submit_batch {} by {}",
        refusals::place(&lease),
        lease.client
    );
    let taken = with_workspace(&mut opened, request, &command, |opened, recorder| {
        let given = LeasedAnswer {
            lease: &lease,
            request: &sent,
            text: &text,
            replaces: true,
        };
        validate(opened, recorder, given, lease.holds(now))
    })?;
    let (taken, refusal) = match taken {
        Validated::Refused(refusal) => return Ok(refused(refusal, submitted)),
        Validated::Kept(taken, refusal) => (taken, refusal),
    };
    let ids: Vec<&str> = lease.questions.iter().map(|(id, _)| id.as_str()).collect();
    let wrong = taken.wrong.into_iter();
    submitted.violations = wrong
        .map(|wrong| refusals::violation(wrong, &ids))
        .collect();
    submitted.kept = taken.kept;
    submitted.open = taken.open;
    submitted.quarantine = taken.quarantine;
    if refusal.is_some() {
        submitted.refused = refusal;
        return Ok(submitted);
    }
    submitted.expires = Some(lease.expires);
    if !submitted.violations.is_empty() {
        return Ok(submitted);
    }
    let options = RunOptions {
        targets: vec![refusals::place(&lease)],
        ..RunOptions::default()
    };
    let request = &Request {
        command,
        ..request.clone()
    };
    let report = run(request, &options, &mut Silent, stop)?;
    let recorded = recorded(&opened, &lease)?;
    add_result(&mut submitted, &lease, &report, recorded, &leases, now)?;
    if submitted.accepted {
        lease.state = LeaseState::Submitted;
        leases.put(&lease)?;
        submitted.expires = None;
    }
    Ok(submitted)
}

/// Returns the text of an answer.
fn text(submission: &Submission, lease: &Lease, file: &Path) -> Result<String, Refusal> {
    match &submission.answer {
        Some(Value::String(text)) => return Ok(text.clone()),
        Some(value) => return Ok(value.to_string()),
        None => {}
    }
    let missing = |problem: AnswerFile| {
        let path = file.display().to_string();
        refusals::refusal(lease, WhyRefused::AnswerMissing { path, problem })
    };
    match std::fs::symlink_metadata(file) {
        Ok(found) if found.is_file() => {}
        Ok(_) => return Err(missing(AnswerFile::NotAFile)),
        Err(_) => return Err(missing(AnswerFile::Missing)),
    }
    let mut bytes = Vec::new();
    let read = read::open(file).and_then(|file| file.take(LONGEST).read_to_end(&mut bytes));
    read.map_err(|error| missing(AnswerFile::Unreadable(error.to_string())))?;
    String::from_utf8(bytes).map_err(|_| missing(AnswerFile::NotUtf8))
}

/// Keeps the right answers, if the batch is still the one that was leased.
fn validate(
    opened: &OpenProject,
    recorder: &mut Recorder<'_>,
    given: LeasedAnswer<'_>,
    holds: bool,
) -> Result<Validated, OpsError> {
    let lease = given.lease;
    let refused = |why| Validated::Refused(refusals::refusal(lease, why));
    let stage = opened.pipeline.stage(&lease.stage);
    let Some((stage, asking)) =
        stage.and_then(|stage| Some((stage, AnswerFormat::of(stage, &lease.out)?)))
    else {
        return Ok(refused(WhyRefused::Stale));
    };
    let keep = Keep::And(&lease.batch);
    let found = scan_stage(
        &recorder.ctx,
        stage,
        &recorder.state,
        RebuildPolicy::Needed,
        keep,
    );
    let found = found.map_err(OpsError::World)?;
    let batch = found
        .batches
        .iter()
        .find(|batch| batch.batch.key == lease.batch);
    let is_done = batch.is_some_and(|batch| batch.decision == Ok(Decision::UpToDate));
    if is_done && is_made(&recorder.state, &lease.stage, &lease.batch) {
        return Ok(refused(WhyRefused::AlreadyMade));
    }
    let is_same = batch.is_some_and(|batch| fingerprint(&found, batch) == lease.fingerprint);
    let why = match (is_same, holds) {
        (false, _) => Some(WhyRefused::Stale),
        (true, false) => Some(WhyRefused::LeaseExpired { at: lease.expires }),
        (true, true) => None,
    };
    let refusal = why.map(|why| refusals::refusal(lease, why));
    let given = LeasedAnswer {
        replaces: refusal.is_none(),
        ..given
    };
    let taken = accept_submission(recorder, stage, &found, asking, &given)?;
    Ok(Validated::Kept(taken, refusal))
}

/// The record of a leased batch after the run.
struct Recorded {
    files: Vec<String>,
    elements: Option<u64>,
    complete: bool,
}

fn recorded(opened: &OpenProject, lease: &Lease) -> Result<Recorded, OpsError> {
    let known = state_for_reading(opened)?;
    let stage = known.stages.get(&lease.stage);
    let record = stage
        .and_then(|stage| stage.batches.get(&lease.batch))
        .and_then(|batch| batch.record.as_ref());
    let files = record.into_iter().flat_map(|record| &record.outputs);
    Ok(Recorded {
        files: files.map(|made| made.path.to_string()).collect(),
        elements: record.and_then(|record| record.elements),
        complete: stage.is_some_and(|stage| stage.status == Some(Status::Complete)),
    })
}

/// Adds the result of the run.
fn add_result(
    submitted: &mut Submitted,
    lease: &Lease,
    report: &Report,
    recorded: Recorded,
    leases: &Leases,
    now: jiff::Timestamp,
) -> Result<(), OpsError> {
    let Some(stage) = report
        .stages
        .iter()
        .find(|stage| stage.stage == lease.stage)
    else {
        let why = WhyRefused::NotMade { problem: None };
        submitted.refused = Some(refusals::refusal(lease, why));
        return Ok(());
    };
    submitted.left = Some(left(stage, leases, lease, now)?);
    let failed = stage.failed.iter().find(|(batch, _)| *batch == lease.batch);
    if let Some((_, outcome)) = failed {
        submitted.violations = refusals::of_outcome(outcome);
        return Ok(());
    }
    if let Some(approval) = &stage.approval
        && stage.ran == 0
    {
        let problem = format!("the stage is waiting for approval by {}", approval.by);
        let why = WhyRefused::Blocked { problem };
        submitted.refused = Some(refusals::refusal(lease, why));
        return Ok(());
    }
    if stage.awaits.is_some() {
        submitted.accepted = true;
        submitted.more = true;
        return Ok(());
    }
    let reused = stage.ran == 0 && stage.status == StageStatus::Complete;
    if stage.ran == 0 && !reused {
        let modified = stage.altered.first();
        let modified = modified.map(|(_, file)| file.path.to_string());
        let why = match (stage.status, stage.why.clone(), modified) {
            (StageStatus::Modified, _, path) => WhyRefused::Modified { path },
            (StageStatus::Blocked, Some(problem), _) => WhyRefused::Blocked { problem },
            (_, problem, _) => WhyRefused::NotMade { problem },
        };
        submitted.refused = Some(refusals::refusal(lease, why));
        return Ok(());
    }
    submitted.accepted = true;
    submitted.output_files = recorded.files;
    submitted.element_count = recorded.elements;
    if recorded.complete {
        submitted.checkpoint = Some(layout::checkpoint(stage.number).to_string());
    }
    Ok(())
}

/// Returns the progress of the stage after the run.
fn left(
    stage: &StageReport,
    leases: &Leases,
    lease: &Lease,
    now: jiff::Timestamp,
) -> Result<Left, OpsError> {
    let done = stage.ran + stage.reused;
    let others = leases.all()?;
    let others = others.iter().filter(|other| {
        other.stage == lease.stage && other.batch != lease.batch && other.holds(now)
    });
    let rest = stage.batches.saturating_sub(done);
    let leased = (others.count() as u64).min(rest);
    Ok(Left {
        batches: stage.batches,
        done,
        leased,
        open: rest - leased,
    })
}
