//! Tests of the amounts of elements, by stated quantities, properties and geometry.

use super::amount::shown;
use super::*;
use serde_json::{Value, json};

/// Figures of names and values in `set`.
fn figures(set: &str, figures: &[(&str, f64)]) -> Figures {
    let mut all = Figures::default();
    for (name, value) in figures {
        let from = || {
            if set.is_empty() {
                String::new()
            } else {
                format!("{set}.{name}")
            }
        };
        all.offer(FigureName::of(name).unwrap(), *value, from);
    }
    all
}

fn counted(
    ifc_type: &str,
    quantities: &[(&str, f64)],
    properties: &[(&str, f64)],
    measured: Option<Measured>,
) -> Value {
    let claims = Claims {
        ifc_type,
        quantities: &figures("", quantities),
        properties: &figures("Dimensions", properties),
        thickness: Some(0.2),
    };
    serde_json::to_value(of(&claims, measured.as_ref())).unwrap()
}

/// A wall of 5 m by 3 m by 0.2 m.
const WALL: Measured = Measured {
    volume: Some(3.0),
    top_area: Some(1.0),
    main_side_area: Some(15.0),
    side_area: Some(31.2),
    surface: Some(33.2),
    height: Some(3.0),
    length: Some(5.0),
    plan: Some([5.0, 0.2]),
    lost: None,
};

/// A slab of 10 m by 4 m by 0.2 m.
const SLAB: Measured = Measured {
    volume: Some(8.0),
    top_area: Some(40.0),
    main_side_area: Some(2.0),
    side_area: Some(5.6),
    surface: Some(85.6),
    height: Some(0.2),
    length: Some(10.0),
    plan: Some([10.0, 4.0]),
    lost: None,
};

#[test]
fn stated_quantities_count_before_properties_before_the_geometry() {
    let quantities = [
        ("NetVolume", 2.9),
        ("GrossSideArea", 16.0),
        ("Length", 5.1),
        ("Height", 3.1),
    ];
    let properties = [("Volume", 2.8), ("Area", 15.0), ("Length", 5.0)];
    assert_eq!(
        counted("IfcWall", &quantities, &properties, Some(WALL)),
        json!({
            "volume_m3": 2.9, "volume_from": "quantity set",
            "area_m2": 16.0, "area_kind": "gross side", "area_from": "quantity set",
            "length_m": 5.1, "length_from": "quantity set", "height_m": 3.1, "height_from": "quantity set",
            "implausible": []
        })
    );
    assert_eq!(
        counted("IfcWall", &[], &properties, Some(WALL)),
        json!({
            "volume_m3": 2.8, "volume_from": "property set: Dimensions.Volume",
            "area_m2": 15.0, "area_kind": "net side", "area_from": "property set: Dimensions.Area",
            "length_m": 5.0, "length_from": "property set: Dimensions.Length",
            "height_m": 3.0, "height_from": "geometry", "implausible": []
        })
    );
    assert_eq!(
        counted("IfcWall", &[], &[], Some(WALL)),
        json!({
            "volume_m3": 3.0, "volume_from": "geometry",
            "area_m2": 15.0, "area_kind": "net side", "area_from": "geometry",
            "length_m": 5.0, "length_from": "geometry", "height_m": 3.0, "height_from": "geometry",
            "implausible": []
        })
    );
    assert_eq!(
        counted("IfcWall", &[], &[], None),
        json!({
            "volume_m3": null, "volume_from": null, "area_m2": null, "area_kind": null, "area_from": null,
            "length_m": null, "length_from": null, "height_m": null, "height_from": null, "implausible": []
        })
    );
}

