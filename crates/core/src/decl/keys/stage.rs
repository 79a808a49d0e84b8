//! Keys of a stage's file, without those of its steps.

use super::Need::{Beside, Optional, Required, RequiredBeside, What};
use super::ValueKind::{
    Bool, Choice, Columns, Concurrency, Count, CountOrShare, Duration, File, FileName, FileOrFalse,
    Folder, Integer, Jq, Many, Named, Names, Number, OneOrMany, Outcomes, Path, Place, Plain,
    Select, Size, Text, Values,
};
use super::{FORMATS, RESOURCES, STEP, TableSpec, ValueKind, key};
use crate::model::executor::ExecutorName;

/// `stages/N_name.toml`.
pub(crate) static STAGE: TableSpec = TableSpec {
    what: "stage",
    header: "",
    short: None,
    keys: &[
        key(
            "description",
            Plain,
            Optional,
            "",
            "A description of the stage, shown by `plan` and `graph`.",
        ),
        key(
            "role",
            Plain,
            Optional,
            "the stage's name",
            "`agent_name` in the journal, for steps without a `role` of their own.",
        ),
        key(
            "progress",
            FileName,
            Optional,
            "NAME_progress.json",
            "The name of the progress file in the workspace.",
        ),
        key(
            "marker",
            Place,
            Optional,
            "none",
            "An empty file to write after the outputs of a batch.",
        ),
        key(
            "services",
            Names,
            Optional,
            "none",
            "The services that must be running while its batches run.",
        ),
        key(
            "allow_partial",
            Bool,
            Optional,
            "false",
            "If true, the stage runs after a partial stage, and is then partial itself.",
        ),
        key(
            "summary",
            Jq,
            Optional,
            "none",
            "A summary of each batch, for the journal and the checkpoint. Its `warnings` are printed.",
        ),
        key(
            "verdict",
            Jq,
            Optional,
            "none",
            "A condition on the result. If it is false, the stage is complete, but the run exits with code 1.",
        ),
        key(
            "each",
            Named(&EACH),
            Optional,
            "one batch",
            "The items to run one batch each for.",
        ),
        key(
            "inputs",
            Named(&INPUT),
            Optional,
            "",
            "The files that the stage reads, by name.",
        ),
        key(
            "step",
            OneOrMany(&STEP),
            Required,
            "",
            "The work of the stage: one `[step]`, or several `[[step]]` in order.",
        ),
        key(
            "refine",
            ValueKind::Table(&REFINE),
            Optional,
            "none",
            "Repeats the steps until a condition holds.",
        ),
        key(
            "approve",
            ValueKind::Table(&APPROVE),
            Optional,
            "none",
            "A person approves the batches before they run.",
        ),
        key(
            "outputs",
            Named(&OUTPUT),
            Optional,
            "",
            "The files that the stage writes, by name.",
        ),
        key(
            "conserve",
            ValueKind::Table(&CONSERVE),
            Optional,
            "none",
            "Keys that must appear in the outputs as often as in the inputs.",
        ),
        key(
            "require",
            Many(&REQUIRE),
            Optional,
            "none",
            "Preconditions of a batch, checked before it starts.",
        ),
        key(
            "check",
            Many(&CHECK),
            Optional,
            "none",
            "Checks of the outputs.",
        ),
        key(
            "policy",
            ValueKind::Table(&POLICY),
            Optional,
            "",
            "Concurrency, time limits, and what to do about failures.",
        ),
        key(
            "limits",
            ValueKind::Table(&STAGE_LIMITS),
            Optional,
            "",
            "The memory and time that an attempt of a step may take.",
        ),
        key(
            "executor",
            Choice(ExecutorName::WORDS),
            Optional,
            "that of `--executor`, or local",
            "Where the batches run: on this machine, or as jobs of a scheduler of `[executor]`.",
        ),
        key(
            "resources",
            ValueKind::Table(&RESOURCES),
            Optional,
            "those of `[executor]`",
            "The resources of a job that runs batches of the stage.",
        ),
        key(
            "errors",
            Outcomes,
            Optional,
            "",
            "Custom error codes for outcomes of this stage.",
        ),
        key(
            "estimate",
            ValueKind::Table(&ESTIMATE),
            Optional,
            "measured",
            "The tokens that a batch is expected to use, for `plan`.",
        ),
    ],
};

