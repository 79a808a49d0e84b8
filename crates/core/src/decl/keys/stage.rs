//! Keys of a stage's file, without those of its steps.

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
        key("description", Plain).doc("A description of the stage, shown by `plan` and `graph`."),
        key("role", Plain)
            .default("the stage's name")
            .doc("`agent_name` in the journal, for steps without a `role` of their own."),
        key("progress", FileName)
            .default("NAME_progress.json")
            .doc("The name of the progress file in the workspace."),
        key("marker", Place)
            .default("none")
            .doc("An empty file to write after the outputs of a batch."),
        key("services", Names)
            .default("none")
            .doc("The services that must be running while its batches run."),
        key("allow_partial", Bool)
            .default("false")
            .doc("If true, the stage runs after a partial stage, and is then partial itself."),
        key("summary", Jq).default("none").doc(
            "A summary of each batch, for the journal and the checkpoint. Its `warnings` \
             are printed.",
        ),
        key("verdict", Jq).default("none").doc(
            "A condition on the result. If it is false, the stage is complete, but the \
             run exits with code 1.",
        ),
        key("each", Named(&EACH))
            .default("one batch")
            .doc("The items to run one batch each for."),
        key("inputs", Named(&INPUT)).doc("The files that the stage reads, by name."),
        key("step", OneOrMany(&STEP))
            .required()
            .doc("The work of the stage: one `[step]`, or several `[[step]]` in order."),
        key("refine", ValueKind::Table(&REFINE))
            .default("none")
            .doc("Repeats the steps until a condition holds."),
        key("approve", ValueKind::Table(&APPROVE))
            .default("none")
            .doc("A person approves the batches before they run."),
        key("outputs", Named(&OUTPUT)).doc("The files that the stage writes, by name."),
        key("conserve", ValueKind::Table(&CONSERVE))
            .default("none")
            .doc("Keys that must appear in the outputs as often as in the inputs."),
        key("require", Many(&REQUIRE))
            .default("none")
            .doc("Preconditions of a batch, checked before it starts."),
        key("check", Many(&CHECK))
            .default("none")
            .doc("Checks of the outputs."),
        key("policy", ValueKind::Table(&POLICY))
            .doc("Concurrency, time limits, and what to do about failures."),
        key("limits", ValueKind::Table(&STAGE_LIMITS))
            .doc("The memory and time that an attempt of a step may take."),
        key("executor", Choice(ExecutorName::WORDS))
            .default("that of `--executor`, or local")
            .doc(
                "Where the batches run: on this machine, or as jobs of a scheduler of \
                 `[executor]`.",
            ),
        key("resources", ValueKind::Table(&RESOURCES))
            .default("those of `[executor]`")
            .doc("The resources of a job that runs batches of the stage."),
        key("errors", Outcomes).doc("Custom error codes for outcomes of this stage."),
        key("estimate", ValueKind::Table(&ESTIMATE))
            .default("measured")
            .doc("The tokens that a batch is expected to use, for `plan`."),
    ],
};

/// `[approve]`.
pub(crate) static APPROVE: TableSpec = TableSpec {
    what: "approval",
    header: "[approve]",
    short: None,
    keys: &[key("by", Text).required().doc(
        "The role of the person who approves, such as `reviewer`. It is shown while \
         the stage waits, and recorded.",
    )],
};

/// `[estimate]`.
pub(crate) static ESTIMATE: TableSpec = TableSpec {
    what: "estimate",
    header: "[estimate]",
    short: None,
    keys: &[
        key("tokens", Integer)
            .required()
            .doc("The input and output tokens of all calls of a batch."),
        key("input_share", CountOrShare)
            .default("0.5")
            .doc("The share of input tokens, from 0.0 to 1.0."),
    ],
};

/// `[each.NAME]`.
pub(crate) static EACH: TableSpec = TableSpec {
    what: "`each`",
    header: "[each.NAME]",
    short: None,
    keys: &[
        key("path", Path)
            .what()
            .doc("One batch for each matching file; an item is `{path, stem, number, data}`."),
        key("from", Path)
            .what()
            .doc("One batch for each row that `select` finds in this file."),
        key("values", Values)
            .what()
            .doc("One batch for each value."),
        key("count", Count)
            .what()
            .doc("One batch for each number from 1 to this number."),
        key("select", Jq)
            .required_beside("from")
            .doc("Selects the rows; `.` is the content of the file."),
        key("columns", Columns)
            .beside(&["from"])
            .default("none")
            .doc(
                "All columns of the table, in any order, with the type of their cells. An \
                 empty cell is null.",
            ),
        key("key", Jq)
            .default("the value")
            .doc("The key of an item; `.` is the item. Required if items are objects."),
    ],
};

/// `[inputs.NAME]`.
pub(crate) static INPUT: TableSpec = TableSpec {
    what: "input",
    header: "[inputs.NAME]",
    short: Some("path"),
    keys: &[
        key("path", Path)
            .what()
            .doc("The path of the file; a glob stands for a list of files."),
        key("from", Path).what().doc(
            "A file that names the files to read: a list of files if `select` contains \
             `[]`, otherwise one file or null.",
        ),
        key("select", Jq)
            .required_beside("from")
            .doc("Selects the names; `.` is the content of the file."),
        key("base", Folder)
            .required_beside("from")
            .doc("The folder that the names are relative to, and must not leave."),
        key("schema", File)
            .default("none")
            .doc("The JSON Schema of the file; for CSV and NDJSON, of one row."),
        key("optional", Bool)
            .default("false")
            .doc("If true, the file may be missing; it is then null."),
        key("earlier", Bool).beside(&["path"]).default("false").doc(
            "If true, a pattern over outputs also matches the files that earlier runs \
             wrote there under other names.",
        ),
        key("format", Choice(FORMATS))
            .default("by ending")
            .doc("The format of the file."),
        key("columns", Columns).default("none").doc(
            "All columns of the table, in any order, with the type of their cells. An \
             empty cell is null.",
        ),
    ],
};

