//! What declarations can say, each thing once, by what lies on the disk afterwards.

use crate::support::Project;
use serde_json::json;

fn project(stages: &[(&str, &str)]) -> Project {
    let project = Project::new(&[
        (
            "milepost.toml",
            "name = \"language\"\n\n[params]\nloud = false\ntimes = 3\n\n[env]\nWHO = \"world\"\n",
        ),
        ("workspace/inputs/a.txt", "a\n"),
    ]);
    for (path, text) in stages {
        project.write(path, text);
    }
    project
}

#[test]
fn two_rows_of_one_key_are_an_error() {
    let project = project(&[
        (
            "stages/1_row.toml",
            "[each.row]\nfrom = \"inputs/rows.csv\"\nselect = '.[]'\nkey = '.id'\n\n[step]\njq = '.row.name'\n\n[outputs]\nmade = { path = \"intermediate/{{ row.id }}.json\", schema = false }\n",
        ),
        ("workspace/inputs/rows.csv", "id,name\nx,Ex\nx,Why\n"),
    ]);
    project
        .run(&[])
        .expect(1, &[])
        .says("two batches with the key `x`");
}

#[test]
fn an_empty_list_of_batches_is_complete() {
    let project = project(&[
        (
            "stages/1_row.toml",
            "[each.row]\nfrom = \"inputs/rows.csv\"\nselect = '.[]'\nkey = '.id'\n\n[step]\njq = '.row.name'\n\n[outputs]\nmade = { path = \"intermediate/{{ row.id }}.json\", schema = false }\n",
        ),
        (
            "stages/2_join.toml",
            "[inputs]\nall = \"intermediate/*.json\"\n\n[step]\njq = '.all | length'\n\n[outputs]\njoined = { path = \"outputs/joined.json\", schema = false }\n",
        ),
        ("workspace/inputs/rows.csv", "id,name\n"),
    ]);
    project.run(&[]).expect(0, &["join"]);
    assert_eq!(project.json("workspace/outputs/joined.json"), json!(0));
    assert_eq!(
        project.json("workspace/stage_1_complete.json")["batches"],
        0
    );
    project.run(&[]).expect(0, &[]);
}

#[test]
fn several_steps_hand_on_what_they_make_and_one_may_be_skipped() {
    let project = project(&[
        (
            "stages/1_steps.toml",
            r#"
[inputs]
text = "inputs/a.txt"

[[step]]
copy = "text"
out = "copied"

[[step]]
jq = '{text: $text, loud: $params.loud}'
out = "data"

[[step]]
when = '$params.loud'
render = "templates/loud.txt"
out = "loud"

[[step]]
render = "templates/all.txt"
out = "all"

[outputs]
copied = "outputs/copied.txt"
loud = "outputs/loud.txt"
all = "outputs/all.txt"
"#,
        ),
        ("templates/loud.txt", "{{ data.text | upper }}"),
        (
            "templates/all.txt",
            "{{ data.text }}{% if loud %}{{ loud }}{% else %}quiet{% endif %}",
        ),
    ]);
    project.run(&[]).expect(0, &["steps"]);
    assert_eq!(project.list("outputs"), ["all.txt", "copied.txt"]);
    assert_eq!(project.read("workspace/outputs/all.txt"), "a\nquiet");
    project.run(&["--set", "loud=true"]).expect(0, &["steps"]);
    assert_eq!(
        project.list("outputs"),
        ["all.txt", "copied.txt", "loud.txt"]
    );
    project.run(&["--set", "loud=false"]).expect(0, &["steps"]);
    assert_eq!(project.list("outputs"), ["all.txt", "copied.txt"]);
}