#[test]
fn an_area_is_of_one_kind() {
    let area = |ifc_type: &str, quantities: &[(&str, f64)], measured: Option<Measured>| {
        let counted = counted(ifc_type, quantities, &[], measured);
        let from = counted["area_from"].as_str().unwrap_or("none").to_owned();
        let kind = counted["area_kind"].as_str().unwrap_or("none").to_owned();
        (counted["area_m2"].as_f64().unwrap_or(-1.0), kind, from)
    };
    let is = |area: f64, kind: &str, from: &str| (area, kind.to_owned(), from.to_owned());
    for (ifc_type, name, kind) in [
        ("IfcWallStandardCase", "NetSideArea", "net side"),
        ("IfcWall", "Area", "not stated"),
        ("IfcSlab", "NetArea", "net footprint"),
        ("IfcSlab", "GrossArea", "gross footprint"),
        ("IfcSlab", "Area", "not stated"),
        ("IfcRoof", "NetArea", "not stated"),
        ("IfcDoor", "Area", "net side"),
        ("IfcBeam", "OuterSurfaceArea", "surface"),
        ("IfcPlate", "NetArea", "not stated"),
    ] {
        assert_eq!(
            area(ifc_type, &[(name, 2.0)], None),
            is(2.0, kind, "quantity set"),
            "{ifc_type} {name}"
        );
    }
    // The geometry tells what a plain area is of; if it is of other faces, those of the geometry count.
    assert_eq!(
        area("IfcWall", &[("Area", 14.8)], Some(WALL)),
        is(14.8, "net side", "quantity set")
    );
    assert_eq!(
        area("IfcWall", &[("Area", 1.0)], Some(WALL)),
        is(15.0, "net side", "geometry")
    );
    assert_eq!(
        area("IfcWall", &[("TotalSurfaceArea", 33.2)], Some(WALL)),
        is(15.0, "net side", "geometry")
    );
    assert_eq!(
        area("IfcSlab", &[], Some(SLAB)),
        is(40.0, "net footprint", "geometry")
    );
    assert_eq!(
        area("IfcCovering", &[], Some(SLAB)),
        is(40.0, "net footprint", "geometry")
    );
    assert_eq!(
        area("IfcCovering", &[], Some(WALL)),
        is(15.0, "net side", "geometry")
    );
    assert_eq!(area("IfcBeam", &[], Some(SLAB)), is(-1.0, "none", "none"));
    assert_eq!(
        counted("IfcSlab", &[], &[], Some(SLAB))["length_m"],
        Value::Null
    );
}

#[test]
fn of_figures_that_are_apart_the_one_that_the_geometry_confirms_counts() {
    let volume = |quantities: &[(&str, f64)], properties: &[(&str, f64)], measured| {
        let counted = counted("IfcSlab", quantities, properties, measured);
        (
            counted["volume_m3"].clone(),
            counted["volume_from"].clone(),
            counted["implausible"].clone(),
        )
    };
    let litres = [("NetVolume", 8000.0)];
    let right = [("Volume", 8.1)];
    assert_eq!(
        volume(&litres, &right, Some(SLAB)),
        (
            json!(8.1),
            json!("property set: Dimensions.Volume"),
            json!([{
                "quantity": "volume", "stated": 8000.0, "property": 8.1, "geometry": 8.0,
                "taken": "property set: Dimensions.Volume",
                "reason": "the quantity set says 8,000 m³, the property set: Dimensions.Volume says 8.10 m³, \
                           the geometry says 8.00 m³; the first value is in litres; \
                           the value of the property set: Dimensions.Volume is used"
            }])
        )
    );
    let (none, from, why) = volume(&litres, &right, None);
    assert_eq!((none, from), (Value::Null, Value::Null));
    assert_eq!(why[0]["taken"], Value::Null);
    let (none, _, why) = volume(&[("NetVolume", 700.0)], &[], Some(SLAB));
    assert_eq!((none, &why[0]["geometry"]), (Value::Null, &json!(8.0)));
    let (taken, from, why) = volume(&[("NetVolume", 8.1e9)], &[], Some(SLAB));
    assert_eq!((taken, from), (json!(8.0), json!("geometry")));
    assert_eq!(
        why[0]["reason"],
        "the quantity set says 8,100,000,000 m³, the geometry says 8.00 m³; the first value is in mm³; the value of the geometry is used"
    );
    // Within a factor of 2, and where openings are not taken off, nothing is wrong.
    assert_eq!(volume(&[("NetVolume", 15.0)], &[], Some(SLAB)).2, json!([]));
    assert_eq!(
        volume(&[("GrossVolume", 30.0)], &[], Some(SLAB)).2,
        json!([])
    );
    // Zero is what tools write for what they did not measure.
    assert_eq!(volume(&[("NetVolume", 0.0)], &[], Some(SLAB)).0, json!(8.0));
    assert_eq!(volume(&[("NetVolume", 0.0)], &right, None).0, json!(8.1));
    assert_eq!(volume(&[("NetVolume", 0.0)], &[], None).0, json!(0.0));
    assert_eq!(volume(&[("NetVolume", -8.0)], &[], None).0, Value::Null);
    // Small figures are rounded.
    assert_eq!(
        volume(&[("NetVolume", 0.001)], &[("Volume", 0.009)], None).0,
        json!(0.001)
    );
}

