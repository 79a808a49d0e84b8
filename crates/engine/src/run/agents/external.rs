//! Accepts submissions of external agents: keeps valid answers, and moves invalid ones to quarantine.

use crate::run::batch::outcomes::called_event;
use crate::run::batch::set_aside::set_aside;
use crate::run::error::RunError;
use crate::run::record::begin;
use crate::run::record::recorder::Recorder;
use crate::steps::agent::submission::{SubmissionRules, check_submission};
use milepost_core::base::digest::Digest;
use milepost_core::base::path::Root;
use milepost_core::base::words::count;
use milepost_core::model::call::{ANSWERED, CallResponse, SentCall};
use milepost_core::model::event::{Event, EventType};
use milepost_core::model::money::NanoUsd;
use milepost_core::model::outcome::{Outcome, OutcomeKind};
use milepost_core::model::pipeline::Asset;
use milepost_core::model::stage::Stage;
use milepost_core::model::step::AnswerForm;
use milepost_core::model::usage::Usage;
use milepost_core::plan::expand::batch_name;
use milepost_core::plan::scan::{BatchScan, StageScan};
use milepost_store::check::schemas::Schemas;
use milepost_store::store::answers::{Answer, Answers, Sharing};
use milepost_store::store::calls::CallLog;
use milepost_store::store::layout;
use milepost_store::store::leases::Lease;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

pub(crate) use crate::steps::agent::reply_matcher::{ReplyError, ReplyErrorKind};
pub(crate) use crate::steps::agent::request_parts::RequestParts;

/// The part of an agent step that answers are checked by.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AnswerFormat<'a> {
    pub(crate) form: AnswerForm,
    pub(crate) schema: Option<&'a Asset>,
    /// Defaults for missing keys.
    pub(crate) defaults: &'a Map<String, Value>,
}

impl<'a> AnswerFormat<'a> {
    /// Returns the format of the agent step that makes an output; `None` if no agent makes it.
    pub(crate) fn of(stage: &'a Stage, out: &str) -> Option<Self> {
        let mut steps = stage.steps.iter().filter(|step| step.out == out);
        let asked = steps.find_map(|step| step.kind.agent())?;
        Some(Self {
            form: asked.answer,
            schema: asked.schema.as_ref(),
            defaults: &asked.defaults,
        })
    }
}

/// Returns the fingerprint of a batch as one digest.
pub(crate) fn fingerprint(found: &StageScan, batch: &BatchScan) -> Digest {
    Digest::of(format!(
        "{} {}",
        found.shared.coarse_id(),
        batch.own.coarse_id()
    ))
}

#[derive(Debug, Default)]
pub(crate) struct SubmissionResult {
    /// How many valid answers were kept.
    pub(crate) kept: u64,
    pub(crate) wrong: Vec<ReplyError>,
    /// The ids of questions without a valid answer; `answer` for a batch without questions.
    pub(crate) open: Vec<String>,
    /// The quarantine folder of invalid answers, in the workspace.
    pub(crate) quarantine: Option<String>,
}

/// The answer of an external agent.
pub(crate) struct LeasedAnswer<'a> {
    pub(crate) lease: &'a Lease,
    /// The bytes of the request.
    pub(crate) request: &'a [u8],
    pub(crate) text: &'a str,
    /// True if it may replace kept answers.
    pub(crate) replaces: bool,
}

/// Records an answer as a call, keeps valid answers, and moves invalid ones to quarantine. The batch does not run yet.
///
/// # Errors
/// When the disk fails, or the schema of an answer is invalid.
pub(crate) fn accept_submission(
    recorder: &mut Recorder<'_>,
    stage: &Stage,
    found: &StageScan,
    format: AnswerFormat<'_>,
    submission: &LeasedAnswer<'_>,
) -> Result<SubmissionResult, RunError> {
    let ctx = recorder.ctx;
    let lease = submission.lease;
    let world = |error: &dyn std::fmt::Display| RunError::World(error.to_string());
    let schemas = Schemas::default();
    let schema = format.schema.map(|asset| schemas.get(asset)).transpose();
    let schema = schema.map_err(|error| world(&error))?;
    let judged = check_submission(
        submission.text,
        &SubmissionRules {
            ids: lease.questions.iter().map(|(id, _)| id.as_str()).collect(),
            schema: schema.as_deref(),
            keeps_id: lease.keeps_id,
            form: format.form,
            defaults: format.defaults,
        },
    );
    if !recorder.state.stages.contains_key(&stage.name) {
        begin::begin(recorder, stage, found, 0)?;
        begin::handoff(recorder, stage)?;
    }
    let number = record_call(recorder, stage, submission)?;
    let project = ctx.files.folder(Root::Project);
    let answers = Answers::open(ctx.disk, project, ctx.layout, recorder.run_id());
    let addresses: Vec<Digest> = lease.addresses().collect();
    let known = answers.get_all(&addresses).map_err(|why| world(&why))?;
    let mut has: Vec<bool> = known.iter().map(Option::is_some).collect();
    let mut right = Vec::new();
    for (place, answer) in judged.right {
        if has[place] && !submission.replaces {
            continue;
        }
        has[place] = true;
        right.push(Answer {
            address: addresses[place],
            answer,
            schema: format.schema.map(|asset| asset.digest),
            agent: format!("external {}", lease.client),
            call: (recorder.run_id().to_owned(), number),
        });
    }
    let sharing = match lease.address {
        Some(_) => Sharing::Workspace,
        None => Sharing::Project,
    };
    answers
        .put_all(&right, sharing)
        .map_err(|why| world(&why))?;
    // Questions with a kept answer need no other.
    let answered: BTreeSet<&str> = lease
        .questions
        .iter()
        .zip(&has)
        .filter_map(|((id, _), has)| has.then_some(id.as_str()))
        .collect();
    let mut wrong = judged.wrong;
    wrong.retain(|wrong| {
        let of_answered = wrong.id.as_deref().is_some_and(|id| answered.contains(id));
        wrong.kind != ReplyErrorKind::Missing || !of_answered
    });
    let open = if lease.questions.is_empty() {
        let open = has.iter().any(|has| !has);
        open.then(|| "answer".to_owned()).into_iter().collect()
    } else {
        let ids = lease.questions.iter().map(|(id, _)| id);
        ids.filter(|id| !answered.contains(id.as_str()))
            .cloned()
            .collect()
    };
    let mut taken = SubmissionResult {
        kept: right.len() as u64,
        wrong,
        open,
        quarantine: None,
    };
    if !taken.wrong.is_empty() {
        taken.quarantine = refuse(recorder, stage, lease, number, &taken)?;
    }
    close(recorder)?;
    Ok(taken)
}

