//! The calls that a plan announces, held against those that a first run of each example makes, with scripted agents.

use super::claude::{self, JSON};
use crate::agents::server::{Play, Seen, Server};
use crate::support::Project;
use crate::support::required::{program, require};
use serde_json::json;
use std::path::Path;

/// Runs the stages one after another as their plans come to know what they ask. Returns how many calls each stage made that asked.
#[track_caller]
fn check(project: &Project, arguments: &[&str]) -> Vec<(String, u64)> {
    let mut made = Vec::new();
    loop {
        let plan = project.plan(arguments).unwrap();
        let stages = plan["stages"].as_array().unwrap().iter();
        let mut open = stages.filter(|stage| !stage["will"].as_array().unwrap().is_empty());
        let Some(stage) = open.next() else {
            return made;
        };
        let (name, asks) = (stage["stage"].as_str().unwrap(), &stage["asks"]);
        let ran = project.run_unplanned(&[&[name][..], arguments].concat());
        assert_eq!(ran.code, 0, "{}", ran.output);
        let calls = ran.data("called").count() as u64;
        if asks.is_null() {
            assert_eq!(calls, 0, "{}", ran.output);
            continue;
        }
        assert_eq!(asks["unknown"], 0, "{asks:#}");
        let (least, most) = (asks["calls"].as_u64().unwrap(), &asks["most_calls"]);
        assert!(least <= calls, "{calls}: {asks:#}");
        assert!(
            most.as_u64().is_none_or(|most| calls <= most),
            "{calls}: {asks:#}"
        );
        let iterations = ran.data("round_judged").count();
        let batches = stage["will"].as_array().unwrap().len();
        if asks["more_calls"] == false && iterations <= batches {
            assert_eq!(least, calls, "{asks:#}");
        }
        made.push((name.to_owned(), calls));
    }
}

/// A model that answers each request by its text.
fn model(answer: impl Fn(&str) -> String + Send + Sync + 'static) -> Server {
    Server::answering(move |seen: &Seen| {
        if seen.line.starts_with("GET") {
            return Play::Says(200, JSON, "{}".to_owned());
        }
        let text = String::from_utf8_lossy(&seen.body);
        claude::says("claude-sonnet-4-5", &answer(&text), (1000, 100))
    })
}

/// An example whose agent `claude` is at this address.
fn with_claude(example: &str, server: &Server) -> Project {
    let mut project = Project::copy_of(example);
    project.env("ANTHROPIC_API_KEY", "a-key-of-nobody");
    project.edit(
        "milepost.toml",
        "anthropic = \"claude-sonnet-4-5\"",
        &format!(
            "anthropic = \"claude-sonnet-4-5\"\nbase_url = \"{}\"",
            server.url
        ),
    );
    project
}

fn calls(expected: &[(&str, u64)]) -> Vec<(String, u64)> {
    let expected = expected.iter();
    expected
        .map(|(stage, calls)| ((*stage).to_owned(), *calls))
        .collect()
}

#[test]
fn grading_announces_its_calls() {
    let evaluation = json!({
        "score": 80, "evidence": ["Page 1: it is there"], "strengths": ["clear"], "weaknesses": [], "suggestions": [],
        "severity": "minor"
    });
    let server = model(move |_| evaluation.to_string());
    let mut project = Project::copy_of("examples/grading");
    project.env("CLAUDE_BASE_URL", &server.url);
    project.env("CLAUDE_API_KEY", "a-key-of-nobody");
    let made = check(&project, &["--agent", "evaluator=claude"]);
    assert_eq!(made, calls(&[("evaluate", 17)]));
}

#[test]
fn prompt_tests_announce_their_calls() {
    let project = Project::copy_of("examples/prompt-tests");
    let agent = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/examples/fake_agent.py");
    let folder = project.at("calls");
    std::fs::create_dir(&folder).unwrap();
    let command = json!(["python3", agent, "text", folder]);
    project.edit(
        "milepost.toml",
        "[agents.claude]",
        &format!("[agents.fake]\ncli = {command}\n\n[agents.claude]"),
    );
    let made = check(&project, &["--agent", "fake", "--set", "runs=2"]);
    // The answer of each run, and a judge for each of five assertions.
    assert_eq!(made, calls(&[("extract", 1), ("test", 2 * 6)]));
}

/// The estimates and the plan are two calls of an iteration, whose number the answers decide.
#[test]
fn a_study_plan_announces_the_calls_of_an_iteration() {
    let free = Project::copy_of("examples/study-plan");
    assert_eq!(free.run_unplanned(&[]).code, 0);
    let made = |path: &str| free.json(&format!("workspace/intermediate/{path}"));
    let mut estimates = made("handoffs/4_estimation_to_coordinator.json");
    estimates.as_object_mut().unwrap().remove("session_id");
    let rows = json!({ "rows": made("handoffs/6_planner_to_coordinator.json")["plan_rows"] });
    let server = model(move |text| {
        let answer = if text.contains("What an estimation agent answers") {
            &estimates
        } else {
            &rows
        };
        answer.to_string()
    });
    let project = with_claude("examples/study-plan", &server);
    let agents = ["--agent", "estimation=claude", "--agent", "planner=claude"];
    let made = check(&project, &agents);
    let [(stage, calls)] = made.as_slice() else {
        panic!("{made:?}")
    };
    assert!(stage == "plan" && *calls >= 2, "{made:?}");
}

#[test]
fn diagrams_announce_the_calls_of_an_iteration() {
    require!(program("node", &["--version"]));
    let diagram = json!({ "diagram": {
        "board": { "boundingbox": [-1, 5, 5, -1] },
        "elements": [{ "type": "point", "parents": [1, 1] }]
    } });
    let critique = json!({
        "clarity": 1, "accuracy": 1, "pedagogy": 0.9, "aesthetics": 1, "score": 0.93, "feedback": "good"
    });
    let server = model(move |text| {
        let answer = if text.contains("A JSXGraph diagram") {
            &diagram
        } else {
            &critique
        };
        answer.to_string()
    });
    let mut project = with_claude("examples/diagrams", &server);
    project.edit("milepost.toml", "max_tokens = 8192", "max_tokens = 2048");
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    project.env(
        "DIAGRAM_SCREENSHOT_URL",
        &format!("http://127.0.0.1:{port}"),
    );
    project.env("CHROMIUM", "/nowhere/chromium");
    let agents = [
        "--agent",
        "diagram_author=claude",
        "--agent",
        "visual_critic=claude",
    ];
    let made = check(&project, &agents);
    // Five cards, each with an author and a critic.
    assert_eq!(made, calls(&[("author", 10)]));
}
