//! One request to an agent that costs something: recorded, sent within its limits, tried again as the fault says.

use super::gather::{Came, Desk, Waited};
use super::heard::reply_of;
use super::heard::{TRIES, heard_of, heard_of_fault, outcome_of};
use super::ready::{Ready, Who};
use crate::steps::calls::Batched;
use crate::steps::command::{CommandSpec, Deadline, Exit, run_command};
use crate::steps::work::{Work, output_failure};
use milepost_agents::api::BatchApi;
use milepost_agents::cli::{CommandExit, CommandOutput, Tool};
use milepost_agents::fault::{CallFault, FaultKind};
use milepost_agents::policy::{Next, after};
use milepost_agents::request::{AgentRequest, Reply};
use milepost_core::base::digest::Digest;
use milepost_core::model::call::{Heard, Sent};
use milepost_core::model::outcome::{Outcome, OutcomeKind};
use milepost_core::model::retry;
use serde_json::json;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// Returns how often one request is sent at most, whatever the faults: with `tries` as the agent declares them, and `attempts` as
/// the step does.
pub(crate) fn most_tries(tries: Option<u32>, attempts: u32) -> u32 {
    tries.unwrap_or(TRIES.max(attempts)).max(1)
}

/// Time for the check of a key.
const CHECK: Duration = Duration::from_secs(20);

/// Who asks, and how long one call may take.
pub(crate) struct Caller<'a> {
    /// The agent.
    pub(crate) ready: &'a Ready,
    /// One call.
    pub(crate) timeout: Duration,
    /// As declared: with 1, what failed is not sent again, unless nobody took it or the agent says how often.
    pub(crate) attempts: u32,
    /// Calls of the batch so far.
    pub(crate) count: u32,
}

/// How long no call is made because a limit is used up.
const LONGEST_REST: Duration = Duration::from_mins(1);

/// How long a request in a batch is waited for: providers end a batch after 24 hours.
const BATCH: Duration = Duration::from_hours(25);

