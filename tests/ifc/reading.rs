//! What is written of an element: the whole of it, key by key.

use serde_json::{Value, json};

use super::{Sample, id, step, wall};

/// One wall with all that a wall can have.
pub(super) fn full() -> String {
    let id = |number| id(number);
    format!(
        "#10=IFCBUILDING('{}',$,'Project',$,$,$,$,$,.ELEMENT.,$,$,$);
#11=IFCBUILDINGSTOREY('{}',$,'Ground floor',$,$,$,$,$,.ELEMENT.,-0.5);
#12=IFCRELAGGREGATES('{}',$,$,$,#10,(#11));
#20=IFCWALL('{}',$,'Wall A',$,'Outer',$,$,'T-20',.SOLIDWALL.);
#21=IFCRELCONTAINEDINSPATIALSTRUCTURE('{}',$,$,$,(#20),#11);
#22=IFCWALLTYPE('{}',$,'WT 200',$,$,(#52,#53),$,$,$,.STANDARD.);
#23=IFCRELDEFINESBYTYPE('{}',$,$,$,(#20),#22);
#30=IFCMATERIAL('Concrete',$,$);
#31=IFCMATERIALLAYER(#30,0.2,$,$,$,$,$);
#32=IFCMATERIALLAYER($,0.05,$,$,$,$,$);
#33=IFCMATERIALLAYERSET((#31,#32),$,$);
#34=IFCMATERIALLAYERSETUSAGE(#33,.AXIS2.,.POSITIVE.,0.,$);
#35=IFCRELASSOCIATESMATERIAL('{}',$,$,$,(#20),#34);
#40=IFCQUANTITYVOLUME('NetVolume',$,$,1.2,$);
#41=IFCQUANTITYAREA('NetSideArea',$,$,6,$);
#42=IFCQUANTITYLENGTH('Length',$,$,3.,$);
#43=IFCELEMENTQUANTITY('{}',$,'Qto_WallBaseQuantities',$,$,(#40,#41,#42));
#44=IFCRELDEFINESBYPROPERTIES('{}',$,$,$,(#20),#43);
#50=IFCPROPERTYSINGLEVALUE('LoadBearing',$,IFCBOOLEAN(.T.),$);
#51=IFCPROPERTYSET('{}',$,'Pset_WallCommon',$,(#50));
#52=IFCPROPERTYSET('{}',$,'Pset_WallCommon',$,(#54,#55));
#53=IFCELEMENTQUANTITY('{}',$,'Qto_WallBaseQuantities',$,$,(#56,#57));
#54=IFCPROPERTYSINGLEVALUE('LoadBearing',$,IFCBOOLEAN(.F.),$);
#55=IFCPROPERTYSINGLEVALUE('FireRating',$,IFCLABEL('EI30'),$);
#56=IFCQUANTITYLENGTH('Width',$,$,0.25,$);
#57=IFCQUANTITYVOLUME('NetVolume',$,$,99.,$);
#58=IFCRELDEFINESBYPROPERTIES('{}',$,$,$,(#20),#51);
#60=IFCCLASSIFICATIONREFERENCE($,'Ss_25_10','Walls',#62,$,$);
#62=IFCCLASSIFICATIONREFERENCE($,'Ss_25','Wall systems',#63,$,$);
#63=IFCCLASSIFICATION('NBS','2023',$,'Uniclass 2015',$,$,$);
#61=IFCRELASSOCIATESCLASSIFICATION('{}',$,$,$,(#22),#60);",
        id(10),
        id(11),
        id(12),
        id(20),
        id(21),
        id(22),
        id(23),
        id(35),
        id(43),
        id(44),
        id(51),
        id(52),
        id(53),
        id(58),
        id(61),
    )
}

