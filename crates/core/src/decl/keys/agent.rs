//! Keys of `[agents.NAME]`. The providers of model APIs come from their registry.

use super::ValueKind::{Choice, Command, File, Folder, Integer, Jq, Number, Plain, Text, True};
use super::{KeySpec, TableSpec, key};
use crate::model::api_kind::ApiKind;

/// `[agents.NAME]`.
pub(crate) static AGENT: TableSpec = TableSpec {
    what: "agent",
    header: "[agents.NAME]",
    short: None,
    keys: &KEYS,
};

static KEYS: [KeySpec; FREE.len() + API.len() + OTHER.len()] = keys();

/// Agents that are free.
const FREE: &[KeySpec] = &[
    key("rules", File)
        .what()
        .doc("A TOML file of rules. Free, offline and deterministic."),
    key("jq", Jq).what().doc(
        "A jq program that computes the answer; `.` is the question, or the scope of \
         the stage if the step has no `questions`. Free and offline.",
    ),
    key("replay", Folder).what().doc(
        "A folder of recorded calls (a copy of a workspace's `.milepost/calls`). A \
         request that was recorded gets the recorded answer.",
    ),
];

/// Agents that are not APIs, and the settings of all.
const OTHER: &[KeySpec] = &[
    key("cli", Command).what().doc(
        "A command line that answers: `claude`, `opencode`, `cursor`, `codex`, \
         `gemini`, or a list of a program and its arguments, in which `project:PATH` \
         is a file of the project. It reads the prompt from standard input, or from \
         the argument `{{ prompt }}`.",
    ),
    key("external", True).what().doc(
        "A person, or an agent that connects through `milepost mcp`, answers. The \
         stage waits until its batches are answered.",
    ),
    key("base_url", Text)
        .beside(&API)
        .default("the provider's")
        .doc(
            "The address of the API; the provider's own address if a template renders \
             nothing.",
        ),
    key("api_key_env", Plain)
        .beside(&API)
        .default("the provider's")
        .doc("The environment variable that holds the API key."),
    key("max_tokens", Integer)
        .beside(&API)
        .default("4096")
        .doc("Maximum tokens of an answer."),
    key("temperature", Number)
        .beside(&API)
        .default("0")
        .doc("The sampling temperature."),
    key("mode", Choice(&["direct", "batch"]))
        .beside(&WITH_BATCHES)
        .default("direct")
        .doc(
            "`batch` sends requests as provider batches, which are answered within a day \
             at a lower price.",
        ),
    key("envelope", Choice(&["text", "json", "ndjson"]))
        .beside(&["cli"])
        .default("text")
        .doc(
            "The output format of a command line that is a list: the answer as text, one \
             JSON value that contains it, or one JSON event per line.",
        ),
    key("concurrency", Integer)
        .default("none")
        .doc("Maximum concurrent calls, over all stages of a run."),
    key("requests_per_minute", Integer)
        .default("none")
        .doc("Maximum requests per minute, over all stages of a run."),
    key("tokens_per_minute", Integer)
        .default("none")
        .doc("Maximum tokens per minute, over all stages of a run."),
    key("tries", Integer)
        .beside(&API_OR_CLI)
        .default("6; 1 if the step has `attempts = 1`, unless the service is overloaded")
        .doc(
            "Maximum number of times to send a request that gets no answer, with pauses \
             of 1 s, 2 s, 4 s and so on. Invalid answers count towards `attempts` of the \
             step.",
        ),
    key("max_usd_per_call", Number).default("none").doc(
        "Maximum cost of a call, in dollars, if its price is unknown. Required for \
         `cli` under a budget.",
    ),
];

/// The keys of the providers.
const API: [&str; ApiKind::ALL.len()] = {
    let mut names = [""; ApiKind::ALL.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = ApiKind::ALL[at].name();
        at += 1;
    }
    names
};

/// The keys of the providers that take batches.
const WITH_BATCHES: [&str; count_of_batches()] = {
    let mut names = [""; count_of_batches()];
    let (mut at, mut end) = (0, 0);
    while at < API.len() {
        if ApiKind::ALL[at].spec().has_batches {
            names[end] = API[at];
            end += 1;
        }
        at += 1;
    }
    names
};

/// Agents that may fail to answer, and whose repeated requests cost something.
const API_OR_CLI: [&str; API.len() + 1] = {
    let mut names = ["cli"; API.len() + 1];
    let mut at = 0;
    while at < API.len() {
        names[at] = API[at];
        at += 1;
    }
    names
};

const fn count_of_batches() -> usize {
    let (mut at, mut count) = (0, 0);
    while at < ApiKind::ALL.len() {
        if ApiKind::ALL[at].spec().has_batches {
            count += 1;
        }
        at += 1;
    }
    count
}

const fn keys() -> [KeySpec; FREE.len() + API.len() + OTHER.len()] {
    let mut keys = [FREE[0]; FREE.len() + API.len() + OTHER.len()];
    let mut at = 0;
    while at < keys.len() {
        keys[at] = if at < FREE.len() {
            FREE[at]
        } else if at < FREE.len() + API.len() {
            let kind = ApiKind::ALL[at - FREE.len()];
            key(kind.name(), Plain).what().doc(kind.spec().doc)
        } else {
            OTHER[at - FREE.len() - API.len()]
        };
        at += 1;
    }
    keys
}
