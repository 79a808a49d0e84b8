//! The filters of the main pipeline: what is asked of an element, and the record that an answer becomes.

use serde_json::{Value, json};

use super::{question, record};

/// A whole element as the model step writes it, with some keys set.
fn element(set: Value) -> Value {
    let mut element = json!({
        "global_id": "0000000000000000000001", "ifc_type": "IfcWall", "predefined_type": null, "name": null, "object_type": null,
        "type_name": null, "tag": "4711", "storey": null, "storey_elevation_m": null, "container": null, "part_of": null, "parts": 0,
        "materials": [], "layers": [], "volume_m3": null, "net_volume_m3": null, "gross_volume_m3": null, "area_m2": null,
        "length_m": null, "property_volume_m3": null, "property_volume_from": null, "classifications": [],
        "quantities": {}, "properties": {}
    });
    for (key, value) in set.as_object().unwrap() {
        element[key] = value.clone();
    }
    element
}

fn asked(set: Value) -> Value {
    question().one(element(set), &[]).unwrap()
}

#[test]
fn a_question_holds_what_rules_read_and_no_more() {
    assert_eq!(
        asked(json!({
            "predefined_type": "SOLIDWALL", "name": "Basic Wall:Exterior 365:346660", "object_type": "Basic Wall:Exterior 365:1122",
            "type_name": "Basic Wall:Exterior 365", "storey": "UG", "storey_elevation_m": -3.2, "part_of": "x",
            "materials": ["Beton"], "layers": [{"material": "Beton", "thickness_m": 0.300_000_004}], "volume_m3": 3.5,
            "classifications": ["Ss_25_10"],
            "properties": {"Pset_WallCommon": {"LoadBearing": true, "IsExternal": false, "FireRating": "EI90"}}
        })),
        json!({
            "ifc_type": "IfcWall", "predefined_type": "SOLIDWALL", "type_name": "Basic Wall:Exterior", "object_type": null,
            "name": null, "load_bearing": true, "external": false, "below_ground": true,
            "materials": [], "layers": [{"material": "Beton", "thickness_m": 0.3}], "constituents": [],
            "material_property": null, "classifications": ["Ss_25_10"]
        })
    );
}

#[test]
fn running_numbers_are_no_part_of_a_question() {
    for (name, expected) in [
        ("Breedplaat [9]", json!("Breedplaat")),
        ("Breedplaat (25)", json!("Breedplaat")),
        ("Slab #7", json!("Slab")),
        ("Door 12 - 3", json!("Door")),
        ("HEA200", json!("HEA200")),
        ("STRIP8*70", json!("STRIP8*70")),
        ("Beton C25/30", json!("Beton C25/30")),
        ("[7]", Value::Null),
    ] {
        let question = asked(json!({"type_name": name}));
        assert_eq!(question["type_name"], expected, "{name}");
    }
}

#[test]
fn parts_and_classes_are_asked_with_what_they_are() {
    let question = asked(json!({
        "materials": ["Eiche", "Glas"],
        "constituents": [
            {"name": "Rahmen", "material": "Eiche", "category": null, "fraction": 0.3},
            {"name": "Glas", "material": "Glas", "category": "Glazing", "fraction": null}
        ],
        "classification_references": [{"system": "NL/SfB", "code": "31.20", "title": "Ramen"}]
    }));
    assert_eq!(
        (
            &question["materials"],
            &question["constituents"],
            &question["classifications"]
        ),
        (
            &json!([]),
            &json!([
                {"material": "Eiche", "part": "Rahmen", "fraction": 0.3},
                {"material": "Glas", "part": "Glazing", "fraction": null}
            ]),
            &json!([{"system": "NL/SfB", "code": "31.20", "title": "Ramen"}])
        )
    );
}

