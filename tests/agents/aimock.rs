//! Held against the npm package `@copilotkit/aimock`: `MILEPOST_TEST_AIMOCK` names its program `llmock`.

use super::{LIMIT, anthropic, openai};
use crate::support::required::{Missing, require};
use milepost_agents::fault::FaultKind;
use milepost_agents::policy::{Next, after};
use milepost_agents::request::{AgentRequest, Reply, StopReason};
use milepost_core::model::usage::Usage;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

struct Mock {
    program: Child,
    url: String,
    _folder: tempfile::TempDir,
}

impl Drop for Mock {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

/// Errors in order, then an answer; a wrong key; all by what the user says.
const FIXTURES: &str = r#"{"fixtures": [
  {"match": {"userMessage": "classify", "sequenceIndex": 0}, "response": {"error": {"message": "Overloaded", "type": "overloaded_error"}, "status": 529}},
  {"match": {"userMessage": "classify", "sequenceIndex": 1}, "response": {"error": {"message": "Slow down", "type": "rate_limit_error"}, "status": 429}},
  {"match": {"userMessage": "classify"}, "response": {"content": "{\"code\":\"Ss_25\"}", "usage": {"input_tokens": 12, "output_tokens": 5, "prompt_tokens": 12, "completion_tokens": 5}}},
  {"match": {"userMessage": "key"}, "response": {"error": {"message": "bad key", "type": "authentication_error"}, "status": 401}}
]}"#;

fn mock() -> Result<Mock, Missing> {
    let program = std::env::var_os("MILEPOST_TEST_AIMOCK").ok_or_else(|| {
        Missing(
            "MILEPOST_TEST_AIMOCK does not name `llmock` of the npm package @copilotkit/aimock"
                .to_owned(),
        )
    })?;
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("fixtures.json"), FIXTURES).unwrap();
    let mut program = Command::new(program)
        .args(["-p", "0", "--strict", "--validate-on-load", "-f"])
        .arg(folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(program.stdout.take().unwrap()).lines();
    let url = lines.map_while(Result::ok).find_map(|line| {
        let at = line.find("http://127.0.0.1:")?;
        Some(line[at..].split_whitespace().next()?.to_owned())
    });
    Ok(Mock {
        program,
        url: url.expect("aimock says where it listens"),
        _folder: folder,
    })
}

fn asks(prompt: &str, max_tokens: u64) -> AgentRequest {
    AgentRequest {
        prompt: prompt.to_owned(),
        max_tokens,
        ..AgentRequest::default()
    }
}

#[test]
fn errors_in_order_and_then_an_answer() {
    let mock = require!(mock());
    // Whole answers, and streamed ones: the order is counted over both.
    for (client, tokens) in [
        (anthropic(&mock.url, "claude-haiku-4-5"), 100),
        (openai(&mock.url, "gpt-6-luna"), 100),
        (anthropic(&mock.url, "claude-haiku-4-5"), 20_000),
    ] {
        let body = client.body(&asks("classify", tokens));
        let mut kinds = Vec::new();
        let reply = (1..9).find_map(|attempt| match client.call(&body, LIMIT) {
            Ok(reply) => Some(reply),
            Err(fault) => {
                assert!(
                    matches!(after(&fault, attempt, 0.0), Next::Retry { .. }),
                    "{fault:?}"
                );
                kinds.push(fault.kind);
                None
            }
        });
        let Reply {
            text, stop, usage, ..
        } = reply.unwrap();
        assert_eq!(
            (text.as_str(), stop),
            (r#"{"code":"Ss_25"}"#, StopReason::End)
        );
        assert_eq!(
            usage,
            Usage {
                input: 12,
                output: 5,
                ..Usage::default()
            }
        );
        assert!(
            kinds.is_empty() || kinds == [FaultKind::Overloaded, FaultKind::RateLimited],
            "{kinds:?}"
        );
    }
}

#[test]
fn a_wrong_key_and_a_request_without_a_fixture() {
    let mock = require!(mock());
    let client = anthropic(&mock.url, "claude-haiku-4-5");
    let kind = |prompt: &str| {
        client
            .call(&client.body(&asks(prompt, 100)), LIMIT)
            .unwrap_err()
    };
    assert_eq!(kind("key").kind, FaultKind::Auth);
    // What it has no fixture for is a 503 that looks as if it would pass.
    let missed = kind("something else");
    assert_eq!(missed.kind, FaultKind::BadRequest);
    assert!(missed.message.contains("trict"), "{missed}");
}

#[test]
fn openais_batches() {
    use milepost_agents::api::BatchProgress;
    let mock = require!(mock());
    let client = openai(&mock.url, "gpt-6-luna");
    let batches = client.batches().unwrap();
    let requests = vec![("q-1".to_owned(), client.body(&asks("key", 100)))];
    let id = batches.submit(&requests, LIMIT).unwrap();
    let ended = (0..20).any(|_| batches.poll(&id, LIMIT) == Ok(BatchProgress::Ended));
    assert!(ended);
    let results = batches.results(&id, LIMIT).unwrap();
    assert_eq!(
        results
            .iter()
            .map(|(id, _)| id.as_str())
            .collect::<Vec<_>>(),
        ["q-1"]
    );
}
