//! One request to an agent that costs something: recorded, sent within its limits, tried again as the fault says.

use super::ready::{ANSWERED, Ready, Who};
use crate::agents::cli::{Ended, Output, Tool};
use crate::agents::fault::{CallFault, FaultKind};
use crate::agents::policy::{Next, after};
use crate::agents::request::{Reply, Request, Stop};
use crate::base::digest::Digest;
use crate::model::call::{Heard, Sent};
use crate::model::outcome::{Outcome, OutcomeKind};
use crate::steps::command::{CommandSpec, Deadline, Exit, run_command};
use crate::steps::work::{Work, output_failure};
use serde_json::json;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// Tries of one request when a service is busy or out of reach.
const TRIES: u32 = 6;

/// Time for the check of a key.
const CHECK: Duration = Duration::from_secs(20);

/// Who asks, and how long one call may take.
pub struct Caller<'a> {
    /// The agent.
    pub ready: &'a Ready,
    /// One call.
    pub timeout: Duration,
    /// Calls of the batch so far.
    pub count: u32,
}

/// A request that was not answered.
pub enum Unanswered {
    /// It is too long: it may be sent in parts.
    TooLong(Outcome),
    /// The batch fails.
    Failed(Outcome),
}

impl Caller<'_> {
    /// Sends a request with so many questions, until it is answered. Gives the number of the call, and the reply.
    ///
    /// # Errors
    /// When it is not answered, must not be sent, or the run is stopped.
    pub fn call(
        &mut self,
        work: &mut Work<'_>,
        request: &Request,
        questions: u64,
    ) -> Result<(u64, Reply), Unanswered> {
        self.check(work)?;
        let mut tried = 0;
        loop {
            tried += 1;
            self.count += 1;
            let fault = match self.once(work, request, questions)? {
                Ok(answered) => return Ok(answered),
                Err(fault) => fault,
            };
            let outcome = outcome_of(self.ready, &fault);
            let jitter = jitter(work.name, self.count);
            match after(&fault, tried, jitter) {
                Next::Retry { wait } if tried < TRIES && has_time(work, wait) => {
                    work.watcher.trying_again(self.count, &outcome, wait);
                    work.stop.wait(wait);
                    if work.stop.stopping() {
                        return Err(Unanswered::Failed(cancelled()));
                    }
                }
                Next::Shrink => return Err(Unanswered::TooLong(outcome.for_good())),
                Next::Retry { .. } | Next::Fail | Next::Stop => {
                    return Err(Unanswered::Failed(outcome.for_good()));
                }
            }
        }
    }

    /// The check before the first call of a run: a wrong key is told with nothing spent.
    fn check(&self, work: &Work<'_>) -> Result<(), Unanswered> {
        let Who::Api(client) = &self.ready.who else {
            return Ok(());
        };
        let cancelled = || work.alarm.rang().is_some();
        let checked = self
            .ready
            .checked
            .get_or_init(|| client.check(CHECK, &cancelled));
        match checked {
            Err(fault) if matches!(fault.kind, FaultKind::Auth | FaultKind::Money) => {
                let outcome = outcome_of(self.ready, fault).for_good();
                Err(Unanswered::Failed(outcome))
            }
            // What else went wrong, a call will tell: not every server has a list of models.
            _ => Ok(()),
        }
    }

    fn once(
        &self,
        work: &mut Work<'_>,
        request: &Request,
        questions: u64,
    ) -> Result<Result<(u64, Reply), CallFault>, Unanswered> {
        let ready = self.ready;
        let body = match &ready.who {
            Who::Api(client) => client.body(request),
            _ => described(request).into_bytes(),
        };
        let likely_input = request.likely_tokens();
        let sent = Sent {
            stage: work.stage.name.clone(),
            batch: batch_of(work.name, &work.stage.name),
            attempt: self.count,
            agent: ready.agent.name.clone(),
            provider: ready.agent.describe(),
            model: ready.model().to_owned(),
            asked: asked(request),
            request: Digest::of(&body),
            questions,
            likely_input,
            most_output: request.max_tokens,
            reserved: ready.most(likely_input),
        };
        let alarm = std::sync::Arc::clone(work.alarm);
        let stopped = move || alarm.rang().is_some();
        let tokens = likely_input + request.max_tokens;
        let Some(mut pass) = ready.limits.enter(tokens, &stopped) else {
            return Err(Unanswered::Failed(cancelled()));
        };
        let number = work
            .calls
            .sending(&sent, &body)
            .map_err(Unanswered::Failed)?;
        let within = (work.left)().map_or(self.timeout, |left| left.min(self.timeout));
        let until = Deadline::after(within);
        let replied = match &ready.who {
            Who::Api(client) => client.call(&body, within, &stopped),
            Who::Tool(tool) => run(work, tool, request, ready, within)?,
            Who::Replay(heard) => replay(heard, &sent),
            Who::Rules(_) | Who::Jq(_) => Err(CallFault::new(
                FaultKind::BadRequest,
                "a free agent is not called",
            )),
        };
        let took_ms = u64::try_from(within.saturating_sub(until.left()).as_millis());
        let took_ms = took_ms.unwrap_or(u64::MAX);
        let (heard, raw) = match &replied {
            Ok(reply) => (heard_of(ready, reply, took_ms), &reply.raw),
            Err(fault) => (heard_of_fault(ready, fault, took_ms), &fault.raw),
        };
        pass.settle(heard.usage.total());
        drop(pass);
        if let Err(fault) = &replied
            && let Some(wait) = fault.retry_after
        {
            ready.limits.hold(wait);
        }
        let heard = work
            .calls
            .heard(number, &sent, heard, raw)
            .map_err(Unanswered::Failed)?;
        work.watcher.called(number, &sent, &heard);
        Ok(replied.map(|reply| (number, reply)))
    }
}

