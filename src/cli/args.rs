//! The command line: what can be asked for, and its help.

use super::run_flags::{RunFlags, SelectFlags, ValueFlags, WatchFlags};
use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};
use milepost_core::base::duration::parse_duration;
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
  milepost run --until-paid          all that is free, and what the rest would cost
  milepost run -j 4 -k               four batches at once; go on after a failed one
  milepost run --manifest all.json   each workspace that the file lists, one after another";

const PLAN_EXAMPLES: &str = "\
Examples:
  milepost plan                      what a run would do, and why
  milepost plan classify             of one stage
  milepost plan --set batch_size=25  under another parameter
  milepost plan --show-request classify/batch_3   what would be sent to an agent
  milepost plan --json               for programs";

const WATCH_EXAMPLES: &str = "\
Examples:
  milepost watch                     run, and run again what changes make stale
  milepost watch --until classify    up to a stage
  milepost watch -k -j 4             as of run: go on after a failed batch; four at once
  milepost watch --budget-usd 2      ask models, too, for so much in all runs together
  milepost watch --poll=5            look every 5 seconds, where a network file system tells nothing

Agents that cost something are asked only with --budget-usd or --paid: every save of a prompt would buy its answers anew. What
failed is tried again when something that it is made from changes. Ctrl-C ends it, with exit code 130.";

const WHY_EXAMPLES: &str = "\
Examples:
  milepost why classify              which batches would run, and why
  milepost why classify/batch_3      what one batch depends on, and what changed
  milepost why outputs/report.xlsx   what a file came from, back to the inputs";

const PARAMS_EXAMPLES: &str = "\
Examples:
  milepost params                    list parameters and agents
  milepost params --set batch_size=50
  milepost params --unset batch_size         use the default of milepost.toml again
  milepost params --agent classifier=claude  let `claude` answer for `classifier` in this workspace
  milepost params --agent classifier=default let `classifier` answer itself again";

const ACCEPT_EXAMPLES: &str = "\
Examples:
  milepost accept generate --why \"logo set by hand\"
  milepost accept classify/batch_3 --why \"checked by M. Lang\"
  milepost accept classify --change file --why \"a comment in the prompt\"";

const LOG_EXAMPLES: &str = "\
Examples:
  milepost log                       what happened last
  milepost log classify/batch_3      of one batch, with what its programs printed
  milepost log ask/batch_3 --calls   what an agent was asked for it, and answered
  milepost log --errors --last 0     everything that ever went wrong";

const MCP_EXAMPLES: &str = "\
Examples:
  claude mcp add milepost -- milepost mcp          in Claude Code, in the project's folder
  milepost -C house mcp --http 8765                for clients that connect to http://127.0.0.1:8765/";

/// Runs a pipeline of declared stages over files: only what is not done and still true.
#[derive(Debug, Parser)]
#[command(
    name = "milepost",
    version,
    disable_help_flag = true,
    disable_help_subcommand = true,
    override_usage = "milepost [OPTIONS]\n       milepost [OPTIONS] COMMAND",
    after_help = EXAMPLES,
    max_term_width = 100
)]
pub struct Cli {
    #[command(flatten, next_help_heading = "Options of run")]
    pub run: RunFlags,
    #[command(flatten)]
    pub everywhere: Everywhere,
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
    /// Append a debug log to this file
    #[arg(long, value_name = "FILE", global = true)]
    pub log_file: Option<PathBuf>,
    /// When to use colours
    #[arg(long, value_name = "WHEN", value_enum, default_value_t, global = true)]
    pub color: When,
    /// Print help
    #[arg(short, long, action = ArgAction::HelpShort, global = true)]
    help: Option<bool>,
}

