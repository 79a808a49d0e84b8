//! Shares: what each job of a scheduler may spend of the budget of the run that submits it. They count as spent until the job is over,
//! and then its calls count, so that all jobs together never exceed what is declared.
//!
//! A process of a job takes the share by renaming a file, so that a job that runs twice spends it once. The runner takes it back by
//! removing the file, and reads the calls of the job then. A process looks for the file after it has recorded a call, and before it
//! sends it: so each call that is sent is either read by the runner, or was made while the process had the share.

use super::{Budget, Ledger, RunCalls, kept};
use crate::run::context::Context;
use milepost_core::model::agent::{Agent, AgentLimits};
use milepost_core::model::batched::{is_log_of_run, log_of_job};
use milepost_core::model::call::Spent;
use milepost_core::model::money::NanoUsd;
use milepost_core::model::outcome::Outcome;
use milepost_core::model::usage::Usage;
use milepost_store::store::calls::{self, CallRecord};
use milepost_store::store::jobs::{Submission, refresh};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::Ordering;

/// What a job may spend.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Share {
    /// The declared limits, without one of two for money that does not bind.
    budget: Budget,
    /// What counts as spent by the run before the first call of the job. It leaves the part of the job.
    run: Spent,
    /// What counts as spent by the workspace before it.
    before: Spent,
    /// The part of the job in what is limited.
    pub(super) part: Spent,
    /// The number of parts into which the unspent rest was divided. With 1, no other job had a part.
    pub(crate) parts: u64,
    /// The run that handed it out.
    run_id: String,
    /// How many jobs may run at once: each gets its part of the rate limits.
    pub(crate) at_once: u64,
    /// The limits of the agents that the job may call, as the run knows them, by the names of the agents.
    pub(crate) limits: BTreeMap<String, AgentLimits>,
}

impl Share {
    /// Reads what a job may spend; `None` if the runner has taken it back.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(crate) fn read(submission: &Submission, job: u64) -> Result<Option<Self>, Outcome> {
        let bytes = submission.share(job).map_err(kept)?;
        let read = bytes.map(|bytes| serde_json::from_slice(&bytes));
        read.transpose().map_err(kept)
    }

    /// Returns true if the limits of its agents were divided as they are declared now, or lower.
    pub(crate) fn is_within_limits_of<'a>(&self, agents: impl Iterator<Item = &'a Agent>) -> bool {
        let unlimited = AgentLimits::default();
        let mut called = agents.filter(|agent| !agent.is_free());
        called.all(|agent| {
            let divided = self.limits.get(&agent.name).unwrap_or(&unlimited);
            divided.are_within(&agent.limits)
        })
    }

    /// Returns true if it has a part in a limit of these agents.
    pub(crate) fn divides_limits_of<'a>(
        &self,
        mut agents: impl Iterator<Item = &'a Agent>,
    ) -> bool {
        agents.any(|agent| {
            let is_limited = !AgentLimits::default().are_within(&agent.limits);
            is_limited && self.limits.contains_key(&agent.name)
        })
    }

    /// Returns true if its job may call agents.
    pub(crate) fn is_spent(&self) -> bool {
        !self.limits.is_empty()
    }

    /// Returns true if it limits all that a budget limits.
    fn limits_all_of(&self, budget: &Budget) -> bool {
        let limited = |budget: &Budget| {
            let has_money = budget.run.is_some() || budget.workspace.is_some();
            let (calls, tokens) = (budget.calls.is_some(), budget.tokens.is_some());
            [has_money, calls, tokens, budget.time.is_some()]
        };
        let mut pairs = limited(budget).into_iter().zip(limited(&self.budget));
        pairs.all(|(is_needed, is_there)| is_there || !is_needed)
    }

    /// Returns what counts as spent until its job is over: its part, or what the calls of the job took, where that is more. What an
    /// earlier run did not limit has no part.
    pub(super) fn counted(&self, made: &[CallRecord]) -> Spent {
        self.counted_for(spent_by(made))
    }

    fn counted_for(&self, made: Spent) -> Spent {
        let part = &self.part;
        Spent {
            calls: part.calls.max(made.calls),
            usage: if part.usage.total() > made.usage.total() {
                part.usage
            } else {
                made.usage
            },
            cost: part.cost.max(made.cost),
            took_ms: part.took_ms.max(made.took_ms),
            unpriced: made.unpriced,
            estimated: made.estimated,
        }
    }
}

