//! What fails, how far the run goes on, and what of a pipeline is asked for.

use crate::support::Project;
use serde_json::json;

/// Items 1 to 5 are worked on, those listed in the file that `BAD` names fail; then they are joined.
pub fn items(policy: &str) -> Project {
    let work = format!(
        r#"
[each.item]
count = 5

[step]
command = ["sh", "-c", 'grep -qx "$1" "$BAD" && {{ echo "no good: $1" >&2; exit 7; }}; echo "{{\"item\": $1}}" > "$2"', "sh", "{{{{ item }}}}", "{{{{ paths.made }}}}"]
env = ["BAD"]

[outputs]
made = {{ path = "intermediate/item_{{{{ item }}}}.json", schema = false }}
{policy}"#
    );
    let mut project = Project::new(&[
        (
            "milepost.toml",
            "name = \"items\"\n\n[env]\nBAD = \"/dev/null\"\n",
        ),
        ("stages/1_work.toml", &work),
        (
            "stages/2_join.toml",
            "[inputs]\nall = \"intermediate/item_*.json\"\n\n[step]\njq = '[.all[].item]'\n\n[outputs]\njoined = { path = \"outputs/joined.json\", schema = false }\n",
        ),
        ("bad", ""),
        ("workspace/inputs/none", ""),
    ]);
    let bad = project.at("bad").display().to_string();
    project.env("BAD", &bad);
    project
}

#[test]
fn the_run_stops_at_the_first_failure_and_continues_from_there() {
    let project = items("");
    project.write("bad", "3\n");
    let ran = project.run(&[]);
    ran.expect(1, &["work/1", "work/2", "work/3"])
        .says("work/3")
        .says("`sh` ended with exit code 7")
        .says("no good: 3");
    assert!(!project.exists("workspace/stage_1_complete.json"));
    let progress = project.json("workspace/work_progress.json");
    assert_eq!(progress["completed_batches"], json!([1, 2]));
    assert_eq!(progress["failed_batches"], json!(["3"]));
    assert_eq!(
        (&progress["status"], &progress["total_batches"]),
        (&json!("failed"), &json!(5))
    );
    project.write("bad", "");
    project
        .run(&[])
        .expect(0, &["join", "work/3", "work/4", "work/5"]);
    assert_eq!(
        project.json("workspace/outputs/joined.json"),
        json!([1, 2, 3, 4, 5])
    );
}

#[test]
fn a_failed_batch_does_not_leave_what_it_made_before_to_later_stages() {
    let project = items("\n[policy]\non_failure = \"continue\"\n");
    project.write(
        "stages/2_join.toml",
        format!(
            "allow_partial = true\n{}",
            project.read("stages/2_join.toml")
        ),
    );
    project.run(&[]).expect(
        0,
        &["join", "work/1", "work/2", "work/3", "work/4", "work/5"],
    );
    project.write("bad", "2\n");
    project.run(&["--force", "work/2"]).expect(3, &["work/2"]);
    project.run(&[]).expect(3, &["join", "work/2"]);
    assert_eq!(
        project.json("workspace/outputs/joined.json"),
        json!([1, 3, 4, 5])
    );
    // What reads what is partial is partial at best.
    assert_eq!(
        project.json("workspace/stage_2_complete.json")["status"],
        "partial"
    );
}

#[test]
fn failures_may_be_limited_by_number_or_by_share() {
    for (limit, tried) in [
        ("2", &["work/1", "work/2"][..]),
        ("0.5", &["work/1", "work/2", "work/3"]),
    ] {
        let project = items(&format!(
            "\n[policy]\non_failure = \"continue\"\nmax_failures = {limit}\n"
        ));
        project.write("bad", "1\n2\n3\n4\n5\n");
        let ran = project.run(&[]);
        assert_eq!(
            (ran.code, ran.tried()),
            (1, tried.iter().map(ToString::to_string).collect()),
            "{limit}: {}",
            ran.output
        );
    }
}

#[test]
fn a_limit_does_so_many_batches_and_the_next_run_continues() {
    let project = items("");
    project
        .run(&["--limit", "2"])
        .expect(3, &["work/1", "work/2"]);
    assert_eq!(
        project.json("workspace/work_progress.json")["status"],
        "held"
    );
    project
        .run(&["--limit", "3"])
        .expect(3, &["work/3", "work/4", "work/5"]);
    project.run(&["--limit", "1"]).expect(0, &["join"]);
}

