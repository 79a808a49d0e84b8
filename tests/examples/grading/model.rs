//! The example with a model behind it: what is asked, what failures leave, what it costs.

use super::{fixture, near};
use crate::agents::server::{Play, Seen, Server};
use crate::examples::claude;
use crate::support::Project;
use serde_json::json;
use std::collections::BTreeSet;

const KEY: &str = "sk-ant-test-0123456789abcdef";

pub fn says(answer: &str) -> Play {
    claude::says("claude-sonnet-4-20250514", answer, (1000, 200))
}

pub fn good(score: i64) -> String {
    json!({
        "score": score, "evidence": ["Page 1: it is there"], "strengths": ["clear"], "weaknesses": [], "suggestions": [],
        "severity": "minor"
    })
    .to_string()
}

/// What a run is told when it looks whether the key is taken, once before its first call.
pub fn taken() -> Play {
    Play::Says(200, &["content-type: application/json"], "{}".to_owned())
}

/// A server for one run whose calls are all answered so.
fn always(calls: usize, answer: &str) -> Server {
    let answers = (0..calls).map(|_| says(answer));
    Server::new(std::iter::once(taken()).chain(answers).collect())
}

/// The calls that came.
fn asked(server: &Server) -> Vec<Seen> {
    let mut seen = server.seen();
    seen.retain(|seen| seen.line == "POST /v1/messages");
    seen
}

/// The example with Claude at this address.
pub fn with_claude(server: &Server) -> Project {
    let mut project = fixture();
    project.env("CLAUDE_BASE_URL", &server.url);
    project.env("CLAUDE_API_KEY", KEY);
    project
}

const CLAUDE: [&str; 2] = ["--agent", "evaluator=claude"];

#[test]
fn a_failing_evaluator_leaves_a_placeholder_and_is_asked_again_by_the_next_run() {
    let refused =
        json!({ "type": "error", "error": { "type": "invalid_request_error", "message": "no" } });
    let mut script = vec![taken()];
    script.extend((0..15).map(|_| says(&good(80))));
    // Fenced as models do; one that is refused; and what the next run is answered.
    script.push(says(&format!("```json\n{}\n```", good(80))));
    script.push(Play::Says(
        400,
        &["content-type: application/json"],
        refused.to_string(),
    ));
    script.extend([taken(), says(&good(80))]);
    let server = Server::new(script);
    let project = with_claude(&server);

    let ran = project.run(&CLAUDE);
    assert_eq!(ran.code, 3, "{}", ran.output);
    let result = project.json("workspace/outputs/larder_result.json");
    let failed = result["failed"].as_array().unwrap();
    assert_eq!(failed.len(), 1, "{failed:?}");
    let criterion = failed[0].as_str().unwrap();
    let placeholder = project.json(&format!(
        "workspace/intermediate/evaluations/{criterion}.json"
    ));
    assert_eq!(
        (&placeholder["score"], &placeholder["severity"]),
        (&json!(null), &json!(null))
    );
    assert!(
        placeholder["error"]
            .as_str()
            .unwrap()
            .contains("agent `claude`: HTTP 400"),
        "{placeholder}"
    );
    // With one criterion missing there is no grade.
    assert_eq!(result["final_score"], json!(null));
    let reason = result["not_graded"].as_str().unwrap();
    assert_eq!(
        reason,
        "no evaluation for 1 of 17 criteria: Claude API failed: agent `claude`: HTTP 400: no"
    );
    assert_eq!(
        project.json("workspace/stage_3_complete.json")["status"],
        "partial"
    );
    let name = placeholder["criterion_name"].as_str().unwrap();
    assert_eq!(
        result["graded_by"],
        json!({
            "agent": "anthropic", "model": "claude-sonnet-4-20250514", "date": "2026-03-01",
            "fallbacks": [format!("placeholder for {name}")]
        })
    );
    assert!(
        project
            .read("workspace/outputs/larder_report.md")
            .contains(&format!("**Not evaluated:** {name}. Run again"))
    );

    let ran = project.run(&CLAUDE);
    assert_eq!(ran.code, 0, "{}", ran.output);
    assert_eq!(asked(&server).len(), 18);
    let result = project.json("workspace/outputs/larder_result.json");
    assert_eq!(
        (&result["failed"], &result["not_graded"]),
        (&json!([]), &json!(null))
    );
    // 80 * 0.95 - 20 * 0.2 * 0.2
    near(&result["final_score"], 75.2);
    for name in project.digests().keys() {
        let bytes = std::fs::read(project.at("workspace").join(name)).unwrap();
        assert!(
            !String::from_utf8_lossy(&bytes).contains(KEY),
            "the key is in {name}"
        );
    }
}

#[test]
fn what_there_is_no_money_for_is_held_and_gets_no_placeholder() {
    let server = Server::new(Vec::new());
    let project = with_claude(&server);
    for limit in ["--until-paid", "--budget-usd=0.001"] {
        let ran = project.run(&[&CLAUDE[..], &[limit]].concat());
        assert_eq!(ran.code, 3, "{}", ran.output);
        assert_eq!(asked(&server).len(), 0);
        let evaluated = project.at("workspace/intermediate/evaluations");
        assert!(!evaluated.exists() || evaluated.read_dir().unwrap().next().is_none());
        assert!(!project.exists("workspace/intermediate/scoring_result.json"));
    }
}

