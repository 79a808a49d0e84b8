//! The command line: what can be asked for, and its help.

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  milepost                           run what is not done, or no longer true
  milepost -n                        say what that would be, and why
  milepost run classify/batch_3      run one batch
  milepost run --failed -k           try again what failed, and go on after what fails again
  milepost --set model=house.ifc     take another file, from anywhere
  milepost status                    how far the workspace is

Exit codes: 0 complete, 1 failed, 2 wrong usage, 3 partial or held, 4 wrong declaration, 5 altered, 130 interrupted.";

const RUN_EXAMPLES: &str = "\
Examples:
  milepost run                       everything that is not done, or no longer true
  milepost run classify              one stage
  milepost run classify/batch_3      one batch
  milepost run --until classify      up to a stage
  milepost run --failed              only what failed
  milepost run --force generate      make it again, whatever is there; altered files go to quarantine
  milepost run -j 4 -k               four batches at once; go on after a failed one";

const PLAN_EXAMPLES: &str = "\
Examples:
  milepost plan                      what a run would do, and why
  milepost plan classify             of one stage
  milepost plan --set batch_size=25  under another parameter
  milepost plan --json               for programs";

/// Runs a pipeline of declared stages over files: only what is not done and still true.
#[derive(Debug, Parser)]
#[command(
    name = "milepost",
    version,
    disable_help_subcommand = true,
    override_usage = "milepost [OPTIONS]\n       milepost [OPTIONS] COMMAND",
    after_long_help = EXAMPLES,
    after_help = "Without a command: run. `--help` shows examples.",
    max_term_width = 100
)]
pub struct Cli {
    #[command(flatten)]
    pub everywhere: Everywhere,
    #[command(flatten, next_help_heading = "Options of run")]
    pub run: RunFlags,
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// What every command takes.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Options of every command")]
pub struct Everywhere {
    /// Look for the project in this folder and above
    #[arg(short = 'C', value_name = "DIR", global = true)]
    pub directory: Option<PathBuf>,
    /// The folder that is read and written [default: workspace, in the project]
    #[arg(long, value_name = "DIR", global = true)]
    pub workspace: Option<PathBuf>,
    /// Give the result as JSON on standard output
    #[arg(long, global = true)]
    pub json: bool,
    /// Say nothing but problems
    #[arg(short, long, global = true)]
    pub quiet: bool,
    /// Write a debug log to this file
    #[arg(long, value_name = "FILE", global = true)]
    pub log_file: Option<PathBuf>,
    /// When to use colours
    #[arg(
        long,
        value_name = "WHEN",
        value_enum,
        default_value_t,
        hide_possible_values = false,
        global = true
    )]
    pub color: When,
}

/// When to do something that is for terminals.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum When {
    #[default]
    Auto,
    Always,
    Never,
}

/// What a run takes beside targets.
#[derive(Debug, Clone, Default, Args)]
pub struct RunFlags {
    /// Only say what would be done (as `plan`)
    #[arg(short = 'n', long = "dry-run")]
    pub dry_run: bool,
    /// Batches at once, in stages that declare no concurrency
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub jobs: Option<u16>,
    /// Go on after a batch that failed
    #[arg(short, long)]
    pub keep_going: bool,
    #[command(flatten)]
    pub select: Select,
    #[command(flatten)]
    pub values: Values,
}

/// What of the pipeline is wanted.
#[derive(Debug, Clone, Default, Args)]
pub struct Select {
    /// Run what is selected, even if it is done and still true
    #[arg(short = 'B', long)]
    pub force: bool,
    /// Only batches that failed
    #[arg(long)]
    pub failed: bool,
    /// At most so many batches, over all stages
    #[arg(long, value_name = "N")]
    pub limit: Option<u64>,
    /// Up to this stage
    #[arg(long, value_name = "STAGE")]
    pub until: Option<String>,
}

/// Values that differ from the declared ones.
#[derive(Debug, Clone, Default, Args)]
pub struct Values {
    /// Set a parameter; the workspace keeps it
    #[arg(long, value_name = "NAME=VALUE")]
    pub set: Vec<String>,
    /// Let another agent answer in the place of one, or of all
    #[arg(long, value_name = "[NAME=]OTHER")]
    pub agent: Vec<String>,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run what is not done, or no longer true
    #[command(after_long_help = RUN_EXAMPLES)]
    Run {
        /// What to run [default: all stages]
        #[arg(value_name = "STAGE[/BATCH]")]
        targets: Vec<String>,
        #[command(flatten)]
        flags: RunFlags,
    },
    /// Say what a run would do, and why; nothing is written
    #[command(after_long_help = PLAN_EXAMPLES)]
    Plan {
        /// What would be run [default: all stages]
        #[arg(value_name = "STAGE[/BATCH]")]
        targets: Vec<String>,
        #[command(flatten)]
        select: Select,
        #[command(flatten)]
        values: Values,
    },
    /// Print a script that completes commands in a shell
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
}

impl Command {
    /// Its name on the command line.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Run { .. } => "run",
            Self::Plan { .. } => "plan",
            Self::Completions { .. } => "completions",
        }
    }
}

impl RunFlags {
    /// Those given before the command with those given after it.
    #[must_use]
    pub fn joined(self, later: RunFlags) -> RunFlags {
        RunFlags {
            dry_run: self.dry_run || later.dry_run,
            jobs: later.jobs.or(self.jobs),
            keep_going: self.keep_going || later.keep_going,
            select: self.select.joined(later.select),
            values: self.values.joined(later.values),
        }
    }

    /// The first flag that only a run understands.
    pub fn only_of_run(&self) -> Option<&'static str> {
        [
            (self.dry_run, "-n"),
            (self.jobs.is_some(), "--jobs"),
            (self.keep_going, "--keep-going"),
        ]
        .into_iter()
        .find_map(|(given, name)| given.then_some(name))
    }
}

impl Select {
    /// Those given before the command with those given after it.
    #[must_use]
    pub fn joined(self, later: Select) -> Select {
        Select {
            force: self.force || later.force,
            failed: self.failed || later.failed,
            limit: later.limit.or(self.limit),
            until: later.until.or(self.until),
        }
    }

    /// The first flag that is given.
    pub fn first(&self) -> Option<&'static str> {
        [
            (self.force, "--force"),
            (self.failed, "--failed"),
            (self.limit.is_some(), "--limit"),
            (self.until.is_some(), "--until"),
        ]
        .into_iter()
        .find_map(|(given, name)| given.then_some(name))
    }
}

impl Values {
    /// Those given before the command with those given after it, which win.
    #[must_use]
    pub fn joined(mut self, later: Values) -> Values {
        self.set.extend(later.set);
        self.agent.extend(later.agent);
        self
    }
}
