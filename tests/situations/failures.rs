//! Failed batches: one exit code for each of them, and an end when their input is deleted.

use super::policies::items;
use crate::support::Project;
use serde_json::{Value, json};

const CONTINUE: &str = "\n[policy]\non_failure = \"continue\"\n";
const PLACEHOLDER: &str = "\n[policy]\nplaceholder = '{item: 0}'\n";

/// What a run printed with `--json`: its exit code, and the code and the word in the result.
fn ended(project: &Project, arguments: &[&str]) -> (i32, Value, Value) {
    let output = project.command(arguments).arg("--json").output().unwrap();
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    let code = output.status.code().unwrap();
    (code, result["exit_code"].clone(), result["status"].clone())
}

#[test]
fn a_failed_batch_gives_1_with_and_without_keep_going() {
    let project = items("");
    project.write("bad", "3\n");
    let failed = (1, json!(1), json!("failed"));
    for arguments in [
        &["run"][..],
        &["run", "-k"],
        &["run"],
        &["run", "work"],
        &["run", "-k", "work"],
        &["run", "--failed", "-k"],
        &["run", "-k", "--force"],
        // The failed batch is in its way.
        &["run", "join"],
        &["run", "-k", "join"],
    ] {
        assert_eq!(ended(&project, arguments), failed, "{arguments:?}");
        let status = project.command(&["status", "--json"]).output().unwrap();
        let status: Value = serde_json::from_slice(&status.stdout).unwrap();
        assert_eq!(status["last_run"]["status"], "failed", "{arguments:?}");
        assert_eq!(
            status["stages"][0]["failed"][0]["batch"], "3",
            "{arguments:?}"
        );
    }
    project.write("bad", "");
    assert_eq!(ended(&project, &["run"]), (0, json!(0), json!("complete")));
}

#[test]
fn a_failed_batch_gives_3_where_the_stage_provides_for_it() {
    for policy in [CONTINUE, PLACEHOLDER] {
        let project = items(policy);
        project.write("bad", "3\n");
        let partial = (3, json!(3), json!("partial"));
        for arguments in [
            &["run"][..],
            &["run", "-k"],
            &["run", "work"],
            &["run", "-k", "work"],
            &["run", "--failed"],
        ] {
            assert_eq!(
                ended(&project, arguments),
                partial,
                "{policy} {arguments:?}"
            );
        }
        // The next stage takes nothing from a partial one: it waits.
        let held = (3, json!(3), json!("held"));
        assert_eq!(ended(&project, &["run", "join"]), held, "{policy}");
    }
}

#[test]
fn what_waits_gives_3_and_what_failed_before_is_not_held_against_it() {
    let project = items("");
    let held = (3, json!(3), json!("held"));
    assert_eq!(ended(&project, &["run", "--limit", "2"]), held);
    project.write("bad", "3\n");
    assert_eq!(ended(&project, &["run"]), (1, json!(1), json!("failed")));
    assert_eq!(ended(&project, &["run", "work/4"]), held);
    assert_eq!(
        ended(&project, &["run", "--limit", "0"]).0,
        1,
        "join is blocked by the failed batch"
    );
}

