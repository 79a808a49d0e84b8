//! Submissions that could not be graded: what has no value is null, and the reason stands beside it.

use super::model::{good, says, taken, with_claude};
use super::near;
use crate::agents::server::{Play, Server};
use crate::support::Project;
use serde_json::{Value, json};
use std::net::TcpListener;

/// The answer of a server to which the key is unknown.
fn refused() -> Play {
    let error = json!({ "type": "error", "error": { "type": "authentication_error", "message": "invalid x-api-key" } });
    Play::Says(401, &["content-type: application/json"], error.to_string())
}

/// Runs three submissions and returns the exit code, the summary, and what the screen says.
fn grade_three(project: &Project, more: &[&str]) -> (Option<i32>, Value, String) {
    let list = json!([
        { "workspace": "larder", "request": "workspace/inputs/grading_request.json",
          "submission": "workspace/inputs/submission.pdf" },
        { "workspace": "shiftly", "request": "submissions/shiftly.json", "submission": "submissions/shiftly.pdf" },
        { "workspace": "tern", "request": "submissions/tern.json", "submission": "submissions/tern.pdf" }
    ]);
    project.write("three.json", list.to_string());
    let output = project
        .command(&["run", "--workspaces", "three.json", "--json"])
        .args(["--agent", "evaluator=claude"])
        .args(more)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let mut summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    // How long it took differs.
    for result in summary["results"].as_array_mut().unwrap() {
        let time = result["execution_time"].take();
        assert!(time.as_f64().unwrap() >= 0.0, "{time}");
    }
    (output.status.code(), summary, said)
}

/// Checks that no file of a workspace reports a value for an evaluation that is not there.
fn check_nothing_reported(project: &Project, id: &str, error: &str) {
    let at = |path: &str| format!("workspaces/{id}/{path}");
    let reason = format!("no evaluation for 17 of 17 criteria: {error}");
    let result = project.json(&at(&format!("outputs/{id}_result.json")));
    assert_eq!(result["final_score"], Value::Null, "{id}");
    assert_eq!(result["not_graded"], json!(reason));
    assert_eq!(
        result["comparison_message"],
        json!(format!("Not graded: {reason}"))
    );
    // Calls that were refused or never arrived are free.
    assert_eq!(result["usage"], json!({ "tokens": 0, "cost_usd": 0.0 }));
    assert_eq!(result["adjustments"], json!([]));
    for category in result["breakdown"].as_object().unwrap().values() {
        assert_eq!(
            (&category["score"], &category["evaluated"]),
            (&Value::Null, &json!(0))
        );
    }
    for evaluation in result["evaluations"].as_array().unwrap() {
        let values = ["score", "severity"].map(|key| &evaluation[key]);
        assert_eq!(values, [&Value::Null; 2], "{evaluation}");
        let used = ["tokens_used", "cost"].map(|key| evaluation[key].as_f64());
        assert_eq!(used, [Some(0.0); 2], "{evaluation}");
        assert_eq!(evaluation["error"], json!(error));
    }
    let checkpoint = project.json(&at("stage_4_complete.json"));
    assert_eq!(checkpoint["status"], "partial");
    let summary = &checkpoint["summary"];
    assert_eq!(
        (&summary["final_score"], &summary["not_graded"]),
        (&Value::Null, &json!(reason))
    );
    assert_eq!(
        summary["warnings"],
        json!([format!("not graded: {reason}")])
    );
    let report = project.read(&at(&format!("outputs/{id}_report.md")));
    assert!(
        report.contains(&format!("\n**Not graded.** {reason}.\n")),
        "{report}"
    );
    assert!(
        !report.contains("of 100") && !report.contains("| 0.00") && !report.contains("critical"),
        "{report}"
    );
    assert!(
        report.contains("\n| Evaluator | anthropic, model claude-sonnet-4-20250514 |\n")
            && !report.contains("Graded by"),
        "{report}"
    );
    let csv = project.read(&at(&format!("outputs/{id}_criteria.csv")));
    let row = format!("\"prd_quality\",\"documents\",0.08,,,,,,,0,0.0,\"{error}\"");
    assert_eq!(csv.lines().nth(1), Some(row.as_str()));
}