/// `[approve]`.
pub(crate) static APPROVE: TableSpec = TableSpec {
    what: "approval",
    header: "[approve]",
    short: None,
    keys: &[key(
        "by",
        Text,
        Required,
        "",
        "The role of the person who approves, such as `reviewer`. It is shown while the stage waits, and recorded.",
    )],
};

/// `[estimate]`.
pub(crate) static ESTIMATE: TableSpec = TableSpec {
    what: "estimate",
    header: "[estimate]",
    short: None,
    keys: &[
        key(
            "tokens",
            Integer,
            Required,
            "",
            "The input and output tokens of all calls of a batch.",
        ),
        key(
            "input_share",
            CountOrShare,
            Optional,
            "0.5",
            "The share of input tokens, from 0.0 to 1.0.",
        ),
    ],
};

/// `[each.NAME]`.
pub(crate) static EACH: TableSpec = TableSpec {
    what: "`each`",
    header: "[each.NAME]",
    short: None,
    keys: &[
        key(
            "path",
            Path,
            What,
            "",
            "One batch for each matching file; an item is `{path, stem, number, data}`.",
        ),
        key(
            "from",
            Path,
            What,
            "",
            "One batch for each row that `select` finds in this file.",
        ),
        key("values", Values, What, "", "One batch for each value."),
        key(
            "count",
            Count,
            What,
            "",
            "One batch for each number from 1 to this number.",
        ),
        key(
            "select",
            Jq,
            RequiredBeside("from"),
            "",
            "Selects the rows; `.` is the content of the file.",
        ),
        key(
            "columns",
            Columns,
            Beside(&["from"]),
            "none",
            "All columns of the table, in any order, with the type of their cells. An empty cell is null.",
        ),
        key(
            "key",
            Jq,
            Optional,
            "the value",
            "The key of an item; `.` is the item. Required if items are objects.",
        ),
    ],
};

/// `[inputs.NAME]`.
pub(crate) static INPUT: TableSpec = TableSpec {
    what: "input",
    header: "[inputs.NAME]",
    short: Some("path"),
    keys: &[
        key(
            "path",
            Path,
            What,
            "",
            "The path of the file; a glob stands for a list of files.",
        ),
        key(
            "from",
            Path,
            What,
            "",
            "A file that names the files to read: a list of files if `select` contains `[]`, otherwise one file or null.",
        ),
        key(
            "select",
            Jq,
            RequiredBeside("from"),
            "",
            "Selects the names; `.` is the content of the file.",
        ),
        key(
            "base",
            Folder,
            RequiredBeside("from"),
            "",
            "The folder that the names are relative to, and must not leave.",
        ),
        key(
            "schema",
            File,
            Optional,
            "none",
            "The JSON Schema of the file; for CSV and NDJSON, of one row.",
        ),
        key(
            "optional",
            Bool,
            Optional,
            "false",
            "If true, the file may be missing; it is then null.",
        ),
        key(
            "earlier",
            Bool,
            Beside(&["path"]),
            "false",
            "If true, a pattern over outputs also matches the files that earlier runs wrote there under other names.",
        ),
        key(
            "format",
            Choice(FORMATS),
            Optional,
            "by ending",
            "The format of the file.",
        ),
        key(
            "columns",
            Columns,
            Optional,
            "none",
            "All columns of the table, in any order, with the type of their cells. An empty cell is null.",
        ),
    ],
};

/// `[outputs.NAME]`.
pub(crate) static OUTPUT: TableSpec = TableSpec {
    what: "output",
    header: "[outputs.NAME]",
    short: Some("path"),
    keys: &[
        key(
            "path",
            Place,
            Required,
            "",
            "The path to write. `*` stands for any number of files, `{{ iteration }}` for one file per iteration of `[refine]`.",
        ),
        key(
            "schema",
            FileOrFalse,
            Optional,
            "schemas/NAME.schema.json if it exists",
            "The JSON Schema of the file; for CSV and NDJSON, of one row. `false` turns validation off.",
        ),
        key(
            "stream",
            Select,
            Optional,
            "none",
            "An array in the file to validate item by item, without loading the whole file.",
        ),
        key(
            "format",
            Choice(FORMATS),
            Optional,
            "by ending",
            "The format of the file.",
        ),
        key(
            "columns",
            Columns,
            Optional,
            "none",
            "All columns of the table, in any order, with the type of their cells. An empty cell is null.",
        ),
        key(
            "min",
            Number,
            Optional,
            "0, with a warning if there is none",
            "Minimum number of files of an output with `*`. With fewer, the batch fails.",
        ),
    ],
};

