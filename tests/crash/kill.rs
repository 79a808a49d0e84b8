//! The main pipeline killed from outside, at any moment: the runner alone, or with its children.

use super::project::assert_same;
use super::sweep::{in_parallel, random};
use crate::support::{Files, Output, Project};
use milepost_core::model::state::Phase;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::fs;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The main project with small batches, and a stage of commands at its end, so that there are children to kill.
fn main_project() -> Project {
    let project = Project::main_pipeline();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let model = "workspace/inputs/sample.ifc";
    fs::copy(root.join(model), project.at(model)).unwrap();
    // Half of the file, a wait, the other half: who reads too early reads half.
    project.write(
        "stages/5_slowly.toml",
        r#"
marker = "intermediate/slow/{{ batch.stem }}.done"
[each.batch]
path = "intermediate/classified/batch_*_classified.json"
[step]
command = ["sh", "-c", 'head -c 1000 "$1" > "$2"; sleep 0.05; tail -c +1001 "$1" >> "$2"', "sh", "{{ batch.path }}", "{{ paths.slow }}"]
[outputs]
slow = { path = "intermediate/slow/{{ batch.stem }}.json", schema = false }
[policy]
concurrency = 2
"#,
    );
    project
}

fn command(project: &Project) -> Command {
    let words = "run --jobs 2 --set batch_size=20";
    project.command_on_disk(&words.split(' ').collect::<Vec<_>>(), "")
}

fn start(project: &Project) -> Child {
    let mut command = command(project);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.process_group(0).spawn().unwrap()
}

/// The programs that a runner has started: each is the first of a group of its own.
fn children(runner: Pid) -> Vec<Pid> {
    let all = fs::read_dir("/proc").unwrap().flatten();
    let processes = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let is_child = |id: &i32| {
        let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        let rest = stat.rsplit(')').next().unwrap_or_default();
        rest.split_whitespace().nth(1) == Some(&runner.as_raw_nonzero().to_string())
    };
    processes
        .filter(is_child)
        .filter_map(Pid::from_raw)
        .collect()
}

/// What is killed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Killed {
    /// Its programs live on, and write on.
    Runner,
    All,
}

/// Kills a run after a time; whether it had ended before.
fn kill_after(project: &Project, time: Duration, what: Killed) -> bool {
    let mut child = start(project);
    let begun = Instant::now();
    while begun.elapsed() < time {
        if let Some(status) = child.try_wait().unwrap() {
            assert_eq!(status.code(), Some(0), "{status:?}");
            return true;
        }
        std::thread::park_timeout(Duration::from_millis(5));
    }
    let runner = Pid::from_child(&child);
    if what == Killed::All {
        // Stopped, it starts no other program in the meantime.
        kill_process(runner, Signal::STOP).unwrap();
        for program in children(runner) {
            // One that has just ended needs no end.
            let _ = kill_process_group(program, Signal::KILL);
            let _ = kill_process(program, Signal::KILL);
        }
    }
    kill_process(runner, Signal::KILL).unwrap();
    let status = child.wait().unwrap();
    status.signal() != Some(9)
}

fn finish(project: &Project) {
    let output = command(project).output().unwrap();
    let ended = Output::of(&output);
    assert_eq!(ended.code, 0, "{}", ended.text());
}

/// `MILEPOST_TEST_KILLS` says how many.
#[test]
fn killed_at_any_moment_it_continues() {
    let kills = std::env::var("MILEPOST_TEST_KILLS").ok();
    let kills: u64 = kills.and_then(|kills| kills.parse().ok()).unwrap_or(16);
    let whole = main_project();
    let begun = Instant::now();
    finish(&whole);
    let time = u64::try_from(begun.elapsed().as_millis()).unwrap();
    let expected = whole.outputs();
    let (killed, in_mid_batch) = (AtomicU64::new(0), AtomicU64::new(0));
    // A project is killed up to four times; more of them than are needed, because some end before.
    let rounds: Vec<u64> = (0..kills * 4).collect();
    in_parallel(&rounds, |round| {
        if killed.load(Ordering::Relaxed) >= kills {
            return;
        }
        let mut seed = 0x6d69_6c65 + round;
        let project = main_project();
        for _ in 0..4 {
            let wait = Duration::from_millis(random(&mut seed, time * 2 / 3 + 50));
            let what = [Killed::Runner, Killed::All][random(&mut seed, 2) as usize];
            let ended = kill_after(&project, wait, what);
            project.assert_truth(&[&expected], &Files::new());
            if ended {
                break;
            }
            killed.fetch_add(1, Ordering::Relaxed);
            let stages = project.state().stages;
            let mut batches = stages.values().flat_map(|stage| stage.batches.values());
            if batches.any(|batch| matches!(batch.phase, Phase::Running { .. })) {
                in_mid_batch.fetch_add(1, Ordering::Relaxed);
            }
        }
        finish(&project);
        assert_same(&project.outputs(), &expected);
        project.assert_complete(&expected);
    });
    let (killed, in_mid_batch) = (killed.into_inner(), in_mid_batch.into_inner());
    assert!(killed >= kills, "{killed} kills");
    assert!(in_mid_batch > 0, "{killed} kills, none in mid-batch");
    eprintln!("{killed} kills, {in_mid_batch} of them in mid-batch");
}