#[test]
fn dimensions_judge_where_no_geometry_does() {
    let volume = |ifc_type: &str, quantities: &[(&str, f64)], properties: &[(&str, f64)]| {
        let counted = counted(ifc_type, quantities, properties, None);
        (
            counted["volume_m3"].clone(),
            counted["implausible"][0]["reason"].clone(),
        )
    };
    assert_eq!(
        volume("IfcSlab", &[("NetVolume", 8000.0), ("NetArea", 40.0)], &[]),
        (
            Value::Null,
            json!(
                "the quantity set says 8,000 m³, area and thickness give 8.00 m³; no value is used"
            )
        )
    );
    assert_eq!(
        volume(
            "IfcSlab",
            &[("NetVolume", 8000.0), ("NetArea", 40.0)],
            &[("Volume", 8.0)]
        )
        .0,
        json!(8.0)
    );
    assert_eq!(
        volume("IfcWall", &[("NetVolume", 2.0), ("NetSideArea", 15.0)], &[]).0,
        json!(2.0)
    );
    let beam = [("Length", 6.0), ("Width", 0.2), ("Height", 0.4)];
    let with = |volume: f64| [&beam[..], &[("NetVolume", volume)]].concat();
    assert_eq!(
        volume("IfcBeam", &with(0.03), &[]).0,
        json!(0.03),
        "a hollow section"
    );
    assert_eq!(volume("IfcBeam", &with(480.0), &[]).0, Value::Null);
    let section = [
        ("Length", 6.0),
        ("CrossSectionArea", 0.08),
        ("NetVolume", 480.0),
    ];
    assert_eq!(volume("IfcColumn", &section, &[]).0, Value::Null);
    // Where the dimensions and the geometry agree, the geometry counts.
    let slab = [("NetVolume", 8000.0), ("NetArea", 40.0)];
    let counted = counted("IfcSlab", &slab, &[], Some(SLAB));
    assert_eq!(
        (&counted["volume_m3"], &counted["implausible"][0]["taken"]),
        (&json!(8.0), &json!("geometry"))
    );
}

#[test]
fn figures_are_shown_as_people_read_them() {
    for (figure, text) in [
        (168_172_000_161.0, "168,172,000,161"),
        (1234.5, "1,234"),
        (999.994, "999.99"),
        (0.0123, "0.0123"),
        (-1500.0, "-1,500"),
    ] {
        assert_eq!(shown(figure), text);
    }
}

/// A railing around a stair is as long as its path, not as its box.
#[test]
fn a_railing_may_be_longer_than_its_box() {
    let railing = |properties: &[(&str, f64)]| {
        let found = counted("IfcRailing", &[], properties, Some(WALL));
        [found["length_m"].clone(), found["implausible"].clone()]
    };
    assert_eq!(railing(&[("Length", 12.5)]), [json!(12.5), json!([])]);
    assert_eq!(railing(&[]), [json!(null), json!([])]);
}

/// A pier of 1 m by 3.4 m of two leaves, whose sides are seen behind one another.
#[test]
fn a_wall_may_be_higher_than_long() {
    let pier = Measured {
        volume: Some(0.7),
        top_area: Some(0.2),
        main_side_area: Some(6.8),
        side_area: Some(15.0),
        surface: Some(15.4),
        height: Some(3.4),
        length: Some(3.4),
        plan: Some([1.0, 0.3]),
        lost: None,
    };
    let found = counted(
        "IfcWall",
        &[("Length", 0.965), ("NetSideArea", 3.3)],
        &[],
        Some(pier),
    );
    assert_eq!(
        found,
        json!({
            "volume_m3": 0.7, "volume_from": "geometry",
            "area_m2": 3.3, "area_kind": "net side", "area_from": "quantity set",
            "length_m": 0.965, "length_from": "quantity set", "height_m": 3.4, "height_from": "geometry",
            "implausible": []
        })
    );
    let found = counted("IfcWall", &[], &[], Some(pier));
    assert_eq!(
        (&found["length_m"], &found["area_m2"]),
        (&json!(1.0), &json!(3.4))
    );
}

