//! What is not lost: when a run is stopped or killed, when jobs are refused, and when a record is not valid.

use super::pbs::Pbs;
use super::{check_outputs, project, runs, wait_until};
use crate::support::required::require;
use crate::support::{Project, printed};
use std::process::{Command, Stdio};

const STAGE: &str = "executor = \"command\"";

/// Returns a line of shell by which a batch waits for a file of the project, if a condition of the shell holds.
fn hold(condition: &str, file: &str) -> String {
    format!("if {condition}; then while [ ! -e $folder/{file} ]; do sleep 0.02; done; fi;")
}

/// Returns what the processes of all jobs logged.
fn logs(project: &Project) -> String {
    let files = project.list(".milepost/jobs");
    let logs = files
        .iter()
        .filter(|name| name.split('.').next_back() == Some("jsonl"));
    logs.map(|name| project.read(&format!("workspace/.milepost/jobs/{name}")))
        .collect()
}

/// Returns the folder of the only submission, in the project.
fn submission(project: &Project) -> String {
    let names = project.list(".milepost/jobs");
    let name = names[0].split('/').next().unwrap().to_owned();
    format!("workspace/.milepost/jobs/{name}")
}

/// Returns how many submissions have their id.
fn noted(project: &Project) -> usize {
    let files = project.list(".milepost/jobs");
    files.iter().filter(|name| name.ends_with("/id")).count()
}

fn ran(project: &Project, key: &str) -> usize {
    runs(project).get(key).copied().unwrap_or(0)
}

/// Writes a record of a batch that is not true, in a log of the job of w1.
const FORGE: &str = r#"
import glob, hashlib, json, os, sys
folder, mode = sys.argv[1:]
workspace = folder + "/workspace/"
job = glob.glob(workspace + ".milepost/jobs/*")[0]
handed = {os.path.basename(file)[:-5]: json.load(open(file)) for file in glob.glob(job + "/tasks/*.json")}
number, place = [(n, i) for n, all in handed.items() for i, one in enumerate(all) if one["key"] == "w1"][0]
process = number + ".aaa-00000000"
batch = "w2" if mode == "batch" else "w1"
place = f".milepost/jobs/{os.path.basename(job)}/work/{process}/{place}"
path = "up/other.txt" if mode == "path" else f"up/{batch}.txt"
text = b"WORD 9\n"
told = b"WORD 1\n" if mode == "content" else text
at = f"{place}/{path}"
os.makedirs(os.path.dirname(workspace + at))
open(workspace + at, "wb").write(text)
if mode in ("folder", "at"):
    at, told = "inputs/w1.txt", open(workspace + "inputs/w1.txt", "rb").read()
made = {"name": "up", "path": path, "digest": "sha256:" + hashlib.sha256(told).hexdigest(), "size": len(told)}
events = [
    {"kind": "started", "node": "n", "at": "2026-11-25T00:00:00Z"},
    {"kind": "done", "batch": batch, "took_ms": 1, "folder": "inputs" if mode == "folder" else place,
     "result": {"Ok": {"files": [[made, at]]}}},
]
lines = [json.dumps(event) for event in events]
with open(f"{job}/logs/.forged", "w") as log:
    log.writelines(hashlib.sha256(line.encode()).hexdigest() + " " + line + "\n" for line in lines)
os.rename(f"{job}/logs/.forged", f"{job}/logs/{process}.jsonl")
"#;