/// Returns what calls count as.
fn spent_by(calls: &[CallRecord]) -> Spent {
    calls.iter().fold(Spent::default(), |mut sum, call| {
        sum += call.counted();
        sum
    })
}

impl Budget {
    /// Returns true if something limits what the agents of a run may spend.
    pub(crate) fn is_limited(&self) -> bool {
        let Self {
            run,
            workspace,
            calls,
            tokens,
            time,
            only_free: _,
        } = self;
        let has_money = run.is_some() || workspace.is_some();
        has_money || calls.is_some() || tokens.is_some() || time.is_some()
    }

    /// Returns the limits of the workspace that are new or lower than those that a run divided among its jobs. Jobs exceed an unchanged
    /// limit only by the last call of each.
    fn lowered_since(self, divided: &Self) -> Self {
        fn lowered<T: PartialOrd>(now: Option<T>, then: Option<T>) -> Option<T> {
            let is_lower = |now: &T| then.as_ref().is_none_or(|then| now < then);
            now.filter(is_lower)
        }
        Self {
            workspace: lowered(self.workspace, divided.workspace),
            calls: lowered(self.calls, divided.calls),
            tokens: lowered(self.tokens, divided.tokens),
            time: lowered(self.time, divided.time),
            ..self
        }
    }

    /// Returns true if all that counts as spent by the workspace is within its limits.
    fn covers(&self, used: &Spent) -> bool {
        let time = u128::from(used.took_ms);
        self.workspace.is_none_or(|limit| used.cost <= limit)
            && self.calls.is_none_or(|limit| used.calls <= limit)
            && self.tokens.is_none_or(|limit| used.usage.total() <= limit)
            && self.time.is_none_or(|limit| time <= limit.as_millis())
    }

    /// Returns the largest number of shares of the rest. Each has a part of every limit, at least half of the smallest part of `held`.
    fn most_shares(self, run: Spent, before: Spent, held: &[&Share]) -> u64 {
        let left = self.share(run, before, 1).part;
        let shares = |amount: fn(&Spent) -> u64| {
            let smallest = held.iter().map(|share| amount(&share.part)).min();
            amount(&left) / smallest.unwrap_or_default().div_ceil(2).max(1)
        };
        let has_money = self.run.is_some() || self.workspace.is_some();
        let limited = [
            has_money.then(|| shares(|part| part.cost.0)),
            self.calls.map(|_| shares(|part| part.calls)),
            self.tokens.map(|_| shares(|part| part.usage.total())),
            self.time.map(|_| shares(|part| part.took_ms)),
        ];
        limited.into_iter().flatten().min().unwrap_or(u64::MAX)
    }

    /// Returns the share of one job, if the rest is divided among so many.
    fn share(mut self, run: Spent, before: Spent, jobs: u64) -> Share {
        let mut part = Spent::default();
        let (mut used_run, mut used) = (Spent::default(), Spent::default());
        let of_run = self.run.map(|limit| limit.less(run.cost));
        let of_workspace = self
            .workspace
            .map(|limit| limit.less(before.cost + run.cost));
        // Only one of the two is handed over: the other leaves more.
        match (of_run, of_workspace) {
            (Some(one), Some(other)) if one <= other => self.workspace = None,
            (Some(_), Some(_)) => self.run = None,
            _ => {}
        }
        if let Some(left) = of_run.into_iter().chain(of_workspace).min() {
            part.cost = NanoUsd(left.0 / jobs);
        }
        used_run.cost = self
            .run
            .map_or(NanoUsd::ZERO, |limit| limit.less(part.cost));
        used.cost = self
            .workspace
            .map_or(NanoUsd::ZERO, |limit| limit.less(part.cost));
        let divided = |limit: u64, spent: u64| limit.saturating_sub(spent) / jobs;
        if let Some(limit) = self.calls {
            part.calls = divided(limit, before.calls.saturating_add(run.calls));
            used.calls = limit - part.calls;
        }
        if let Some(limit) = self.tokens {
            let input = divided(limit, (before.usage + run.usage).total());
            part.usage = Usage {
                input,
                ..Usage::NONE
            };
            used.usage = Usage {
                input: limit - input,
                ..Usage::NONE
            };
        }
        if let Some(limit) = self.time {
            let limit = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
            part.took_ms = divided(limit, before.took_ms.saturating_add(run.took_ms));
            used.took_ms = limit - part.took_ms;
        }
        Share {
            budget: self,
            run: used_run,
            before: used,
            part,
            parts: jobs,
            run_id: String::new(),
            at_once: 1,
            limits: BTreeMap::new(),
        }
    }
}

