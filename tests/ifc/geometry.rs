//! Figures from the geometry, against figures computed by hand.

use super::{Sample, id, step};
use milepost_formats::ifc::{Measured, extract_on};
use serde_json::{Value, json};

/// The context of shapes, a direction upwards, and a storey 3 m above the origin.
const STOREY: &str = "#6=IFCGEOMETRICREPRESENTATIONCONTEXT($,'Model',3,1.E-5,#7,$);
#7=IFCAXIS2PLACEMENT3D(#8,$,$);
#8=IFCCARTESIANPOINT((0.,0.,0.));
#9=IFCDIRECTION((0.,0.,1.));
#11=IFCBUILDINGSTOREY('0000000000000000000011',$,'First floor',$,$,#12,$,$,.ELEMENT.,2.9);
#12=IFCLOCALPLACEMENT($,#13);
#13=IFCAXIS2PLACEMENT3D(#14,$,$);
#14=IFCCARTESIANPOINT((0.,0.,3.));
";

/// An element on the storey: `class`, `at` in relation to the storey, and a shape of these items. Its number is a multiple of 100.
fn element(class: &str, number: u32, at: &str, kind: &str, items: &str) -> String {
    let [place, axes, point, shape, body, contained] = [1, 2, 3, 4, 5, 6].map(|n| number + n);
    let (global_id, relation) = (id(number), id(contained));
    format!(
        "#{number}={class}('{global_id}',$,'Element {number}',$,$,#{place},#{shape},$,$);
#{place}=IFCLOCALPLACEMENT(#12,#{axes});
#{axes}=IFCAXIS2PLACEMENT3D(#{point},$,$);
#{point}=IFCCARTESIANPOINT(({at}));
#{shape}=IFCPRODUCTDEFINITIONSHAPE($,$,(#{body}));
#{body}=IFCSHAPEREPRESENTATION(#6,'Body','{kind}',({items}));
#{contained}=IFCRELCONTAINEDINSPATIALSTRUCTURE('{relation}',$,$,$,(#{number}),#11);
"
    )
}

/// A box, around its point in the plan and above it.
fn block(class: &str, number: u32, at: &str, size: [f64; 3]) -> String {
    let [solid, profile] = [10, 11].map(|n| number + n);
    let [length, width, height] = size;
    element(class, number, at, "SweptSolid", &format!("#{solid}"))
        + &format!(
            "#{solid}=IFCEXTRUDEDAREASOLID(#{profile},$,#9,{height:?});
#{profile}=IFCRECTANGLEPROFILEDEF(.AREA.,$,$,{length:?},{width:?});
"
        )
}

/// The faces of a cube of 1 m, by corner; bits of the number are coordinates.
const CUBE: [[u32; 4]; 6] = [
    [0, 2, 3, 1],
    [4, 5, 7, 6],
    [0, 1, 5, 4],
    [2, 6, 7, 3],
    [0, 4, 6, 2],
    [1, 3, 7, 5],
];

/// A body of these faces of the cube.
fn faceted(number: u32, faces: &[[u32; 4]]) -> String {
    let [brep, shell, corners] = [10, 11, 20].map(|n| number + n);
    let mut records = element("IFCPLATE", number, "0.,0.,0.", "Brep", &format!("#{brep}"));
    for corner in 0..8 {
        let part = |bit: u32| f64::from(corner >> bit & 1);
        let (x, y, z) = (part(0), part(1), part(2));
        records += &format!(
            "#{}=IFCCARTESIANPOINT(({x:?},{y:?},{z:?}));\n",
            corners + corner
        );
    }
    let mut names = Vec::new();
    for (at, face) in faces.iter().enumerate() {
        let [face_id, bound, ring] = [0, 1, 2].map(|n| number + 30 + at as u32 * 3 + n);
        let points = face
            .map(|corner| format!("#{}", corners + corner))
            .join(",");
        records += &format!(
            "#{face_id}=IFCFACE((#{bound}));\n#{bound}=IFCFACEOUTERBOUND(#{ring},.T.);\n#{ring}=IFCPOLYLOOP(({points}));\n"
        );
        names.push(format!("#{face_id}"));
    }
    let names = names.join(",");
    records + &format!("#{brep}=IFCFACETEDBREP(#{shell});\n#{shell}=IFCCLOSEDSHELL(({names}));\n")
}

