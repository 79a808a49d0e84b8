//! The keys of the declaration language, in one table: the reader checks by it and the published schemas are made from it.

/// What may stand behind a key.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// A string that may hold `{{ }}`.
    Text,
    /// A string as it is.
    Plain,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A name of something that is declared.
    Name,
    /// A path, which may hold `{{ }}` and `*`, or begin with `project:`.
    Path,
    /// A path in the workspace that is written.
    Place,
    /// The name of a file in the workspace.
    FileName,
    /// A folder, or `project:` and a folder.
    Folder,
    /// A file of the project.
    File,
    /// A file of the project, or false.
    FileOrFalse,
    /// A jq program, or a file of the project that ends in `.jq`.
    Jq,
    /// A plain path of names, `.a.b[].c`.
    Select,
    /// A number with a unit, or a template.
    Duration,
    /// An integer from 1 on, or a template.
    Count,
    /// An integer from 1 on.
    Integer,
    /// An integer from 0 on, or a share with a point, 0.0 to 1.0.
    CountOrShare,
    /// True or false.
    Bool,
    /// A count, or a table of one name and a count.
    Concurrency,
    /// A list of strings, or one string.
    Command,
    /// A list of strings.
    Names,
    /// A list of anything.
    Values,
    /// A parameter: a value, or `{ file, base }`.
    Param,
    /// A table of these keys.
    Table(&'static Table),
    /// A table of names, each a table of these keys (or its short form).
    Named(&'static Table),
    /// A table of names, each a string.
    Strings,
    /// A table of outcomes, each a string.
    Outcomes,
    /// A table of names, each a parameter.
    Params,
    /// One table of these keys, or a list of such.
    OneOrMany(&'static Table),
    /// A list of tables of these keys.
    Many(&'static Table),
}

/// When a key must or may stand in its table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// It may be left out.
    Optional,
    /// It must be there.
    Required,
    /// Exactly one of the keys with this mark is there: it says what the thing is.
    What,
    /// It may stand beside these keys only.
    Beside(&'static [&'static str]),
    /// It must stand beside this key, and beside no other.
    RequiredBeside(&'static str),
}

/// A key.
#[derive(Debug)]
pub struct Key {
    /// As written.
    pub name: &'static str,
    /// What stands behind it.
    pub kind: Kind,
    /// When it must or may be there.
    pub need: Need,
    /// What holds without it.
    pub default: &'static str,
    /// What it is, for editors and docs.
    pub doc: &'static str,
}

/// A table of the language.
#[derive(Debug)]
pub struct Table {
    /// What one such table is called, after its article.
    pub what: &'static str,
    /// Its header: `[step]`; of tables of names with `NAME` in it; empty for the top of a file.
    pub header: &'static str,
    /// Its keys.
    pub keys: &'static [Key],
    /// Keys of the language that this version has not.
    pub later: &'static [&'static str],
    /// The key that a plain string stands for.
    pub short: Option<&'static str>,
}

impl Table {
    /// The key of this name.
    pub fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|key| key.name == name)
    }

    /// The keys of which exactly one must be there.
    pub fn whats(&self) -> impl Iterator<Item = &'static str> {
        self.keys
            .iter()
            .filter(|key| key.need == Need::What)
            .map(|key| key.name)
    }
}

const fn key(
    name: &'static str,
    kind: Kind,
    need: Need,
    default: &'static str,
    doc: &'static str,
) -> Key {
    Key {
        name,
        kind,
        need,
        default,
        doc,
    }
}

use Kind::{
    Bool, Choice, Command, Concurrency, Count, CountOrShare, Duration, File, FileName, FileOrFalse,
    Folder, Integer, Jq, Many, Name, Named, Names, OneOrMany, Outcomes, Params, Path, Place, Plain,
    Select, Strings, Text, Values,
};
use Need::{Beside, Optional, Required, RequiredBeside, What};

