//! Takes the answer of a client outside: judged, kept, and its batch made by the same run as any other.

use super::shapes::{Left, Refusal, Submitted};
use super::wording;
use super::workspace::{is_made, with_workspace};
use crate::ops::project::error::OpsError;
use crate::ops::project::open::open;
use crate::ops::project::opened::{Opened, state};
use crate::ops::project::request::Request;
use crate::ops::run::{Report, RunOptions, Silent, StageReport, StageStatus, StopFlag, run};
use crate::run::agents::external::{Asking, Given, TakenIn, fingerprint, take_in};
use crate::run::check::scan::{Keep, survey};
use crate::run::record::recorder::Recorder;
use milepost_core::model::checkpoint::Status;
use milepost_core::model::stage::Stage;
use milepost_core::plan::decide::{Decision, RebuildPolicy};
use milepost_core::plan::pending::Pending;
use milepost_core::plan::scan::StageScan;
use milepost_store::store::layout;
use milepost_store::store::leases::{Lease, LeaseState, Leases};
use serde_json::Value;
use std::io::Read as _;
use std::path::Path;

/// At most so much of an answer is read.
const MOST: u64 = 64 << 20;

/// An answer that is handed in.
#[derive(Debug, Clone, Default)]
pub struct Submission {
    /// The lease.
    pub lease: String,
    /// Who hands in; none: whoever has the lease.
    pub client: Option<String>,
    /// The answer; of another form than JSON a string. None: what lies at the output path of the lease.
    pub answer: Option<Value>,
}

/// What becomes of an answer before anything is made of it.
enum Taken {
    /// It is not taken.
    Refused(Refusal),
    /// It was taken in; where it is not published, with why.
    In(TakenIn, Option<Refusal>),
}

/// Takes the answer to a leased batch: what is right is kept, and when all is right the batch is made, checked and published. Otherwise
/// everything that is wrong is told, and the lease is kept. `stop` ends the making of the batch; the answer is kept then.
///
/// # Errors
/// When there is no project, its declarations are wrong, a run is at work in the workspace, or the disk fails.
pub fn submit_batch(
    request: &Request,
    submission: &Submission,
    stop: &StopFlag,
) -> Result<Submitted, OpsError> {
    let mut opened = open(request)?;
    opened.workspace.prepare(&opened.disk)?;
    let leases = Leases::lock(&opened.disk, &opened.workspace.layout)?;
    let mut told = Submitted {
        accepted: false,
        lease: submission.lease.clone(),
        stage: None,
        batch: None,
        refused: None,
        violations: Vec::new(),
        kept: 0,
        open: Vec::new(),
        quarantine: None,
        output_files: Vec::new(),
        element_count: None,
        more: false,
        left: None,
        checkpoint: None,
        expires: None,
    };
    let refuse = |refusal: Refusal, told: Submitted| Submitted {
        refused: Some(refusal),
        ..told
    };
    let Some(mut lease) = leases.get(&submission.lease)? else {
        return Ok(refuse(wording::unknown_lease(&submission.lease), told));
    };
    told.stage = Some(lease.stage.clone());
    told.batch = Some(lease.batch.clone());
    if let Some(refusal) = wording::not_theirs(&lease, submission.client.as_deref()) {
        return Ok(refuse(refusal, told));
    }
    if lease.state != LeaseState::Leased {
        return Ok(refuse(wording::over(&lease), told));
    }
    let file = leases.folder(&lease.id).join(&lease.answer);
    let text = match text(submission, &lease, &file) {
        Ok(text) => text,
        Err(refusal) => {
            told.expires = Some(lease.expires);
            return Ok(refuse(refusal, told));
        }
    };
    let asked = leases.request(&lease.id)?;
    let now = opened.clock.now();
    let command = format!(
        "submit_batch {} by {}",
        wording::place(&lease),
        lease.client
    );
    let taken = with_workspace(&mut opened, request, &command, |opened, recorder| {
        let given = Given {
            lease: &lease,
            request: &asked,
            text: &text,
            replaces: true,
        };
        take(opened, recorder, given, lease.holds(now))
    })?;
    let (taken, refusal) = match taken {
        Taken::Refused(refusal) => return Ok(refuse(refusal, told)),
        Taken::In(taken, refusal) => (taken, refusal),
    };
    let ids: Vec<&str> = lease.questions.iter().map(|(id, _)| id.as_str()).collect();
    let wrong = taken.wrong.iter();
    told.violations = wrong.map(|wrong| wording::violation(wrong, &ids)).collect();
    told.kept = taken.kept;
    told.open = taken.open;
    told.quarantine = taken.quarantine;
    if refusal.is_some() {
        told.refused = refusal;
        return Ok(told);
    }
    told.expires = Some(lease.expires);
    if !told.violations.is_empty() {
        return Ok(told);
    }
    let options = RunOptions {
        targets: vec![wording::place(&lease)],
        ..RunOptions::default()
    };
    let request = &Request {
        command,
        ..request.clone()
    };
    let report = run(request, &options, &mut Silent, stop)?;
    let made = made(&opened, &lease)?;
    tell(&mut told, &lease, &report, made, &leases, now)?;
    if told.accepted {
        lease.state = LeaseState::Submitted;
        leases.put(&lease)?;
        told.expires = None;
    }
    Ok(told)
}