/// What is asked, whoever is asked, as one text: it stands for the request where there are no exact bytes.
fn described(request: &Request) -> String {
    let attachments: Vec<_> = request
        .attachments
        .iter()
        .map(|file| {
            json!([
                file.name,
                file.media_type,
                Digest::of(&file.bytes).to_string()
            ])
        })
        .collect();
    let all = json!({
        "system": request.system,
        "prompt": request.prompt,
        "attachments": attachments,
        "schema": request.schema,
    });
    all.to_string()
}

/// The digest of what is asked, whoever is asked. Where the text is divided into what stays and what changes does not matter.
pub fn asked(request: &Request) -> Digest {
    let whole = Request {
        system: None,
        prompt: format!(
            "{}{}",
            request.system.as_deref().unwrap_or_default(),
            request.prompt
        ),
        ..request.clone()
    };
    Digest::of(described(&whole))
}

/// Starts a command line. Its standard output is kept apart from its complaints, which go to the log.
fn run(
    work: &mut Work<'_>,
    tool: &Tool,
    request: &Request,
    ready: &Ready,
    within: Duration,
) -> Result<Result<Reply, CallFault>, Unanswered> {
    let invocation = match tool.invocation(request, None, ready.agent.limits.max_usd_per_call) {
        Ok(invocation) => invocation,
        Err(fault) => return Ok(Err(fault)),
    };
    let written = |name: &str, bytes: &[u8]| {
        let written = work.outs.beside(name, bytes);
        written.map_err(|error| Unanswered::Failed(output_failure("the request", error)))
    };
    let stdin = written(".request", &invocation.stdin)?;
    for (name, bytes) in &invocation.files {
        written(name, bytes)?;
    }
    for file in &request.attachments {
        written(&file.name, &file.bytes)?;
    }
    let answer = written(".answer", b"")?;
    let program: Vec<String> = ["sh", "-c", "exec \"$@\" > \"$MILEPOST_ANSWER\"", "sh"]
        .into_iter()
        .map(str::to_owned)
        .chain(invocation.argv)
        .collect();
    let mut environment: BTreeMap<String, String> = invocation.env.into_iter().collect();
    environment.extend(work.environment.clone());
    environment.insert("MILEPOST_ANSWER".to_owned(), answer.display().to_string());
    let environment: Vec<(String, String)> = environment.into_iter().collect();
    let mut complaints = Vec::new();
    let watcher = work.watcher;
    let exit = run_command(
        CommandSpec {
            program_and_args: &program,
            cwd: work.folder,
            env: &environment,
            stdin: Some(&stdin),
            timeout: within,
            grace: work.limits.grace,
            token: work.token,
            log: &mut complaints,
            log_cap: work.limits.log_cap,
        },
        work.stop,
        &mut |child| watcher.started(child),
    );
    let _ = work.log.write_all(&complaints);
    let stdout = read_capped(&answer).unwrap_or_default();
    // What a failed batch leaves is set aside.
    if let Cow::Owned(hidden) = work.calls.without_keys(&stdout) {
        written(".answer", &hidden)?;
    }
    let ended = match exit {
        Ok(Exit::Code(code)) => Ended::Code(code),
        Ok(Exit::Signal(signal)) => Ended::Signal(signal),
        Ok(Exit::TimedOut) => Ended::TimedOut,
        Ok(Exit::Cancelled) => Ended::Cancelled,
        Err(error) => {
            let fault = CallFault::new(FaultKind::BadRequest, error.to_string());
            return Ok(Err(fault));
        }
    };
    let output = Output {
        ended,
        stdout: &stdout,
        stderr: &complaints,
    };
    Ok(tool.read(None, output))
}

/// At most so much of an answer is read.
const MOST: u64 = 64 << 20;