/// What the summary reports of three submissions none of which was graded.
fn none_graded(reason: &str) -> Value {
    let row = |id: &str| json!({ "workspace": id, "status": "partial", "error": reason });
    let result = |id: &str| {
        let paths = json!({
            "markdown": format!("outputs/{id}_report.md"), "pdf": format!("outputs/{id}_report.pdf"),
            "json": format!("outputs/{id}_result.json"), "csv": format!("outputs/{id}_criteria.csv")
        });
        json!({
            "workspace": id, "success": false, "output": null, "error": reason,
            "metadata": { "report_paths": paths, "total_cost": 0.0 }, "execution_time": null
        })
    };
    json!({
        "dry_run": false, "submissions": 3, "grades": [],
        "not_graded": [row("larder"), row("shiftly"), row("tern")],
        "results": [result("larder"), result("shiftly"), result("tern")],
        "calls_to_come": null, "cost_to_come_usd": null, "cost_usd": 0.0
    })
}

#[test]
fn a_refused_key_grades_nobody() {
    let server = Server::new((0..3).map(|_| refused()).collect());
    let project = with_claude(&server);
    let (code, summary, said) = grade_three(&project, &[]);
    let error = "Claude API failed: agent `claude`: HTTP 401: invalid x-api-key";
    let reason = format!("no evaluation for 17 of 17 criteria: {error}");
    assert_eq!((code, summary), (Some(3), none_graded(&reason)), "{said}");
    for id in ["larder", "shiftly", "tern"] {
        check_nothing_reported(&project, id, error);
    }
    assert!(
        said.contains(&format!("score warning: not graded: {reason}")),
        "{said}"
    );
}

#[test]
fn a_service_that_never_answers_grades_nobody() {
    let limited = || {
        let error =
            json!({ "type": "error", "error": { "type": "rate_limit_error", "message": "slow" } });
        Play::Says(429, &["content-type: application/json"], error.to_string())
    };
    let script = (0..3).flat_map(|_| std::iter::once(taken()).chain((0..17).map(|_| limited())));
    let server = Server::new(script.collect());
    let project = with_claude(&server);
    project.edit("milepost.toml", "tries = 3", "tries = 1");
    let (code, summary, said) = grade_three(&project, &[]);
    let error = "Claude API failed: agent `claude`: HTTP 429: slow";
    let reason = format!("no evaluation for 17 of 17 criteria: {error}");
    assert_eq!((code, summary), (Some(3), none_graded(&reason)), "{said}");
    check_nothing_reported(&project, "tern", error);
}

#[test]
fn a_provider_that_is_gone_grades_nobody() {
    let mut project = with_claude(&Server::new(Vec::new()));
    // A port at which nobody listens any more.
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    project.env("CLAUDE_BASE_URL", &format!("http://127.0.0.1:{port}"));
    project.edit("milepost.toml", "tries = 3", "tries = 1");
    let (code, summary, said) = grade_three(&project, &[]);
    assert_eq!(
        (code, &summary["grades"]),
        (Some(3), &json!([])),
        "{summary:#}\n{said}"
    );
    let rows = summary["not_graded"].as_array().unwrap();
    assert_eq!(rows.len(), 3, "{summary:#}");
    for row in rows {
        let error = row["error"].as_str().unwrap();
        let start = "evaluate: waiting for agent `claude`: could not connect";
        assert!(error.starts_with(start), "{error}");
        assert_eq!(row["status"], "held");
    }
    assert!(!project.exists("workspaces/tern/stage_4_complete.json"));
}

#[test]
fn a_budget_that_pays_no_call_grades_nobody() {
    let server = Server::new((0..3).map(|_| taken()).collect());
    let project = with_claude(&server);
    let (code, summary, said) = grade_three(&project, &["--budget-usd", "0.000001"]);
    assert_eq!(
        (code, &summary["grades"]),
        (Some(3), &json!([])),
        "{summary:#}\n{said}"
    );
    let rows = summary["not_graded"].as_array().unwrap();
    assert_eq!(rows.len(), 3, "{summary:#}");
    for row in rows {
        assert_eq!(row["status"], "held");
        let error = row["error"].as_str().unwrap();
        assert!(
            error.starts_with("evaluate: this call may cost $0.")
                && error.ends_with("raise --budget-usd"),
            "{error}"
        );
    }
    assert!(!project.exists("workspaces/tern/stage_4_complete.json"));
}

