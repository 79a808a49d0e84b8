//! What goes wrong on a cluster: limits, lost nodes, jobs that run twice, a runner that is killed or stopped.

use super::pbs::Pbs;
use super::{check_kill, check_outputs, for_each_kill, project, runs, wait_until};
use crate::support::Project;
use crate::support::required::{Missing, require};

const STAGE: &str = "executor = \"command\"";

/// Waits until a file of the project exists.
pub fn wait_for(project: &Project, path: &str) {
    wait_until(path, || project.exists(path));
}

/// Runs six batches, of which w2 meets a fault, and returns the exit code, the output, how often w2 ran, and the submissions.
#[track_caller]
fn with_fault(name: &str, resources: &str) -> Result<(i32, String, usize, Vec<String>), Missing> {
    let pbs = Pbs::start(2)?;
    let executor = pbs.executor("batches_per_job = 3\nmemory = \"100 MB\"\n");
    let stage = format!("{STAGE}\n[resources]\n{resources}");
    let project = project(6, &executor, &stage, &pbs.fault("w2", name));
    let ran = project.run_unplanned(&["-k"]);
    let runs = runs(&project);
    if ran.code == 0 {
        check_outputs(&project, 6);
    }
    let others = runs.iter().filter(|(key, _)| *key != "w2");
    for (key, times) in others {
        assert_eq!(*times, 1, "{key} ran once: {}", ran.output);
    }
    assert!(!project.exists("workspace/.milepost/jobs"));
    Ok((ran.code, ran.output, runs["w2"], pbs.submissions()))
}

#[test]
fn a_batch_that_lacks_memory_gets_more_if_declared() {
    let (code, output, times, submissions) =
        require!(with_fault("memory", "retry = { memory = \"x2\" }"));
    assert_eq!((code, times), (0, 2), "{output}");
    assert!(
        output.contains("MEMORY: job 0.pbs[0] took more than its 100 MB of memory"),
        "{output}"
    );
    // The batches behind it in its job come again too, with the old limit.
    assert!(
        submissions.contains(&"1 99 200".to_owned())
            || submissions.contains(&"1 100 200".to_owned()),
        "{submissions:?}"
    );
}

#[test]
fn a_limit_is_an_outcome_of_the_batch_that_ran_into_it() {
    let (exit, output, times, _) = require!(with_fault("memory", ""));
    assert_eq!((exit, times), (1, 1), "{output}");
    assert!(
        output.contains("up/w2 failed: MEMORY: job 0.pbs[0] took more than its 100 MB of memory")
            && output.contains("    on node "),
        "{output}"
    );
}

#[test]
fn a_batch_that_shared_the_time_of_its_job_gets_a_job_of_its_own() {
    let (exit, output, times, submissions) = require!(with_fault("timeout", ""));
    assert_eq!((exit, times), (0, 2), "{output}");
    assert!(!output.contains("TIMEOUT"), "{output}");
    // One for w3, which waited behind it, and one for w2 alone.
    assert_eq!(submissions.len(), 3);
}

#[test]
fn a_batch_whose_node_is_lost_runs_again() {
    for (name, code) in [
        ("node", "NODE"),
        ("preempted", "PREEMPTED"),
        ("lost", "JOB"),
    ] {
        let (exit, output, times, _) = require!(with_fault(name, ""));
        assert_eq!((exit, times), (0, 2), "{output}");
        assert!(output.contains(&format!(": {code}: ")), "{output}");
    }
}

#[test]
fn a_batch_that_two_processes_run_is_published_once() {
    let (exit, output, times, _) = require!(with_fault("twice", ""));
    assert_eq!((exit, times), (0, 2), "{output}");
}

