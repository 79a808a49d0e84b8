//! Keys of a stage's file, but for those of its steps.

use super::Kind::{
    Bool, Choice, Columns, Concurrency, Count, CountOrShare, Duration, File, FileName, FileOrFalse,
    Folder, Integer, Jq, Many, Named, Names, OneOrMany, Outcomes, Path, Place, Plain, Select, Text,
    Values,
};
use super::Need::{Beside, Optional, Required, RequiredBeside, What};
use super::{FORMATS, Kind, STEP, Table, key};

/// `stages/N_name.toml`.
pub static STAGE: Table = Table {
    what: "stage",
    header: "",
    short: None,
    keys: &[
        key(
            "description",
            Plain,
            Optional,
            "",
            "What the stage is for; shown by plan and graph.",
        ),
        key(
            "role",
            Plain,
            Optional,
            "the stage's name",
            "`agent_name` in the journal, of all steps that have none of their own.",
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
            "services",
            Names,
            Optional,
            "none",
            "The project's services that must answer while its batches run.",
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
            "refine",
            Kind::Table(&REFINE),
            Optional,
            "none",
            "Repeats the steps until the result is what it shall be.",
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
            "require",
            Many(&REQUIRE),
            Optional,
            "none",
            "Preconditions of a batch, judged before it begins.",
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
        key(
            "estimate",
            Kind::Table(&ESTIMATE),
            Optional,
            "measured",
            "What agents use for a batch, for `plan`.",
        ),
    ],
};

/// `[estimate]`.
pub static ESTIMATE: Table = Table {
    what: "estimate",
    header: "[estimate]",
    short: None,
    keys: &[
        key(
            "tokens",
            Integer,
            Required,
            "",
            "Tokens that a batch uses, input and output of all its calls.",
        ),
        key(
            "input_share",
            CountOrShare,
            Optional,
            "0.5",
            "The share of them that is input, 0.0 to 1.0.",
        ),
    ],
};

/// `[each.NAME]`.
pub static EACH: Table = Table {
    what: "`each`",
    header: "[each.NAME]",
    short: None,
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
            "columns",
            Columns,
            Beside(&["from"]),
            "none",
            "The columns of the table, each with the type of its cells: all of them, in any order, and no others. An empty cell is null.",
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
            "The file that names the files to read. A list of them where `[]` stands in `select`, however many names that gives; else one, or null.",
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
            "JSON Schema of what it holds; of CSV and NDJSON: of one row.",
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
        key(
            "columns",
            Columns,
            Optional,
            "none",
            "The columns of the table, each with the type of its cells: all of them, in any order, and no others. An empty cell is null.",
        ),
    ],
};

/// `[outputs.NAME]`.
pub static OUTPUT: Table = Table {
    what: "output",
    header: "[outputs.NAME]",
    short: Some("path"),
    keys: &[
        key(
            "path",
            Place,
            Required,
            "",
            "Where it is written; with `*`: any number of files; with `{{ iteration }}`: one per round of `[refine]`.",
        ),
        key(
            "schema",
            FileOrFalse,
            Optional,
            "schemas/NAME.schema.json if it is there",
            "JSON Schema of what it holds; of CSV and NDJSON: of one row; false: none.",
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
        key(
            "columns",
            Columns,
            Optional,
            "none",
            "The columns of the table, each with the type of its cells: all of them, in any order, and no others. An empty cell is null.",
        ),
    ],
};

/// `[refine]`.
pub static REFINE: Table = Table {
    what: "refine",
    header: "[refine]",
    short: None,
    keys: &[
        key(
            "until",
            Jq,
            Required,
            "",
            "After each round: true ends the loop. It sees what the steps made, and `iteration`.",
        ),
        key(
            "max_iterations",
            Count,
            Optional,
            "3",
            "At most so many rounds.",
        ),
        key(
            "otherwise",
            Choice(&["fail", "best"]),
            Optional,
            "fail",
            "When no round was right: the batch fails, or the round with the highest `score` stands.",
        ),
        key(
            "score",
            Jq,
            Optional,
            "none",
            "A number: how good a round is.",
        ),
        key(
            "message",
            Text,
            Optional,
            "the test and the scores",
            "What the error says when the loop fails. `best` is `{iteration, score}` of the round with the highest score.",
        ),
    ],
};

/// `[conserve]`.
pub static CONSERVE: Table = Table {
    what: "conserve",
    header: "[conserve]",
    short: None,
    keys: &[
        key("in", Select, Required, "", "The keys that go in."),
        key("out", Select, Required, "", "The keys that come out."),
    ],
};

/// `[[require]]`.
pub static REQUIRE: Table = Table {
    what: "require",
    header: "[[require]]",
    short: None,
    keys: &[
        key(
            "test",
            Jq,
            Required,
            "",
            "Must give true before the batch begins. It sees `params`, `env`, `workspace`, `each` items and inputs.",
        ),
        key(
            "error",
            Plain,
            Optional,
            "REQUIRE_FAILED",
            "Name of the error when it does not.",
        ),
        key(
            "message",
            Text,
            Optional,
            "the test",
            "What the error says.",
        ),
    ],
};

/// `[[check]]`.
pub static CHECK: Table = Table {
    what: "check",
    header: "[[check]]",
    short: None,
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
