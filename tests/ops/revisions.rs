//! Two revisions compared by the step `diff` and by `milepost diff`: what was added, removed and changed, by class and quantity.

use crate::support::required::{Missing, real_model, require};
use crate::support::{MAIN_PIPELINE, Project};
use serde_json::{Value, json};
use std::path::Path;

const STAGE: &str = r#"
[inputs]
things = "inputs/things.json"

[inputs.baseline]
path = "inputs/baseline.json"
optional = true

[[step]]
jq = '{elements: .things}'
out = "all"

[[step]]
diff = ".all.elements[]"
baseline = ".baseline.elements[]"
compare = '{key: .id, group: .kind, part_of: .of, fields: {kind, name, size}, quantities: {size}}'
tolerance = 0.001
when = '.digests.baseline != null'
out = "changes"

[outputs]
all = { path = "outputs/all.json", schema = false }
changes = { path = "outputs/changes.json", schema = false }
"#;

/// A thing: id, kind, name, size.
fn thing(id: &str, kind: &str, name: &str, size: Value) -> Value {
    json!({"id": id, "kind": kind, "name": name, "size": size})
}

fn things() -> Value {
    json!([
        thing("a", "wall", "A", json!(10)),
        thing("b", "wall", "B", json!(20)),
        thing("c", "wall", "C", json!(1.5)),
        thing("d", "door", "D", json!(null)),
        thing("e", "roof", "E", json!(7)),
        {"id": "e1", "kind": "slab", "name": "layer", "size": 3, "of": "e"},
    ])
}

/// `a` has noise, `b` grows, `c` is a door now, `d` is renamed and has a size, `e` goes and leaves its part alone, `f` is new.
fn revised() -> Value {
    json!([
        thing("f", "wall", "F", json!(4)),
        thing("d", "door", "D2", json!(2)),
        thing("a", "wall", "A", json!(10.005)),
        thing("b", "wall", "B", json!(25)),
        thing("c", "door", "C", json!(1.5)),
        {"id": "e1", "kind": "slab", "name": "layer", "size": 3, "of": "e"},
    ])
}

/// A project that lists things, after a run over `things`.
fn listed() -> Project {
    let project = Project::new(&[
        ("milepost.toml", "name = \"things\"\n"),
        ("stages/1_list.toml", STAGE),
    ]);
    project.write("workspace/inputs/things.json", things().to_string());
    assert_eq!(project.run(&[]).code, 0);
    project
}

#[test]
fn records_are_compared_as_the_step_declares() {
    let project = listed();
    assert!(!project.at("workspace/outputs/changes.json").exists());
    project.write(
        "workspace/inputs/baseline.json",
        project.read("workspace/outputs/all.json"),
    );
    project.write("workspace/inputs/things.json", revised().to_string());
    assert_eq!(project.run(&[]).code, 0);
    let of =
        |kind: &str, name: &str, size: Value| json!({"kind": kind, "name": name, "size": size});
    let differs = |change: &str, key: &str, group: &str, from: Value, to: Value, differs: Value| json!({"change": change, "key": key, "group": group, "from": from, "to": to, "differs": differs});
    let group = |group: &str, counts: [u64; 8], sums: Value| {
        let [
            before,
            after,
            added,
            removed,
            changed,
            moved_in,
            moved_out,
            unchanged,
        ] = counts;
        json!({
            "group": group, "before": before, "after": after, "added": added, "removed": removed, "changed": changed,
            "moved_in": moved_in, "moved_out": moved_out, "unchanged": unchanged,
            "quantities": [{"quantity": "size", "before": sums[0], "after": sums[1], "difference": sums[2]}],
        })
    };
    assert_eq!(
        project.json("workspace/outputs/changes.json"),
        json!({
            "changes": [
                differs("added", "f", "wall", json!(null), of("wall", "F", json!(4)), json!([])),
                differs(
                    "changed", "d", "door",
                    of("door", "D", json!(null)), of("door", "D2", json!(2)), json!(["name", "size"])
                ),
                differs(
                    "changed", "b", "wall",
                    of("wall", "B", json!(20)), of("wall", "B", json!(25)), json!(["size"])
                ),
                differs(
                    "changed", "c", "door",
                    of("wall", "C", json!(1.5)), of("door", "C", json!(1.5)), json!(["kind"])
                ),
                differs("removed", "e", "roof", of("roof", "E", json!(7)), json!(null), json!([])),
            ],
            "before": 6, "after": 6, "added": 1, "removed": 1, "changed": 3, "unchanged": 2,
            "groups": [
                // No door had a size, so the difference of the sizes of doors is unknown.
                group("door", [1, 2, 0, 0, 1, 1, 0, 0], json!([null, 3.5, null])),
                group("roof", [1, 0, 0, 1, 0, 0, 0, 0], json!([7.0, null, -7.0])),
                // The part counts as soon as no assembly carries its size.
                group("slab", [1, 1, 0, 0, 0, 0, 0, 1], json!([null, 3.0, null])),
                group("wall", [3, 3, 1, 0, 1, 0, 1, 1], json!([31.5, 39.005, 7.505])),
            ],
        })
    );
    let (code, text) = project.milepost(&["diff", "--limit", "1"]);
    let (_, text) = text.split_once("\nnew: ").unwrap();
    let (_, text) = text.split_once('\n').unwrap();
    assert_eq!(
        (code, text),
        (
            0,
            "
6 records before, 6 after: 1 added, 1 removed, 3 changed, 2 unchanged

      before  after  added  removed  changed  moved in  moved out  unchanged
door       1      2      0        0        1         1          0          0
roof       1      0      0        1        0         0          0          0
slab       1      1      0        0        0         0          0          1
wall       3      3      1        0        1         0          1          1

            before   after  difference
door  size       –   3.500           –
roof  size   7.000       –      -7.000
slab  size       –   3.000           –
wall  size  31.500  39.005      +7.505

~ d  door  D2
      name: D → D2
      size: – → 2
~ and 2 more

+ f  wall  F

- e  roof  E
"
        )
    );
}