#[test]
fn a_job_that_cannot_begin_says_why() {
    let pbs = require!(Pbs::start(2));
    let executor = pbs.executor("setup = [\"echo no module here\", \"false\"]\n");
    let project = project(2, &executor, STAGE, "");
    let ran = project.run_unplanned(&[]);
    assert_eq!(ran.code, 1, "{}", ran.output);
    assert!(
        ran.output
            .contains("failed: JOB: job 0.pbs[0] ended without a record of the batch")
            && ran.output.contains("no module here"),
        "{}",
        ran.output
    );
    assert!(runs(&project).is_empty());
}

#[test]
fn a_stage_that_stops_at_a_failure_starts_no_further_batch() {
    let pbs = require!(Pbs::start(1));
    let executor = pbs.executor("batches_per_job = 2\n");
    // w3, the first batch of the second job, lasts until the runner has told the jobs to stop.
    let fault = "[ $key = w2 ] && exit 3; [ $key = w3 ] && for try in $(seq 600); do \
                 { [ -e $folder/go ] || ls $folder/workspace/.milepost/jobs/*/stop; } && break; sleep 0.05; done;";
    let project = project(8, &executor, STAGE, fault);
    let ran = project.run_unplanned(&[]);
    assert_eq!(ran.code, 1, "{}", ran.output);
    assert!(ran.output.contains("up/w2 failed: EXIT"), "{}", ran.output);
    let tried: Vec<String> = runs(&project).into_keys().collect();
    // The second job begins before it is cancelled, or not at all.
    let told = &ran.output;
    assert!(
        tried == ["w1", "w2"] || tried == ["w1", "w2", "w3"],
        "{tried:?}: {told}"
    );
    assert!(!project.exists("up/w2.txt"));
    // The others continue, if the run says so.
    project.write("go", "");
    let ran = project.run_unplanned(&["-k"]);
    assert_eq!(ran.code, 1, "{}", ran.output);
    let made: Vec<String> = project.list("up");
    assert_eq!(made.len(), 7, "{made:?}");
    let again = runs(&project);
    assert!(again.iter().all(|(key, times)| key == "w2" || *times == 1));
}

#[test]
fn a_placeholder_replaces_a_batch_whose_job_was_lost() {
    let pbs = require!(Pbs::start(2));
    let executor = pbs.executor("batches_per_job = 3\n");
    let stage = format!("{STAGE}\n[policy]\nplaceholder = '{{error: .error_code}}'\n");
    let project = project(3, &executor, &stage, &pbs.fault("w2", "memory"));
    let ran = project.run_unplanned(&["-k"]);
    assert!(
        ran.output.contains("up/w2 failed: MEMORY"),
        "{}",
        ran.output
    );
    assert_eq!(project.json("workspace/up/w2.txt")["error"], "MEMORY");
    assert_eq!(project.list("up").len(), 3);
}

#[test]
fn a_scheduler_that_refuses_is_quoted() {
    let executor = "[executor.command]\nsubmit = \"echo invalid partition; exit 3; : {{ script }}\"\npoll = \"true {{ ids }}\"\n\
                    cancel = \"true {{ id }}\"\nindex = \"I\"\npoll_interval = \"100ms\"\n";
    let project = project(2, executor, STAGE, "");
    let ran = project.run_unplanned(&[]);
    assert_eq!(ran.code, 1, "{}", ran.output);
    assert!(
        ran.output.contains("`submit` failed: invalid partition"),
        "{}",
        ran.output
    );
    assert!(!project.exists("workspace/.milepost/jobs"));
}

#[test]
fn a_stopped_run_leaves_its_jobs_and_the_next_takes_them_over() {
    let pbs = require!(Pbs::start(2));
    let executor = pbs.executor("batches_per_job = 2\n");
    let project = project(4, &executor, STAGE, "sleep 1;");
    let mut first = project.spawn(&["run"]);
    wait_for(&project, "runs");
    let pid = rustix::process::Pid::from_child(&first);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert_eq!(first.wait().unwrap().code(), Some(130));
    assert!(project.exists("workspace/.milepost/jobs"));
    let (_, status) = project.milepost(&["status"]);
    assert!(status.contains("command 0.pbs for up: "), "{status}");
    let (_, log) = project.milepost(&["log"]);
    assert!(log.contains("continues in its job"), "{log}");
    let ran = project.run_unplanned(&[]);
    assert_eq!(ran.code, 0, "{}", ran.output);
    check_outputs(&project, 4);
    assert!(runs(&project).values().all(|&times| times == 1));
    assert_eq!(pbs.submissions().len(), 1);
    assert!(!project.exists("workspace/.milepost/jobs"));
}

