//! Slurm: `sbatch`, `squeue`, `scancel`, and `sacct` where there is accounting.

use super::program::{SchedulerCommands, one_line};
use super::refusal::help;
use crate::run::remote::{
    CancelledJobs, Executor, ExecutorError, JobArray, JobEnd, JobState, JobStates, PolledArray,
};
use milepost_core::model::executor::{Executors, JobSettings};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The columns of `squeue`: array, index, state, reason, node.
const COLUMNS: &str = "%F|%K|%T|%r|%N";

/// The reason of a job that its node could not start, for example because its disk is full. Slurm drains the node, and holds the job.
const LAUNCH_FAILED: &str = "launch failed requeued held";

/// Slurm, by its commands.
struct Slurm<'a> {
    commands: SchedulerCommands<'a>,
    settings: &'a JobSettings,
    /// True once `sacct` has reported that there is no accounting.
    has_no_accounting: AtomicBool,
}

/// Creates Slurm. Without `[executor.slurm]`, everything is up to the cluster.
#[expect(
    clippy::unnecessary_wraps,
    reason = "a scheduler that must be declared may be missing"
)]
pub(super) fn create<'a>(
    commands: SchedulerCommands<'a>,
    _: &'a Executors,
    settings: &'a JobSettings,
) -> Option<Box<dyn Executor + 'a>> {
    Some(Box::new(Slurm {
        commands,
        settings,
        has_no_accounting: AtomicBool::new(false),
    }))
}

impl Slurm<'_> {
    fn run(&self, words: &[&str]) -> Result<String, ExecutorError> {
        let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        self.commands.run(&words)
    }

    /// Cancels the jobs of these arrays that Slurm could not start and holds until they are released: their batches get other jobs.
    fn cancel_held(&self, printed: &str, is_ours: &dyn Fn(&str) -> bool) {
        let held = printed.lines().filter(|line| line.contains(LAUNCH_FAILED));
        let held = held.filter_map(queued);
        let held = held.filter(|((array, _), _)| is_ours(array));
        let mut words = vec!["scancel".to_owned(), "--quiet".to_owned()];
        words.extend(held.map(|((array, index), _)| self.describe(&array, index)));
        if words.len() > 2 {
            // The next poll tries it again.
            let _ = self.commands.run(&words);
        }
    }

    /// Adds what the accounting knows of jobs that the queue has forgotten.
    fn add_accounted(&self, arrays: &[PolledArray], states: &mut JobStates) {
        let is_missing = |array: &&PolledArray| {
            let mut jobs = array.jobs.iter();
            jobs.any(|&job| !states.contains_key(&(array.id.clone(), job)))
        };
        let missing = arrays.iter().filter(is_missing);
        let ids: Vec<&str> = missing.map(|array| array.id.as_str()).collect();
        if ids.is_empty() {
            return;
        }
        let ids = ids.join(",");
        let printed = self.account(&["--format=JobID,State,NodeList", "--jobs", &ids]);
        for (job, state) in printed.lines().filter_map(accounted) {
            states.entry(job).or_insert(state);
        }
    }

    /// Returns the output of `sacct` with these options; empty if there is no accounting or `sacct` does not answer, because the
    /// logs of the jobs suffice.
    fn account(&self, options: &[&str]) -> String {
        if self.has_no_accounting.load(Ordering::Relaxed) {
            return String::new();
        }
        let mut words = vec![
            "sacct",
            "--allocations",
            "--array",
            "--noheader",
            "--parsable2",
        ];
        words.extend(options);
        self.run(&words).unwrap_or_else(|error| {
            let is_none = match &error {
                ExecutorError::Command { .. } => true,
                ExecutorError::Failed { printed, .. } => printed.contains("storage is disabled"),
                _ => false,
            };
            self.has_no_accounting.fetch_or(is_none, Ordering::Relaxed);
            String::new()
        })
    }
}

