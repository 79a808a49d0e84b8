//! Files of runs, what they say of who made them, and the check of the login.

use super::{TAP_FILE, fixture, fixture_with_fake};
use crate::support::Project;
use serde_json::json;
use std::os::unix::fs::PermissionsExt as _;

/// The lines of a TAP file before its first point.
fn head(tap: &str) -> Vec<&str> {
    let lines = tap.lines();
    lines.take_while(|line| !line.contains("ok ")).collect()
}

#[test]
fn each_run_has_a_file_of_its_own() {
    let mut project = fixture();
    assert_eq!(project.run(&[]).code, 0);
    let first = project.read(&format!("workspace/outputs/{TAP_FILE}"));
    // An hour later; a run that has nothing to do writes nothing.
    project.env("SOURCE_DATE_EPOCH", "1795309200");
    project.run(&[]).expect(0, &[]);
    assert_eq!(project.list("outputs"), [TAP_FILE]);
    let ran = project.run_unplanned(&["--set", "threshold=50"]);
    assert_eq!(ran.code, 0, "{}", ran.output);
    let later = "2026-11-22T010000-meeting-actions-workspace.tap";
    ran.says(&format!("outputs  workspace/outputs/{later}"));
    assert_eq!(project.list("outputs"), [TAP_FILE, later]);
    assert_eq!(
        project.read(&format!("workspace/outputs/{TAP_FILE}")),
        first
    );
}

#[test]
fn a_report_says_who_made_it() {
    let (project, _) = fixture_with_fake("json", "no-score");
    let ran = project.run_unplanned(&["--agent", "judge=fake", "--set", "runs=1"]);
    assert_eq!(ran.code, 0, "{}", ran.output);
    let tap = project.read(&format!("workspace/outputs/{TAP_FILE}"));
    let judge = head(&tap)[3].split(", judged by ").nth(1).unwrap();
    assert!(judge.starts_with("cli python3 "), "{judge}");
    assert!(judge.ends_with(", extracted by jq filters/extractor.jq"));
    assert_eq!(
        head(&tap)[4..],
        [
            "# made on 2026-11-22T00:00:00Z; cost: $0.0050",
            "# fallbacks: 5 judgments without a score"
        ]
    );
    assert_eq!(
        project.json("workspace/intermediate/usage/run_1.json"),
        json!({"call": "run 1", "cost_usd": 0.0})
    );
}

/// `actual` and `expected` of an assertion are those of a judgment that agrees with its verdict.
#[test]
fn each_assertion_says_what_was_found_and_expected() {
    let project = fixture();
    let ran = project.run(&["--agent", "result=hasty", "--set", "threshold=100"]);
    assert_eq!(ran.code, 1, "{}", ran.output);
    let results = project.json("workspace/intermediate/results.json");
    let second = &results["assertions"][1];
    assert_eq!(
        json!([
            second["passed"],
            second["passes"],
            second["actual"],
            second["expected"]
        ]),
        json!([false, 3, "2 lines", "exactly 4 lines"])
    );
    let tap = project.read(&format!("workspace/outputs/{TAP_FILE}"));
    let point = tap
        .lines()
        .skip_while(|line| !line.starts_with("not ok 2 "));
    let lines: Vec<&str> = point.skip(1).take(7).collect();
    assert_eq!(
        lines,
        [
            "  ---",
            "  passes: 3",
            "  runs: 4",
            "  required: 4",
            lines[4],
            "  actual: \"2 lines\"",
            "  expected: \"exactly 4 lines\"",
        ]
    );
}