impl<'a> RunCalls<'a> {
    /// Opens the records of a job, with the share that this process has taken.
    pub(crate) fn of_job(
        ctx: Context<'a>,
        project: &Path,
        log: &str,
        share: &Share,
        (submission, job): (&Submission, u64),
    ) -> Self {
        let mut calls = Self::new(ctx, project, log, share.budget);
        let ledger = calls.ledger.get_mut();
        let ledger = ledger.unwrap_or_else(std::sync::PoisonError::into_inner);
        (ledger.run, ledger.before) = (share.run, Some(share.before));
        calls.held = Some((submission.clone(), job));
        calls
    }

    /// Returns true if a call was refused since the last question, because too little is left for it.
    pub(crate) fn fell_short(&self) -> bool {
        self.fell_short.swap(false, Ordering::Relaxed)
    }

    /// Returns true if something limits what the agents of the run may spend.
    pub(crate) fn is_limited(&self) -> bool {
        self.budget.is_limited()
    }

    /// Returns the largest number of shares that the rest of the budget allows beside those that jobs have (`held`).
    ///
    /// # Errors
    /// When the records of calls cannot be read.
    pub(crate) fn most_shares(&self, held: &[&Share]) -> Result<u64, Outcome> {
        let mut ledger = self.ledger();
        let before = self.before(&mut ledger)?;
        Ok(self.budget.most_shares(ledger.run, before, held))
    }

    /// Divides the rest among `among` jobs, and hands out `jobs` of the shares, which then count as spent. `others` is the number of
    /// shares that jobs have already. If the agents of the jobs are free, the shares have no part of the budget.
    ///
    /// # Errors
    /// When the records of calls cannot be read.
    pub(crate) fn hand_out(
        &self,
        jobs: u64,
        (among, others): (u64, u64),
        (at_once, are_free): (u64, bool),
    ) -> Result<Share, Outcome> {
        let mut ledger = self.ledger();
        let (budget, before) = if are_free || !self.budget.is_limited() {
            (Budget::default(), Spent::default())
        } else {
            (self.budget, self.before(&mut ledger)?)
        };
        let mut share = budget.share(ledger.run, before, among.max(1));
        share.parts += others;
        share.at_once = at_once;
        share.run_id.clone_from(&self.run);
        for _ in 0..jobs {
            ledger.run += share.part;
        }
        Ok(share)
    }

    /// Takes a share back from a job that is over: its calls, which are returned, count in its place.
    ///
    /// # Errors
    /// When the disk fails, or the records of calls cannot be read.
    pub(crate) fn take_back(
        &self,
        (submission, job): (&Submission, u64),
        share: &Share,
    ) -> Result<Vec<CallRecord>, Outcome> {
        submission.take_share_back(job).map_err(kept)?;
        refresh(self.ctx.disk, &self.ctx.layout.calls());
        let log = log_of_job(&share.run_id, submission.name(), job);
        let made = calls::of_log(self.ctx.layout, &log).map_err(kept)?;
        let mut ledger = self.ledger();
        let Ledger {
            run,
            before,
            before_of_shares,
            ..
        } = &mut *ledger;
        let handed = before_of_shares.remove(&log).unwrap_or(share.part);
        let counted = if is_log_of_run(&log, &self.run) {
            Some(run)
        } else {
            before.as_mut()
        };
        if let Some(counted) = counted {
            *counted -= handed;
            *counted += spent_by(&made);
        }
        Ok(made)
    }

    /// Returns true if the budget allows jobs of an earlier run with this share: it limits all that is limited, and what counts for the
    /// workspace is within the limits that are lower since.
    ///
    /// # Errors
    /// When the records of calls cannot be read.
    pub(crate) fn allows(&self, share: &Share) -> Result<bool, Outcome> {
        if !self.budget.is_limited() {
            return Ok(true);
        }
        let mut ledger = self.ledger();
        let mut used = self.before(&mut ledger)?;
        used += ledger.run;
        let lowered = self.budget.lowered_since(&share.budget);
        Ok(share.limits_all_of(&self.budget) && lowered.covers(&used))
    }