fn read_capped(path: &Path) -> std::io::Result<Vec<u8>> {
    use std::io::Read as _;
    let mut bytes = Vec::new();
    std::fs::File::open(path)?
        .take(MOST)
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// What was heard before, to the same request.
fn replay(heard: &BTreeMap<String, Heard>, sent: &Sent) -> Result<Reply, CallFault> {
    let Some(heard) = heard.get(&sent.asked.to_string()) else {
        return Err(CallFault::new(
            FaultKind::BadRequest,
            format!(
                "no recorded answer to this request ({}): record it by a run with the agent that was recorded, and copy \
                 `.milepost/calls` of its workspace",
                sent.asked
            ),
        ));
    };
    let text = heard.text.clone().unwrap_or_default();
    Ok(Reply {
        raw: text.clone().into_bytes(),
        text,
        structured: heard.structured.clone(),
        stop: match heard.stop.as_deref() {
            None | Some("end") => Stop::End,
            Some("length") => Stop::Length,
            Some("refused") => Stop::Refused,
            Some(other) => Stop::Other(other.to_owned()),
        },
        usage: crate::model::usage::Usage::default(),
        told_cost: None,
        asked_model: sent.model.clone(),
        served_model: heard.served.clone(),
        request_id: None,
    })
}

fn heard_of(ready: &Ready, reply: &Reply, took_ms: u64) -> Heard {
    let stop = match &reply.stop {
        Stop::End => "end",
        Stop::Length => "length",
        Stop::Refused => "refused",
        Stop::Other(other) => other,
    };
    Heard {
        outcome: ANSWERED.to_owned(),
        message: None,
        usage: reply.usage,
        cost: ready.cost(&reply.usage, reply.told_cost),
        served: reply.served_model.clone(),
        request_id: reply.request_id.clone(),
        text: Some(reply.text.clone()),
        structured: reply.structured.clone(),
        stop: Some(stop.to_owned()),
        raw: Digest::of(&reply.raw),
        took_ms,
    }
}

fn heard_of_fault(ready: &Ready, fault: &CallFault, took_ms: u64) -> Heard {
    // Of what never reached anybody, or was refused at the door, nothing is charged.
    let is_free = matches!(
        fault.kind,
        FaultKind::Auth
            | FaultKind::Money
            | FaultKind::RateLimited
            | FaultKind::Overloaded
            | FaultKind::BadRequest
            | FaultKind::TooLong
            | FaultKind::Connect
            | FaultKind::Status(_)
    );
    let cost = match fault.usage.total() {
        0 if is_free && fault.told_cost.is_none() => Some(crate::model::money::NanoUsd::ZERO),
        0 => fault.told_cost,
        _ => ready.cost(&fault.usage, fault.told_cost),
    };
    Heard {
        outcome: kind_of(fault.kind).name().to_owned(),
        message: Some(fault.message.clone()),
        usage: fault.usage,
        cost,
        served: None,
        request_id: fault.request_id.clone(),
        text: None,
        structured: None,
        stop: None,
        raw: Digest::of(&fault.raw),
        took_ms,
    }
}

fn kind_of(kind: FaultKind) -> OutcomeKind {
    match kind {
        FaultKind::Auth => OutcomeKind::Auth,
        FaultKind::Money => OutcomeKind::Budget,
        FaultKind::Connect => OutcomeKind::Connect,
        FaultKind::Timeout => OutcomeKind::Timeout,
        FaultKind::Cut => OutcomeKind::Cut,
        FaultKind::Cancelled => OutcomeKind::Cancelled,
        FaultKind::ToolFailed => OutcomeKind::Exit,
        FaultKind::Unreadable => OutcomeKind::Parse,
        FaultKind::RateLimited
        | FaultKind::Overloaded
        | FaultKind::TooLong
        | FaultKind::BadRequest
        | FaultKind::Status(_) => OutcomeKind::Status,
    }
}

fn outcome_of(ready: &Ready, fault: &CallFault) -> Outcome {
    let message = format!("agent `{}`: {}", ready.agent.name, fault.message);
    let mut outcome = Outcome::new(kind_of(fault.kind), message);
    if fault.kind == FaultKind::Auth {
        "AuthenticationError".clone_into(&mut outcome.code);
    }
    outcome
}

fn cancelled() -> Outcome {
    Outcome::new(OutcomeKind::Cancelled, "the run was stopped")
}

fn has_time(work: &Work<'_>, wait: Duration) -> bool {
    (work.left)().is_none_or(|left| left > wait)
}

/// The batch in `stage/batch`; empty for the only batch of a stage.
fn batch_of(name: &str, stage: &str) -> String {
    let rest = name.strip_prefix(stage).unwrap_or_default();
    rest.strip_prefix('/').unwrap_or_default().to_owned()
}

/// Spreads waits, the same way each time for the same call of the same batch.
fn jitter(name: &str, count: u32) -> f64 {
    let digest = Digest::of(format!("{name} {count}"));
    f64::from(digest.bytes()[0]) / 255.0
}