#[test]
fn a_command_reads_standard_input_sees_declared_variables_and_makes_many_files() {
    let mut project = project(&[(
        "stages/1_split.toml",
        r#"
summary = '{parts: ($parts | length), warnings: ["two is few"]}'

[inputs]
text = "inputs/a.txt"

[step]
command = ["sh", "-c", 'read line; for n in 1 2; do echo "$line $WHO $HIDDEN $n" > "${1%\*.txt}$n.txt"; done; echo done > "$2"', "sh", "{{ paths.parts }}", "{{ paths.log }}"]
stdin = "text"
env = ["WHO"]

[outputs]
parts = "intermediate/part_*.txt"
log = "outputs/log.txt"
"#,
    )]);
    project.env("HIDDEN", "hidden");
    let ran = project.run(&[]);
    ran.says("two is few");
    ran.expect(0, &["split"]);
    assert_eq!(project.list("intermediate"), ["part_1.txt", "part_2.txt"]);
    assert_eq!(
        project.read("workspace/intermediate/part_2.txt"),
        "a world  2\n"
    );
    assert_eq!(
        project.json("workspace/stage_1_complete.json")["summary"]["parts"],
        2
    );
    project.edit("stages/1_split.toml", "for n in 1 2", "for n in 2 3");
    project.run(&[]).expect(0, &["split"]);
    assert_eq!(project.list("intermediate"), ["part_2.txt", "part_3.txt"]);
    project.run(&[]).expect(0, &[]);
}

