//! Command line arguments and their help texts.

use super::flags::{AssumedValues, RunFlags, ValueFlags, WatchFlags, assumed};
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
5 output modified by hand, 6 another process uses the workspace, 130 interrupted.";

const RUN_EXAMPLES: &str = "\
Examples:
  milepost run                       run every stage that is out of date
  milepost run classify              run one stage
  milepost run classify/batch_3      run one batch
  milepost run --until classify      run all stages up to this one
  milepost run --failed              run only batches that failed
  milepost run --force generate      rerun a stage even if it is up to date
  milepost run --until-paid          run everything that is free, and show what the rest would cost
  milepost run -j 4 -k               run four batches at a time, and continue after a failure
  milepost run --workspaces all.json run each workspace that the file lists
  milepost run -v classify           show the commands that run, and what they print";

const PLAN_EXAMPLES: &str = "\
Examples:
  milepost plan                      show what a run would do, and why
  milepost plan classify             plan one stage
  milepost plan --set batch_size=25  plan with another parameter
  milepost plan --show-request classify/batch_3   show the request that an agent would receive
  milepost plan -v classify          show the commands and prompts of the first 20 batches
  milepost plan --json               print the plan as JSON";

const PLAN_VERBOSE: &str = "Show the command, or the beginning of the prompt, of the first 20 batches of each stage; with `-vv`, of all";

const WATCH_EXAMPLES: &str = "\
Examples:
  milepost watch                     run, then rerun what changes make out of date
  milepost watch --until classify    watch all stages up to this one
  milepost watch -k -j 4             continue after a failed batch, four batches at a time
  milepost watch --budget-usd 2      call paid agents too, for at most $2 in all runs together
  milepost watch --poll=5            scan every 5 seconds, such as on a network file system

Paid agents are called only with --budget-usd or --paid, because each save of a prompt would pay
for its answers again. A failed batch reruns when one of its inputs changes. Ctrl-C stops watching,
with exit code 130.";

const WHY_EXAMPLES: &str = "\
Examples:
  milepost why classify              show which batches would run, and why
  milepost why classify/batch_3      show what a batch depends on, and what changed
  milepost why outputs/report.xlsx   trace a file back to the inputs";

const TRACE_EXAMPLES: &str = "\
Examples:
  milepost trace '2dlbQle3KLHU3pax$SELYb'                    follow an element back to the input
  milepost trace outputs/report.xlsx --cell 'Elements!T12'   follow a figure of a workbook
  milepost trace outputs/report.xlsx --element '2dlbQle3KLHU3pax$SELYb' --field volume_m3
  milepost trace intermediate/classified_all.json --pointer /elements/12/volume_m3
  milepost trace outputs/results.tap                         follow a file back to the inputs";

const EVAL_EXAMPLES: &str = "\
Examples:
  milepost eval filters/summary.jq --input result.json              print what the filter returns
  milepost eval '.lines | length' --input invoice.json              try a program
  milepost eval filters/score.jq --input criteria=criteria.toml --input answers=answers.json
  milepost eval filters/record.jq --input answer.json --arg element='{\"id\": 7}' --set language=de

`.` is the file of `--input FILE`; without one, the object of all names, as in a stage. `$params`
has the defaults of milepost.toml and the values of `--set`. Stages and workspaces are not read.";

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

const APPROVE_EXAMPLES: &str = "\
Examples:
  milepost approve classify --why \"list checked\"
  milepost approve classify report --why \"seen\" --who \"M. Lang\"";

const IMPORT_EXAMPLES: &str = "\
Examples:
  milepost import-review ~/Downloads/report.xlsx
  milepost import-review report.xlsx --who \"M. Lang\" --why \"seen on site\"";

const LOG_EXAMPLES: &str = "\
Examples:
  milepost log                       show the latest events
  milepost log classify/batch_3      show one batch, with the output of its programs
  milepost log ask/batch_3 --calls   show the requests to an agent, and its responses
  milepost log --errors --last 0     show every error on record
  milepost log -f classify           print the records of a stage as runs write them";

