//! Precision and coverage on public models of other offices, in two sets that were labelled before the rules saw them. The rules were
//! tuned on the first set since then. The models are not part of the project: `MILEPOST_TEST_MODELS` names the folder that holds
//! them, and `sources_unseen.csv` and `sources_second.csv` say where they come from.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::measure::{Score, text};
use super::{elements, file, question, rules};

const FOLDER: &str = "MILEPOST_TEST_MODELS";
/// What the rules call a load-bearing external wall, which the labels call an external one.
const BEARING: &str = "load_bearing_wall";
/// The parameter `review_below` of the main example.
const REVIEW_BELOW: f64 = 0.5;
const SETS: [&str; 2] = ["unseen", "second"];
/// The half of the first set that the rules were tuned on first.
const TUNING: &str = "tuning";

#[derive(serde::Deserialize)]
struct Label {
    model: String,
    sha256: String,
    global_id: String,
    name: String,
    element_type: String,
    material: String,
    half: String,
}

#[derive(serde::Deserialize)]
struct Source {
    model: String,
    sha256: String,
}

fn rows<T: serde::de::DeserializeOwned>(path: &str) -> Vec<T> {
    csv::Reader::from_reader(file(path).as_bytes())
        .deserialize()
        .collect::<Result<_, _>>()
        .unwrap()
}

/// The labels of a set.
fn labels(set: &str) -> Vec<Label> {
    rows(&format!("tests/classification/labels_{set}.csv"))
}

/// The half of the first set that a label is in.
fn half(global_id: &str) -> &'static str {
    match Sha256::digest(global_id).last() {
        Some(last) if last % 2 == 0 => TUNING,
        _ => "unseen",
    }
}

#[test]
fn labels_of_unseen_models_name_their_source_and_half() {
    for set in SETS {
        let labels = labels(set);
        assert_eq!(labels.len(), 150);
        let ids: BTreeSet<_> = labels.iter().map(|l| (&l.model, &l.global_id)).collect();
        assert_eq!(ids.len(), 150);
        let sources: BTreeMap<_, _> =
            rows::<Source>(&format!("tests/classification/sources_{set}.csv"))
                .into_iter()
                .map(|s| (s.model, s.sha256))
                .collect();
        for label in &labels {
            assert_eq!(sources.get(&label.model), Some(&label.sha256));
            let half = if set == "second" {
                set
            } else {
                half(&label.global_id)
            };
            assert_eq!(label.half, half, "{}", label.global_id);
        }
    }
}

/// The model of a label, if the folder has it.
///
/// # Panics
///
/// If the file is not the one that was labelled.
fn model(folder: &Path, label: &Label) -> Option<BTreeMap<String, Value>> {
    let path = folder.join(format!("{}.ifc", label.model));
    let Ok(bytes) = std::fs::read(&path) else {
        eprintln!("{} does not exist", path.display());
        return None;
    };
    let digest: String = Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    assert_eq!(digest, label.sha256, "{}", path.display());
    let by_id = |e: Value| (text(&e["global_id"]).to_owned(), e);
    Some(elements(&path).into_iter().map(by_id).collect())
}

#[test]
#[ignore = "the models are not part of the project"]
fn rules_on_unseen_models() {
    let folder = std::env::var_os(FOLDER).map(PathBuf::from);
    let folder = folder.unwrap_or_else(|| panic!("{FOLDER} names no folder of models"));
    let (rules, question) = (rules(), question());
    let mut models = BTreeMap::new();
    let mut scores: BTreeMap<String, (Score, Score, Score)> = BTreeMap::new();
    for label in SETS.into_iter().flat_map(labels) {
        let found = models
            .entry(label.model.clone())
            .or_insert_with(|| model(&folder, &label));
        let Some(element) = found.as_ref().map(|m| &m[&label.global_id]) else {
            continue;
        };
        let answer = rules.answer(&question.one(element.clone(), &[]).unwrap());
        let of = format!("{} {} `{}`", label.model, label.global_id, label.name);
        let rule = text(&answer["rule"]);
        let (types, by_definition, materials) = scores.entry(label.half).or_default();
        // A person reviews what is less sure, so that it counts as not answered.
        let committed = answer["confidence"].as_f64() >= Some(REVIEW_BELOW);
        let told = |answer: &Value| {
            if committed {
                text(answer).to_owned()
            } else {
                "other".to_owned()
            }
        };
        let element_type = told(&answer["element_type"]);
        types.add(&of, &label.element_type, &element_type, rule);
        let defined = match label.element_type.as_str() {
            "external_wall" if element_type == BEARING && answer["location"] == "external" => {
                BEARING
            }
            other => other,
        };
        by_definition.add(&of, defined, &element_type, rule);
        let material = told(&answer["material_primary"]["category"]);
        materials.add(&of, &label.material, &material, rule);
    }
    for (half, (types, by_definition, materials)) in &scores {
        for (what, score) in [("element type", types), ("material", materials)] {
            eprintln!("{}", score.line(&format!("{what}, {half}")));
            eprintln!("{}", score.mistakes.join("\n"));
        }
        let what = format!("element type with load-bearing walls as the page defines them, {half}");
        eprintln!("{}", by_definition.line(&what));
    }
}
