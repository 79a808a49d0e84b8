//! The plan says who made it: agents, models, date, cost and fallbacks.

use super::{ESTIMATES, FINAL, example, how_it_was_made};
use crate::agents::server::{Play, Server};
use crate::examples::claude;
use serde_json::{Value, json};

fn says(answer: &Value) -> Play {
    claude::says("claude-sonnet-4-5", &answer.to_string(), (4000, 2000))
}

#[test]
fn the_plan_names_agents_models_date_cost_and_fallbacks() {
    let whole = example();
    assert_eq!(whole.run_unplanned(&["--until", "plan"]).code, 0);
    let mut answer = whole.json(ESTIMATES);
    answer.as_object_mut().unwrap().remove("session_id");
    // The first answer is no estimate, and is paid for all the same.
    let accepted = Play::Says(200, &["content-type: application/json"], "{}".to_owned());
    let server = Server::new(vec![accepted, says(&json!({})), says(&answer)]);
    let mut project = example();
    project.env("SOURCE_DATE_EPOCH", "1772355600");
    project.env("ANTHROPIC_API_KEY", "sk-ant-test-0123456789abcdef");
    let declared = project.read("milepost.toml").replace(
        "anthropic = \"claude-sonnet-4-5\"",
        &format!(
            "anthropic = \"claude-sonnet-4-5\"\nbase_url = \"{}\"",
            server.url
        ),
    );
    project.write("milepost.toml", declared);
    let until = ["--agent", "estimation=claude", "--until", "plan"];
    let ran = project.run_unplanned(&until);
    assert_eq!(ran.code, 0, "{}", ran.output);
    // A text that the first engine could not read.
    let text = "workspace/intermediate/text/midterm-notice.pdf.json";
    let mut read = project.json(text);
    read["engine"] = json!("pdftotext");
    project.write(text, read.to_string());
    let accept = [
        "accept",
        "read/midterm-notice.pdf",
        "--who",
        "test",
        "--why",
        "engine",
    ];
    let (code, said) = project.milepost(&accept);
    assert_eq!(code, 0, "{said}");
    let ran = project.run_unplanned(&["--agent", "estimation=claude"]);
    assert_eq!(ran.code, 0, "{}", ran.output);

    let made_by = json!({
        "date": "2026-03-01",
        "agents": [
            {"for": "topics", "agent": "filters/ingestion.jq", "model": null, "cost_usd": 0.0},
            {"for": "estimates", "agent": "anthropic", "model": "claude-sonnet-4-5", "cost_usd": 0.084},
            {"for": "plan", "agent": "filters/planner.jq", "model": null, "cost_usd": 0.0},
        ],
        "cost_usd": 0.084,
        "fallbacks": ["text of midterm-notice.pdf by pdftotext"],
    });
    assert_eq!(project.json(FINAL)["made_by"], made_by);
    assert_eq!(
        how_it_was_made(&project.read("workspace/outputs/study_plan.md")),
        "On 2026-03-01: topics by filters/ingestion.jq (no model), estimates by anthropic (model claude-sonnet-4-5), plan by filters/planner.jq (no model). Review: `approved_plan`, after 0 revisions. Cost: 0.0840 US dollars. Fallbacks: text of midterm-notice.pdf by pdftotext.\n"
    );
}

#[test]
fn a_plan_of_models_has_a_range_of_costs_before_it_runs() {
    let project = example();
    assert_eq!(project.run_unplanned(&["--until", "dispatch"]).code, 0);
    let agents = ["--agent", "estimation=claude", "--agent", "planner=claude"];
    let (code, said) = project.milepost(&[&["plan"], &agents[..]].concat());
    assert_eq!(code, 0, "{said}");
    let cost = "about 7,000 tokens in and 7,000 out in the first iteration, about $0.1260 to $0.5040 for 1 to 4 iterations;";
    assert!(
        said.contains(cost) && said.contains("from [estimate]"),
        "{said}"
    );
}
