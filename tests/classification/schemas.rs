//! The published schemas of the main pipeline: what they accept and refuse, and that they agree with the code.

use crate::support::required::{real_models, require};
use milepost_agents::rules::rules_schema;
use serde_json::{Value, json};

use super::{elements, file, question, record, rules};

fn schema(name: &str) -> Value {
    serde_json::from_str(&file(&format!("schemas/{name}.schema.json"))).unwrap()
}

/// What a schema finds wrong, as `pointer: message`.
fn violations(name: &str, value: &Value) -> Vec<String> {
    jsonschema::validator_for(&schema(name))
        .unwrap()
        .iter_errors(value)
        .map(|e| format!("{}: {e}", e.instance_path()))
        .collect()
}

fn minimal() -> Value {
    json!({
        "global_id": "0000000000000000000001", "ifc_type": "IfcWall", "name": null, "element_type": "other",
        "material_primary": null, "volume_m3": null, "confidence": 0.3
    })
}

#[test]
fn the_rules_schema_is_the_one_of_the_code() {
    let path = "schemas/milepost/rules.schema.json";
    let whole = serde_json::to_string_pretty(&rules_schema()).unwrap() + "\n";
    if std::env::var_os("MILEPOST_WRITE_SCHEMAS").is_some() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
        std::fs::write(path, &whole).unwrap();
    }
    assert!(
        file(path) == whole,
        "{path} is not what the code says: run the tests once with MILEPOST_WRITE_SCHEMAS=1"
    );
    let rules: Value = toml::from_str(&file("rules/elements.toml")).unwrap();
    let found: Vec<_> = jsonschema::validator_for(&rules_schema())
        .unwrap()
        .iter_errors(&rules)
        .map(|e| format!("{}: {e}", e.instance_path()))
        .collect();
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn every_schema_is_valid_and_describes_itself() {
    for name in [
        "parsed",
        "batches",
        "classified",
        "all",
        "answer",
        "corrections",
    ] {
        let schema = schema(name);
        jsonschema::meta::validate(&schema).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(
            schema["$schema"],
            "https://json-schema.org/draft/2020-12/schema"
        );
        assert!(schema["title"].is_string(), "{name}");
    }
}

#[test]
fn closed_lists_are_those_of_the_vocabulary() {
    let vocabulary: Value =
        toml::from_str(&file("crates/agents/src/rules/vocabulary.toml")).unwrap();
    let words = |name: &str| -> Vec<Value> {
        let list = vocabulary[name].as_array().unwrap().iter();
        list.map(|word| match &word["name"] {
            Value::Null => word.clone(),
            name => name.clone(),
        })
        .collect()
    };
    let record = &schema("classified")["items"]["properties"];
    let answer = &schema("answer")["properties"];
    for properties in [record, answer] {
        assert_eq!(
            properties["element_type"]["enum"],
            json!(words("element_type"))
        );
        let category = &properties["material_primary"]["properties"]["category"]["enum"];
        assert_eq!(category, &json!(words("category")));
        for (key, name) in [("function", "functions"), ("location", "locations")] {
            let mut or_null = words(name);
            or_null.push(Value::Null);
            assert_eq!(properties[key]["enum"], json!(or_null));
        }
    }
    assert_eq!(
        schema("all")["properties"]["elements"]["items"],
        schema("classified")["items"]
    );
    assert_eq!(
        schema("batches")["properties"]["elements"]["items"],
        schema("parsed")["properties"]["elements"]["items"]
    );
}

