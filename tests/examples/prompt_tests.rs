//! `examples/prompt-tests`: what it makes, what its numbers are, what it refuses, and that it goes on after a kill.

mod model;
mod reports;

use crate::support::{Project, continues_after_kills};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

/// The TAP file of the example as it is, with its embedded agents.
const TAP: &str = include_str!("meeting-actions.tap");
const TAP_FILE: &str = "2026-11-22T000000-meeting-actions-workspace.tap";
/// 22 November 2026, as `SOURCE_DATE_EPOCH`: reports bear it.
const TODAY: &str = "1795305600";

/// The example, at a fixed date.
fn fixture() -> Project {
    let mut project = Project::copy_of("examples/prompt-tests");
    project.env("SOURCE_DATE_EPOCH", TODAY);
    project
}

/// A copy with an agent `fake`, whose command line prints this envelope and does this wrong; and the folder where it leaves a
/// file for each call.
fn fixture_with_fake(envelope: &str, how: &str) -> (Project, PathBuf) {
    let project = fixture();
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/examples/fake_agent.py");
    let calls = project.at("calls");
    std::fs::create_dir(&calls).unwrap();
    let command = json!(["python3", program, envelope, calls, how]);
    declare(
        &project,
        &format!("cli = {command}\nenvelope = \"{envelope}\""),
    );
    (project, calls)
}

/// Declares an agent `fake`.
fn declare(project: &Project, agent: &str) {
    let with_it = format!("[agents.fake]\n{agent}\n\n[agents.claude]");
    project.edit("milepost.toml", "[agents.claude]", &with_it);
}

/// How many calls of each kind the fake agent had.
fn calls(folder: &Path) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let kind = name.split('_').next().unwrap().to_owned();
        *counts.entry(kind).or_insert(0) += 1;
    }
    counts
}

fn counted(counts: &[(&str, usize)]) -> BTreeMap<String, usize> {
    let counts = counts.iter();
    counts
        .map(|(kind, count)| ((*kind).to_owned(), *count))
        .collect()
}