#[test]
fn a_record_that_is_not_valid_publishes_nothing() {
    let pbs = require!(Pbs::start(3));
    let executor = pbs.executor("batches_per_job = 1\n");
    for (mode, times, why) in [
        ("folder", 2, "is not valid: its folder is `inputs`"),
        ("path", 2, "`up/other.txt` is not an output of the batch"),
        ("at", 2, "`up/w1.txt` was read from `inputs/w1.txt`"),
        ("content", 2, "`up/w1.txt` has different content"),
        ("batch", 1, "up  up to date"),
    ] {
        let published = |key: &str| format!("workspace/up/{key}.txt");
        let waits = match mode {
            // The log of w1's job is read before w2 ends.
            "batch" => hold("[ $key = w2 ]", &published("w1")),
            _ => hold("[ $forges = 0 ]", &published("w1")),
        };
        let extra = format!(
            "[ $key = w1 ] && mkdir $folder/forged 2>/dev/null; forges=$?; \
             [ $forges = 0 ] && python3 $folder/forge.py $folder {mode}; {waits}"
        );
        let project = project(2, &executor, STAGE, &extra);
        project.write("forge.py", FORGE);
        let run = project.run_unplanned(&[]);
        assert_eq!(run.code, 0, "{mode}: {}", run.output);
        assert!(run.output.contains(why), "{mode}: {}", run.output);
        check_outputs(&project, 2);
        assert_eq!(project.list("inputs").len(), 2);
        assert_eq!(
            (ran(&project, "w1"), ran(&project, "w2")),
            (times, 1),
            "{mode}"
        );
    }
}

#[test]
fn the_last_submission_of_a_batch_has_it() {
    let pbs = require!(Pbs::start(3));
    let executor = pbs.executor("batches_per_job = 1\n");
    let extra = format!("{} {}", pbs.fault("w1", "node"), hold("true", "go"));
    let project = project(2, &executor, STAGE, &extra);
    let mut first = project.spawn(&["run"]);
    wait_until("w1 runs again", || {
        ran(&project, "w1") == 2 && noted(&project) == 2
    });
    first.kill().unwrap();
    first.wait().unwrap();
    project.write("go", "");
    let second = project.run_unplanned(&[]);
    assert_eq!(second.code, 0, "{}", second.output);
    check_outputs(&project, 2);
    assert_eq!((ran(&project, "w1"), ran(&project, "w2")), (2, 1));
    assert_eq!(pbs.submissions().len(), 2);
}

#[test]
fn a_limit_grows_as_often_as_declared_across_runs() {
    let pbs = require!(Pbs::start(1));
    let executor = pbs.executor("memory = \"100 MB\"\n");
    let stage = format!("{STAGE}\n[resources]\nretry = {{ memory = \"x2\", attempts = 1 }}");
    let fault = pbs.fault("w1", "memory");
    let extra = format!(
        "{fault} {} {}",
        hold("true", "go"),
        fault.replace("once-", "again-")
    );
    let project = project(1, &executor, &stage, &extra);
    let mut first = project.spawn(&["run"]);
    wait_until("w1 runs again", || {
        ran(&project, "w1") == 2 && noted(&project) == 2
    });
    first.kill().unwrap();
    first.wait().unwrap();
    project.write("go", "");
    let second = project.run_unplanned(&[]);
    assert_eq!(second.code, 1, "{}", second.output);
    second.says("up/w1 failed: MEMORY");
    assert_eq!(pbs.submissions(), ["1 100 100", "1 100 200"]);
}

/// Four batches in jobs of their own, two at a time, of which w2 waits for `go`. The second submission is refused while `refuse`
/// exists, and notes that.
fn refused(pbs: &Pbs) -> Project {
    let executor = pbs.executor("batches_per_job = 1\nmax_array_size = 2\n");
    let executor = executor.replace(
        "submit = \"",
        "submit = \"if [ -e refuse ]; then echo x >>refused; echo too many jobs; exit 3; fi; [ -e first ] || touch first refuse; ",
    );
    project(4, &executor, STAGE, &hold("[ $key = w2 ]", "go"))
}

#[test]
fn jobs_that_run_are_followed_while_others_are_refused() {
    let pbs = require!(Pbs::start(3));
    let project = refused(&pbs);
    let run = project.spawn(&["run"]);
    let tries = || project.exists("refused") && project.read("refused").lines().count() >= 4;
    wait_until("refused four times", tries);
    project.write("go", "");
    let run = run.wait_with_output().unwrap();
    let output = printed(&run);
    assert_eq!(run.status.code(), Some(1), "{output}");
    assert!(
        output.contains(
            "jobs cannot be submitted, trying again in 0.0 s: `submit` failed: too many jobs"
        ),
        "{output}"
    );
    assert_eq!(project.list("up"), ["w1.txt", "w2.txt"], "{output}");
    project.remove("refuse");
    let next = project.run_unplanned(&[]);
    assert_eq!(next.code, 0, "{}", next.output);
    check_outputs(&project, 4);
    assert!(runs(&project).values().all(|&times| times == 1));
    assert!(!project.exists("workspace/.milepost/jobs"));
}

