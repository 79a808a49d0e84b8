//! The example with a model behind its critic: what it sees, what failures leave.

use super::example;
use crate::agents::server::{Play, Server};
use crate::examples::claude::{self, JSON, takes_the_key};
use crate::support::Project;
use crate::support::required::require;
use base64::Engine as _;
use serde_json::json;

fn says(answer: &str) -> Play {
    claude::says("claude-sonnet-4-5", answer, (2000, 100))
}

/// A run of a lesson of one card, whose critic is the model.
const CRITIC: [&str; 4] = [
    "--set",
    "lesson=lesson.json",
    "--agent",
    "visual_critic=claude",
];

/// Puts Claude at the address of a server.
fn with_critic(project: &mut Project, model: &Server) {
    project.env("ANTHROPIC_API_KEY", "a-key-of-nobody");
    project.edit(
        "milepost.toml",
        "anthropic = \"claude-sonnet-4-5\"",
        &format!(
            "anthropic = \"claude-sonnet-4-5\"\nbase_url = \"{}\"",
            model.url
        ),
    );
    // A short answer is not streamed.
    project.edit("milepost.toml", "max_tokens = 8192", "max_tokens = 2048");
    project.write(
        "lesson.json",
        r#"{"lessonTemplateId": "l", "courseId": "c", "sow_order": 1, "cards": [
            {"id": "a", "title": "Fence", "explainer": "Triangle KLM has KL = 5 km, LM = 6 km and KM = 7 km."}]}"#,
    );
}

/// A model as critic gets the picture itself; who made the diagram, and what it cost, is in the result.
#[test]
fn a_vision_model_sees_the_picture() {
    let mut project = require!(example());
    let critique = json!({"clarity": 1, "accuracy": 1, "pedagogy": 0.9, "aesthetics": 1, "score": 0.93, "feedback": "good"});
    let model = Server::new(vec![takes_the_key(), says(&critique.to_string())]);
    with_critic(&mut project, &model);
    let ran = project.run_unplanned(&CRITIC);
    assert_eq!(ran.code, 0, "{}", ran.output);
    let seen = model.seen();
    assert_eq!(seen.len(), 2);
    let request = seen[1].json();
    let parts = request["messages"][0]["content"].as_array().unwrap();
    let image = parts.iter().find(|part| part["type"] == "image").unwrap();
    let png = std::fs::read(project.at("workspace/diagrams/a_image.png")).unwrap();
    let png = base64::engine::general_purpose::STANDARD.encode(png);
    assert_eq!(
        image["source"],
        json!({"type": "base64", "media_type": "image/png", "data": png})
    );
    let prompt = parts.iter().find(|part| part["type"] == "text").unwrap();
    let prompt = prompt["text"].as_str().unwrap();
    for text in [
        "\"boundingbox\"",
        "This is iteration 1 of 3",
        "Earlier critiques:\nnone",
    ] {
        assert!(prompt.contains(text), "{text}\n{prompt}");
    }
    let made_by = &project.json("workspace/results/a.json")["made_by"];
    assert_eq!(
        json!([made_by["author"], made_by["critic"], made_by["cost_usd"]]),
        // 2,000 tokens at $3 and 100 at $15 for a million.
        json!([
            "jq filters/author.jq",
            "anthropic claude-sonnet-4-5",
            0.0075
        ])
    );
}

/// A critic that is late, wrong, cut off or refuses makes no diagram; when it answers, the next run does.
#[test]
fn a_critic_that_does_not_answer_passes_no_diagram() {
    let mut project = require!(example());
    let error =
        json!({"type": "error", "error": {"type": "invalid_request_error", "message": "no"}});
    let failures = [
        (Play::Stalls, "TIMEOUT: agent `claude`"),
        (
            says("It looks very good to me."),
            "INVALID_STRUCTURE: agent `claude` gave no valid answer in one request",
        ),
        (
            Play::Cuts(4000, "{\"id\": \"msg_1\", \"conte".to_owned()),
            "CONNECTION_ERROR: agent `claude`",
        ),
        (
            Play::Says(400, JSON, error.to_string()),
            "HTTP_ERROR: agent `claude`: HTTP 400: no",
        ),
    ];
    let (mut script, mut names) = (Vec::new(), Vec::new());
    for (play, name) in failures {
        script.extend([takes_the_key(), play]);
        names.push(name);
    }
    let critique = json!({"clarity": 1, "accuracy": 1, "pedagogy": 0.9, "aesthetics": 1, "score": 0.93, "feedback": "good"});
    script.extend([takes_the_key(), says(&critique.to_string())]);
    let model = Server::new(script);
    with_critic(&mut project, &model);
    project.edit(
        "milepost.toml",
        "max_tokens = 2048",
        "max_tokens = 2048\ntries = 1",
    );
    project.edit(
        "stages/3_author.toml",
        "attach = [\"image\"]",
        "timeout = \"2s\"\nattempts = 1\nattach = [\"image\"]",
    );
    for name in names {
        let ran = project.run_unplanned(&CRITIC);
        assert_eq!(ran.code, 1, "{}", ran.output);
        ran.says(&format!("author/a failed: {name}"));
        assert_eq!(project.list("diagrams"), [""; 0], "{name}");
        assert_eq!(project.list("results"), [""; 0], "{name}");
    }
    let ran = project.run_unplanned(&CRITIC);
    assert_eq!(ran.code, 0, "{}", ran.output);
    assert_eq!(
        project.json("workspace/results/a.json")["visual_critique_score"],
        0.93
    );
}