#[test]
fn every_key_of_an_element_in_order() {
    let (parsed, summary) = Sample::model("IFC4", &full()).read();
    let expected = json!({
        "global_id": id(20), "ifc_type": "IfcWall", "predefined_type": "SOLIDWALL", "name": "Wall A",
        "object_type": "Outer", "type_name": "WT 200", "tag": "T-20",
        "storey": "Ground floor", "storey_elevation_m": -0.5,
        "container": {"name": "Ground floor", "ifc_type": "IfcBuildingStorey"}, "part_of": null, "parts": 0,
        "materials": ["Concrete"],
        "layers": [{"material": "Concrete", "thickness_m": 0.2}, {"material": null, "thickness_m": 0.05}],
        "volume_m3": 1.2, "net_volume_m3": 1.2, "gross_volume_m3": null, "area_m2": 6.0, "length_m": 3.0,
        "property_volume_m3": null, "property_volume_from": null, "property_area_m2": null, "property_area_from": null,
        "property_length_m": null, "property_length_from": null, "constituents": [],
        "classifications": ["Ss_25_10"],
        "classification_references": [{"system": "Uniclass 2015", "code": "Ss_25_10", "title": "Walls"}],
        "takeoff": {
            "volume_m3": 1.2, "volume_from": "quantity set", "area_m2": 6.0, "area_kind": "net side", "area_from": "quantity set",
            "length_m": 3.0, "length_from": "quantity set", "height_m": null, "height_from": null, "implausible": []
        },
        "quantities": {"Qto_WallBaseQuantities": {"NetVolume": 1.2, "NetSideArea": 6.0, "Length": 3.0, "Width": 0.25}},
        "properties": {"Pset_WallCommon": {"LoadBearing": true, "FireRating": "EI30"}},
    });
    assert_eq!(parsed["elements"], json!([expected]));
    let keys = |value: &Value| {
        value
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect::<Vec<_>>()
    };
    assert_eq!(keys(&parsed["elements"][0]), keys(&expected));
    assert_eq!(keys(&parsed), ["model", "elements", "openings"]);
    assert_eq!(
        serde_json::to_string(&parsed["model"]).unwrap(),
        r#"{"file":"model.ifc","schema":"IFC4","project":"Project","elements":1,"openings":0,"duplicate_global_ids":[],"warnings":[]}"#
    );
    let expected = json!({
        "elements": 1, "openings": 0, "by_type": {"IfcWall": 1}, "with_material": 1, "with_quantity_volume": 1,
        "with_property_volume": 0, "with_storey": 1, "duplicate_global_ids": [], "warnings": [], "schema": "IFC4",
    });
    assert_eq!(serde_json::to_value(summary).unwrap(), expected);
}

