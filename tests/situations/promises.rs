//! What a run must not leave behind, overlook or repeat: files that shrank, failed tries, scripts, referenced schemas, time.

use crate::support::Project;
use serde_json::json;

const CUT: &str = r#"
[inputs]
lines = "inputs/lines.txt"
[step]
command = ["sh", "project:tools/cut.sh", "{{ paths.lines }}", "{{ paths.part }}"]
[outputs]
part = { path = "intermediate/part_*.json", schema = false }
[[check]]
test = '($part | length) <= $params.most'
"#;

const ALL: &str = r#"
verdict = '($all | length) >= $params.least'
[inputs]
part = "intermediate/part_*.json"
[step]
jq = '[.part[].l]'
[outputs]
all = "outputs/all.json"
"#;

const SCRIPT: &str = r#"i=0; while read -r line; do i=$((i + 1)); echo "{\"l\": \"$line\"}" > "$(echo "$2" | sed "s/\*/$i/")"; done < "$1""#;

/// Lines cut into a file each, and joined; run once.
fn cut() -> Project {
    let project = Project::new(&[
        (
            "milepost.toml",
            "name = \"cut\"\n[params]\nmost = 9\nleast = 1\n",
        ),
        ("stages/1_cut.toml", CUT),
        ("stages/2_all.toml", ALL),
        ("tools/cut.sh", SCRIPT),
        (
            "schemas/all.schema.json",
            r#"{"type": "array", "items": {"$ref": "parts/line.schema.json"}}"#,
        ),
        ("schemas/parts/line.schema.json", r#"{"type": "string"}"#),
        ("workspace/inputs/lines.txt", "a\nb\nc\n"),
    ]);
    project.run(&[]).expect(0, &["all", "cut"]);
    project
}

#[test]
fn files_that_a_batch_makes_no_more_go_to_quarantine() {
    let project = cut();
    project.write("workspace/inputs/lines.txt", "a\nb\n");
    project.run(&[]).expect(0, &["all", "cut"]);
    assert_eq!(project.list("intermediate"), ["part_1.json", "part_2.json"]);
    assert_eq!(project.quarantine(), ["intermediate/part_3.json"]);
    assert_eq!(
        project.json("workspace/outputs/all.json"),
        json!(["a", "b"])
    );
    project.run(&[]).expect(0, &[]);
}

#[test]
fn the_output_of_a_step_that_is_skipped_goes_to_quarantine() {
    let project = Project::new(&[
        ("milepost.toml", "name = \"skip\"\n[params]\nwith = true\n"),
        (
            "stages/1_two.toml",
            r#"
[[step]]
jq = '1'
out = "one"
[[step]]
jq = '2'
when = '$params.with'
out = "two"
[outputs]
one = { path = "outputs/one.json", schema = false }
two = { path = "outputs/two.json", schema = false }
"#,
        ),
    ]);
    project.run(&[]).expect(0, &["two"]);
    assert_eq!(project.list("outputs"), ["one.json", "two.json"]);
    project.run(&["--set", "with=false"]).expect(0, &["two"]);
    assert_eq!(project.list("outputs"), ["one.json"]);
    assert_eq!(project.quarantine(), ["outputs/two.json"]);
}

#[test]
fn a_script_of_the_project_is_an_input() {
    let project = cut();
    project.write("tools/cut.sh", format!("{SCRIPT}\n# the same\n"));
    project.run(&[]).expect(0, &["cut"]);
    project.remove("tools/cut.sh");
    let (code, said) = project.milepost(&["run"]);
    assert_eq!(code, 4, "{said}");
}

#[test]
fn a_schema_that_another_refers_to_is_judged_by() {
    let project = cut();
    project.write(
        "schemas/parts/line.schema.json",
        r#"{"type": "string", "maxLength": 5}"#,
    );
    let ran = project.run(&[]);
    ran.expect(0, &[]);
    assert_eq!(ran.judged(), ["all"]);
    project.write("schemas/parts/line.schema.json", r#"{"type": "number"}"#);
    project
        .run(&[])
        .expect(1, &["all"])
        .says("a number was expected");
    project.remove("schemas/parts/line.schema.json");
    let (code, said) = project.milepost(&["plan"]);
    assert_eq!(code, 4, "{said}");
    assert!(
        said.contains("there is no `schemas/parts/line.schema.json` in the project")
            && said.contains("schemas/all.schema.json:1:"),
        "{said}"
    );
}

#[test]
fn what_only_checks_and_verdicts_mention_runs_nothing() {
    let project = cut();
    let ran = project.run(&["--set", "most=8"]);
    ran.expect(0, &[]);
    assert_eq!(ran.judged(), ["cut"]);
    let ran = project.run(&["--set", "least=4"]);
    ran.expect(1, &[]);
    assert_eq!(ran.judged(), ["all"]);
    assert_eq!(
        project.json("workspace/stage_2_complete.json")["verdict"],
        false
    );
    let ran = project.run(&["--set", "most=2"]);
    ran.expect(1, &["cut"]);
}

#[test]
fn an_input_is_judged_again_when_its_schema_changes() {
    let project = Project::new(&[
        ("milepost.toml", "name = \"x\"\n"),
        (
            "stages/1_copy.toml",
            "[inputs]\nn = { path = \"inputs/n.json\", schema = \"schemas/n.schema.json\" }\n[step]\ncopy = \"n\"\n[outputs]\nout = { path = \"outputs/n.json\", schema = false }\n",
        ),
        ("schemas/n.schema.json", r#"{"type": "number"}"#),
        ("workspace/inputs/n.json", "1"),
    ]);
    project.run(&[]).expect(0, &["copy"]);
    project.write(
        "schemas/n.schema.json",
        r#"{"type": "number", "minimum": 1}"#,
    );
    let ran = project.run(&[]);
    ran.expect(0, &[]);
    assert_eq!(ran.judged(), ["copy"]);
    project.write("schemas/n.schema.json", r#"{"type": "string"}"#);
    project.run(&[]).expect(1, &["copy"]).says("inputs/n.json");
}

#[test]
fn a_failed_try_leaves_nothing_to_the_next() {
    let project = Project::new(&[
        ("milepost.toml", "name = \"x\"\n"),
        (
            "stages/1_make.toml",
            r#"
[step]
command = ["sh", "-c", "if test -e tried; then echo 1 > $0/p_1.json; else touch tried; echo 1 > $0/p_1.json; echo 2 > $0/p_2.json; exit 3; fi", "{{ paths.part | replace('/p_*.json', '') }}"]
attempts = 2
[outputs]
part = { path = "outputs/p_*.json", schema = false }
"#,
        ),
    ]);
    let ran = project.run(&[]);
    ran.expect(0, &["make"]);
    assert_eq!(ran.batches("attempt_failed"), ["make"]);
    assert_eq!(project.list("outputs"), ["p_1.json"]);
}

#[test]
fn a_stage_whose_time_is_over_fails_what_is_left_of_it() {
    let project = Project::new(&[
        ("milepost.toml", "name = \"x\"\n"),
        (
            "stages/1_wait.toml",
            r#"
[each.n]
count = 4
[step]
command = ["sh", "-c", "sleep $0; echo 1 > $1", "{{ (n - 1) * 30 }}", "{{ paths.out }}"]
[outputs]
out = { path = "outputs/{{ n }}.json", schema = false }
[policy]
timeout = "1s"
on_failure = "continue"
"#,
        ),
    ]);
    let ran = project.run(&[]);
    ran.expect(3, &["wait/1", "wait/2", "wait/3", "wait/4"])
        .says("stage `wait` exceeded its time limit");
    let failed: Vec<_> = ran
        .data("batch_failed")
        .map(|data| (data["batch"].clone(), data["outcome"]["kind"].clone()))
        .collect();
    assert_eq!(
        failed,
        ["2", "3", "4"].map(|batch| (json!(batch), json!("timeout")))
    );
}

#[test]
fn batches_known_by_other_keys_and_stages_by_other_names_take_their_files_along() {
    let project = Project::new(&[
        ("milepost.toml", "name = \"x\"\n"),
        (
            "stages/1_each.toml",
            r#"
[each.n]
values = ["a", "b"]
[step]
jq = '.n'
[outputs]
out = { path = "outputs/{{ n }}.json", schema = false }
"#,
        ),
    ]);
    project.run(&[]).expect(0, &["each/a", "each/b"]);
    project.edit("stages/1_each.toml", "values", "key = '. + \"1\"'\nvalues");
    let ran = project.run(&[]);
    ran.expect(0, &["each/a1", "each/b1"]);
    assert_eq!(ran.retired(), ["outputs/a.json", "outputs/b.json"]);
    project.rename("stages/1_each.toml", "stages/1_all.toml");
    project.run(&[]).expect(0, &["all/a1", "all/b1"]);
    assert_eq!(project.list("outputs"), ["a.json", "b.json"]);
}

#[test]
fn a_stage_by_another_name_makes_its_list_anew_and_what_reads_it_may_run() {
    let project = cut();
    project.rename("stages/1_cut.toml", "stages/1_chop.toml");
    project.run(&[]).expect(0, &["chop"]);
}

#[test]
fn an_input_that_changes_while_it_is_read_is_read_again() {
    let project = Project::new(&[
        ("milepost.toml", "name = \"x\"\n"),
        (
            "stages/1_copy.toml",
            "[inputs]\nn = \"inputs/n.txt\"\n[step]\ncommand = [\"sh\", \"-c\", \"cp $0 $1; test -s $0 && : > $0 || :\", \"{{ paths.n }}\", \"{{ paths.out }}\"]\n[outputs]\nout = \"outputs/n.txt\"\n",
        ),
        ("workspace/inputs/n.txt", "one"),
    ]);
    let ran = project.run(&[]);
    ran.expect(3, &["copy"])
        .says("`inputs/n.txt` changed while it was read");
    assert!(!project.exists("workspace/stage_1_complete.json"));
    project.run(&[]).expect(0, &["copy"]);
    assert_eq!(project.read("workspace/outputs/n.txt"), "");
}

#[test]
fn a_placeholder_or_an_item_declared_otherwise_runs_nothing() {
    let project = Project::new(&[
        ("milepost.toml", "name = \"x\"\n"),
        (
            "stages/1_each.toml",
            r#"
[each.row]
from = "inputs/rows.json"
select = "filters/rows.jq"
[step]
jq = '.row'
[outputs]
out = { path = "outputs/{{ row }}.json", schema = false }
[policy]
placeholder = '{failed: .outcome}'
"#,
        ),
        ("filters/rows.jq", ".[]"),
        ("workspace/inputs/rows.json", "[1, 2]"),
    ]);
    project.run(&[]).expect(0, &["each/1", "each/2"]);
    project.edit("stages/1_each.toml", "failed:", "left_out:");
    project.write("filters/rows.jq", ".[] | .");
    project.run(&[]).expect(0, &[]);
}

#[test]
fn a_batch_whose_item_an_earlier_stage_may_change_says_so() {
    let project = Project::new(&[
        ("milepost.toml", "name = \"x\"\n"),
        (
            "stages/1_rows.toml",
            r#"
[inputs]
given = "inputs/given.json"
[step]
jq = '$given'
[outputs]
rows = { path = "intermediate/rows.json", schema = false }
"#,
        ),
        (
            "stages/2_each.toml",
            r#"
[each.row]
from = "intermediate/rows.json"
select = '.[]'
key = '.id'
[step]
jq = '.row.say'
[outputs]
out = { path = "outputs/{{ row.id }}.json", schema = false }
"#,
        ),
        (
            "workspace/inputs/given.json",
            r#"[{"id": 1, "say": "a"}, {"id": 2, "say": "b"}]"#,
        ),
    ]);
    project.run(&[]).expect(0, &["each/1", "each/2", "rows"]);
    project.edit("workspace/inputs/given.json", r#""b""#, r#""c""#);
    let plan = project.plan(&[]).unwrap();
    let waits =
        json!([{"condition": "item_changes", "stage": "rows", "path": "intermediate/rows.json"}]);
    let may = |batch: &str| json!({"batch": batch, "conditions": waits.clone()});
    assert_eq!(plan["stages"][1]["may"], json!([may("1"), may("2")]));
    project.run(&[]).expect(0, &["each/2", "rows"]);
    assert_eq!(project.json("workspace/outputs/2.json"), "c");
    project.run(&[]).expect(0, &[]);
}
