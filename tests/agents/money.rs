//! What would be asked and what that costs is known before, and is what then happens.

use super::pipeline::{Served, answered, calls, speller};
use crate::support::Project;
use serde_json::{Value, json};

/// What a plan says that a stage asks.
fn asks(project: &Project, arguments: &[&str]) -> Value {
    let plan = project.plan(arguments).unwrap();
    let stages = plan["stages"].as_array().unwrap();
    let stage = stages.iter().find(|stage| stage["stage"] == "ask").unwrap();
    assert_eq!(stage["problem"], Value::Null);
    stage["asks"].clone()
}

/// Calls, questions and answers that are kept, of a plan.
fn told(asks: &Value) -> (u64, u64, u64) {
    let number = |key: &str| asks[key].as_u64().unwrap();
    (number("calls"), number("questions"), number("kept"))
}

const API: [&str; 2] = ["--agent", "speller=api"];

#[test]
fn all_that_is_free_is_done_and_the_plan_then_says_what_the_rest_costs() {
    let served = Served::new("well");
    let mut project = speller(served.port, "well");
    // Neither needs a key.
    project.env("KEY", "");
    let ran = project.run_unplanned(&["--agent", "speller=api", "--until-paid"]);
    assert_eq!((ran.code, calls(&project)), (3, vec![]), "{}", ran.output);
    ran.says("2 calls with 5 questions");
    ran.says("assuming 100 tokens per answer");
    assert_eq!(project.list("intermediate/batches").len(), 2);
    assert_eq!(project.list("intermediate/words").len(), 0);
    let first = asks(&project, &API);
    assert_eq!(told(&first), (2, 5, 0));
    assert_eq!(
        first["agents"],
        json!(["api (anthropic claude-sonnet-4-5)"])
    );
    assert_eq!(first["basis"], json!({"assumed": 100}));
    assert_eq!(first["output_tokens"], 500);
    // 3 dollars for a million tokens in, 15 out; at most a thousand of answer to each call.
    let input = first["input_tokens"].as_u64().unwrap();
    assert_eq!(first["cost"], input * 3000 + 500 * 15_000);
    assert!(
        first["reserved"].as_u64().unwrap() > 2000 * 15_000,
        "{first}"
    );

    // What was foreseen is sent, to the byte.
    let (code, shown) = project.milepost(&[
        "plan",
        "--json",
        "--agent",
        "speller=api",
        "--show-request",
        "ask/batch_1",
    ]);
    assert_eq!(code, 0, "{shown}");
    let shown: Value = serde_json::from_str(&shown).unwrap();
    project.env("KEY", "right");
    let ran = project.run_unplanned(&API);
    assert_eq!(
        (ran.code, calls(&project)),
        (0, answered(&[4, 1])),
        "{}",
        ran.output
    );
    let records = project.records();
    let run = records.last().unwrap()["run_id"].as_str().unwrap();
    let sent = project.json(&format!("workspace/.milepost/calls/{run}/000001.request"));
    assert_eq!(shown["request"]["body"], sent);
    assert_eq!(shown["request"]["questions"], 4);
    let (code, shown) = project.milepost(&[
        "plan",
        "--agent",
        "speller=api",
        "--show-request",
        "ask/batch_1",
    ]);
    assert_eq!(
        (code, shown.trim()),
        (0, "ask/batch_1 sends nothing: every answer is cached")
    );
    assert_eq!(asks(&project, &API), Value::Null);

    // Another prompt asks all again, and what that costs is known from before.
    project.edit("prompts/spell.md", "capitals", "capital letters");
    let again = asks(&project, &API);
    assert_eq!(
        (told(&again), &again["basis"]),
        ((2, 5, 0), &json!({"measured": 2}))
    );
    // `model.py` answers with 20 tokens and says that it read 100, whatever was sent.
    assert_eq!(again["output_tokens"], 40);
    let ran = project.run_unplanned(&API);
    assert_eq!((ran.code, calls(&project).len()), (0, 4), "{}", ran.output);
    project.edit("prompts/spell.md", "capital letters", "capitals");
    let back = asks(&project, &API);
    assert_eq!((told(&back), &back["cost"]), ((0, 0, 5), &json!(0)));
    assert_eq!(project.run_unplanned(&API).code, 0);
    assert_eq!(calls(&project).len(), 4);
}

#[test]
fn another_schema_asks_again_only_what_is_not_valid_by_it() {
    let served = Served::new("well");
    let project = speller(served.port, "well");
    assert_eq!(project.run(&API).code, 0);
    let schema = "schemas/word.schema.json";
    project.edit(schema, "\"string\"", "\"string\", \"pattern\": \"[0-3]$\"");
    // The records say nothing of the answers' schema: it may be that nothing is asked.
    let plan = project.plan(&API).unwrap();
    let stage = &plan["stages"][1];
    let sum = |key: &str| {
        let of = |asks: &Value| asks[key].as_u64().unwrap_or(0);
        of(&stage["asks"]) + of(&stage["may_ask"])
    };
    assert_eq!(
        (sum("calls"), sum("questions"), sum("kept")),
        (1, 1, 4),
        "{plan}"
    );
}