/// The bytes of a model read on some threads.
fn bytes(records: &str, measured: Measured, threads: usize) -> Vec<u8> {
    let sample = Sample::bytes("model.ifc", step("IFC4", records).as_bytes());
    let mut out = Vec::new();
    let never = || Ok(());
    extract_on(
        threads,
        &sample.path,
        "model.ifc",
        measured,
        &mut out,
        &never,
    )
    .unwrap();
    out
}

/// The key `geometry` of each element.
fn figures(records: &str, measured: Measured) -> Vec<Value> {
    let parsed: Value = serde_json::from_slice(&bytes(records, measured, 1)).unwrap();
    let elements = parsed["elements"].as_array().unwrap();
    elements
        .iter()
        .map(|element| element["geometry"].clone())
        .collect()
}

/// The corners of a rectangle in any order.
fn corners(ring: &Value) -> Vec<(i64, i64)> {
    let flat: Vec<f64> = serde_json::from_value(ring.clone()).unwrap();
    let mut corners: Vec<_> = flat
        .chunks(2)
        .map(|at| ((at[0] * 1e3).round() as i64, (at[1] * 1e3).round() as i64))
        .collect();
    corners.sort_unstable();
    corners
}

#[test]
fn a_wall_with_an_opening_is_measured_and_cut() {
    let records = STOREY.to_owned()
        + &block("IFCWALL", 100, "10.,20.,0.", [4.0, 0.2, 3.0])
        + &block("IFCOPENINGELEMENT", 200, "10.,20.,0.5", [1.0, 0.4, 2.0])
        + &format!("#300=IFCRELVOIDSELEMENT('{}',$,$,$,#100,#200);\n", id(300));
    let mut found = figures(&records, Measured::All);
    let outline = found[0]["outline"].take();
    // Exact cuts are made on a grid of some micrometres.
    for figure in found[0].as_object_mut().unwrap().values_mut() {
        if let Some(value) = figure.as_f64() {
            *figure = json!((value * 1e4).round() / 1e4);
        }
    }
    let expected = json!({
        "volume_m3": 2.0, "surface_area_m2": 24.0, "top_area_m2": 1.0, "bottom_area_m2": 1.0, "side_area_m2": 22.0,
        "main_side_area_m2": 10.0, "height_m": 3.0, "length_m": 4.0, "problem": null, "outline": null,
    });
    assert_eq!(found, [expected]);
    assert_eq!(outline["view"], "cut");
    let mut rings: Vec<_> = outline["rings"]
        .as_array()
        .unwrap()
        .iter()
        .map(corners)
        .collect();
    rings.sort();
    let rectangle =
        |from: i64, to: i64| vec![(from, 19_900), (from, 20_100), (to, 19_900), (to, 20_100)];
    assert_eq!(rings, [rectangle(8_000, 9_500), rectangle(10_500, 12_000)]);
}

#[test]
fn an_element_with_too_many_openings_is_not_measured() {
    let problem = |count: u32| {
        let mut records = STOREY.to_owned() + &block("IFCWALL", 100, "0.,0.,0.", [4.0, 0.2, 3.0]);
        for number in (1..=count).map(|number| 1_000 + 100 * number) {
            // They stand beside the wall: cutting them takes no time.
            records += &block("IFCOPENINGELEMENT", number, "50.,0.,0.", [1.0, 0.4, 2.0]);
            let voids = number + 20;
            let global_id = id(voids);
            records +=
                &format!("#{voids}=IFCRELVOIDSELEMENT('{global_id}',$,$,$,#100,#{number});\n");
        }
        figures(&records, Measured::All)[0]["problem"].take()
    };
    assert_eq!(problem(1_001), "too large");
    assert_ne!(problem(2), "too large");
}

