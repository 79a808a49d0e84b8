//! Batches as jobs of a scheduler.

mod disk;
mod faults;
mod leftovers;
mod limits;
mod once;
mod pbs;
mod restart;
mod slurm;
mod visible;

pub use slurm::Cluster;

use crate::crash::sweep::{random, seed, setting};
use crate::support::Project;
use crate::support::required::require;
use milepost_core::base::digest::Digest;
use pbs::Pbs;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Waits until something holds.
#[track_caller]
fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_mins(1);
    while !holds() {
        assert!(Instant::now() < end, "never: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A project with `count` batches. Each notes in `runs` of the project that it ran, runs `extra`, and writes its input in capitals.
/// `extra` knows `$key` of the batch and `$folder` of the project.
/// `executor` is the table of the scheduler.
fn project(count: usize, executor: &str, stage: &str, extra: &str) -> Project {
    let project = Project::new(&[]);
    let folder = project.path().display().to_string();
    project.write("milepost.toml", format!("name = \"capitals\"\n{executor}"));
    let script = format!(
        "key=$1; folder={folder}; echo $key >>$folder/runs; {extra} tr a-z A-Z <\"$2\" >\"$3\"; echo made $key"
    );
    project.write(
        "stages/1_up.toml",
        format!(
            "{stage}\n[each.word]\npath = \"inputs/*.txt\"\n[step]\nattempts = 1\n\
             command = [\"sh\", \"-c\", '''{script}''', \"up\", \"{{{{ word.stem }}}}\", \"{{{{ word.path }}}}\", \"{{{{ paths.up }}}}\"]\n\
             [outputs]\nup = {{ path = \"up/{{{{ word.stem }}}}.txt\", schema = false }}\n"
        ),
    );
    for number in 1..=count {
        project.write(
            &format!("workspace/inputs/w{number}.txt"),
            format!("word {number}\n"),
        );
    }
    project
}

/// Returns how often each batch ran.
fn runs(project: &Project) -> BTreeMap<String, usize> {
    let mut runs = BTreeMap::new();
    if project.exists("runs") {
        for key in project.read("runs").lines() {
            *runs.entry(key.to_owned()).or_default() += 1;
        }
    }
    runs
}

/// Asserts that all outputs are there, and what they are.
#[track_caller]
fn check_outputs(project: &Project, count: usize) {
    let expected: BTreeMap<String, Digest> = (1..=count)
        .map(|number| {
            let text = format!("WORD {number}\n");
            (format!("up/w{number}.txt"), Digest::of(text))
        })
        .collect();
    let mut made = project.digests();
    made.retain(|path, _| path.starts_with("up/"));
    assert_eq!(made, expected);
}

/// Calls a test with random moments up to `most` milliseconds, `kills` of them or `MILEPOST_TEST_KILLS`. `MILEPOST_TEST_SEED` chooses
/// others.
fn for_each_kill(kills: usize, most: u64, test: impl Fn(Duration)) {
    let mut state = seed() as u64;
    for kill in 0..setting("MILEPOST_TEST_KILLS", kills) {
        let moment = Duration::from_millis(random(&mut state, most));
        let tested = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| test(moment)));
        if let Err(failed) = tested {
            eprintln!(
                "kill {kill} after {moment:?}, MILEPOST_TEST_SEED={}",
                seed()
            );
            std::panic::resume_unwind(failed);
        }
    }
}

/// Kills a run after a time, and asserts that the next one finds its jobs: each batch runs once, whenever that was.
#[track_caller]
fn check_kill(project: &Project, count: usize, moment: Duration) {
    let mut runner = project.spawn(&["run"]);
    std::thread::sleep(moment);
    runner.kill().unwrap();
    runner.wait().unwrap();
    let ran = project.run_unplanned(&[]);
    assert_eq!(ran.code, 0, "{}", ran.output);
    check_outputs(project, count);
    let runs = runs(project);
    assert!(runs.values().all(|&times| times == 1), "{runs:?}");
    assert!(!project.exists("workspace/.milepost/jobs"));
}