    /// Returns the shares that jobs of earlier runs have, by the names of their logs.
    pub(super) fn shares_of_earlier_runs(&self) -> Result<BTreeMap<String, Share>, Outcome> {
        let mut shares = BTreeMap::new();
        for submission in Submission::all(self.ctx.disk, self.ctx.layout).map_err(kept)? {
            for (job, bytes) in submission.shares().map_err(kept)? {
                let share: Share = serde_json::from_slice(&bytes).map_err(kept)?;
                if share.run_id != self.run {
                    let log = log_of_job(&share.run_id, submission.name(), job);
                    shares.insert(log, share);
                }
            }
        }
        Ok(shares)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn what_an_earlier_run_did_not_limit_counts_by_the_calls_that_were_made() {
        let limited = Budget {
            calls: Some(10),
            ..Budget::default()
        };
        let share = limited.share(Spent::default(), Spent::default(), 2);
        let made = |calls, cost| Spent {
            calls,
            cost: NanoUsd(cost),
            ..Spent::default()
        };
        let counted = share.counted_for(made(2, 100));
        assert_eq!((counted.calls, counted.cost), (5, NanoUsd(100)));
        let money = Budget {
            workspace: Some(NanoUsd(400)),
            ..limited
        };
        assert!(share.limits_all_of(&limited) && share.limits_all_of(&Budget::default()));
        assert!(!share.limits_all_of(&money));
        // Which of the two limits for money the earlier run had does not matter: what counts for it may exceed the other.
        let both = Budget {
            run: Some(NanoUsd(300)),
            ..money
        };
        let share = both.share(Spent::default(), Spent::default(), 2);
        assert!(share.limits_all_of(&money) && share.limits_all_of(&both));
        assert_eq!(share.counted_for(made(1, 70)).cost, NanoUsd(150));
        assert_eq!(share.counted_for(made(1, 170)).cost, NanoUsd(170));
        // What was divided as it is, or less, is exceeded only by last calls.
        assert_eq!(
            money.lowered_since(&limited),
            Budget {
                calls: None,
                ..money
            }
        );
        let fewer = Budget {
            calls: Some(9),
            ..limited
        };
        assert_eq!(fewer.lowered_since(&limited), fewer);
        assert_eq!(limited.lowered_since(&fewer), Budget::default());
        assert!(money.covers(&made(10, 400)));
        assert!(!money.covers(&made(11, 0)) && !money.covers(&made(0, 401)));
    }

    #[test]
    fn shares_leave_each_job_its_part_of_what_is_left() {
        let budget = Budget {
            run: Some(NanoUsd(1000)),
            workspace: Some(NanoUsd(900)),
            calls: Some(10),
            tokens: Some(100),
            time: Some(Duration::from_secs(2)),
            only_free: false,
        };
        let run = Spent {
            calls: 1,
            cost: NanoUsd(100),
            took_ms: 500,
            ..Spent::default()
        };
        let before = Spent {
            calls: 2,
            cost: NanoUsd(200),
            usage: Usage {
                input: 30,
                output: 10,
                ..Usage::NONE
            },
            ..Spent::default()
        };
        let share = budget.share(run, before, 3);
        // The workspace has 600 left, the run 900.
        assert_eq!(
            (share.budget.run, share.budget.workspace),
            (None, budget.workspace)
        );
        let part = (share.part.cost, share.part.calls, share.part.usage.total());
        assert_eq!(part, (NanoUsd(200), 2, 20));
        assert_eq!(share.part.took_ms, 500);
        let left = (share.before.cost, share.before.calls, share.before.took_ms);
        assert_eq!(left, (NanoUsd(700), 8, 1500));
        assert_eq!(share.before.usage.total(), 80);
        assert_eq!(share.run, Spent::default());
        // Nothing is left, and nothing is limited.
        let none = budget.share(
            Spent::default(),
            Spent {
                calls: 11,
                cost: NanoUsd(950),
                ..before
            },
            1,
        );
        assert_eq!((none.part.cost, none.part.calls), (NanoUsd::ZERO, 0));
        // Each of seven jobs has a call. Without any token left, there is no share.
        assert_eq!(budget.most_shares(run, before, &[]), 7);
        // Beside a job with 2 calls, 20 tokens and 0.5 s, each has a call, 10 tokens and 0.25 s.
        assert_eq!(budget.most_shares(run, before, &[&share]), 6);
        let all_tokens = Spent {
            usage: Usage {
                input: 100,
                ..Usage::NONE
            },
            ..before
        };
        assert_eq!(budget.most_shares(run, all_tokens, &[]), 0);
        assert_eq!(Budget::default().most_shares(run, before, &[]), u64::MAX);
        let all = Budget::default().share(run, before, 4);
        assert_eq!(
            (all.part, all.before, all.run),
            (Spent::default(), Spent::default(), Spent::default())
        );
    }
}