/// A shape whose only polygon has so many points in a circle, spelled in one way: the item is #110.
fn round(spelling: &str, count: usize) -> String {
    let points: Vec<String> = (0..count)
        .map(|corner| {
            let angle = corner as f64 / count as f64 * std::f64::consts::TAU;
            format!("({:.6},{:.6}", angle.cos(), angle.sin())
        })
        .collect();
    let flat = |end: &str| points.join(&format!("{end},")) + end;
    let mut records = String::new();
    for (at, point) in points.iter().enumerate() {
        records += &format!("#{}=IFCCARTESIANPOINT({point},0.));\n", 1_000 + at);
    }
    let names = |from: usize, to: usize| {
        let names: Vec<String> = (from..to)
            .map(|at| format!("#{}", 1_000 + at % count))
            .collect();
        names.join(",")
    };
    // Parts of 50 points, each with the first of the next.
    let parts: Vec<usize> = (0..count / 50).collect();
    let list = |from: usize| {
        let list: Vec<String> = parts.iter().map(|at| format!("#{}", from + at)).collect();
        list.join(",")
    };
    let mut each = |from: usize, record: &dyn Fn(usize) -> String| {
        for at in &parts {
            records += &format!("#{}={};\n", from + at, record(*at));
        }
    };
    let polyline = |at: usize| format!("IFCPOLYLINE(({}))", names(at * 50, at * 50 + 51));
    let profile = "#110=IFCEXTRUDEDAREASOLID(#111,$,#9,0.2);\n#111=IFCARBITRARYCLOSEDPROFILEDEF(.AREA.,$,#112);\n";
    let all = names(0, count + 1);
    let shell = "#110=IFCFACETEDBREP(#111);\n#111=IFCCLOSEDSHELL((#112));\n";
    let shape = match spelling {
        "polyline" => format!("{profile}#112=IFCPOLYLINE(({all}));\n"),
        "spaces" => format!("{profile}#112 = IfcPolyline /* */ \n( ( {all} ) );\n"),
        "list" => format!(
            "{profile}#112=IFCINDEXEDPOLYCURVE(#113,$,.F.);\n#113=IFCCARTESIANPOINTLIST2D (({}));\n",
            flat(")")
        ),
        "list in space" => format!(
            "{profile}#112=IFCINDEXEDPOLYCURVE(#113,$,.F.);\n#113=IFCCARTESIANPOINTLIST3D(({}));\n",
            flat(",0.)")
        ),
        "segments" => {
            each(500_000, &|at| {
                format!(
                    "IFCCOMPOSITECURVESEGMENT(.CONTINUOUS.,.T.,#{})",
                    600_000 + at
                )
            });
            each(600_000, &polyline);
            format!(
                "{profile}#112=IFCCOMPOSITECURVE(({}),.F.);\n",
                list(500_000)
            )
        }
        "holes" => {
            each(600_000, &|at| {
                format!(
                    "IFCPOLYLINE(({},#{}))",
                    names(at * 50, at * 50 + 50),
                    1_000 + at * 50
                )
            });
            format!(
                "#110=IFCEXTRUDEDAREASOLID(#111,$,#9,0.2);\n#111=IFCARBITRARYPROFILEDEFWITHVOIDS(.AREA.,$,#112,({}));\n#112=IFCPOLYLINE((#1000,#1010,#1020,#1000));\n",
                list(600_000)
            )
        }
        "face" => format!(
            "{shell}#112=IFCFACE((#113));\n#113=IFCFACEOUTERBOUND(#114,.T.);\n#114=IFCPOLYLOOP(({}));\n",
            names(0, count)
        ),
        "face of a surface" => format!(
            "{shell}#112=IFCFACESURFACE((#113),$,.T.);\n#113=IFCFACEOUTERBOUND(#114,.T.);\n#114=IFCPOLYLOOP(({}));\n",
            names(0, count)
        ),
        "face with holes" => {
            each(500_000, &|at| {
                format!("IFCFACEBOUND(#{},.T.)", 600_000 + at)
            });
            each(600_000, &|at| {
                format!("IFCPOLYLOOP(({}))", names(at * 50, at * 50 + 50))
            });
            format!("{shell}#112=IFCFACE(({}));\n", list(500_000))
        }
        "face of a list" => {
            let indices: Vec<String> = (1..=count).map(|index| index.to_string()).collect();
            format!(
                "#110=IFCPOLYGONALFACESET(#111,.F.,(#112),$);\n#111=IFCCARTESIANPOINTLIST3D(({}));\n#112=IFCINDEXEDPOLYGONALFACE(({}));\n",
                flat(",0.)"),
                indices.join(",")
            )
        }
        _ => panic!("{spelling}"),
    };
    records + &shape
}