#[test]
fn the_earlier_revision_may_be_a_file_or_a_workspace() {
    let project = listed();
    let first = project.read("workspace/outputs/all.json");
    project.write("first.json", &first);
    project.write("old/inputs/things.json", things().to_string());
    assert_eq!(project.milepost(&["run", "--workspace", "old"]).0, 0);
    project.write("workspace/inputs/things.json", revised().to_string());
    assert_eq!(project.run(&[]).code, 0);
    let counts = |old: &str| {
        let (code, text) = project.milepost(&["diff", old, "--json"]);
        let found: Value = serde_json::from_str(&text).unwrap();
        let totals = &found["revision"]["totals"];
        (
            code,
            ["added", "removed", "changed", "unchanged"].map(|name| totals[name].clone()),
        )
    };
    let wanted = (0, [1, 1, 3, 2].map(Value::from));
    assert_eq!(counts("first.json"), wanted);
    assert_eq!(counts("old"), wanted);
    // Without an earlier revision, and by stage, as in every project.
    let (_, text) = project.milepost(&["diff"]);
    assert!(
        text.contains("before run ") && text.contains("~ outputs/all.json"),
        "{text}"
    );
    let (_, text) = project.milepost(&["diff", "old", "--stage", "list"]);
    assert!(text.contains("all of list\n  ~ outputs/all.json"), "{text}");
}

#[test]
fn what_cannot_be_compared_is_an_error_with_its_place() {
    let project = listed();
    project.write(
        "workspace/inputs/baseline.json",
        r#"{"elements": [{"id": null, "kind": "wall"}]}"#,
    );
    let ran = project.run(&[]);
    assert_eq!(ran.code, 1, "{}", ran.output);
    ran.says("inputs/baseline.json: `compare`: expected a text or a number for `key`, found null; it must return {key, group, fields, quantities, part_of}");
    project.write("broken.json", "{\"elements\": [");
    let (code, text) = project.milepost(&["diff", "broken.json"]);
    assert_eq!(code, 1);
    assert!(
        text.contains("error: step `diff` of stage `list`: ") && text.contains("broken.json"),
        "{text}"
    );
    let (code, text) = project.milepost(&["diff", "nowhere"]);
    assert_eq!(code, 2);
    let expected = format!(
        "error: there is no file or folder `{}`: name a file of records, or the folder of a workspace, which contains `.milepost`\n",
        project.at("nowhere").display()
    );
    assert_eq!(text, expected);
    let plain = Project::names();
    plain.write("records.json", "[]");
    let (code, text) = plain.milepost(&["diff", "records.json"]);
    assert_eq!(code, 2);
    assert!(
        text.contains("no step `diff` declares how its records are compared"),
        "{text}"
    );
}

/// Runs the main pipeline over two revisions of a model, and returns the changes.
fn changes(old: &str, new: &str) -> Result<Value, Missing> {
    let project = Project::new(&[]);
    project.take(&MAIN_PIPELINE);
    let set = |name: &str, path: &Path| format!("{name}={}", path.display());
    let (code, text) = project.milepost(&["run", "--set", &set("model", &real_model(old)?)]);
    assert_eq!(code, 0, "{text}");
    let records = project.at("workspace/intermediate/classified_all.json");
    let settings = [set("model", &real_model(new)?), set("baseline", &records)];
    let (code, text) = project.milepost(&["run", "--set", &settings[0], "--set", &settings[1]]);
    assert_eq!(code, 0, "{text}");
    let changes = project.json("workspace/intermediate/changes.json");
    // The command says the same.
    let (code, text) = project.milepost(&["diff", "--json", "--limit", "1000000"]);
    assert_eq!(code, 0);
    let said: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(said["revision"]["changes"], changes["changes"]);
    assert_eq!(said["revision"]["totals"]["groups"], changes["groups"]);
    Ok(changes)
}

fn counts(changes: &Value) -> [u64; 4] {
    ["added", "removed", "changed", "unchanged"].map(|name| changes[name].as_u64().unwrap())
}

#[test]
fn a_generated_revision_has_the_changes_that_it_was_made_with() {
    let changes = require!(changes("synthetic_2k_rev0.ifc", "synthetic_2k_rev1.ifc"));
    assert_eq!(counts(&changes), [10, 14, 32, 1954]);
}

#[test]
fn a_real_revision_keeps_what_it_has_in_common() {
    let changes = require!(changes("duplex_A_20110505.ifc", "duplex_A_20110907.ifc"));
    let [added, removed, changed, unchanged] = counts(&changes);
    assert_eq!(
        (removed + changed + unchanged, added + changed + unchanged),
        (208, 218)
    );
}