/// Asserts that a local run of the same project makes the same bytes.
#[track_caller]
fn check_local_outputs(project: &Project) {
    let local = project.without_results();
    let ran = local.run(&["--executor", "local"]);
    assert_eq!(ran.code, 0, "{}", ran.output);
    let made = |project: &Project| {
        let mut files = project.digests();
        files.retain(|path, _| path.starts_with("up/"));
        files
    };
    assert_eq!(made(&local), made(project));
}

/// Returns the records of the journal about steps, without what differs from run to run.
fn steps(project: &Project) -> Vec<String> {
    let mut records = project.records();
    records.retain(|record| record["kind"].as_str().unwrap().starts_with("step_"));
    let shown = |record: &Value| {
        format!(
            "{} {} {}",
            record["kind"], record["agent_name"], record["data"]
        )
    };
    records.iter().map(shown).collect()
}

#[test]
fn steps_of_jobs_are_recorded_as_those_of_a_local_run() {
    let pbs = require!(Pbs::start(1));
    let stage = r#"executor = "command"
[each.word]
path = "inputs/*.txt"
[[step]]
role = "counter"
command = ["sh", "-c", 'wc -c <"$1" >"$2"', "count", "{{ word.path }}", "{{ paths.size }}"]
out = "size"
summary = '{bytes: 7}'
[[step]]
role = "writer"
command = ["sh", "-c", 'tr a-z A-Z <"$1" >"$2"', "up", "{{ word.path }}", "{{ paths.up }}"]
out = "up"
[outputs]
size = { path = "size/{{ word.stem }}.txt", schema = false }
up = { path = "up/{{ word.stem }}.txt", schema = false }
"#;
    let project = project(2, &pbs.executor(""), "", "");
    project.write("stages/1_up.toml", stage);
    let ran = project.run_unplanned(&[]);
    assert_eq!(ran.code, 0, "{}", ran.output);
    let local = project.without_results();
    assert_eq!(local.run_unplanned(&["--executor", "local"]).code, 0);
    assert_eq!(steps(&project).len(), 10, "{:?}", steps(&project));
    assert_eq!(steps(&project), steps(&local));
    let (_, log) = project.milepost(&["log", "up/w1"]);
    assert!(log.contains("writer reads size from counter"), "{log}");
}

#[test]
fn batches_run_as_jobs_of_another_scheduler() {
    let pbs = require!(Pbs::start(3));
    let executor = pbs.executor("batches_per_job = 3\nmemory = \"100 MB\"\n");
    let project = project(10, &executor, "executor = \"command\"", "");
    let (_, plan) = project.milepost(&["plan"]);
    assert!(
        plan.contains("submits 4 jobs with `command`, of at most 3 batches each"),
        "{plan}"
    );
    let ran = project.run(&[]);
    assert_eq!(ran.code, 0, "{}", ran.output);
    assert!(
        ran.output
            .contains("up submitted 10 batches in 4 jobs with `command`: 0.pbs"),
        "{}",
        ran.output
    );
    check_outputs(&project, 10);
    assert!(runs(&project).values().all(|&times| times == 1));
    assert_eq!(pbs.submissions(), ["4 100 100"]);
    assert!(!project.exists("workspace/.milepost/jobs"));
    // The record, and what people see of it.
    let record = project.json("workspace/stage_1_complete.json");
    assert_eq!(record["status"], "complete");
    let (_, why) = project.milepost(&["why", "up/w4"]);
    assert!(why.contains("command job 0.pbs[1] on "), "{why}");
    let (_, log) = project.milepost(&["log", "up/w4"]);
    assert!(
        log.contains("command job 0.pbs[1] on ")
            && log.contains(" in the queue, ran for ")
            && log.contains("made w4"),
        "{log}"
    );
    // Nothing is left to do, and a local run of the same project makes the same bytes.
    let again = project.run(&[]);
    assert_eq!(again.tried(), Vec::<String>::new());
    check_local_outputs(&project);
}
