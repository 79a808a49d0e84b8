//! A run while it goes on: batches that overlap, a second run beside it, and the wish to stop.

use super::house::{House, code};
use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// Two batches that each wait for a word of the test on a pipe of their own, and tell on another that they are there.
fn meeting() -> House {
    let mut house = House::new(&[
        (
            "milepost.toml",
            "name = \"meeting\"\n\n[env]\nPIPES = \"\"\n",
        ),
        (
            "stages/1_meet.toml",
            r#"
[each.n]
count = 2

[step]
command = ["sh", "-c", 'sleep 600 & echo $! > "$PIPES/here_$1"; read word < "$PIPES/go_$1"; kill $!; echo "$word" > "$2"', "sh", "{{ n }}", "{{ paths.made }}"]
env = ["PIPES"]
timeout = "60s"

[outputs]
made = "outputs/{{ n }}.txt"
"#,
        ),
    ]);
    for pipe in ["here_1", "go_1", "here_2", "go_2"] {
        let made = Command::new("mkfifo").arg(house.at(pipe)).status().unwrap();
        assert!(made.success());
    }
    let pipes = house.at("").display().to_string();
    house.env("PIPES", &pipes);
    house
}

/// The process that a batch started, once it is there.
fn here(house: &House, n: u32) -> u32 {
    let mut text = String::new();
    std::fs::File::open(house.at(&format!("here_{n}")))
        .unwrap()
        .read_to_string(&mut text)
        .unwrap();
    text.trim().parse().unwrap()
}

fn go(house: &House, n: u32) {
    std::fs::write(house.at(&format!("go_{n}")), "on\n").unwrap();
}

/// Whether a process is there and is not merely waiting to be counted.
fn lives(process: u32) -> bool {
    let stat = std::fs::read_to_string(Path::new("/proc").join(process.to_string()).join("stat"))
        .unwrap_or_default();
    stat.rsplit(')')
        .next()
        .is_some_and(|rest| !rest.trim().is_empty() && !rest.trim().starts_with('Z'))
}