/// The text of an answer.
fn text(submission: &Submission, lease: &Lease, file: &Path) -> Result<String, Refusal> {
    match &submission.answer {
        Some(Value::String(text)) => return Ok(text.clone()),
        Some(value) => return Ok(value.to_string()),
        None => {}
    }
    let shown = file.display().to_string();
    let missing = |why: &str| wording::answer_missing(lease, &shown, why);
    match std::fs::symlink_metadata(file) {
        Ok(found) if found.is_file() => {}
        Ok(_) => return Err(missing("there is no plain file at it")),
        Err(_) => return Err(missing("there is no such file")),
    }
    let mut bytes = Vec::new();
    let read = std::fs::File::open(file).and_then(|file| file.take(MOST).read_to_end(&mut bytes));
    read.map_err(|error| missing(&error.to_string()))?;
    String::from_utf8(bytes).map_err(|_| missing("it is not UTF-8"))
}

/// Takes an answer in, as far as its batch is still the one that was leased.
fn take(
    opened: &Opened,
    recorder: &mut Recorder<'_>,
    given: Given<'_>,
    holds: bool,
) -> Result<Taken, OpsError> {
    let lease = given.lease;
    let stage = opened.pipeline.stage(&lease.stage);
    let Some((stage, asking)) =
        stage.and_then(|stage| Some((stage, Asking::of(stage, &lease.out)?)))
    else {
        return Ok(Taken::Refused(wording::stale(lease)));
    };
    let found = look(recorder, stage, &lease.batch)?;
    let batch = found
        .batches
        .iter()
        .find(|batch| batch.batch.key == lease.batch);
    let is_done = batch.is_some_and(|batch| batch.decision == Ok(Decision::Reused));
    if is_done && is_made(&recorder.state, &lease.stage, &lease.batch) {
        return Ok(Taken::Refused(wording::already_made(lease)));
    }
    let is_same = batch.is_some_and(|batch| fingerprint(&found, batch) == lease.fingerprint);
    let refusal = if !is_same {
        Some(wording::stale(lease))
    } else if holds {
        None
    } else {
        Some(wording::expired(lease))
    };
    let given = Given {
        replaces: refusal.is_none(),
        ..given
    };
    let taken = take_in(recorder, stage, &found, asking, &given)?;
    Ok(Taken::In(taken, refusal))
}

fn look(recorder: &Recorder<'_>, stage: &Stage, batch: &str) -> Result<StageScan, OpsError> {
    let found = survey(
        &recorder.ctx,
        stage,
        &recorder.state,
        &Pending::default(),
        &|_| RebuildPolicy::Needed,
        Keep::And(batch),
    );
    found.map_err(OpsError::World)
}

/// What is recorded of the batch of a lease after the run.
struct MadeOf {
    files: Vec<String>,
    elements: Option<u64>,
    complete: bool,
}

fn made(opened: &Opened, lease: &Lease) -> Result<MadeOf, OpsError> {
    let known = state(&opened.workspace.layout)?;
    let stage = known.stages.get(&lease.stage);
    let record = stage
        .and_then(|stage| stage.batches.get(&lease.batch))
        .and_then(|batch| batch.record.as_ref());
    let files = record.into_iter().flat_map(|record| &record.outputs);
    Ok(MadeOf {
        files: files.map(|made| made.path.to_string()).collect(),
        elements: record.and_then(|record| record.elements),
        complete: stage.is_some_and(|stage| stage.status == Some(Status::Complete)),
    })
}

/// Tells what the run made of the answer.
fn tell(
    told: &mut Submitted,
    lease: &Lease,
    report: &Report,
    made: MadeOf,
    leases: &Leases,
    now: jiff::Timestamp,
) -> Result<(), OpsError> {
    let Some(stage) = report
        .stages
        .iter()
        .find(|stage| stage.stage == lease.stage)
    else {
        told.refused = Some(wording::not_made("not_made", lease, "no run reached it"));
        return Ok(());
    };
    told.left = Some(left(stage, leases, lease, now)?);
    let failed = stage.failed.iter().find(|(batch, _)| *batch == lease.batch);
    if let Some((_, outcome)) = failed {
        told.violations = wording::of_outcome(outcome);
        return Ok(());
    }
    if stage.awaits.is_some() {
        told.accepted = true;
        told.more = true;
        return Ok(());
    }
    let reused = stage.ran == 0 && stage.status == StageStatus::Complete;
    if stage.ran == 0 && !reused {
        let why = match (&stage.why, stage.altered.first()) {
            (Some(why), _) => why.clone(),
            (None, Some((_, file))) => format!("somebody altered `{}`", file.path),
            (None, None) => "its stage is held".to_owned(),
        };
        let code = match stage.status {
            StageStatus::Blocked => "blocked",
            StageStatus::Altered => "altered",
            _ => "not_made",
        };
        told.refused = Some(wording::not_made(code, lease, &why));
        return Ok(());
    }
    told.accepted = true;
    told.output_files = made.files;
    told.element_count = made.elements;
    if made.complete {
        told.checkpoint = Some(layout::checkpoint(stage.number).to_string());
    }
    Ok(())
}

/// How far the stage is after the run.
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