#[test]
fn a_runner_that_is_killed_finds_its_jobs_again() {
    let pbs = require!(Pbs::start(4));
    let executor = pbs.executor_that_finds("batches_per_job = 3\n");
    for_each_kill(8, 2000, |moment| {
        let project = project(12, &executor, STAGE, "sleep 0.1;");
        check_kill(&project, 12, moment);
    });
}

#[test]
fn a_runner_that_stops_at_any_change_of_the_disk_loses_nothing() {
    let pbs = require!(Pbs::start(4));
    let executor = pbs.executor("batches_per_job = 2\n");
    let every = match std::env::var("MILEPOST_TEST_SWEEP").as_deref() {
        Ok("full") => 1,
        _ => 12,
    };
    let mut stops = 0;
    for stop in (1..).step_by(every) {
        let mut project = project(4, &executor, STAGE, "");
        let before = pbs.submissions().len();
        project.env("MILEPOST_STOP_AT", &stop.to_string());
        let stopped = project.run_unplanned(&[]);
        project.unset("MILEPOST_STOP_AT");
        let ran = project.run_unplanned(&[]);
        assert_eq!(ran.code, 0, "stop {stop}: {}", ran.output);
        check_outputs(&project, 4);
        assert!(!project.exists("workspace/.milepost/jobs"), "stop {stop}");
        // Only a stop between the submission and its record costs a second one.
        if pbs.submissions().len() == before + 1 {
            let runs = runs(&project);
            assert!(
                runs.values().all(|&times| times == 1),
                "stop {stop}: {runs:?}"
            );
        }
        if stopped.code == 0 {
            break;
        }
        stops += 1;
    }
    assert!(stops >= 5, "{stops}");
    eprintln!("stopped {stops} times");
}

#[test]
fn stages_that_share_something_with_the_runner_stay_here() {
    let agent = "agent = \"sure\"\nprompt = \"prompt.md\"\nschema = \"one.schema.json\"";
    let refine = "[refine]\nuntil = 'true'\nmax_iterations = 2";
    let kinds = [
        (
            "jq = '1'",
            refine,
            "it keeps the iterations of `[refine]` in the workspace",
        ),
        (
            agent,
            "",
            "its agent steps share the budget and the rate limits of the run",
        ),
    ];
    for (step, rest, why) in kinds {
        let stage = format!(
            "[step]\n{step}\n{rest}\n[outputs]\nmade = {{ path = \"made.json\", schema = false }}\n"
        );
        let project = Project::new(&[
            (
                "milepost.toml",
                "name = \"local\"\n[agents.sure]\njq = '1'\n[executor.slurm]\npartition = \"none\"\n",
            ),
            ("prompt.md", "Say one."),
            ("one.schema.json", r#"{"const": 1}"#),
            ("stages/1_make.toml", &stage),
        ]);
        let ran = project.run_unplanned(&["--executor", "slurm"]);
        assert_eq!(ran.code, 0, "{}", ran.output);
        project.edit(
            "stages/1_make.toml",
            "[step]",
            "executor = \"slurm\"\n[step]",
        );
        let (code, output) = project.milepost(&["run"]);
        assert_eq!(code, 4, "{output}");
        for text in [
            "the stage cannot run on `slurm`",
            why,
            "help: remove `executor`: the stage runs on the machine of the runner",
        ] {
            assert!(output.contains(text), "{text}: {output}");
        }
    }
}