/// `milepost.toml`.
pub static PROJECT: Table = Table {
    what: "project",
    header: "",
    short: None,
    later: &["services", "limits", "manifest"],
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
            "errors",
            Outcomes,
            Optional,
            "",
            "Names for outcomes, for all stages.",
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

/// `stages/N_name.toml`.
pub static STAGE: Table = Table {
    what: "stage",
    header: "",
    short: None,
    later: &["services", "refine", "estimate"],
    keys: &[
        key(
            "description",
            Plain,
            Optional,
            "",
            "What the stage is for; shown by plan and graph.",
        ),
        key(
            "progress",
            FileName,
            Optional,
            "NAME_progress.json",
            "Name of the progress file in the workspace.",
        ),
        key(
            "marker",
            Place,
            Optional,
            "none",
            "Empty file that is written after a batch's outputs.",
        ),
        key(
            "allow_partial",
            Bool,
            Optional,
            "false",
            "Runs after a partial stage, and is then partial at best.",
        ),
        key(
            "summary",
            Jq,
            Optional,
            "none",
            "Of a batch: goes to its journal records and the checkpoint; `warnings` in it are shown.",
        ),
        key(
            "verdict",
            Jq,
            Optional,
            "none",
            "False: the stage is complete, but the run ends with exit code 1.",
        ),
        key(
            "each",
            Named(&EACH),
            Optional,
            "one batch",
            "What there is one batch for each of.",
        ),
        key(
            "inputs",
            Named(&INPUT),
            Optional,
            "",
            "What the stage reads, by name.",
        ),
        key(
            "step",
            OneOrMany(&STEP),
            Required,
            "",
            "What the stage does: one `[step]`, or several `[[step]]` done in turn.",
        ),
        key(
            "outputs",
            Named(&OUTPUT),
            Optional,
            "",
            "What the stage writes, by name.",
        ),
        key(
            "conserve",
            Kind::Table(&CONSERVE),
            Optional,
            "none",
            "Keys that must come out as often as they went in.",
        ),
        key(
            "check",
            Many(&CHECK),
            Optional,
            "none",
            "Tests of the outputs.",
        ),
        key(
            "policy",
            Kind::Table(&POLICY),
            Optional,
            "",
            "How many batches at once, how long, and what to do on failure.",
        ),
        key(
            "errors",
            Outcomes,
            Optional,
            "",
            "Names for outcomes of this stage.",
        ),
    ],
};

/// `[each.NAME]`.
pub static EACH: Table = Table {
    what: "`each`",
    header: "[each.NAME]",
    short: None,
    later: &[],
    keys: &[
        key(
            "path",
            Path,
            What,
            "",
            "A batch per file that matches; an item is `{path, stem, number, data}`.",
        ),
        key(
            "from",
            Path,
            What,
            "",
            "The file whose rows `select` gives: a batch per row.",
        ),
        key("values", Values, What, "", "A batch per value."),
        key("count", Count, What, "", "A batch per number from 1 on."),
        key(
            "select",
            Jq,
            RequiredBeside("from"),
            "",
            "Gives the rows; `.` is what the file holds.",
        ),
        key(
            "key",
            Jq,
            Optional,
            "the value",
            "What an item is known by; `.` is the item. Needed for items that are objects.",
        ),
    ],
};

/// `[inputs.NAME]`.
pub static INPUT: Table = Table {
    what: "input",
    header: "[inputs.NAME]",
    short: Some("path"),
    later: &[],
    keys: &[
        key(
            "path",
            Path,
            What,
            "",
            "The file; a glob is a list of files.",
        ),
        key(
            "from",
            Path,
            What,
            "",
            "The file that names the files to read.",
        ),
        key(
            "select",
            Jq,
            RequiredBeside("from"),
            "",
            "Gives the names; `.` is what the file holds.",
        ),
        key(
            "base",
            Folder,
            RequiredBeside("from"),
            "",
            "The folder that the names are relative to and must stay in.",
        ),
        key(
            "schema",
            File,
            Optional,
            "none",
            "JSON Schema of what it holds; of CSV: of one row.",
        ),
        key(
            "optional",
            Bool,
            Optional,
            "false",
            "May be absent: it is null then.",
        ),
        key(
            "format",
            Choice(FORMATS),
            Optional,
            "by ending",
            "How it is read.",
        ),
    ],
};

/// `[outputs.NAME]`.
pub static OUTPUT: Table = Table {
    what: "output",
    header: "[outputs.NAME]",
    short: Some("path"),
    later: &[],
    keys: &[
        key(
            "path",
            Place,
            Required,
            "",
            "Where it is written; with `*`: any number of files.",
        ),
        key(
            "schema",
            FileOrFalse,
            Optional,
            "schemas/NAME.schema.json if it is there",
            "JSON Schema of what it holds; false: none.",
        ),
        key(
            "stream",
            Select,
            Optional,
            "none",
            "The array in it that is validated item by item, without loading the whole.",
        ),
        key(
            "format",
            Choice(FORMATS),
            Optional,
            "by ending",
            "What it is.",
        ),
    ],
};

/// `[step]` and `[[step]]`.
pub static STEP: Table = Table {
    what: "step",
    header: "[step]",
    short: None,
    later: &[
        "http", "pdf_text", "wait", "answer", "attach", "defaults", "method", "headers", "body",
        "engines",
    ],
    keys: &[
        key(
            "command",
            Command,
            What,
            "",
            "Starts a program: a list is the program and its arguments, a string goes through `sh -c`.",
        ),
        key("agent", Name, What, "", "Asks this agent."),
        key(
            "jq",
            Jq,
            What,
            "",
            "Computes one value: JSON, or text for a text output.",
        ),
        key("render", File, What, "", "Writes text by this template."),
        key("xlsx", File, What, "", "Writes a workbook by this file."),
        key(
            "ifc",
            Name,
            What,
            "",
            "Reads the building model that is this input.",
        ),
        key(
            "pdf",
            Name,
            What,
            "",
            "Sets this Markdown (an input or earlier `out`) as PDF.",
        ),
        key(
            "copy",
            Name,
            What,
            "",
            "Copies this input or earlier `out`.",
        ),
        key(
            "split",
            Select,
            What,
            "",
            "Packs these records into batches.",
        ),
        key(
            "merge",
            Select,
            What,
            "",
            "Joins these records into one file.",
        ),
        key(
            "out",
            Name,
            Optional,
            "the only output",
            "The output that the step makes; a name that is no output is for later steps only.",
        ),
        key(
            "when",
            Jq,
            Optional,
            "true",
            "Only then; else the step is skipped.",
        ),
        key(
            "role",
            Plain,
            Optional,
            "the stage's name",
            "`agent_name` in the journal.",
        ),
        key(
            "timeout",
            Duration,
            Optional,
            "10m for agent and command",
            "One try of the step.",
        ),
        key(
            "attempts",
            Integer,
            Optional,
            "3 for agent, else 1",
            "Tries of the step, with pauses that grow.",
        ),
        key(
            "prompt",
            File,
            RequiredBeside("agent"),
            "",
            "The template of what the agent is asked.",
        ),
        key(
            "schema",
            File,
            Beside(&["agent"]),
            "the output's, without `result`",
            "JSON Schema of one answer.",
        ),
        key(
            "result",
            Jq,
            Beside(&["agent"]),
            "the answer",
            "Makes the record: `.` is the answer, `$element` the element.",
        ),
        key(
            "answer",
            Choice(&["json"]),
            Beside(&["agent"]),
            "json",
            "The form of an answer.",
        ),
        key(
            "questions",
            Bool,
            Beside(&["agent"]),
            "false",
            "Asks the questions that `split` wrote, each once.",
        ),
        key(
            "env",
            Names,
            Beside(&["command"]),
            "none",
            "Environment variables that the program sees besides PATH, HOME and LANG.",
        ),
        key(
            "stdin",
            Name,
            Beside(&["command"]),
            "none",
            "The input or earlier `out` that is its standard input.",
        ),
        key(
            "stream",
            Select,
            Beside(&["jq"]),
            "none",
            "Records that the program reads one at a time by `inputs`.",
        ),
        key(
            "question",
            Jq,
            Beside(&["split"]),
            "the whole record",
            "What of a record an answer may depend on; `.` is the record.",
        ),
        key(
            "size",
            Count,
            Beside(&["split"]),
            "50",
            "At most so many questions a batch.",
        ),
        key(
            "max_elements",
            Count,
            Beside(&["split"]),
            "1000",
            "At most so many records a batch.",
        ),
        key(
            "key",
            Jq,
            RequiredBeside("merge"),
            "",
            "What a record is known by; `.` is the record.",
        ),
        key(
            "order",
            Select,
            Beside(&["merge"]),
            "as read",
            "The keys in the order that the records shall have.",
        ),
        key(
            "corrections",
            Name,
            Beside(&["merge"]),
            "none",
            "The input with columns key, field, value, who, why that wins over the records.",
        ),
    ],
};

/// `[conserve]`.
pub static CONSERVE: Table = Table {
    what: "conserve",
    header: "[conserve]",
    short: None,
    later: &[],
    keys: &[
        key("in", Select, Required, "", "The keys that go in."),
        key("out", Select, Required, "", "The keys that come out."),
    ],
};

/// `[[check]]`.
pub static CHECK: Table = Table {
    what: "check",
    header: "[[check]]",
    short: None,
    later: &[],
    keys: &[
        key("test", Jq, Required, "", "Must give true."),
        key(
            "error",
            Plain,
            Optional,
            "CHECK_FAILED",
            "Name of the error when it does not.",
        ),
        key("message", Text, Optional, "the test", "What to say then."),
    ],
};

/// `[policy]`.
pub static POLICY: Table = Table {
    what: "policy",
    header: "[policy]",
    short: None,
    later: &[],
    keys: &[
        key(
            "concurrency",
            Concurrency,
            Optional,
            "1, or --jobs",
            "Batches at once; `{ NAME = N }`: values of one `each` name at once.",
        ),
        key("timeout", Duration, Optional, "none", "Of the whole stage."),
        key(
            "on_failure",
            Choice(&["stop", "continue"]),
            Optional,
            "stop",
            "`continue`: the other batches go on, and the stage is partial.",
        ),
        key(
            "placeholder",
            Jq,
            Optional,
            "none",
            "Record for a failed batch; `.` is `{outcome, error_code, message}`.",
        ),
        key(
            "max_failures",
            CountOrShare,
            Optional,
            "none",
            "Stop after so many failed batches, or such a share of them.",
        ),
        key(
            "altered",
            Choice(&["stop", "redo"]),
            Optional,
            "stop",
            "What to do about outputs that somebody altered.",
        ),
    ],
};

/// The words of `format`.
pub const FORMATS: &[&str] = &[
    "json", "ndjson", "csv", "toml", "text", "tap", "png", "pdf", "xlsx",
];

/// The outcomes that `[errors]` may name.
pub const OUTCOMES: &[&str] = &[
    "check", "conserve", "exit", "input", "output", "parse", "path", "schema", "timeout",
];

/// Outcomes of the language that this version has not.
pub const LATER_OUTCOMES: &[&str] = &[
    "auth", "budget", "connect", "cut", "engines", "refine", "refused", "status",
];

/// All tables of a stage file, with those of names and lists.
pub fn stage_tables() -> [&'static Table; 8] {
    [
        &STAGE, &EACH, &INPUT, &OUTPUT, &STEP, &CONSERVE, &CHECK, &POLICY,
    ]
}
