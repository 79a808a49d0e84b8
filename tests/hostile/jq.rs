//! Filters over hostile inputs end within memory and depth.

mod places;

use crate::support::{Project, RunResult};
use milepost_core::expr::jq::Jq;
use serde_json::json;

/// A stage that runs for each file, with little memory.
fn stage(rest: &str, output: &str) -> String {
    format!(
        r#"
[each.item]
path = "inputs/*.json"

{rest}

[outputs]
made = {{ path = "intermediate/{{{{ item.stem }}}}{output}", schema = false }}

[policy]
on_failure = "continue"

[limits]
memory = "32 MiB"
"#
    )
}

/// A project that runs a stage for each of three files, the second of which is hostile.
fn project(rest: &str, hostile: &str) -> Project {
    let inputs = "[inputs]\ndata = \"{{ item.path }}\"";
    let stage = stage(&format!("{inputs}\n\n{rest}"), ".json");
    Project::new(&[
        ("milepost.toml", "name = \"filters\"\n"),
        ("stages/1_filter.toml", &stage),
        ("workspace/inputs/ann.json", r#"{"n": 3}"#),
        ("workspace/inputs/bo.json", hostile),
        ("workspace/inputs/cy.json", r#"{"n": 4}"#),
    ])
}

/// Runs: the other two batches are made, and the hostile one fails with one of these outcomes.
#[track_caller]
fn fails(project: &Project, codes: &[&str]) -> RunResult {
    let ran = project.run_unplanned(&["-j", "2"]);
    let failed: Vec<_> = ran
        .data("batch_failed")
        .map(|data| (data["batch"].as_str(), data["outcome"]["code"].as_str()))
        .collect();
    let [(Some("bo"), Some(code))] = failed.as_slice() else {
        panic!("{failed:?}\n{}", ran.output);
    };
    assert!(codes.contains(code), "{code}: {}", ran.output);
    assert_eq!(ran.code, 3, "{}", ran.output);
    for name in ["ann", "cy"] {
        let made = format!("workspace/intermediate/{name}.json");
        assert!(project.exists(&made), "{}", ran.output);
    }
    assert!(!project.exists("workspace/intermediate/bo.json"));
    ran
}

const HUGE: &str = r#"{"n": 1000000000000}"#;

#[test]
fn a_program_that_grows_with_a_number_of_its_input_fails_its_batch_only() {
    for (program, codes) in [
        (r#"{made: ("x" * .data.n)}"#, &["MEMORY", "PARSE"][..]),
        ("[range(.data.n)]", &["MEMORY"]),
        ("[limit(.data.n; repeat(1))]", &["MEMORY"]),
        // Recursion as deep as the input says.
        (
            "def f: if . > 0 then (. - 1 | f) + 1 else 0 end; .data.n | f",
            &["CRASH", "MEMORY"],
        ),
        // A value that is nested as deeply as the input says: it overflows the stack when it is written or freed.
        (
            "reduce range([.data.n, 3000000] | min) as $i (null; [.])",
            &["CRASH", "MEMORY"],
        ),
        // Doubles with each step.
        (
            r#"reduce range([.data.n, 100] | min) as $i ("x"; . + .) | length"#,
            &["MEMORY", "CRASH", "PARSE"],
        ),
        (r"[.data.n | while(. > 0; . - 1)] | length", &["MEMORY"]),
        (
            r#"([.data.n, 3000000] | min) as $n | ("[" * $n) + ("]" * $n) | fromjson"#,
            &["MEMORY", "CRASH", "PARSE"],
        ),
    ] {
        let step = format!("[step]\njq = '''{program}'''");
        fails(&project(&step, HUGE), codes);
    }
}

#[test]
fn a_program_that_never_ends_is_ended_by_its_time() {
    let step = "[step]\njq = '[.data | until(.n < 0; .n += (if .n > 4 then 0 else -1 end))] | first'\ntimeout = \"2s\"";
    let ran = fails(&project(step, HUGE), &["TIMEOUT"]);
    ran.says("`jq` took longer than 2.0 s: set `timeout` in the step to give it more");
}

#[test]
fn conditions_and_checks_have_the_same_limits() {
    let made = "[step]\njq = '.data'\n";
    let parts = [
        "[step]\njq = '.data'\nwhen = '[range(.data.n)] | length > 0'".to_owned(),
        format!("{made}\n[[check]]\ntest = '(\"x\" * .made.n | length) > 0'\nerror = \"WRONG\""),
        format!(
            "{made}\n[[require]]\ntest = 'def f: if . > 0 then (. - 1 | f) + 1 else 0 end; (.data.n | f) > 0'\nerror = \"WRONG\""
        ),
    ];
    for part in parts {
        fails(&project(&part, HUGE), &["MEMORY", "CRASH"]);
    }
    let summary = project(made, HUGE);
    let top = "summary = '{n: ([range(.data.n)] | length)}'\n[each.item]";
    summary.edit("stages/1_filter.toml", "[each.item]", top);
    fails(&summary, &["MEMORY"]);
}

#[test]
fn json_that_is_nested_too_deeply_is_refused_with_its_file() {
    for depth in [1000, 1_000_000] {
        let nested = "[".repeat(depth) + &"]".repeat(depth);
        for program in [".data | tostring | length", "[.data | ..] | length"] {
            let step = format!("[step]\njq = '{program}'");
            let ran = fails(&project(&step, &nested), &["INPUT", "PARSE", "CRASH"]);
            ran.says("inputs/bo.json");
        }
    }
}

#[test]
fn values_pass_through_a_worker_unchanged() {
    let value = json!({
        "n": 9_007_199_254_740_993_i64,
        "float": 0.1,
        "large": 1e300,
        "text": "ä\u{0}\u{2028}\"\\",
        "list": [null, true, [], {}],
        "deep": serde_json::from_str::<serde_json::Value>(&("[".repeat(100) + &"]".repeat(100))).unwrap(),
    });
    let inside = project("[step]\njq = '.data'", &value.to_string());
    // `range` makes the program one that runs in a worker.
    let outside = project(
        "[step]\njq = '[range(1)] as $one | .data'",
        &value.to_string(),
    );
    for project in [&inside, &outside] {
        project
            .run_unplanned(&[])
            .expect(0, &["filter/ann", "filter/bo", "filter/cy"]);
    }
    let path = "workspace/intermediate/bo.json";
    assert_eq!(inside.read(path), outside.read(path));
    assert_eq!(outside.json(path)["text"], value["text"]);
}

#[test]
fn programs_that_grow_with_a_number_or_recur_are_not_bounded() {
    let is_bounded = |source: &str| Jq::compile("test", source, &[]).unwrap().is_bounded();
    for source in [
        ".",
        "{a: [.b[] | select(.c > 2) | .d * 2]}",
        "[.a[] as $a | .b[] | select(.id == $a.id)]",
        "def twice: . + .; .a | twice",
    ] {
        assert!(is_bounded(source), "{source}");
    }
    for source in [
        "\"x\" * .n",
        ".a *= .n",
        "[range(.n)]",
        "def f: if . > 0 then . - 1 | f else . end; f",
        "def g: range(.n); [g]",
        "reduce .[] as $x (0; . + $x)",
        "[limit(.n; repeat(1))]",
        "[recurse(.a)]",
        "fromjson",
    ] {
        assert!(!is_bounded(source), "{source}");
    }
}
