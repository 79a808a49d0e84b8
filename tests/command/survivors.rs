//! Runners that were killed, and what the next one does about the commands that they left.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use milepost_engine::steps::command::{Exit, StartedProcess, end_survivors};

use super::{Flag, Trial, fifo, number, runs, until};

const ROLE: &str = "MILEPOST_TEST_ROLE";
const FOLDER: &str = "MILEPOST_TEST_FOLDER";

/// Starts this test binary again, with only the test below, in a role of it.
fn other_process(role: &str, folder: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args([
            "command::survivors::in_another_process",
            "--exact",
            "--ignored",
            "--nocapture",
        ])
        .env(ROLE, role)
        .env(FOLDER, folder)
        .envs((role == "no adoption").then_some((super::NO_ADOPTION, "1")))
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

/// The role played in another process.
#[test]
#[ignore = "a process that other tests start"]
fn in_another_process() {
    let role = std::env::var(ROLE).unwrap();
    let folder = std::env::var(FOLDER).unwrap();
    let folder = Path::new(&folder);
    match role.as_str() {
        "runner" => {
            let script = "echo $$ >>pids; sh -c 'echo $$ >>pids; exec sleep 1000' & \
                 (setsid sh -c 'echo $$ >>pids; exec sleep 1000' &); sleep 1000";
            let trial = Trial {
                token: "the killed runner's".to_owned(),
                ..Trial::sh(&format!("cd \"$FOLDER\"; {script}"))
            };
            let env = [
                trial.env.clone(),
                vec![("FOLDER".to_owned(), folder.display().to_string())],
            ]
            .concat();
            let trial = Trial { env, ..trial };
            let _ = trial.run_with(&mut Vec::new(), &Flag::default(), &mut |started| {
                let text = serde_json::to_string(started).unwrap();
                fs::write(folder.join("started.tmp"), text).unwrap();
                fs::rename(folder.join("started.tmp"), folder.join("started")).unwrap();
            });
        }
        "alone" => {
            let trial = Trial::sh(
                "(setsid env -i sh -c 'echo $$ >ready; exec sleep 1000' >/dev/null 2>&1 &); cat ready",
            );
            fifo(&trial.file("ready"));
            let (exit, output) = trial.run();
            assert_eq!(exit, Exit::Code(0));
            assert!(!runs(number(&output)));
        }
        "no adoption" => {
            let trial = Trial::sh(
                "(setsid sh -c 'echo $$ >ready; exec sleep 1000' >/dev/null 2>&1 &); sleep 1000 & echo $!; cat ready",
            );
            fifo(&trial.file("ready"));
            let (exit, output) = trial.run();
            assert_eq!((exit, output.lines().count()), (Exit::Code(0), 2));
            assert!(!output.lines().any(|pid| runs(number(pid))));
        }
        role => panic!("no role {role}"),
    }
}

#[test]
fn who_shed_its_environment_is_ended_after_the_only_command() {
    let folder = tempfile::tempdir().unwrap();
    assert!(
        other_process("alone", folder.path())
            .wait()
            .unwrap()
            .success()
    );
}

#[test]
fn without_adoption_they_are_found_by_their_environment() {
    let folder = tempfile::tempdir().unwrap();
    let status = other_process("no adoption", folder.path()).wait().unwrap();
    assert!(status.success());
}

/// A runner that was killed with its command running: what it recorded, and the three processes of the command.
fn killed_runner(folder: &Path) -> (StartedProcess, Vec<u32>) {
    let mut runner = other_process("runner", folder);
    let pids = || -> Vec<u32> {
        let text = fs::read_to_string(folder.join("pids")).unwrap_or_default();
        text.split_inclusive('\n')
            .filter(|line| line.ends_with('\n'))
            .map(number)
            .collect()
    };
    until("all processes have told their ids", || {
        folder.join("started").exists() && pids().len() == 3
    });
    runner.kill().unwrap();
    runner.wait().unwrap();
    let started =
        serde_json::from_str(&fs::read_to_string(folder.join("started")).unwrap()).unwrap();
    let mut pids = pids();
    pids.sort_unstable();
    assert!(pids.iter().all(|pid| runs(*pid)));
    (started, pids)
}

#[test]
fn what_a_killed_runner_left_is_ended() {
    let folder = tempfile::tempdir().unwrap();
    let (started, pids) = killed_runner(folder.path());

    // Strangers: another start, another boot, another attempt.
    let younger = StartedProcess {
        start_time: started.start_time + 1,
        ..started.clone()
    };
    let elsewhere = StartedProcess {
        boot_id: "another".to_owned(),
        ..started.clone()
    };
    let others = ["somebody's".to_owned()];
    assert_eq!(
        end_survivors(&[younger, elsewhere], &others, Duration::ZERO),
        Vec::<u32>::new()
    );
    assert!(pids.iter().all(|pid| runs(*pid)));

    // By the record alone: leader and group. By the token: who left it.
    let in_group = end_survivors(std::slice::from_ref(&started), &[], Duration::from_secs(5));
    assert!(in_group.contains(&started.pid), "{in_group:?}");
    let left: Vec<u32> = pids.iter().copied().filter(|pid| runs(*pid)).collect();
    assert_eq!(left.len(), 1);
    let token = ["the killed runner's".to_owned()];
    assert_eq!(end_survivors(&[], &token, Duration::from_secs(5)), left);
    assert!(!pids.iter().any(|pid| runs(*pid)));
    assert_eq!(
        end_survivors(&[started], &token, Duration::ZERO),
        Vec::<u32>::new()
    );
}