#[test]
fn one_line_an_element_and_the_same_bytes_each_time() {
    let sample = Sample::bytes(
        "model.ifc",
        step("IFC4", &(wall(20) + &wall(21))).as_bytes(),
    );
    let read = || {
        let mut out = Vec::new();
        milepost_formats::ifc::extract(&sample.path, "model.ifc", &mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    let text = read();
    let lines: Vec<_> = text
        .lines()
        .map(|line| &line[..line.len().min(20)])
        .collect();
    assert_eq!(
        lines,
        [
            "{\"model\":{\"file\":\"mo",
            " \"elements\":[",
            "  {\"global_id\":\"0000",
            "  {\"global_id\":\"0000",
            " ],",
            " \"openings\":[",
            " ]}"
        ]
    );
    assert_eq!(text, read());
}

#[test]
fn elements_stand_in_file_order_whatever_their_names() {
    let (parsed, _) = Sample::model("IFC4", &(wall(90) + &wall(20) + &wall(50))).read();
    let names: Vec<_> = parsed["elements"]
        .as_array()
        .unwrap()
        .iter()
        .map(|element| element["name"].clone())
        .collect();
    assert_eq!(names, ["Wall 90", "Wall 20", "Wall 50"]);
}

#[test]
fn the_result_does_not_depend_on_step_names() {
    let (before, _) = Sample::model("IFC4", &full()).read();
    // Every record gets another name, as on every export.
    let mut shifted = String::new();
    let mut rest = full();
    while let Some(at) = rest.find('#') {
        let digits = rest[at + 1..]
            .chars()
            .take_while(char::is_ascii_digit)
            .count();
        let number: u32 = rest[at + 1..at + 1 + digits].parse().unwrap();
        shifted += &format!("{}#{}", &rest[..at], number * 7 + 1000);
        rest = rest[at + 1 + digits..].to_owned();
    }
    let (after, _) = Sample::model("IFC4", &(shifted + &rest)).read();
    assert_eq!(before, after);
}

#[test]
fn property_values_keep_their_kinds() {
    let values = [
        ("'t'", "IFCTEXT('a''b')", json!("a'b")),
        ("'r'", "IFCREAL(5.)", json!(5.0)),
        ("'i'", "IFCINTEGER(-5)", json!(-5)),
        ("'y'", "IFCBOOLEAN(.F.)", json!(false)),
        ("'u'", "IFCLOGICAL(.U.)", json!("UNKNOWN")),
        (
            "'l'",
            "IFCCOMPOUNDPLANEANGLEMEASURE((1,2,3))",
            json!([1, 2, 3]),
        ),
        ("'b'", "IFCBINARY(\"0FF\")", json!("11111111")),
        ("'n'", "$", json!(null)),
    ];
    let mut records = wall(20);
    let mut expected = json!({});
    for (at, (name, value, json)) in values.iter().enumerate() {
        records += &format!("#{}=IFCPROPERTYSINGLEVALUE({name},$,{value},$);\n", 30 + at);
        expected[name.trim_matches('\'')] = json.clone();
    }
    records += &format!(
        "#40=IFCPROPERTYENUMERATEDVALUE('e',$,(IFCLABEL('x')),$);
         #41=IFCPROPERTYSET('{}',$,'P',$,(#30,#31,#32,#33,#34,#35,#36,#37,#40));
         #42=IFCRELDEFINESBYPROPERTIES('{}',$,$,$,(#20),#41);",
        id(41),
        id(42)
    );
    let (parsed, summary) = Sample::model("IFC4", &records).read();
    assert_eq!(
        parsed["elements"][0]["properties"],
        json!({ "P": expected })
    );
    assert_eq!(summary.warnings, [""; 0]);
}

#[test]
fn parts_of_a_constituent_set_and_codes_of_revit() {
    let records = wall(20)
        + &format!(
            "#30=IFCMATERIAL('Oak',$,$);
             #31=IFCMATERIAL('Glass',$,$);
             #32=IFCMATERIALCONSTITUENT('Frame',$,#30,0.3,'Framing');
             #33=IFCMATERIALCONSTITUENT('Pane',$,#31,$,'Glazing');
             #34=IFCMATERIALCONSTITUENTSET('Window',$,(#32,#33));
             #35=IFCRELASSOCIATESMATERIAL('{}',$,$,$,(#20),#34);
             #40=IFCPROPERTYSINGLEVALUE('Assembly Code',$,IFCTEXT('B2010'),$);
             #41=IFCPROPERTYSINGLEVALUE('Assembly Description',$,IFCTEXT('Exterior Walls'),$);
             #42=IFCPROPERTYSINGLEVALUE('OmniClass Number',$,IFCTEXT('--ASSEMBLY_CODE--'),$);
             #43=IFCPROPERTYSINGLEVALUE('Area',$,IFCAREAMEASURE(6.5),$);
             #44=IFCPROPERTYSINGLEVALUE('Length',$,IFCREAL(2.5),$);
             #45=IFCPROPERTYSET('{}',$,'Dimensions',$,(#40,#41,#42,#43,#44));
             #46=IFCRELDEFINESBYPROPERTIES('{}',$,$,$,(#20),#45);",
            id(35),
            id(45),
            id(46)
        );
    let (parsed, _) = Sample::model("IFC4", &records).read();
    let element = &parsed["elements"][0];
    let keys = [
        "materials",
        "constituents",
        "classifications",
        "classification_references",
        "property_area_m2",
        "property_area_from",
        "property_length_m",
        "property_length_from",
    ];
    let found: Value = keys.map(|key| element[key].clone()).to_vec().into();
    assert_eq!(
        found,
        json!([
            ["Oak", "Glass"],
            [
                {"name": "Frame", "material": "Oak", "category": "Framing", "fraction": 0.3},
                {"name": "Pane", "material": "Glass", "category": "Glazing", "fraction": null}
            ],
            [],
            [{"system": "Uniformat", "code": "B2010", "title": "Exterior Walls"}],
            6.5, "Dimensions.Area", 2.5, "Dimensions.Length"
        ])
    );
}

#[test]
fn text_that_cannot_be_decoded_is_counted_with_its_first_places() {
    let wall = |number: u32, name: &str| {
        format!("#{number}=IFCWALL('{}',$,{name},$,$,$,$,$);\n", id(number))
    };
    let names = [
        r"'\X2\59168',$",
        r"'1\X\8AK',$",
        r"'\X\96 Wand',$",
        r"'\X2\00C4\X0\',$",
        r"'\X2\D83D\X0\',$",
        r"'it''s','\X2\5'",
    ];
    let records: String = (20..).zip(names).map(|(at, name)| wall(at, name)).collect();
    let (parsed, summary) = Sample::model("IFC4", &records).read();
    let elements = parsed["elements"].as_array().unwrap().iter();
    let read: Vec<_> = elements.map(|element| &element["name"]).collect();
    let expected = ["外\u{FFFD}", "1階", "\u{96} Wand", "Ä", "\u{FFFD}", "it's"];
    assert_eq!(read, expected);
    let expected = "4 records with text that cannot be decoded, shown as \u{FFFD} or as control characters: #20 (IfcWall, line 13), \
                    #22 (IfcWall, line 15), #24 (IfcWall, line 17), …; export the model again";
    assert_eq!(summary.warnings, [expected]);
    assert_eq!(parsed["model"]["warnings"], json!([expected]));
}

#[test]
fn raw_bytes_that_are_not_text_are_counted() {
    let text = step("IFC4", &(wall(20) + &wall(21) + &wall(22))).replace("Wall 2", "Wände");
    let mut bytes = text.into_bytes();
    let at = bytes.windows(4).position(|four| four == b"#21=").unwrap();
    let letter = at + bytes[at..].iter().position(|byte| *byte == 0xC3).unwrap();
    bytes.remove(letter);
    let (parsed, summary) = Sample::bytes("model.ifc", &bytes).read();
    assert_eq!(parsed["elements"][0]["name"], "Wände0");
    assert_eq!(parsed["elements"][1]["name"], "W\u{FFFD}nde1");
    assert_eq!(
        summary.warnings,
        [
            "bytes of the text are not UTF-8: they are shown as \u{FFFD}; export the model again",
            "1 record with text that cannot be decoded, shown as \u{FFFD} or as control characters: #21 (IfcWall, line 14); export the model again"
        ]
    );
}

#[test]
fn areas_and_volumes_without_a_unit_follow_the_length_unit() {
    let records = wall(20)
        + &format!(
            "#30=IFCELEMENTQUANTITY('{}',$,'Q',$,$,(#31,#32,#33,#34));
             #31=IFCQUANTITYLENGTH('Length',$,$,8500.,$);
             #32=IFCQUANTITYVOLUME('NetVolume',$,$,9570000000.,$);
             #33=IFCQUANTITYVOLUME('GrossVolume',$,#40,9.9,$);
             #34=IFCQUANTITYAREA('NetSideArea',$,$,23925000.,$);
             #35=IFCRELDEFINESBYPROPERTIES('{}',$,$,$,(#20),#30);
             #36=IFCPROPERTYSINGLEVALUE('Area',$,IFCAREAMEASURE(24000000.),$);
             #37=IFCPROPERTYSET('{}',$,'Dimensions',$,(#36));
             #38=IFCRELDEFINESBYPROPERTIES('{}',$,$,$,(#20),#37);
             #40=IFCSIUNIT(*,.VOLUMEUNIT.,$,.CUBIC_METRE.);",
            id(30),
            id(35),
            id(37),
            id(38)
        );
    let read = |units: &str, length: &str| {
        let text = step("IFC4", &records)
            .replace("(#3,#4,#5)", units)
            .replace(".LENGTHUNIT.,$", length);
        let (parsed, summary) = Sample::bytes("model.ifc", text.as_bytes()).read();
        let element = &parsed["elements"][0];
        let keys = [
            "length_m",
            "net_volume_m3",
            "gross_volume_m3",
            "area_m2",
            "property_area_m2",
        ];
        (
            keys.map(|key| element[key].as_f64().unwrap()).to_vec(),
            summary.warnings,
        )
    };
    let none: [&str; 0] = [];
    let (figures, warnings) = read("(#3)", ".LENGTHUNIT.,.MILLI.");
    let expected = [8.5, 9.57, 9.9, 23.925, 24.0];
    assert!(
        figures
            .iter()
            .zip(expected)
            .all(|(one, other)| (one - other).abs() < 1e-9),
        "{figures:?}"
    );
    assert_eq!(
        warnings,
        [
            "the project sets no area unit: 2 values without a unit read as mm², because of its length unit; check the areas",
            "the project sets no volume unit: 1 value without a unit read as mm³, because of its length unit; check the volumes"
        ]
    );
    let (figures, warnings) = read("(#3,#4,#5)", ".LENGTHUNIT.,.MILLI.");
    assert_eq!(
        figures,
        vec![8.5, 9_570_000_000.0, 9.9, 23_925_000.0, 24_000_000.0]
    );
    assert_eq!(warnings, none);
    let (figures, warnings) = read("(#3)", ".LENGTHUNIT.,$");
    assert_eq!(
        figures,
        vec![8500.0, 9_570_000_000.0, 9.9, 23_925_000.0, 24_000_000.0]
    );
    assert_eq!(warnings, none);
}