/// The codes of the batches that failed, each once.
fn codes(records: &[Value]) -> Vec<String> {
    let failed = records
        .iter()
        .filter(|record| record["kind"] == "batch_failed");
    let mut codes: Vec<String> = failed
        .map(|record| {
            record["data"]["outcome"]["code"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    codes.sort();
    codes.dedup();
    codes
}

/// The lines of a TAP file that say `ok` or `not ok`, up to the number.
fn points(tap: &str) -> Vec<&str> {
    let lines = tap.lines();
    lines
        .filter(|line| line.starts_with("ok ") || line.starts_with("not ok "))
        .map(|line| line.split(" - ").next().unwrap())
        .collect()
}

fn all_batches() -> Vec<String> {
    let mut batches: Vec<String> = ["auth", "context", "extract", "report"]
        .map(str::to_owned)
        .into();
    for run in 1..=4 {
        batches.push(format!("test/{run}"));
    }
    batches.sort();
    batches
}

#[test]
fn the_example_runs_whole_and_once() {
    let project = fixture();
    let ran = project.run(&[]);
    assert_eq!(
        (ran.code, ran.tried()),
        (0, all_batches()),
        "{}",
        ran.output
    );
    assert_eq!(project.list("outputs"), [TAP_FILE]);
    assert_eq!(project.read(&format!("workspace/outputs/{TAP_FILE}")), TAP);

    let extraction = project.json("workspace/intermediate/extraction.json");
    assert_eq!(
        extraction["importPaths"],
        json!(["under-test/meeting-actions.md", "under-test/house-style.md"])
    );
    let context = project.json("workspace/intermediate/context.json");
    let prompt = |path: &str| project.read(path).trim().to_owned();
    let both = [
        prompt("under-test/meeting-actions.md"),
        prompt("under-test/house-style.md"),
    ];
    assert_eq!(context["promptUnderTest"], both.join("\n\n"));
    assert_eq!(context["userPrompt"], extraction["userPrompt"]);
    assert_eq!(
        project.read("workspace/intermediate/runs/run_4.txt"),
        "- Ana: send the test protocol to the client by Thursday\n- Boris: order the hinges before 20 November\n\
         - Chidi: ask the fire office about the second exit\n- Dana: have the roof looked at by Monday"
    );
    assert_eq!(
        project.json("workspace/intermediate/judgments/run_2.json")[4],
        json!({"run": 2, "assertion": 5, "passed": true, "actual": "none of it", "expected": "no \"Brightwater\"", "score": 100, "cost_usd": 0.0})
    );
    let checkpoint = project.json("workspace/stage_4_complete.json");
    assert_eq!(
        checkpoint["summary"],
        json!({"passed": true, "runs": 4, "required": 3, "assertions": 5, "failed": []})
    );

    project.run(&[]).expect(0, &[]);
}

#[test]
fn what_the_prompt_under_test_says_decides() {
    let project = fixture();
    project.run_unplanned(&[]).says("complete");
    // Without the project style the client is named; nothing else is another.
    project.edit(
        "workspace/inputs/meeting-actions.md",
        "import \"under-test/house-style.md\"\n",
        "",
    );
    let ran = project.run(&[]);
    assert_eq!(ran.code, 1, "{}", ran.output);
    let tap = project.read(&format!("workspace/outputs/{TAP_FILE}"));
    assert_eq!(points(&tap), ["ok 1", "ok 2", "ok 3", "ok 4", "not ok 5"]);
    let results = project.json("workspace/intermediate/results.json");
    let first = &results["assertions"][4]["judgments"][0];
    assert_eq!(first["actual"], "mentions \"Brightwater\"");

    project.edit(
        "under-test/meeting-actions.md",
        "Name the owner first",
        "Say what is to be done",
    );
    let ran = project.run(&[]);
    assert_eq!(ran.code, 1, "{}", ran.output);
    let tap = project.read(&format!("workspace/outputs/{TAP_FILE}"));
    assert_eq!(
        points(&tap),
        ["ok 1", "ok 2", "not ok 3", "ok 4", "not ok 5"]
    );
}

/// `ceil(runs * threshold / 100)`; the hasty agent overlooks duties in every fourth run.
#[test]
fn the_threshold_decides_and_the_tap_file_stays() {
    let project = fixture();
    let rows: [(u32, u32, u32, i32); 8] = [
        (4, 75, 3, 0),
        (4, 76, 4, 1),
        (4, 100, 4, 1),
        (4, 0, 0, 0),
        (3, 50, 2, 0),
        (1, 1, 1, 0),
        (7, 86, 7, 1),
        (7, 85, 6, 0),
    ];
    for (runs, threshold, required, code) in rows {
        let (runs_set, threshold_set) = (format!("runs={runs}"), format!("threshold={threshold}"));
        let ran = project.run_unplanned(&[
            "--agent",
            "result=hasty",
            "--set",
            &runs_set,
            "--set",
            &threshold_set,
        ]);
        assert_eq!(ran.code, code, "{runs} runs, {threshold} %\n{}", ran.output);
        let results = project.json("workspace/intermediate/results.json");
        let passes: Vec<u64> = results["assertions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|assertion| assertion["passes"].as_u64().unwrap())
            .collect();
        let (all, hasty) = (u64::from(runs), u64::from(runs - runs / 4));
        assert_eq!(passes, [all, hasty, all, hasty, all]);
        assert_eq!(
            (&results["required"], &results["passed"]),
            (&json!(required), &json!(code == 0))
        );
        let tap = project.read(&format!("workspace/outputs/{TAP_FILE}"));
        let expected = match code {
            0 => ["ok 1", "ok 2", "ok 3", "ok 4", "ok 5"],
            _ => ["ok 1", "not ok 2", "ok 3", "not ok 4", "ok 5"],
        };
        assert_eq!(points(&tap), expected, "{runs} runs, {threshold} %");
        assert_eq!(project.list("outputs"), [TAP_FILE]);
    }
    // Six runs of seven had four lines; what the other had is measured by the judge.
    let results = project.json("workspace/intermediate/results.json");
    let scores = &results["assertions"][1];
    let sum: f64 = scores["judgments"]
        .as_array()
        .unwrap()
        .iter()
        .map(|judgment| judgment["score"].as_f64().unwrap())
        .sum();
    assert_eq!(scores["averageScore"], json!(sum / 7.0));
}

/// N assertions and R runs make 1 + R × (1 + N) calls, in whatever envelope the answers come.
#[test]
fn as_many_calls_as_the_formula_says() {
    for (envelope, runs, cost) in [
        ("text", 1, json!(null)),
        ("json", 2, json!(0.001)),
        ("ndjson", 4, json!(0.001)),
    ] {
        let (project, folder) = fixture_with_fake(envelope, "");
        let set = format!("runs={runs}");
        let with = ["--agent", "fake", "--set", &set];
        let ran = project.run_unplanned(&[&with[..], &["--until", "context"]].concat());
        assert_eq!(ran.code, 0, "{envelope}: {}", ran.output);
        // Counted are the calls of all steps, and at most each of them is sent up to six times.
        let plan = project.plan(&with).unwrap();
        let asks = &plan["stages"][3]["asks"];
        assert_eq!(
            (&asks["calls"], &asks["most_calls"]),
            (&json!(runs * (1 + 5)), &json!(runs * (1 + 5) * 6))
        );
        let ran = project.run_unplanned(&with);
        assert_eq!(ran.code, 0, "{envelope}: {}", ran.output);
        let expected = counted(&[("extract", 1), ("judge", runs * 5), ("result", runs)]);
        assert_eq!(calls(&folder), expected, "{envelope}");
        assert_eq!(
            expected.values().sum::<usize>(),
            1 + runs * (1 + 5),
            "{envelope}"
        );
        assert_eq!(ran.data("called").count(), runs * (1 + 5));
        assert_eq!(
            project.read("workspace/intermediate/runs/run_1.txt"),
            "- Ana: send the test protocol\n- Boris: order the hinges",
            "{envelope}: the answer is its whole text"
        );
        let judgments = project.json("workspace/intermediate/judgments/run_1.json");
        assert_eq!(
            judgments[0],
            json!({"run": 1, "assertion": 1, "passed": true, "actual": "begins with: - Ana: send the test", "expected": "Ana is named", "score": 90, "cost_usd": cost})
        );
        // Nothing is asked twice.
        assert_eq!(project.run_unplanned(&["--agent", "fake"]).code, 0);
        assert_eq!(calls(&folder), expected, "{envelope}");
    }
}

/// Every fourth result is wrong: 3 of 4 runs pass, whichever of them it is.
#[test]
fn an_agent_that_fails_now_and_then_is_held_against_the_threshold() {
    for (threshold, code) in [("threshold=75", 0), ("threshold=76", 1)] {
        let (project, folder) = fixture_with_fake("text", "flaky");
        let ran = project.run_unplanned(&["--agent", "fake", "--set", threshold]);
        assert_eq!(ran.code, code, "{}", ran.output);
        assert_eq!(calls(&folder).values().sum::<usize>(), 25);
        let results = project.json("workspace/intermediate/results.json");
        for assertion in results["assertions"].as_array().unwrap() {
            assert_eq!(assertion["passes"], 3);
            // (3 × 90 + 10) / 4
            assert_eq!(assertion["averageScore"], 70.0);
        }
        assert_eq!(project.list("outputs"), [TAP_FILE]);
    }
}

/// At most `concurrency` runs at once; within one, all judges: the fake one answers when all five were called.
#[test]
fn runs_are_limited_and_judges_are_not() {
    for concurrency in [1, 2] {
        let (project, folder) = fixture_with_fake("text", "meet");
        let set = format!("concurrency={concurrency}");
        let ran = project.run_unplanned(&["--agent", "fake", "--set", &set]);
        assert_eq!(ran.code, 0, "{}", ran.output);
        assert_eq!(calls(&folder)["judge"], 20);
        // A run is open until its answer and its five judgments are there.
        let mut open: BTreeMap<&str, usize> = BTreeMap::new();
        let mut most = 0;
        for record in &ran.records {
            if record["data"]["stage"] != "test" {
                continue;
            }
            let batch = record["data"]["batch"].as_str().unwrap_or_default();
            match record["kind"].as_str().unwrap() {
                "attempt_started" => drop(open.insert(batch, 0)),
                "called" => *open.get_mut(batch).unwrap() += 1,
                _ => {}
            }
            open.retain(|_, calls| *calls < 6);
            most = most.max(open.len());
        }
        assert_eq!((most, open.len()), (concurrency, 0));
    }
}

/// The answer of the second run is late: it comes after a judge of the first run was called.
#[test]
fn judges_start_while_other_runs_are_still_going() {
    let (project, folder) = fixture_with_fake("text", "late");
    let arguments = ["--agent", "fake", "--set", "runs=2"];
    let ran = project.run_unplanned(&arguments);
    assert_eq!(ran.code, 0, "{}", ran.output);
    let expected = counted(&[("extract", 1), ("judge", 10), ("result", 2)]);
    assert_eq!(calls(&folder), expected);
    let results = project.json("workspace/intermediate/results.json");
    assert_eq!(results["assertions"][0]["passes"], 2);
}

#[test]
fn wrong_tests_are_refused_by_name() {
    let rows = [
        ("no-import", "MISSING_PROMPT_UNDER_TEST"),
        ("empty-import", "MISSING_PROMPT_UNDER_TEST"),
        ("no-user-prompt", "MISSING_USER_PROMPT"),
        ("no-assertions", "NO_ASSERTIONS_FOUND"),
        ("missing-import", "PROMPT_READ_FAILED"),
    ];
    for (name, error) in rows {
        let project = fixture();
        let set = format!("test=tests/wrong/{name}.md");
        let ran = project.run(&["--set", &set]);
        assert_eq!(
            (ran.code, codes(&ran.records)),
            (1, vec![error.to_owned()]),
            "{name}: {}",
            ran.output
        );
        ran.says(&format!("context failed: {error}: "));
        // A file that is not there is found out before the batch is tried.
        let tried: &[&str] = match name {
            "missing-import" => &["auth", "extract"],
            _ => &["auth", "context", "extract"],
        };
        assert_eq!(ran.tried(), tried, "{name}");
        assert_eq!(project.list("outputs"), [""; 0], "{name}");
    }
    let project = fixture();
    let ran = project.run(&["--set", "test=tests/wrong/missing-import.md"]);
    ran.says("`project:under-test/no-such-prompt.md` does not exist");
}

/// What leaves the project is not read, whatever an extraction says.
#[test]
fn imports_stay_in_the_project() {
    for name in ["leaves-project", "absolute"] {
        let project = fixture();
        let set = format!("test=tests/wrong/{name}.md");
        let ran = project.run(&["--set", &set]);
        assert_eq!(
            (ran.code, codes(&ran.records)),
            (1, vec!["SecurityError".to_owned()]),
            "{name}: {}",
            ran.output
        );
        assert!(
            !project.exists("workspace/intermediate/context.json"),
            "{name}"
        );
    }
    // A link inside the project leads out of it as well.
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("test.md"), "- Given it, should \"x\"").unwrap();
    let project = fixture();
    std::os::unix::fs::symlink(
        outside.path().join("test.md"),
        project.at("under-test/link.md"),
    )
    .unwrap();
    let linked = std::fs::read_to_string(project.at("tests/wrong/leaves-project.md")).unwrap();
    let import = linked
        .lines()
        .find(|line| line.starts_with("import"))
        .unwrap();
    project.write(
        "tests/link.md",
        linked.replace(import, "import \"under-test/link.md\""),
    );
    let ran = project.run(&["--set", "test=tests/link.md"]);
    assert_eq!(
        (ran.code, codes(&ran.records)),
        (1, vec!["SecurityError".to_owned()]),
        "{}",
        ran.output
    );
    ran.says("`project:under-test/link.md` leaves the project by a symbolic link, to ");
    let set = format!("test={}/test.md", outside.path().display());
    let ran = project.run_unplanned(&["--set", &set]);
    assert_eq!(ran.code, 2, "{}", ran.output);
    ran.says("SecurityError: it is outside");
}

#[test]
fn settings_that_cannot_be_are_refused() {
    for (set, why) in [
        (
            "runs=0",
            "error: --set runs=0: expected a whole number from 1 to 1000\n",
        ),
        (
            "concurrency=0",
            "error: --set concurrency=0: expected a whole number from 1 to 64\n",
        ),
        (
            "threshold=101",
            "error: --set threshold=101: expected a number from 0 to 100\n",
        ),
        (
            "threshold=-1",
            "error: --set threshold=-1: expected a number from 0 to 100\n",
        ),
        (
            "timeout=soon",
            "`--set timeout=soon`: `soon` is not a duration",
        ),
    ] {
        let project = fixture();
        let (code, said) = project.milepost(&["run", "--set", set]);
        assert_eq!(code, 2, "{said}");
        assert!(said.contains(why), "{said}");
        assert!(!project.exists("workspace/.milepost"));
    }
}

#[test]
fn wrong_agents_are_told_by_name() {
    let rows = [
        ("extractor", "lacks-fields", "ValidationError"),
        ("extractor", "login", "AuthenticationError"),
        ("judge", "wrong-score", "JUDGE_INVALID_RESPONSE"),
    ];
    for (agent, how, error) in rows {
        let (project, folder) = fixture_with_fake("text", how);
        let agent = format!("{agent}=fake");
        let ran = project.run_unplanned(&["--agent", &agent, "--set", "runs=1"]);
        assert_eq!(
            (ran.code, codes(&ran.records)),
            (1, vec![error.to_owned()]),
            "{how}: {}",
            ran.output
        );
        let count = if agent.starts_with("judge") { 5 } else { 1 };
        assert_eq!(calls(&folder).values().sum::<usize>(), count, "{how}");
        assert_eq!(project.list("outputs"), [""; 0], "{how}");
    }
}

#[test]
fn answers_that_cannot_be_read_are_told_by_name() {
    let rows = [
        ("text", "extractor", "no-json", "ParseError"),
        ("json", "result", "cut", "ParseError"),
        ("text", "judge", "no-yaml", "JUDGE_INVALID_TAP_YAML"),
    ];
    for (envelope, agent, how, error) in rows {
        let (project, _) = fixture_with_fake(envelope, how);
        let agent = format!("{agent}=fake");
        let ran = project.run_unplanned(&["--agent", &agent, "--set", "runs=1"]);
        assert_eq!(
            (ran.code, codes(&ran.records)),
            (1, vec![error.to_owned()]),
            "{how}: {}",
            ran.output
        );
    }
}

/// Each is called once, and not again.
#[test]
fn a_program_that_fails_is_told_by_name() {
    let rows = [
        ("exit", "300s", "AgentProcessError"),
        ("sleep", "500ms", "TimeoutError"),
    ];
    for (how, timeout, error) in rows {
        for agent in ["result", "judge"] {
            let (project, _) = fixture_with_fake("text", how);
            let agent = format!("{agent}=fake");
            let timeout = format!("timeout={timeout}");
            let arguments = ["--agent", &agent, "--set", "runs=1", "--set", &timeout];
            let ran = project.run_unplanned(&arguments);
            assert_eq!(
                (ran.code, codes(&ran.records)),
                (1, vec![error.to_owned()]),
                "{how}: {}",
                ran.output
            );
            let count = if agent.starts_with("judge") { 5 } else { 1 };
            assert_eq!(ran.data("called").count(), count, "{how}");
        }
    }
    let project = fixture();
    declare(&project, "cli = [\"no-such-agent-of-anybody\"]");
    let ran = project.run_unplanned(&["--agent", "fake"]);
    assert_eq!(
        (ran.code, codes(&ran.records)),
        (1, vec!["AgentProcessError".to_owned()]),
        "{}",
        ran.output
    );
    assert_eq!(ran.data("called").count(), 1);
    ran.says("no-such-agent-of-anybody: not found");
}

#[test]
fn killed_at_ten_moments_it_continues_to_the_same_bytes() {
    continues_after_kills(fixture, Project::output_digests);
}

/// The text of each file that stages made, without the line that names the agents: each project has its own fake one.
fn without_agents(project: &Project) -> BTreeMap<String, String> {
    let names = project.output_digests().into_keys();
    let texts = names.map(|name| {
        let text = project.read(&format!("workspace/{name}"));
        let lines = text
            .lines()
            .filter(|line| !line.starts_with("# answered by "));
        let text = lines.collect::<Vec<_>>().join("\n");
        (name, text)
    });
    texts.collect()
}

/// Killed while judges work: no answer that is there is asked for again.
#[test]
fn killed_among_its_judges_it_continues() {
    let (whole, _) = fixture_with_fake("json", "");
    assert_eq!(whole.run_unplanned(&["--agent", "fake"]).code, 0);

    let (project, folder) = fixture_with_fake("json", "");
    let arguments = ["run", "--agent", "fake", "--set", "concurrency=1"];
    let mut command = project.command(&arguments);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    while !folder.join("judge_6").exists() {
        assert_eq!(child.try_wait().unwrap(), None, "it ended before");
        std::thread::park_timeout(Duration::from_millis(2));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let ran = project.run_unplanned(&arguments[1..]);
    assert_eq!(ran.code, 0, "{}", ran.output);
    assert_eq!(without_agents(&project), without_agents(&whole));
    let after = calls(&folder);
    assert_eq!((after["extract"], after["result"]), (1, 4));
    // Repeated are at most those of the run that was under way, and one whose answer was not yet recorded.
    assert!((20..=30).contains(&after["judge"]), "{after:?}");
}
