//! The flags of `run`, `plan` and `watch`, and how they become the options of a run.

use clap::{ArgAction, Args};
use milepost_core::base::duration::parse_duration;
use milepost_core::model::executor::ExecutorName;
use milepost_core::model::money::NanoUsd;
use milepost_engine::ops::run::{RunOptions, Values};
use std::num::NonZeroU16;
use std::path::PathBuf;
use std::time::Duration;

/// Options of `run`.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag of the command line, by its name"
)]
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct RunFlags {
    /// Show what would run, without running it (same as `plan`)
    #[arg(short = 'n', long = "dry-run")]
    pub(crate) dry_run: bool,
    /// Run this many batches at a time in stages that declare no concurrency; `auto` is one for each processor [default: 1]
    #[arg(short, long, value_name = "N", value_parser = jobs)]
    pub(crate) jobs: Option<NonZeroU16>,
    /// Run batches here (`local`), or as jobs of a scheduler of `[executor]`, such as `slurm`
    #[arg(long, value_name = "NAME")]
    pub(crate) executor: Option<ExecutorName>,
    /// Continue after a failed batch
    #[arg(short, long)]
    pub(crate) keep_going: bool,
    /// Ignore stored answers and ask agents again
    #[arg(long)]
    pub(crate) fresh: bool,
    /// Spend at most this amount on agents in this run, such as 2.50
    #[arg(long, value_name = "DOLLARS")]
    pub(crate) budget_usd: Option<NanoUsd>,
    /// Run everything that is free, and show what calls to paid agents would cost
    #[arg(long, conflicts_with = "budget_usd")]
    pub(crate) until_paid: bool,
    /// Wait at most this long for another run in the workspace to end, such as 90s or 2h
    #[arg(long, value_name = "DURATION", value_parser = pause)]
    pub(crate) wait: Option<Duration>,
    /// Show the commands of batches, and what they print
    #[arg(short, long, action = ArgAction::Count, conflicts_with = "quiet")]
    pub(crate) verbose: u8,
    /// Run each workspace that this file lists, one after another, and print a summary
    #[arg(long, value_name = "FILE")]
    pub(crate) workspaces: Option<PathBuf>,
    /// The name of `--workspaces` before version 0.2
    #[arg(long, value_name = "FILE", hide = true, conflicts_with = "workspaces")]
    pub(crate) manifest: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) select: SelectFlags,
    #[command(flatten)]
    pub(crate) values: ValueFlags,
}

/// Options of `watch`.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag of the command line, by its name"
)]
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct WatchFlags {
    /// Run this many batches at a time in stages that declare no concurrency; `auto` is one for each processor [default: 1]
    #[arg(short, long, value_name = "N", value_parser = jobs)]
    pub(crate) jobs: Option<NonZeroU16>,
    /// Continue after a failed batch
    #[arg(short, long)]
    pub(crate) keep_going: bool,
    /// Stop after this stage
    #[arg(long, value_name = "STAGE")]
    pub(crate) until: Option<String>,
    /// Show the commands of batches, and what they print
    #[arg(short, long, conflicts_with = "quiet")]
    pub(crate) verbose: bool,
    /// Call paid agents, for at most this amount in all runs together, such as 2.50
    #[arg(long, value_name = "DOLLARS")]
    pub(crate) budget_usd: Option<NanoUsd>,
    /// Call paid agents, up to the limits that the project declares
    #[arg(long)]
    pub(crate) paid: bool,
    /// Call no paid agents, and show what calls would cost (the default)
    #[arg(long, conflicts_with_all = ["budget_usd", "paid"])]
    pub(crate) until_paid: bool,
    /// Scan at this interval (every 2 seconds if none is given) instead of waiting for notifications
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, require_equals = true, default_missing_value = "2", value_parser = pause)]
    pub(crate) poll: Option<Duration>,
    /// Start a run once nothing has changed for this long
    #[arg(long, value_name = "SECONDS", default_value = "0.1", value_parser = pause)]
    pub(crate) debounce: Duration,
}

