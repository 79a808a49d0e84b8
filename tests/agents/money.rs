//! What would be asked and what that costs is known before, and is what then happens.

use super::pipeline::{Served, answered, calls, project};
use crate::situations::house::House;
use serde_json::{Value, json};

/// What a plan says that a stage asks.
fn asks(house: &House, arguments: &[&str]) -> Value {
    let plan = house.plan(arguments).unwrap();
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
    let mut house = project(served.port, "well");
    // Neither needs a key.
    house.env("KEY", "");
    let ran = house.run_unplanned(&["--agent", "speller=api", "--until-paid"]);
    assert_eq!((ran.code, calls(&house)), (3, vec![]), "{}", ran.said);
    ran.says("2 calls with 5 questions");
    ran.says("an answer is taken as 100 tokens");
    assert_eq!(house.list("intermediate/batches").len(), 2);
    assert_eq!(house.list("intermediate/words").len(), 0);
    let first = asks(&house, &API);
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
    let (code, shown) = house.milepost(&[
        "plan",
        "--json",
        "--agent",
        "speller=api",
        "--show-request",
        "ask/batch_1",
    ]);
    assert_eq!(code, 0, "{shown}");
    let shown: Value = serde_json::from_str(&shown).unwrap();
    house.env("KEY", "right");
    let ran = house.run_unplanned(&API);
    assert_eq!(
        (ran.code, calls(&house)),
        (0, answered(&[4, 1])),
        "{}",
        ran.said
    );
    let records = house.records();
    let run = records.last().unwrap()["run_id"].as_str().unwrap();
    let sent = house.json(&format!("workspace/.milepost/calls/{run}/000001.request"));
    assert_eq!(shown["request"]["body"], sent);
    assert_eq!(shown["request"]["questions"], 4);
    let (code, shown) = house.milepost(&[
        "plan",
        "--agent",
        "speller=api",
        "--show-request",
        "ask/batch_1",
    ]);
    assert_eq!(
        (code, shown.trim()),
        (0, "ask/batch_1 sends nothing: every answer is kept")
    );
    assert_eq!(asks(&house, &API), Value::Null);

    // Another prompt asks all again, and what that costs is known from before.
    house.edit("prompts/spell.md", "capitals", "capital letters");
    let again = asks(&house, &API);
    assert_eq!(
        (told(&again), &again["basis"]),
        ((2, 5, 0), &json!({"measured": 2}))
    );
    // `model.py` answers with 20 tokens and says that it read 100, whatever was sent.
    assert_eq!(again["output_tokens"], 40);
    let ran = house.run_unplanned(&API);
    assert_eq!((ran.code, calls(&house).len()), (0, 4), "{}", ran.said);
    house.edit("prompts/spell.md", "capital letters", "capitals");
    let back = asks(&house, &API);
    assert_eq!((told(&back), &back["cost"]), ((0, 0, 5), &json!(0)));
    assert_eq!(house.run_unplanned(&API).code, 0);
    assert_eq!(calls(&house).len(), 4);
}

#[test]
fn another_schema_asks_again_only_what_is_not_valid_by_it() {
    let served = Served::new("well");
    let house = project(served.port, "well");
    assert_eq!(house.run(&API).code, 0);
    let schema = "schemas/word.schema.json";
    house.edit(schema, "\"string\"", "\"string\", \"pattern\": \"[0-3]$\"");
    // The records say nothing of the answers' schema: it may be that nothing is asked.
    let plan = house.plan(&API).unwrap();
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
    let house = project(served.port, "well");
    house.edit("milepost.toml", "\"gpt-5.1\"", "\"own-model\"");
    let chat = ["--agent", "speller=chat"];
    let ran = house.run_unplanned(&["--agent", "speller=chat", "--until-paid"]);
    ran.says("nobody knows for how much");
    let ran = house.run_unplanned(&["--agent", "speller=chat", "--budget-usd", "1"]);
    assert_eq!((ran.code, calls(&house)), (3, vec![]), "{}", ran.said);
    let prices =
        "date = \"2026-01-01\"\n\n[[model]]\nname = \"own-*\"\ninput = 10\noutput = 1000\n";
    house.write("prices.toml", prices);
    let known = asks(&house, &chat);
    let input = known["input_tokens"].as_u64().unwrap();
    assert_eq!(known["cost"], input * 10 + 500 * 1000);
    let ran = house.run_unplanned(&["--agent", "speller=chat", "--budget-usd", "1"]);
    assert_eq!(
        (ran.code, calls(&house)),
        (0, answered(&[4, 1])),
        "{}",
        ran.said
    );
    let spent = &house.json("workspace/stage_2_complete.json")["spent"];
    assert!(spent["cost"].as_u64().unwrap() >= 40 * 1000, "{spent}");
    // Prices change no output.
    house.write("prices.toml", prices.replace("1000", "2000"));
    assert_eq!(house.run(&chat).tried(), [] as [String; 0]);
    house.write("prices.toml", "[[model]]\nname = 1\n");
    let ran = house.run_unplanned(&chat);
    assert_eq!(ran.code, 1);
    ran.says("prices.toml");
}

#[test]
fn what_a_stage_declares_to_use_is_what_is_expected() {
    let served = Served::new("well");
    let house = project(served.port, "well");
    let declared = house.read("stages/2_ask.toml");
    let estimate = "\n[estimate]\ntokens = 5000\ninput_share = 0.6\n";
    house.write("stages/2_ask.toml", format!("{declared}{estimate}"));
    house.run_unplanned(&["--agent", "speller=api", "--until-paid"]);
    let asks = asks(&house, &API);
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
    let house = project(served.port, "well");
    let declared = house.read("milepost.toml");
    house.write(
        "milepost.toml",
        format!("{declared}\n[limits]\ntime = \"1ms\"\n"),
    );
    let ran = house.run_unplanned(&API);
    assert_eq!(
        (ran.code, calls(&house)),
        (3, answered(&[4])),
        "{}",
        ran.said
    );
    ran.says("raise `time` under [limits]");
    house.edit("milepost.toml", "1ms", "1h");
    assert_eq!(house.run_unplanned(&API).code, 0);
    assert_eq!(calls(&house), answered(&[4, 1]));
}
