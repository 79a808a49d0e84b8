//! Plans of the storeys: what is drawn, at which scale, and what is not.

use serde_json::{Value, json};

use super::{fixture, make::make};

/// An element of a storey: its id, element type, confidence and outline.
fn element(id: &str, element_type: &str, confidence: f64, outline: &Value) -> Value {
    json!({
        "global_id": id, "ifc_type": "IfcWall", "name": format!("name of {id}"), "element_type": element_type,
        "material_primary": null, "volume_m3": null, "area_m2": null, "length_m": null, "storey": "EG <1>",
        "storey_elevation_m": 0.5, "part_of": null, "parts": 0, "confidence": confidence, "data_quality": {},
        "outline": outline
    })
}

fn outline(view: &str, rings: &Value) -> Value {
    json!({"view": view, "rings": rings})
}

/// A rectangle from one corner to the other.
fn rectangle([x0, y0, x1, y1]: [f64; 4]) -> Value {
    json!([[x0, y0, x1, y0, x1, y1, x0, y1]])
}

/// A storey with something of everything, below a storey where nothing can be drawn.
fn records() -> Vec<Value> {
    let with = |mut record: Value, key: &str, value: Value| {
        record[key] = value;
        record
    };
    let hole = json!([[0, 0, 8, 0, 8, 5, 0, 5], [5.5, 3, 5.5, 4, 6.5, 4, 6.5, 3]]);
    let proxy = element(
        "proxy",
        "other",
        0.9,
        &outline("cut", &rectangle([2.0, 2.0, 2.5, 2.5])),
    );
    let stair = element("stair", "stair", 0.9, &Value::Null);
    let upstairs = element("upstairs", "beam", 0.9, &Value::Null);
    vec![
        with(upstairs, "storey_elevation_m", json!(3.5)),
        element(
            "wall",
            "external_wall",
            0.9,
            &outline("cut", &rectangle([0.0, 0.0, 8.0, 0.36])),
        ),
        element("slab", "slab_structural", 0.9, &outline("below", &hole)),
        element(
            "doubt",
            "partition_wall",
            0.4,
            &outline("below", &rectangle([3.0, 0.36, 3.1, 5.0])),
        ),
        element(
            "beam",
            "beam",
            0.9,
            &outline("above", &rectangle([0.0, 2.0, 8.0, 2.2])),
        ),
        with(proxy, "name", json!("<b>&\"\u{1}]]>")),
        element(
            "nail",
            "fastener",
            0.9,
            &outline("cut", &rectangle([1.0, 1.0, 1.01, 1.01])),
        ),
        with(stair, "parts", json!(3)),
        element("line", "beam", 0.9, &outline("cut", &json!([[0, 0, 1, 1]]))),
    ]
}