/// Parses a time in seconds, or with its unit.
fn pause(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().map(Duration::try_from_secs_f64);
    let pause = match seconds {
        Ok(pause) => pause.map_err(|error| error.to_string())?,
        Err(_) => parse_duration(text).map_err(|error| error.to_string())?,
    };
    if pause.is_zero() {
        return Err("expected a time greater than 0".to_owned());
    }
    Ok(pause)
}

/// Options that select batches.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct SelectFlags {
    /// Run selected batches even if they are up to date; the next run continues if this one is interrupted
    #[arg(short = 'B', long)]
    pub(crate) force: bool,
    /// Cancel the rest of an earlier --force that was interrupted
    #[arg(long, conflicts_with = "force")]
    pub(crate) no_force: bool,
    /// Run only batches that failed
    #[arg(long)]
    pub(crate) failed: bool,
    /// Run at most this many batches, over all stages
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<u64>,
    /// Stop after this stage
    #[arg(long, value_name = "STAGE")]
    pub(crate) until: Option<String>,
}

/// Options that override declared values.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ValueFlags {
    /// Set a parameter in this workspace, until `--unset`
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) set: Vec<String>,
    /// Restore the default of a parameter
    #[arg(long, value_name = "NAME")]
    pub(crate) unset: Vec<String>,
    /// Replace an agent, or all agents, in this workspace; `default` undoes it
    #[arg(long, value_name = "[NAME=]OTHER")]
    pub(crate) agent: Vec<String>,
}

/// Values of commands that write nothing.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct AssumedValues {
    /// Use this value of a parameter, in this command only
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<String>,
    /// Use the default of a parameter, in this command only
    #[arg(long, value_name = "NAME")]
    unset: Vec<String>,
    /// Use another agent in place of one, or of all, in this command only
    #[arg(long, value_name = "[NAME=]OTHER")]
    agent: Vec<String>,
}

impl From<AssumedValues> for ValueFlags {
    fn from(values: AssumedValues) -> Self {
        let AssumedValues { set, unset, agent } = values;
        Self { set, unset, agent }
    }
}

/// Reads the value of `--jobs`.
fn jobs(text: &str) -> Result<NonZeroU16, String> {
    if text == "auto" {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let processors = u16::try_from(processors).unwrap_or(u16::MAX);
        return Ok(NonZeroU16::new(processors).unwrap_or(NonZeroU16::MIN));
    }
    let number = text.parse();
    number.map_err(|_| "expected `auto`, or a number from 1 to 65535".to_owned())
}

impl RunFlags {
    /// Returns the options of the run, and the values that it goes by.
    pub(crate) fn options(self, targets: Vec<String>) -> (RunOptions, Values) {
        let options = RunOptions {
            targets,
            until: self.select.until,
            limit: self.select.limit,
            failed: self.select.failed,
            force: self.select.force,
            no_force: self.select.no_force,
            keep_going: self.keep_going,
            fresh: self.fresh,
            until_paid: self.until_paid,
            budget_usd: self.budget_usd,
            jobs: self.jobs,
            executor: self.executor,
            wait: self.wait,
            ..RunOptions::default()
        };
        (options, self.values.values())
    }

    /// Returns the words that call a run by a plan that these flags and targets asked for.
    pub(crate) fn words(&self, targets: &[String]) -> Vec<String> {
        let select = &self.select;
        let values = &self.values;
        let mut words = Vec::new();
        for (flag, values) in [
            ("--agent", &values.agent),
            ("--set", &values.set),
            ("--unset", &values.unset),
        ] {
            let values = values.iter();
            words.extend(values.flat_map(|value| [flag.to_owned(), value.clone()]));
        }
        words.extend(select.force.then(|| "--force".to_owned()));
        words.extend(select.failed.then(|| "--failed".to_owned()));
        words.extend(self.keep_going.then(|| "--keep-going".to_owned()));
        let limit = select.limit.map(|limit| limit.to_string());
        let executor = self.executor.map(|name| name.to_string());
        for (flag, value) in [
            ("--executor", &executor),
            ("--limit", &limit),
            ("--until", &select.until),
        ] {
            let value = value.iter();
            words.extend(value.flat_map(|value| [flag.to_owned(), value.clone()]));
        }
        words.extend(targets.iter().cloned());
        words
    }