/// A request that was not answered.
pub(crate) enum Unanswered {
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
    pub(crate) fn call(
        &mut self,
        work: &mut Work<'_>,
        request: &AgentRequest,
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
            let mut outcome = outcome_of(&self.ready.agent, &fault);
            if let Some(wait) = fault
                .retry_after
                .filter(|&wait| retry::is_too_long(Some(wait)))
            {
                let wait = milepost_core::base::duration::show_duration(wait);
                outcome.message = format!("{}, to be called again in {wait}", outcome.message);
            }
            let jitter = retry::jitter(work.name, self.count);
            let next = match after(&fault, tried, jitter) {
                // It waits for others in the next batch anyway.
                Next::Retry { .. } if is_over_alone(self.ready, fault.kind) => Next::Retry {
                    wait: Duration::ZERO,
                },
                next => next,
            };
            // Whoever is too busy has not begun.
            let is_busy = matches!(fault.kind, FaultKind::RateLimited | FaultKind::Overloaded);
            let tries = match self.ready.agent.limits.tries {
                Some(tries) => tries,
                None if is_busy => TRIES,
                // A command line that failed did begin, as a program of a step does: the step says how often it is started.
                None if fault.kind == FaultKind::ToolFailed => self.attempts,
                None if self.attempts > 1 => TRIES,
                None => 1,
            };
            match next {
                Next::Retry { wait } if tried < tries && has_time(work, wait) => {
                    let wait = wait.min(work.limits.pace.retry);
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
        if work.is_rehearsed {
            return Ok(());
        }
        let cancelled = || work.alarm.rang().is_some();
        let checked = self
            .ready
            .checked
            .get_or_init(|| client.check(CHECK, &cancelled));
        match checked {
            Err(fault) if matches!(fault.kind, FaultKind::Auth | FaultKind::Money) => {
                let outcome = outcome_of(&self.ready.agent, fault).for_good();
                Err(Unanswered::Failed(outcome))
            }
            // What else went wrong, a call will tell: not every server has a list of models.
            _ => Ok(()),
        }
    }

    fn once(
        &self,
        work: &mut Work<'_>,
        request: &AgentRequest,
        questions: u64,
    ) -> Result<Result<(u64, Reply), CallFault>, Unanswered> {
        let ready = self.ready;
        if matches!(ready.who, Who::Outside) && !work.is_rehearsed {
            return Err(Unanswered::Failed(awaited(&ready.agent.name)));
        }
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
            reserved: ready.costs.most(likely_input),
            batched: ready.agent.is_batched(),
        };
        let alarm = std::sync::Arc::clone(work.alarm);
        let stopped = move || alarm.rang().is_some();
        let tokens = likely_input + request.max_tokens;
        let Some(mut pass) = ready.limits.enter(tokens, &stopped) else {
            return Err(Unanswered::Failed(cancelled()));
        };
        if let (Who::Api(client), true, Some(book)) =
            (&ready.who, sent.batched, work.calls.batched())
            && let Some(api) = client.batches()
        {
            return self.in_batch(work, api, book, sent, body, &stopped);
        }
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
            Who::Rules(_) | Who::Jq(_) | Who::Outside => Err(CallFault::new(
                FaultKind::BadRequest,
                "this agent is not called",
            )),
        };
        let took_ms = u64::try_from(within.saturating_sub(until.left()).as_millis());
        let took_ms = took_ms.unwrap_or(u64::MAX);
        let (heard, raw) = match &replied {
            Ok(reply) => (heard_of(&ready.costs, &sent, reply, took_ms), &reply.raw),
            Err(fault) => (
                heard_of_fault(&ready.costs, &sent, fault, took_ms),
                &fault.raw,
            ),
        };
        pass.settle(heard.usage.total());
        drop(pass);
        if let Err(fault) = &replied
            && let Some(wait) = fault.retry_after
            && !retry::is_too_long(Some(wait))
        {
            ready.limits.hold(wait);
        }
        if let Who::Api(client) = &ready.who
            && let Some(wait) = client.cooldown()
        {
            // A clock that is wrong, or a day's limit, must not hold up a run for long: the server then says it again.
            ready.limits.hold(wait.min(LONGEST_REST));
        }
        let heard = work
            .calls
            .heard(number, &sent, heard, raw)
            .map_err(Unanswered::Failed)?;
        work.watcher.called(number, &sent, &heard);
        Ok(replied.map(|reply| (number, reply)))
    }

    /// The same in a batch with what other attempts ask.
    fn in_batch(
        &self,
        work: &mut Work<'_>,
        api: &dyn BatchApi,
        book: &dyn Batched,
        mut sent: Sent,
        body: Vec<u8>,
        stopped: &(dyn Fn() -> bool + Sync),
    ) -> Result<Result<(u64, Reply), CallFault>, Unanswered> {
        let ready = self.ready;
        let watcher = work.watcher;
        let desk = Desk {
            agent: &ready.agent,
            costs: &ready.costs,
            api,
            calls: work.calls,
            book,
            stopped,
            running: &|| watcher.running(),
            updated: &|update| watcher.provider_batch(update),
            pace: work.limits.pace,
        };
        let number = ready.gatherer.hand_in(&desk, &mut sent, body);
        let number = number.map_err(Unanswered::Failed)?;
        let replied = self.wait(work, &desk, number, &sent);
        ready.gatherer.settled();
        replied
    }