/// The example with a command line of this name, which notes its calls and answers `question` with what `status` says.
fn with_program(name: &str, question: &str) -> Project {
    let mut project = fixture();
    let program = format!("bin/{name}");
    let text = format!(
        "#!/bin/sh\necho \"$*\" >> {0}/calls\nif [ \"$*\" = '{question}' ]; then . {0}/status; fi\ncat > /dev/null\n\
         echo '{{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"No actions.\",\"session_id\":\"s\"}}'\n",
        project.at("").display()
    );
    project.write(&program, text);
    std::fs::set_permissions(project.at(&program), std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = std::env::var("PATH").unwrap();
    project.env("PATH", &format!("{}:{path}", project.at("bin").display()));
    project
}

/// Claude Code is asked whether it is logged in, and nothing else if it is not.
#[test]
fn the_login_is_checked_before_any_call() {
    let project = with_program("claude", "auth status");
    let arguments = ["--agent", "result=claude", "--set", "runs=1"];

    project.write("status", "exit 1");
    let ran = project.run_unplanned(&arguments);
    assert_eq!(ran.code, 1, "{}", ran.output);
    ran.says("auth failed: AuthenticationError: `claude` ended with exit code 1");
    assert_eq!(project.read("calls"), "auth status\n");
    // Without the check, the first call decides.
    let unchecked = [&arguments[..], &["--set", "auth_check=false"]].concat();
    project.run_unplanned(&unchecked);
    assert_eq!(
        project.read("calls"),
        "auth status\n-p --output-format json --no-session-persistence\n"
    );
    project.write("status", "exit 0");
    project.run_unplanned(&["--unset", "auth_check"]);
    assert_eq!(
        project.json("workspace/intermediate/auth.json"),
        json!({"checked": ["cli claude-code"]})
    );
}

/// Codex says by its exit code whether it is logged in, Cursor in words.
#[test]
fn codex_and_cursor_are_asked_before_any_call() {
    let cases = [
        ("codex", "login status", "exit 1", "exit 0"),
        (
            "cursor-agent",
            "status",
            "echo 'Not logged in'; exit 0",
            "echo 'Logged in as ana'; exit 0",
        ),
    ];
    for (name, question, without, with) in cases {
        let project = with_program(name, question);
        let declared = project.read("milepost.toml");
        let agent = format!("\n[agents.asked]\ncli = [\"{name}\", \"-p\"]\nenvelope = \"json\"\n");
        project.write("milepost.toml", format!("{declared}{agent}"));
        let arguments = ["--until", "auth", "--agent", "result=asked"];
        project.write("status", without);
        let ran = project.run_unplanned(&arguments);
        assert_eq!(ran.code, 1, "{}", ran.output);
        ran.says("auth failed: AuthenticationError: ");
        project.write("status", with);
        assert_eq!(project.run_unplanned(&arguments).code, 0, "{name}");
        assert_eq!(project.read("calls"), format!("{question}\n{question}\n"));
    }
}

#[test]
fn what_a_judge_leaves_out_has_a_default_and_a_warning() {
    let (project, _) = fixture_with_fake("text", "no-score");
    let ran = project.run_unplanned(&["--agent", "judge=fake", "--set", "runs=1"]);
    assert_eq!(ran.code, 0, "{}", ran.output);
    ran.says("test/1 warning: assertion 3: no score was given");
    let judgment = &project.json("workspace/intermediate/judgments/run_1.json")[2];
    assert_eq!(
        (&judgment["passed"], &judgment["score"]),
        (&json!(true), &json!(null))
    );
    let results = project.json("workspace/intermediate/results.json");
    assert_eq!(results["assertions"][2]["averageScore"], json!(null));
    let tap = project.list("outputs").remove(0);
    assert!(
        project
            .read(&format!("workspace/outputs/{tap}"))
            .contains("\n  score: null\n")
    );
}

/// The user prompt may be in a file of its own.
#[test]
fn another_test_makes_a_file_of_its_own_name() {
    let project = fixture();
    let ran = project.run(&["--set", "test=tests/no-actions.md"]);
    assert_eq!(ran.code, 0, "{}", ran.output);
    assert_eq!(
        project.list("outputs"),
        ["2026-11-22T000000-no-actions-workspace.tap"]
    );
    let context = project.json("workspace/intermediate/context.json");
    assert_eq!(
        context["userPrompt"],
        project.read("tests/quiet-note.md").trim()
    );
    assert_eq!(
        project.read("workspace/intermediate/runs/run_1.txt"),
        "No actions."
    );
}

/// A test file with single quotes and the user prompt behind its name, as Riteway's own are.
#[test]
fn a_test_file_of_riteway_is_read() {
    let project = fixture();
    project.write(
        "tests/sum.sudo",
        "import 'under-test/house-style.md'\n\nuserPrompt = \"\"\"\nAdd two numbers.\n\"\"\"\n\n\
         - Given two numbers, should add them\n- Given none, should return 0\n",
    );
    let ran = project.run(&["--set", "test=tests/sum.sudo", "--until", "context"]);
    assert_eq!(ran.code, 0, "{}", ran.output);
    assert_eq!(
        project.json("workspace/intermediate/context.json"),
        json!({
            "userPrompt": "Add two numbers.",
            "promptUnderTest": project.read("under-test/house-style.md").trim(),
            "assertions": [
                {"id": 1, "requirement": "Given two numbers, should add them"},
                {"id": 2, "requirement": "Given none, should return 0"},
            ],
        })
    );
}

/// What the embedded judge cannot measure is said not to be measured.
#[test]
fn what_is_not_measured_is_said() {
    let project = fixture();
    project.write(
        "tests/kind.md",
        "import \"under-test/house-style.md\"\n\n\"\"\"\nAna will call.\n\"\"\"\n\n- Given a reader, should be kind\n",
    );
    let ran = project.run(&["--set", "runs=1", "--set", "test=tests/kind.md"]);
    assert_eq!(ran.code, 1, "{}", ran.output);
    let judgment = &project.json("workspace/intermediate/judgments/run_1.json")[0];
    assert_eq!(
        json!([
            judgment["passed"],
            judgment["score"],
            judgment["expected"],
            judgment["actual"]
        ]),
        json!([
            false,
            null,
            "be kind",
            "not measured: the embedded judge does not understand this requirement, a model does"
        ])
    );
}
