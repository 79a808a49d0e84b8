//! Keys of `milepost.toml`.

use super::Kind::{
    Any, AnyNumber, Choice, Command, Duration, File, Folder, Integer, Jq, Named, Names, Number,
    Outcomes, Params, Place, Plain, Strings, Table as Of, Text, True, Values,
};
use super::Need::{Beside, Optional, Required, What};
use super::{Table, key};
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

/// `[agents.NAME]`.
pub static AGENT: Table = Table {
    what: "agent",
    header: "[agents.NAME]",
    short: None,
    keys: &[
        key(
            "rules",
            File,
            What,
            "",
            "A table of rules, as TOML: free, offline, the same answer every time.",
        ),
        key(
            "jq",
            Jq,
            What,
            "",
            "A jq program that computes the answer: `.` is the question; without `questions` it is the scope of the stage. Free and offline.",
        ),
        key(
            "replay",
            Folder,
            What,
            "",
            "A folder of the project with calls that an earlier run recorded (a copy of a workspace's `.milepost/calls`): the same request gets the same answer.",
        ),
        key(
            "anthropic",
            Plain,
            What,
            "",
            "A model of Anthropic's Messages API.",
        ),
        key(
            "openai",
            Plain,
            What,
            "",
            "A model of OpenAI's Chat Completions API, or of a server that speaks it.",
        ),
        key(
            "cli",
            Command,
            What,
            "",
            "A command line that answers: `claude`, `opencode`, `cursor`, `codex`, `gemini`, or a list of a program and its arguments. The prompt is its standard input, or stands where `{{ prompt }}` does.",
        ),
        key(
            "external",
            True,
            What,
            "",
            "Someone outside answers, such as a person or an agent that works through Milepost (`milepost mcp`): the stage is held until its batches are answered.",
        ),
        key(
            "base_url",
            Text,
            Beside(&["anthropic", "openai"]),
            "the provider's",
            "Where the API is; the provider's own address where a template gives nothing.",
        ),
        key(
            "api_key_env",
            Plain,
            Beside(&["anthropic", "openai"]),
            "ANTHROPIC_API_KEY or OPENAI_API_KEY",
            "The environment variable that holds the key.",
        ),
        key(
            "max_tokens",
            Integer,
            Beside(&["anthropic", "openai"]),
            "4096",
            "The most tokens of an answer.",
        ),
        key(
            "temperature",
            Number,
            Beside(&["anthropic", "openai"]),
            "0",
            "How much chance there is in an answer.",
        ),
        key(
            "mode",
            Choice(&["direct", "batch"]),
            Beside(&["anthropic", "openai"]),
            "direct",
            "`batch`: requests go in batches of the provider, which answers them within a day at a lower price.",
        ),
        key(
            "envelope",
            Choice(&["text", "json", "ndjson"]),
            Beside(&["cli"]),
            "text",
            "What a command line that is a list prints: the answer, one JSON value that holds it, or events, one a line.",
        ),
        key(
            "registry",
            File,
            Beside(&["cli"]),
            "none",
            "A file such as `riteway.agent-config.json`, in which `cli` is the name of an agent.",
        ),
        key(
            "concurrency",
            Integer,
            Optional,
            "none",
            "Calls at once, over all stages of a run.",
        ),
        key(
            "requests_per_minute",
            Integer,
            Optional,
            "none",
            "Requests a minute, over all stages of a run.",
        ),
        key(
            "tokens_per_minute",
            Integer,
            Optional,
            "none",
            "Tokens a minute, over all stages of a run.",
        ),
        key(
            "tries",
            Integer,
            Beside(&["anthropic", "openai", "cli"]),
            "6; 1 where the step says `attempts = 1`, unless the service is too busy",
            "How often a request is sent at most while it meets no answer, with pauses of 1 s, 2 s, 4 s and so on. Answers that are not valid are for `attempts` of the step.",
        ),
        key(
            "max_usd_per_call",
            Number,
            Optional,
            "none",
            "What a call costs at most, in dollars, where no price tells: needed for `cli` under a budget.",
        ),
    ],
};
