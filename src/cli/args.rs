//! Command line arguments and their help texts.

use super::run_flags::{RunFlags, SelectFlags, ValueFlags, WatchFlags};
use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};
use milepost_core::base::duration::parse_duration;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  milepost                           run every stage that is out of date
  milepost -n                        show what would run, and why
  milepost run classify/batch_3      run one batch
  milepost run --failed -k           rerun failed batches, and continue after a failure
  milepost --set model=house.ifc     use another input file
  milepost status                    show the progress of each stage

Exit codes: 0 complete, 1 failed, 2 wrong usage, 3 partial or waiting, 4 invalid declaration,
5 output modified by hand, 130 interrupted.";

const RUN_EXAMPLES: &str = "\
Examples:
  milepost run                       run every stage that is out of date
  milepost run classify              run one stage
  milepost run classify/batch_3      run one batch
  milepost run --until classify      run all stages up to this one
  milepost run --failed              run only batches that failed
  milepost run --force generate      rerun a stage that is up to date; modified outputs go to quarantine
  milepost run --until-paid          run everything that is free, and show what the rest would cost
  milepost run -j 4 -k               run four batches at a time, and continue after a failure
  milepost run --workspaces all.json run each workspace that the file lists";

const PLAN_EXAMPLES: &str = "\
Examples:
  milepost plan                      show what a run would do, and why
  milepost plan classify             plan one stage
  milepost plan --set batch_size=25  plan with another parameter
  milepost plan --show-request classify/batch_3   show the request that an agent would receive
  milepost plan --json               print the plan as JSON";

const WATCH_EXAMPLES: &str = "\
Examples:
  milepost watch                     run, and rerun whatever a change puts out of date
  milepost watch --until classify    watch all stages up to this one
  milepost watch -k -j 4             continue after a failed batch, four batches at a time
  milepost watch --budget-usd 2      call paid agents too, for at most $2 in all runs together
  milepost watch --poll=5            scan every 5 seconds, for network file systems without notifications

Paid agents are called only with --budget-usd or --paid, because each save of a prompt would pay
for its answers again. A failed batch reruns when one of its inputs changes. Ctrl-C stops watching,
with exit code 130.";

const WHY_EXAMPLES: &str = "\
Examples:
  milepost why classify              show which batches would run, and why
  milepost why classify/batch_3      show what a batch depends on, and what changed
  milepost why outputs/report.xlsx   trace a file back to the inputs";

const PARAMS_EXAMPLES: &str = "\
Examples:
  milepost params                    list parameters and agents
  milepost params --set batch_size=50
  milepost params --unset batch_size         go back to the default in milepost.toml
  milepost params --agent classifier=claude  use `claude` instead of `classifier` in this workspace
  milepost params --agent classifier=default use `classifier` again";

const ACCEPT_EXAMPLES: &str = "\
Examples:
  milepost accept generate --why \"logo set by hand\"
  milepost accept classify/batch_3 --why \"checked by M. Lang\"
  milepost accept classify --change file --why \"a comment in the prompt\"";

const IMPORT_EXAMPLES: &str = "\
Examples:
  milepost import-review ~/Downloads/report.xlsx
  milepost import-review report.xlsx --who \"M. Lang\" --why \"seen on site\"";

const LOG_EXAMPLES: &str = "\
Examples:
  milepost log                       show the latest events
  milepost log classify/batch_3      show one batch, with the output of its programs
  milepost log ask/batch_3 --calls   show the requests to an agent, and its responses
  milepost log --errors --last 0     show every error on record";

const MCP_EXAMPLES: &str = "\
Examples:
  claude mcp add milepost -- milepost mcp          add the server to Claude Code (in the project folder)
  milepost -C house mcp --http 8765                serve clients at http://127.0.0.1:8765/
                                                   (prints the token that they need)";

