//! Keys of `milepost.toml`.

use super::Kind::{
    Command, File, Folder, Named, Names, Outcomes, Params, Place, Plain, Strings, Text,
};
use super::Need::{Optional, Required, What};
use super::{Table, key};

/// `milepost.toml`.
pub static PROJECT: Table = Table {
    what: "project",
    header: "",
    short: None,
    later: &["limits", "manifest"],
    keys: &[
        key("name", Plain, Required, "", "Name of the project."),
        key(
            "params",
            Params,
            Optional,
            "",
            "Parameters and their defaults; `--set NAME=VALUE` changes one. `{ file, base }` is a file that `--set` copies into the workspace.",
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
            "services",
            Named(&SERVICE),
            Optional,
            "",
            "Processes that stages need: started when one needs them, unless they answer already, and ended with the run.",
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

/// `[services.NAME]`.
pub static SERVICE: Table = Table {
    what: "service",
    header: "[services.NAME]",
    short: None,
    later: &[],
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

/// `{ file, base }` of `[params]`.
pub static PARAM_FILE: Table = Table {
    what: "file parameter",
    header: "[params]",
    short: None,
    later: &[],
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
    ],
};

/// `[agents.NAME]`.
pub static AGENT: Table = Table {
    what: "agent",
    header: "[agents.NAME]",
    short: None,
    later: &[
        "jq",
        "replay",
        "anthropic",
        "openai",
        "cli",
        "external",
        "base_url",
        "api_key_env",
        "max_tokens",
        "temperature",
        "mode",
        "envelope",
        "concurrency",
        "requests_per_minute",
        "tokens_per_minute",
        "max_usd_per_call",
    ],
    keys: &[key(
        "rules",
        File,
        What,
        "",
        "A table of rules, as TOML: free, offline, the same answer every time.",
    )],
};