impl Executor for Slurm<'_> {
    fn submit(&self, array: &JobArray) -> Result<String, ExecutorError> {
        let words = submission(self.settings, array);
        // Slurm keeps what `sbatch` finds in its environment, on its own disks.
        let is_passed = |name: &str, value: &str| self.commands.is_for_jobs(name, value);
        let printed = self.commands.run_with(&words, &is_passed);
        let printed = printed.map_err(|error| match error {
            ExecutorError::Failed { command, printed } => match help(&printed) {
                Some(help) => ExecutorError::Refused {
                    command,
                    printed,
                    help,
                },
                None => ExecutorError::Failed { command, printed },
            },
            other => other,
        })?;
        // A site's filter may print remarks before the id, and a federation names its cluster behind it.
        let last = printed.lines().rfind(|line| !line.trim().is_empty());
        let id = last.and_then(|line| line.trim().split(';').next());
        match id.filter(|id| !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit())) {
            Some(id) => Ok(id.to_owned()),
            None => Err(ExecutorError::Printed {
                command: "sbatch".to_owned(),
                printed: one_line(&printed),
                expected: "the id of a job",
            }),
        }
    }

    fn poll(&self, arrays: &[PolledArray]) -> Result<JobStates, ExecutorError> {
        if arrays.is_empty() {
            return Ok(JobStates::new());
        }
        // A single unknown id is an error of `squeue`, so the jobs are found by the user's name.
        let printed = self.run(&[
            "squeue",
            "--noheader",
            "--array",
            "--me",
            "--states=all",
            &format!("--format={COLUMNS}"),
        ])?;
        let is_ours = |id: &str| arrays.iter().any(|array| array.id == id);
        let mut states: JobStates = printed
            .lines()
            .filter_map(queued)
            .filter(|((array, _), _)| is_ours(array))
            .collect();
        self.cancel_held(&printed, &is_ours);
        self.add_accounted(arrays, &mut states);
        Ok(states)
    }

    fn cancel(&self, array: &str, which: CancelledJobs) -> Result<(), ExecutorError> {
        match which {
            CancelledJobs::All => self.run(&["scancel", "--quiet", array])?,
            CancelledJobs::Queued => self.run(&["scancel", "--quiet", "--state=PENDING", array])?,
        };
        Ok(())
    }

    fn find(&self, name: &str) -> Result<Option<String>, ExecutorError> {
        let name = format!("--name={name}");
        let printed = self.run(&[
            "squeue",
            "--noheader",
            "--me",
            "--states=all",
            "--format=%F",
            &name,
        ])?;
        if let Some(id) = named(&printed) {
            return Ok(Some(id));
        }
        // The queue forgets a job minutes after its end. By itself, `sacct` shows those of today.
        let since = "--starttime=now-30days";
        Ok(named(&self.account(&["--format=JobID", since, &name])))
    }

    fn index_variable(&self) -> &'static str {
        "SLURM_ARRAY_TASK_ID"
    }

    fn array_variable(&self) -> Option<&'static str> {
        Some("SLURM_ARRAY_JOB_ID")
    }

    fn end_by_output(&self, printed: &[String]) -> Option<JobEnd> {
        ended_by(printed)
    }

    fn describe(&self, array: &str, index: u64) -> String {
        format!("{array}_{index}")
    }
}

/// Reads the last remark of Slurm's daemon in the output of a job. Without accounting, its state may say no more than `FAILED`.
fn ended_by(printed: &[String]) -> Option<JobEnd> {
    let is_slurms = |line: &&String| line.starts_with("slurmstepd") || line.starts_with("slurmd");
    let ends = [
        ("memory limit", JobEnd::OutOfMemory),
        ("oom", JobEnd::OutOfMemory),
        ("DUE TO TIME LIMIT", JobEnd::TimedOut),
        ("DUE TO NODE FAILURE", JobEnd::NodeFailed),
        ("DUE TO PREEMPTION", JobEnd::Preempted),
    ];
    let of_line = |line: &String| {
        let mut ends = ends.iter();
        ends.find(|(words, _)| line.contains(words))
            .map(|(_, end)| *end)
    };
    printed.iter().filter(is_slurms).rev().find_map(of_line)
}

/// Returns the command that submits an array.
fn submission(settings: &JobSettings, array: &JobArray) -> Vec<String> {
    let mut words: Vec<String> = ["sbatch", "--parsable", "--requeue", "--ntasks=1"]
        .map(str::to_owned)
        .into();
    words.push(format!("--job-name={}", array.name));
    words.push(format!("--array=0-{}%{}", array.jobs - 1, array.at_once));
    // Slurm replaces `%` and a letter in this path, not `%%`.
    let folder = array.output.display().to_string().replace('%', "%%");
    words.push(format!("--output={folder}/%a.txt"));
    // A job that runs again must not erase what it printed before.
    words.push("--open-mode=append".to_owned());
    let avoided = Some(array.avoided.join(",")).filter(|nodes| !nodes.is_empty());
    let options = [
        ("exclude", avoided),
        ("partition", settings.texts.get("partition").cloned()),
        ("account", settings.texts.get("account").cloned()),
        (
            "cpus-per-task",
            array.resources.cpus.map(|cpus| cpus.to_string()),
        ),
        ("mem", array.resources.memory.map(kibibytes)),
        ("time", array.resources.time.map(limit)),
    ];
    for (name, value) in options {
        words.extend(value.map(|value| format!("--{name}={value}")));
    }
    words.extend(settings.options.iter().cloned());
    words.push(array.script.display().to_string());
    words
}