/// The key works for the first submission and a part of the second, is revoked, and works again.
#[test]
fn a_key_that_is_revoked_midway_grades_whom_it_paid_for() {
    let mut script = vec![taken()];
    script.extend((0..17).map(|_| says(&good(80))));
    script.push(taken());
    script.extend((0..11).map(|_| says(&good(80))));
    script.extend((0..6).map(|_| refused()));
    script.push(refused());
    for calls in [6, 17] {
        script.push(taken());
        script.extend((0..calls).map(|_| says(&good(80))));
    }
    let server = Server::new(script);
    let project = with_claude(&server);
    let (code, summary, said) = grade_three(&project, &[]);
    let error = "Claude API failed: agent `claude`: HTTP 401: invalid x-api-key";
    let reason = |lost: u32| format!("no evaluation for {lost} of 17 criteria: {error}");
    assert_eq!(code, Some(3), "{said}");
    assert_eq!(
        summary["grades"],
        json!([{ "workspace": "larder", "status": "complete", "grade": 75.2 }])
    );
    assert_eq!(
        summary["not_graded"],
        json!([
            { "workspace": "shiftly", "status": "partial", "error": reason(6) },
            { "workspace": "tern", "status": "partial", "error": reason(17) }
        ])
    );
    // What was evaluated is reported; what would be a total over it is not.
    let result = project.json("workspaces/shiftly/outputs/shiftly_result.json");
    assert_eq!(result["final_score"], Value::Null);
    assert_eq!(result["adjustments"].as_array().unwrap().len(), 11);
    for row in result["adjustments"].as_array().unwrap() {
        near(&row["adjusted_score"], 74.0);
        assert_eq!(row["lost"], Value::Null);
    }
    for category in result["breakdown"].as_object().unwrap().values() {
        let whole = category["criteria"] == category["evaluated"];
        assert_eq!(category["score"].is_null(), !whole, "{category}");
    }
    let report = project.read("workspaces/shiftly/outputs/shiftly_report.md");
    assert!(
        report.contains("| Criteria | 11 of 17 evaluated |"),
        "{report}"
    );
    assert!(
        !report.contains("lost |\n") && !report.contains("of 100"),
        "{report}"
    );

    let (code, summary, said) = grade_three(&project, &[]);
    assert_eq!(
        (code, &summary["not_graded"]),
        (Some(0), &json!([])),
        "{said}"
    );
    let grades = summary["grades"].as_array().unwrap();
    let grades: Vec<_> = grades
        .iter()
        .map(|row| (&row["workspace"], &row["grade"]))
        .collect();
    assert_eq!(
        grades,
        [
            (&json!("tern"), &json!(77.2)),
            (&json!("larder"), &json!(75.2)),
            (&json!("shiftly"), &json!(74.0))
        ]
    );
}

#[test]
fn a_run_that_ends_before_the_grade_says_so() {
    let server = Server::new(Vec::new());
    let project = with_claude(&server);
    let (code, summary, said) = grade_three(&project, &["--until", "parse"]);
    assert_eq!((code, &summary["grades"]), (Some(0), &json!([])), "{said}");
    assert_eq!(
        summary["not_graded"][0],
        json!({ "workspace": "larder", "status": "complete", "error": "stage `score` did not run" })
    );
}

/// A server that answers and does not report how many tokens that took.
#[test]
fn tokens_that_a_server_does_not_report_are_not_zero() {
    let message = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-20250514",
        "content": [{ "type": "text", "text": good(80) }], "stop_reason": "end_turn"
    });
    let json = &["content-type: application/json"];
    let answers = (0..17).map(|_| Play::Says(200, json, message.to_string()));
    let project = with_claude(&Server::new(
        std::iter::once(taken()).chain(answers).collect(),
    ));
    let ran = project.run_unplanned(&["--agent", "evaluator=claude"]);
    assert_eq!(ran.code, 0, "{}", ran.output);
    // Nothing is known of their cost: they count with the most that they may have cost.
    ran.says("17 calls for $");
    ran.says(" (estimated)");
    let result = project.json("workspace/outputs/larder_result.json");
    assert_eq!(result["usage"], json!({ "tokens": null, "cost_usd": null }));
    let report = project.read("workspace/outputs/larder_report.md");
    assert!(
        report.contains("| Cost | tokens not known, cost not known |"),
        "{report}"
    );
    let csv = project.read("workspace/outputs/larder_criteria.csv");
    let row = csv.lines().nth(1).unwrap();
    assert!(row.ends_with(",,,"), "{row}");
    let (_, status) = project.milepost(&["status"]);
    assert!(!status.contains("0 tokens"), "{status}");
}