#[test]
fn a_plan_shows_each_class_and_names_what_it_does_not_show() {
    let plans = make(&records(), fixture::scope()).plans;
    let layer = |class: &str, view: &str, style: Value, elements: Value| {
        let mut layer = json!({"class": class, "view": view, "elements": elements});
        let parts = ["fill", "stroke", "width", "dash"];
        for (part, value) in parts.iter().zip(style.as_array().unwrap()) {
            layer[*part] = value.clone();
        }
        layer
    };
    let named = |id: &str, path: &str| json!([{"global_id": id, "name": format!("name of {id}"), "path": path}]);
    let entry = |label: &str, fill: &str, stroke: &str, width: f64| json!({"label": label, "fill": fill, "stroke": stroke, "width": width, "dash": []});
    let wanted = json!({
        "drawn": 5, "elements": 9, "scale": 50, "extent": [0.0, 0.0, 8.0, 5.0], "bar_m": 2,
        "storeys": [
            {
                "storey": "EG <1>", "elevation_m": 0.5, "elements": 8, "drawn": 5, "extent": [0.0, 0.0, 8.0, 5.0],
                "layers": [
                    layer("slab", "below", json!(["#f0f2f4", "#98a2ac", 0.1, []]),
                        named("slab", "M0,0,8,0,8,5,0,5ZM5.5,3,5.5,4,6.5,4,6.5,3Z")),
                    layer("unclassified", "below", json!(["#f6b3ae", "#a31616", 0.16, []]),
                        named("doubt", "M3.0,0.36,3.1,0.36,3.1,5.0,3.0,5.0Z")),
                    layer("structure", "above", json!([null, "#7b8794", 0.1, [1, 0.7]]),
                        named("beam", "M0.0,2.0,8.0,2.0,8.0,2.2,0.0,2.2Z")),
                    layer("wall", "cut", json!(["#7f8c99", "#1f2933", 0.18, []]),
                        named("wall", "M0.0,0.0,8.0,0.0,8.0,0.36,0.0,0.36Z")),
                    layer("unclassified", "cut", json!(["#d62828", "#a31616", 0.288, []]),
                        json!([{"global_id": "proxy", "name": "<b>&\"�]]>", "path": "M2.0,2.0,2.5,2.0,2.5,2.5,2.0,2.5Z"}])),
                ],
                "legend": [
                    entry("Walls 1", "#7f8c99", "#1f2933", 0.18),
                    entry("Columns, beams 1", "#33557f", "#1f2933", 0.18),
                    entry("Slabs, floors, roofs 1", "#c3c9cf", "#5f6c7b", 0.18),
                    entry("Unclassified or uncertain 2", "#d62828", "#a31616", 0.288),
                ],
                "not_drawn": [
                    {"reason": "represented by parts", "count": 1, "first": ["name of stair"]},
                    {"reason": "smaller than 0.3 mm on paper", "count": 1, "first": ["name of nail"]},
                    {"reason": "without an outline in the geometry", "count": 1, "first": ["name of line"]},
                ]
            },
            {
                "storey": "EG <1>", "elevation_m": 3.5, "elements": 1, "drawn": 0, "extent": [0.0, 0.0, 8.0, 5.0],
                "layers": [], "legend": [],
                "not_drawn": [
                    {"reason": "without an outline in the geometry", "count": 1, "first": ["name of upstairs"]}
                ]
            }
        ]
    });
    assert_eq!(plans, wanted, "{plans:#}");
}

#[test]
fn the_drawing_holds_the_plan_with_its_scale_and_legend() {
    let made = make(&records(), fixture::scope());
    let wanted = include_str!("plans.svg");
    if std::env::var_os("BLESS").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/report/plans.svg");
        std::fs::write(path, &made.svg).unwrap();
    } else {
        assert_eq!(made.svg, wanted);
    }
}

#[test]
fn the_report_shows_the_plan_and_says_what_is_not_drawn() {
    let made = make(&records(), fixture::scope());
    let from = made.markdown.find("## Plans").unwrap();
    let to = made.markdown.find("## By element type").unwrap();
    let section = &made.markdown[from..to];
    assert_eq!(section.matches("```drawing\n").count(), 1);
    let said: Vec<&str> = section
        .lines()
        .filter(|line| line.starts_with("Not drawn"))
        .collect();
    assert_eq!(
        said,
        [
            "Not drawn of EG \\<1>: 1 represented by parts (name of stair); \
             1 smaller than 0.3 mm on paper (name of nail); 1 without an outline in the geometry (name of line).",
            "Not drawn of EG \\<1>: 1 without an outline in the geometry (name of upstairs)."
        ]
    );
}

#[test]
fn a_model_on_a_map_is_drawn_from_its_own_corner() {
    let wall = |id: &str, x: f64| {
        let rings = rectangle([
            2_600_000.125 + x,
            1_200_000.5,
            2_600_004.125 + x,
            1_200_001.0,
        ]);
        element(id, "external_wall", 0.9, &outline("cut", &rings))
    };
    let plans = make(&[wall("a", 0.0), wall("b", 5.0)], fixture::scope()).plans;
    assert_eq!(plans["extent"], json!([0.125, 0.5, 9.125, 1.0]));
    let elements = &plans["storeys"][0]["layers"][0]["elements"];
    assert_eq!(
        elements[0]["path"],
        "M0.125,0.5,4.125,0.5,4.125,1.0,0.125,1.0Z"
    );
    assert_eq!(
        elements[1]["path"],
        "M5.125,0.5,9.125,0.5,9.125,1.0,5.125,1.0Z"
    );
}

