//! Elements in batches with questions, as the main pipeline has them: what is asked again is what must be.

use crate::support::Project;
use serde_json::{Value, json};

/// The main project without its first and last step's weight: elements come from a file, and the end is the merge.
pub fn packed(elements: &[(&str, &str, &str)]) -> Project {
    let project = Project::new(&[
        (
            "milepost.toml",
            "name = \"packed\"\n\n[params]\nbatch_size = 3\nbatch_timeout = \"1m\"\n\n[agents.classifier]\nrules = \"rules/elements.toml\"\n",
        ),
        (
            "stages/1_parse.toml",
            "[inputs]\nmodel = \"inputs/model.json\"\n\n[step]\njq = '.model'\n\n[outputs.parsed]\npath = \"intermediate/parsed_data.json\"\nstream = \".elements\"\n",
        ),
        (
            "stages/4_generate.toml",
            r#"
[inputs]
parsed = "intermediate/parsed_data.json"
classified = "intermediate/classified/batch_*_classified.json"
corrections = { path = "inputs/corrections.csv", optional = true, schema = "schemas/corrections.schema.json" }

[step]
merge = ".classified[][]"
key = ".global_id"
order = ".parsed.elements[].global_id"
corrections = "corrections"

[outputs]
all = { path = "intermediate/classified_all.json", stream = ".elements" }

[conserve]
in = ".parsed.elements[].global_id"
out = ".all.elements[].global_id"
"#,
        ),
    ]);
    project.take(&[
        "schemas",
        "rules",
        "filters",
        "prompts",
        "stages/2_batch.toml",
        "stages/3_classify.toml",
    ]);
    project.write("workspace/inputs/model.json", model(elements));
    project
}

/// A model as step `ifc` gives it.
pub fn model(elements: &[(&str, &str, &str)]) -> String {
    let elements: Vec<Value> = elements
        .iter()
        .map(|(id, ifc_type, name)| {
            json!({
                "global_id": format!("{id:0>22}"), "ifc_type": ifc_type, "predefined_type": null, "name": name, "object_type": null, "type_name": null,
                "tag": null, "storey": "EG", "storey_elevation_m": 0.0, "container": null, "part_of": null, "materials": [], "layers": [],
                "volume_m3": 1.5, "net_volume_m3": null, "gross_volume_m3": null, "area_m2": null, "length_m": null,
                "property_volume_m3": null, "property_volume_from": null, "classifications": [], "quantities": {}, "properties": {}
            })
        })
        .collect();
    let model = json!({"file": "model.json", "schema": "IFC4", "project": null, "elements": elements.len(), "openings": 0, "duplicate_global_ids": [], "warnings": []});
    json!({"model": model, "elements": elements, "openings": []}).to_string()
}

/// Eight elements that ask seven questions: two doors ask the same.
pub const ELEMENTS: [(&str, &str, &str); 8] = [
    ("w1", "IfcWall", "Concrete wall"),
    ("d1", "IfcDoor", "Door"),
    ("d2", "IfcDoor", "Door"),
    ("s1", "IfcSlab", "Slab"),
    ("c1", "IfcColumn", "Column"),
    ("b1", "IfcBeam", "Beam"),
    ("r1", "IfcRailing", "Railing"),
    ("x1", "IfcWindow", "Window"),
];

fn batches(project: &Project) -> Vec<String> {
    project
        .list("intermediate")
        .into_iter()
        .filter(|name| name.starts_with("batches/"))
        .collect()
}

#[test]
fn a_changed_batch_size_packs_anew_and_retires_what_is_left_over() {
    let project = packed(&ELEMENTS);
    let all = [
        "batch",
        "classify/batch_1",
        "classify/batch_2",
        "classify/batch_3",
        "generate",
        "parse",
    ];
    project.run(&[]).expect(0, &all);
    let before = project.json("workspace/intermediate/classified_all.json");
    assert_eq!(before["count"], 8);
    project.run(&["--set", "batch_size=2"]).says("");
    assert_eq!(batches(&project).len(), 4, "{:?}", batches(&project));
    project.run(&["--set", "batch_size=7"]);
    assert_eq!(
        project.json("workspace/intermediate/classified_all.json"),
        before
    );
    project.run(&[]).expect(0, &[]);
    assert_eq!(
        project.json("workspace/classification_progress.json")["total_batches"],
        batches(&project).len()
    );
    assert_eq!(
        project.list("intermediate/classified").len(),
        2 * batches(&project).len()
    );
}