#[test]
fn prices_of_the_project_win() {
    let served = Served::new("well");
    let project = speller(served.port, "well");
    project.edit("milepost.toml", "\"gpt-5.1\"", "\"own-model\"");
    let chat = ["--agent", "speller=chat"];
    let ran = project.run_unplanned(&["--agent", "speller=chat", "--until-paid"]);
    ran.says("cost unknown");
    let ran = project.run_unplanned(&["--agent", "speller=chat", "--budget-usd", "1"]);
    assert_eq!((ran.code, calls(&project)), (3, vec![]), "{}", ran.output);
    let prices =
        "date = \"2026-01-01\"\n\n[[model]]\nname = \"own-*\"\ninput = 10\noutput = 1000\n";
    project.write("prices.toml", prices);
    let known = asks(&project, &chat);
    let input = known["input_tokens"].as_u64().unwrap();
    assert_eq!(known["cost"], input * 10 + 500 * 1000);
    let ran = project.run_unplanned(&["--agent", "speller=chat", "--budget-usd", "1"]);
    assert_eq!(
        (ran.code, calls(&project)),
        (0, answered(&[4, 1])),
        "{}",
        ran.output
    );
    let spent = &project.json("workspace/stage_2_complete.json")["spent"];
    assert!(spent["cost"].as_u64().unwrap() >= 40 * 1000, "{spent}");
    // Prices change no output.
    project.write("prices.toml", prices.replace("1000", "2000"));
    assert_eq!(project.run(&chat).tried(), [] as [String; 0]);
    project.write("prices.toml", "[[model]]\nname = 1\n");
    let ran = project.run_unplanned(&chat);
    assert_eq!(ran.code, 1);
    ran.says("prices.toml");
}

#[test]
fn what_a_stage_declares_to_use_is_what_is_expected() {
    let served = Served::new("well");
    let project = speller(served.port, "well");
    let declared = project.read("stages/2_ask.toml");
    let estimate = "\n[estimate]\ntokens = 5000\ninput_share = 0.6\n";
    project.write("stages/2_ask.toml", format!("{declared}{estimate}"));
    project.run_unplanned(&["--agent", "speller=api", "--until-paid"]);
    let asks = asks(&project, &API);
    assert_eq!(
        (
            &asks["input_tokens"],
            &asks["output_tokens"],
            &asks["basis"]
        ),
        (&json!(6000), &json!(4000), &json!("declared"))
    );
    assert_eq!(asks["cost"], 6000 * 3000 + 4000 * 15_000);
}

#[test]
fn the_time_of_calls_is_a_limit_too() {
    let served = Served::new("well");
    let project = speller(served.port, "well");
    let declared = project.read("milepost.toml");
    project.write(
        "milepost.toml",
        format!("{declared}\n[limits]\ntime = \"1ms\"\n"),
    );
    let ran = project.run_unplanned(&API);
    assert_eq!(
        (ran.code, calls(&project)),
        (3, answered(&[4])),
        "{}",
        ran.output
    );
    ran.says("raise `time` under [limits]");
    project.edit("milepost.toml", "1ms", "1h");
    assert_eq!(project.run_unplanned(&API).code, 0);
    assert_eq!(calls(&project), answered(&[4, 1]));
}

#[test]
fn a_failed_batch_stays_failed_when_a_run_makes_no_call() {
    let served = Served::new("well");
    let mut project = speller(served.port, "well");
    project.env("KEY", "wrong");
    assert_eq!(project.run_unplanned(&API).code, 1);
    let failed = || {
        let (code, text) = project.milepost(&["status", "--json"]);
        assert_eq!(code, 0, "{text}");
        let status: Value = serde_json::from_str(&text).unwrap();
        let failed = status["stages"][1]["failed"].as_array().unwrap().clone();
        failed
            .iter()
            .map(|batch| batch["batch"].clone())
            .collect::<Vec<_>>()
    };
    let first = failed();
    assert_eq!(first, ["batch_1"]);
    for without_calls in [
        ["--until-paid", "--keep-going"],
        ["--budget-usd", "0.000001"],
    ] {
        let ran = project.run_unplanned(&[API.as_slice(), &without_calls].concat());
        // The stage after it is blocked by a failed batch.
        assert_eq!((ran.code, calls(&project)), (1, vec![]), "{}", ran.output);
        assert_eq!(failed(), first, "{without_calls:?}");
    }
    let plan = project.plan(&["--failed"]).unwrap();
    let will = &plan["stages"][1]["will"];
    assert_eq!(
        (&will[0]["batch"], &will[1]),
        (&json!("batch_1"), &Value::Null)
    );
    project.env("KEY", "right");
    let ran = project.run_unplanned(&[API.as_slice(), &["--failed"]].concat());
    assert_eq!(
        (ran.code, calls(&project)),
        (3, answered(&[4])),
        "{}",
        ran.output
    );
    let (_, text) = project.milepost(&["status", "--json"]);
    let status: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(status["stages"][1]["failed"], json!([]));
}
