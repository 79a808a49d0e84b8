//! What people know better: `inputs/corrections.csv` of the main project, with its own model.

use crate::support::Project;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// The main project, run once.
pub fn main_project() -> Project {
    main_project_measured("all")
}

/// The main project, run once with this param `geometry`.
fn main_project_measured(geometry: &str) -> Project {
    let mut project = Project::new(&[]);
    project.env("SOURCE_DATE_EPOCH", "1795305600");
    project.take(&[
        "milepost.toml",
        "stages",
        "schemas",
        "rules",
        "filters",
        "templates",
        "prompts",
        "workspace/inputs",
    ]);
    let param = format!("geometry = {{ default = \"{geometry}\"");
    project.edit("milepost.toml", "geometry = { default = \"all\"", &param);
    project.run(&[]).expect(
        0,
        &[
            "batch",
            "classify/batch_1",
            "classify/batch_2",
            "classify/batch_3",
            "generate",
            "parse",
        ],
    );
    project
}

const ALL: &str = "workspace/intermediate/classified_all.json";
const REPORT: &str = "workspace/intermediate/report.json";
const GIVEN: &str = "workspace/inputs/corrections.csv";

fn table(rows: &[[&str; 5]]) -> String {
    let mut text = "global_id,field,value,who,why\n".to_owned();
    for row in rows {
        writeln!(text, "{}", row.join(",")).unwrap();
    }
    text
}

/// The first record of an element type without a volume.
fn record<'a>(all: &'a Value, element_type: &str) -> &'a Value {
    let mut records = all["elements"].as_array().unwrap().iter();
    records
        .find(|record| record["element_type"] == element_type && record["volume_m3"].is_null())
        .unwrap()
}

