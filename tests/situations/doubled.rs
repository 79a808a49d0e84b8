//! A model in which two elements have one GlobalId: nothing is lost, and the report says so.

use super::corrections::main_project;
use serde_json::{Value, json};

const MODEL: &str = "workspace/inputs/sample.ifc";

#[test]
fn elements_of_one_global_id_go_through_to_the_end() {
    let project = main_project();
    let parsed = project.json("workspace/intermediate/parsed_data.json");
    let id = |number: usize| {
        parsed["elements"][number]["global_id"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    // Three elements get the GlobalId of another, two of them the same one.
    for (from, to) in [(11, 10), (12, 10), (200, 20)] {
        project.edit(MODEL, &format!("'{}'", id(from)), &format!("'{}'", id(to)));
    }
    let doubled = {
        let mut ids = vec![id(10), id(20)];
        ids.sort();
        ids
    };
    let ran = project.run(&[]);
    assert_eq!(ran.code, 0, "{}", ran.output);
    ran.says("2 GlobalIds shared by several elements: all were kept");

    let ids = |value: &Value| -> Vec<String> {
        let all = value.as_array().unwrap().iter();
        all.map(|element| element["global_id"].as_str().unwrap().to_owned())
            .collect()
    };
    let parsed = project.json("workspace/intermediate/parsed_data.json");
    let mut expected: Vec<String> = ids(&parsed["elements"]);
    assert_eq!(expected.len(), 300);
    assert_eq!(expected.iter().filter(|one| **one == id(10)).count(), 3);
    let mut told: Vec<String> = parsed["model"]["duplicate_global_ids"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one.as_str().unwrap().to_owned())
        .collect();
    told.sort();
    assert_eq!(told, doubled);

    // In the order of the model, each with what its own element has.
    let all = project.json("workspace/intermediate/classified_all.json");
    assert_eq!(ids(&all["elements"]), expected);
    let what = |value: &Value| -> Vec<(Value, Value)> {
        let all = value.as_array().unwrap().iter();
        all.map(|element| (element["name"].clone(), element["ifc_type"].clone()))
            .collect()
    };
    assert_eq!(what(&all["elements"]), what(&parsed["elements"]));

    let mut batched: Vec<String> = project
        .list("intermediate/batches")
        .iter()
        .flat_map(|name| {
            ids(&project.json(&format!("workspace/intermediate/batches/{name}"))["elements"])
        })
        .collect();
    batched.sort();
    expected.sort();
    assert_eq!(batched, expected);

    let report = project.json("workspace/intermediate/report.json");
    assert_eq!(report["count"], 300);
    assert_eq!(report["missing"], 0);
    assert_eq!(report["duplicates"], json!(told));
    for number in 1..=4 {
        let checkpoint = project.json(&format!("workspace/stage_{number}_complete.json"));
        assert_eq!(checkpoint["status"], "complete");
    }
    project.run(&[]).expect(0, &[]);
}