/// Returns bytes in KiB, as Slurm counts them, rounded up.
fn kibibytes(bytes: u64) -> String {
    format!("{}K", bytes.div_ceil(1024))
}

/// Returns a time limit as `minutes:seconds`. Slurm rounds it up to minutes.
fn limit(time: Duration) -> String {
    let seconds = time.as_secs().max(1);
    format!("{}:{:02}", seconds / 60, seconds % 60)
}

/// Reads the id of an array in the first line of `squeue` or `sacct`.
fn named(printed: &str) -> Option<String> {
    let id = printed.lines().next()?.trim().split('_').next()?;
    let is_id = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit());
    is_id.then(|| id.to_owned())
}

/// Reads a line of `squeue`; `None` for jobs that belong to no array.
fn queued(line: &str) -> Option<((String, u64), JobState)> {
    let mut columns = line.trim().split('|');
    let (array, index) = (columns.next()?, columns.next()?);
    let (state, reason, node) = (columns.next()?, columns.next()?, columns.next()?);
    let state = of_words(state, reason, node);
    Some(((array.to_owned(), index.parse().ok()?), state))
}

/// Reads a line of `sacct`.
fn accounted(line: &str) -> Option<((String, u64), JobState)> {
    let mut columns = line.trim().split('|');
    let (job, state, node) = (columns.next()?, columns.next()?, columns.next()?);
    let (array, index) = job.split_once('_')?;
    // `CANCELLED by 1000`
    let state = state.split_whitespace().next()?;
    let state = of_words(state, "", node);
    Some(((array.to_owned(), index.parse().ok()?), state))
}