#[test]
fn placeholders_name_no_material() {
    for name in [
        "<Unnamed>",
        "<Unnamed Material>",
        "Default Wall",
        "Domyślny dach",
        "Leer",
        "50 %",
        "Raster 50 %",
        "Solid",
        "Massiv",
        "          ",
        "Стена по умолчанию",
        "Suelos por defecto",
        "Domyślna powierzchnia",
        "Unknown",
        "Background Fill",
        "背景",
        "既定の壁",
        "Solid 397409098",
        "Lege arcering (2)",
        "Radial Gradient Fill 1515460218",
        "Paint - Brick Red",
    ] {
        let property = json!({"PSet_Revit_Type_Materials": {"Monolithic Material": "Stahlbeton"}});
        let layers = json!([{"material": name, "thickness_m": 0.1}]);
        let question =
            asked(json!({"materials": [name], "layers": layers, "properties": property}));
        assert_eq!(question["materials"], json!([]), "{name}");
        assert_eq!(
            question["layers"],
            json!([{"material": null, "thickness_m": 0.1}]),
            "{name}"
        );
        assert_eq!(
            question["material_property"]["value"], "Stahlbeton",
            "{name}"
        );
    }
    assert_eq!(
        asked(json!({"materials": ["Massivholz", "コンクリート"]}))["materials"],
        json!(["Massivholz", "コンクリート"])
    );
}

#[test]
fn a_thickness_that_is_not_known_is_null() {
    let layers = json!([{"material": "Beton", "thickness_m": null}, {"material": "Putz", "thickness_m": 0.0}]);
    assert_eq!(asked(json!({"layers": layers}))["layers"], layers);
}

#[test]
fn an_element_of_which_nothing_is_said_asks_the_shortest_question() {
    assert_eq!(
        asked(
            json!({"ifc_type": "IfcBuildingElementProxy", "name": "214x643x897", "object_type": "122"})
        ),
        json!({
            "ifc_type": "IfcBuildingElementProxy", "predefined_type": null, "type_name": null, "object_type": null, "name": null,
            "load_bearing": null, "external": null, "below_ground": null, "materials": [], "layers": [],
            "constituents": [], "material_property": null, "classifications": []
        })
    );
    assert_eq!(
        question().one(json!({"ifc_type": "IfcWall"}), &[]).unwrap()["ifc_type"],
        "IfcWall"
    );
}

#[test]
fn flags_are_asked_only_of_what_they_tell_apart() {
    let flags = json!({"Pset": {"IsExternal": true, "LoadBearing": false}});
    let of = |ifc_type: &str| {
        let q = asked(json!({"ifc_type": ifc_type, "properties": flags}));
        (q["external"].clone(), q["load_bearing"].clone())
    };
    assert_eq!(of("IfcSlab"), (json!(true), json!(false)));
    assert_eq!(of("IfcDoor"), (json!(true), Value::Null));
    assert_eq!(of("IfcFurniture"), (Value::Null, Value::Null));
}

#[test]
fn a_storey_is_below_the_ground_by_height_or_name() {
    let below = |name: &str, height: Option<f64>| {
        asked(json!({"storey": name, "storey_elevation_m": height}))["below_ground"] == true
    };
    for name in [
        "UG",
        "1. UG",
        "2.UG",
        "Kellergeschoss",
        "Untergeschoß",
        "kelder",
        "Basement 1",
        "Sous-sol",
        "T/FDN",
        "fundering",
        "Level -1",
    ] {
        assert!(below(name, None), "{name}");
    }
    for name in [
        "EG",
        "Augsburg",
        "Level 1",
        "1. Obergeschoss",
        "begane grond",
        "Level 2 - 1",
        "Kgs",
    ] {
        assert!(!below(name, None), "{name}");
    }
    assert!(below("Ebene 0", Some(-3.0)));
    assert!(!below("Ebene 0", Some(-0.2)));
    let wall = |height: f64| {
        let takeoff = json!({"height_m": height});
        asked(json!({"storey": "Bk fundering", "storey_elevation_m": -0.75, "takeoff": takeoff}))["below_ground"]
            == true
    };
    assert!(wall(0.75) && !wall(7.8), "it stands on the foundation");
}