const GRAPH_EXAMPLES: &str = "\
Examples:
  milepost graph                             list the stages with their files
  milepost graph --format svg > graph.svg    draw the stages, for a browser or a document
  milepost graph --format mermaid            print a flowchart for a README or a wiki
  milepost graph --format dot | dot -Tpdf    lay the stages out with Graphviz";

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  echo 'source <(milepost completions bash)' >> ~/.bashrc
  echo 'source <(milepost completions zsh)' >> ~/.zshrc
  echo 'milepost completions fish | source' >> ~/.config/fish/config.fish

Commands, options, stages, recorded batches, parameters, agents and templates are completed.";

const MAN_EXAMPLES: &str = "\
Examples:
  milepost man ~/.local/share/man/man1   write the pages where `man` finds them
  man milepost-run                       read the page of `milepost run`";

const REPORT_EXAMPLES: &str = "\
Examples:
  milepost report                            write report.html in the current folder
  milepost report --out ~/house.html         write it to another place";

const MCP_EXAMPLES: &str = "\
Examples:
  claude mcp add milepost -- milepost mcp          add the server to Claude Code (in the project folder)";

const UI_EXAMPLES: &str = "\
Examples:
  milepost ui                        open the page of this project's workspace
  milepost ui --port 8080 --no-open  print the URL only, for a browser elsewhere (ssh -L 8080:127.0.0.1:8080)";

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

/// How `graph` prints the graph.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum GraphFormat {
    /// A list for people
    #[default]
    Text,
    /// A drawing
    Svg,
    /// The language of Graphviz
    Dot,
    /// A Mermaid flowchart
    Mermaid,
}

