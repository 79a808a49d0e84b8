//! Batches that are joined: what is written, what a stage makes, what is refused.

use super::client::{Client, well};
use crate::support::Project;
use serde_json::{Value, json};

/// Batches that a stage classifies, and one that joins them.
fn classified() -> Project {
    let project = Project::new(&[
        ("milepost.toml", "name = \"project\"\n"),
        (
            "stages/1_classify.toml",
            r#"[each.batch]
path = "inputs/batch_*.json"

[step]
jq = '[.batch.data.elements[] | . + {material_primary: {name: "wood"}}]'

[outputs]
classified = { path = "intermediate/classified/{{ batch.stem }}_classified.json", schema = false }
"#,
        ),
        (
            "stages/2_generate.toml",
            r#"[inputs]
classified = "intermediate/classified/batch_*_classified.json"

[step]
jq = '{elements: [.classified[][]], count: ([.classified[][]] | length)}'

[outputs]
all = { path = "intermediate/classified_all.json", schema = false }
"#,
        ),
    ]);
    for (number, ids) in [(1, ["a", "b"]), (2, ["c", "d"]), (10, ["e", "f"])] {
        let types = ["IfcWall", "IfcSlab"];
        let elements: Vec<Value> = ids
            .iter()
            .zip(types)
            .map(|(id, ifc_type)| json!({"global_id": id, "ifc_type": ifc_type}))
            .collect();
        let batch = json!({"elements": elements}).to_string();
        project.write(&format!("workspace/inputs/batch_{number}.json"), &batch);
    }
    project
}

fn wanted(file: &str) -> Value {
    json!({"batch_dir": "intermediate/classified", "output_file": file})
}

#[test]
fn the_batches_of_a_complete_stage_are_joined_into_a_file_of_nobody() {
    let project = classified();
    let mut client = Client::of(&project);
    client.call("run", json!({"targets": ["classify"]}));
    let place = project.at("workspace").canonicalize().unwrap();
    assert_eq!(
        client.call("aggregate_batch_results", wanted("outputs/joined.json")),
        json!({
            "success": true,
            "element_count": 6,
            "output_file": "outputs/joined.json",
            "path": place.join("outputs/joined.json"),
            "summary": {"by_type": {"IfcSlab": 3, "IfcWall": 3}},
            "files": 3,
            "stage": null,
        })
    );
    let joined: Value =
        serde_json::from_str(&project.read("workspace/outputs/joined.json")).unwrap();
    let ids: Vec<&str> = joined["elements"]
        .as_array()
        .unwrap()
        .iter()
        .map(|element| element["global_id"].as_str().unwrap())
        .collect();
    assert_eq!(
        (ids.join(" "), &joined["count"]),
        ("a b c d e f".to_owned(), &json!(6))
    );
    assert_eq!(client.leave(), well());
}

#[test]
fn the_stage_that_makes_the_file_makes_it() {
    let project = classified();
    let mut client = Client::of(&project);
    client.call("run", json!({"targets": ["classify"]}));
    let file = "intermediate/classified_all.json";
    let joined = client.call("aggregate_batch_results", wanted(file));
    assert_eq!(
        (
            &joined["element_count"],
            &joined["stage"],
            &joined["summary"]
        ),
        (
            &json!(6),
            &json!("generate"),
            &json!({"by_type": {"IfcSlab": 3, "IfcWall": 3}})
        )
    );
    let complete = client.call("check_stage_completion", json!({"stage_num": 2}));
    assert_eq!(complete["complete"], true);
    let verified = client.call("verify", json!({}));
    assert_eq!(
        (&verified["ok"], &verified["findings"]),
        (&json!(true), &json!([]))
    );
    // Altered by hand, it is neither trusted nor overwritten.
    project.write("workspace/intermediate/classified_all.json", "{}");
    let fault = client.fault("aggregate_batch_results", wanted(file));
    assert_eq!(fault["code"], "altered");
    assert_eq!(
        project.read("workspace/intermediate/classified_all.json"),
        "{}"
    );
    assert_eq!(client.leave(), well());
}

