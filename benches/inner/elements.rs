//! Elements as the main pipeline parses them, and answers about them, as JSON text.

use serde_json::{Value, json};

/// How many.
pub const COUNT: u64 = 1_000;

/// Elements of a building, each with the properties of a wall.
pub fn elements() -> Vec<Value> {
    (0..COUNT).map(element).collect()
}

/// They in a document, as `parsed_data.json` holds them.
pub fn document() -> String {
    json!({ "elements": elements() }).to_string()
}

/// What a classifier answers.
pub fn answer() -> String {
    json!({
        "element_type": "wall",
        "function": "external",
        "location": "external",
        "material_primary": "concrete",
        "material_secondary": ["mineral wool"],
        "confidence": 0.9,
        "data_quality": {"material_from": "material", "missing": [], "assumed": []},
        "reasoning": "IfcWall with a layer of concrete",
        "rule": "walls/12",
    })
    .to_string()
}

fn element(number: u64) -> Value {
    let storey = number / 50;
    json!({
        "global_id": format!("0Abcdefghijklmnop{number:05}"),
        "ifc_type": "IfcWall",
        "predefined_type": "SOLIDWALL",
        "name": format!("Basic Wall:Concrete 200 mm:{number}"),
        "object_type": "Basic Wall:Concrete 200 mm",
        "type_name": "Basic Wall:Concrete 200 mm",
        "tag": number.to_string(),
        "storey": format!("Level {storey}"),
        "storey_elevation_m": storey as f64 * 3.2,
        "container": {"name": format!("Level {storey}"), "ifc_type": "IfcBuildingStorey"},
        "part_of": null,
        "materials": ["Concrete", "Mineral wool"],
        "layers": [
            {"material": "Concrete", "thickness_m": 0.2},
            {"material": "Mineral wool", "thickness_m": 0.14}
        ],
        "volume_m3": number as f64 * 0.001 + 1.2,
        "net_volume_m3": number as f64 * 0.001 + 1.2,
        "gross_volume_m3": null,
        "area_m2": 6.0,
        "length_m": 3.75,
        "property_volume_m3": null,
        "property_volume_from": null,
        "classifications": ["Ss_25_10"],
        "quantities": {"Qto_WallBaseQuantities": {"NetVolume": 1.2, "NetSideArea": 6.0, "Length": 3.75}},
        "properties": {"Pset_WallCommon": {"LoadBearing": true, "IsExternal": true, "FireRating": "REI 90"}},
    })
}
