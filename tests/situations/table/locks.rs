//! Locks: a holder that died is followed at once, a live one is named, and who only reads is never refused and never writes.

use super::super::gated::{gated, release, wait_for_batch};
use crate::command::until;
use crate::support::{Project, exit_code, is_alive};
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::Stdio;

#[test]
fn a_live_holder_is_named_with_since_when_and_reading_beside_it_writes_nothing() {
    let project = gated();
    let run = project.spawn(&["run", "meet/1"]);
    wait_for_batch(&project, 1);
    until("the program is recorded", || {
        let records = project.records();
        records
            .iter()
            .any(|record| record["kind"] == "child_started")
    });
    // From then on the run writes nothing until its batch ends.
    until("the progress file shows the batch", || {
        let text = std::fs::read(project.at("workspace/meet_progress.json")).unwrap_or_default();
        let progress: serde_json::Value = serde_json::from_slice(&text).unwrap_or_default();
        progress["current_batch"] == 1
    });
    let before = project.tree();
    let holder = project.json("workspace/.milepost/lock");
    let (refused, said) = project.milepost(&["run"]);
    let text = |key: &str| holder[key].as_str().unwrap();
    let (id, host, since) = (text("run_id"), text("host"), text("since"));
    let since = since.split('.').next().unwrap();
    let pid = run.id();
    let expected = format!(
        "error: another run is in progress in this workspace: `milepost run meet/1` (run {id}, process {pid} on {host}) since {since}Z: \
         wait for it, as `milepost run --wait 1h` does, or end it by `kill {pid}`\n"
    );
    assert_eq!((refused, said), (6, expected));
    for reading in ["status", "plan", "log", "why meet/1", "graph", "verify"] {
        let words: Vec<&str> = reading.split(' ').collect();
        let (code, said) = project.milepost(&words);
        assert_eq!(code, 0, "{reading}: {said}");
    }
    assert_eq!(
        project.tree(),
        before,
        "who reads beside a run writes nothing"
    );
    let plan = project.plan(&[]).unwrap();
    assert_eq!(plan["stages"][0]["stage"], "meet");
    release(&project, 1);
    assert_eq!(exit_code(&run.wait_with_output().unwrap()), 3);
}

#[test]
fn a_holder_that_was_killed_is_followed_at_once_and_its_children_are_ended() {
    let project = gated();
    let mut run = project.spawn(&["run", "meet/1"]);
    let child = wait_for_batch(&project, 1);
    run.kill().unwrap();
    run.wait().unwrap();
    assert!(is_alive(child), "it was the runner alone that was killed");
    let again = project.spawn(&["run", "meet/1"]);
    wait_for_batch(&project, 1);
    assert!(
        !is_alive(child),
        "the next run ends survivors before it starts"
    );
    release(&project, 1);
    assert_eq!(exit_code(&again.wait_with_output().unwrap()), 3);
    assert_eq!(project.read("workspace/outputs/1.txt"), "on\n");
}

/// A run takes a lock whose holder was this process, as it were: it lives, and was started at another time, or before the machine
/// was, or on another machine.
fn is_taken_at_once(boot: &str, host: &str) {
    let project = Project::new(&[
        ("milepost.toml", "name = \"x\"\n"),
        (
            "stages/1_x.toml",
            "[step]\njq = '1'\n[outputs]\nx = { path = \"outputs/x.json\", schema = false }\n",
        ),
    ]);
    let pid = std::process::id();
    let lock = format!(
        r#"{{"pid":{pid},"start_time":1,"boot_id":"{boot}","run_id":"R","since":"2026-03-01T12:00:00Z","host":"{host}","command":"run"}}"#
    );
    project.write("workspace/.milepost/lock", lock);
    project.run(&[]).expect(0, &["x"]);
    assert_eq!(project.read("workspace/.milepost/lock"), "");
}

fn this_host() -> String {
    let name = rustix::system::uname();
    name.nodename().to_string_lossy().into_owned()
}

#[test]
fn a_dead_holder_whose_process_id_another_has_is_followed_at_once() {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    is_taken_at_once(boot.trim(), &this_host());
}

#[test]
fn a_holder_of_another_boot_is_followed_at_once() {
    is_taken_at_once("another", &this_host());
}

#[test]
fn a_holder_of_another_machine_is_followed_at_once() {
    is_taken_at_once("another", "elsewhere");
}

#[test]
fn a_run_waits_for_the_other_one_and_then_runs() {
    let project = gated();
    let first = project.spawn(&["run", "meet/1"]);
    wait_for_batch(&project, 1);
    let (code, text) = project.milepost(&["run", "--wait", "1ms"]);
    let pid = first.id();
    let waiting = format!("waiting for `milepost run meet/1` (process {pid}) to end\n");
    assert_eq!(code, 6, "{text}");
    assert!(text.starts_with(&waiting), "{text}");
    let mut command = project.command(&["run", "--wait", "10m"]);
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut second = command.spawn().unwrap();
    let mut said = BufReader::new(second.stderr.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert_eq!(line, waiting);
    release(&project, 1);
    assert_eq!(exit_code(&first.wait_with_output().unwrap()), 3);
    wait_for_batch(&project, 2);
    release(&project, 2);
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    assert_eq!(exit_code(&second.wait_with_output().unwrap()), 0, "{rest}");
    assert_eq!(project.list("outputs"), ["1.txt", "2.txt"]);
}

#[test]
fn ctrl_c_ends_the_wait_for_another_run() {
    let project = gated();
    let first = project.spawn(&["run", "meet/1"]);
    wait_for_batch(&project, 1);
    let mut command = project.command(&["run", "--wait", "10m"]);
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut second = command.spawn().unwrap();
    let mut said = BufReader::new(second.stderr.take().unwrap());
    said.read_line(&mut String::new()).unwrap();
    let id = second.id().to_string();
    let sent = std::process::Command::new("kill")
        .args(["-INT", &id])
        .status();
    assert!(sent.unwrap().success());
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    assert_eq!(
        exit_code(&second.wait_with_output().unwrap()),
        130,
        "{rest}"
    );
    release(&project, 1);
    assert_eq!(exit_code(&first.wait_with_output().unwrap()), 3);
}