/// Run a pipeline of declared stages over files, skipping everything that is up to date
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
pub(crate) struct Cli {
    #[command(flatten, next_help_heading = "Options of run")]
    pub(crate) run: RunFlags,
    #[command(flatten)]
    pub(crate) everywhere: Everywhere,
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// Options of every command.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Options of every command")]
pub(crate) struct Everywhere {
    /// Look for the project in this folder and above
    #[arg(short = 'C', value_name = "DIR", global = true)]
    pub(crate) directory: Option<PathBuf>,
    /// Use this workspace folder [default: `workspace` in the project]
    #[arg(long, value_name = "DIR", global = true)]
    pub(crate) workspace: Option<PathBuf>,
    /// Print the result as JSON on standard output
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print only warnings and errors
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// Append a debug log to this file
    #[arg(long, value_name = "FILE", global = true)]
    pub(crate) log_file: Option<PathBuf>,
    /// Choose when to use colours
    #[arg(long, value_name = "WHEN", value_enum, default_value_t, global = true)]
    pub(crate) color: When,
    /// Print help
    #[arg(short, long, action = ArgAction::HelpShort, global = true)]
    help: Option<bool>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum When {
    #[default]
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run every stage that is out of date
    #[command(after_help = RUN_EXAMPLES)]
    Run {
        /// Stages or batches to run [default: all stages]
        #[arg(value_name = "STAGE[/BATCH]")]
        targets: Vec<String>,
        #[command(flatten)]
        flags: RunFlags,
    },
    /// Show what a run would do, and why, without running anything
    #[command(after_help = PLAN_EXAMPLES)]
    Plan {
        /// Stages or batches to plan [default: all stages]
        #[arg(value_name = "STAGE[/BATCH]")]
        targets: Vec<String>,
        /// Show the first request that this batch would send to an agent
        #[arg(long, value_name = "STAGE/BATCH", conflicts_with = "targets")]
        show_request: Option<String>,
        #[command(flatten)]
        select: SelectFlags,
        #[command(flatten)]
        values: ValueFlags,
    },
    /// Run, and rerun whatever a change puts out of date, until Ctrl-C
    #[command(after_help = WATCH_EXAMPLES)]
    Watch {
        /// Stages or batches to run [default: all stages]
        #[arg(value_name = "STAGE[/BATCH]")]
        targets: Vec<String>,
        #[command(flatten)]
        flags: WatchFlags,
        #[command(flatten)]
        values: ValueFlags,
    },
    /// Show the state of each stage; safe while a run is in progress
    Status {
        #[command(flatten)]
        values: ValueFlags,
    },
    /// Show parameters and agents with the source of each value, or change them
    #[command(after_help = PARAMS_EXAMPLES)]
    Params {
        #[command(flatten)]
        values: ValueFlags,
    },
    /// Explain why a stage, a batch or a file is out of date or not, and where it came from
    #[command(after_help = WHY_EXAMPLES)]
    Why {
        /// A stage, a batch, or a file in the workspace
        #[arg(value_name = "STAGE[/BATCH]|PATH")]
        what: String,
        #[command(flatten)]
        values: ValueFlags,
    },
    /// Show past events, and what programs printed
    #[command(after_help = LOG_EXAMPLES)]
    Log {
        /// Show only this stage or batch
        #[arg(value_name = "STAGE[/BATCH]")]
        target: Option<String>,
        /// Show only this run, by its id or the start of it
        #[arg(long, value_name = "ID")]
        run: Option<String>,
        /// Show only errors
        #[arg(long)]
        errors: bool,
        /// Show calls of agents, with requests and responses
        #[arg(long)]
        calls: bool,
        /// Show this many of the latest records or calls; 0 shows all
        #[arg(long, value_name = "N", default_value_t = 50)]
        last: usize,
    },
    /// Check outputs, manifests, checkpoints and journal against the record
    Verify {
        /// Check all outputs again by their schemas, checks and conservation
        #[arg(long)]
        deep: bool,
        #[command(flatten)]
        values: ValueFlags,
    },
    /// Accept modified outputs, or a change you know is harmless, without rerunning
    #[command(after_help = ACCEPT_EXAMPLES)]
    Accept {
        /// Stages or batches to accept
        #[arg(value_name = "STAGE[/BATCH]", required = true)]
        targets: Vec<String>,
        /// Reason, for the journal
        #[arg(long, value_name = "TEXT")]
        why: String,
        /// Name of the person, for the journal [default: the user]
        #[arg(long, value_name = "NAME")]
        who: Option<String>,
        /// Accept a change of this kind (step, file, param, ...) or of this fact ('file prompts/a.md')
        #[arg(long, value_name = "KIND")]
        change: Vec<String>,
    },
    /// Add the corrections that a person typed into a report's workbook to the corrections of the workspace
    #[command(after_help = IMPORT_EXAMPLES)]
    ImportReview {
        /// The workbook (.xlsx), saved after editing
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Name of the person, for rows without a name [default: the user]
        #[arg(long, value_name = "NAME")]
        who: Option<String>,
        /// Reason, for rows without a reason
        #[arg(long, value_name = "TEXT")]
        why: Option<String>,
    },
    /// Show the stages, their state, and the files that flow between them
    Graph {
        /// Print a Mermaid flowchart
        #[arg(long)]
        mermaid: bool,
    },
    /// Compare with another workspace, an earlier revision, or the state before the last run
    Diff {
        /// Old side of the comparison: a workspace or a file of records [default: the earlier revision that a step `diff`
        /// reads, otherwise the state before the last run]
        #[arg(value_name = "OLD")]
        other: Option<std::path::PathBuf>,
        /// Compare the outputs of these stages, file by file
        #[arg(long = "stage", value_name = "STAGE")]
        stages: Vec<String>,
        /// List at most this many differences of each kind
        #[arg(long, value_name = "N", default_value_t = 20)]
        limit: usize,
    },
    /// Create a project from a template
    Init {
        /// `ifc`, `grading`, `study-plan`, `diagrams` or `prompt-tests` (complete systems), or `minimal`
        template: String,
        /// Folder to create [default: the name of the template]
        folder: Option<String>,
    },
    /// Remove the outputs of stages; inputs and untracked files stay
    Clean {
        /// Stages to clean [default: all]
        #[arg(value_name = "STAGE")]
        stages: Vec<String>,
        /// Remove the files; without this flag they are only listed
        #[arg(long)]
        yes: bool,
    },
    /// Remove scratch files, superseded answers and unreachable cache entries
    Gc {
        /// Also remove quarantine, and unused answers and calls, older than this, such as 30d
        #[arg(long, value_name = "AGE", value_parser = parse_duration)]
        older_than: Option<std::time::Duration>,
        /// Remove the files; without this flag they are only listed
        #[arg(long)]
        yes: bool,
    },
    /// Serve clients over the Model Context Protocol, on standard input and output
    #[command(after_help = MCP_EXAMPLES)]
    Mcp {
        /// Serve over streamable HTTP at this local port instead; 0 picks a free one
        #[arg(long, value_name = "PORT")]
        http: Option<u16>,
        /// Let every user and program of this machine call the server: ask for no token
        #[arg(long, requires = "http")]
        no_token: bool,
        /// Replace an agent, or all agents; an external one leaves the questions to clients
        #[arg(long, value_name = "[NAME=]OTHER")]
        agent: Vec<String>,
    },
    /// Print a JSON Schema of a file that Milepost reads or writes
    Schema {
        /// Schema to print [default: list all]
        name: Option<String>,
    },
    /// Print help for Milepost or for one command
    Help {
        /// Command to describe
        #[arg(value_name = "COMMAND")]
        command: Option<String>,
    },
    /// Print a shell completion script
    Completions {
        /// Shell to print it for
        shell: clap_complete::Shell,
    },
}

impl Command {
    /// Returns the name on the command line.
    pub(crate) fn name(&self) -> &'static str {
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
            Self::ImportReview { .. } => "import-review",
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
    /// Returns true if the command takes `--set`, `--unset` and `--agent`.
    pub(crate) fn takes_values(&self) -> bool {
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
