//! Runs by a client: progress, refusals, and what became of the stages.

use super::client::{Client, gated, open, shut, taken, well};
use crate::support::Project;
use serde_json::{Value, json};

/// What of a run is the same each time.
fn stages(data: &Value) -> Vec<(String, String, u64, u64)> {
    let stages = data["stages"].as_array().unwrap().iter();
    stages
        .map(|stage| {
            let text = |name: &str| stage[name].as_str().unwrap().to_owned();
            let number = |name: &str| stage[name].as_u64().unwrap();
            (
                text("stage"),
                text("status"),
                number("ran"),
                number("reused"),
            )
        })
        .collect()
}

fn row(stage: &str, status: &str, ran: u64, reused: u64) -> (String, String, u64, u64) {
    (stage.to_owned(), status.to_owned(), ran, reused)
}

#[test]
fn a_run_tells_of_each_batch_and_then_how_it_ended() {
    let project = Project::letters();
    let mut client = Client::of(&project);
    let id = client.begin("run", json!({}));
    let result = taken(client.answer(id));
    let data = &result["structuredContent"];
    assert_eq!(result["isError"], false);
    assert_eq!(
        (&data["success"], &data["status"], &data["exit_code"]),
        (&json!(true), &json!("complete"), &json!(0))
    );
    assert_eq!(
        stages(data),
        [row("copy", "complete", 3, 0), row("join", "complete", 1, 0)]
    );
    let told: Vec<Value> = client
        .told
        .iter()
        .map(|told| {
            assert_eq!(told["method"], "notifications/progress");
            let told = &told["params"];
            assert_eq!(told["progressToken"], id);
            json!([told["progress"], told["total"], told["message"]])
        })
        .collect();
    assert_eq!(
        told,
        [
            json!([1.0, 4.0, "copy starts: 3 batches  Copy each person"]),
            json!([2.0, 4.0, "copy/person_1 done: 1 of 3"]),
            json!([3.0, 4.0, "copy/person_2 done: 2 of 3"]),
            json!([4.0, 4.0, "copy/person_10 done: 3 of 3"]),
            json!([5.0, 6.0, "join starts  Greet them all"]),
            json!([6.0, 6.0, "join done: 1 of 1"]),
        ]
    );
    client.told.clear();
    let again = client.call("run", json!({}));
    assert_eq!(
        stages(&again),
        [row("copy", "complete", 0, 3), row("join", "complete", 0, 1)]
    );
    assert_eq!(client.told, Vec::<Value>::new());
    assert_eq!(client.leave(), well());
    let log = project.output("log --json --last 0");
    assert!(log.out.contains("milepost mcp (run)"), "{}", log.out);
}

#[test]
fn a_stage_refuses_before_the_one_it_reads_from_is_complete() {
    let project = Project::letters();
    let mut client = Client::of(&project);
    let mut fault = client.fault("run", json!({"targets": ["join"]}));
    let fields = fault.as_object_mut().unwrap();
    for name in ["run_id", "workspace", "seconds", "stages"] {
        assert!(fields.shift_remove(name).is_some(), "{name}");
    }
    assert_eq!(
        fault,
        json!({
            "error": "stage `join` did not start: stage `copy` is not complete",
            "code": "not_complete",
            "hint": "run `copy` first, or run without targets, which runs all stages in order",
            "blocked_by": {"stage": "copy", "number": 1, "how": "incomplete", "failed": null, "altered": []},
            "status": "held",
            "exit_code": 3,
            "interrupted": false,
            "under_way": 0,
            "forgotten": [],
            "stored": [],
        })
    );
    let data = client.call("run", json!({"targets": ["copy/person_2"]}));
    assert_eq!(
        (&data["success"], &data["status"]),
        (&json!(false), &json!("held"))
    );
    assert_eq!(stages(&data), [row("copy", "held", 1, 0)]);
    let data = client.call("run", json!({"targets": ["copy"]}));
    assert_eq!(stages(&data), [row("copy", "complete", 2, 1)]);
    let data = client.call("run", json!({"targets": ["join"]}));
    assert_eq!(stages(&data), [row("join", "complete", 1, 0)]);
    assert_eq!(client.leave(), well());
}

#[test]
fn what_failed_and_what_was_altered_are_faults_with_the_stages() {
    let project = Project::letters();
    project.write("workspace/inputs/person_2.json", "{}");
    let mut client = Client::of(&project);
    let fault = client.fault("run", json!({}));
    assert_eq!(
        (&fault["code"], &fault["error"], &fault["exit_code"]),
        (
            &json!("failed"),
            &json!("stage `copy` failed: `stages` lists the batches with their outcomes"),
            &json!(1)
        )
    );
    assert_eq!(fault["stages"][0]["failed"][0]["batch"], "person_2");
    assert_eq!(fault["stages"][0]["failed"][0]["outcome"]["code"], "EXIT");
    let fault = client.fault("run", json!({"keep_going": true}));
    assert_eq!(
        (&fault["code"], &fault["error"], &fault["exit_code"]),
        (
            &json!("failed"),
            &json!("stage `copy` failed: `stages` lists the batches with their outcomes"),
            &json!(1)
        )
    );
    assert_eq!(fault["stages"][0]["status"], "partial");
    project.write("workspace/inputs/person_2.json", "{\"name\": \"Bo\"}");
    let data = client.call("run", json!({}));
    assert_eq!(data["status"], "complete");
    project.write("workspace/outputs/page.txt", "Hello nobody");
    let fault = client.fault("run", json!({}));
    assert_eq!(
        (&fault["code"], &fault["error"], &fault["exit_code"]),
        (
            &json!("altered"),
            &json!("outputs of stage `join` were modified by hand; nothing was run"),
            &json!(5)
        )
    );
    let altered = &fault["stages"][1]["altered"][0]["path"];
    assert_eq!(altered, "outputs/page.txt");
    let data = client.call("run", json!({"force": true, "targets": ["join"]}));
    assert_eq!(data["status"], "complete");
    assert_eq!(
        project.read("workspace/outputs/page.txt"),
        "Hello Ann\nHello Bo\nHello Cy"
    );
    assert_eq!(client.leave(), well());
}

