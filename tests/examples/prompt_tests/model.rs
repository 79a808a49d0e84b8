//! Judges that are a model behind a server of scripts.

use super::{TAP_FILE, codes, declare, fixture};
use crate::agents::server::{Play, Server};
use crate::examples::claude::{self, JSON, takes_the_key};
use serde_json::json;

fn says(answer: &str) -> Play {
    claude::says("claude-sonnet-4-5", answer, (1000, 100))
}

const JUDGMENT: &str =
    "---\npassed: true\nactual: \"four lines\"\nexpected: \"four lines\"\nscore: 90\n---";

/// Judges that are late, wrong, cut off or refuse judge nothing; the next run asks for these four alone.
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
    assert_eq!(
        (ran.code, codes(&ran.records)),
        (
            1,
            [
                "AgentProcessError",
                "JUDGE_INVALID_TAP_YAML",
                "ParseError",
                "TimeoutError"
            ]
            .map(str::to_owned)
            .to_vec()
        ),
        "{}",
        ran.output
    );
    assert_eq!(project.list("intermediate/judgments").len(), 1);
    assert_eq!(project.list("outputs"), [""; 0]);

    let ran = project.run_unplanned(&arguments);
    assert_eq!(ran.code, 0, "{}", ran.output);
    let judged = ran.tried();
    let judged = judged.iter().filter(|batch| batch.starts_with("judge/"));
    assert_eq!(judged.count(), 4);
    assert_eq!(project.list("outputs"), [TAP_FILE]);
}