#[test]
fn every_word_of_the_vocabulary_has_labels() {
    let toml = |path: &str| -> Value { toml::from_str(&file(path)).unwrap() };
    let (vocabulary, labels) = (
        toml("crates/agents/src/rules/vocabulary.toml"),
        toml("rules/labels.toml"),
    );
    let labelled = |table: &str, word: &Value| {
        let label = &labels[table][word.as_str().unwrap()];
        assert!(
            label["en"].is_string() && label["de"].is_string(),
            "{table}.{word}"
        );
    };
    for (words, table) in [
        ("element_type", "element_type"),
        ("category", "category"),
        ("functions", "function"),
        ("locations", "location"),
    ] {
        for word in vocabulary[words].as_array().unwrap() {
            labelled(table, word.get("name").unwrap_or(word));
        }
    }
    for material in toml("rules/elements.toml")["material"].as_array().unwrap() {
        if let Some(word) = material.get("subcategory") {
            labelled("subcategory", word);
        }
    }
    let kinds = &schema("parsed")["properties"]["elements"]["items"]["properties"]["takeoff"]["properties"]
        ["area_kind"];
    for kind in kinds["enum"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|kind| !kind.is_null())
    {
        labelled("area_kind", kind);
    }
}

#[test]
fn a_key_of_an_answer_that_the_schema_does_not_list_is_refused() {
    let answer = json!({
        "element_type": "other",
        "material_primary": {"name": "C30/37", "category": "concrete", "grade": "C30/37"},
        "material_secondary": [{"name": "EPS", "category": "insulation", "mm": 40}],
        "confidence": 0.3,
        "data_quality": {"source": "drawing"},
        "guid": "0000000000000000000001"
    });
    let refused = |pointer: &str, key: &str| {
        format!("{pointer}: Additional properties are not allowed ('{key}' was unexpected)")
    };
    let mut found = violations("answer", &answer);
    found.sort();
    assert_eq!(
        found,
        [
            refused("/data_quality", "source"),
            refused("/material_primary", "grade"),
            refused("/material_secondary/0", "mm"),
            refused("", "guid"),
        ]
    );
}

#[test]
fn seven_fields_are_enough_and_each_is_needed() {
    assert_eq!(
        violations("classified", &json!([minimal()])),
        Vec::<String>::new()
    );
    for field in [
        "global_id",
        "ifc_type",
        "name",
        "element_type",
        "material_primary",
        "volume_m3",
        "confidence",
    ] {
        let mut record = minimal();
        record.as_object_mut().unwrap().shift_remove(field);
        assert_eq!(
            violations("classified", &json!([minimal(), record])),
            [format!("/1: \"{field}\" is a required property")]
        );
    }
}

