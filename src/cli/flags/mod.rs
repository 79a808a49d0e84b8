//! The flags of `run`, `plan` and `watch`, and how they become the options of a run.

mod table;

use clap::{ArgAction, Args};
use milepost_core::base::duration::parse_pause;
use milepost_core::model::money::NanoUsd;
use milepost_core::plan::options::flags::Flags as _;
use milepost_engine::ops::run::{RunOptions, Values};
use std::path::PathBuf;
use std::time::Duration;

pub(crate) use table::assumed;
use table::{Assumed, How, Selects, TableFlags, Watched};

/// Options of `run` and `plan`.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct RunFlags {
    /// Show what would run, without running it (same as `plan`)
    #[arg(short = 'n', long = "dry-run")]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    how: TableFlags<RunOptions, How>,
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
    select: TableFlags<RunOptions, Selects>,
    #[command(flatten)]
    pub(crate) values: ValueFlags,
}

/// Options that override declared values.
pub(crate) type ValueFlags = TableFlags<Values, How>;

/// The same for commands that write nothing.
pub(crate) type AssumedValues = TableFlags<Values, Assumed>;

/// Options of `watch`.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct WatchFlags {
    #[command(flatten)]
    options: TableFlags<RunOptions, Watched>,
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
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, require_equals = true, default_missing_value = "2", value_parser = parse_pause)]
    pub(crate) poll: Option<Duration>,
    /// Start a run once nothing has changed for this long
    #[arg(long, value_name = "SECONDS", default_value = "0.1", value_parser = parse_pause)]
    pub(crate) debounce: Duration,
}

impl RunFlags {
    /// Returns the options of the run, and the values that it goes by.
    pub(crate) fn options(self, targets: Vec<String>) -> (RunOptions, Values) {
        let mut options = RunOptions {
            targets,
            ..self.how.given
        };
        options.merge(&self.select.given);
        (options, self.values.given)
    }

    /// Merges flags given before the command with flags given after it, which win.
    #[must_use]
    pub(crate) fn joined(self, later: RunFlags) -> RunFlags {
        RunFlags {
            workspaces: later.workspaces.or(self.workspaces),
            manifest: later.manifest.or(self.manifest),
            verbose: self.verbose.max(later.verbose),
            dry_run: self.dry_run || later.dry_run,
            how: self.how.joined(&later.how),
            select: self.select.joined(&later.select),
            values: self.values.joined(&later.values),
        }
    }

    /// Returns the first flag given that only `run` and `plan` accept.
    pub(crate) fn only_of_run(&self) -> Option<String> {
        let own = [
            (self.dry_run, "-n"),
            (self.workspaces.is_some(), "--workspaces"),
            (self.manifest.is_some(), "--manifest"),
        ];
        let first = own.into_iter().find(|(given, _)| *given);
        let first = first.map(|(_, name)| name.to_owned());
        first
            .or_else(|| self.how.given.first())
            .or_else(|| self.select.given.first())
    }
}

impl WatchFlags {
    /// Returns the options of each run. Without a budget or `--paid`, a watch makes no paid call.
    pub(crate) fn options(&self, targets: Vec<String>) -> RunOptions {
        RunOptions {
            targets,
            until_paid: !self.paid && self.budget_usd.is_none(),
            budget_usd: self.budget_usd,
            ..self.options.given.clone()
        }
    }
}
