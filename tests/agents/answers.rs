//! What counts as an answer to a whole prompt: reasoning and prose around it do not, and what was written is kept.

use super::server::{Play, Server};
use crate::support::Project;
use serde_json::{Value, json};

/// A project that asks one question of a server, in this form of answer.
fn fixture(url: &str, answer: &str, schema: &str) -> Project {
    let ending = if answer == "text" { "txt" } else { "json" };
    let mut project = Project::new(&[
        (
            "milepost.toml",
            &format!(
                "name = \"asks\"\n[agents.chat]\nopenai = \"m\"\nbase_url = \"{url}/v1\"\napi_key_env = \"KEY\"\nmax_tokens = 100\n"
            ),
        ),
        (
            "stages/1_ask.toml",
            &format!(
                "[step]\nagent = \"chat\"\nprompt = \"prompts/ask.md\"\nanswer = \"{answer}\"\n{schema}\nattempts = 2\n\
                 [outputs]\no = {{ path = \"o.{ending}\", schema = false }}\n"
            ),
        ),
        ("prompts/ask.md", "How many points?\n"),
        ("schemas/any.json", "{\"type\": \"object\"}"),
        (
            "schemas/points.json",
            "{\"type\": \"object\", \"required\": [\"points\"], \"properties\": {\"points\": {\"type\": \"integer\"}}}",
        ),
    ]);
    project.env("KEY", "k");
    project
}

/// A server that says this to every request, the probe before a run as well.
fn saying(text: &str) -> Server {
    Server::new((0..20).map(|_| says(text)).collect())
}

/// How many prompts a server got.
fn asked(server: &Server) -> usize {
    let seen = server.seen();
    seen.iter()
        .filter(|seen| seen.line.starts_with("POST"))
        .count()
}

fn says(text: &str) -> Play {
    let reply = json!({
        "model": "m", "usage": {"prompt_tokens": 1, "completion_tokens": 1},
        "choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
    });
    Play::Says(200, &["content-type: application/json"], reply.to_string())
}

/// The answer that a step makes of what a model says twice, and how many requests that took.
fn answer(answer: &str, schema: &str, text: &str) -> (Option<Value>, usize) {
    let server = saying(text);
    let project = fixture(&server.url, answer, schema);
    let ran = project.run(&[]);
    let made = match (ran.code, answer) {
        (0, "text") => Some(Value::from(project.read("workspace/o.txt"))),
        (0, _) => Some(project.json("workspace/o.json")),
        _ => None,
    };
    (made, asked(&server))
}

#[test]
fn what_is_no_answer_is_asked_again_and_fails() {
    let schema = "schema = \"schemas/points.json\"";
    for (form, schema, text) in [
        ("text", "", ""),
        ("text", "", " \n"),
        ("text", "", "<think>yes</think>\n"),
        (
            "json",
            schema,
            "<think>maybe {\"points\": 0}, no</think>I cannot tell.",
        ),
        (
            "json",
            schema,
            "<think>```json\n{\"points\": 0}\n``` is too low",
        ),
        (
            "json",
            schema,
            "{\"points\": 0} is wrong</think> I cannot tell.",
        ),
        ("json", schema, "I cannot do that. {\"error\": \"policy\"}"),
        (
            "json",
            "schema = \"schemas/any.json\"",
            "I cannot do that.\n```json\n{\"error\": \"policy\", \"code\": 3}\n```",
        ),
        (
            "json",
            "",
            "I cannot tell. The format would be\n```json\n{\"points\": 0}\n```",
        ),
        (
            "json",
            schema,
            "{\"points\": 0} or\n```json\n{\"points\": 1}\n```",
        ),
        (
            "json",
            schema,
            "<|channel|>analysis<|message|>{\"points\": 0}?<|end|><|start|>assistant<|channel|>final<|message|>I cannot tell.",
        ),
        (
            "json",
            schema,
            "◁think▷{\"points\": 0}?◁/think▷I cannot tell.",
        ),
        ("tap-yaml", "", "---\nscore: 1\n---\nor\n---\nscore: 2\n---"),
        ("json", "", "The format would be {\"points\": 0}."),
        ("json", schema, "The format would be {\"score\": 0}."),
        ("json", schema, "{\"points\": 1} or {\"points\": 2}"),
    ] {
        assert_eq!(answer(form, schema, text), (None, 2), "{text}");
    }
}