#[test]
fn what_is_not_on_a_list_is_refused() {
    let with = |field: &str, value: Value| {
        let mut record = minimal();
        record[field] = value;
        violations("classified", &json!([record]))
            .into_iter()
            .map(|v| v.split(':').next().unwrap_or_default().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(with("guid", json!("0000000000000000000001")), ["/0/guid"]);
    assert_eq!(with("element_type", json!("wall")), ["/0/element_type"]);
    assert_eq!(with("volume_m3", json!("unknown")), ["/0/volume_m3"]);
    assert_eq!(with("confidence", json!(1.2)), ["/0/confidence"]);
    assert_eq!(
        with("material_primary", json!({"name": "x", "category": "wool"})),
        ["/0/material_primary/category"]
    );
    assert_eq!(with("location", json!("outside")), ["/0/location"]);
    assert_eq!(
        with(
            "corrections",
            json!([{"field": "name", "from": null, "to": "W1"}])
        ),
        Vec::<String>::new()
    );
}

#[test]
fn corrections_are_checked_row_by_row_or_as_a_list() {
    let row = json!({"global_id": "1", "field": "element_type", "value": "beam", "who": "AB", "why": "seen on site"});
    assert_eq!(violations("corrections", &row), Vec::<String>::new());
    assert_eq!(
        violations("corrections", &json!([row, row])),
        Vec::<String>::new()
    );
    for (field, value, who, said) in [
        ("element_type", "bean", "AB", "/0/value"),
        ("material_primary.category", "wood", "AB", "/0/value"),
        ("function", "none", "AB", "/0/value"),
        ("location", "outside", "AB", "/0/value"),
        ("volume_m3", "much", "AB", "/0/value"),
        ("volume_m3", "1,5", "AB", "/0/value"),
        ("area_m2", "-1", "AB", "/0/value"),
        ("global_id", "2", "AB", "/0/field"),
        ("name", "W1", "AB", "/0/field"),
        ("confidence", "1", "AB", "/0/field"),
        ("storey", "EG", "", "/0/who"),
        ("storey", "EG", " ", "/0/who"),
        ("storey_elevation_m", "-3.2", "AB", ""),
        ("volume_m3", "", "AB", ""),
        ("location", "", "AB", ""),
        ("location", "roof", "AB", ""),
        ("function", "services", "AB", ""),
        ("material_primary.category", "timber", "AB", ""),
        ("element_type", "pile", "AB", ""),
    ] {
        let row =
            json!([{"global_id": "1", "field": field, "value": value, "who": who, "why": "y"}]);
        let mut found: Vec<String> = violations("corrections", &row);
        found.dedup_by(|a, b| a.split(':').next() == b.split(':').next());
        let places: Vec<&str> = found.iter().map(|v| v.split(':').next().unwrap()).collect();
        let expected: Vec<&str> = if said.is_empty() { vec![] } else { vec![said] };
        assert_eq!(places, expected, "{field} {value:?}");
    }
    // What differs from element to element is not corrected by question.
    for (question, field, value, said) in [
        ("0123456789ab", "element_type", "beam", ""),
        ("0123456789ab", "volume_m3", "1.5", "/field"),
        ("0123456789ab", "storey", "EG", "/field"),
        ("a wall", "element_type", "beam", "/question"),
        ("", "volume_m3", "1.5", ""),
    ] {
        let row = json!({"global_id": null, "question": question, "field": field, "value": value, "who": "AB", "why": "y"});
        let found = violations("corrections", &row);
        let found: Vec<&str> = found.iter().map(|v| v.split(':').next().unwrap()).collect();
        let expected: &[&str] = if said.is_empty() { &[] } else { &[said] };
        assert_eq!(found, expected, "{question} {field}");
    }
}

#[test]
fn what_a_correction_may_say_is_what_a_record_may_say() {
    let record = schema("classified")["items"]["properties"].clone();
    let rules = schema("corrections")["$defs"]["row"]["allOf"].clone();
    for (field, of_record) in [
        ("element_type", &record["element_type"]),
        ("function", &record["function"]),
        ("location", &record["location"]),
        (
            "material_primary.category",
            &record["material_primary"]["properties"]["category"],
        ),
    ] {
        let words = |value: &Value| -> Vec<String> {
            let all = value["enum"].as_array().unwrap().iter();
            let words = all
                .filter_map(Value::as_str)
                .filter(|word| !word.is_empty());
            words.map(str::to_owned).collect()
        };
        let rule = rules
            .as_array()
            .unwrap()
            .iter()
            .find(|rule| rule["if"]["properties"]["field"]["enum"] == json!([field]));
        assert_eq!(
            words(&rule.unwrap()["then"]["properties"]["value"]),
            words(of_record),
            "{field}"
        );
    }
}

#[test]
fn real_models_their_answers_and_records_are_valid() {
    let data = require!(real_models());
    let (rules, question, record) = (rules(), question(), record());
    for model in [
        "duplex_A_20110907.ifc",
        "duplex_Electrical_20121207.ifc",
        "pcert_building_architecture_ifc4.ifc",
    ] {
        let elements = elements(&data.join(model));
        let mut records = Vec::new();
        for element in &elements {
            let answer = rules.answer(&question.one(element.clone(), &[]).unwrap());
            assert_eq!(violations("answer", &answer), Vec::<String>::new());
            records.push(record.one(answer, &[element.clone(), Value::Null]).unwrap());
        }
        let none = Vec::<String>::new();
        assert_eq!(violations("parsed", &json!({"elements": elements})), none);
        assert_eq!(violations("classified", &json!(records)), none);
        let count = records.len();
        assert_eq!(
            violations("all", &json!({"elements": records, "count": count})),
            none
        );
    }
}
