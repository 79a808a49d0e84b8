//! An agent outside that drives the main pipeline over standard input and output, and one that lies.

use super::client::{Client, well};
use crate::external::client::{Site, run_as};
use milepost_agents::rules::Rules;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::process::Command;

/// The server for the main pipeline, whose classifier is whoever asks.
fn server(site: &Site) -> Client {
    let mut command = Command::new(env!("CARGO_BIN_EXE_milepost"));
    command
        .args(["mcp", "--agent", "classifier=outside"])
        .current_dir(site.at(""));
    Client::start(&mut command)
}

/// The honest answers to what was leased.
fn answers(site: &Site, leased: &Value) -> Vec<Value> {
    let rules = Rules::parse("rules/elements.toml", &site.read("rules/elements.toml")).unwrap();
    let text = std::fs::read_to_string(leased["input_file"].as_str().unwrap()).unwrap();
    let asked: Vec<Value> = serde_json::from_str(&text).unwrap();
    let answer = |asked: &Value| {
        let mut answer = rules.answer(&asked["question"]);
        answer["id"] = asked["id"].clone();
        answer
    };
    asked.iter().map(answer).collect()
}

/// Answers batches until none is left, at most so many.
fn work(site: &Site, client: &mut Client, most: usize) -> usize {
    for done in 0..most {
        let next = client.call("next_batch", json!({"stage": "classify"}));
        let leased = next["leased"].clone();
        if leased.is_null() {
            return done;
        }
        let text = json!(answers(site, &leased)).to_string();
        std::fs::write(leased["output_file"].as_str().unwrap(), text).unwrap();
        let taken = client.call("submit_batch", json!({"lease": leased["lease"]}));
        assert_eq!(taken["accepted"], true, "{taken:#}");
    }
    most
}

#[test]
fn an_agent_drives_the_main_pipeline_is_killed_and_another_finishes_it() {
    let rules = Site::new();
    run_as(&rules.with_rules(), &[]);
    let site = Site::new();
    let mut client = server(&site);
    // The rules of the workflow hold whatever a client asks for.
    let early = client.fault("next_batch", json!({"stage": "classify"}));
    assert_eq!(early["code"], "not_complete", "{early:#}");
    let early = client.fault("run", json!({"targets": ["generate"]}));
    assert_eq!(early["code"], "not_complete", "{early:#}");
    for (number, stage) in [(1, "parse"), (2, "batch")] {
        let before = client.call("check_stage_completion", json!({"stage_num": number}));
        assert_eq!(before["complete"], false);
        client.call("run", json!({"targets": [stage]}));
        let after = client.call("check_stage_completion", json!({"stage_num": number}));
        assert_eq!(after["complete"], true, "{after:#}");
    }
    assert_eq!(work(&site, &mut client, 2), 2);
    let lost = client.call("next_batch", json!({}))["leased"].clone();
    assert_eq!(client.kill(Signal::KILL).code, 128 + 9);

    let mut client = server(&site);
    let given = client.call("release_batch", json!({"lease": lost["lease"]}));
    assert_eq!(given["released"], true);
    let done = client.call("check_stage_completion", json!({"stage_num": 3}));
    assert_eq!(done["complete"], false);
    let join = json!({
        "batch_dir": "intermediate/classified",
        "output_file": "intermediate/classified_all.json",
    });
    let early = client.fault("aggregate_batch_results", join.clone());
    assert_eq!(early["code"], "not_complete", "{early:#}");
    assert!(work(&site, &mut client, 100) > 1);
    let file = "intermediate/classified/batch_1_classified.json";
    let there = client.call(
        "wait_for_subagent",
        json!({"output_file": file, "timeout": 10}),
    );
    assert_eq!(
        (&there["recorded"], &there["stage"]),
        (&json!(true), &json!("classify"))
    );
    let joined = client.call("aggregate_batch_results", join);
    assert_eq!(
        (&joined["element_count"], &joined["stage"]),
        (&json!(300), &json!("generate"))
    );
    let ended = client.call("run", json!({}));
    assert_eq!(ended["status"], "complete");
    for number in 1..=4 {
        let found = client.call("check_stage_completion", json!({"stage_num": number}));
        assert_eq!(found["complete"], true, "{found:#}");
    }
    assert_eq!(client.leave(), well());
    for path in [
        "workspace/intermediate/classified_all.json",
        "workspace/intermediate/report.json",
    ] {
        assert!(site.bytes(path) == rules.bytes(path), "{path} differs");
    }
}