#[test]
fn an_answer_that_ended_early_is_not_kept() {
    let reply = |choice: Value| {
        let message = json!({"role": "assistant", "content": "7 po"});
        let mut choice = choice;
        choice["message"] = message;
        let reply = json!({"model": "m", "usage": {"prompt_tokens": 1, "completion_tokens": 1}, "choices": [choice]});
        Play::Says(200, &["content-type: application/json"], reply.to_string())
    };
    for (choice, why) in [
        (
            json!({"finish_reason": "abort"}),
            "the answer ended early: `abort`",
        ),
        (
            json!({"finish_reason": null}),
            "the answer ended early: `null`",
        ),
        (
            json!({"finish_reason": "stop", "error": {"message": "the engine died", "code": 503}}),
            "the engine died",
        ),
    ] {
        let server = Server::answering(move |_| reply(choice.clone()));
        let project = fixture(&server.url, "text", "");
        let ran = project.run(&[]);
        assert_eq!(ran.code, 1, "{why}: {}", ran.output);
        ran.says(why);
        assert!(!project.exists("workspace/o.txt"), "{why}");
        let sent = asked(&server);
        project.run(&[]).says(why);
        assert!(asked(&server) > sent, "{why}");
    }
    // Servers with words of their own for the end, and without any.
    for choice in [json!({"finish_reason": "eos_token"}), json!({})] {
        let server = Server::answering(move |_| reply(choice.clone()));
        let project = fixture(&server.url, "text", "");
        project.run(&[]).expect(0, &["ask"]);
        assert_eq!(project.read("workspace/o.txt"), "7 po");
    }
}

#[test]
fn an_answer_behind_reasoning_or_inside_prose_is_read() {
    let schema = "schema = \"schemas/points.json\"";
    for (form, schema, text, expected) in [
        (
            "json",
            schema,
            "<think>maybe {\"points\": 0}</think>{\"points\": 7}",
            json!({"points": 7}),
        ),
        (
            "json",
            "",
            "{\"points\": 0}?</think>\n```json\n{\"points\": 7}\n```",
            json!({"points": 7}),
        ),
        (
            "json",
            schema,
            "It is {\"points\": 7}.",
            json!({"points": 7}),
        ),
        (
            "tap-yaml",
            "",
            "<think>---\nscore: 1\n---</think>---\nscore: 9 # of 10\n---",
            json!({"score": 9}),
        ),
        ("text", "", "<think>no</think>\n\nyes\n", json!("yes\n")),
        ("text", "", "\n yes", json!("\n yes")),
        (
            "text",
            "",
            "<|begin_of_thought|>no<|end_of_thought|>\n<|begin_of_solution|>yes<|end_of_solution|>",
            json!("yes"),
        ),
    ] {
        assert_eq!(answer(form, schema, text), (Some(expected), 1), "{text}");
    }
    // Prose around an answer is no error, and no secret.
    for text in [
        "It is {\"points\": 7}.",
        "It is\n```json\n{\"points\": 7}\n```",
    ] {
        let server = saying(text);
        let project = fixture(&server.url, "json", schema);
        let ran = project.run(&[]);
        assert_eq!(project.json("workspace/o.json"), json!({"points": 7}));
        ran.says("the JSON was found inside other text");
    }
}

#[test]
fn a_kept_answer_is_read_in_the_form_that_is_declared_now() {
    let server = saying("{\"points\": 7}");
    let project = fixture(&server.url, "text", "");
    project.run(&[]).expect(0, &["ask"]);
    assert_eq!(project.read("workspace/o.txt"), "{\"points\": 7}");
    for (from, to, from_file, to_file, content) in [
        (
            "\"text\"",
            "\"json\"",
            "o.txt",
            "o.json",
            "{\n  \"points\": 7\n}\n",
        ),
        ("\"json\"", "\"text\"", "o.json", "o.txt", "{\"points\": 7}"),
    ] {
        project.edit("stages/1_ask.toml", from, to);
        project.edit("stages/1_ask.toml", from_file, to_file);
        project.run(&[]).expect(0, &["ask"]);
        assert_eq!(project.read(&format!("workspace/{to_file}")), content);
    }
    assert_eq!(asked(&server), 1);
}
