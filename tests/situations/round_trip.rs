//! The review of the main example as a round trip: the workbook is edited and imported, and the corrections outlive a revision.

use super::corrections::main_project;
use crate::support::Project;
use crate::support::required::{self, Missing, real_model, require};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

const EDIT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/pages/edit_review.py");
const REPORT: &str = "workspace/intermediate/report.json";
const ALL: &str = "workspace/intermediate/classified_all.json";

/// Edits a copy of the workbook, `review.xlsx`.
fn edit(project: &Project, edits: &[Value]) -> Result<(), Missing> {
    std::fs::copy(
        project.at("workspace/outputs/report.xlsx"),
        project.at("review.xlsx"),
    )
    .unwrap();
    required::program("python3", &["--version"])?;
    let status = Command::new("python3")
        .arg(EDIT)
        .arg(project.at("review.xlsx"))
        .args(edits.iter().map(ToString::to_string))
        .status()
        .unwrap();
    assert!(status.success());
    Ok(())
}

fn records<'a>(all: &'a Value, field: &str, value: &str) -> Vec<&'a Value> {
    let elements = all["elements"].as_array().unwrap().iter();
    elements.filter(|element| element[field] == value).collect()
}

/// Corrects the first question and the volume of another element, then revises the model.
fn round_trip(project: &Project, revise: impl FnOnce(&Project, &str) -> Vec<String>) {
    let report = project.json(REPORT);
    let all = project.json(ALL);
    // A model may leave nothing open; a person may correct any question then.
    let asked = report["review"].get(0).unwrap_or(&all["elements"][0]);
    let question = asked["question"].as_str().unwrap().to_owned();
    let measured = all["elements"].as_array().unwrap().iter();
    let measured = measured
        .filter(|element| element["question"] != question.as_str())
        .find(|element| element["volume_m3"].is_null())
        .or_else(|| {
            all["elements"]
                .as_array()
                .unwrap()
                .iter()
                .find(|element| element["question"] != question.as_str())
        })
        .unwrap()["global_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let edits = [
        json!({"row": {"Question": question}, "cells": {"Correct element type": "External wall", "Why": "seen on site"}}),
        json!({"row": {"GlobalId": measured}, "cells": {"Correct volume [m³]": 12.5, "Who": "M. Lang", "Why": "measured"}}),
    ];
    require!(edit(project, &edits));
    let (code, text) = project.milepost(&["import-review", "review.xlsx", "--who", "Ada"]);
    assert_eq!(code, 0, "{text}");
    assert_eq!(
        project.read("workspace/inputs/corrections.csv"),
        format!(
            "global_id,question,field,value,who,why\n,{question},element_type,external_wall,Ada,seen on site\n{measured},,volume_m3,12.5,M. Lang,measured\n"
        )
    );
    project.run(&[]).expect(0, &["generate"]);
    let check = |unmatched: &[&str]| {
        let (report, all) = (project.json(REPORT), project.json(ALL));
        let of_question = records(&all, "question", &question);
        assert!(!of_question.is_empty());
        for record in of_question {
            assert_eq!(record["element_type"], "external_wall");
            assert_eq!(record["corrections"][0]["question"], question.as_str());
        }
        let open = report["review"].as_array().unwrap().iter();
        assert!(open.clone().all(|row| row["question"] != question.as_str()));
        let found = report["corrections"]["unmatched"]
            .as_array()
            .unwrap()
            .iter();
        let found: Vec<&str> = found
            .map(|row| row["global_id"].as_str().unwrap())
            .collect();
        assert_eq!(found, unmatched);
        for record in records(&all, "global_id", &measured) {
            assert_eq!(record["volume_m3"], 12.5);
        }
    };
    check(&[]);
    // The workbook of this run has the question no more; importing the old one again adds nothing.
    let table = project.read("workspace/inputs/corrections.csv");
    let (code, text) = project.milepost(&["import-review", "review.xlsx", "--who", "Ada"]);
    assert!(
        code == 0 && text.starts_with("skipped  2 corrections"),
        "{text}"
    );
    assert_eq!(project.read("workspace/inputs/corrections.csv"), table);

    let options = revise(project, &measured);
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let run = project.run_unplanned(&options);
    assert_eq!(run.code, 0, "{}", run.output);
    let is_there = !records(&project.json(ALL), "global_id", &measured).is_empty();
    if is_there {
        check(&[]);
    } else {
        check(&[&measured]);
        run.says(&format!(
            "warning: inputs/corrections.csv:3: no element has the global_id `{measured}`, so its `volume_m3` is not corrected"
        ));
    }
}

#[test]
fn corrections_of_the_workbook_outlive_a_revision_of_the_sample() {
    let project = main_project();
    round_trip(&project, |project, measured| {
        // Another authoring tool gives the element another GlobalId.
        let other = format!("{}$", &measured[..21]);
        project.edit("workspace/inputs/sample.ifc", measured, &other);
        Vec::new()
    });
}

#[test]
fn corrections_of_the_workbook_outlive_a_revision_of_a_real_model() {
    let old = require!(real_model("duplex_A_20110505.ifc"));
    let new = require!(real_model("duplex_A_20110907.ifc"));
    let project = main_project();
    let set = |path: &Path| vec!["--set".to_owned(), format!("model={}", path.display())];
    let first = set(&old);
    let first: Vec<&str> = first.iter().map(String::as_str).collect();
    let run = project.run_unplanned(&first);
    assert_eq!(run.code, 0, "{}", run.output);
    round_trip(&project, |_, _| set(&new));
}
