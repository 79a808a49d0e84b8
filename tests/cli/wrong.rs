//! What cannot be done, in words and as JSON.

use crate::support::{Project, expect};
use serde_json::{Value, json};

#[test]
fn wrong_declarations_are_shown_all_at_once() {
    let project = Project::letters();
    project.edit("stages/1_copy.toml", "[each.person]", "[each.persons]");
    project.edit("stages/2_join.toml", "[inputs]", "[input]");
    let said = project.run("");
    assert_eq!((said.code, said.out.as_str()), (4, ""));
    let marks = [
        "error: `input` is no key of a stage\n --> stages/2_join.toml:3:2\n",
        "  = help: tables of names are plural: write `[inputs]`\n",
        " --> stages/1_copy.toml:",
    ];
    for mark in marks {
        assert!(said.err.contains(mark), "{mark}\n--- in\n{}", said.err);
    }
    assert!(
        said.err
            .ends_with(" mistakes in the declarations; nothing was run\n"),
        "{}",
        said.err
    );

    let json: Value = serde_json::from_str(&project.run("--json plan").out).unwrap();
    assert_eq!(json["status"], "error");
    assert_eq!(json["exit_code"], 4);
    let problems = json["error"]["problems"].as_array().unwrap();
    let last = problems.last().unwrap();
    assert_eq!(
        (&last["file"], &last["line"], &last["column"], &last["help"]),
        (
            &json!("stages/2_join.toml"),
            &json!(3),
            &json!(2),
            &json!("tables of names are plural: write `[inputs]`")
        )
    );
}

#[test]
fn one_runner_at_a_time() {
    let project = Project::letters();
    project.write("workspace/.milepost/lock", "");
    let lock = std::fs::File::open(project.at("workspace/.milepost/lock")).unwrap();
    lock.lock().unwrap();
    let said = "error: another run has just begun to work in this workspace (lock …/workspace/.milepost/lock)\n";
    expect(project.run(""), 1, "", said);
    assert_eq!(project.run("plan").code, 0, "readers are never blocked");
    lock.unlock().unwrap();
    assert_eq!(project.run("-q").code, 0);
}

#[test]
fn a_workspace_of_a_newer_version_is_left_alone() {
    let project = Project::letters();
    project.run("-q");
    project.edit(
        "workspace/.milepost/workspace.json",
        "\"format\": 1",
        "\"format\": 2",
    );
    let message = "…/workspace/.milepost/workspace.json is written by a newer Milepost (format 2; this one reads up to 1): update milepost";
    expect(project.run(""), 1, "", &format!("error: {message}\n"));
    let json: Value = serde_json::from_str(&project.run("run --json").out).unwrap();
    assert_eq!(
        json,
        json!({ "status": "error", "exit_code": 1, "error": { "kind": "workspace", "message": message } })
    );
}

#[test]
fn a_report_as_json_holds_what_the_summary_says() {
    let project = Project::letters();
    project.write("workspace/inputs/person_2.json", "{}");
    let said = project.run("run --json -q");
    assert_eq!(said.code, 1);
    let mut json: Value = serde_json::from_str(&said.out).unwrap();
    json["seconds"] = json!("…");
    for stage in json["stages"].as_array_mut().unwrap() {
        stage["seconds"] = json!("…");
    }
    assert!(
        json["run_id"]
            .take()
            .as_str()
            .is_some_and(|id| id.len() == 26),
        "{json:#}"
    );
    let outcome =
        json!({ "kind": "exit", "code": "EXIT", "message": "`sh` ended with exit code 1" });
    assert_eq!(
        json,
        json!({
            "status": "failed", "exit_code": 1, "run_id": null, "workspace": "…/workspace",
            "interrupted": false, "seconds": "…", "forgotten": [],
            "stages": [
                { "stage": "copy", "number": 1, "status": "failed", "why": null, "batches": 3, "ran": 1, "reused": 0,
                  "validated_again": 0, "retired": 0, "left": 1,
                  "failed": [{ "batch": "person_2", "outcome": outcome }],
                  "altered": [], "verdict": null, "elements": null, "outputs": [], "seconds": "…" },
                { "stage": "join", "number": 2, "status": "blocked", "why": "stage `copy` is not complete",
                  "batches": 0, "ran": 0, "reused": 0, "validated_again": 0, "retired": 0, "left": 0, "failed": [],
                  "altered": [], "verdict": null, "elements": null, "outputs": [], "seconds": "…" },
            ],
        })
    );
}