#[test]
fn jobs_that_were_refused_are_submitted_later() {
    let pbs = require!(Pbs::start(3));
    let project = refused(&pbs);
    let run = project.spawn(&["run"]);
    wait_until("refused", || project.exists("refused"));
    project.remove("refuse");
    project.write("go", "");
    let run = run.wait_with_output().unwrap();
    let output = printed(&run);
    assert_eq!(run.status.code(), Some(0), "{output}");
    check_outputs(&project, 4);
    assert!(runs(&project).values().all(|&times| times == 1));
}

#[test]
fn a_log_that_cannot_be_read_costs_no_job() {
    let pbs = require!(Pbs::start(2));
    let executor = pbs.executor("batches_per_job = 1\n");
    let project = project(2, &executor, STAGE, &hold("[ $key = w2 ]", "go"));
    let run = project.spawn(&["run"]);
    wait_until("w1 is published, and w2 runs", || {
        project.exists("workspace/up/w1.txt") && runs(&project).len() == 2
    });
    let log = format!("{}/logs/1.zzz.jsonl", submission(&project));
    std::fs::create_dir(project.at(&log)).unwrap();
    let run = run.wait_with_output().unwrap();
    let output = printed(&run);
    assert_eq!(run.status.code(), Some(1), "{output}");
    assert!(
        output.contains("cannot read the logs of jobs: "),
        "{output}"
    );
    assert_eq!(project.list("up"), ["w1.txt"], "{output}");
    std::fs::remove_dir(project.at(&log)).unwrap();
    project.write("go", "");
    let next = project.run_unplanned(&[]);
    assert_eq!(next.code, 0, "{}", next.output);
    check_outputs(&project, 2);
    assert!(runs(&project).values().all(|&times| times == 1));
    assert_eq!(pbs.submissions().len(), 1);
}

/// Interrupts a run on a terminal once both batches run, lets w1 end while the question about the jobs stands, and cancels them.
const ANSWER: &str = r#"
import glob, os, pty, sys, time

def wait(holds):
    for _ in range(3000):
        if holds():
            return
        time.sleep(0.02)
    sys.exit("never")

def runs():
    return open("runs").read().split() if os.path.exists("runs") else []

def is_done():
    logs = glob.glob("workspace/.milepost/jobs/*/logs/*.jsonl")
    return any('"kind":"done"' in open(log).read() for log in logs)

child, terminal = pty.fork()
if child == 0:
    os.execv(sys.argv[1], sys.argv[1:])
wait(lambda: len(runs()) == 2)
os.write(terminal, b"\x03")
printed = b""
while b"cancel them" not in printed:
    printed += os.read(terminal, 4096)
open("go", "w").close()
wait(is_done)
os.write(terminal, b"c\n")
while True:
    try:
        part = os.read(terminal, 4096)
    except OSError:
        break
    if not part:
        break
    printed += part
print(printed.decode(errors="replace"))
"#;

#[test]
fn what_ends_before_the_jobs_are_cancelled_is_kept() {
    let pbs = require!(Pbs::start(2));
    let executor = pbs.executor("batches_per_job = 1\n");
    let extra = format!(
        "{} {}",
        hold("[ $key = w1 ]", "go"),
        hold("[ $key = w2 ]", "never")
    );
    let project = project(2, &executor, STAGE, &extra);
    project.write("answer.py", ANSWER);
    let milepost = project.command(&["run"]);
    let mut python = Command::new("python3");
    python.current_dir(project.path()).arg("answer.py");
    python.arg(milepost.get_program()).arg("run");
    let answered = python.stdin(Stdio::null()).output().unwrap();
    let output = String::from_utf8_lossy(&answered.stdout).into_owned();
    assert_eq!(project.list("up"), ["w1.txt"], "{output}");
    project.write("never", "");
    let next = project.run_unplanned(&[]);
    assert_eq!(next.code, 0, "{}", next.output);
    check_outputs(&project, 2);
    assert_eq!((ran(&project, "w1"), ran(&project, "w2")), (1, 2));
    assert!(!project.exists("workspace/.milepost/jobs"));
}