#[test]
fn a_property_names_the_material_only_where_the_model_associates_none() {
    let of = |materials: Value, value: &str| {
        asked(json!({"materials": materials, "properties": {"A": {"Reference": "x"}, "Finishes": {"Material": value}}}))["material_property"]
            .clone()
    };
    assert_eq!(
        of(json!([]), "Concrete"),
        json!({"property": "Finishes.Material", "value": "Concrete"})
    );
    assert_eq!(of(json!(["Wood"]), "Concrete"), Value::Null);
    for nothing in ["Material", "N/A", "", "<By Category>", "None"] {
        assert_eq!(of(json!([]), nothing), Value::Null, "{nothing}");
    }
}

#[test]
fn a_record_takes_what_is_measured_from_the_model() {
    let answer = json!({
        "element_type": "beam", "function": "structural", "location": null, "confidence": 0.95,
        "material_primary": {"name": "S355", "category": "steel", "subcategory": "S355", "percentage": 100.0}, "material_secondary": [],
        "data_quality": {"material_from": "material", "missing": [], "assumed": []},
        "reasoning": "rule beam: IfcBeam", "rule": "beam",
        "global_id": "made up", "volume_m3": 99
    });
    let made = |set: Value| {
        record()
            .one(answer.clone(), &[element(set), json!("0123456789ab")])
            .unwrap()
    };
    assert_eq!(
        made(
            json!({"name": "T1", "volume_m3": 0.5, "property_volume_m3": 0.6, "property_volume_from": "D.Volume", "length_m": 4.0, "storey": "EG", "part_of": "A"})
        ),
        json!({
            "global_id": "0000000000000000000001", "ifc_type": "IfcWall", "name": "T1", "type_name": null, "tag": "4711",
            "element_type": "beam", "function": "structural", "location": null,
            "material_primary": {"name": "S355", "category": "steel", "subcategory": "S355", "percentage": 100.0},
            "material_secondary": [], "layers": [], "classification_references": [],
            "volume_m3": 0.5, "area_m2": null, "area_kind": null, "length_m": 4.0, "height_m": null,
            "storey": "EG", "storey_elevation_m": null, "part_of": "A", "parts": 0, "confidence": 0.95,
            "data_quality": {
                "material_from": "material", "volume_from": "quantity set", "area_from": null, "length_from": "quantity set",
                "height_from": null, "implausible": [], "missing": [], "assumed": []
            },
            "reasoning": "rule beam: IfcBeam", "rule": "beam", "question": "0123456789ab", "outline": null
        })
    );
    let by_property = made(
        json!({"property_volume_m3": 0.6, "property_volume_from": "D.Volume", "storey": "EG"}),
    );
    assert_eq!(by_property["volume_m3"], 0.6);
    assert_eq!(
        by_property["data_quality"]["volume_from"],
        "property set: D.Volume"
    );
    assert_eq!(by_property["confidence"], 0.85);
    let without = made(json!({}));
    assert_eq!(
        without["data_quality"]["missing"],
        json!(["volume", "storey"])
    );
    assert_eq!(without["volume_m3"], Value::Null);
    let zero = made(json!({"volume_m3": 0.0}));
    assert_eq!(
        (&zero["volume_m3"], &zero["data_quality"]["volume_from"]),
        (&json!(0.0), &json!("quantity set"))
    );
}

#[test]
fn the_shortest_answer_makes_a_record_too() {
    let answer = json!({"element_type": "other", "material_primary": null, "confidence": 0.2});
    let record = record()
        .one(answer, &[element(json!({})), Value::Null])
        .unwrap();
    assert_eq!(
        (
            &record["function"],
            &record["material_secondary"],
            &record["confidence"]
        ),
        // What the answer does not say, the record does not say either.
        (&Value::Null, &json!([]), &json!(0.2))
    );
    assert_eq!(
        record["data_quality"]["missing"],
        json!(["volume", "storey"])
    );
}

