//! Every field of every model as IfcOpenShell reads it.

use crate::support::required::{real_models, require};
use std::collections::BTreeMap;

use milepost_formats::ifc::extract;
use serde_json::{Map, Value};

/// The elements and openings of a model by their GlobalIds.
fn by_id(records: impl Iterator<Item = Value>) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    for record in records {
        let id = record["global_id"].as_str().unwrap().to_owned();
        assert!(
            found.insert(id, record).is_none(),
            "a GlobalId stands twice"
        );
    }
    found
}

/// The records of the reference, whose STEP names the result does not have.
fn reference(text: &str) -> BTreeMap<String, Value> {
    by_id(text.lines().map(|line| {
        let mut record: Value = serde_json::from_str(line).unwrap();
        record.as_object_mut().unwrap().remove("step_id").unwrap();
        record
    }))
}

/// Equal, numbers to a billionth.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            let (one, other) = (one.as_f64().unwrap(), other.as_f64().unwrap());
            (one - other).abs() <= 1e-12 + 1e-9 * one.abs().max(other.abs())
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one
                    .iter()
                    .all(|(key, value)| other.get(key).is_some_and(|other| same(value, other)))
        }
        _ => one == other,
    }
}

/// Our element in the shape of the reference's.
fn as_reference(ours: &Value) -> Map<String, Value> {
    let mut record = ours.as_object().unwrap().clone();
    let container = record["container"].clone();
    record.insert("container".into(), container["name"].clone());
    record.insert("container_type".into(), container["ifc_type"].clone());
    let pairs = ours["layers"].as_array().unwrap().iter();
    let layers = pairs.map(|layer| {
        Value::Array(vec![
            layer["material"].clone(),
            layer["thickness_m"].clone(),
        ])
    });
    record.insert("layers".into(), layers.collect());
    record.insert("psets".into(), ours["properties"].clone());
    record
}

/// Returns the differences as `id field: theirs, ours`.
fn differences(reference: &BTreeMap<String, Value>, ours: &BTreeMap<String, Value>) -> Vec<String> {
    let mut differences = Vec::new();
    for key in ours.keys().filter(|key| !reference.contains_key(*key)) {
        differences.push(format!("{key} is not in the reference"));
    }
    for (key, theirs) in reference {
        let Some(ours) = ours.get(key).map(as_reference) else {
            differences.push(format!("{key} is missing"));
            continue;
        };
        for (field, value) in theirs.as_object().unwrap() {
            let our = ours.get(field).unwrap_or(&Value::Null);
            if !same(value, our) {
                differences.push(format!("{key} {field}: {value}, ours {our}"));
            }
        }
    }
    differences
}

#[test]
fn every_field_of_every_model_is_as_the_reference_reads_it() {
    let data = require!(real_models());
    let mut models = 0;
    for entry in std::fs::read_dir(data.join("reference")).unwrap() {
        let path = entry.unwrap().path();
        let name = format!("{}.ifc", path.file_stem().unwrap().to_str().unwrap());
        let mut ours = Vec::new();
        extract(&data.join(&name), &name, &mut ours).unwrap();
        let ours: Value = serde_json::from_slice(&ours).unwrap();
        let lists = ["elements", "openings"].into_iter();
        let ours = lists.flat_map(|list| ours[list].as_array().unwrap().clone());
        let theirs = std::fs::read_to_string(&path).unwrap();
        let differences = differences(&reference(&theirs), &by_id(ours));
        assert!(
            differences.is_empty(),
            "{name}: {} differences:\n{}",
            differences.len(),
            differences[..differences.len().min(5)].join("\n")
        );
        models += 1;
    }
    assert!(models >= 13, "only {models} models");
}

#[test]
fn a_candidate_schema_is_read_with_a_warning() {
    let data = require!(real_models());
    let mut out = Vec::new();
    let summary = extract(
        &data.join("infraroom_MCON-1.ifc"),
        "infraroom_MCON-1.ifc",
        &mut out,
    )
    .unwrap();
    assert_eq!(summary.schema, "IFC4X3_RC3");
    assert!(
        summary.warnings[0].contains("IFC4X3_RC3 is a candidate"),
        "{:?}",
        summary.warnings
    );
    assert_eq!(summary.warnings[1..], ["the model has no elements"]);
}

#[test]
fn how_much_of_a_real_model_is_covered() {
    let data = require!(real_models());
    let mut out = Vec::new();
    let summary = extract(&data.join("duplex_A_20110907.ifc"), "duplex.ifc", &mut out).unwrap();
    assert_eq!((summary.elements, summary.openings), (218, 50));
    assert_eq!(
        (summary.with_quantity_volume, summary.with_storey),
        (0, 218)
    );
    assert!(
        summary.with_property_volume > 90,
        "{}",
        summary.with_property_volume
    );
    let parsed: Value = serde_json::from_slice(&out).unwrap();
    assert_eq!(parsed["elements"].as_array().unwrap().len(), 218);
    assert_eq!(parsed["openings"].as_array().unwrap().len(), 50);
}