    /// Merges flags given before the command with flags given after it, which win.
    #[must_use]
    pub(crate) fn joined(self, later: RunFlags) -> RunFlags {
        RunFlags {
            fresh: self.fresh || later.fresh,
            budget_usd: later.budget_usd.or(self.budget_usd),
            until_paid: self.until_paid || later.until_paid,
            wait: later.wait.or(self.wait),
            workspaces: later.workspaces.or(self.workspaces),
            manifest: later.manifest.or(self.manifest),
            verbose: self.verbose.max(later.verbose),
            dry_run: self.dry_run || later.dry_run,
            jobs: later.jobs.or(self.jobs),
            executor: later.executor.or(self.executor),
            keep_going: self.keep_going || later.keep_going,
            select: self.select.joined(later.select),
            values: self.values.joined(later.values),
        }
    }

    /// Returns the first flag given that only `run` accepts.
    pub(crate) fn only_of_run(&self) -> Option<&'static str> {
        [
            (self.dry_run, "-n"),
            (self.jobs.is_some(), "--jobs"),
            (self.executor.is_some(), "--executor"),
            (self.keep_going, "--keep-going"),
            (self.fresh, "--fresh"),
            (self.budget_usd.is_some(), "--budget-usd"),
            (self.until_paid, "--until-paid"),
            (self.wait.is_some(), "--wait"),
            (self.workspaces.is_some(), "--workspaces"),
            (self.manifest.is_some(), "--manifest"),
        ]
        .into_iter()
        .find_map(|(given, name)| given.then_some(name))
    }
}

impl WatchFlags {
    /// Returns the options of each run. Without a budget or `--paid`, a watch makes no paid call.
    pub(crate) fn options(&self, targets: Vec<String>) -> RunOptions {
        RunOptions {
            targets,
            until: self.until.clone(),
            keep_going: self.keep_going,
            until_paid: !self.paid && self.budget_usd.is_none(),
            budget_usd: self.budget_usd,
            jobs: self.jobs,
            ..RunOptions::default()
        }
    }
}

impl SelectFlags {
    /// Merges flags given before the command with flags given after it, which win.
    #[must_use]
    pub(crate) fn joined(self, later: SelectFlags) -> SelectFlags {
        SelectFlags {
            force: self.force || later.force,
            no_force: self.no_force || later.no_force,
            failed: self.failed || later.failed,
            limit: later.limit.or(self.limit),
            until: later.until.or(self.until),
        }
    }

    /// Returns the first flag given.
    pub(crate) fn first(&self) -> Option<&'static str> {
        [
            (self.force, "--force"),
            (self.no_force, "--no-force"),
            (self.failed, "--failed"),
            (self.limit.is_some(), "--limit"),
            (self.until.is_some(), "--until"),
        ]
        .into_iter()
        .find_map(|(given, name)| given.then_some(name))
    }
}

impl ValueFlags {
    pub(crate) fn values(self) -> Values {
        Values {
            set: self.set,
            unset: self.unset,
            agents: self.agent,
        }
    }

    /// Returns the first flag given.
    pub(crate) fn first(&self) -> Option<&'static str> {
        [
            (!self.set.is_empty(), "--set"),
            (!self.unset.is_empty(), "--unset"),
            (!self.agent.is_empty(), "--agent"),
        ]
        .into_iter()
        .find_map(|(given, name)| given.then_some(name))
    }

    /// Merges flags given before the command with flags given after it, which win.
    #[must_use]
    pub(crate) fn joined(mut self, later: impl Into<ValueFlags>) -> ValueFlags {
        let later = later.into();
        self.set.extend(later.set);
        self.unset.extend(later.unset);
        self.agent.extend(later.agent);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_are_a_number_or_one_for_each_processor() {
        assert_eq!(jobs("4").map(NonZeroU16::get), Ok(4));
        let processors = std::thread::available_parallelism().unwrap().get();
        assert_eq!(
            jobs("auto").map(|jobs| usize::from(jobs.get())),
            Ok(processors)
        );
        for text in ["0", "-1", "all", "65536", ""] {
            assert!(jobs(text).is_err(), "{text}");
        }
    }
}