/// A reader that judged the figures says what counts; what it took from nowhere is null, and the reasons stay in the record.
#[test]
fn a_record_counts_the_figures_that_were_judged() {
    let answer = json!({"element_type": "other", "material_primary": null, "confidence": 0.9});
    let made = |set: Value| {
        record()
            .one(answer.clone(), &[element(set), json!("0123456789ab")])
            .unwrap()
    };
    let why = json!({"quantity": "volume", "stated": 3000.0, "property": 3.0, "geometry": null, "taken": null, "reason": "at odds"});
    let judged = made(json!({
        "volume_m3": 3000.0, "property_volume_m3": 3.0, "area_m2": 1.0, "layers": [{"material": "Beton", "thickness_m": 0.2}],
        "classification_references": [{"system": "NL/SfB", "code": "31.20", "title": null}],
        "takeoff": {
            "volume_m3": null, "volume_from": null, "area_m2": 12.5, "area_kind": "net side", "area_from": "geometry",
            "length_m": 5.0, "length_from": "quantity set", "height_m": 2.5, "height_from": "property set: Dimensions.Height",
            "implausible": [why]
        },
        "geometry": {"outline": {"view": "cut", "rings": [[0.0, 0.0, 5.0, 0.0, 5.0, 0.2]]}}
    }));
    let of = |record: &Value, keys: &[&str]| -> Value {
        keys.iter().map(|&key| record[key].clone()).collect()
    };
    let keys = [
        "volume_m3",
        "area_m2",
        "area_kind",
        "length_m",
        "height_m",
        "layers",
        "classification_references",
        "outline",
    ];
    assert_eq!(
        of(&judged, &keys),
        json!([
            null, 12.5, "net side", 5.0, 2.5, [{"material": "Beton", "thickness_m": 0.2}],
            [{"system": "NL/SfB", "code": "31.20", "title": null}], {"view": "cut", "rings": [[0.0, 0.0, 5.0, 0.0, 5.0, 0.2]]}
        ])
    );
    let keys = [
        "volume_from",
        "area_from",
        "length_from",
        "height_from",
        "implausible",
        "missing",
    ];
    assert_eq!(
        of(&judged["data_quality"], &keys),
        json!([
            null,
            "geometry",
            "quantity set",
            "property set: Dimensions.Height",
            [why],
            ["volume", "storey"]
        ])
    );
    let of_geometry = made(json!({"takeoff": {"volume_m3": 2.0, "volume_from": "geometry"}}));
    assert_eq!(
        (&of_geometry["volume_m3"], &of_geometry["confidence"]),
        (&json!(2.0), &json!(0.9))
    );
}

#[test]
fn a_figure_beyond_reason_does_not_count_unless_the_geometry_confirms_it() {
    let answer = json!({"element_type": "other", "material_primary": null, "confidence": 0.9});
    let made = |set: Value| {
        let record = record()
            .one(answer.clone(), &[element(set), json!("0123456789ab")])
            .unwrap();
        let reasons = record["data_quality"]["implausible"]
            .as_array()
            .unwrap()
            .len();
        json!([
            record["volume_m3"],
            record["data_quality"]["volume_from"],
            record["area_m2"],
            record["area_kind"],
            reasons
        ])
    };
    assert_eq!(
        [
            made(json!({"volume_m3": 143_680_000_000.0_f64, "area_m2": 7.0})),
            made(json!({"volume_m3": 12_000.0, "geometry": {"volume_m3": 11_900.0}})),
            made(json!({"volume_m3": 12_000.0, "geometry": {"volume_m3": 12.0}})),
            made(json!({"property_area_m2": 2e6, "volume_m3": 1.0})),
            made(
                json!({"area_m2": 2e5, "geometry": {"volume_m3": null, "surface_area_m2": 4.1e5}})
            ),
        ],
        [
            json!([null, null, 7.0, "not stated", 1]),
            json!([12_000.0, "quantity set", null, null, 0]),
            json!([null, null, null, null, 1]),
            json!([1.0, "quantity set", null, null, 1]),
            json!([null, null, 2e5, "not stated", 0]),
        ]
    );
}