#[test]
fn batches_that_are_not_complete_are_not_joined() {
    let project = classified();
    let mut client = Client::of(&project);
    client.call("run", json!({"targets": ["classify"], "limit": 2}));
    let fault = client.fault("aggregate_batch_results", wanted("outputs/joined.json"));
    assert_eq!(
        fault,
        json!({
            "error": "stage `classify`, which writes these batches, is not complete",
            "code": "not_complete",
            "hint": "call `run` with the target `classify`; `missing` lists what is missing",
            "stage": "classify",
            "missing": [
                "1 of 3 batches must run: classify/batch_10",
                "`stage_1_complete.json` does not exist",
            ],
        })
    );
    client.call("run", json!({"targets": ["classify"]}));
    // One that is put beside them was checked by nobody.
    project.write(
        "workspace/intermediate/classified/batch_3_classified.json",
        "[]",
    );
    let fault = client.fault("aggregate_batch_results", wanted("outputs/joined.json"));
    assert_eq!(
        (&fault["code"], &fault["files"]),
        (
            &json!("altered"),
            &json!(["intermediate/classified/batch_3_classified.json"])
        )
    );
    assert!(!project.at("workspace/outputs/joined.json").exists());
    assert_eq!(client.leave(), well());
}

#[test]
fn fields_that_are_missing_are_named_by_element() {
    let project = classified();
    let folder = "workspace/intermediate/mine";
    project.write(
        &format!("{folder}/batch_1_classified.json"),
        r#"[{"global_id": "a", "ifc_type": "IfcWall", "material_primary": null}, {"guid": "b", "ifc_type": "IfcWall"}]"#,
    );
    project.write(
        &format!("{folder}/batch_2_classified.json"),
        r#"[{"global_id": "c", "material_primary": {}}, 7]"#,
    );
    let mut client = Client::of(&project);
    let wanted = json!({"batch_dir": "intermediate/mine", "output_file": "outputs/joined.json"});
    let file = |number: u32| format!("intermediate/mine/batch_{number}_classified.json");
    assert_eq!(
        client.fault("aggregate_batch_results", wanted.clone()),
        json!({
            "error": "3 elements lack required fields",
            "code": "missing_fields",
            "hint": "`elements` lists them with their fields: correct their files; `count` is their number",
            "elements": [
                {"file": file(1), "index": 1, "global_id": null, "missing": ["global_id", "material_primary"]},
                {"file": file(2), "index": 0, "global_id": "c", "missing": ["ifc_type"]},
                {"file": file(2), "index": 1, "global_id": null, "missing": ["global_id", "ifc_type", "material_primary"]},
            ],
            "count": 3,
        })
    );
    let left: Vec<_> = std::fs::read_dir(project.at("workspace/outputs"))
        .unwrap()
        .collect();
    assert!(left.is_empty(), "{left:?}");
    project.write(&format!("{folder}/batch_2_classified.json"), "{}");
    let fault = client.fault("aggregate_batch_results", wanted);
    assert_eq!(fault["code"], "usage");
    assert_eq!(client.leave(), well());
}

#[test]
fn what_others_write_is_not_written() {
    let project = classified();
    let mut client = Client::of(&project);
    client.call("run", json!({}));
    let before = project.read("workspace/intermediate/classified/batch_1_classified.json");
    for (file, why) in [
        (
            "stage_2_complete.json",
            "`stage_2_complete.json` cannot be written: it is a checkpoint",
        ),
        (
            ".milepost/lock",
            "`.milepost/lock` cannot be written: it is Milepost's own folder",
        ),
        (
            "classify_progress.json",
            "`classify_progress.json` is written by stage `classify`",
        ),
        (
            "inputs/batch_1.json",
            "`inputs/batch_1.json` is read by stage `classify`: inputs are not overwritten",
        ),
        (
            "intermediate/classified/batch_1_classified.json",
            "`intermediate/classified/batch_1_classified.json` is an output of stage `classify`, which does not read these batches",
        ),
        (
            "project:milepost.toml",
            "`project:milepost.toml` is not a file of the workspace",
        ),
    ] {
        let fault = client.fault("aggregate_batch_results", wanted(file));
        assert_eq!(
            (&fault["code"], fault["error"].as_str()),
            (&json!("path"), Some(why))
        );
    }
    for folder in ["intermediate/nothing", "inputs", "inputs/batch_1.json"] {
        let wanted = json!({"batch_dir": folder, "output_file": "outputs/joined.json"});
        let fault = client.fault("aggregate_batch_results", wanted);
        assert_eq!(fault["code"], "usage", "{fault:#}");
    }
    assert_eq!(
        project.read("workspace/intermediate/classified/batch_1_classified.json"),
        before
    );
    assert_eq!(client.leave(), well());
}