#[test]
fn an_element_with_a_polygon_of_too_many_points_is_not_measured() {
    for spelling in [
        "polyline",
        "spaces",
        "list",
        "list in space",
        "segments",
        "holes",
        "face",
        "face of a surface",
        "face with holes",
        "face of a list",
    ] {
        let problem = |count| {
            let shape = element("IFCSLAB", 100, "0.,0.,0.", "SweptSolid", "#110");
            let records = STOREY.to_owned() + &shape + &round(spelling, count);
            figures(&records, Measured::All)[0]["problem"].take()
        };
        let start = std::time::Instant::now();
        assert_eq!(problem(100_000), "too large", "{spelling}");
        assert!(start.elapsed().as_secs() < 30, "{spelling}");
        assert_ne!(problem(100), "too large", "{spelling}");
    }
}

#[test]
fn a_volume_comes_from_closed_faces_that_look_one_way_or_can_be_turned() {
    let mut turned = CUBE;
    turned[3].reverse();
    let mut inwards = CUBE;
    for face in &mut inwards {
        face.reverse();
    }
    let records = STOREY.to_owned()
        + &faceted(100, &CUBE)
        + &faceted(200, &turned)
        + &faceted(300, &CUBE[..5])
        + &faceted(400, &inwards)
        + "#500=IFCPLATE('0000000000000000000500',$,'Nothing',$,$,$,$,$,$);\n";
    let found = figures(&records, Measured::All);
    let short: Vec<_> = found
        .iter()
        .map(|figures| (figures["volume_m3"].as_f64(), figures["problem"].as_str()))
        .collect();
    let expected = [
        (Some(1.0), None),
        (Some(1.0), None),
        (None, Some("open mesh")),
        (Some(1.0), None),
        (None, Some("no geometry")),
    ];
    assert_eq!(short, expected);
    let shown = [
        "surface_area_m2",
        "top_area_m2",
        "main_side_area_m2",
        "height_m",
    ];
    let of = |at: usize| shown.map(|key| found[at][key].as_f64());
    assert_eq!(of(0), [Some(6.0), Some(1.0), Some(1.0), Some(1.0)]);
    assert_eq!(of(1), of(0));
    assert_eq!(of(4), [None; 4]);
}

#[test]
fn what_is_below_or_above_the_cut_is_seen_from_above() {
    let records = STOREY.to_owned()
        + &block("IFCSLAB", 100, "0.,0.,-0.2", [2.0, 1.0, 0.2])
        + &block("IFCBEAM", 200, "0.,0.,2.5", [2.0, 1.0, 0.3]);
    let found = figures(&records, Measured::All);
    let views: Vec<_> = found
        .iter()
        .map(|figures| {
            (
                &figures["outline"]["view"],
                corners(&figures["outline"]["rings"][0]),
            )
        })
        .collect();
    let seen = vec![(-1000, -500), (-1000, 500), (1000, -500), (1000, 500)];
    assert_eq!(
        views,
        [(&json!("below"), seen.clone()), (&json!("above"), seen)]
    );
}

