//! One request to an agent: records the call, sends it within the agent's limits, and retries it.

use super::call_context::{CallContext, CallError};
use super::call_record::replayed_reply;
use super::call_record::{TRIES, fault_outcome, recorded};
use super::command_line;
use super::handle::{AgentHandle, Backend};
use super::provider_batch::{BatchClient, BatchedResult, WaitResult};
use crate::steps::batch_context::cancelled;
use crate::steps::calls::{Calls, NextCall, OpenCall, ProviderBatches};
use crate::steps::command::Deadline;
use crate::steps::http::connection::unreachable;
use milepost_agents::api::BatchApi;
use milepost_agents::fault::{CallFault, FaultKind};
use milepost_agents::http::CallLimit;
use milepost_agents::policy::{Next, after};
use milepost_agents::request::{AgentRequest, Reply};
use milepost_core::base::digest::Digest;
use milepost_core::base::redact::Redactor;
use milepost_core::model::call::{CallResponse, Estimated, SentCall, Spent};
use milepost_core::model::outcome::{Outcome, OutcomeKind};
use milepost_core::model::retry;
use milepost_core::model::usage::Usage;
use serde_json::json;
use std::collections::BTreeMap;
use std::time::Duration;

/// Returns how often one request is sent at most. `tries` is declared by the agent, `attempts` by the step.
pub(crate) fn most_tries(tries: Option<u32>, attempts: u32) -> u32 {
    tries.unwrap_or(TRIES.max(attempts)).max(1)
}

/// The time limit for the check of a key.
const CHECK: Duration = Duration::from_secs(20);

/// Sends the requests for one answer, or for the questions of one batch, to an agent.
pub(crate) struct Caller<'a> {
    pub(crate) handle: &'a AgentHandle,
    /// The step that asks.
    pub(crate) step: &'a str,
    /// The time limit of one call.
    pub(crate) timeout: Duration,
    /// The `attempts` of the step. With 1, a failed request is not sent again, unless the server was too busy to accept it or
    /// the agent declares `tries`.
    pub(crate) attempts: u32,
    /// How many calls it made so far.
    pub(crate) count: u32,
    /// A suffix for the names of its files, if other requests of the batch are sent at the same time.
    pub(crate) place: String,
}

/// The longest pause after the server reports that a limit is used up.
const LONGEST_REST: Duration = Duration::from_mins(1);

/// How long a request waits for its provider batch. Providers end a batch after 24 hours.
const BATCH: Duration = Duration::from_hours(25);