#[test]
fn corrections_win_are_shown_and_cost_only_the_last_stage() {
    let project = main_project_measured("off");
    let before = project.digests();
    let all = project.json(ALL);
    let report = project.json(REPORT);
    let (other, window) = (record(&all, "other"), record(&all, "window"));
    let (other, window) = (
        other["global_id"].as_str().unwrap(),
        window["global_id"].as_str().unwrap(),
    );
    project.write(
        GIVEN,
        table(&[
            [
                other,
                "element_type",
                "furniture",
                "A. Berger",
                "seen on site",
            ],
            [
                window,
                "volume_m3",
                "0.25",
                "A. Berger",
                "\"measured, with the frame\"",
            ],
            [
                other,
                "material_primary.category",
                "timber",
                "Ü. Öztürk",
                "=oak",
            ],
        ]),
    );
    project.run(&[]).expect(0, &["generate"]);

    let corrected = project.json(ALL);
    let of = |id: &str| {
        let mut records = corrected["elements"].as_array().unwrap().iter();
        records
            .find(|record| record["global_id"] == id)
            .unwrap()
            .clone()
    };
    assert_eq!(of(other)["element_type"], "furniture");
    assert_eq!(of(other)["material_primary"]["category"], "timber");
    assert_eq!(of(window)["volume_m3"], 0.25);
    assert_eq!(
        of(window)["corrections"],
        json!([{"field": "volume_m3", "from": null, "to": 0.25, "who": "A. Berger", "why": "measured, with the frame"}])
    );
    let sums = project.json(REPORT);
    let volume = |report: &Value| report["total"]["volume_m3"].as_f64().unwrap();
    assert!((volume(&sums) - volume(&report) - 0.25).abs() < 1e-9);
    assert_eq!(sums["corrected"], 2);
    let given: Vec<String> = sums["corrections"]["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| format!("{} {} -> {} {}", c["field"], c["from"], c["to"], c["who"]))
        .collect();
    assert_eq!(
        given,
        [
            "\"volume_m3\" null -> 0.25 \"A. Berger\"",
            "\"element_type\" \"other\" -> \"furniture\" \"A. Berger\"",
            "\"material_primary.category\" null -> \"timber\" \"Ü. Öztürk\"",
        ]
    );
    project.run(&[]).expect(0, &[]);

    // Without them everything is as it was before.
    project.remove(GIVEN);
    project.run(&[]).expect(0, &["generate"]);
    let after = project.digests();
    for (path, digest) in &before {
        if path.starts_with("intermediate/") || path.starts_with("outputs/") {
            assert_eq!(after.get(path), Some(digest), "{path}");
        }
    }
}

#[test]
fn wrong_corrections_are_named_all_at_once_and_nothing_is_replaced() {
    let project = main_project_measured("off");
    let all = project.json(ALL);
    let id = record(&all, "other")["global_id"].as_str().unwrap();
    let before = project.read(ALL);
    let table_of = |rows: &[[&str; 5]]| project.write(GIVEN, table(rows));

    table_of(&[
        [id, "element_type", "furniture", "Ada", "seen"],
        ["nobody", "element_type", "beam", "Ada", "seen"],
        [id, "storey", "EG", "Ada", "seen"],
        [id, "element_type", "beam", "Bo", "seen too"],
    ]);
    project
        .run(&[])
        .expect(1, &["generate"])
        .says(&format!(
            "INPUT: inputs/corrections.csv:5: `element_type` of `{id}` is corrected in line 2 already: keep one of the two"
        ));

    table_of(&[
        [id, "element_type", "bean", "Ada", "seen"],
        [id, "storey", "EG", "", "seen"],
        [id, "location", "roof", "Ada", ""],
        [id, "global_id", "x", "Ada", "seen"],
        [id, "volume_m3", "one", "Ada", "seen"],
    ]);
    project
        .run(&[])
        .expect(1, &["generate"])
        .says("SCHEMA: inputs/corrections.csv:2: value: \"bean\" is not one of")
        .says("corrections.csv:3: who: the cell is empty")
        .says("corrections.csv:4: why: the cell is empty")
        .says("corrections.csv:5: field: \"global_id\" is not one of \"element_type\"")
        .says("corrections.csv:6: value: \"one\" does not match");

    assert_eq!(project.read(ALL), before);
    project.remove(GIVEN);
    project.run(&[]).expect(0, &["generate"]);
    assert_eq!(project.read(ALL), before);
}

#[test]
fn a_table_of_corrections_with_another_header_is_refused() {
    const EXPECTED: &str = "inputs/corrections.csv:1: expected columns `global_id`, `field`, `value`, `who`, `why` and optionally `question`; found ";
    let project = main_project_measured("off");
    assert_eq!(
        project.read(GIVEN),
        "global_id,question,field,value,who,why\n"
    );
    let all = project.json(ALL);
    let id = record(&all, "other")["global_id"].as_str().unwrap();
    let before = project.read(ALL);
    for (header, found) in [
        // The first line is a correction: it would be lost as a header.
        (
            format!("{id},element_type,furniture,Ada,seen"),
            format!(
                "`{id}`, `element_type`, `furniture`, `Ada`, `seen`; the first line must name the columns"
            ),
        ),
        (
            "global_id,feild,value,who,why".to_owned(),
            "`global_id`, `feild`, `value`, `who`, `why`; did you mean `field`?".to_owned(),
        ),
        (
            "global_id;field;value;who".to_owned(),
            "`global_id`, `field`, `value`, `who`".to_owned(),
        ),
        (String::new(), "no header".to_owned()),
    ] {
        project.write(GIVEN, format!("{header}\n"));
        project
            .run(&[])
            .expect(1, &["generate"])
            .says(&format!("SCHEMA: {EXPECTED}{found}"));
        assert_eq!(project.read(ALL), before);
    }
    // The order of the columns is free, and the key is the column that is declared first.
    project.write(
        GIVEN,
        format!("why;who;field;value;global_id\r\nseen;Ada;element_type;furniture;{id}\r\n"),
    );
    project.run(&[]).expect(0, &["generate"]);
    let corrected = project.json(ALL);
    let elements = corrected["elements"].as_array().unwrap();
    let corrected = elements.iter().find(|element| element["global_id"] == id);
    assert_eq!(corrected.unwrap()["element_type"], "furniture");
}

#[test]
fn corrections_without_declared_columns_need_their_header_too() {
    let project = main_project_measured("off");
    let stage = project.read("stages/4_generate.toml");
    let columns = stage.lines().find(|line| line.starts_with("columns = "));
    let stage = stage
        .replace(columns.unwrap(), "")
        .replace("schema = \"schemas/corrections.schema.json\"\n", "");
    project.write("stages/4_generate.toml", stage);
    for (header, found) in [
        (
            "1,element_type,beam,Ada,seen",
            "`1`, `element_type`, `beam`, `Ada`, `seen`",
        ),
        ("field,value,who,why", "`field`, `value`, `who`, `why`"),
    ] {
        project.write(GIVEN, format!("{header}\n"));
        project.run(&[]).expect(1, &["generate"]).says(&format!(
            "INPUT: inputs/corrections.csv:1: expected a column for the key, then `field`, `value`, `who`, `why`; found {found}"
        ));
    }
}

#[test]
fn the_checkpoint_of_the_first_stage_is_that_of_the_document() {
    let project = main_project_measured("off");
    let checkpoint = project.json("workspace/stage_1_complete.json");
    let sum = |path: &str| {
        let bytes = std::fs::read(project.at(path)).unwrap();
        json!(milepost_core::base::digest::Digest::of(bytes).to_string())
    };
    let field = |name: &str| checkpoint[name].clone();
    let names = [
        "stage",
        "status",
        "output_file",
        "element_count",
        "checksums",
    ];
    assert_eq!(
        json!(names.map(field)),
        json!([
            "parse",
            "complete",
            "intermediate/parsed_data.json",
            300,
            {
                "input": sum("workspace/inputs/sample.ifc"),
                "output": sum("workspace/intermediate/parsed_data.json"),
            }
        ])
    );
    let timestamp = checkpoint["timestamp"].as_str().unwrap();
    assert!(timestamp.ends_with('Z') && timestamp.parse::<jiff::Timestamp>().is_ok());
    let by_type = checkpoint["summary"]["by_type"].as_object().unwrap();
    let elements: u64 = by_type.values().filter_map(Value::as_u64).sum();
    assert_eq!(elements, 300);
}
