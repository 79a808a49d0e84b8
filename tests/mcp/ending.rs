//! Calls that are cancelled, clients that leave, servers that are killed: the workspace is in order, and goes on.

use super::client::{Client, Ended, gated, open, shut, well};
use crate::support::Project;
use rustix::process::Signal;
use serde_json::{Value, json};

/// The words of the journal about how runs ended.
fn ends(project: &Project) -> Vec<String> {
    let log = project.output("log --json --last 0").out;
    let log: Value = serde_json::from_str(&log).unwrap();
    let records = log["records"].as_array().unwrap().iter();
    records
        .filter(|record| record["kind"] == "run_finished")
        .map(|record| record["data"]["status"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn a_run_that_is_cancelled_stops_as_by_ctrl_c() {
    let project = gated();
    shut(&project, 2);
    let mut client = Client::of(&project);
    let id = client.begin("run", json!({}));
    client.wait_for("copy/person_1 done");
    while client.call("status", json!({}))["stages"][0]["done"] != 1 {}
    client.notify(
        "notifications/cancelled",
        json!({"requestId": id, "reason": "another model"}),
    );
    // The server ends when every call has: what the run left is in order by then.
    assert_eq!(client.leave(), well());
    assert_eq!(ends(&project), ["interrupted"]);
    std::fs::remove_file(project.at("gate-2")).unwrap();
    let mut client = Client::of(&project);
    let data = client.call("run", json!({}));
    let copy = &data["stages"][0];
    assert_eq!((&copy["ran"], &copy["reused"]), (&json!(2), &json!(1)));
    assert_eq!(client.leave(), well());
}

#[test]
fn a_call_that_is_cancelled_leaves_the_others_alone() {
    let project = gated();
    shut(&project, 2);
    let mut client = Client::of(&project);
    let run = client.begin("run", json!({}));
    client.wait_for("copy/person_1 done");
    let wait = client.begin(
        "wait_for_subagent",
        json!({"output_file": "x.json", "timeout": 3600}),
    );
    client.wait_for("`x.json` does not exist");
    client.notify("notifications/cancelled", json!({"requestId": wait}));
    open(&project, 2);
    let answer = client.answer(run);
    assert_eq!(answer["result"]["structuredContent"]["status"], "complete");
    assert_eq!(client.leave(), well());
}

#[test]
fn a_client_that_leaves_stops_its_run() {
    let project = gated();
    shut(&project, 2);
    let mut client = Client::of(&project);
    client.begin("run", json!({}));
    client.wait_for("copy/person_1 done");
    assert_eq!(client.leave(), well());
    assert_eq!(ends(&project), ["interrupted"]);
}

#[test]
fn a_server_that_is_asked_to_end_stops_its_runs() {
    for signal in [Signal::INT, Signal::TERM] {
        let project = gated();
        shut(&project, 2);
        let mut client = Client::of(&project);
        client.begin("run", json!({}));
        client.wait_for("copy/person_1 done");
        assert_eq!(
            client.kill(signal),
            Ended {
                code: 0,
                err: "stopping: calls of agents in flight, if any, have up to 30 s to finish; run again to continue (press Ctrl-C again to exit at once)\n"
                    .to_owned(),
            }
        );
        assert_eq!(ends(&project), ["interrupted"]);
    }
}

#[test]
fn after_a_kill_another_server_continues_with_the_run() {
    let project = gated();
    shut(&project, 10);
    let mut client = Client::of(&project);
    client.begin("run", json!({}));
    client.wait_for("copy/person_2 done");
    // What is told as done is recorded a moment later.
    while client.call("status", json!({}))["stages"][0]["done"] != 2 {}
    let ended = client.kill(Signal::KILL);
    assert_eq!(ended.code, 128 + 9);
    std::fs::remove_file(project.at("gate-10")).unwrap();
    let mut client = Client::of(&project);
    let status = client.call("status", json!({}));
    assert_eq!(status["runner"], json!(null));
    let data = client.call("run", json!({}));
    let copy = &data["stages"][0];
    assert_eq!((&copy["ran"], &copy["reused"]), (&json!(1), &json!(2)));
    assert_eq!(
        project.read("workspace/outputs/page.txt"),
        "Hello Ann\nHello Bo\nHello Cy"
    );
    let verified = client.call("verify", json!({"deep": true}));
    assert_eq!(verified["ok"], true, "{verified:#}");
    assert_eq!(client.leave(), well());
}

#[test]
fn a_client_that_says_nothing_is_no_error() {
    let project = Project::letters();
    let client = Client::silent(&mut project.command(&["mcp"]));
    assert_eq!(client.leave(), well());
    let mut client = Client::silent(&mut project.command(&["mcp"]));
    client.line("{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"ping\"}");
    assert_eq!(client.leave().code, 0);
}