#[test]
fn only_elements_without_a_usable_volume_are_measured_if_that_is_wanted() {
    let stated = |element: u32, volume: &str, property: &str| {
        let [quantity, set, relation, value, more, other] =
            [50, 51, 52, 53, 54, 55].map(|n| element + n);
        let [one, two, three, four] = [set, relation, more, other].map(id);
        format!(
            "#{quantity}=IFCQUANTITYVOLUME('NetVolume',$,$,{volume},$);
#{set}=IFCELEMENTQUANTITY('{one}',$,'Qto_SlabBaseQuantities',$,$,(#{quantity}));
#{relation}=IFCRELDEFINESBYPROPERTIES('{two}',$,$,$,(#{element}),#{set});
#{value}=IFCPROPERTYSINGLEVALUE('Volume',$,IFCVOLUMEMEASURE({property}),$);
#{more}=IFCPROPERTYSET('{three}',$,'Dimensions',$,(#{value}));
#{other}=IFCRELDEFINESBYPROPERTIES('{four}',$,$,$,(#{element}),#{more});
"
        )
    };
    let slab = |number| block("IFCSLAB", number, "0.,0.,0.", [2.0, 1.0, 0.2]);
    let records = STOREY.to_owned()
        + &slab(100)
        + &slab(200)
        + &stated(200, "0.4", "0.41")
        + &slab(300)
        + &stated(300, "400.", "0.4");
    let is_measured = |measured| -> Vec<bool> {
        let found = figures(&records, measured);
        found.iter().map(|figures| !figures.is_null()).collect()
    };
    assert_eq!(is_measured(Measured::Missing), [true, false, true]);
    assert_eq!(is_measured(Measured::All), [true; 3]);
    assert_eq!(is_measured(Measured::None), [false; 3]);
}

#[test]
fn the_bytes_are_the_same_on_any_number_of_threads() {
    let mut records = STOREY.to_owned();
    for number in 1..=300 {
        let size = [f64::from(number), 1.0, 0.5];
        records += &block("IFCBEAM", number * 100, "0.,0.,0.", size);
    }
    let one = bytes(&records, Measured::All, 1);
    assert_eq!(bytes(&records, Measured::All, 2), one);
    assert_eq!(bytes(&records, Measured::All, 7), one);
}