/// Returns the state by Slurm's word for it (squeue(1), JOB STATE CODES).
fn of_words(state: &str, reason: &str, node: &str) -> JobState {
    let end = match state {
        _ if reason == LAUNCH_FAILED => JobEnd::NodeFailed,
        "PENDING" | "REQUEUED" | "REQUEUE_FED" | "REQUEUE_HOLD" | "SPECIAL_EXIT"
        | "RESV_DEL_HOLD" | "CONFIGURING" | "POWER_UP_NODE" => {
            return JobState::Queued(reason.to_owned());
        }
        "RUNNING" | "COMPLETING" | "SUSPENDED" | "STOPPED" | "STAGE_OUT" | "SIGNALING"
        | "RESIZING" => {
            return JobState::Running(node.to_owned());
        }
        "COMPLETED" => JobEnd::Done,
        "TIMEOUT" | "DEADLINE" => JobEnd::TimedOut,
        "OUT_OF_MEMORY" => JobEnd::OutOfMemory,
        "NODE_FAIL" | "BOOT_FAIL" => JobEnd::NodeFailed,
        "CANCELLED" | "REVOKED" => JobEnd::Cancelled,
        "PREEMPTED" => JobEnd::Preempted,
        // `FAILED`, and words of later versions.
        _ => match reason {
            "TimeLimit" => JobEnd::TimedOut,
            "OutOfMemory" => JobEnd::OutOfMemory,
            "NodeDown" | "SystemFailure" => JobEnd::NodeFailed,
            _ => JobEnd::Failed,
        },
    };
    JobState::Ended(end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use milepost_core::model::executor::Resources;

    #[test]
    fn reads_the_columns_of_squeue_and_sacct() {
        let job = |index| ("17".to_owned(), index);
        let running = JobState::Running("n2".to_owned());
        assert_eq!(queued("17|3|RUNNING|None|n2\n"), Some((job(3), running)));
        let waits = JobState::Queued("JobArrayTaskLimit".to_owned());
        let line = "17|4|PENDING|JobArrayTaskLimit|";
        assert_eq!(queued(line), Some((job(4), waits)));
        assert_eq!(queued("18|N/A|RUNNING|None|n1"), None);
        assert_eq!(queued("garbage"), None);
        for (line, end) in [
            ("17|0|COMPLETED|None|n1", JobEnd::Done),
            ("17|0|FAILED|NonZeroExitCode|n1", JobEnd::Failed),
            ("17|0|TIMEOUT|TimeLimit|n1", JobEnd::TimedOut),
            ("17|0|FAILED|OutOfMemory|n1", JobEnd::OutOfMemory),
            ("17|0|OUT_OF_MEMORY|OutOfMemory|n1", JobEnd::OutOfMemory),
            ("17|0|NODE_FAIL|NodeDown|n1", JobEnd::NodeFailed),
            // Slurm also says so of a job that it ended for its memory: what the job printed decides.
            ("17|0|FAILED|JobLaunchFailure|n1", JobEnd::Failed),
            ("17|0|CANCELLED|None|", JobEnd::Cancelled),
            ("17|0|PREEMPTED|None|n1", JobEnd::Preempted),
            (
                "17|0|PENDING|launch failed requeued held|",
                JobEnd::NodeFailed,
            ),
            ("17|0|A_NEW_WORD|None|n1", JobEnd::Failed),
        ] {
            assert_eq!(queued(line), Some((job(0), JobState::Ended(end))), "{line}");
        }
        let cancelled = JobState::Ended(JobEnd::Cancelled);
        let line = "17_5|CANCELLED by 1000|n1";
        assert_eq!(accounted(line), Some((job(5), cancelled)));
        assert_eq!(accounted("17_5.batch|COMPLETED|n1"), None);
        for found in ["17\n17\n", "17_0\n17_1\n", "17_[0-3]\n"] {
            assert_eq!(named(found).as_deref(), Some("17"), "{found}");
        }
        assert_eq!(named("slurm_load_jobs error"), None);
        assert_eq!(named(""), None);
    }

    #[test]
    fn the_daemon_says_why_it_ended_a_job() {
        let of = |lines: &[&str]| {
            let lines: Vec<String> = lines.iter().map(|&line| line.to_owned()).collect();
            ended_by(&lines)
        };
        let limit = "slurmstepd-n1: error: *** JOB 3 ON n1 CANCELLED AT 2026-11-25T10:29:35 DUE TO TIME LIMIT ***";
        assert_eq!(of(&["made w1", limit]), Some(JobEnd::TimedOut));
        let memory = "slurmstepd: error: Exceeded job memory limit";
        let cancelled = "slurmstepd: error: *** JOB 3 ON n1 CANCELLED AT 2026-11-25T10:29:35 ***";
        assert_eq!(of(&[memory, cancelled]), Some(JobEnd::OutOfMemory));
        let oom = "slurmstepd: error: Detected 1 oom_kill event in StepId=3.batch.";
        assert_eq!(of(&[oom]), Some(JobEnd::OutOfMemory));
        assert_eq!(of(&[cancelled, "no memory limit here"]), None);
    }

    #[test]
    fn a_submission_names_only_what_is_declared() {
        let array = JobArray {
            name: "milepost-A".to_owned(),
            script: "/w/job.sh".into(),
            output: "/w 50%a/output".into(),
            jobs: 3,
            at_once: 2,
            resources: Resources::default(),
            avoided: Vec::new(),
        };
        let settings = JobSettings::default();
        let expected = "sbatch --parsable --requeue --ntasks=1 --job-name=milepost-A --array=0-2%2 \
                        --output=/w 50%%a/output/%a.txt --open-mode=append /w/job.sh";
        assert_eq!(submission(&settings, &array).join(" "), expected);
        let settings = JobSettings {
            texts: [("partition", "main"), ("account", "lab")]
                .map(|(key, text)| (key, text.to_owned()))
                .into(),
            options: vec!["--qos=low".to_owned()],
            ..JobSettings::default()
        };
        let array = JobArray {
            resources: Resources {
                cpus: Some(2),
                memory: Some(1_000_000),
                time: Some(Duration::from_secs(90)),
                retry: None,
            },
            avoided: vec!["n1".to_owned(), "n4".to_owned()],
            ..array
        };
        let words = submission(&settings, &array).join(" ");
        let expected = "--exclude=n1,n4 --partition=main --account=lab --cpus-per-task=2 --mem=977K --time=1:30 --qos=low /w/job.sh";
        assert!(words.ends_with(expected), "{words}");
    }
}
