//! Keys of executors, and of what their jobs need.

use super::ValueKind::{Command, Duration, Integer, Plain, Size, Table as Of, Text};
use super::{KeySpec, TableSpec, key};

/// `[executor]`: the schedulers, by their words in [`ExecutorName`]. The reader takes what all have; the values of other keys of the kind
/// `Plain` are in `JobSettings::texts`.
///
/// [`ExecutorName`]: crate::model::executor::ExecutorName
pub(crate) static EXECUTOR: TableSpec = TableSpec {
    what: "executor",
    header: "[executor]",
    short: None,
    keys: &[
        key("slurm", Of(&SLURM)).doc("Runs batches as jobs of Slurm."),
        key("command", Of(&COMMAND))
            .doc("Runs batches as jobs of any other scheduler, by three commands."),
    ],
};

const SETUP: KeySpec = key("setup", Command).default("none").doc(
    "Lines of shell that run at the start of each job, such as `module load \
     ifcopenshell`.",
);
const BATCHES: KeySpec = key("batches_per_job", Integer)
    .default("100")
    .doc("Maximum batches of one job, which runs them one after another.");
const JOBS: KeySpec = key("max_jobs", Integer)
    .default("100")
    .doc("Maximum concurrent jobs of a stage.");
const ARRAY: KeySpec = key("max_array_size", Integer)
    .default("1000")
    .doc("Maximum jobs of one array. Milepost submits further arrays for the rest.");
const INTERVAL: KeySpec = key("poll_interval", Duration)
    .default("10s")
    .doc("The time between two polls of the scheduler.");
const VISIBLE: KeySpec = key("visible", Duration).default("1min").doc(
    "How long a file that another machine wrote may stay invisible, because file \
     systems cache directory listings.",
);
const PROGRAM: KeySpec = key("program", Plain)
    .default("the path of the running program")
    .doc("The absolute path of `milepost` on the nodes, in the same version.");
const TIME: KeySpec = key("time", Duration)
    .default("the scheduler's default")
    .doc("The time limit of a job, with all its batches.");
const MEMORY: KeySpec = key("memory", Size)
    .default("the scheduler's default")
    .doc("The memory of a job, such as \"2 GB\".");
const CPUS: KeySpec = key("cpus", Integer).default("1").doc(
    "The processors of a job. Its batches run one after another and may use them \
     all.",
);

/// `[executor.slurm]`.
static SLURM: TableSpec = TableSpec {
    what: "executor",
    header: "[executor.slurm]",
    short: None,
    keys: &[
        key("partition", Plain)
            .default("the cluster's default")
            .doc("The partition."),
        key("account", Plain)
            .default("the user's default")
            .doc("The account to charge."),
        TIME,
        MEMORY,
        CPUS,
        SETUP,
        BATCHES,
        JOBS,
        ARRAY,
        key("options", Command)
            .default("none")
            .doc("More options for `sbatch`, such as \"--qos=low\"."),
        INTERVAL,
        VISIBLE,
        PROGRAM,
    ],
};

/// `[executor.command]`.
pub(crate) static COMMAND: TableSpec = TableSpec {
    what: "executor",
    header: "[executor.command]",
    short: None,
    keys: &[
        key("submit", Text).required().doc(
            "The command that submits `jobs` jobs with the indices 0 to `last`, all by \
             the script `script`. Each job writes what it prints to `output`/INDEX.txt. \
             The last word that the command prints is the id. It can use `script`, \
             `name`, `output`, `jobs`, `last`, `at_once`, `cpus`, `memory_mb` and \
             `seconds`; the last two are 0 if nothing is declared.",
        ),
        key("poll", Text).required().doc(
            "The command that prints a line for each job of the ids `ids`: the id, the \
             index, a state, and the node or the reason. States are `queued`, `running`, \
             `done`, `failed`, `timeout`, `memory`, `node`, `cancelled` and `preempted`. \
             A job without a line has ended, so the command must fail if the scheduler \
             does not answer.",
        ),
        key("cancel", Text)
            .required()
            .doc("The command that cancels all jobs of the id `id`."),
        key("find", Text).default("none").doc(
            "The command that prints the id of the jobs of the name `name`, or nothing \
             if there are none. It must fail if the scheduler does not answer. With it, \
             no job is submitted twice if a run is killed or a reply of `submit` is lost.",
        ),
        key("index", Plain).required().doc(
            "The environment variable that holds the index of a job, such as \
             `PBS_ARRAY_INDEX`.",
        ),
        TIME,
        MEMORY,
        CPUS,
        SETUP,
        BATCHES,
        JOBS,
        ARRAY,
        INTERVAL,
        VISIBLE,
        PROGRAM,
    ],
};

/// `[resources]` of a stage.
pub(crate) static RESOURCES: TableSpec = TableSpec {
    what: "resources",
    header: "[resources]",
    short: None,
    keys: &[
        CPUS,
        MEMORY,
        TIME,
        key("retry", Of(&MORE)).default("none").doc(
            "More resources for a job that ran out of memory or time, such as `{ memory \
             = \"x2\" }`.",
        ),
    ],
};

/// `retry` of `[resources]`.
pub(crate) static MORE: TableSpec = TableSpec {
    what: "`retry`",
    header: "[resources.retry]",
    short: None,
    keys: &[
        key("memory", Plain).default("no attempt").doc(
            "Factor for the memory of the next attempt after a job ran out of memory, \
             such as \"x2\".",
        ),
        key("time", Plain).default("no attempt").doc(
            "Factor for the time limit of the next attempt after a timeout, such as \
             \"x1.5\".",
        ),
        key("attempts", Integer)
            .default("2")
            .doc("Maximum further attempts of a batch."),
    ],
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::executor::ExecutorName;

    #[test]
    fn each_scheduler_has_a_table() {
        let tables: Vec<&str> = EXECUTOR.keys.iter().map(|key| key.name).collect();
        assert_eq!(tables, ExecutorName::WORDS[1..]);
    }
}