    /// Waits for what comes of a request in a batch, and records it.
    fn wait(
        &self,
        work: &Work<'_>,
        desk: &Desk<'_>,
        number: u64,
        sent: &Sent,
    ) -> Result<Result<(u64, Reply), CallFault>, Unanswered> {
        let ready = self.ready;
        let until = Deadline::after(BATCH);
        let waited = ready.gatherer.wait(desk, number, until);
        let took = BATCH.saturating_sub(until.left()).as_millis();
        let took_ms = u64::try_from(took).unwrap_or(u64::MAX);
        let came = match waited {
            Waited::Came(came) => *came,
            Waited::Unsent => {
                let heard = work.calls.heard(number, sent, Heard::never_sent(), b"");
                heard.map_err(Unanswered::Failed)?;
                return Err(Unanswered::Failed(cancelled()));
            }
            Waited::Left if until.is_over() => {
                let message = "its batch was not done within 25 hours: run again to wait on";
                let outcome = Outcome::new(OutcomeKind::Timeout, message).for_good();
                return Err(Unanswered::Failed(outcome));
            }
            Waited::Left => return Err(Unanswered::Failed(cancelled())),
        };
        let (replied, is_final) = match came {
            Came::Result(result) => (result, false),
            Came::Refused(fault) => (Err(fault), true),
            Came::Lost => {
                let message = "its batch is not to be found at the provider";
                return Ok(Err(CallFault::new(FaultKind::Cut, message)));
            }
            Came::Broken(outcome) => return Err(Unanswered::Failed(outcome)),
        };
        let (heard, raw) = match &replied {
            Ok(reply) => (heard_of(&ready.costs, sent, reply, took_ms), &reply.raw),
            Err(fault) => (
                heard_of_fault(&ready.costs, sent, fault, took_ms),
                &fault.raw,
            ),
        };
        let heard = work.calls.heard(number, sent, heard, raw);
        let heard = heard.map_err(Unanswered::Failed)?;
        work.watcher.called(number, sent, &heard);
        match replied {
            Err(fault) if is_final => Err(Unanswered::Failed(
                outcome_of(&ready.agent, &fault).for_good(),
            )),
            replied => Ok(replied.map(|reply| (number, reply))),
        }
    }

    /// The answer of a call was judged, and kept as far as it is valid: a later run need not take it up.
    ///
    /// # Errors
    /// When it could not be recorded.
    pub(crate) fn judged(&self, work: &Work<'_>, call: u64) -> Result<(), Outcome> {
        match work.calls.batched() {
            Some(book) if self.ready.agent.is_batched() => book.used(call),
            _ => Ok(()),
        }
    }
}

/// Whether a request in a batch failed in a way that says nothing of the next batch.
fn is_over_alone(ready: &Ready, kind: FaultKind) -> bool {
    let is_busy = matches!(kind, FaultKind::RateLimited | FaultKind::Overloaded);
    ready.agent.is_batched() && !is_busy
}

/// What is asked, whoever is asked, as one text: it stands for the request where there are no exact bytes.
fn described(request: &AgentRequest) -> String {
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
pub(crate) fn asked(request: &AgentRequest) -> Digest {
    let whole = AgentRequest {
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
    request: &AgentRequest,
    ready: &Ready,
    within: Duration,
) -> Result<Result<Reply, CallFault>, Unanswered> {
    let invocation = match tool.invocation(request, None, ready.agent.limits.max_usd_per_call) {
        Ok(invocation) => invocation,
        Err(fault) => return Ok(Err(fault)),
    };
    let written = |name: &str, bytes: &[u8]| {
        let written = work.outs.beside(name, bytes);
        // The step is not repeated: that would make more calls than a plan counts.
        written.map_err(|error| Unanswered::Failed(output_failure("the request", error).for_good()))
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
        Ok(Exit::Code(code)) => CommandExit::Code(code),
        Ok(Exit::Signal(signal)) => CommandExit::Signal(signal),
        Ok(Exit::TimedOut) => CommandExit::TimedOut,
        Ok(Exit::Cancelled) => CommandExit::Cancelled,
        Err(error) => {
            let fault = CallFault::new(FaultKind::BadRequest, error.to_string());
            return Ok(Err(fault));
        }
    };
    let output = CommandOutput {
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
    Ok(Reply {
        reported_cost: None,
        usage: milepost_core::model::usage::Usage::default(),
        ..reply_of(heard, sent)
    })
}

/// How a batch ends for now that someone outside has to answer.
fn awaited(agent: &str) -> Outcome {
    let message = format!("agent `{agent}` has to answer first, from outside");
    Outcome::new(OutcomeKind::Awaited, message).for_good()
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