/// The columns of an office: their surface is stated as 8,804 m².
#[test]
fn a_surface_is_judged_by_all_faces() {
    let column = Measured {
        surface: Some(1.9),
        ..WALL
    };
    let surface = |area: f64| {
        let found = counted(
            "IfcColumn",
            &[("OuterSurfaceArea", area)],
            &[],
            Some(column),
        );
        let taken = found["implausible"][0]["taken"].clone();
        (
            found["area_m2"].clone(),
            found["implausible"][0]["geometry"].clone(),
            taken,
        )
    };
    assert_eq!(surface(1.7), (json!(1.7), Value::Null, Value::Null));
    assert_eq!(surface(8803.945), (Value::Null, json!(1.9), Value::Null));
}

/// A part of a floor states the net volume and the net area of the whole floor, and its own gross volume and area.
#[test]
fn another_stated_figure_confirms_the_geometry() {
    let quantities = [
        ("NetVolume", 521.6),
        ("GrossVolume", 8.01),
        ("NetArea", 2608.0),
        ("GrossArea", 40.1),
    ];
    let found = counted("IfcSlab", &quantities, &[], Some(SLAB));
    let counts = ["volume_m3", "volume_from", "area_m2", "area_from"].map(|key| found[key].clone());
    assert_eq!(
        counts,
        [
            json!(8.0),
            json!("geometry"),
            json!(40.0),
            json!("geometry")
        ]
    );
    let taken: Vec<&Value> = found["implausible"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["taken"])
        .collect();
    assert_eq!(taken, [&json!("geometry"), &json!("geometry")]);
}

/// Revit states the area of all faces of a window in its properties, and that of the opening in its quantities.
#[test]
fn the_property_of_a_window_is_not_the_area_of_its_opening() {
    let found = counted("IfcWindow", &[("Area", 1.75)], &[("Area", 4.35)], None);
    assert_eq!(
        [
            &found["area_m2"],
            &found["area_kind"],
            &found["implausible"]
        ],
        [&json!(1.75), &json!("net side"), &json!([])]
    );
}

/// A wall of three leaves, of which openings take more than half.
#[test]
fn leaves_of_a_wall_are_one_side() {
    let leaves = Measured {
        volume: Some(7.93),
        top_area: Some(10.7),
        main_side_area: Some(88.0),
        side_area: Some(179.0),
        surface: Some(200.5),
        height: Some(3.05),
        length: Some(21.4),
        plan: Some([21.4, 0.3]),
        lost: None,
    };
    let area = |net: f64| {
        let quantities = [
            ("Width", 0.27),
            ("GrossSideArea", 64.8),
            ("NetSideArea", net),
        ];
        let found = counted("IfcWall", &quantities, &[], Some(leaves));
        (
            found["area_m2"].clone(),
            found["implausible"].as_array().unwrap().len(),
        )
    };
    assert_eq!(area(30.3), (json!(30.3), 0));
    assert_eq!(area(3.03), (Value::Null, 1));
}

/// A tool states the area of all faces as the gross side area of a wall, and an area of a column that is more than all its faces.
#[test]
fn an_area_is_compared_with_all_faces() {
    let wall = counted(
        "IfcWall",
        &[("GrossSideArea", 33.2)],
        &[("Area", 14.9)],
        Some(WALL),
    );
    let column = counted(
        "IfcColumn",
        &[],
        &[("Area", 20.1)],
        Some(Measured {
            surface: Some(4.5),
            ..WALL
        }),
    );
    assert_eq!(
        [
            &wall["area_m2"],
            &wall["area_kind"],
            &wall["area_from"],
            &wall["implausible"]
        ],
        [
            &json!(14.9),
            &json!("net side"),
            &json!("property set: Dimensions.Area"),
            &json!([])
        ]
    );
    assert_eq!(
        [&column["area_m2"], &column["implausible"][0]["reason"]],
        [
            &Value::Null,
            &json!(
                "the property set: Dimensions.Area says 20.10 m², all faces of the geometry have 4.50 m²; no value is used"
            )
        ]
    );
}