impl Caller<'_> {
    /// Sends a request, with retries, and returns the number of the call and the reply.
    ///
    /// # Errors
    /// When the request fails, must not be sent, or the run is stopped.
    pub(crate) fn call(
        &mut self,
        ctx: &CallContext<'_>,
        request: &AgentRequest,
        questions: u64,
    ) -> Result<(u64, Reply), CallError> {
        self.check(ctx)?;
        let connection = &self.handle.connection;
        let mut probe = connection.enter().map_err(CallError::Failed)?;
        let mut tried = 0;
        loop {
            tried += 1;
            self.count += 1;
            let answered = self.once(ctx, request, questions)?;
            let is_refused = matches!(&answered, Err(fault) if fault.kind == FaultKind::Connect);
            connection.note(is_refused);
            let fault = match answered {
                Ok(answered) => return Ok(answered),
                Err(fault) => fault,
            };
            if is_refused && probe.is_none() {
                probe = connection.enter().map_err(CallError::Failed)?;
            }
            let mut outcome = fault_outcome(&self.handle.agent, &fault);
            if let Some(wait) = fault
                .retry_after
                .filter(|&wait| retry::is_too_long(Some(wait)))
            {
                let wait = milepost_core::base::duration::show_duration(wait);
                outcome.message =
                    format!("{}; the server asks to retry in {wait}", outcome.message);
            }
            // Requests that fail at the same time are not sent again at the same time.
            let jitter = retry::jitter(&format!("{}{}", ctx.name, self.place), self.count);
            let next = match after(&fault, tried, jitter) {
                // The next provider batch waits anyway.
                Next::Retry { .. } if is_over_alone(self.handle, fault.kind) => Next::Retry {
                    wait: Duration::ZERO,
                },
                next => next,
            };
            // A server that is too busy has not started the request.
            let is_busy = matches!(fault.kind, FaultKind::RateLimited | FaultKind::Overloaded);
            let tries = match self.handle.agent.limits.tries {
                Some(tries) => tries,
                None if is_busy => TRIES,
                // A command line that failed did start, so the step's `attempts` decide.
                None if fault.kind == FaultKind::ToolFailed => self.attempts,
                None if self.attempts > 1 => TRIES,
                None => 1,
            };
            match next {
                Next::Retry { wait } if tried < tries && has_time(ctx, wait) => {
                    let wait = wait.min(ctx.limits.pace.retry);
                    ctx.observer.trying_again(self.count, &outcome, wait);
                    ctx.stop.wait(wait);
                    if ctx.stop.stopping() {
                        return Err(CallError::Failed(cancelled()));
                    }
                }
                Next::Shrink => return Err(CallError::TooLong(outcome.for_good())),
                Next::Retry { .. } | Next::Fail | Next::Stop => {
                    if is_refused {
                        outcome = unreachable(&outcome);
                        if let Some(probe) = probe {
                            outcome = probe.give_up(outcome);
                        }
                    }
                    return Err(CallError::Failed(outcome.for_good()));
                }
            }
        }
    }

    /// Checks the key before the first call of a run, so that a wrong key costs nothing.
    fn check(&self, ctx: &CallContext<'_>) -> Result<(), CallError> {
        let Backend::Api(client) = &self.handle.backend else {
            return Ok(());
        };
        if ctx.is_dry_run {
            return Ok(());
        }
        let limit = CallLimit {
            within: CHECK,
            cancelled: &|| ctx.cancel.reason().is_some(),
        };
        let checked = self.handle.checked.get_or_init(|| client.check(limit));
        match checked {
            Err(fault) if matches!(fault.kind, FaultKind::Auth | FaultKind::Money) => {
                let outcome = fault_outcome(&self.handle.agent, fault).for_good();
                Err(CallError::Failed(outcome))
            }
            // Other failures do not matter here: not every server lists its models.
            _ => Ok(()),
        }
    }

    fn once(
        &self,
        ctx: &CallContext<'_>,
        request: &AgentRequest,
        questions: u64,
    ) -> Result<Result<(u64, Reply), CallFault>, CallError> {
        let handle = self.handle;
        if matches!(handle.backend, Backend::External) && !ctx.is_dry_run {
            return Err(CallError::Failed(awaited(&handle.agent.name)));
        }
        let body = match &handle.backend {
            Backend::Api(client) => client.body(request),
            _ => described(request, request.system.as_deref(), &request.prompt).into_bytes(),
        };
        let (likely_input, most_input) = (request.likely_tokens(), request.most_tokens());
        let mut sent = SentCall {
            stage: ctx.stage.to_owned(),
            batch: batch_of(ctx.name, ctx.stage),
            attempt: self.count,
            agent: handle.agent.name.clone(),
            provider: handle.agent.describe(),
            model: handle.model().to_owned(),
            asked: asked(request),
            request: Digest::of(&body),
            questions,
            likely_input,
            most_input,
            most_output: request.max_tokens,
            reserved: handle.costs.most(most_input, request.max_tokens),
            batched: handle.agent.is_batched(),
        };
        let cancel = std::sync::Arc::clone(ctx.cancel);
        let stopped = move || cancel.reason().is_some();
        let tokens = likely_input + request.max_tokens;
        let pass = handle.limits.enter(tokens, &stopped);
        let Some(mut pass) = pass.filter(|_| !stopped()) else {
            return Err(CallError::Failed(cancelled()));
        };
        if let (Backend::Api(client), true, Some(records)) =
            (&handle.backend, sent.batched, ctx.calls.batched())
            && let Some(api) = client.batches()
        {
            return self.in_batch(ctx, api, records, sent, body, &stopped);
        }
        let next = NextCall {
            sent: &mut sent,
            body: &body,
            step: self.step,
            costs: &handle.costs,
            stopped: &stopped,
            waits: &|_| (),
        };
        let number = ctx.calls.sending(next).map_err(CallError::Failed)?;
        let _open = OpenCall {
            calls: ctx.calls,
            number,
        };
        let within = (ctx.left)().map_or(self.timeout, |left| left.min(self.timeout));
        let until = Deadline::after(within);
        // It is paid for: a run that is stopped leaves it some time.
        let grace = ctx.limits.calls;
        let stopped = || stopped() && !ctx.cancel.is_in_grace(grace);
        let replied = match &handle.backend {
            Backend::Api(client) => {
                let cancelled = &stopped;
                client.call(&body, CallLimit { within, cancelled })
            }
            Backend::Tool(tool) => {
                command_line::run(ctx, tool, request, handle, &self.place, within)?
            }
            Backend::Replay(responses) => replay(responses, &sent),
            Backend::Rules(_) | Backend::Jq(_) | Backend::External => Err(CallFault::new(
                FaultKind::BadRequest,
                "this agent is not called",
            )),
        };
        // A key may be in pieces, which only the joined text shows.
        let replied = without_keys(replied, ctx.calls.redactor());
        let took_ms = u64::try_from(within.saturating_sub(until.left()).as_millis());
        let took_ms = took_ms.unwrap_or(u64::MAX);
        let (response, raw) = recorded(&handle.costs, &sent, &replied, took_ms);
        pass.settle(Spent::of(&sent, Some(&response)).usage.total());
        drop(pass);
        if let Err(fault) = &replied
            && let Some(wait) = fault.retry_after
            && !retry::is_too_long(Some(wait))
        {
            handle.limits.hold(wait);
        }
        if let Backend::Api(client) = &handle.backend
            && let Some(wait) = client.cooldown()
        {
            // The pause is short: the reported time may come from a wrong clock or a daily limit.
            handle.limits.hold(wait.min(LONGEST_REST));
        }
        let response = ctx
            .calls
            .received(number, &sent, response, raw)
            .map_err(CallError::Failed)?;
        ctx.observer.called(number, &sent, &response);
        Ok(replied.map(|reply| (number, as_charged(reply, &response))))
    }

    /// Sends the request in a provider batch with requests of other attempts.
    #[expect(clippy::too_many_arguments)]
    fn in_batch(
        &self,
        ctx: &CallContext<'_>,
        api: &dyn BatchApi,
        records: &dyn ProviderBatches,
        mut sent: SentCall,
        body: Vec<u8>,
        stopped: &(dyn Fn() -> bool + Sync),
    ) -> Result<Result<(u64, Reply), CallFault>, CallError> {
        let handle = self.handle;
        let observer = ctx.observer;
        let client = BatchClient {
            agent: &handle.agent,
            costs: &handle.costs,
            api,
            calls: ctx.calls,
            records,
            stopped,
            running: &|| ctx.running(),
            updated: &|update| observer.provider_batch(update),
            step: self.step,
            pace: ctx.limits.pace,
        };
        let number = handle.batch_queue.enqueue(&client, &mut sent, body);
        let number = number.map_err(CallError::Failed)?;
        let _open = OpenCall {
            calls: ctx.calls,
            number,
        };
        self.wait(ctx, &client, number, &sent)
    }

    /// Waits for the result of a request in a provider batch, and records it.
    fn wait(
        &self,
        ctx: &CallContext<'_>,
        client: &BatchClient<'_>,
        number: u64,
        sent: &SentCall,
    ) -> Result<Result<(u64, Reply), CallFault>, CallError> {
        let handle = self.handle;
        let until = Deadline::after(BATCH);
        let waited = handle.batch_queue.wait(client, number, until);
        let took = BATCH.saturating_sub(until.left()).as_millis();
        let took_ms = u64::try_from(took).unwrap_or(u64::MAX);
        let came = match waited {
            WaitResult::Finished(came) => *came,
            WaitResult::Unsent => {
                let response = ctx
                    .calls
                    .received(number, sent, CallResponse::never_sent(), b"");
                response.map_err(CallError::Failed)?;
                return Err(CallError::Failed(cancelled()));
            }
            WaitResult::Left if until.is_over() => {
                let message =
                    "its provider batch did not end within 25 hours: run again to continue waiting";
                let outcome = Outcome::new(OutcomeKind::Timeout, message).for_good();
                return Err(CallError::Failed(outcome));
            }
            WaitResult::Left => return Err(CallError::Failed(cancelled())),
        };
        let (replied, is_final) = match came {
            BatchedResult::Result(result) => (result, false),
            BatchedResult::Refused(fault) => (Err(fault), true),
            BatchedResult::Lost => {
                let message = "its provider batch was not found";
                return Ok(Err(CallFault::new(FaultKind::Cut, message)));
            }
            BatchedResult::Broken(outcome) => return Err(CallError::Failed(outcome)),
        };
        let replied = without_keys(replied, ctx.calls.redactor());
        let (response, raw) = recorded(&handle.costs, sent, &replied, took_ms);
        let response = ctx.calls.received(number, sent, response, raw);
        let response = response.map_err(CallError::Failed)?;
        ctx.observer.called(number, sent, &response);
        match replied {
            Err(fault) if is_final => {
                let outcome = fault_outcome(&handle.agent, &fault).for_good();
                Err(CallError::Failed(match fault.kind {
                    FaultKind::Connect => handle.connection.advise(unreachable(&outcome)),
                    _ => outcome,
                }))
            }
            replied => Ok(replied.map(|reply| (number, as_charged(reply, &response)))),
        }
    }

    /// Records that the answers of a call were checked and kept, so that a later run does not use the call again.
    ///
    /// # Errors
    /// When the disk fails.
    pub(crate) fn mark_used(&self, calls: &dyn Calls, call: u64) -> Result<(), Outcome> {
        match calls.batched() {
            Some(records) if self.handle.agent.is_batched() => records.used(call),
            _ => Ok(()),
        }
    }
}

