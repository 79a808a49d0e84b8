//! Three hundred records of a small office building, as the main pipeline makes them.

use serde_json::{Map, Value, json};

/// IFC type, element type, function, material category and name, m³ and m² of one, confidence.
type Kind = (
    &'static str,
    &'static str,
    &'static str,
    Option<(&'static str, &'static str)>,
    Option<f64>,
    Option<f64>,
    f64,
);

const KINDS: [Kind; 10] = [
    (
        "IfcWall",
        "load_bearing_wall",
        "structural",
        Some(("concrete", "Beton C30/37")),
        Some(2.5),
        Some(12.5),
        0.95,
    ),
    (
        "IfcWall",
        "partition_wall",
        "partition",
        Some(("gypsum", "Gipskarton 2×12,5")),
        Some(0.6),
        Some(8.0),
        0.95,
    ),
    (
        "IfcSlab",
        "slab_structural",
        "structural",
        Some(("concrete", "Beton C30/37")),
        Some(18.25),
        Some(73.0),
        0.95,
    ),
    (
        "IfcColumn",
        "column",
        "structural",
        Some(("steel", "S355 HEB 200")),
        Some(0.024),
        None,
        0.85,
    ),
    (
        "IfcDoor",
        "door_internal",
        "partition",
        Some(("timber", "Eiche")),
        None,
        Some(2.1),
        0.7,
    ),
    (
        "IfcWindow",
        "window",
        "enclosure",
        Some(("glass", "HR++")),
        None,
        Some(1.8),
        0.85,
    ),
    (
        "IfcCovering",
        "ceiling",
        "finishing",
        Some(("insulation", "Steinwolle <15 mm>")),
        Some(0.4),
        Some(20.0),
        0.7,
    ),
    ("IfcFurniture", "furniture", "other", None, None, None, 0.6),
    (
        "IfcBuildingElementProxy",
        "other",
        "other",
        None,
        None,
        None,
        0.3,
    ),
    (
        "IfcPlate",
        "plate",
        "enclosure",
        Some(("glass", "HR++")),
        Some(0.05),
        Some(2.5),
        0.85,
    ),
];

const STOREYS: [(&str, f64); 4] = [
    ("-1 Tiefgarage", -3.2),
    ("00 Erdgeschoss", 0.0),
    ("01 Obergeschoss", 3.5),
    ("02 Dach | Technik", 7.0),
];

/// 300 records: every tenth is a part of an assembly, every 97th without a storey, two corrected.
pub fn records() -> Vec<Value> {
    (0..300usize).map(record).collect()
}

fn record(number: usize) -> Value {
    let (ifc_type, element_type, function, material, volume, area, confidence) =
        KINDS[number % KINDS.len()];
    // Upper storeys come first in the file: reports must order them by elevation.
    let (storey, elevation) = STOREYS[3 - (number / 10) % STOREYS.len()];
    let housed = number % 97 != 96;
    let from_property = ifc_type == "IfcColumn";
    let mut record = json!({
        "global_id": format!("2O2Fr$t4X7Zf8NOew3F{number:03}"),
        "ifc_type": ifc_type,
        "name": format!("{}:{number}", &ifc_type[3..]),
        "element_type": element_type,
        "function": function,
        "location": null,
        "material_primary": material.map(|(category, name)| json!({
            "name": name, "category": category, "subcategory": null, "percentage": 100
        })),
        "material_secondary": [],
        "volume_m3": volume,
        "area_m2": area,
        "area_kind": match ifc_type {
            "IfcWall" => Some("net side"),
            "IfcSlab" => Some("net footprint"),
            _ => area.map(|_| "not stated"),
        },
        "length_m": null,
        "storey": housed.then_some(storey),
        "storey_elevation_m": housed.then_some(elevation),
        "part_of": (ifc_type == "IfcPlate").then_some("2O2Fr$t4X7Zf8NOew3F000"),
        "confidence": confidence,
        "data_quality": {
            "material_from": match (material, ifc_type) {
                (None, _) => Value::Null,
                (Some(_), "IfcDoor" | "IfcCovering") => json!("type name"),
                _ => json!("material"),
            },
            "volume_from": volume.map(|_| if from_property { "property set: Dimensions.Volume" } else { "quantity set" }),
            "missing": [], "assumed": []
        },
        "reasoning": format!("rule {}: ifc_type is {ifc_type}", element_type.replace('_', "-")),
        "question": format!("{:012x}", number % KINDS.len()),
    });
    if number == 8 || number == 18 {
        record["element_type"] = json!("furniture");
        record["corrections"] = json!([{
            "field": "element_type", "from": "other", "to": "furniture",
            "who": "A. Berger", "why": "=is a cupboard, seen on site"
        }]);
    }
    record
}

/// What the templates see beside the records.
pub fn scope() -> Map<String, Value> {
    let scope = json!({
        "params": {"model": "inputs/büro.ifc", "batch_size": 50, "review_below": 0.5, "language": "en", "geometry": "all"},
        "labels": labels(),
        "digests": {"model": "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"},
        "agents": {"classifier": "rules rules/elements.toml sha256:ab12cd34"},
        "workspace": {"today": "2026-11-21", "name": "workspace", "slug": "a1", "session_id": "s1"},
        "milepost": {"version": "0.1.0"},
        "overrides": [],
        "run": {"date": "2026-11-21", "time": "10:00:00", "timestamp": "2026-11-21T10:00:00Z"},
        "parsed": {"model": {
            "file": "büro.ifc", "schema": "IFC4", "project": "Büro Nord", "elements": 301, "openings": 12,
            "duplicate_global_ids": ["2O2Fr$t4X7Zf8NOew3F007"],
            "warnings": ["no unit for lengths: metres are assumed"]
        }},
        "corrections": [
            {"global_id": "2O2Fr$t4X7Zf8NOew3F008", "field": "element_type", "value": "furniture", "who": "A. Berger", "why": "=is a cupboard, seen on site"},
            {"global_id": "2O2Fr$t4X7Zf8NOew3F018", "field": "element_type", "value": "furniture", "who": "A. Berger", "why": "=is a cupboard, seen on site"},
            {"global_id": "not in the model", "field": "element_type", "value": "beam", "who": "A. Berger", "why": "typed wrong"}
        ],
        "all": null
    });
    match scope {
        Value::Object(scope) => scope,
        _ => Map::new(),
    }
}

/// The shipped labels.
fn labels() -> Value {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(root.join("rules/labels.toml")).unwrap();
    toml::from_str(&text).unwrap()
}