fn start(house: &House, arguments: &[&str]) -> std::process::Child {
    house
        .command(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

#[test]
fn with_two_jobs_two_batches_are_at_work_together() {
    let house = meeting();
    let run = start(&house, &["run", "--jobs", "2"]);
    // Both are there before either may go on.
    let both = [here(&house, 1), here(&house, 2)];
    go(&house, 2);
    go(&house, 1);
    let output = run.wait_with_output().unwrap();
    assert_eq!(code(&output), 0, "{}", super::house::said(&output));
    assert!(both.iter().all(|process| !lives(*process)));
    assert_eq!(house.list("outputs"), ["1.txt", "2.txt"]);
}

#[test]
fn a_second_run_is_refused_and_reading_is_not() {
    let house = meeting();
    let run = start(&house, &["run", "meet/1"]);
    here(&house, 1);
    let (refused, said) = house.milepost(&["run"]);
    assert_eq!(refused, 1, "{said}");
    assert!(
        said.contains("another run is at work in this workspace"),
        "{said}"
    );
    assert!(
        said.contains(&format!("process {}", run.id())) && said.contains("since 20"),
        "{said}"
    );
    let before = house.tree();
    for reading in ["status", "plan", "log", "why meet/1", "graph", "verify"] {
        let words: Vec<&str> = reading.split(' ').collect();
        let (code, said) = house.milepost(&words);
        assert_eq!(code, 0, "{reading}: {said}");
    }
    assert_eq!(
        house.tree(),
        before,
        "who reads beside a run writes nothing"
    );
    let plan = house.plan(&[]).unwrap();
    assert_eq!(plan["stages"][0]["stage"], "meet");
    go(&house, 1);
    assert_eq!(code(&run.wait_with_output().unwrap()), 3);
}

#[test]
fn ctrl_c_ends_what_runs_and_the_next_run_goes_on() {
    let house = meeting();
    let run = start(&house, &["run"]);
    here(&house, 1);
    go(&house, 1);
    let child = here(&house, 2);
    let sent = Command::new("kill")
        .args(["-INT", &run.id().to_string()])
        .status()
        .unwrap();
    assert!(sent.success());
    let output = run.wait_with_output().unwrap();
    assert_eq!(code(&output), 130, "{}", super::house::said(&output));
    assert!(!lives(child), "the child of the batch lives on");
    assert_eq!(house.list("outputs"), ["1.txt"]);
    assert_eq!(house.json("workspace/meet_progress.json")["status"], "held");
    assert!(!house.exists("workspace/stage_1_complete.json"));

    let again = start(&house, &["run"]);
    here(&house, 2);
    go(&house, 2);
    assert_eq!(code(&again.wait_with_output().unwrap()), 0);
    assert_eq!(house.list("outputs"), ["1.txt", "2.txt"]);
    let tried = house
        .records()
        .iter()
        .filter(|record| record["kind"] == "attempt_started" && record["data"]["batch"] == "1")
        .count();
    assert_eq!(tried, 1, "what was finished is not done again");
}

#[test]
fn a_killed_run_leaves_a_lock_that_is_taken_over_and_children_that_are_ended() {
    let house = meeting();
    let mut run = start(&house, &["run", "meet/1"]);
    let child = here(&house, 1);
    run.kill().unwrap();
    run.wait().unwrap();
    assert!(lives(child), "it was the runner alone that was killed");
    let again = start(&house, &["run", "meet/1"]);
    here(&house, 1);
    assert!(
        !lives(child),
        "the next run ends survivors before it starts"
    );
    go(&house, 1);
    assert_eq!(code(&again.wait_with_output().unwrap()), 3);
    assert_eq!(house.read("workspace/outputs/1.txt"), "on\n");
}

#[test]
fn an_input_that_changes_while_its_batch_runs_makes_the_result_stale() {
    let house = meeting();
    house.write(
        "stages/1_meet.toml",
        house
            .read("stages/1_meet.toml")
            .replace(
                "[each.n]\ncount = 2\n",
                "[inputs]\ntext = \"inputs/text.txt\"\n",
            )
            .replace("{{ n }}.txt", "made.txt")
            .replace("{{ n }}", "1"),
    );
    house.write("workspace/inputs/text.txt", "before");
    let run = start(&house, &["run"]);
    here(&house, 1);
    house.write("workspace/inputs/text.txt", "after");
    go(&house, 1);
    let output = run.wait_with_output().unwrap();
    let plan = house.plan(&[]).unwrap();
    assert_eq!(
        plan["stages"][0]["will"][0]["reasons"][0]["reason"],
        "stale",
        "{plan:#} {}",
        super::house::said(&output)
    );
}

#[test]
fn a_program_that_no_record_names_is_ended_by_the_attempt_that_it_belongs_to() {
    let house = meeting();
    let mut run = start(&house, &["run", "meet/1"]);
    let child = here(&house, 1);
    run.kill().unwrap();
    run.wait().unwrap();
    assert!(lives(child), "it was the runner alone that was killed");
    // As if the runner was killed before the record of the program was written.
    let segment = house.list(".milepost/journal").pop().unwrap();
    let segment = format!("workspace/.milepost/journal/{segment}");
    let kept: String = house
        .read(&segment)
        .split_inclusive('\n')
        .take_while(|line| !line.contains("\"child_started\""))
        .map(str::to_owned)
        .collect();
    assert!(kept.contains("\"attempt_started\""), "{kept}");
    house.write(&segment, kept);
    let again = start(&house, &["run", "meet/1"]);
    here(&house, 1);
    assert!(
        !lives(child),
        "the next run ends survivors before it starts"
    );
    go(&house, 1);
    assert_eq!(code(&again.wait_with_output().unwrap()), 3);
}

#[test]
fn a_lock_of_somebody_who_is_gone_is_taken_at_once() {
    let house = House::new(&[
        ("milepost.toml", "name = \"x\"\n"),
        (
            "stages/1_x.toml",
            "[step]\njq = '1'\n[outputs]\nx = { path = \"outputs/x.json\", schema = false }\n",
        ),
    ]);
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let host = rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned();
    // The process id is that of a process that lives: this one. It was started at another time, or before the machine was.
    for (boot, host) in [
        (boot.trim(), host.as_str()),
        ("another", host.as_str()),
        ("another", "elsewhere"),
    ] {
        let lock = format!(
            r#"{{"pid":{},"start_time":1,"boot_id":"{boot}","run_id":"R","since":"2026-03-01T12:00:00Z","host":"{host}","command":"run"}}"#,
            std::process::id()
        );
        house.write("workspace/.milepost/lock", lock);
        let (code, said) = house.milepost(&["run"]);
        assert_eq!(code, 0, "{said}");
        assert_eq!(house.read("workspace/.milepost/lock"), "");
    }
}