#[derive(Debug, Subcommand, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
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
    #[command(after_help = PLAN_EXAMPLES, mut_arg("dry_run", |arg| arg.hide(true)))]
    #[command(
        mut_arg("set", assumed),
        mut_arg("unset", assumed),
        mut_arg("agents", assumed)
    )]
    #[command(mut_arg("verbose", |arg| arg.help(PLAN_VERBOSE).conflicts_with("show_request")))]
    Plan {
        /// Stages or batches to plan [default: all stages]
        #[arg(value_name = "STAGE[/BATCH]")]
        targets: Vec<String>,
        /// Show the first request that this batch would send to an agent
        #[arg(long, value_name = "STAGE/BATCH", conflicts_with = "targets")]
        show_request: Option<String>,
        #[command(flatten)]
        flags: RunFlags,
    },
    /// Run, then rerun what changes make out of date, until Ctrl-C
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
        values: AssumedValues,
    },
    /// Show parameters and agents with the source of each value, or change them
    #[command(after_help = PARAMS_EXAMPLES)]
    Params {
        #[command(flatten)]
        values: ValueFlags,
    },
    /// Evaluate one jq filter on files, and print what it returns; changes nothing
    #[command(after_help = EVAL_EXAMPLES)]
    Eval {
        /// A `.jq` file of the project, or a program
        #[arg(value_name = "FILTER")]
        filter: String,
        /// Read the input of the program, or the value of a name, from this JSON, NDJSON, CSV, TOML or text file
        #[arg(long, value_name = "[NAME=]FILE")]
        input: Vec<String>,
        /// Set a name to this value: JSON or text
        #[arg(long, value_name = "NAME=VALUE")]
        arg: Vec<String>,
        /// Use this value of a parameter
        #[arg(long, value_name = "NAME=VALUE")]
        set: Vec<String>,
    },
    /// Explain why a stage, a batch or a file is out of date or not, and where it came from
    #[command(after_help = WHY_EXAMPLES)]
    Why {
        /// A stage, a batch, or a file in the workspace
        #[arg(value_name = "STAGE[/BATCH]|PATH")]
        what: String,
        #[command(flatten)]
        values: AssumedValues,
    },
    /// Trace a value back to the inputs: every file, batch, prompt and answer on the way
    #[command(after_help = TRACE_EXAMPLES)]
    Trace {
        /// A key of an element, or a file in the workspace
        #[arg(value_name = "KEY|FILE")]
        what: String,
        /// Follow this cell of the workbook, such as `Elements!G12`
        #[arg(long, value_name = "SHEET!CELL", conflicts_with_all = ["pointer", "element"])]
        cell: Option<String>,
        /// Follow the value at this JSON pointer
        #[arg(long, value_name = "POINTER", conflicts_with = "element")]
        pointer: Option<String>,
        /// Follow the element with this key
        #[arg(long, value_name = "KEY")]
        element: Option<String>,
        /// Show this field of the element at each station
        #[arg(long, value_name = "FIELD", conflicts_with = "pointer")]
        field: Option<String>,
        /// Print prompts, answers and records in full
        #[arg(long)]
        full: bool,
        #[command(flatten)]
        values: AssumedValues,
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
        /// Also print new records as runs write them, until Ctrl-C; with --json, one record per line
        #[arg(short, long, conflicts_with = "calls")]
        follow: bool,
    },
    /// Check outputs, manifests, checkpoints and journal against the record
    Verify {
        /// Check all outputs again by their schemas, checks and conservation
        #[arg(long)]
        deep: bool,
        #[command(flatten)]
        values: AssumedValues,
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
    /// Approve the batches of a stage that waits for approval
    #[command(after_help = APPROVE_EXAMPLES)]
    Approve {
        /// Stages to approve
        #[arg(value_name = "STAGE", required = true)]
        stages: Vec<String>,
        /// Reason, for the journal
        #[arg(long, value_name = "TEXT")]
        why: String,
        /// Name of the person, for the journal [default: the user]
        #[arg(long, value_name = "NAME", alias = "as")]
        who: Option<String>,
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
    #[command(after_help = GRAPH_EXAMPLES)]
    Graph {
        /// Print it in this format
        #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
        format: GraphFormat,
        /// The name of `--format mermaid` before version 0.2
        #[arg(long, hide = true, conflicts_with = "format")]
        mermaid: bool,
    },
    /// Write a report of the workspace: one HTML file that needs nothing else
    #[command(after_help = REPORT_EXAMPLES)]
    Report {
        /// File to write, outside the workspace
        #[arg(long, value_name = "FILE", default_value = "report.html")]
        out: PathBuf,
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
        /// Also remove quarantine, unused answers and calls, and logs that no record names, older than this, such as 30d
        #[arg(long, value_name = "AGE", value_parser = parse_duration)]
        older_than: Option<std::time::Duration>,
        /// Remove the files; without this flag they are only listed
        #[arg(long)]
        yes: bool,
    },
    /// Serve clients over the Model Context Protocol, on standard input and output
    #[command(after_help = MCP_EXAMPLES)]
    Mcp {
        /// Replace an agent, or all agents; an external one leaves the questions to clients
        #[arg(long, value_name = "[NAME=]OTHER")]
        agent: Vec<String>,
    },
    /// Show the workspace in a browser: progress, files, calls, review; start and stop runs
    #[command(after_help = UI_EXAMPLES)]
    Ui {
        /// Listen on this port; 0 picks a free one
        #[arg(long, value_name = "PORT", default_value_t = 0)]
        port: u16,
        /// Listen on this address, so that other machines can connect [default: 127.0.0.1]
        #[arg(long, value_name = "ADDRESS")]
        listen: Option<std::net::IpAddr>,
        /// Print the URL without opening a browser
        #[arg(long)]
        no_open: bool,
        /// Replace an agent, or all agents
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
        command: Vec<String>,
    },
    /// Print the script that turns on completion in a shell
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions {
        /// Shell to print it for
        shell: clap_complete::Shell,
    },
    /// Write man pages to a folder
    #[command(after_help = MAN_EXAMPLES)]
    Man {
        /// Folder to write to, such as ~/.local/share/man/man1; created if it does not exist
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
}

impl Command {
    /// Returns the name on the command line.
    pub(crate) fn name(&self) -> &'static str {
        self.into()
    }

    /// Returns true if the command takes `--set`, `--unset` and `--agent`.
    pub(crate) fn takes_values(&self) -> bool {
        matches!(
            self,
            Self::Run { .. }
                | Self::Plan { .. }
                | Self::Watch { .. }
                | Self::Status { .. }
                | Self::Why { .. }
                | Self::Trace { .. }
                | Self::Verify { .. }
                | Self::Params { .. }
        )
    }
}
