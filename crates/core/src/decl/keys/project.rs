//! Keys of `milepost.toml`.

use super::Kind::{
    Any, AnyNumber, Choice, Command, Duration, Folder, Integer, Jq, Named, Names, Number, Outcomes,
    Params, Place, Plain, Strings, Table as Of, Text, Values,
};
use super::Need::{Optional, Required};
use super::{AGENT, Table, key};
use crate::model::param::ParamType;

/// `milepost.toml`.
pub static PROJECT: Table = Table {
    what: "project",
    header: "",
    short: None,
    keys: &[
        key("name", Plain, Required, "", "Name of the project."),
        key(
            "params",
            Params,
            Optional,
            "",
            "Parameters and their defaults; `--set NAME=VALUE` changes one. `{ type, default, min, max, enum, pattern, description }` declares its values; `{ file, base }` is a file that `--set` copies into the workspace.",
        ),
        key(
            "env",
            Strings,
            Optional,
            "",
            "Environment variables that declarations may read, and their defaults.",
        ),
        key(
            "agents",
            Named(&AGENT),
            Optional,
            "",
            "Who answers what agent steps ask.",
        ),
        key(
            "limits",
            Of(&LIMITS),
            Optional,
            "",
            "What a workspace may spend on agents, in all its runs.",
        ),
        key(
            "services",
            Named(&SERVICE),
            Optional,
            "",
            "Processes that stages need: started when one needs them, unless they answer already, and ended with the run.",
        ),
        key(
            "manifest",
            Of(&MANIFEST),
            Optional,
            "",
            "How `run --manifest` reads its file, and what it says at the end.",
        ),
        key(
            "errors",
            Outcomes,
            Optional,
            "",
            "Names for outcomes, for all stages.",
        ),
    ],
};

/// `[manifest]`.
pub static MANIFEST: Table = Table {
    what: "manifest",
    header: "[manifest]",
    short: None,
    keys: &[
        key(
            "select",
            Jq,
            Optional,
            ".[]",
            "The entries of the file, each an object of `workspace`, a folder's name, and parameters.",
        ),
        key(
            "summary",
            Jq,
            Optional,
            "the entries",
            "What is told at the end; `.` is `{dry_run, entries}`.",
        ),
    ],
};

/// `[limits]`.
pub static LIMITS: Table = Table {
    what: "limits",
    header: "[limits]",
    short: None,
    keys: &[
        key("usd", Number, Optional, "none", "Money, in dollars."),
        key(
            "tokens",
            Integer,
            Optional,
            "none",
            "Tokens, input and output.",
        ),
        key("calls", Integer, Optional, "none", "Calls."),
        key(
            "time",
            Duration,
            Optional,
            "none",
            "How long its calls take, added up.",
        ),
    ],
};

/// `[services.NAME]`.
pub static SERVICE: Table = Table {
    what: "service",
    header: "[services.NAME]",
    short: None,
    keys: &[
        key(
            "command",
            Command,
            Required,
            "",
            "Starts it: a list is the program and its arguments, a string goes through `sh -c`. It stays in the foreground.",
        ),
        key(
            "ready",
            Text,
            Required,
            "",
            "A URL: once anything but a status of 500 and above comes back, the service is ready.",
        ),
        key(
            "env",
            Names,
            Optional,
            "none",
            "Environment variables that it sees besides PATH, HOME and LANG.",
        ),
    ],
};

/// `{ type, default }` of `[params]`.
pub static PARAM: Table = Table {
    what: "parameter",
    header: "[params]",
    short: None,
    keys: &[
        key(
            "type",
            Choice(ParamType::WORDS),
            Optional,
            "the type of the default",
            "The type of its values. A `date` is written 2026-11-23; `today` is the day of each run, in UTC.",
        ),
        key(
            "default",
            Any,
            Required,
            "",
            "The value when nobody sets it; a string may be a template over `workspace`.",
        ),
        key("min", AnyNumber, Optional, "none", "The least number."),
        key("max", AnyNumber, Optional, "none", "The greatest number."),
        key(
            "enum",
            Values,
            Optional,
            "any",
            "The only values; for a list, of its items.",
        ),
        key(
            "pattern",
            Plain,
            Optional,
            "none",
            "A regular expression that a string, or each item of a list, must match; `^…$` matches the whole of it.",
        ),
        key(
            "description",
            Plain,
            Optional,
            "none",
            "What the parameter is for.",
        ),
    ],
};

/// `{ file, base }` of `[params]`.
pub static PARAM_FILE: Table = Table {
    what: "file parameter",
    header: "[params]",
    short: None,
    keys: &[
        key(
            "file",
            Place,
            Required,
            "",
            "Where the file lies in the workspace; `--set` copies one from outside to it.",
        ),
        key(
            "base",
            Folder,
            Optional,
            "",
            "Folder that `--set` is relative to and must stay in.",
        ),
        key(
            "description",
            Plain,
            Optional,
            "none",
            "What the parameter is for.",
        ),
    ],
};
