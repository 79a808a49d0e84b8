//! What is ended, and what must not be: timeouts, stops, groups, and processes that leave them.

use std::fs;
use std::time::{Duration, Instant};

use milepost_engine::steps::command::Exit;

use super::{Flag, Trial, fifo, number, runs, until};

/// A process in a session of its own that is in nobody's way; it tells its id to the fifo `ready` and its parent is gone.
const ESCAPED: &str = "(setsid sh -c 'echo $$ >ready; exec sleep 1000' >/dev/null 2>&1 &)";

#[test]
fn a_timeout_ends_it() {
    let mut trial = Trial::sh("echo $$; exec sleep 1000");
    trial.timeout = Duration::from_millis(200);
    let (exit, output) = trial.run();
    assert_eq!(exit, Exit::TimedOut);
    assert!(output.is_empty() || !runs(number(&output)));
}

#[test]
fn a_stop_ends_it_and_hears_its_last_words() {
    let trial = Trial::sh("trap 'echo bye; exit 0' TERM; echo ready; while :; do :; done");
    assert_eq!(
        trial.run_until("ready"),
        (Exit::Cancelled, "ready\nbye\n".to_owned())
    );
}

#[test]
fn a_stop_before_the_start_starts_nothing() {
    let trial = Trial::sh("touch started");
    let flag = Flag::default();
    flag.0.store(true, std::sync::atomic::Ordering::SeqCst);
    let exit = trial
        .run_with(&mut Vec::new(), &flag, &mut |started| panic!("{started:?}"))
        .unwrap();
    assert_eq!(exit, Exit::Cancelled);
    assert!(!trial.file("started").exists());
}

#[test]
fn who_ignores_the_request_is_ended_by_force() {
    let mut trial = Trial::sh("trap '' TERM; echo $$; while :; do sleep 1000; done");
    trial.grace = Duration::from_millis(100);
    let begin = Instant::now();
    let (exit, output) = trial.run_until("\n");
    assert_eq!(exit, Exit::Cancelled);
    assert!(begin.elapsed() >= trial.grace);
    assert!(!runs(number(&output)));
}

#[test]
fn one_that_is_stopped_can_still_say_goodbye() {
    let trial = Trial::sh(
        "trap 'echo bye; exit 0' TERM; (echo ready; kill -STOP $$) & wait; wait; sleep 1000",
    );
    let (exit, output) = trial.run_until("ready");
    assert_eq!((exit, output.as_str()), (Exit::Cancelled, "ready\nbye\n"));
}

#[test]
fn what_the_leader_leaves_in_its_group_is_ended() {
    let trial = Trial::sh("sleep 1000 & echo $!");
    let (exit, output) = trial.run();
    assert_eq!(exit, Exit::Code(0));
    assert!(!runs(number(&output)));
}

#[test]
fn what_the_leader_leaves_and_ignores_the_request_is_ended_by_force() {
    let mut trial =
        Trial::sh("(trap '' TERM; sh -c 'echo $$ >ready; exec sleep 1000') & cat ready");
    trial.grace = Duration::from_millis(50);
    fifo(&trial.file("ready"));
    let (exit, output) = trial.run();
    assert_eq!(exit, Exit::Code(0));
    assert!(!runs(number(&output)));
}

#[test]
fn who_left_for_a_session_of_its_own_is_ended_at_a_stop() {
    let trial = Trial::sh(&format!("{ESCAPED}; cat ready; sleep 1000"));
    fifo(&trial.file("ready"));
    let (exit, output) = trial.run_until("\n");
    assert_eq!(exit, Exit::Cancelled);
    assert!(!runs(number(&output)));
}

#[test]
fn who_left_and_shed_its_environment_is_ended_at_a_stop() {
    let trial = Trial::sh("setsid env -i sh -c 'echo $$; exec sleep 1000' & wait");
    let (exit, output) = trial.run_until("\n");
    assert_eq!(exit, Exit::Cancelled);
    assert!(!runs(number(&output)));
}

#[test]
fn who_left_for_a_session_of_its_own_is_ended_after_the_end() {
    let trial = Trial::sh(&format!("{ESCAPED}; cat ready; exit 3"));
    fifo(&trial.file("ready"));
    let (exit, output) = trial.run();
    assert_eq!(exit, Exit::Code(3));
    assert!(!runs(number(&output)));
}

#[test]
fn a_daemon_that_writes_for_ever_is_ended_after_the_end() {
    let trial = Trial::sh(
        "(setsid sh -c 'echo $$ >ready; while :; do echo noise; done' &); cat ready >pid",
    );
    fifo(&trial.file("ready"));
    assert_eq!(trial.run().0, Exit::Code(0));
    assert!(!runs(number(
        &fs::read_to_string(trial.file("pid")).unwrap()
    )));
}

#[test]
fn a_stranger_that_keeps_the_output_open_hangs_nobody() {
    let trial = Trial::sh("cat go; echo said");
    fifo(&trial.file("go"));
    let mut log = Vec::new();
    let mut stranger = None;
    let exit = trial.run_with(&mut log, &Flag::default(), &mut |started| {
        let output = format!("/proc/{}/fd/1", started.pid);
        stranger = Some(fs::File::options().write(true).open(output).unwrap());
        fs::write(trial.file("go"), "").unwrap();
    });
    assert_eq!(
        (exit.unwrap(), log.as_slice()),
        (Exit::Code(0), b"said\n".as_slice())
    );
    drop(stranger);
}

#[test]
fn what_other_commands_left_running_is_not_ours_to_end() {
    // Its escaped process has been adopted by us, and ends only when it is told to.
    let other = Trial::sh(
        "mkfifo told; (setsid sh -c 'echo $$ >ready; read word <go; echo $word >told' >/dev/null 2>&1 &); cat told",
    );
    fifo(&other.file("ready"));
    fifo(&other.file("go"));
    std::thread::scope(|scope| {
        let running = scope.spawn(|| other.run());
        let escaped = number(&fs::read_to_string(other.file("ready")).unwrap());
        until("the escaped process is ours", || {
            let stat = fs::read_to_string(format!("/proc/{escaped}/stat")).unwrap();
            let parent = stat[stat.rfind(')').unwrap() + 4..]
                .split(' ')
                .next()
                .unwrap()
                .to_owned();
            parent == std::process::id().to_string()
        });
        for _ in 0..20 {
            assert_eq!(Trial::new(&["true"]).run().0, Exit::Code(0));
        }
        let ours = Trial::sh(&format!("{ESCAPED}; cat ready"));
        fifo(&ours.file("ready"));
        assert!(!runs(number(&ours.run().1)));
        assert!(runs(escaped));
        fs::write(other.file("go"), "untouched\n").unwrap();
        assert_eq!(
            running.join().unwrap(),
            (Exit::Code(0), "untouched\n".to_owned())
        );
    });
}

#[test]
fn a_child_of_whoever_uses_the_library_is_left_alone() {
    let mut child = std::process::Command::new("sh")
        .args(["-c", "exit 5"])
        .spawn()
        .unwrap();
    until("it has ended", || !runs(child.id()));
    assert_eq!(Trial::sh("sleep 1000 &").run().0, Exit::Code(0));
    assert_eq!(child.wait().unwrap().code(), Some(5));
}