/// Records the answer as a call of its agent, and returns the number of the call.
fn record_call(
    recorder: &mut Recorder<'_>,
    stage: &Stage,
    submission: &LeasedAnswer<'_>,
) -> Result<u64, RunError> {
    let ctx = recorder.ctx;
    let lease = submission.lease;
    let now = ctx.clock.now();
    let took = now.as_millisecond() - lease.since.as_millisecond();
    let took_ms = u64::try_from(took).unwrap_or(0);
    let sent = SentCall {
        provider: format!("external {}", lease.client),
        model: lease.client.clone(),
        ..lease.sent.clone()
    };
    let raw = ctx.redactor.bytes(submission.text.as_bytes());
    let response = CallResponse {
        outcome: ANSWERED.to_owned(),
        message: None,
        usage: Usage::default(),
        cost: Some(NanoUsd::ZERO),
        estimated: None,
        served: Some(lease.client.clone()),
        request_id: Some(lease.id.clone()),
        text: Some(submission.text.to_owned()),
        structured: None,
        stop: Some("end".to_owned()),
        raw: Digest::of(""),
        took_ms,
    };
    let response = response.without_keys(ctx.redactor, &raw);
    let world = |error: &dyn std::fmt::Display| RunError::World(error.to_string());
    let mut log = CallLog::new(ctx.disk, ctx.layout, recorder.run_id());
    let number = log.sent(now, &sent, submission.request);
    let number = number.map_err(|error| world(&error))?;
    let kept = log.received(now, number, &response, &raw);
    kept.map_err(|error| world(&error))?;
    let name = batch_name(&stage.name, &lease.batch);
    let questions = count(sent.questions, "question", "questions");
    let summary = format!("{} answered {questions} of {name}", lease.client);
    let event = called_event(&stage.name, &lease.batch, number, &sent, &response);
    let refs = ["request", "answer"].map(|what| {
        let run = recorder.run_id();
        layout::call(run, number, what).to_string()
    });
    recorder.record_with(
        EventType::Invoke,
        stage.actor(),
        event,
        summary,
        refs.into(),
    )?;
    Ok(number)
}

/// Records the errors, moves the answer to quarantine, and returns the folder.
fn refuse(
    recorder: &mut Recorder<'_>,
    stage: &Stage,
    lease: &Lease,
    number: u64,
    taken: &SubmissionResult,
) -> Result<Option<String>, RunError> {
    let name = batch_name(&stage.name, &lease.batch);
    let lines: Vec<String> = taken.wrong.iter().map(ReplyError::line).collect();
    let message = format!("the answer of {} is invalid", lease.client);
    let outcome = Outcome::new(OutcomeKind::Schema, message);
    let kept = set_aside(recorder, &name, &outcome, None, &[(number, lines.clone())])?;
    let wrong = count(lines.len() as u64, "violation", "violations");
    let summary = format!(
        "{name}, call {number}: {}, {wrong}",
        count(taken.kept, "valid answer", "valid answers")
    );
    let event = Event::AnswersRefused {
        stage: stage.name.clone(),
        batch: lease.batch.clone(),
        number,
        valid: taken.kept,
        violations: lines,
    };
    let refs = kept.iter().cloned().collect();
    recorder.record_with(EventType::Review, stage.actor(), event, summary, refs)?;
    Ok(kept)
}

/// Ends the recorded run, in which no stage ran.
fn close(recorder: &mut Recorder<'_>) -> Result<(), RunError> {
    recorder.end_without_stages("held", "an answer was accepted")?;
    recorder.flush()
}
