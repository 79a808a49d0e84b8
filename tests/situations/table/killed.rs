//! SIGKILL of all, of the runner alone, Ctrl-C, in mid-batch: what was not finished is done again, and no half file is ever read.

use crate::support::{Project, exit_code, is_alive, pipe};

use super::matches_a_fresh_run;
use crate::command::until;
use std::process::{Child, Command};

/// A copy in two halves. Where a pipe waits for it, the first try tells its process there after the first half, and then writes
/// what is wrong for as long as it lives.
const COPY: &str = r#"
head -c 2000 "$1" > "$2"
name=$(basename "$1" .json)
if test -p "$PIPES/$name" && mkdir "$PIPES/begun_$name" 2> /dev/null; then
    echo $$ > "$PIPES/$name"
    while :; do printf 'wrong' >> "$2"; sleep 0.01; done
fi
tail -c +2001 "$1" >> "$2"
"#;

/// Eight batches of 4 KB, two at once, and the sum of all.
fn eight() -> Project {
    let mut project = Project::new(&[
        ("milepost.toml", "name = \"eight\"\n\n[env]\nPIPES = \"\"\n"),
        ("tools/copy.sh", COPY),
        (
            "stages/1_copy.toml",
            r#"
[each.batch]
path = "inputs/batch_*.json"
[step]
command = ["sh", "project:tools/copy.sh", "{{ batch.path }}", "{{ paths.copy }}"]
env = ["PIPES"]
[outputs]
copy = { path = "intermediate/{{ batch.stem }}.json", schema = false }
[policy]
concurrency = 2
"#,
        ),
        (
            "stages/2_sum.toml",
            "[inputs]\nparts = \"intermediate/batch_*.json\"\n[step]\njq = '[.parts[].n] | add'\n\
             [outputs]\nsum = { path = \"outputs/sum.json\", schema = false }\n",
        ),
    ]);
    for n in 1..=8 {
        let fill = "x".repeat(4000);
        let text = format!(r#"{{"fill": "{fill}", "n": {n}}}"#);
        project.write(&format!("workspace/inputs/batch_{n}.json"), text);
    }
    let pipes = project.at("").display().to_string();
    project.env("PIPES", &pipes);
    project
}

/// A run in the middle of batches 4 and 5; 1 to 3 are finished, 6 to 8 not begun. Gives the processes of the two.
fn in_mid_batch(project: &Project) -> (Child, [u32; 2]) {
    let pipes = ["batch_4", "batch_5"];
    for name in pipes {
        pipe(&project.at(name));
    }
    let run = project.spawn(&["run"]);
    let children = pipes.map(|pipe| project.read(pipe).trim().parse().unwrap());
    until("three batches are in place", || {
        project.list("intermediate").len() == 3
    });
    assert!(children.iter().all(|child| is_alive(*child)));
    (run, children)
}

fn signal(name: &str, processes: &[String]) {
    let mut kill = Command::new("kill");
    assert!(kill.arg(name).args(processes).status().unwrap().success());
}

/// What is in place is whole, whoever reads is answered, and the next run does just what was not finished.
fn continues(project: &Project, children: [u32; 2]) {
    let whole = |n: u32| {
        let copy = project.read(&format!("workspace/intermediate/batch_{n}.json"));
        assert_eq!(
            copy,
            project.read(&format!("workspace/inputs/batch_{n}.json"))
        );
    };
    let finished = ["batch_1.json", "batch_2.json", "batch_3.json"];
    assert_eq!(project.list("intermediate"), finished);
    assert_eq!(project.list("outputs"), Vec::<String>::new());
    (1..=3).for_each(whole);
    let left = (project.digests(), project.records());
    for reading in ["status", "log", "plan"] {
        let (code, said) = project.milepost(&[reading]);
        assert_eq!(code, 0, "{reading}: {said}");
    }
    assert_eq!((project.digests(), project.records()), left);
    let ran = project.run_unplanned(&[]);
    let redone = [
        "copy/batch_4",
        "copy/batch_5",
        "copy/batch_6",
        "copy/batch_7",
        "copy/batch_8",
        "sum",
    ];
    ran.expect(0, &redone);
    assert!(!children.iter().any(|child| is_alive(*child)));
    (1..=8).for_each(whole);
    assert_eq!(project.read("workspace/outputs/sum.json").trim(), "36");
    assert_eq!(project.list(".milepost/scratch"), Vec::<String>::new());
    project.check_checkpoints();
    matches_a_fresh_run(project);
}

#[test]
fn sigkill_of_all() {
    let project = eight();
    let (mut run, children) = in_mid_batch(&project);
    let runner = run.id().to_string();
    // Stopped first: it could otherwise start another program in the meantime.
    signal("-STOP", std::slice::from_ref(&runner));
    let groups = children.map(|child| format!("-{child}"));
    signal("-KILL", &[&["--".to_owned()], &groups[..]].concat());
    signal("-KILL", &[runner]);
    run.wait().unwrap();
    until("the programs are gone", || {
        !children.iter().any(|child| is_alive(*child))
    });
    continues(&project, children);
}

#[test]
fn sigkill_of_the_runner_alone() {
    let project = eight();
    let (mut run, children) = in_mid_batch(&project);
    run.kill().unwrap();
    run.wait().unwrap();
    assert!(
        children.iter().all(|child| is_alive(*child)),
        "they write on"
    );
    continues(&project, children);
}

/// The run ends in order, and its programs with it.
fn asked_to_end(name: &str) {
    let project = eight();
    let (run, children) = in_mid_batch(&project);
    signal(name, &[run.id().to_string()]);
    let output = run.wait_with_output().unwrap();
    assert_eq!(exit_code(&output), 130);
    assert!(!children.iter().any(|child| is_alive(*child)));
    assert_eq!(
        project.json("workspace/copy_progress.json")["status"],
        "held"
    );
    assert!(!project.exists("workspace/stage_1_complete.json"));
    continues(&project, children);
}

#[test]
fn ctrl_c() {
    asked_to_end("-INT");
}

#[test]
fn sigterm() {
    asked_to_end("-TERM");
}
