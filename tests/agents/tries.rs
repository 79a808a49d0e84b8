//! What is tried again and what is final, and what becomes of the parts of an answer that are not valid.

use super::pipeline::{answered, calls, made, speller, words};
use super::server::{Play, Server};
use crate::support::Project;
use serde_json::{Value, json};

/// What Anthropic says with this answer.
fn says(answer: &Value) -> Play {
    let message = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5",
        "content": [{ "type": "text", "text": answer.to_string() }], "stop_reason": "end_turn",
        "usage": { "input_tokens": 10, "output_tokens": 20 }
    });
    Play::Says(
        200,
        &["content-type: application/json"],
        message.to_string(),
    )
}

fn refuses(status: u16, headers: &'static [&'static str]) -> Play {
    let error =
        json!({ "type": "error", "error": { "type": "conflict_error", "message": "not now" } });
    Play::Says(status, headers, error.to_string())
}

/// The project of words with its model at this server. The key is taken once before the first call.
fn at(script: Vec<Play>) -> (Project, Server) {
    let taken = Play::Says(200, &[], r#"{"data":[]}"#.to_owned());
    let server = Server::new(std::iter::once(taken).chain(script).collect());
    let port = server.url.rsplit(':').next().unwrap().parse().unwrap();
    let project = speller(port, "well");
    project.edit("milepost.toml", "size = 4", "size = 10");
    (project, server)
}

/// Valid answers to the first questions of the only batch.
fn valid(count: usize) -> Vec<Value> {
    let one = |n: usize| json!({ "id": format!("q{}", n + 1), "word": format!("NAME {n}") });
    (0..count).map(one).collect()
}

fn events<'a>(records: &'a [Value], kind: &str) -> Vec<&'a Value> {
    let of_kind = records.iter().filter(|record| record["kind"] == kind);
    of_kind.map(|record| &record["data"]).collect()
}

/// The prompts of the requests that a model got.
fn prompts(server: &Server) -> Vec<String> {
    let seen = server.seen().into_iter();
    let posts = seen.filter(|seen| seen.line == "POST /v1/messages");
    posts
        .map(|seen| {
            let body = seen.json();
            format!("{}{}", body["system"], body["messages"])
        })
        .collect()
}

#[test]
fn a_computed_failure_is_final_at_once() {
    let computes = |step: &str| {
        let stage = format!(
            "[step]\n{step}\nattempts = 3\n[outputs]\nmade = {{ path = \"outputs/made.json\", schema = false }}\n"
        );
        Project::new(&[
            (
                "milepost.toml",
                "name = \"computes\"\n[agents.answerer]\njq = 'error(\"no\")'\n",
            ),
            ("prompts/ask.md", "Ask\n"),
            ("templates/broken.md", "{{ params.none.none }}\n"),
            ("stages/1_compute.toml", &stage),
        ])
    };
    let project = speller(1, "well");
    project.edit("milepost.toml", "(.name | ascii_upcase)", "1");
    let agent = "agent = \"answerer\"\nprompt = \"prompts/ask.md\"";
    let result = computes(&format!("{agent}\nresult = 'error(\"no\")'"));
    result.edit("milepost.toml", "error(\"no\")", "{a: 1}");
    for (project, stage) in [
        (project, "ask"),
        (computes(agent), "compute"),
        (result, "compute"),
        (computes("jq = 'error(\"no\")'"), "compute"),
    ] {
        let ran = project.run(&[]);
        assert_eq!(ran.code, 1, "{}", ran.output);
        let failed = events(&ran.records, "batch_failed");
        assert_eq!(failed[0]["stage"], stage, "{}", ran.output);
        assert_eq!(events(&ran.records, "attempt_failed"), [&Value::Null; 0]);
    }
}

#[test]
fn a_conflict_is_tried_again_by_models_and_services() {
    let (project, server) = at(vec![refuses(409, &[]), says(&json!(valid(5)))]);
    let ran = project.run(&["--agent", "speller=api"]);
    assert_eq!((ran.code, made(&project)), (0, words(10)), "{}", ran.output);
    assert_eq!(prompts(&server).len(), 2);

    let ok = Play::Says(
        200,
        &["content-type: application/json"],
        "{\"ok\": true}".to_owned(),
    );
    let server = Server::new(vec![refuses(409, &[]), ok]);
    let mut project = Project::new(&[
        (
            "milepost.toml",
            "name = \"calls\"\n[env]\nSERVICE = \"http://localhost:1\"\n",
        ),
        (
            "stages/1_call.toml",
            "[step]\nhttp = \"{{ env.SERVICE }}/a\"\n[outputs]\nmade = { path = \"outputs/made.json\", schema = false }\n",
        ),
    ]);
    project.env("SERVICE", &server.url);
    let ran = project.run(&[]);
    assert_eq!((ran.code, server.seen().len()), (0, 2), "{}", ran.output);
}