#[test]
fn an_entry_of_a_manifest_fails_with_and_without_keep_going() {
    let project = items("");
    project.write("bad", "3\n");
    project.write(
        "milepost.toml",
        project.read("milepost.toml") + "\n[workspaces]\nselect = '.[] | {workspace: .}'\n",
    );
    project.write("all/list.json", r#"["one"]"#);
    for more in [&[][..], &["-k"]] {
        let arguments = [&["run", "--workspaces", "all/list.json", "--json"], more].concat();
        let output = project.command(&arguments).output().unwrap();
        let result: Value = serde_json::from_slice(&output.stdout).unwrap();
        let entry = &result["entries"][0];
        assert_eq!(
            (
                output.status.code(),
                &entry["status"],
                &entry["exit_code"],
                &entry["error"]["code"]
            ),
            (Some(1), &json!("failed"), &json!(1), &json!("EXIT")),
            "{more:?}: {result:#}"
        );
    }
}

/// A file each; one that says `bad` fails.
fn files() -> Project {
    Project::new(&[
        ("milepost.toml", "name = \"files\"\n"),
        (
            "stages/1_work.toml",
            r#"
[each.file]
path = "inputs/*.txt"

[step]
command = ["sh", "-c", 'grep -q bad "$1" && exit 7; cp "$1" "$2"', "sh", "{{ file.path }}", "{{ paths.made }}"]

[outputs]
made = "outputs/{{ file.stem }}.out"
"#,
        ),
        ("workspace/inputs/a.txt", "good\n"),
        ("workspace/inputs/b.txt", "good\n"),
    ])
}

#[test]
fn a_failed_batch_whose_input_is_deleted_is_retired_once() {
    // One that was never run, and one that was made before it failed.
    for made_before in [false, true] {
        let project = files();
        if made_before {
            project.run(&[]).expect(0, &["work/a", "work/b"]);
        }
        project.write("workspace/inputs/b.txt", "bad\n");
        assert_eq!(project.run(&["-k"]).code, 1);
        project.remove("workspace/inputs/b.txt");
        let ran = project.run(&[]);
        ran.expect(0, &[]).says("1 batch retired");
        assert_eq!(ran.batches("retired"), ["work/b"]);
        for arguments in [&[][..], &["work"], &[], &["work"]] {
            let before = project.tree();
            let ran = project.run_unplanned(arguments);
            ran.expect(0, &[]).says("nothing changed");
            let mut after = project.tree();
            // Only the cache of up-to-date checks may be written.
            let mut before = before;
            for tree in [&mut before, &mut after] {
                tree.retain(|path, _| !path.is_empty() && !path.starts_with(".milepost"));
            }
            assert_eq!(after, before, "{arguments:?}");
            assert_eq!(ran.records.len(), 0, "{arguments:?}");
        }
        let status = project.command(&["status", "--json"]).output().unwrap();
        let status: Value = serde_json::from_slice(&status.stdout).unwrap();
        let stage = &status["stages"][0];
        assert_eq!(
            (
                &stage["status"],
                &stage["failed"],
                &stage["due"],
                &stage["batches"]
            ),
            (&json!("complete"), &json!([]), &Value::Null, &json!(1))
        );
    }
}

/// `errors` of a step name its failures alone; those of the stage name what other steps do.
#[test]
fn a_step_names_its_own_failures() {
    let stage = |first: &str, second: &str| {
        format!(
            "[[step]]\ncommand = [\"sh\", \"-c\", \"{first}\"]\nout = \"one\"\nerrors = {{ exit = \"First failed\" }}\n\n\
             [[step]]\ncommand = [\"sh\", \"-c\", \"{second}\"]\nout = \"two\"\n\n\
             [outputs]\none = \"outputs/one.txt\"\ntwo = \"outputs/two.txt\"\n\n[errors]\nexit = \"STAGE\"\n"
        )
    };
    for (first, second, code) in [
        ("exit 3", "exit 0", "First failed"),
        ("echo 1 > {{ paths.one }}", "exit 3", "STAGE"),
    ] {
        let project = Project::new(&[
            ("milepost.toml", "name = \"errors\"\n"),
            ("stages/1_work.toml", &stage(first, second)),
        ]);
        let ran = project.run(&[]);
        assert_eq!(ran.code, 1, "{}", ran.output);
        ran.says(&format!("work failed: {code}: "));
    }
}

/// Of two steps with one `out`, the one that runs gives it its value, whichever it is.
#[test]
fn a_skipped_step_leaves_what_the_other_made() {
    for order in ["", " | not"] {
        let project = Project::new(&[
            (
                "milepost.toml",
                "name = \"either\"\n\n[params]\nquick = true\n",
            ),
            (
                "stages/1_work.toml",
                &format!(
                    "summary = '{{made: .text}}'\n\n[[step]]\njq = '\"one\"'\nout = \"text\"\nwhen = '$params.quick{order}'\n\n\
                     [[step]]\njq = '\"two\"'\nout = \"text\"\nwhen = '$params.quick{order} | not'\n\n\
                     [outputs]\ntext = \"outputs/text.txt\"\n"
                ),
            ),
        ]);
        assert_eq!(project.run(&[]).code, 0);
        let made = project.read("workspace/outputs/text.txt");
        assert_eq!(made, if order.is_empty() { "one" } else { "two" });
        assert_eq!(
            project.json("workspace/stage_1_complete.json")["summary"]["made"],
            made.as_str()
        );
    }
}