#[test]
fn one_element_changed_asks_its_question_and_leaves_other_batches() {
    let project = packed(&ELEMENTS);
    project.run(&[]);
    let mut elements = ELEMENTS;
    elements[7] = ("x1", "IfcWindow", "Roof window");
    project.write("workspace/inputs/model.json", model(&elements));
    let ran = project.run(&[]);
    assert_eq!(ran.code, 0, "{}", ran.output);
    let classified: Vec<String> = ran
        .tried()
        .into_iter()
        .filter(|batch| batch.starts_with("classify"))
        .collect();
    assert_eq!(classified.len(), 1, "{classified:?}");
    assert_eq!(ran.tried().len(), 4);
}

#[test]
fn an_element_taken_out_goes_and_the_rest_stays() {
    let project = packed(&ELEMENTS);
    project.run(&[]);
    project.write("workspace/inputs/model.json", model(&ELEMENTS[..7]));
    let ran = project.run(&[]);
    assert_eq!(ran.code, 0, "{}", ran.output);
    assert_eq!(
        project.json("workspace/intermediate/classified_all.json")["count"],
        7
    );
}

#[test]
fn a_filter_of_the_question_packs_anew_and_one_of_the_record_does_not() {
    let project = packed(&ELEMENTS);
    project.run(&[]);
    project.edit(
        "filters/record.jq",
        "rule,\n",
        "rule,\n    checked: true,\n",
    );
    project.run(&[]).expect(
        0,
        &[
            "classify/batch_1",
            "classify/batch_2",
            "classify/batch_3",
            "generate",
        ],
    );
    project.edit(
        "filters/question.jq",
        "classifications: (if .classification_references == null",
        "classifications: (if true",
    );
    let ran = project.run(&[]);
    assert_eq!(ran.tried()[0], "batch", "{}", ran.output);
}

#[test]
fn the_schema_of_an_answer_is_judged() {
    let project = packed(&ELEMENTS);
    project.run(&[]);
    project.edit(
        "schemas/answer.schema.json",
        "Answer to a question",
        "An answer",
    );
    let ran = project.run(&[]);
    ran.expect(0, &[]);
    assert_eq!(
        ran.judged(),
        ["classify/batch_1", "classify/batch_2", "classify/batch_3"]
    );
}

#[test]
fn a_marker_deleted_has_its_batch_made_again() {
    let project = packed(&ELEMENTS);
    project.run(&[]);
    assert_eq!(
        project.read("workspace/intermediate/classified/batch_2_complete.txt"),
        ""
    );
    project.remove("workspace/intermediate/classified/batch_2_complete.txt");
    project.run(&[]).expect(0, &["classify/batch_2"]);
}