/// When to do something that is for terminals.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum When {
    #[default]
    Auto,
    Always,
    Never,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run what is not done, or no longer true
    #[command(after_help = RUN_EXAMPLES)]
    Run {
        /// What to run [default: all stages]
        #[arg(value_name = "STAGE[/BATCH]")]
        targets: Vec<String>,
        #[command(flatten)]
        flags: RunFlags,
    },
    /// Say what a run would do, and why; nothing is written
    #[command(after_help = PLAN_EXAMPLES)]
    Plan {
        /// What would be run [default: all stages]
        #[arg(value_name = "STAGE[/BATCH]")]
        targets: Vec<String>,
        /// Show what this batch would send first to an agent
        #[arg(long, value_name = "STAGE/BATCH", conflicts_with = "targets")]
        show_request: Option<String>,
        #[command(flatten)]
        select: SelectFlags,
        #[command(flatten)]
        values: ValueFlags,
    },
    /// Run, and run again what changes make stale, until Ctrl-C
    #[command(after_help = WATCH_EXAMPLES)]
    Watch {
        /// What to run [default: all stages]
        #[arg(value_name = "STAGE[/BATCH]")]
        targets: Vec<String>,
        #[command(flatten)]
        flags: WatchFlags,
        #[command(flatten)]
        values: ValueFlags,
    },
    /// Say how far each stage is; a run at work is not disturbed
    Status {
        #[command(flatten)]
        values: ValueFlags,
    },
    /// Show parameters and agents with where their values come from, or change them without a run
    #[command(after_help = PARAMS_EXAMPLES)]
    Params {
        #[command(flatten)]
        values: ValueFlags,
    },
    /// Say why a stage, a batch or a file is as it is, and what it came from
    #[command(after_help = WHY_EXAMPLES)]
    Why {
        /// A stage, a batch, or a file in the workspace
        #[arg(value_name = "STAGE[/BATCH]|PATH")]
        what: String,
        #[command(flatten)]
        values: ValueFlags,
    },
    /// Show what happened, and what programs printed
    #[command(after_help = LOG_EXAMPLES)]
    Log {
        /// Of one stage or batch
        #[arg(value_name = "STAGE[/BATCH]")]
        target: Option<String>,
        /// Of one run: its id, or how that begins
        #[arg(long, value_name = "ID")]
        run: Option<String>,
        /// Only errors
        #[arg(long)]
        errors: bool,
        /// Calls of agents, with what was asked and answered
        #[arg(long)]
        calls: bool,
        /// Only the last so many records, or calls; 0: all
        #[arg(long, value_name = "N", default_value_t = 50)]
        last: usize,
    },
    /// Compare what is recorded with what is there: outputs, manifests, checkpoints, journal
    Verify {
        /// Judge all outputs again, by their schemas, checks and conservation
        #[arg(long)]
        deep: bool,
        #[command(flatten)]
        values: ValueFlags,
    },
    /// Keep altered outputs as they are, or adopt a harmless change, without a run
    #[command(after_help = ACCEPT_EXAMPLES)]
    Accept {
        /// What to accept
        #[arg(value_name = "STAGE[/BATCH]", required = true)]
        targets: Vec<String>,
        /// Why, for the journal
        #[arg(long, value_name = "TEXT")]
        why: String,
        /// Who, for the journal [default: the user]
        #[arg(long, value_name = "NAME")]
        who: Option<String>,
        /// Adopt a change of this kind (step, file, param, ...) or of this fact ('file prompts/a.md')
        #[arg(long, value_name = "KIND")]
        change: Vec<String>,
    },
    /// Show the stages, what flows between them, and how far they are
    Graph {
        /// As a Mermaid flowchart, for documents
        #[arg(long)]
        mermaid: bool,
    },
    /// Compare with another workspace, or with what was there before the last run
    Diff {
        /// The other workspace, which counts as the old one [default: before the last run]
        #[arg(value_name = "WORKSPACE")]
        other: Option<std::path::PathBuf>,
        /// Only these stages
        #[arg(long = "stage", value_name = "STAGE")]
        stages: Vec<String>,
        /// So many of each sort are listed
        #[arg(long, value_name = "N", default_value_t = 20)]
        limit: usize,
    },
    /// Make a project to start from
    Init {
        /// `ifc`, `grading`, `study-plan`, `diagrams`, `prompt-tests`, each a whole system, or `minimal`
        template: String,
        /// Where [default: a folder of that name]
        folder: Option<String>,
    },
    /// Remove what stages made; inputs and files of others stay
    Clean {
        /// Only of these stages [default: all]
        #[arg(value_name = "STAGE")]
        stages: Vec<String>,
        /// Do it; without, what would go is only listed
        #[arg(long)]
        yes: bool,
    },
    /// Remove what no run needs: scratch, leftovers, answers in whose place others stand, and what is old and of no use
    Gc {
        /// Quarantine older than this goes too, and answers and calls that nothing is made from, such as 30d
        #[arg(long, value_name = "AGE", value_parser = parse_duration)]
        older_than: Option<std::time::Duration>,
        /// Do it; without, what would go is only listed
        #[arg(long)]
        yes: bool,
    },
    /// Serve agents by the Model Context Protocol, on standard input and output, until the client leaves
    #[command(after_help = MCP_EXAMPLES)]
    Mcp {
        /// By streamable HTTP at this port of this machine; 0: one that is free
        #[arg(long, value_name = "PORT")]
        http: Option<u16>,
        /// Let another agent answer in the place of one, or of all; an external one leaves it to clients
        #[arg(long, value_name = "[NAME=]OTHER")]
        agent: Vec<String>,
    },
    /// Print a JSON Schema of what Milepost reads, writes or tells
    Schema {
        /// Which [default: list them]
        name: Option<String>,
    },
    /// Print the help of Milepost, or of one command
    Help {
        /// A command
        #[arg(value_name = "COMMAND")]
        command: Option<String>,
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
            Self::Watch { .. } => "watch",
            Self::Status { .. } => "status",
            Self::Why { .. } => "why",
            Self::Log { .. } => "log",
            Self::Verify { .. } => "verify",
            Self::Params { .. } => "params",
            Self::Accept { .. } => "accept",
            Self::Graph { .. } => "graph",
            Self::Diff { .. } => "diff",
            Self::Init { .. } => "init",
            Self::Clean { .. } => "clean",
            Self::Gc { .. } => "gc",
            Self::Mcp { .. } => "mcp",
            Self::Schema { .. } => "schema",
            Self::Help { .. } => "help",
            Self::Completions { .. } => "completions",
        }
    }
}

impl Command {
    /// Whether it goes by values that differ from the declared ones.
    pub fn takes_values(&self) -> bool {
        matches!(
            self,
            Self::Run { .. }
                | Self::Plan { .. }
                | Self::Watch { .. }
                | Self::Status { .. }
                | Self::Why { .. }
                | Self::Verify { .. }
                | Self::Params { .. }
        )
    }
}
