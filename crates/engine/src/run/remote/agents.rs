//! Agents in jobs: which can be asked there, with which keys, and by how many jobs at once; and the shares of the jobs that ask them.

use crate::run::agents::budget::RunCalls;
use crate::run::agents::budget::share::Share;
use crate::run::agents::estimate::CostEstimator;
use crate::run::batch::events;
use crate::run::context::Context;
use crate::run::error::RunError;
use crate::run::remote::RemoteError;
use crate::run::remote::arrays::OpenArray;
use crate::run::remote::driver::Driver;
use crate::run::remote::handover::SubmissionRecord;
use crate::run::remote::node::worker_log::StepNote;
use crate::run::remote::pack::jobs;
use crate::run::remote::sweep::{cancel, discard};
use crate::steps::agent::StageAgents;
use milepost_core::model::agent::{Agent, Provider};
use milepost_core::model::batched::log_of_job;
use milepost_core::model::event::{Event, Record};
use milepost_core::model::outcome::Outcome;
use milepost_core::model::stage::Stage;
use milepost_core::plan::scan::StageScan;
use milepost_store::store::jobs::Submission;
use milepost_store::store::journal;
use std::collections::{BTreeMap, BTreeSet};

/// Checks that jobs can ask the agents of a stage, after replacements.
///
/// # Errors
/// Which agent they cannot ask, why, and what to do.
pub(crate) fn check(ctx: &Context<'_>, stage: &Stage) -> Result<(), String> {
    let asked = stage.steps.iter().filter_map(|step| step.kind.agent());
    let agents = asked.filter_map(|asked| ctx.settings.agent(ctx.pipeline, &asked.agent));
    for agent in agents {
        if let Some(why) = agent.stays_local() {
            return Err(format!(
                "jobs cannot ask agent `{}`: {why}; remove `executor` from stage `{}`, or run with --executor local",
                agent.name, stage.name
            ));
        }
    }
    Ok(())
}

/// Ends jobs of earlier runs before a stage asks its agents. Those of the stage itself are cancelled and removed if it `begins_anew`, on
/// this machine or by `--force`. Those of other stages are cancelled, and lose their shares, if they have a part in the budget or in a
/// limit of the same agent; their stage takes over what they finished. Returns the names of these stages. The answers are kept.
///
/// # Errors
/// When the disk fails, or the records of calls cannot be read.
pub(crate) fn end_earlier_jobs(
    ctx: &Context<'_>,
    (stage, begins_anew): (&Stage, bool),
    agents: &StageAgents,
    calls: &RunCalls<'_>,
) -> Result<BTreeSet<String>, RunError> {
    let unreadable = |error: std::io::Error| RunError::World(error.to_string());
    let unknown = |outcome: Outcome| RunError::World(outcome.message);
    let is_budgeted = calls.is_limited() && !are_free(agents);
    let mut ended = BTreeSet::new();
    for submission in Submission::all(ctx.disk, ctx.layout).map_err(unreadable)? {
        let Some(record) = SubmissionRecord::read(&submission)? else {
            continue;
        };
        if record.stage == stage.name {
            if begins_anew {
                discard(ctx, &submission, Some(&record))?;
            }
            continue;
        }
        let mut shares = Vec::new();
        for (job, _) in submission.shares().map_err(unreadable)? {
            let share = Share::read(&submission, job).map_err(unknown)?;
            shares.extend(share.map(|share| (job, share)));
        }
        let mut all = shares.iter().map(|(_, share)| share);
        let is_beside = |share: &Share| {
            is_budgeted && share.is_spent() || share.divides_limits_of(agents.agents())
        };
        if all.any(is_beside) {
            cancel(ctx, &submission, &record);
            for (job, share) in &shares {
                let taken = calls.take_back((&submission, *job), share);
                taken.map_err(unknown)?;
            }
            ended.insert(record.stage);
        }
    }
    Ok(ended)
}

/// Returns true if the agents are never called: they cost nothing.
pub(super) fn are_free(agents: &StageAgents) -> bool {
    agents.agents().all(Agent::is_free)
}

/// Returns the environment variable with the key of an agent, if the run has a key, or the agent needs one.
fn key<'a>(ctx: &Context<'_>, agent: &'a Agent) -> Option<&'a str> {
    let Provider::Api(api) = &agent.provider else {
        return None;
    };
    let value = ctx.own_environment.get(&api.key_env);
    let is_there = value.is_some_and(|value| !value.is_empty());
    (is_there || api.base_url.is_none()).then_some(api.key_env.as_str())
}