#[test]
fn duplicate_ids_go_through_to_the_end() {
    let mut elements = ELEMENTS.to_vec();
    elements[3].0 = "w1";
    elements[5].0 = "w1";
    let project = packed(&elements);
    let ran = project.run(&[]);
    assert_eq!(ran.code, 0, "{}", ran.output);
    let all = project.json("workspace/intermediate/classified_all.json");
    let ids: Vec<&str> = all["elements"]
        .as_array()
        .unwrap()
        .iter()
        .map(|element| element["global_id"].as_str().unwrap())
        .collect();
    let expected: Vec<String> = elements
        .iter()
        .map(|(id, ..)| format!("{id:0>22}"))
        .collect();
    assert_eq!(ids, expected);
    let names: Vec<&str> = all["elements"]
        .as_array()
        .unwrap()
        .iter()
        .map(|element| element["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        elements
            .iter()
            .map(|(_, _, name)| *name)
            .collect::<Vec<_>>()
    );
}

#[test]
fn corrections_win_and_are_shown_as_such() {
    let project = packed(&ELEMENTS);
    project.run(&[]);
    let id = format!("{:0>22}", "x1");
    project.write(
        "workspace/inputs/corrections.csv",
        format!(
            "global_id,field,value,who,why\n{id},element_type,roof_covering,Ada,seen on site\n"
        ),
    );
    project.run(&[]).expect(0, &["generate"]);
    let all = project.json("workspace/intermediate/classified_all.json");
    let record = all["elements"]
        .as_array()
        .unwrap()
        .iter()
        .find(|record| record["global_id"] == id.as_str())
        .unwrap();
    assert_eq!(record["element_type"], "roof_covering");
    assert_eq!(
        record["corrections"],
        json!([{"field": "element_type", "from": "window", "to": "roof_covering", "who": "Ada", "why": "seen on site"}])
    );
    project.remove("workspace/inputs/corrections.csv");
    project.run(&[]).expect(0, &["generate"]);
}

#[test]
fn a_correction_of_nothing_is_a_warning_and_a_wrong_one_an_error() {
    let project = packed(&ELEMENTS);
    project.run(&[]);
    let before = project.read("workspace/intermediate/classified_all.json");
    project.write(
        "workspace/inputs/corrections.csv",
        "global_id,field,value,who,why\nnobody,element_type,door_internal,Ada,seen\n",
    );
    project.run(&[]).expect(0, &["generate"]).says(
        "warning: inputs/corrections.csv:2: no element has the global_id `nobody`, so its `element_type` is not corrected",
    );
    assert_eq!(
        project.read("workspace/intermediate/classified_all.json"),
        before
    );
    let id = format!("{:0>22}", "x1");
    project.write(
        "workspace/inputs/corrections.csv",
        format!("global_id,field,value,who,why\n{id},elementtype,door_internal,Ada,seen\n"),
    );
    project
        .run(&[])
        .expect(1, &["generate"])
        .says("inputs/corrections.csv:2: field: \"elementtype\" is not one of \"element_type\"");
    project.write(
        "workspace/inputs/corrections.csv",
        format!("global_id;field;value;who;why\r\n\r\n{id};volume_m3;12,5;Ada;seen\r\n"),
    );
    project
        .run(&[])
        .expect(1, &["generate"])
        .says("inputs/corrections.csv:3: value: \"12,5\" does not match ^([0-9]+(\\.[0-9]+)?)?$: write 12.5");
    assert_eq!(
        project.read("workspace/intermediate/classified_all.json"),
        before
    );
}

#[test]
fn one_job_and_two_give_the_same_bytes() {
    let made = |jobs: &str| {
        let project = Project::new(&[]);
        project.take(&[
            "milepost.toml",
            "stages",
            "schemas",
            "rules",
            "filters",
            "prompts",
            "templates",
            "workspace/inputs/sample.ifc",
        ]);
        project.edit("milepost.toml", "default = 50", "default = 4");
        let ran = project.run_unplanned(&["--jobs", jobs]);
        assert_eq!(ran.code, 0, "{}", ran.output);
        let mut contents = project.digests();
        contents.retain(|path, _| path.contains("intermediate/") || path.contains("outputs/"));
        contents
    };
    let (one, two) = (made("1"), made("2"));
    assert!(one.len() > 10, "{one:?}");
    assert_eq!(one, two);
}

#[test]
fn records_of_many_files_are_packed_as_those_of_one() {
    let project = packed(&ELEMENTS);
    assert_eq!(project.run(&[]).code, 0);
    let whole = project.output_digests();
    // The same elements in two files: of each file the elements in turn.
    let many = packed(&ELEMENTS);
    many.edit(
        "stages/1_parse.toml",
        "[inputs]\nmodel = \"inputs/model.json\"",
        "[each.part]\npath = \"inputs/model_*.json\"\n\n[inputs]\nmodel = \"{{ part.path }}\"",
    );
    many.edit(
        "stages/1_parse.toml",
        "intermediate/parsed_data.json",
        "intermediate/parsed/{{ part.stem }}.json",
    );
    for stage in ["stages/2_batch.toml", "stages/4_generate.toml"] {
        many.edit(
            stage,
            "intermediate/parsed_data.json",
            "intermediate/parsed/*.json",
        );
        many.edit(stage, ".parsed.elements", ".parsed[].elements");
    }
    many.remove("workspace/inputs/model.json");
    many.write("workspace/inputs/model_1.json", model(&ELEMENTS[..3]));
    many.write("workspace/inputs/model_2.json", model(&ELEMENTS[3..]));
    let ran = many.run(&[]);
    assert_eq!(ran.code, 0, "{}", ran.output);
    let of = |files: &std::collections::BTreeMap<String, milepost_core::base::digest::Digest>| {
        let shared = files
            .iter()
            .filter(|(path, _)| !path.contains("parsed") && !path.contains("stage_"));
        shared
            .map(|(path, digest)| (path.clone(), *digest))
            .collect::<Vec<_>>()
    };
    assert_eq!(of(&many.output_digests()), of(&whole));
}

#[test]
fn questions_that_are_equal_as_json_are_one() {
    let project = Project::new(&[
        ("milepost.toml", "name = \"equal\"\n"),
        (
            "stages/1_split.toml",
            "[inputs]\ne = \"inputs/e.json\"\n\n[step]\nsplit = \".e[]\"\n\n[outputs]\nb = { path = \"b/batch_*.json\", schema = false }\n",
        ),
        (
            "workspace/inputs/e.json",
            r#"[{"a":1,"b":{"c":[1.0],"d":2}},{"b":{"d":2.0,"c":[1]},"a":1},{"a":1,"b":{"c":[10e-1],"d":2}},{"a":"1"}]"#,
        ),
    ]);
    project.run(&[]).expect(0, &["split"]);
    assert_eq!(
        project.json("workspace/b/batch_1.json")["questions"],
        json!([
            {"id": "q1", "question": {"a": 1, "b": {"c": [1.0], "d": 2}}, "elements": [0, 1, 2]},
            {"id": "q2", "question": {"a": "1"}, "elements": [3]},
        ])
    );
}