/// `[refine]`.
pub(crate) static REFINE: TableSpec = TableSpec {
    what: "refine",
    header: "[refine]",
    short: None,
    keys: &[
        key(
            "until",
            Jq,
            Required,
            "",
            "Checked after each iteration; the loop ends once it is true. It can use the outputs of the steps and `iteration`.",
        ),
        key(
            "max_iterations",
            Count,
            Optional,
            "3",
            "Maximum number of iterations.",
        ),
        key(
            "otherwise",
            Choice(&["fail", "best"]),
            Optional,
            "fail",
            "What to do if no iteration passes: fail the batch, or keep the iteration with the highest `score`.",
        ),
        key(
            "score",
            Jq,
            Optional,
            "none",
            "A number that rates an iteration.",
        ),
        key(
            "message",
            Text,
            Optional,
            "the test and the scores",
            "The error message if the loop fails. `best` is `{iteration, score}` of the best iteration.",
        ),
    ],
};

/// `[conserve]`.
pub(crate) static CONSERVE: TableSpec = TableSpec {
    what: "conserve",
    header: "[conserve]",
    short: None,
    keys: &[
        key("in", Select, Required, "", "The keys in the inputs."),
        key("out", Select, Required, "", "The keys in the outputs."),
    ],
};

/// `[[require]]`.
pub(crate) static REQUIRE: TableSpec = TableSpec {
    what: "require",
    header: "[[require]]",
    short: None,
    keys: &[
        key(
            "test",
            Jq,
            Required,
            "",
            "A condition that must be true before the batch starts. It can use `params`, `env`, `workspace`, `each` items and inputs.",
        ),
        key(
            "error",
            Plain,
            Optional,
            "REQUIRE_FAILED",
            "The error code if it is not true.",
        ),
        key("message", Text, Optional, "the test", "The error message."),
    ],
};

/// `[[check]]`.
pub(crate) static CHECK: TableSpec = TableSpec {
    what: "check",
    header: "[[check]]",
    short: None,
    keys: &[
        key("test", Jq, Required, "", "A condition that must be true."),
        key(
            "error",
            Plain,
            Optional,
            "CHECK_FAILED",
            "The error code if it is not true.",
        ),
        key("message", Text, Optional, "the test", "The error message."),
    ],
};

/// `[policy]`.
pub(crate) static POLICY: TableSpec = TableSpec {
    what: "policy",
    header: "[policy]",
    short: None,
    keys: &[
        key(
            "concurrency",
            Concurrency,
            Optional,
            "1, or --jobs",
            "Maximum concurrent batches; `{ NAME = N }` limits the concurrent values of one `each` name.",
        ),
        key(
            "timeout",
            Duration,
            Optional,
            "none",
            "The time limit of the whole stage.",
        ),
        key(
            "on_failure",
            Choice(&["stop", "continue"]),
            Optional,
            "stop",
            "With `continue`, the other batches still run, and the stage is partial.",
        ),
        key(
            "placeholder",
            Jq,
            Optional,
            "none",
            "The record to write for a failed batch; `.` is `{outcome, error_code, message, usage}`.",
        ),
        key(
            "max_failures",
            CountOrShare,
            Optional,
            "none",
            "Stops the stage after this many failed batches, or this share of them.",
        ),
        key(
            "altered",
            Choice(&["stop", "redo"]),
            Optional,
            "stop",
            "What to do about outputs that were modified by hand.",
        ),
    ],
};

/// `[limits]` of a stage.
pub(crate) static STAGE_LIMITS: TableSpec = TableSpec {
    what: "limits",
    header: "[limits]",
    short: None,
    keys: &[
        key(
            "memory",
            Size,
            Optional,
            "4 GiB for ifc and jq, 1 GiB for pdf_text",
            "Maximum memory to read a model or a PDF, or to run a jq program, such as \"2 GiB\". The attempt then fails with the outcome `memory`.",
        ),
        key(
            "timeout",
            Duration,
            Optional,
            "that of the step",
            "The time limit of one attempt of a step without a `timeout` of its own.",
        ),
    ],
};