/// Returns how many jobs can have a part of each limit of the agents that suffices for a call within a minute; `None` without limits.
/// `input` is the expected input of a call in tokens.
pub(crate) fn most_jobs<'a>(agents: impl Iterator<Item = &'a Agent>, input: u64) -> Option<u64> {
    let limits = agents.flat_map(|agent| {
        let output = match &agent.provider {
            Provider::Api(api) => api.max_tokens,
            _ => 0,
        };
        let tokens = input.saturating_add(output).max(1);
        let limits = &agent.limits;
        [
            limits.concurrency,
            limits.requests_per_minute,
            limits.tokens_per_minute.map(|limit| limit / tokens),
        ]
    });
    limits.flatten().min().map(|most| most.max(1))
}

/// Returns the expected input of a call in tokens, by the first batches that run; 0 if no agent limits tokens, or the input is not known
/// before they run.
pub(crate) fn input_of_call(
    mut estimator: CostEstimator<'_>,
    agents: &StageAgents,
    stage: &Stage,
    (found, will): (&StageScan, &[usize]),
) -> u64 {
    const FIRST: usize = 10;
    let mut limits = agents.agents().map(|agent| agent.limits.tokens_per_minute);
    if !limits.any(|limit| limit.is_some()) {
        return 0;
    }
    let batches = will.iter().map(|&index| &found.batches[index]);
    let batches = batches.filter(|batch| batch.decision.is_ok()).take(FIRST);
    let asks = estimator.asks_of(stage, agents, &batches.collect::<Vec<_>>(), (false, true));
    asks.map_or(0, |asks| asks.input_tokens.div_ceil(asks.calls.max(1)))
}

/// Returns how many of `at_once` jobs fit beside open jobs, whose shares are parts of the rate limits: each of those is one of so many
/// jobs at once.
fn beside(at_once: u64, shares: impl Iterator<Item = u64>) -> u64 {
    let mut alike: BTreeMap<u64, u64> = BTreeMap::new();
    for jobs in shares {
        *alike.entry(jobs.max(1)).or_default() += 1;
    }
    let taken = alike
        .into_iter()
        .map(|(jobs, count)| count.saturating_mul(at_once).div_ceil(jobs).max(count));
    at_once.saturating_sub(taken.fold(0, u64::saturating_add))
}

/// Returns the shares that jobs of arrays have.
fn shares_of<'a>(arrays: impl Iterator<Item = &'a OpenArray>) -> Vec<&'a Share> {
    let jobs = arrays.flat_map(|array| &array.jobs);
    jobs.filter_map(|job| job.share.as_ref()).collect()
}

