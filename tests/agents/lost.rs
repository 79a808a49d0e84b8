//! `verify` after calls and answers were lost: each is missed once, outputs come first, and what `gc` may remove is no finding.

use super::pipeline::{Served, speller};
use crate::support::Project;
use std::path::PathBuf;

/// A finished run of two calls, with five answers; the model may go.
fn answered() -> Project {
    let served = Served::new("well");
    let project = speller(served.port, "well");
    assert_eq!(project.run(&["--agent", "speller=api"]).code, 0);
    project
}

fn run_id(project: &Project) -> String {
    project.records()[0]["run_id"].as_str().unwrap().to_owned()
}

/// The only file of answers of the workspace.
fn answers(project: &Project) -> PathBuf {
    let name = format!("workspace/.milepost/answers/{}.jsonl", run_id(project));
    project.at(&name)
}

/// Returns the findings of `verify` but for notes, a line each.
#[track_caller]
fn found(project: &Project, code: i32) -> Vec<String> {
    let output = project.output("verify");
    assert_eq!(output.code, code, "{}", output.out);
    let lines = output.out.lines();
    let words = ["modified ", "missing ", "invalid "];
    let findings = lines.filter(|line| words.iter().any(|word| line.starts_with(word)));
    let run = run_id(project);
    findings.map(|line| line.replace(&run, "RUN")).collect()
}

#[test]
fn answers_that_are_gone_or_cut_off_are_missing() {
    let project = answered();
    assert_eq!(found(&project, 0), Vec::<String>::new());
    let text = std::fs::read_to_string(answers(&project)).unwrap();
    let kept: Vec<&str> = text.split_inclusive('\n').collect();
    assert_eq!(kept.len(), 5);
    std::fs::write(answers(&project), kept[..4].concat()).unwrap();
    let rest = "restore the folder from a copy; without it, a rebuild asks again";
    assert_eq!(
        found(&project, 5),
        [format!(
            "missing  .milepost/answers (of ask): 1 answer that its outputs contain is missing, of 1 call: {rest}"
        )]
    );
    std::fs::remove_file(answers(&project)).unwrap();
    assert_eq!(
        found(&project, 5),
        [format!(
            "missing  .milepost/answers (of ask): 5 answers that its outputs contain are missing, of 2 calls: {rest}"
        )]
    );
}

#[test]
fn lost_records_of_calls_are_one_finding_behind_outputs() {
    let project = answered();
    let calls = format!("workspace/.milepost/calls/{}", run_id(&project));
    project.remove(&format!("{calls}/000002.answer"));
    assert_eq!(
        found(&project, 5),
        [
            "missing  .milepost/calls/RUN/000002.answer (of ask/batch_2): the answer of a call in use is missing"
        ]
    );
    project.remove(&format!("{calls}.jsonl"));
    project.write("workspace/outputs/all.json", "[]");
    let findings = found(&project, 5);
    assert!(
        findings[0].starts_with("modified outputs/all.json (of join): expected digest "),
        "{findings:?}"
    );
    assert_eq!(
        findings[1..],
        [
            "missing  .milepost/calls/RUN.jsonl: the journal lists 2 calls whose records are missing: 1 to 2"
        ]
    );
    let output = project.output("verify");
    assert!(
        output.out.trim_end().ends_with(": 1 modified, 1 missing"),
        "{}",
        output.out
    );
}