#[test]
fn each_criterion_is_asked_by_its_own_prompt() {
    let server = always(17, &good(80));
    let project = with_claude(&server);
    let ran = project.run(&CLAUDE);
    assert_eq!(ran.code, 0, "{}", ran.output);
    let prompts: BTreeSet<String> = asked(&server)
        .iter()
        .map(|seen| {
            let body = seen.json();
            assert_eq!(seen.header("x-api-key"), Some(KEY));
            assert_eq!(body["model"], "claude-sonnet-4-20250514");
            assert_eq!(
                (&body["max_tokens"], &body["temperature"]),
                (&json!(4096), &json!(0.0))
            );
            let text = body["messages"].to_string();
            assert!(
                text.contains("CRITICISM MULTIPLIER: 1.2x")
                    && text.contains("Respond ONLY with valid JSON"),
                "{text}"
            );
            text.split("\\n").next().unwrap().to_owned()
        })
        .collect();
    assert_eq!(prompts.len(), 17, "{prompts:#?}");
}

#[test]
fn tokens_and_cost_of_each_call_are_in_the_result() {
    let server = always(17, &good(80));
    let project = with_claude(&server);
    let ran = project.run(&CLAUDE);
    assert_eq!(ran.code, 0, "{}", ran.output);
    // 1000 / 1e6 * 3.00 + 200 / 1e6 * 15.00
    let one = project.json("workspace/intermediate/evaluations/coverage.json");
    assert_eq!(one["tokens_used"], 1200);
    assert!(
        (one["cost"].as_f64().unwrap() - 0.006).abs() < 1e-9,
        "{one}"
    );
    let summary = &project.json("workspace/stage_3_complete.json")["summary"];
    assert_eq!(
        (&summary["evaluated"], &summary["tokens_used"]),
        (&json!(17), &json!(17 * 1200))
    );
    assert_eq!(
        summary["evaluations"]["coverage"],
        json!({
            "output_path": "intermediate/evaluations/coverage.json", "tokens_used": 1200,
            "cost": one["cost"]
        })
    );
    let usage = &project.json("workspace/intermediate/scoring_result.json")["usage"];
    assert_eq!(usage["tokens"], 17 * 1200);
    assert!(
        (usage["cost_usd"].as_f64().unwrap() - 0.102).abs() < 1e-9,
        "{usage}"
    );
}

#[test]
fn answers_that_are_none_are_asked_for_three_times() {
    let retry = ["--set", "retry_failed_evaluations=true"];
    for (more, calls, requests) in [(&retry[..], 51_u8, "3 requests"), (&[], 17, "one request")] {
        let server = always(calls.into(), &good(130));
        let project = with_claude(&server);
        let ran = project.run(&[&CLAUDE[..], more].concat());
        assert_eq!(ran.code, 3, "{}", ran.output);
        assert_eq!(asked(&server).len(), usize::from(calls));
        let result = project.json("workspace/outputs/larder_result.json");
        assert_eq!(result["failed"].as_array().unwrap().len(), 17);
        let error = format!(
            "Invalid JSON response from Claude: agent `claude` gave no valid answer in {requests}"
        );
        assert_eq!(
            result["comparison_message"],
            format!("Not graded: no evaluation for 17 of 17 criteria: {error}")
        );
        let one = project.json("workspace/intermediate/evaluations/coverage.json");
        assert_eq!(one["error"], error);
        // Every answer was paid for.
        let (_, status) = project.milepost(&["status"]);
        let paid = format!("{calls} calls for ${:.4}", f64::from(calls) * 0.006);
        assert!(status.contains(&paid), "no {paid:?} in\n{status}");
    }
}

#[test]
fn a_retry_asks_only_for_failed_evaluations() {
    // One of 17 answers is none; with the parameter, the next run asks for that criterion alone.
    let mut script = vec![taken()];
    script.extend((0..16).map(|_| says(&good(80))));
    script.push(says("I would give it 80 points."));
    script.extend([taken(), says("80 of 100"), says(&good(80))]);
    let server = Server::new(script);
    let project = with_claude(&server);
    assert_eq!(project.run(&CLAUDE).code, 3);
    let ran =
        project.run_unplanned(&[&CLAUDE[..], &["--set", "retry_failed_evaluations=true"]].concat());
    assert_eq!(ran.code, 0, "{}", ran.output);
    assert_eq!(asked(&server).len(), 19);
    let result = project.json("workspace/outputs/larder_result.json");
    near(&result["final_score"], 75.2);
    // What the answer that was none cost in this run counts as well.
    assert_eq!(
        result["usage"],
        json!({ "tokens": 18 * 1200, "cost_usd": 0.108 })
    );
}

#[test]
fn a_call_that_meets_no_answer_is_tried_three_times() {
    let script = std::iter::once(taken()).chain((0..3).map(|_| Play::Closes));
    let server = Server::new(script.collect());
    let project = with_claude(&server);
    let claude = ["--agent", "evaluator=claude"];
    project.run(&["--until", "parse"]);
    let ran = project.run(&["evaluate/prd_quality", claude[0], claude[1]]);
    ran.says(
        "evaluate/prd_quality failed: Claude API failed: agent `claude`: the connection was lost",
    );
    assert_eq!(asked(&server).len(), 3, "{}", ran.output);
}
