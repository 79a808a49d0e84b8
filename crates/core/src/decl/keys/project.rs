//! Keys of `milepost.toml`.

use super::ValueKind::{
    Any, AnyNumber, Choice, Command, Duration, Folder, Integer, Jq, Named, Names, Number, Outcomes,
    Params, Place, Plain, Strings, Table as Of, Text, Values,
};
use super::{AGENT, EXECUTOR, TableSpec, key};
use crate::model::param::ParamType;

/// `milepost.toml`.
pub(crate) static PROJECT: TableSpec = TableSpec {
    what: "project",
    header: "",
    short: None,
    keys: &[
        key("name", Plain).required().doc("Name of the project."),
        key("params", Params).doc(
            "Parameters and their defaults; `--set NAME=VALUE` changes one. `{ type, \
             default, min, max, enum, pattern, description }` declares its values; `{ \
             file, base }` is a file that `--set` copies into the workspace.",
        ),
        key("env", Strings)
            .doc("Environment variables that declarations may read, with their defaults."),
        key("agents", Named(&AGENT))
            .doc("The agents that answer the questions of agent steps, by name."),
        key("limits", Of(&LIMITS))
            .doc("Limits on what a workspace spends on agents, over all its runs."),
        key("permissions", Choice(&["owner", "umask"]))
            .default("owner")
            .doc(
                "Who can read answers, calls, prompts, leases, logs, scratch and quarantine: \
                 only their owner, or everyone whom the umask allows.",
            ),
        key("services", Named(&SERVICE)).doc(
            "Processes that stages need. Milepost starts one when a stage needs it, \
             unless it answers already, and stops it when the run ends.",
        ),
        key("executor", Of(&EXECUTOR)).doc("Where batches can run besides this machine."),
        key("workspaces", Of(&WORKSPACES))
            .doc("How `run --workspaces` reads its file, and the summary that it prints."),
        key("errors", Outcomes).doc("Custom error codes for outcomes, in all stages."),
    ],
};

/// `[workspaces]`.
pub(crate) static WORKSPACES: TableSpec = TableSpec {
    what: "workspaces",
    header: "[workspaces]",
    short: None,
    keys: &[
        key("select", Jq).default(".[]").doc(
            "Selects the entries of the file. Each is an object with `workspace`, the \
             name of a folder, and parameters.",
        ),
        key("summary", Jq)
            .default("the entries")
            .doc("The summary to print at the end; `.` is `{dry_run, entries}`."),
    ],
};

/// `[limits]`.
pub(crate) static LIMITS: TableSpec = TableSpec {
    what: "limits",
    header: "[limits]",
    short: None,
    keys: &[
        key("usd", Number)
            .default("none")
            .doc("Maximum cost, in dollars."),
        key("tokens", Integer)
            .default("none")
            .doc("Maximum input and output tokens."),
        key("calls", Integer)
            .default("none")
            .doc("Maximum number of calls."),
        key("time", Duration)
            .default("none")
            .doc("Maximum total duration of all calls."),
    ],
};

/// `[services.NAME]`.
pub(crate) static SERVICE: TableSpec = TableSpec {
    what: "service",
    header: "[services.NAME]",
    short: None,
    keys: &[
        key("command", Command).required().doc(
            "The command that starts the service: a list of the program and its \
             arguments, or a string for `sh -c`. It must stay in the foreground.",
        ),
        key("ready", Text)
            .required()
            .doc("A URL. The service is ready once it responds with any status below 500."),
        key("env", Names)
            .default("none")
            .doc("Environment variables to pass on, besides PATH, HOME and LANG=C.UTF-8."),
    ],
};

/// `{ type, default }` of `[params]`.
pub(crate) static PARAM: TableSpec = TableSpec {
    what: "parameter",
    header: "[params]",
    short: None,
    keys: &[
        key("type", Choice(ParamType::WORDS))
            .default("the type of the default")
            .doc(
                "The type of the value. A `date` is written 2026-11-23; `today` is the day \
                 of each run, in UTC.",
            ),
        key("default", Any)
            .required()
            .doc("The value without `--set`; a string may be a template over `workspace`."),
        key("min", AnyNumber).default("none").doc("Minimum value."),
        key("max", AnyNumber).default("none").doc("Maximum value."),
        key("enum", Values)
            .default("any")
            .doc("The values allowed; for a list, the values of its items."),
        key("pattern", Plain).default("none").doc(
            "A regular expression that a string, or each item of a list, must match. Use \
             `^…$` to match the whole string.",
        ),
        key("description", Plain)
            .default("none")
            .doc("A description of the parameter, shown by `milepost params`."),
    ],
};

/// `{ file, base }` of `[params]`.
pub(crate) static PARAM_FILE: TableSpec = TableSpec {
    what: "file parameter",
    header: "[params]",
    short: None,
    keys: &[
        key("file", Place).required().doc(
            "The path of the file in the workspace. `--set` copies a file from anywhere \
             to this path.",
        ),
        key("base", Folder)
            .doc("The folder that the value of `--set` is relative to, and must not leave."),
        key("description", Plain)
            .default("none")
            .doc("A description of the parameter, shown by `milepost params`."),
    ],
};