#[test]
fn the_kept_answers_of_a_batch_that_failed_are_not_paid_again() {
    for failing in [
        vec![refuses(400, &[])],
        vec![says(&json!([])), says(&json!([]))],
    ] {
        let taken = Play::Says(200, &[], r#"{"data":[]}"#.to_owned());
        let rest = says(&json!(valid(5)[3..]));
        let first = std::iter::once(says(&json!(valid(3)))).chain(failing);
        let (project, server) = at(first.chain([taken, rest]).collect());
        let ran = project.run_unplanned(&["--agent", "speller=api"]);
        assert_eq!(ran.code, 1, "{}", ran.output);
        let paid = prompts(&server).len();
        let ran = project.run(&["--agent", "speller=api", "--failed"]);
        // Another stage reads from it, and did not fail.
        assert_eq!(ran.code, 3, "{}", ran.output);
        let prompts = prompts(&server);
        assert_eq!(prompts.len(), paid + 1);
        for (name, is_asked) in [("name 2", false), ("name 3", true), ("name 4", true)] {
            assert_eq!(prompts[paid].contains(name), is_asked, "{}", prompts[paid]);
        }
        assert_eq!(calls(&project).last(), answered(&[2]).last());
        project.run(&["--agent", "speller=api"]);
        assert_eq!(made(&project), words(10));
    }
}

#[test]
fn a_model_that_asks_for_an_hour_is_called_by_another_run() {
    let (project, server) = at(vec![refuses(429, &["retry-after: 3600"])]);
    let ran = project.run(&["--agent", "speller=api"]);
    assert_eq!((ran.code, prompts(&server).len()), (1, 1), "{}", ran.output);
    ran.says("HTTP 429: not now; the server asks to retry in 1 h");
}

#[test]
fn a_command_line_that_fails_is_started_as_often_as_the_step_says() {
    for attempts in [1, 2] {
        let project = speller(1, "well");
        let declared = project.read("milepost.toml");
        let agent = "\n[agents.broken]\ncli = [\"sh\", \"-c\", \"exit 3\"]\n";
        project.write("milepost.toml", declared + agent);
        let line = format!("questions = true\nattempts = {attempts}");
        project.edit("stages/2_ask.toml", "questions = true", &line);
        let ran = project.run(&["--agent", "speller=broken", "-j", "1"]);
        assert_eq!(ran.code, 1, "{}", ran.output);
        assert_eq!(calls(&project).len(), attempts, "{}", ran.output);
    }
}

/// The command line says nothing of money, so a list of workspaces does not say that it was free.
#[test]
fn what_calls_of_no_known_price_cost_is_null() {
    let project = speller(1, "well");
    project.write("list.json", r#"[{"workspace": "one"}]"#);
    let things = super::pipeline::things(4).to_string();
    project.write("workspaces/one/inputs/things.json", things);
    for (agent, calls, cost) in [("tool", 1, json!(null)), ("tool", 0, json!(0.0))] {
        let output = project
            .command(&["run", "--workspaces", "list.json", "--json"])
            .args(["--agent", &format!("speller={agent}")])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{said}");
        let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
        let usage = &summary["entries"][0]["usage"];
        assert_eq!(
            (&usage["calls"], &usage["cost_usd"]),
            (&json!(calls), &cost)
        );
    }
}

#[test]
fn an_invented_answer_is_left_out_and_named() {
    let mut answers = valid(5);
    answers.insert(2, json!({ "id": "q99", "word": "NEVER" }));
    let (project, server) = at(vec![says(&json!(answers))]);
    let ran = project.run(&["--agent", "speller=api"]);
    // Every question has its answer: nothing is asked again.
    assert_eq!((ran.code, made(&project)), (0, words(10)), "{}", ran.output);
    assert_eq!(calls(&project), answered(&[5]));
    assert_eq!(prompts(&server).len(), 1);
    ran.says("call 1: agent `api` answered `q99`, a question that was not asked: left out");
    let wrong = "q99: there is no question with this id";
    let refused = events(&ran.records, "answers_refused");
    assert_eq!(refused.len(), 1);
    assert_eq!(
        (&refused[0]["valid"], &refused[0]["violations"]),
        (&json!(5), &json!([wrong]))
    );
    let (code, said) = project.milepost(&["log", "ask", "--calls"]);
    assert_eq!(code, 0);
    assert!(
        said.contains(&format!("  not valid:\n    {wrong}\n")),
        "{said}"
    );
}

#[test]
fn an_invented_answer_is_told_to_the_agent_when_it_is_asked_again() {
    let mut answers = valid(4);
    answers.push(json!({ "id": "q99", "word": "NEVER" }));
    let last = json!({ "id": "q5", "word": "NAME 4" });
    let (project, server) = at(vec![says(&json!(answers)), says(&json!([last]))]);
    let ran = project.run(&["--agent", "speller=api"]);
    assert_eq!((ran.code, made(&project)), (0, words(10)), "{}", ran.output);
    assert_eq!(calls(&project), answered(&[5, 1]));
    let again = &prompts(&server)[1];
    for line in [
        "- q99: there is no question with this id",
        "- q5: no answer",
    ] {
        assert!(again.contains(line), "{again}");
    }
    assert!(!again.contains("name 3"), "{again}");
}

#[test]
fn a_key_that_the_schema_does_not_declare_is_kept_or_named() {
    let mut answers = valid(5);
    for answer in &mut answers[..3] {
        answer["note"] = json!("rare");
    }
    let open =
        r#"{"type": "object", "required": ["word"], "properties": {"word": {"type": "string"}}}"#;
    let warning = "6 records leave out `note` of the answer, a key that schemas/word.schema.json does not declare";
    let (project, _server) = at(vec![says(&json!(answers))]);
    project.write("schemas/word.schema.json", open);
    let ran = project.run(&["--agent", "speller=api"]);
    assert_eq!((ran.code, made(&project)), (0, words(10)), "{}", ran.output);
    ran.says(warning);
    // The key is in the kept answer: a result that takes it finds it, and asks nobody.
    project.edit("stages/2_ask.toml", "word}'", "word, note}'");
    let ran = project.run(&["--agent", "speller=api"]);
    assert_eq!(
        made(&project)[0],
        json!({ "id": 0, "word": "NAME 0", "note": "rare" })
    );
    assert!(!ran.output.contains("does not declare"), "{}", ran.output);
    assert_eq!(calls(&project).len(), 1);
}
