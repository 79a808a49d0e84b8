//! Jobs that are no longer needed, and jobs that a later run needs.

use super::faults::wait_for;
use super::pbs::Pbs;
use super::{check_outputs, project, runs, wait_until};
use crate::support::Project;
use crate::support::required::require;

const STAGE: &str = "executor = \"command\"";

/// Writes files beside a file until another one exists, or for a minute. It has few names: a test that fails must not fill the disk.
const WRITES: &str = r"
import itertools, os, sys, time
os.setsid()
end = time.monotonic() + 60
for number in itertools.count():
    if os.path.exists(sys.argv[1]) or time.monotonic() > end:
        break
    try:
        open(os.path.join(os.path.dirname(sys.argv[2]), str(number % 100)), 'w').close()
    except OSError:
        pass
";

/// Waits until so many batches have begun.
fn wait_for_runs(project: &Project, count: usize) {
    wait_for(project, "runs");
    wait_until("batches begin", || runs(project).len() >= count);
}

/// Starts a run, and interrupts it once so many batches have begun: their jobs go on.
fn interrupt(project: &Project, count: usize) {
    let mut run = project.spawn(&["run"]);
    wait_for_runs(project, count);
    let pid = rustix::process::Pid::from_child(&run);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert_eq!(run.wait().unwrap().code(), Some(130));
}

#[test]
fn jobs_of_a_stage_that_another_blocks_go_on() {
    let pbs = require!(Pbs::start(2));
    let executor = pbs.executor("batches_per_job = 1\n");
    let waits = "while [ ! -e $folder/go ]; do sleep 0.05; done;";
    let project = project(2, &executor, STAGE, waits);
    let stage = project.read("stages/1_up.toml");
    project.remove("stages/1_up.toml");
    project.write(
        "stages/2_up.toml",
        format!("{stage}\n[inputs]\nchecked = \"checked.txt\"\n"),
    );
    project.write(
        "stages/1_check.toml",
        "[inputs]\nnotes = \"notes.txt\"\n[step]\nattempts = 1\n\
         command = [\"sh\", \"-c\", 'grep -q good \"$1\" && cp \"$1\" \"$2\"', \"check\", \"{{ paths.notes }}\", \"{{ paths.checked }}\"]\n\
         [outputs]\nchecked = { path = \"checked.txt\", schema = false }\n",
    );
    project.write("workspace/notes.txt", "good\n");
    interrupt(&project, 2);
    project.write("workspace/notes.txt", "bad\n");
    let ran = project.run_unplanned(&[]);
    assert_eq!(ran.code, 1, "{}", ran.output);
    assert!(project.exists("workspace/.milepost/jobs"));
    project.write("workspace/notes.txt", "good\n");
    project.write("go", "");
    let ran = project.run_unplanned(&[]);
    assert_eq!(ran.code, 0, "{}", ran.output);
    check_outputs(&project, 2);
    assert!(runs(&project).values().all(|&times| times == 1));
    assert_eq!(pbs.submissions().len(), 1);
    assert!(!project.exists("workspace/.milepost/jobs"));
}

#[test]
fn a_program_that_still_writes_is_no_error_of_the_run() {
    let pbs = require!(Pbs::start(2));
    // A program outside of the job writes into the folder of the batch until it is told to end.
    let extra = "python3 $folder/write.py $folder/end \"$3\" & while [ ! -e $folder/end ]; do sleep 0.05; done;";
    let stage = format!("{STAGE}\n[policy]\ntimeout = \"2s\"\n");
    let project = project(1, &pbs.executor(""), &stage, extra);
    project.write("write.py", WRITES);
    let ran = project.run_unplanned(&[]);
    assert_eq!(ran.code, 1, "{}", ran.output);
    assert!(!ran.output.contains("cannot remove"), "{}", ran.output);
    project.write("end", "");
    pbs.wait_for_end();
    project.edit("stages/1_up.toml", "timeout = \"2s\"", "");
    let ran = project.run_unplanned(&[]);
    assert_eq!(ran.code, 0, "{}", ran.output);
    assert!(!project.exists("workspace/.milepost/jobs"));
}

#[test]
fn a_job_ends_once_its_folder_is_gone() {
    let pbs = require!(Pbs::start(1));
    let project = project(3, &pbs.executor(""), STAGE, "sleep 600;");
    let mut run = project.spawn(&["run"]);
    wait_for_runs(&project, 1);
    run.kill().unwrap();
    run.wait().unwrap();
    std::fs::remove_dir_all(project.at("workspace/.milepost/jobs")).unwrap();
    pbs.wait_for_end();
    assert_eq!(runs(&project).into_keys().collect::<Vec<_>>(), ["w1"]);
    assert!(!project.exists("workspace/.milepost/jobs"));
}

#[test]
fn a_job_that_a_signal_ends_does_not_claim_success() {
    // The program goes on until its job ends, or gets the signal, too.
    for then in ["sleep 600", "kill -TERM $$"] {
        let pbs = require!(Pbs::start(1));
        let asks = format!("kill -TERM $PPID; {then};");
        let project = project(2, &pbs.executor(""), STAGE, &asks);
        let ran = project.run_unplanned(&[]);
        assert_eq!(ran.code, 1, "{}", ran.output);
        assert!(
            ran.output
                .contains("up/w1 failed: JOB: job 0.pbs[0] ended without a record of the batch"),
            "{}",
            ran.output
        );
        assert!(!ran.output.contains("exit code"), "{}", ran.output);
    }
}

#[test]
fn jobs_of_an_executor_that_is_no_longer_declared_end() {
    let pbs = require!(Pbs::start(1));
    let waits = "while [ ! -e $folder/go ]; do sleep 0.05; done;";
    let project = project(2, &pbs.executor(""), STAGE, waits);
    interrupt(&project, 1);
    let all = project.read("milepost.toml");
    project.write("milepost.toml", "name = \"capitals\"\n");
    project.edit("stages/1_up.toml", STAGE, "");
    project.write("go", "");
    let ran = project.run_unplanned(&[]);
    assert_eq!(ran.code, 0, "{}", ran.output);
    pbs.wait_for_end();
    assert!(!project.exists("workspace/.milepost/jobs"));
    project.write("milepost.toml", all);
    check_outputs(&project, 2);
}