impl Driver<'_> {
    /// Returns the environment variables with the keys of agents that jobs need.
    pub(super) fn keys_of_agents(&self) -> Vec<String> {
        let stage_ctx = self.shared.stage_ctx;
        let agents = stage_ctx.agents.agents();
        let keys = agents.filter_map(|agent| key(&stage_ctx.ctx, agent));
        keys.map(str::to_owned).collect()
    }

    /// Returns true if its jobs need shares.
    pub(super) fn has_shares(&self) -> bool {
        self.shared.stage_ctx.stage.asks_agents()
    }

    /// Returns how many jobs may run at once, and how many of them are not open. Each gets an equal part of the rate limits, so jobs that
    /// ask agents with limits are no more than there are batches for.
    pub(super) fn at_once(&self) -> (u64, u64) {
        let jobs = self.arrays.iter().flat_map(|array| &array.jobs);
        let open = jobs.filter(|job| !job.is_over || job.share.is_some());
        let most = self.remote.at_once;
        if !self.has_shares() || !self.remote.has_rate_limits {
            return (most, most.saturating_sub(open.count() as u64));
        }
        // A job without a share asks nothing.
        let shares = open.map(|job| job.share.as_ref().map_or(u64::MAX, |share| share.at_once));
        let shares: Vec<u64> = shares.collect();
        let most = most.min(self.wanted() + shares.len() as u64).max(1);
        (most, beside(most, shares.into_iter()))
    }

    /// Returns how many jobs the batches need that are in none.
    fn wanted(&self) -> u64 {
        let alone = self.waiting.iter().filter(|batch| batch.is_alone).count();
        let others = self.waiting.len() - alone;
        alone as u64 + jobs(others as u64, self.remote.settings.batches_per_job)
    }

    /// Returns the shares that jobs have.
    fn shares(&self) -> Vec<&Share> {
        shares_of(self.arrays.iter())
    }

    /// Returns how many shares of the budget can be handed out now: at most one for each job that the waiting batches need, and at most
    /// `parts` together with those of other jobs.
    ///
    /// # Errors
    /// When the records of calls cannot be read.
    pub(super) fn free_shares(&self) -> Result<u64, RemoteError> {
        let is_limited = self.remote.calls.is_limited();
        if !self.has_shares() || !is_limited || are_free(self.shared.stage_ctx.agents) {
            return Ok(u64::MAX);
        }
        // Shares of an earlier run may be larger than this run's whole budget.
        let run = self.shared.stage_ctx.run_id;
        let of_run = self.arrays.iter().filter(|array| array.record.run == run);
        let most = self.remote.calls.most_shares(&shares_of(of_run));
        let shares = self.shares();
        let free = self.wanted().min(most.map_err(RemoteError::Calls)?);
        let free = free.min(self.parts.saturating_sub(shares.len() as u64));
        // If nothing is left, one job reports it.
        Ok(if shares.is_empty() { free.max(1) } else { free })
    }

    /// Hands out shares to the jobs of an array, and writes them. The rest of the budget is divided among the jobs that may run at once;
    /// later jobs get what these do not spend.
    ///
    /// # Errors
    /// When the disk fails, or the records of calls cannot be read.
    pub(super) fn hand_out(&self, array: &mut OpenArray) -> Result<(), RemoteError> {
        if !self.has_shares() {
            return Ok(());
        }
        let jobs = array.jobs.len() as u64;
        let (at_once, free) = self.at_once();
        let among = self.free_shares()?.min(free).max(jobs);
        let calls = self.remote.calls;
        let agents = self.shared.stage_ctx.agents;
        let others = self.shares().len() as u64;
        let share = calls.hand_out(jobs, (among, others), (at_once, are_free(agents)));
        let mut share = share.map_err(RemoteError::Calls)?;
        share.limits = agents
            .agents()
            .filter(|agent| !agent.is_free())
            .map(|agent| (agent.name.clone(), agent.limits))
            .collect();
        let bytes = super::handover::to_json(&share)?;
        for (number, job) in (0..).zip(&mut array.jobs) {
            array.submission.write_share(number, &bytes)?;
            job.share = Some(share.clone());
        }
        Ok(())
    }

    /// Takes the shares back from jobs that are over, and reports the calls that no record of a batch lists: both attempts of a batch
    /// that ran twice count.
    ///
    /// # Errors
    /// When the disk fails, or the records of calls cannot be read.
    pub(super) fn take_shares_back(&mut self) -> Result<(), RemoteError> {
        for at in 0..self.arrays.len() {
            for number in 0..self.arrays[at].jobs.len() {
                let job = &self.arrays[at].jobs[number];
                if !job.is_over || job.share.is_none() {
                    continue;
                }
                // A record that waits for its files lists its calls.
                let mut finished = self.finished.iter();
                if !finished.any(|one| one.place == (at, number)) {
                    self.take_share_back(at, number)?;
                }
            }
        }
        Ok(())
    }

    /// Takes the shares back from all jobs of submissions that no later run needs.
    pub(super) fn take_all_shares_back(&mut self) {
        for at in 0..self.arrays.len() {
            for number in 0..self.arrays[at].jobs.len() {
                if !self.arrays[at].is_kept {
                    // What cannot be read counts for the next run, which reads it again.
                    let _ = self.take_share_back(at, number);
                }
            }
        }
    }

    fn take_share_back(&mut self, at: usize, number: usize) -> Result<(), RemoteError> {
        let array = &mut self.arrays[at];
        let job = &mut array.jobs[number];
        let Some(share) = job.share.take() else {
            return Ok(());
        };
        let place = (&array.submission, number as u64);
        let made = self.remote.calls.take_back(place, &share);
        let made = made.map_err(RemoteError::Calls)?;
        let listed = std::mem::take(&mut job.called);
        for call in made {
            let index = self.keys.get(call.sent.batch.as_str());
            let is_known = self.journalled.contains(&(call.run.clone(), call.number));
            let is_listed = is_known || listed.contains(&call.number);
            let unlisted = call.heard.filter(|_| !is_listed);
            if let (Some(&index), Some(heard)) = (index, unlisted) {
                let note = StepNote::Called(call.number, Box::new(call.sent), Box::new(heard));
                events::replay(self.shared, self.sender, index, &[note], &call.run);
            }
        }
        Ok(())
    }

    /// Notes which calls of the jobs that were taken over the journal has already: the run that left them may have read their records.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub(super) fn read_journalled(&mut self) -> Result<(), RemoteError> {
        if !self.has_shares() || self.arrays.is_empty() {
            return Ok(());
        }
        let names = self.arrays.iter().map(|array| array.submission.name());
        let texts: Vec<String> = names.map(|name| format!("-{name}-")).collect();
        let layout = self.shared.stage_ctx.ctx.layout;
        let read = journal::read_with(layout, &texts, &mut |record: Record| {
            if let Event::Called {
                number,
                log: Some(log),
                ..
            } = record.event
            {
                self.journalled.insert((log, number));
            }
        });
        Ok(read.map_err(RunError::from)?)
    }

    /// Reports the calls and steps of a record, unless the journal has the calls.
    pub(super) fn replay(
        &mut self,
        index: usize,
        (at, number): (usize, usize),
        steps: &[StepNote],
    ) {
        let array = &mut self.arrays[at];
        let log = log_of_job(&array.record.run, array.submission.name(), number as u64);
        let called = steps.iter().filter_map(|note| match note {
            StepNote::Called(number, ..) => Some(*number),
            _ => None,
        });
        array.jobs[number].called.extend(called);
        let is_new = |note: &&StepNote| match note {
            StepNote::Called(number, ..) | StepNote::Refused { number, .. } => {
                !self.journalled.contains(&(log.clone(), *number))
            }
            StepNote::Began(_) | StepNote::Ended(..) => true,
        };
        let steps: Vec<StepNote> = steps.iter().filter(is_new).cloned().collect();
        events::replay(self.shared, self.sender, index, &steps, &log);
    }

    /// Returns true if the share of a job was too small for a batch, and a later job may get more: it was not all that there was, or an
    /// earlier run handed it out.
    pub(super) fn gets_more(&mut self, (at, number): (usize, usize)) -> bool {
        let array = &self.arrays[at];
        let is_earlier = array.record.run != self.shared.stage_ctx.run_id;
        let parts = array.jobs[number].share.as_ref();
        let parts = parts.map_or(1, |share| share.parts);
        if parts > 1 && !is_earlier {
            self.parts = self.parts.min(parts / 2).max(1);
        }
        !self.is_closing && (is_earlier || parts > 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use milepost_core::model::agent::{AgentLimits, Api};
    use milepost_core::model::api_kind::ApiKind;

    #[test]
    fn a_part_of_the_limits_suffices_for_a_call_within_a_minute() {
        let agent = |limits| Agent {
            name: "api".to_owned(),
            provider: Provider::Api(Api {
                kind: ApiKind::Anthropic,
                model: "m".to_owned(),
                address: None,
                base_url: None,
                key_env: "KEY".to_owned(),
                max_tokens: 4_000,
                temperature: 0.0,
                batch: false,
            }),
            limits,
        };
        let most = |limits, input| most_jobs([agent(limits)].iter(), input);
        assert_eq!(most(AgentLimits::default(), 0), None);
        let tokens = AgentLimits {
            tokens_per_minute: Some(30_000),
            ..AgentLimits::default()
        };
        assert_eq!(most(tokens, 0), Some(7));
        assert_eq!(most(tokens, 2_000), Some(5));
        // One call takes longer than a minute, and no second job makes it slower.
        assert_eq!(most(tokens, 100_000), Some(1));
        let all = AgentLimits {
            requests_per_minute: Some(3),
            concurrency: Some(6),
            ..tokens
        };
        assert_eq!(most(all, 0), Some(3));
    }

    #[test]
    fn parts_of_the_limits_add_up_to_all_of_them() {
        for (at_once, open, expected) in [
            (5, &[][..], 5),
            (5, &[5, 5], 3),
            // One of an earlier run has all, or a half.
            (5, &[1], 0),
            (5, &[2], 2),
            (5, &[2, 5, 5], 0),
            // Small parts still are jobs.
            (5, &[100, 100, 100], 2),
            (1, &[5], 0),
        ] {
            let free = beside(at_once, open.iter().copied());
            assert_eq!(free, expected, "{at_once} beside {open:?}");
        }
    }
}