#[test]
fn a_storey_that_fills_little_of_the_plan_has_its_own_extent() {
    let hall = |x0: f64, x1: f64| outline("cut", &rectangle([x0, 0.0, x1, 10.0]));
    let above = |id: &str, height: f64, outline: &Value| {
        let mut element = element(id, "external_wall", 0.9, outline);
        element["storey_elevation_m"] = json!(height);
        element
    };
    let records = [
        above("ground", 0.0, &hall(0.0, 30.0)),
        above("upper", 4.0, &hall(0.0, 11.0)),
        above("shed", 8.0, &hall(24.0, 30.0)),
    ];
    let plans = make(&records, fixture::scope()).plans;
    let extents: Vec<&Value> = plans["storeys"]
        .as_array()
        .unwrap()
        .iter()
        .map(|storey| &storey["extent"])
        .collect();
    assert_eq!(plans["extent"], json!([0.0, 0.0, 30.0, 10.0]));
    assert_eq!(
        extents,
        [
            &json!([0.0, 0.0, 30.0, 10.0]),
            &json!([0.0, 0.0, 30.0, 10.0]),
            &json!([23.9, -0.1, 30.1, 10.1])
        ]
    );
}

#[test]
fn an_element_far_from_the_others_does_not_make_the_plan_small() {
    let mut records: Vec<Value> = (0..30)
        .map(|n| {
            let rings = rectangle([f64::from(n), 0.0, f64::from(n) + 0.5, 5.0]);
            element(&format!("{n}"), "column", 0.9, &outline("cut", &rings))
        })
        .collect();
    let rings = rectangle([5e6, 3e5, 5e6 + 1.0, 3e5 + 1.0]);
    records.push(element("tree", "civil", 0.9, &outline("cut", &rings)));
    let plans = make(&records, fixture::scope()).plans;
    assert_eq!(plans["extent"], json!([0.0, 0.0, 29.5, 5.0]));
    assert_eq!(
        plans["storeys"][0]["not_drawn"],
        json!([{"reason": "far from the other elements", "count": 1, "first": ["name of tree"]}])
    );
}

#[test]
fn of_a_crowded_storey_the_largest_are_drawn() {
    let records: Vec<Value> = (0..10_500)
        .map(|n| {
            let (x, size) = (f64::from(n % 100), 0.5 + f64::from(n) / 100_000.0);
            let rings = rectangle([x, 0.0, x + size, size]);
            element(
                &format!("{n:05}"),
                "furniture",
                0.9,
                &outline("cut", &rings),
            )
        })
        .collect();
    let plans = make(&records, fixture::scope()).plans;
    let storey = &plans["storeys"][0];
    assert_eq!(
        (&storey["elements"], &storey["drawn"]),
        (&json!(10_500), &json!(5_000))
    );
    let drawn = storey["layers"][0]["elements"].as_array().unwrap();
    assert!(
        drawn
            .iter()
            .all(|element| element["global_id"].as_str() >= Some("05500"))
    );
    assert_eq!(
        storey["not_drawn"],
        json!([{"reason": "beyond the 5000 largest of the storey", "count": 5_500, "first": []}])
    );
}

#[test]
fn without_outlines_there_are_no_plans_and_the_report_says_so() {
    let made = make(&fixture::records(), fixture::scope());
    assert_eq!(
        made.plans,
        json!({"drawn": 0, "elements": 300, "scale": null, "extent": null, "bar_m": null, "storeys": []})
    );
    let said = "There are no plans, because no element has an outline: `milepost run --set geometry=all` computes them";
    assert!(made.markdown.contains(said));
    assert!(!made.markdown.contains("## Plans"));
    assert!(made.svg.contains("No element has an outline"));
    let nothing = make(&[], fixture::scope());
    assert_eq!(nothing.plans["elements"], 0);
    assert!(!nothing.markdown.contains("There are no plans"));
}