/// Returns a reply without a report that cannot be used.
fn as_charged(reply: Reply, response: &CallResponse) -> Reply {
    match response.estimated {
        Some(Estimated::NoUsage | Estimated::ImplausibleUsage) => Reply {
            usage: Usage::NONE,
            reported_cost: None,
            ..reply
        },
        Some(Estimated::NoPrice) | None => reply,
    }
}

/// Returns true if a request in a provider batch failed for a reason that does not affect the next batch.
fn is_over_alone(handle: &AgentHandle, kind: FaultKind) -> bool {
    let is_busy = matches!(kind, FaultKind::RateLimited | FaultKind::Overloaded);
    handle.agent.is_batched() && !is_busy
}

/// Returns the content of a request as text, for agents without exact request bytes.
fn described(request: &AgentRequest, system: Option<&str>, prompt: &str) -> String {
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
        "system": system,
        "prompt": prompt,
        "attachments": attachments,
        "schema": request.schema,
    });
    all.to_string()
}

/// Returns the digest of the content of a request. It does not depend on the agent, or on how the text is divided between
/// system and prompt.
pub(crate) fn asked(request: &AgentRequest) -> Digest {
    let system = request.system.as_deref().unwrap_or_default();
    let prompt = format!("{system}{}", request.prompt);
    Digest::of(described(request, None, &prompt))
}

fn without_keys(
    replied: Result<Reply, CallFault>,
    redactor: &Redactor,
) -> Result<Reply, CallFault> {
    match replied {
        Ok(reply) => Ok(reply.without_keys(redactor)),
        Err(fault) => Err(fault.without_keys(redactor)),
    }
}

/// Returns the recorded reply to the same request.
fn replay(responses: &BTreeMap<String, CallResponse>, sent: &SentCall) -> Result<Reply, CallFault> {
    let Some(response) = responses.get(&sent.asked.to_string()) else {
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
        usage: Usage::NONE,
        ..replayed_reply(response)
    })
}

/// Returns the outcome of a batch that waits for an external agent.
fn awaited(agent: &str) -> Outcome {
    let message = format!("waiting for external agent `{agent}`");
    Outcome::new(OutcomeKind::Awaited, message).for_good()
}

fn has_time(ctx: &CallContext<'_>, wait: Duration) -> bool {
    (ctx.left)().is_none_or(|left| left > wait)
}

/// Returns the batch in `stage/batch`; empty for the only batch of a stage.
fn batch_of(name: &str, stage: &str) -> String {
    let rest = name.strip_prefix(stage).unwrap_or_default();
    rest.strip_prefix('/').unwrap_or_default().to_owned()
}
