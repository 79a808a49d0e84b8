//! Parameters with declared values: a wrong one is refused before anything runs; a date is evaluated at each run.

use crate::support::Project;
use serde_json::json;

/// A stage that would ask an agent outside before it looks at the threshold, and one that writes down the day.
fn scores() -> Project {
    Project::new(&[
        (
            "milepost.toml",
            r#"
name = "scores"

[params]
threshold = { type = "number", default = 85, min = 0, max = 100, description = "per cent" }
formats = { default = ["pdf", "csv"], enum = ["pdf", "csv", "json"] }
today = { type = "date", default = "today" }
size = 3

[workspaces]
select = ".[]"
"#,
        ),
        (
            "stages/1_score.toml",
            "[step]\njq = '{threshold: $params.threshold, formats: $params.formats}'\n\n[outputs]\nscore = { path = \"outputs/score.json\", schema = false }\n",
        ),
        (
            "stages/2_day.toml",
            "[step]\njq = '$params.today'\n\n[outputs]\nday = { path = \"outputs/day.json\", schema = false }\n",
        ),
        ("workspace/inputs/none.txt", ""),
    ])
}

/// 2026-11-22 and the day after, as `SOURCE_DATE_EPOCH`.
const DAYS: [&str; 2] = ["1795305600", "1795392000"];

#[test]
fn a_wrong_value_is_refused_before_anything_runs() {
    for (set, expected) in [
        ("threshold=150", "expected a number from 0 to 100"),
        ("threshold=-0.1", "expected a number from 0 to 100"),
        ("threshold=high", "expected a number from 0 to 100"),
        (
            "formats=pdf,xls",
            "expected a list of `pdf`, `csv` or `json`",
        ),
        (
            "today=soon",
            "expected a date such as 2026-11-23, or `today`",
        ),
        ("size=2.5", "expected a whole number"),
    ] {
        let project = scores();
        for command in ["run", "plan"] {
            let said = project.milepost(&[command, "--set", set]);
            let error = format!("error: --set {set}: {expected}\n");
            assert_eq!(said, (2, error), "{command}");
        }
        assert!(!project.exists("workspace/.milepost"), "{set}");
    }
    let project = scores();
    project
        .run(&["--set", "threshold=99.5", "--set", "formats=json"])
        .expect(0, &["day", "score"]);
    assert_eq!(
        project.json("workspace/outputs/score.json"),
        json!({"threshold": 99.5, "formats": ["json"]})
    );
}

#[test]
fn a_stored_value_that_no_longer_fits_is_refused_with_the_remedy() {
    let project = scores();
    project
        .run(&["--set", "threshold=90"])
        .expect(0, &["day", "score"]);
    project.edit("milepost.toml", "max = 100", "max = 80");
    project.edit("milepost.toml", "default = 85", "default = 75");
    let before = project.tree();
    let said = project.milepost(&["run"]);
    let error = "error: this workspace stores threshold=90, which the parameter no longer accepts: expected a number from 0 to 80\n    help: set another value with `--set threshold=VALUE`, or use the default with `--unset threshold`\n";
    assert_eq!(said, (2, error.to_owned()));
    assert_eq!(project.tree(), before);
    project
        .run(&["--set", "threshold=80"])
        .expect(0, &["score"]);
    project.run(&[]).expect(0, &[]);
}

#[test]
fn the_entries_of_a_list_are_checked_before_the_first_runs() {
    let project = scores();
    project.write(
        "list.json",
        r#"[{"workspace": "a", "threshold": 50}, {"workspace": "b", "threshold": 150}]"#,
    );
    let (code, said) = project.milepost(&["run", "--workspaces", "list.json"]);
    assert_eq!(code, 2, "{said}");
    assert!(
        said.contains("entry 2: threshold=150: expected a number from 0 to 100"),
        "{said}"
    );
    assert!(!project.exists("workspaces"));
}

#[test]
fn a_date_that_is_today_is_evaluated_at_each_run() {
    let mut project = scores();
    project.env("SOURCE_DATE_EPOCH", DAYS[0]);
    project.run(&[]).expect(0, &["day", "score"]);
    // The run before left notes by which the next ones end early.
    project.run(&[]).expect(0, &[]);
    project.run(&[]).expect(0, &[]);
    assert_eq!(
        project.read("workspace/outputs/day.json"),
        "\"2026-11-22\"\n"
    );

    project.env("SOURCE_DATE_EPOCH", DAYS[1]);
    let plan = project.plan(&[]).unwrap();
    let changed = json!([{"batch": "", "reasons": [{
        "reason": "changed", "fact": "param today",
        "old": "\"2026-11-22\"", "new": "\"2026-11-23\"",
    }]}]);
    let will = |stage: usize| plan["stages"][stage]["will"].clone();
    assert_eq!((will(0), will(1)), (json!([]), changed));
    project.run(&[]).expect(0, &["day"]);
    assert_eq!(
        project.read("workspace/outputs/day.json"),
        "\"2026-11-23\"\n"
    );
    assert_eq!(project.run(&[]).expect(0, &[]).records.len(), 0);

    // A day that is set stays, whatever day it is, until `today` is set again.
    project
        .run(&["--set", "today=2027-01-31"])
        .expect(0, &["day"]);
    project.env("SOURCE_DATE_EPOCH", DAYS[0]);
    project.run(&[]).expect(0, &[]);
    project.run(&["--set", "today=today"]).expect(0, &["day"]);
    assert_eq!(
        project.read("workspace/outputs/day.json"),
        "\"2026-11-22\"\n"
    );
}

#[test]
fn the_word_today_for_the_workspace_is_deprecated() {
    let project = scores();
    project.edit(
        "milepost.toml",
        "today = { type = \"date\", default = \"today\" }\n",
        "",
    );
    project.edit("stages/2_day.toml", "$params.today", "$workspace.name");
    let (code, said) = project.milepost(&["run", "--set", "today=2026-11-23"]);
    assert_eq!(code, 0, "{said}");
    let warning = "warning: `--set today` is deprecated in a project without a parameter `today`: it sets `workspace.today` only. Declare `today = { type = \"date\", default = \"today\" }` in `[params]` and mention `params.today`; for the dates in files, set SOURCE_DATE_EPOCH\n";
    assert!(said.contains(warning), "{said}");
}