#[test]
fn inputs_may_be_named_by_a_file_and_may_be_absent() {
    let project = project(&[
        (
            "stages/1_read.toml",
            "[inputs]\nlist = \"inputs/list.json\"\nnote = { path = \"inputs/note.txt\", optional = true }\n\n[inputs.named]\nfrom = \"inputs/list.json\"\nselect = '.files[]'\nbase = \"inputs/files\"\n\n[step]\njq = '{named: $named, note: $note}'\n\n[outputs]\nmade = { path = \"outputs/made.json\", schema = false }\n",
        ),
        (
            "workspace/inputs/list.json",
            r#"{"files": ["x.txt", "sub/y.txt"]}"#,
        ),
        ("workspace/inputs/files/x.txt", "x"),
        ("workspace/inputs/files/sub/y.txt", "y"),
        ("workspace/inputs/files/z.txt", "z"),
    ]);
    project.run(&[]).expect(0, &["read"]);
    assert_eq!(
        project.json("workspace/outputs/made.json"),
        json!({"named": ["x", "y"], "note": null})
    );
    project.write("workspace/inputs/files/z.txt", "zz");
    project.run(&[]).expect(0, &[]);
    project.write("workspace/inputs/note.txt", "n");
    project.run(&[]).expect(0, &["read"]);
    project.write("workspace/inputs/files/sub/y.txt", "yy");
    project.run(&[]).expect(0, &["read"]);
    assert_eq!(
        project.json("workspace/outputs/made.json"),
        json!({"named": ["x", "yy"], "note": "n"})
    );
    project.remove("workspace/inputs/note.txt");
    project.run(&[]).expect(0, &["read"]);
    // A list is one also of one name, and of none; a program that goes through none gives a file, or null.
    for (list, select, named) in [
        (r#"{"files": ["x.txt"]}"#, ".files[]", json!(["x"])),
        (r#"{"files": []}"#, ".files[]", json!([])),
        (r#"{"files": ["x.txt"]}"#, ".files[0]", json!("x")),
        (r#"{"files": []}"#, ".files[0] // empty", json!(null)),
    ] {
        project.write("workspace/inputs/list.json", list);
        let stage = project.read("stages/1_read.toml");
        let from = stage.split("select = '").nth(1).unwrap();
        let from = from.split('\'').next().unwrap();
        project.edit(
            "stages/1_read.toml",
            &format!("select = '{from}'"),
            &format!("select = '{select}'"),
        );
        project.run(&[]).expect(0, &["read"]);
        assert_eq!(
            project.json("workspace/outputs/made.json"),
            json!({"named": named, "note": null})
        );
    }
    project.edit("stages/1_read.toml", ".files[0] // empty", ".files[]");
    for path in ["../list.json", "/etc/passwd"] {
        project.write(
            "workspace/inputs/list.json",
            format!(r#"{{"files": ["{path}"]}}"#),
        );
        project.run(&[]).expect(1, &[]).says(path);
    }
    project.write(
        "workspace/inputs/list.json",
        r#"{"files": ["nowhere.txt"]}"#,
    );
    project
        .run(&[])
        .expect(1, &[])
        .says("`inputs/files/nowhere.txt` does not exist");
}

#[test]
fn markers_come_after_the_outputs_and_progress_counts_by_the_files_own_numbers() {
    let project = project(&[
        (
            "stages/1_mark.toml",
            "progress = \"marks.json\"\nmarker = \"intermediate/{{ item.stem }}_done\"\n\n[each.item]\npath = \"inputs/item_*.txt\"\n\n[step]\ncopy = \"item\"\n\n[outputs]\nmade = \"intermediate/{{ item.stem }}.txt\"\n",
        ),
        ("workspace/inputs/item_4.txt", "4"),
        ("workspace/inputs/item_17.txt", "17"),
    ]);
    project.edit(
        "stages/1_mark.toml",
        "copy = \"item\"",
        "command = [\"cp\", \"{{ item.path }}\", \"{{ paths.made }}\"]",
    );
    project.run(&[]).expect(0, &["mark/item_17", "mark/item_4"]);
    assert_eq!(
        project.list("intermediate"),
        ["item_17.txt", "item_17_done", "item_4.txt", "item_4_done"]
    );
    assert_eq!(
        project.json("workspace/marks.json")["completed_batches"],
        json!([4, 17])
    );
}

/// A table that is made is judged as one that is read: each row by the schema.
#[test]
fn the_schema_of_a_table_is_that_of_a_row() {
    let project = project(&[
        (
            "stages/1_table.toml",
            "[inputs]\nrows = \"inputs/rows.json\"\n\n[step]\njq = '\"id,kind\\n\" + ([.rows[] | \"\\(.[0]),\\(.[1])\\n\"] | join(\"\"))'\n\n[outputs]\ntable = \"outputs/table.csv\"\n",
        ),
        (
            "schemas/table.schema.json",
            r#"{"type": "object", "required": ["id", "kind"], "additionalProperties": false, "properties": {"id": {"type": "string", "minLength": 1}, "kind": {"enum": ["wall", "slab"]}}}"#,
        ),
        (
            "workspace/inputs/rows.json",
            r#"[["a", "wall"], ["b", "slab"]]"#,
        ),
    ]);
    project.run(&[]).expect(0, &["table"]);
    assert_eq!(
        project.read("workspace/outputs/table.csv"),
        "id,kind\na,wall\nb,slab\n"
    );
    let (code, said) = project.milepost(&["verify"]);
    assert_eq!(code, 0, "{said}");

    project.write(
        "workspace/inputs/rows.json",
        r#"[["a", "wall"], ["b", "door"]]"#,
    );
    project
        .run(&[])
        .expect(1, &["table"])
        .says("table failed: SCHEMA: outputs/table.csv:3: kind: \"door\" is not one of \"wall\", \"slab\" (by schemas/table.schema.json)");
    // Another schema judges the rows that are there.
    project.write(
        "workspace/inputs/rows.json",
        r#"[["a", "wall"], ["b", "slab"]]"#,
    );
    project.run(&[]).expect(0, &["table"]);
    project.edit("schemas/table.schema.json", "\"slab\"", "\"roof\"");
    project
        .run(&[])
        .expect(1, &["table"])
        .says("outputs/table.csv:3: kind");
    project.edit("schemas/table.schema.json", "\"roof\"", "\"slab\"");
    project.edit("stages/1_table.toml", "id,kind", "id,sort");
    project
        .run(&[])
        .expect(1, &["table"])
        .says("outputs/table.csv:1: Missing kind in the header, which has id, sort");
    project.edit("stages/1_table.toml", "\\(.[0]),", "");
    project
        .run(&[])
        .expect(1, &["table"])
        .says("table failed: SCHEMA: outputs/table.csv");
}