/// Before the submissions are read nobody knows how many calls there will be; what they cost is declared.
#[test]
fn calls_that_are_not_known_yet_are_not_zero() {
    let project = with_claude(&Server::new(Vec::new()));
    let (code, summary, said) = grade_three(&project, &["-n"]);
    assert_eq!(
        (
            code,
            &summary["calls_to_come"],
            &summary["cost_to_come_usd"]
        ),
        (Some(0), &Value::Null, &json!(1.224)),
        "{summary:#}\n{said}"
    );
}

/// Late, wrong, cut and refused answers among good ones: none becomes a grade, and the next run asks for these four alone.
#[test]
fn answers_that_are_late_wrong_cut_or_refused_are_named_and_asked_for_again() {
    let error =
        json!({ "type": "error", "error": { "type": "invalid_request_error", "message": "no" } });
    let mut script = vec![taken()];
    script.extend([
        Play::Stalls,
        says("I would give it 80 points."),
        Play::Cuts(4000, "{\"id\": \"msg_1\", \"conte".to_owned()),
        Play::Says(400, &["content-type: application/json"], error.to_string()),
    ]);
    script.extend((0..13).map(|_| says(&good(80))));
    script.push(taken());
    script.extend((0..4).map(|_| says(&good(80))));
    let server = Server::new(script);
    let project = with_claude(&server);
    project.edit("milepost.toml", "tries = 3", "tries = 1");
    project.edit(
        "stages/3_evaluate.toml",
        "attempts = 1 ",
        "timeout = \"2s\"\nattempts = 1 ",
    );
    let claude = ["--agent", "evaluator=claude"];
    let ran = project.run_unplanned(&claude);
    assert_eq!(ran.code, 3, "{}", ran.output);
    let result = project.json("workspace/outputs/larder_result.json");
    assert_eq!(result["final_score"], Value::Null);
    let reason = result["not_graded"].as_str().unwrap();
    let (start, errors) = reason.split_once(": ").unwrap();
    assert_eq!(start, "no evaluation for 4 of 17 criteria");
    let named: Vec<&str> = errors.split("; ").collect();
    assert_eq!(
        named,
        [
            "Claude API failed: agent `claude`: HTTP 400: no",
            named[1],
            "Invalid JSON response from Claude: agent `claude` gave no valid answer in one request",
            named[3],
        ]
    );
    assert!(
        named[1].starts_with("Claude API failed: agent `claude`: ")
            && named[3].starts_with("TimeoutError: agent `claude`: "),
        "{named:#?}"
    );

    let ran = project.run_unplanned(&claude);
    assert_eq!(ran.code, 0, "{}", ran.output);
    assert_eq!(
        ran.tried()
            .iter()
            .filter(|it| it.starts_with("evaluate/"))
            .count(),
        4
    );
    near(
        &project.json("workspace/outputs/larder_result.json")["final_score"],
        75.2,
    );
}

/// No more than ten evaluators ask at once.
#[test]
fn ten_criteria_are_evaluated_at_once() {
    let mut script = vec![taken()];
    script.extend((0..17).map(|_| Play::Stalls));
    let server = Server::new(script);
    let project = with_claude(&server);
    project.edit("stages/3_evaluate.toml", "\"300s\"", "\"5s\"");
    let ran = project.run_unplanned(&["--agent", "evaluator=claude"]);
    assert_eq!(ran.code, 3, "{}", ran.output);
    let mut seen = server.seen();
    seen.retain(|seen| seen.line == "POST /v1/messages");
    assert_eq!(seen.len(), 10);
}