#[test]
fn a_shape_with_records_that_do_not_fit_their_class_is_not_measured() {
    let profile = "#211=IFCARBITRARYCLOSEDPROFILEDEF(.AREA.,$,#212);
#212=IFCPOLYLINE((#213,#214,#215,#213));
#213=IFCCARTESIANPOINT((0.,0.));
#214=IFCCARTESIANPOINT((1.5,0.));
#215=IFCCARTESIANPOINT((0.,1.));
";
    let opening = block("IFCOPENINGELEMENT", 200, "10.,20.,0.5", [1.0, 0.4, 2.0]);
    let at = opening.find("#211=").unwrap();
    let records = STOREY.to_owned()
        + &block("IFCWALL", 100, "10.,20.,0.", [4.0, 0.2, 3.0])
        + &opening[..at]
        + profile
        + &format!("#300=IFCRELVOIDSELEMENT('{}',$,$,$,#100,#200);\n", id(300));
    let read = |from: &str, to: &str| -> (Value, Value) {
        assert_eq!(records.matches(from).count(), 1, "{from}");
        let parsed = bytes(&records.replace(from, to), Measured::All, 1);
        let mut parsed: Value = serde_json::from_slice(&parsed).unwrap();
        let warnings = parsed["model"]["warnings"].take();
        (warnings, parsed["elements"][0].take())
    };
    for (from, to, record, class) in [
        ("#9,3.0", "#9,3,5", 110, "IfcExtrudedAreaSolid"),
        ("4.0,0.2", "4,0,0,2", 111, "IfcRectangleProfileDef"),
        (
            "#101=IFCLOCALPLACEMENT(#12,",
            "#101=IFCLOCALPLACEMENT(",
            101,
            "IfcLocalPlacement",
        ),
        ("(#103,$,$)", "(#103,$)", 102, "IfcAxis2Placement3D"),
        ("10.,20.,0.)", "10,5,20.,0.)", 103, "IfcCartesianPoint"),
        ("$,$,(#105)", "$,(#105)", 104, "IfcProductDefinitionShape"),
        (
            "'SweptSolid',(#110)",
            "(#110)",
            105,
            "IfcShapeRepresentation",
        ),
        ("#101,#104,$,$)", "#104)", 100, "IfcWall"),
        (
            "#9=IFCDIRECTION((0.,0.,1.))",
            "#9=IFCDIRECTION((0,0,0,0,1,0))",
            9,
            "IfcDirection",
        ),
        ("(0.,0.,3.)", "(0,0,0,0,3,0)", 14, "IfcCartesianPoint"),
        ("#9,2.0", "#9,2,5", 210, "IfcExtrudedAreaSolid"),
        ("(1.5,0.)", "(1,5,0,0)", 214, "IfcCartesianPoint"),
        (
            "$,$,$,#100,#200",
            "$,$,#100,#200",
            300,
            "IfcRelVoidsElement",
        ),
    ] {
        let (warnings, wall) = read(from, to);
        let warning = warnings[0].as_str().unwrap();
        let named = format!("do not fit their class: #{record} ({class}, line ");
        assert!(
            warning.contains(&named) && warnings[1].is_null(),
            "{warnings}"
        );
        let expected = json!([{
            "quantity": "volume", "stated": null, "property": null, "geometry": null, "taken": null,
            "reason": format!("the geometry (#{record}) cannot be read; no value is used"),
        }]);
        let takeoff = &wall["takeoff"];
        assert_eq!(
            (
                &wall["geometry"]["problem"],
                &takeoff["implausible"],
                &takeoff["volume_m3"]
            ),
            (&json!("not readable"), &expected, &Value::Null),
            "{to}"
        );
    }
    // A point of three coordinates fits its class, but not its polyline.
    let (warnings, wall) = read("(1.5,0.)", "(1,5,0.)");
    assert_eq!(
        (warnings, &wall["geometry"]["problem"]),
        (json!([]), &json!("not readable"))
    );
    let reason = &wall["takeoff"]["implausible"][0]["reason"];
    assert_eq!(
        reason,
        "the geometry (#214) cannot be read; no value is used"
    );
    let (warnings, wall) = read("(1.5,0.)", "(1.5,0.5)");
    assert_eq!(
        (warnings, &wall["geometry"]["problem"]),
        (json!([]), &Value::Null)
    );
}

#[test]
fn a_model_without_its_length_unit_is_not_measured() {
    let records = STOREY.to_owned() + &block("IFCWALL", 100, "0.,0.,0.", [4.0, 0.2, 3.0]);
    let text = step("IFC4", &records).replace(".LENGTHUNIT.,$", ".LENGTHUNIT.,.MILI.");
    let sample = Sample::bytes("model.ifc", text.as_bytes());
    let mut out = Vec::new();
    extract_on(
        1,
        &sample.path,
        "model.ifc",
        Measured::All,
        &mut out,
        &|| Ok(()),
    )
    .unwrap();
    let parsed: Value = serde_json::from_slice(&out).unwrap();
    assert_eq!(
        parsed["model"]["warnings"],
        json!([
            "1 record with values that cannot be read: #3 (IfcSIUnit, line 10); the values were left out"
        ])
    );
    let wall = &parsed["elements"][0];
    let reason = &wall["takeoff"]["implausible"][0]["reason"];
    assert_eq!(reason, "the geometry (#3) cannot be read; no value is used");
    assert_eq!(wall["geometry"]["volume_m3"], Value::Null);
    assert_eq!(wall["storey_elevation_m"], Value::Null);
}