#[test]
fn what_jobs_without_an_id_finished_is_kept() {
    let pbs = require!(Pbs::start(4));
    let executor = pbs.executor("batches_per_job = 1\n");
    let project = project(2, &executor, STAGE, &hold("[ $key = w2 ]", "go"));
    let mut first = project.spawn(&["run"]);
    wait_until("w1 is done, and w2 runs", || {
        noted(&project) == 1
            && logs(&project).contains("\"kind\":\"done\"")
            && runs(&project).len() == 2
    });
    first.kill().unwrap();
    first.wait().unwrap();
    project.remove(&format!("{}/id", submission(&project)));
    let second = project.spawn(&["run"]);
    wait_until("w2 runs again", || ran(&project, "w2") == 2);
    project.write("go", "");
    let second = second.wait_with_output().unwrap();
    let output = printed(&second);
    assert_eq!(second.status.code(), Some(0), "{output}");
    check_outputs(&project, 2);
    assert_eq!((ran(&project, "w1"), ran(&project, "w2")), (1, 2));
}

#[test]
fn a_job_of_slurm_notes_the_id_of_its_array() {
    let executor = "[executor.slurm]\npoll_interval = \"100ms\"\nvisible = \"1s\"\n";
    let mut project = project(2, executor, "executor = \"slurm\"", "");
    let folder = project.path().display().to_string();
    // The scheduler starts the jobs, and says nothing until the run is killed.
    let sbatch = format!(
        "#!/bin/sh\necho x >>{folder}/submitted\nfor script; do :; done\n\
         SLURM_ARRAY_JOB_ID=17 SLURM_ARRAY_TASK_ID=0 bash $script >{folder}/printed 2>&1 </dev/null &\n\
         while [ ! -e {folder}/killed ]; do sleep 0.02; done\n"
    );
    for (name, text) in [
        ("sbatch", sbatch.as_str()),
        ("squeue", "#!/bin/sh\n"),
        ("sacct", "#!/bin/sh\n"),
        ("scancel", "#!/bin/sh\n"),
    ] {
        use std::os::unix::fs::PermissionsExt as _;
        let path = format!("bin/{name}");
        project.write(&path, text);
        let rights = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(project.at(&path), rights).unwrap();
    }
    let path = std::env::var("PATH").unwrap_or_default();
    project.env("PATH", &format!("{folder}/bin:{path}"));
    let mut first = project.spawn(&["run"]);
    wait_until("the job has ended", || {
        logs(&project).contains("\"kind\":\"ended\"")
    });
    first.kill().unwrap();
    first.wait().unwrap();
    project.write("killed", "");
    assert_eq!(
        project.read(&format!("{}/id", submission(&project))),
        "17\n"
    );
    let second = project.run_unplanned(&[]);
    assert_eq!(second.code, 0, "{}", second.output);
    check_outputs(&project, 2);
    assert!(runs(&project).values().all(|&times| times == 1));
    assert_eq!(project.read("submitted"), "x\n");
}

#[test]
fn a_failure_that_was_recorded_runs_again() {
    let pbs = require!(Pbs::start(2));
    let executor = pbs.executor("batches_per_job = 1\n");
    let extra = format!(
        "{} [ $key = w1 ] && [ ! -e $folder/go ] && exit 3;",
        hold("[ $key = w2 ]", "go")
    );
    let project = project(2, &executor, STAGE, &extra);
    let mut first = project.spawn(&["run", "-k"]);
    wait_until("w1 has failed, and w2 runs", || {
        logs(&project).contains("\"kind\":\"done\"") && runs(&project).len() == 2
    });
    let pid = rustix::process::Pid::from_child(&first);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert_eq!(first.wait().unwrap().code(), Some(130));
    project.write("go", "");
    let second = project.run_unplanned(&["-k"]);
    assert_eq!(second.code, 0, "{}", second.output);
    check_outputs(&project, 2);
    assert_eq!((ran(&project, "w1"), ran(&project, "w2")), (2, 1));
}