/// `[outputs.NAME]`.
pub(crate) static OUTPUT: TableSpec = TableSpec {
    what: "output",
    header: "[outputs.NAME]",
    short: Some("path"),
    keys: &[
        key("path", Place).required().doc(
            "The path to write. `*` stands for any number of files, `{{ iteration }}` \
             for one file per iteration of `[refine]`.",
        ),
        key("schema", FileOrFalse)
            .default("schemas/NAME.schema.json if it exists")
            .doc(
                "The JSON Schema of the file; for CSV and NDJSON, of one row. `false` turns \
                 validation off.",
            ),
        key("stream", Select).default("none").doc(
            "An array in the file to validate item by item, without loading the whole \
             file.",
        ),
        key("format", Choice(FORMATS))
            .default("by ending")
            .doc("The format of the file."),
        key("columns", Columns).default("none").doc(
            "All columns of the table, in any order, with the type of their cells. An \
             empty cell is null.",
        ),
        key("min", Number)
            .default("0, with a warning if there is none")
            .doc("Minimum number of files of an output with `*`. With fewer, the batch fails."),
    ],
};

/// `[refine]`.
pub(crate) static REFINE: TableSpec = TableSpec {
    what: "refine",
    header: "[refine]",
    short: None,
    keys: &[
        key("until", Jq).required().doc(
            "Checked after each iteration; the loop ends once it is true. It can use the \
             outputs of the steps and `iteration`.",
        ),
        key("max_iterations", Count)
            .default("3")
            .doc("Maximum number of iterations."),
        key("otherwise", Choice(&["fail", "best"]))
            .default("fail")
            .doc(
                "What to do if no iteration passes: fail the batch, or keep the iteration \
                 with the highest `score`.",
            ),
        key("score", Jq)
            .default("none")
            .doc("A number that rates an iteration."),
        key("message", Text).default("the test and the scores").doc(
            "The error message if the loop fails. `best` is `{iteration, score}` of the \
             best iteration.",
        ),
    ],
};

/// `[conserve]`.
pub(crate) static CONSERVE: TableSpec = TableSpec {
    what: "conserve",
    header: "[conserve]",
    short: None,
    keys: &[
        key("in", Select).required().doc("The keys in the inputs."),
        key("out", Select)
            .required()
            .doc("The keys in the outputs."),
    ],
};

/// `[[require]]`.
pub(crate) static REQUIRE: TableSpec = TableSpec {
    what: "require",
    header: "[[require]]",
    short: None,
    keys: &[
        key("test", Jq).required().doc(
            "A condition that must be true before the batch starts. It can use `params`, \
             `env`, `workspace`, `each` items and inputs.",
        ),
        key("error", Plain)
            .default("REQUIRE_FAILED")
            .doc("The error code if it is not true."),
        key("message", Text)
            .default("the test")
            .doc("The error message."),
    ],
};

/// `[[check]]`.
pub(crate) static CHECK: TableSpec = TableSpec {
    what: "check",
    header: "[[check]]",
    short: None,
    keys: &[
        key("test", Jq)
            .required()
            .doc("A condition that must be true."),
        key("error", Plain)
            .default("CHECK_FAILED")
            .doc("The error code if it is not true."),
        key("message", Text)
            .default("the test")
            .doc("The error message."),
    ],
};

/// `[policy]`.
pub(crate) static POLICY: TableSpec = TableSpec {
    what: "policy",
    header: "[policy]",
    short: None,
    keys: &[
        key("concurrency", Concurrency).default("1, or --jobs").doc(
            "Maximum concurrent batches; `{ NAME = N }` limits the concurrent values of \
             one `each` name.",
        ),
        key("timeout", Duration)
            .default("none")
            .doc("The time limit of the whole stage."),
        key("on_failure", Choice(&["stop", "continue"]))
            .default("stop")
            .doc("With `continue`, the other batches still run, and the stage is partial."),
        key("placeholder", Jq).default("none").doc(
            "The record to write for a failed batch; `.` is `{outcome, error_code, \
             message, usage}`.",
        ),
        key("max_failures", CountOrShare)
            .default("none")
            .doc("Stops the stage after this many failed batches, or this share of them."),
        key("altered", Choice(&["stop", "redo"]))
            .default("stop")
            .doc("What to do about outputs that were modified by hand."),
    ],
};

/// `[limits]` of a stage.
pub(crate) static STAGE_LIMITS: TableSpec = TableSpec {
    what: "limits",
    header: "[limits]",
    short: None,
    keys: &[
        key("memory", Size)
            .default("4 GiB for ifc and jq, 1 GiB for pdf_text")
            .doc(
                "Maximum memory to read a model or a PDF, or to run a jq program, such as \
                 \"2 GiB\". The attempt then fails with the outcome `memory`.",
            ),
        key("timeout", Duration)
            .default("that of the step")
            .doc("The time limit of one attempt of a step without a `timeout` of its own."),
    ],
};