#[test]
fn a_limit_that_leaves_a_changed_batch_out_holds_what_follows() {
    let project = items("");
    project.run(&[]);
    project.edit("stages/1_work.toml", "no good", "not good");
    project
        .run(&["--limit", "2"])
        .expect(3, &["work/1", "work/2"]);
    project.run(&["--limit", "0"]).expect(3, &[]);
    project.run(&[]).expect(0, &["work/3", "work/4", "work/5"]);
}

#[test]
fn a_stage_or_a_batch_may_be_named() {
    let project = items("");
    project
        .run(&["work/2", "work/4"])
        .expect(3, &["work/2", "work/4"]);
    project
        .run(&["join"])
        .expect(3, &[])
        .says("stage `work` is not complete");
    project
        .run(&["work"])
        .expect(0, &["work/1", "work/3", "work/5"]);
    project.run(&["2"]).expect(0, &["join"]);
    project.run(&["--force", "work/3"]).expect(0, &["work/3"]);
    project.run(&["-B", "join"]).expect(0, &["join"]);
    project.edit("stages/1_work.toml", "no good", "not good");
    project
        .run(&["join"])
        .expect(3, &[])
        .says("stage `work` is out of date");
    project
        .run(&["--until", "work"])
        .expect(0, &["work/1", "work/2", "work/3", "work/4", "work/5"]);
}

#[test]
fn a_step_that_fails_is_tried_again() {
    let mut project = Project::new(&[
        ("milepost.toml", "name = \"again\"\n\n[env]\nTRIES = \"\"\n"),
        (
            "stages/1_try.toml",
            "[step]\ncommand = ['echo x >> \"$TRIES\"; test $(wc -l < \"$TRIES\") -ge 2 && echo done > \"$1\"', \"{{ paths.made }}\"]\nenv = [\"TRIES\"]\nattempts = 3\n\n[outputs]\nmade = \"outputs/made.txt\"\n",
        ),
    ]);
    project.edit("stages/1_try.toml", "[\'echo", "[\"sh\", \"-c\", \'echo");
    project.edit("stages/1_try.toml", "', \"{{", "', \"sh\", \"{{");
    let tries = project.at("tries").display().to_string();
    project.env("TRIES", &tries);
    let ran = project.run(&[]);
    ran.expect(0, &["try"]);
    assert_eq!(
        ran.data("attempt_started")
            .map(|data| data["attempt"].as_u64().unwrap())
            .collect::<Vec<_>>(),
        [1, 2]
    );
    assert_eq!(ran.data("attempt_failed").count(), 1);
    assert_eq!(project.read("tries"), "x\nx\n");
    assert_eq!(
        ran.data("published").next().unwrap()["record"]["attempts"],
        2
    );
}

#[test]
fn a_placeholder_stands_for_a_batch_that_lacks_an_input() {
    let stage = r#"
[each.name]
values = ["ann", "bob"]

[inputs]
text = "inputs/{{ name }}.json"

[step]
jq = ".text"

[outputs]
made = { path = "outputs/{{ name }}.json", schema = false }

[policy]
placeholder = "{error: .error_code}"
"#;
    let project = Project::new(&[
        ("milepost.toml", "name = \"placeholders\"\n"),
        ("stages/1_take.toml", stage),
        ("workspace/inputs/bob.json", "1"),
    ]);
    project
        .run_unplanned(&[])
        .expect(3, &["take/ann", "take/bob"]);
    assert_eq!(
        project.json("workspace/outputs/ann.json"),
        json!({"error": "INPUT"})
    );
    assert_eq!(project.json("workspace/outputs/bob.json"), json!(1));
    project.write("workspace/inputs/ann.json", "2");
    project.run(&[]).expect(0, &["take/ann"]);
    assert_eq!(project.json("workspace/outputs/ann.json"), json!(2));
}

#[test]
fn a_program_that_is_not_there_is_not_tried_again() {
    for command in ["\"no-such-program-here\"", "[\"no-such-program-here\"]"] {
        let stage = format!(
            "[step]\ncommand = {command}\nattempts = 3\n[outputs]\nmade = \"outputs/made.txt\"\n"
        );
        let project = Project::new(&[
            ("milepost.toml", "name = \"programs\"\n"),
            ("stages/1_make.toml", &stage),
        ]);
        let ran = project.run(&[]);
        ran.expect(1, &["make"]).says("not found");
        assert!(!ran.output.contains("again in"), "{}", ran.output);
        assert_eq!(ran.data("attempt_failed").count(), 0, "{}", ran.output);
    }
}
