//! Judges that are a model behind a server of scripts.

use super::{TAP_FILE, declare, fixture};
use crate::agents::server::{Play, Server};
use crate::examples::claude::{self, JSON, takes_the_key};
use serde_json::json;

fn says(answer: &str) -> Play {
    claude::says("claude-sonnet-4-5", answer, (1000, 100))
}

const JUDGMENT: &str =
    "---\npassed: true\nactual: \"four lines\"\nexpected: \"four lines\"\nscore: 90\n---";

/// Judges that are late, wrong, cut off or refuse judge nothing: each is named with its reason, and the next run asks for these
/// four alone.
#[test]
fn a_judge_that_does_not_answer_judges_nothing() {
    let error =
        json!({"type": "error", "error": {"type": "invalid_request_error", "message": "no"}});
    let mut script = vec![
        takes_the_key(),
        Play::Stalls,
        says("It is fine."),
        Play::Cuts(4000, "{\"id\": \"msg_1\", \"conte".to_owned()),
        Play::Says(400, JSON, error.to_string()),
        says(JUDGMENT),
        takes_the_key(),
    ];
    script.extend((0..4).map(|_| says(JUDGMENT)));
    let server = Server::new(script);
    let mut project = fixture();
    project.env("ANTHROPIC_API_KEY", "a-key-of-nobody");
    declare(
        &project,
        &format!(
            "anthropic = \"claude-sonnet-4-5\"\nbase_url = \"{}\"\nmax_tokens = 1024\ntries = 1",
            server.url
        ),
    );
    let arguments = [
        "--agent",
        "judge=fake",
        "--set",
        "runs=1",
        "--set",
        "timeout=2s",
    ];
    let ran = project.run_unplanned(&arguments);
    assert_eq!(ran.code, 1, "{}", ran.output);
    let failed: Vec<_> = ran.data("batch_failed").collect();
    let outcome = &failed[0]["outcome"];
    let message = outcome["message"].as_str().unwrap();
    assert!(
        message.starts_with("4 of 5 answers are missing; assertion "),
        "{message}"
    );
    let lines = outcome["details"].as_array().unwrap().iter();
    let lines = lines.filter_map(|line| line.as_str().unwrap().strip_prefix("assertion "));
    let codes = lines.filter_map(|line| line.split("): ").nth(1)?.split(": ").next());
    let mut named: Vec<&str> = codes.collect();
    named.sort_unstable();
    let expected = [
        "AgentProcessError",
        "JUDGE_INVALID_TAP_YAML",
        "ParseError",
        "TimeoutError",
    ];
    assert_eq!(named, expected, "{outcome:#}");
    assert!(expected.contains(&outcome["code"].as_str().unwrap()));
    assert_eq!(project.list("outputs"), [""; 0]);

    let ran = project.run_unplanned(&arguments);
    assert_eq!(ran.code, 0, "{}", ran.output);
    assert_eq!(ran.data("called").count(), 4);
    let judgments = project.json("workspace/intermediate/judgments/run_1.json");
    assert_eq!(judgments.as_array().unwrap().len(), 5);
    assert_eq!(project.list("outputs"), [TAP_FILE]);
}
