//! One run over the workspaces of a list.

use crate::support::Project;
use serde_json::{Value, json};

/// Grades: a request that names more than 100 is refused.
fn grades() -> Project {
    Project::new(&[
        (
            "milepost.toml",
            r#"
name = "grades"

[params]
request = { file = "inputs/request.json" }
bonus = 0

[workspaces]
select = 'sort_by(.order)[] | {workspace: .id, request: .file, bonus}'
summary = 'def of($word): [.entries[] | select(.status == $word) | .workspace]; {dry_run, complete: of("complete"), reused: of("reused"), errors: [.entries[] | select(.error) | {workspace, code: .error.code, message: .error.message}], total: ([.entries[].stages.grade.summary.grade // 0] | add)}'
"#,
        ),
        (
            "stages/1_grade.toml",
            r#"
summary = "{grade: .graded.grade}"

[inputs]
request = { path = "{{ params.request }}", schema = "schemas/request.schema.json" }

[step]
jq = '{grade: (.request.grade + $params.bonus)}'

[outputs]
graded = { path = "outputs/graded.json", schema = false }

[errors]
schema = "WRONG_REQUEST"
"#,
        ),
        (
            "schemas/request.schema.json",
            r#"{"properties": {"grade": {"maximum": 100}}}"#,
        ),
        (
            "all/list.json",
            r#"[
  {"id": "dora", "order": 4, "file": "d.json", "bonus": 5},
  {"id": "anna", "order": 1, "file": "a.json"},
  {"id": "berta", "order": 2, "file": "missing.json"},
  {"id": "carla", "order": 3, "file": "c.json"}
]"#,
        ),
        ("all/a.json", r#"{"grade": 80}"#),
        ("all/c.json", r#"{"grade": 101}"#),
        ("all/d.json", r#"{"grade": 60}"#),
    ])
}

fn summary(project: &Project, code: i32, more: &[&str]) -> Value {
    let output = project
        .command(&["run", "--workspaces", "all/list.json", "--json"])
        .args(more)
        .output()
        .unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{err}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn each_entry_has_its_workspace_and_fails_alone() {
    let project = grades();
    let first = summary(&project, 1, &[]);
    assert_eq!(
        (&first["complete"], &first["reused"], &first["total"]),
        (&json!(["anna", "dora"]), &json!([]), &json!(145))
    );
    let errors = first["errors"].as_array().unwrap();
    assert_eq!(errors.len(), 2, "{errors:?}");
    assert_eq!(
        (&errors[0]["workspace"], &errors[0]["code"]),
        (&json!("berta"), &json!("ERROR"))
    );
    let message = errors[0]["message"].as_str().unwrap();
    assert!(
        message.starts_with("`--set request=missing.json`: there is no such file"),
        "{message}"
    );
    assert_eq!(
        (&errors[1]["workspace"], &errors[1]["code"]),
        (&json!("carla"), &json!("WRONG_REQUEST"))
    );
    assert_eq!(
        project.json("workspaces/dora/outputs/graded.json"),
        json!({"grade": 65})
    );
    assert!(!project.exists("workspaces/carla/outputs/graded.json"));
    // What is right is not done again.
    project.write("all/c.json", r#"{"grade": 99}"#);
    project.write("all/missing.json", r#"{"grade": 1}"#);
    assert_eq!(
        summary(&project, 0, &[]),
        json!({"dry_run": false, "complete": ["berta", "carla"], "reused": ["anna", "dora"], "errors": [], "total": 245})
    );
    // Another place, and a value for all of them.
    assert_eq!(
        summary(&project, 0, &["--workspace", "other", "--set", "bonus=10"])["total"],
        json!(280)
    );
    assert_eq!(
        project.json("other/anna/outputs/graded.json"),
        json!({"grade": 90})
    );
}

#[test]
fn a_dry_run_writes_nothing() {
    let project = grades();
    let before = project.tree();
    let planned = summary(&project, 1, &["-n"]);
    assert_eq!(
        (&planned["dry_run"], &planned["complete"]),
        (&json!(true), &json!([]))
    );
    assert_eq!(project.tree(), before);
    // That a request is wrong is found by doing; that a file is not there is seen.
    assert_eq!(planned["errors"].as_array().unwrap().len(), 1);
    project.edit("all/list.json", "missing.json", "a.json");
    let before = project.tree();
    assert_eq!(summary(&project, 0, &["-n"])["errors"], json!([]));
    assert_eq!(project.tree(), before);
}

#[test]
fn the_table_says_how_each_ended() {
    let project = grades();
    let (code, said) = project.milepost(&["run", "--workspaces", "all/list.json"]);
    assert_eq!(code, 1);
    for line in [
        "anna (1 of 4)",
        "dora (4 of 4)",
        "4 workspaces, 2 not complete",
        "WRONG_REQUEST: grade: ",
    ] {
        assert!(said.contains(line), "not said: {line}\n{said}");
    }
    // Each error is printed once, without a code that says nothing.
    let table = said.split("\n{").next().unwrap();
    assert_eq!(table.matches("there is no such file").count(), 1, "{said}");
    assert!(!table.contains(" ERROR"), "{said}");
    project.edit("milepost.toml", "summary =", "# summary =");
    let all = summary(&project, 1, &[]);
    let anna = &all["entries"][0];
    assert_eq!(
        json!([
            anna["workspace"],
            anna["status"],
            anna["exit_code"],
            anna["error"],
            anna["params"],
            anna["stages"],
            anna["usage"]
        ]),
        json!(["anna", "reused", 0, null, {"request": "a.json", "bonus": null},
            {"grade": {"status": "complete", "summary": {"grade": 80}}}, {"calls": 0, "tokens": 0, "cost_usd": 0.0}])
    );
}

#[test]
fn a_wrong_list_is_rejected_before_anything_runs() {
    let project = grades();
    let wrong = |list: &str, says: &str| {
        project.write("all/list.json", list);
        let (code, said) = project.milepost(&["run", "--workspaces", "all/list.json"]);
        assert!(code == 2 && said.contains(says), "{code} {said}");
        assert!(!project.exists("workspaces"));
    };
    wrong(
        "[{\"order\": 1}]",
        "entry 1: expected an object with `workspace`, the name of a folder, and parameters",
    );
    wrong("[{\"id\": \"../x\"}]", "leaves its folder by `..`");
    wrong(
        "[{\"id\": \"x\"}, {\"id\": \"X\"}]",
        "`x` and `X` are one folder, or differ only in letter case: list each workspace once",
    );
    wrong(
        "[{\"id\": \"x\"}, {\"id\": \"x\"}]",
        "the workspace `x` is listed twice",
    );
    wrong("{", "list.json");
    project.edit("milepost.toml", "select =", "# select =");
    wrong(
        "{}",
        "expected a list: `select` under [workspaces] in milepost.toml can select one",
    );
    project.write("all/list.csv", "a,b\n");
    let (code, said) = project.milepost(&["run", "--workspaces", "all/list.csv"]);
    let why = "all/list.csv`: the table has no rows: its first line names the columns";
    assert!(code == 2 && said.contains(why), "{code} {said}");
    let (code, said) = project.milepost(&["run", "--workspaces", "nowhere.json"]);
    assert!(code == 2 && said.contains("nowhere.json"), "{said}");
    let (code, said) = project.milepost(&["status", "--workspaces", "all/list.json"]);
    assert!(code == 2, "{said}");
}

#[test]
fn old_names_of_flag_and_table_work_with_a_warning() {
    let project = grades();
    project.edit("milepost.toml", "[workspaces]", "[manifest]");
    project.write("all/list.json", r#"[{"id": "anna", "file": "a.json"}]"#);
    let output = project
        .command(&["run", "--manifest", "all/list.json", "--json"])
        .output()
        .unwrap();
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(summary["complete"], json!(["anna"]));
    let err = String::from_utf8(output.stderr).unwrap();
    let warnings: Vec<&str> = err
        .lines()
        .filter(|line| line.starts_with("warning:"))
        .collect();
    assert_eq!(
        warnings,
        [
            "warning: `--manifest` is now `--workspaces`; the next version removes the old name",
            "warning: milepost.toml:8:2: `[manifest]` is now `[workspaces]` (rename it: the next version removes the old name)",
        ]
    );
    let (_, help) = project.milepost(&["run", "--help"]);
    assert!(help.contains("--workspaces <FILE>") && !help.contains("--manifest"));
}

#[test]
fn a_workspace_of_a_list_is_named_once_however_it_is_written() {
    let project = grades();
    let wrong = |names: [&str; 2], says: &str| {
        let rows = names.map(|name| json!({"id": name, "file": "a.json"}));
        project.write("all/list.json", json!(rows).to_string());
        let (code, said) = project.milepost(&["run", "--workspaces", "all/list.json"]);
        assert!(code == 2 && said.contains(says), "{code} {said}");
        assert!(!project.exists("workspaces/a"));
    };
    wrong(["a", "./a"], "the workspace `a` is listed twice");
    wrong(["a", "a/"], "the workspace `a` is listed twice");
    wrong(["b/../a", "a"], "leaves its folder by `..`");
    wrong(
        ["x/y", "x"],
        "the workspace `x/y` lies in the workspace `x`: give it a folder of its own",
    );
    std::fs::create_dir(project.at("workspaces")).unwrap();
    std::fs::create_dir(project.at("elsewhere")).unwrap();
    for link in ["workspaces/one", "workspaces/two"] {
        std::os::unix::fs::symlink(project.at("elsewhere"), project.at(link)).unwrap();
    }
    wrong(["one", "two"], "`one` and `two` are one folder");
}