#[test]
fn a_negative_verdict_is_an_error_of_its_own() {
    let project = Project::letters();
    project.edit(
        "stages/2_join.toml",
        "[inputs]",
        "verdict = \"false\"\n\n[inputs]",
    );
    let mut client = Client::of(&project);
    let fault = client.fault("run", json!({}));
    assert_eq!(
        (
            &fault["code"],
            &fault["error"],
            &fault["hint"],
            &fault["status"]
        ),
        (
            &json!("verdict"),
            &json!("stage `join` has a negative verdict"),
            &json!("`why` with the stage shows what it checked"),
            &json!("the verdict is no")
        )
    );
    assert_eq!(client.leave(), well());
}

#[test]
fn two_runs_at_once_are_one_too_many() {
    let project = gated();
    shut(&project, 2);
    let mut client = Client::of(&project);
    let first = client.begin("run", json!({}));
    client.wait_for("copy/person_1 done");
    let fault = client.fault("run", json!({}));
    assert_eq!(fault["code"], "in_use");
    assert_eq!(
        fault["hint"],
        "wait until the other call has ended, or cancel it; then call again"
    );
    let error = fault["error"].as_str().unwrap();
    assert!(
        error.starts_with("another run is in progress in this workspace: `milepost mcp (run)`"),
        "{error}"
    );
    assert!(
        error.ends_with("wait for it, or cancel the call that began it"),
        "{error}"
    );
    let status = client.call("status", json!({}));
    let running = status["stages"][0]["running"].as_array().unwrap();
    assert!(running.contains(&json!("person_2")), "{status:#}");
    let complete = client.call("check_stage_completion", json!({"stage_num": 1}));
    let missing = complete["missing"][0].as_str().unwrap();
    assert!(
        missing.contains("copy/person_2 are running, started by `milepost mcp (run)`"),
        "{complete:#}"
    );
    // Another program is refused as well.
    let other = project.output("run");
    assert_eq!(other.code, 6);
    assert!(other.err.contains("or end it by `kill"), "{}", other.err);
    open(&project, 2);
    let result = taken(client.answer(first));
    assert_eq!(result["structuredContent"]["status"], "complete");
    assert_eq!(client.leave(), well());
}

#[test]
fn parameters_and_limits_are_those_of_the_command_line() {
    let project = Project::letters();
    let mut client = Client::of(&project);
    let plan = client.call("plan", json!({"limit": 1, "set": ["greeting=Hi"]}));
    assert_eq!(plan["stages"][0]["will"].as_array().unwrap().len(), 1);
    assert_eq!(plan["stages"][0]["left"], 2);
    let data = client.call("run", json!({"set": ["greeting=Hi"], "until": "copy"}));
    assert_eq!(stages(&data), [row("copy", "complete", 3, 0)]);
    client.call("run", json!({}));
    assert_eq!(
        project.read("workspace/outputs/page.txt"),
        "Hi Ann\nHi Bo\nHi Cy"
    );
    let fault = client.fault("run", json!({"set": ["colour=red"]}));
    assert_eq!(fault["code"], "usage");
    let fault = client.fault("run", json!({"budget_usd": "much"}));
    assert_eq!(fault["code"], "arguments");
    let fault = client.fault("run", json!({"targets": ["cpoy"]}));
    assert_eq!(fault["code"], "usage");
    assert_eq!(client.leave(), well());
}

#[test]
fn arguments_of_another_type_are_taken_where_their_meaning_is_plain() {
    let project = Project::letters();
    let mut client = Client::of(&project);
    let plan = client.call(
        "plan",
        json!({"targets": "copy", "limit": "1", "jobs": 2.0, "budget_usd": 2.5, "set": "greeting=Hi"}),
    );
    assert_eq!(plan["stages"][0]["will"].as_array().unwrap().len(), 1);
    assert_eq!(plan["stages"][1]["skipped"], true);
    let data = client.call("run", json!({"targets": 1, "budget_usd": 3}));
    assert_eq!(stages(&data), [row("copy", "complete", 3, 0)]);
    let complete = client.call("check_stage_completion", json!({"stage_num": "1"}));
    assert_eq!(complete["complete"], true);
    assert_eq!(
        client.call("log", json!({"last": "2"}))["records"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    let fault = client.fault("plan", json!({"until_paid": true, "budget_usd": 1}));
    assert_eq!(
        fault["error"],
        "`budget_usd` and `until_paid` contradict each other"
    );
    assert_eq!(client.leave(), well());
}

#[test]
fn long_lists_are_cut_and_said() {
    let project = Project::letters();
    for number in 20..70 {
        project.write(
            &format!("workspace/inputs/person_{number}.json"),
            "{\"name\": \"X\"}",
        );
    }
    let mut client = Client::of(&project);
    let plan = client.call("plan", json!({}));
    assert_eq!(plan["stages"][0]["will"].as_array().unwrap().len(), 20);
    assert_eq!(
        plan["cut"],
        json!([{"at": "/stages/0/will", "shown": 20, "of": 53}])
    );
    assert_eq!(plan["whole"], "`milepost plan --json`");
    client.call("run", json!({}));
    let log = client.call("log", json!({}));
    assert_eq!(log["records"].as_array().unwrap().len(), 20);
    assert!(log["left_out"].as_u64().unwrap() > 10);
    assert_eq!(client.leave(), well());
}