#[test]
fn an_agent_that_lies_is_refused_every_time_with_what_is_wrong() {
    let site = Site::new();
    let mut client = server(&site);
    client.call("run", json!({}));
    let leased = client.call("next_batch", json!({}))["leased"].clone();
    let lease = leased["lease"].clone();
    let honest = answers(&site, &leased);
    let mut lies: Vec<(&str, Vec<Value>)> = Vec::new();
    let mut dropped = honest.clone();
    dropped.remove(0);
    lies.push(("missing", dropped));
    let mut invented = honest.clone();
    let mut more = honest[0].clone();
    more["id"] = "q999".into();
    invented.push(more);
    lies.push(("unknown_id", invented));
    let mut doubled = honest.clone();
    doubled.push(honest[0].clone());
    lies.push(("doubled", doubled));
    let mut renamed = honest.clone();
    let confidence = renamed[0]
        .as_object_mut()
        .unwrap()
        .shift_remove("confidence");
    renamed[0]["sureness"] = confidence.unwrap();
    lies.push(("schema", renamed));
    for (code, lie) in lies {
        let fault = client.fault("submit_batch", json!({"lease": lease, "answer": lie}));
        assert_eq!(fault["code"], "invalid", "{code}: {fault:#}");
        let violations = fault["violations"].as_array().unwrap();
        let found = violations
            .iter()
            .find(|violation| violation["code"] == code);
        assert!(found.is_some(), "{code}: {fault:#}");
    }
    // Written elsewhere, it does not exist.
    std::fs::write(site.at("elsewhere.json"), json!(honest).to_string()).unwrap();
    let fault = client.fault("submit_batch", json!({"lease": "nobody's"}));
    assert_eq!(fault["code"], "unknown_lease");
    let taken = client.call("submit_batch", json!({"lease": lease, "answer": honest}));
    assert_eq!(taken["accepted"], true);
    let fault = client.fault("submit_batch", json!({"lease": lease, "answer": honest}));
    assert_eq!(fault["code"], "already_submitted");
    assert_eq!(client.leave(), well());
}

#[test]
fn a_client_sees_what_waits_for_approval_and_cannot_approve_it() {
    let site = Site::new();
    let declared = site.read("stages/3_classify.toml") + "\n[approve]\nby = \"reviewer\"\n";
    site.write("stages/3_classify.toml", declared);
    let mut client = server(&site);
    let ran = client.call("run", json!({}));
    let approval = ran["stages"][2]["approval"].clone();
    assert_eq!(
        (&ran["success"], &ran["status"]),
        (&json!(false), &json!("held"))
    );
    assert_eq!(approval["by"], "reviewer");
    assert!(approval["batches"].as_u64() > Some(1), "{approval}");
    let planned = client.call("plan", json!({}));
    assert_eq!(planned["stages"][2]["approval"], approval);
    let status = client.call("status", json!({}));
    assert_eq!(status["stages"][2]["due"]["approval"], approval);
    let next = client.call("next_batch", json!({"stage": "classify"}));
    let nothing = &next["nothing"];
    assert_eq!(
        (&nothing["reason"], &nothing["approval"]),
        (&json!("approval"), &approval)
    );
    assert_eq!(
        nothing["hint"],
        "a person decides: `milepost approve classify --why TEXT`; ask again then"
    );
    let refused = client.ask("tools/call", json!({"name": "approve", "arguments": {}}));
    assert_eq!(refused["error"]["code"], -32602, "{refused:#}");
    client.leave();
}
