//! What real models do that a naive reader gets wrong; numbered as such readers' failures were first written down.

use serde_json::json;

use super::{Sample, id, step, wall};

/// 1: what stands in a string is text, however it is escaped.
#[test]
fn strings_in_every_spelling() {
    let texts = [
        (r"'Para \S\' 5'", "Para § 5"),
        (r"'it''s'", "it's"),
        (r"'C:\\temp'", r"C:\temp"),
        (r"'gr\X\FCn'", "grün"),
        (r"'\X2\00C400DF\X0\'", "Äß"),
        (r"'\X2\D83DDE00\X0\'", "😀"),
        (r"'\X4\0001F600\X0\'", "😀"),
        (r"'\PB\\S\c'", "ă"),
        (r"'a #20=IFCWALL(1); /* b'", "a #20=IFCWALL(1); /* b"),
        ("''", ""),
    ];
    let mut records = String::new();
    for (at, (text, _)) in texts.iter().enumerate() {
        let at = 20 + at as u32;
        records += &format!("#{at}=IFCWALL('{}',$,{text},$,$,$,$,$,$);\n", id(at));
    }
    let (parsed, summary) = Sample::model("IFC4", &records).read();
    let names: Vec<_> = parsed["elements"]
        .as_array()
        .unwrap()
        .iter()
        .map(|element| element["name"].clone())
        .collect();
    assert_eq!(names, texts.map(|(_, expected)| expected));
    assert_eq!(summary.warnings, [""; 0]);
}

/// 2: line ends, comments, case, several records a line, one record over many.
#[test]
fn any_layout_of_the_text() {
    let records = format!(
        "/* #98=IFCWALL('x'); */ {}#21 /* was #7 */ =\n IfcSlab\n (\n'{}', $, 'S;#1''', $,\n$ /* a, ) ; */ , $,$,$,.FLOOR.\n) ;#22=ifcdoor('{}',$,'D',$,$,$,$,$,$,$,$,$,$);",
        wall(20).trim_end(),
        id(21),
        id(22)
    );
    let text = step("IFC4", &records);
    let (expected, summary) = Sample::bytes("model.ifc", text.as_bytes()).read();
    let types: Vec<_> = expected["elements"]
        .as_array()
        .unwrap()
        .iter()
        .map(|element| &element["ifc_type"])
        .collect();
    assert_eq!(types, ["IfcWall", "IfcSlab", "IfcDoor"]);
    assert_eq!(expected["elements"][1]["name"], "S;#1'");
    assert_eq!(expected["elements"][1]["predefined_type"], "FLOOR");
    assert_eq!(summary.warnings, [""; 0]);
    for ends in ["\r", "\r\n"] {
        let (parsed, _) = Sample::bytes("model.ifc", text.replace('\n', ends).as_bytes()).read();
        assert_eq!(parsed, expected);
    }
    let (parsed, _) = Sample::bytes("model.ifc", format!("\u{feff}{text}").as_bytes()).read();
    assert_eq!(parsed, expected);
}

/// 3: the schema may stand far down the header, and the header may mention what is none.
#[test]
fn the_schema_far_down_the_header() {
    let header = format!(
        "FILE_DESCRIPTION(('FILE_SCHEMA((''IFC2X3'')); DATA; #9=IFCWALL(1);','{}'),'2;1');\n/* DATA; */",
        "x".repeat(400_000)
    );
    let text = step("IFC4X3_ADD2", &wall(20)).replace("FILE_DESCRIPTION((''),'2;1');", &header);
    let (parsed, summary) = Sample::bytes("model.ifc", text.as_bytes()).read();
    assert_eq!(
        (summary.schema.as_str(), summary.elements),
        ("IFC4X3_ADD2", 1)
    );
    assert_eq!(parsed["elements"][0]["name"], "Wall 20");
}

/// 3: candidates are read, but never silently.
#[test]
fn candidate_schemas_warn() {
    let (_, summary) = Sample::model("IFC4X3_RC4", &wall(20)).read();
    assert_eq!(summary.elements, 1);
    assert_eq!(summary.warnings.len(), 1);
    assert!(summary.warnings[0].starts_with("the schema IFC4X3_RC4 is a candidate, not a release"));
}

/// 4: `PredefinedType` moves from class to class, and older classes have none.
#[test]
fn predefined_types_wherever_they_stand() {
    let window = format!(
        "#20=IFCWINDOW('{}',$,'W',$,$,$,$,'t',1.2,1.4,.SKYLIGHT.,$,$);",
        id(20)
    );
    let (parsed, _) = Sample::model("IFC4", &window).read();
    assert_eq!(parsed["elements"][0]["predefined_type"], "SKYLIGHT");
    let window = format!("#20=IFCWINDOW('{}',$,'W',$,$,$,$,'t',1.2,1.4);", id(20));
    let (parsed, _) = Sample::model("IFC2X3", &window).read();
    assert_eq!(parsed["elements"][0]["predefined_type"], json!(null));
    assert_eq!(parsed["elements"][0]["tag"], "t");
}

/// 5: lengths in feet (a conversion of a conversion), own units, prefixes of mass.
#[test]
fn units_of_all_kinds() {
    let text = step(
        "IFC4",
        &format!(
            "{}#30=IFCELEMENTQUANTITY('{}',$,'Q',$,$,(#31,#32,#33,#34,#35,#36));
#31=IFCQUANTITYLENGTH('Length',$,$,10.,$);
#32=IFCQUANTITYVOLUME('NetVolume',$,$,2.,$);
#33=IFCQUANTITYVOLUME('GrossVolume',$,#40,2500000.,$);
#34=IFCQUANTITYWEIGHT('Mass',$,$,7.,$);
#35=IFCQUANTITYWEIGHT('Grams',$,#41,7.,$);
#36=IFCQUANTITYCOUNT('Count',$,$,3,$);
#37=IFCRELDEFINESBYPROPERTIES('{}',$,$,$,(#20),#30);
#38=IFCBUILDINGSTOREY('{}',$,'S',$,$,$,$,$,$,10.);
#39=IFCRELCONTAINEDINSPATIALSTRUCTURE('{}',$,$,$,(#20),#38);
#40=IFCSIUNIT(*,.VOLUMEUNIT.,.CENTI.,.CUBIC_METRE.);
#41=IFCSIUNIT(*,.MASSUNIT.,$,.GRAM.);
#42=IFCMEASUREWITHUNIT(IFCRATIOMEASURE(12.),#43);
#43=IFCCONVERSIONBASEDUNIT($,.LENGTHUNIT.,'inch',#44);
#44=IFCMEASUREWITHUNIT(IFCLENGTHMEASURE(25.4),#45);
#45=IFCSIUNIT(*,.LENGTHUNIT.,.MILLI.,.METRE.);
#46=IFCSIUNIT(*,.MASSUNIT.,.KILO.,.GRAM.);",
            wall(20),
            id(30),
            id(37),
            id(38),
            id(39)
        ),
    )
    .replace(
        "#3=IFCSIUNIT(*,.LENGTHUNIT.,$,.METRE.);",
        "#3=IFCCONVERSIONBASEDUNIT($,.LENGTHUNIT.,'foot',#42);",
    )
    .replace("(#3,#4,#5)", "(#3,#4,#5,#46)");
    let (parsed, summary) = Sample::bytes("model.ifc", text.as_bytes()).read();
    let element = &parsed["elements"][0];
    let near = |key: &str, expected: f64| {
        let value = element["quantities"]["Q"][key].as_f64().unwrap();
        assert!((value - expected).abs() < 1e-9, "{key}: {value}");
    };
    near("Length", 3.048);
    near("NetVolume", 2.0);
    near("GrossVolume", 2.5);
    near("Mass", 7.0);
    near("Grams", 0.007);
    near("Count", 3.0);
    assert!((element["storey_elevation_m"].as_f64().unwrap() - 3.048).abs() < 1e-9);
    assert_eq!(summary.warnings, [""; 0]);
}

/// 6: materials of the type, of several associations, of lists, profiles and constituents, and with odd names.
#[test]
fn materials_from_everywhere() {
    let mut records = String::new();
    for at in 20..25 {
        records += &wall(at);
    }
    records += &format!(
        "#30=IFCMATERIAL('<Unnamed>',$,$);
#31=IFCMATERIAL('Steel',$,$);
#32=IFCMATERIALLIST((#31,#30,#31));
#33=IFCMATERIALPROFILE($,$,#31,$,$,$);
#34=IFCMATERIALPROFILESET($,$,(#33),$);
#35=IFCMATERIALPROFILESETUSAGE(#34,$,$);
#36=IFCMATERIALCONSTITUENT('Frame',$,#30,$,$);
#37=IFCMATERIALCONSTITUENTSET($,$,(#36));
#40=IFCRELASSOCIATESMATERIAL('{}',$,$,$,(#20),#32);
#41=IFCRELASSOCIATESMATERIAL('{}',$,$,$,(#21),#35);
#42=IFCRELASSOCIATESMATERIAL('{}',$,$,$,(#21),#37);
#43=IFCWALLTYPE('{}',$,'T',$,$,$,$,$,$,.STANDARD.);
#44=IFCRELDEFINESBYTYPE('{}',$,$,$,(#21,#22),#43);
#45=IFCRELASSOCIATESMATERIAL('{}',$,$,$,(#43),#30);
#46=IFCMATERIALLAYER($,0.1,$,$,$,$,$);
#47=IFCMATERIALLAYERSET((#46),$,$);
#48=IFCRELASSOCIATESMATERIAL('{}',$,$,$,(#23),#47);",
        id(40),
        id(41),
        id(42),
        id(43),
        id(44),
        id(45),
        id(48)
    );
    let (parsed, summary) = Sample::model("IFC4", &records).read();
    let materials: Vec<_> = parsed["elements"]
        .as_array()
        .unwrap()
        .iter()
        .map(|element| element["materials"].clone())
        .collect();
    assert_eq!(
        materials,
        [
            json!(["Steel", "<Unnamed>"]),
            json!(["Steel", "<Unnamed>"]),
            json!(["<Unnamed>"]),
            json!([]),
            json!([])
        ]
    );
    assert_eq!(
        parsed["elements"][3]["layers"],
        json!([{"material": null, "thickness_m": 0.1}])
    );
    assert_eq!(summary.with_material, 3);
}

/// 7: a container that is no storey, on a storey and on none.
#[test]
fn containers_that_are_no_storey() {
    let records = format!(
        "{}{}#30=IFCBUILDINGSTOREY('{}',$,'EG',$,$,$,$,$,$,$);
#31=IFCSPACE('{}',$,'Room',$,$,$,$,$,$,$,$);
#32=IFCRELAGGREGATES('{}',$,$,$,#30,(#31));
#33=IFCRELCONTAINEDINSPATIALSTRUCTURE('{}',$,$,$,(#20),#31);
#34=IFCBRIDGEPART('{}',$,'Deck',$,$,$,$,$,$,.LONGITUDINAL.,.DECK.);
#35=IFCRELCONTAINEDINSPATIALSTRUCTURE('{}',$,$,$,(#21),#34);",
        wall(20),
        wall(21),
        id(30),
        id(31),
        id(32),
        id(33),
        id(34),
        id(35)
    );
    let (parsed, _) = Sample::model("IFC4X3", &records).read();
    let element = |at: usize| parsed["elements"][at].clone();
    assert_eq!(element(0)["storey"], "EG");
    assert_eq!(
        element(0)["container"],
        json!({"name": "Room", "ifc_type": "IfcSpace"})
    );
    assert_eq!(element(0)["storey_elevation_m"], json!(null));
    assert_eq!(element(1)["storey"], json!(null));
    assert_eq!(
        element(1)["container"],
        json!({"name": "Deck", "ifc_type": "IfcBridgePart"})
    );
}

/// 8: openings and virtual elements stand apart; parts know their assembly; a door is where its opening's wall is.
#[test]
fn openings_parts_and_fillings() {
    let records = format!(
        "{}#21=IFCOPENINGELEMENT('{}',$,'Hole',$,$,$,$,$,$);
#22=IFCVIRTUALELEMENT('{}',$,'Border',$,$,$,$,$);
#23=IFCDOOR('{}',$,'Door',$,$,$,$,$,$,$,$,$,$);
#24=IFCELEMENTASSEMBLY('{}',$,'Truss',$,$,$,$,$,$,$);
#25=IFCBEAM('{}',$,'Rod',$,$,$,$,$,$);
#30=IFCBUILDINGSTOREY('{}',$,'EG',$,$,$,$,$,$,$);
#31=IFCRELCONTAINEDINSPATIALSTRUCTURE('{}',$,$,$,(#20,#24),#30);
#32=IFCRELVOIDSELEMENT('{}',$,$,$,#20,#21);
#33=IFCRELFILLSELEMENT('{}',$,$,$,#21,#23);
#34=IFCRELAGGREGATES('{}',$,$,$,#24,(#25));",
        wall(20),
        id(21),
        id(22),
        id(23),
        id(24),
        id(25),
        id(30),
        id(31),
        id(32),
        id(33),
        id(34)
    );
    let (parsed, summary) = Sample::model("IFC4", &records).read();
    let said = |list: &str| {
        let all = parsed[list].as_array().unwrap().iter();
        all.map(|element| {
            (
                element["name"].clone(),
                element["storey"].clone(),
                element["part_of"].clone(),
                element["parts"].clone(),
            )
        })
        .collect::<Vec<_>>()
    };
    assert_eq!(
        said("elements"),
        [
            (json!("Wall 20"), json!("EG"), json!(null), json!(0)),
            (json!("Door"), json!("EG"), json!(null), json!(0)),
            (json!("Truss"), json!("EG"), json!(null), json!(1)),
            (json!("Rod"), json!("EG"), json!(id(24)), json!(0)),
        ]
    );
    assert_eq!(
        said("openings"),
        [
            (json!("Hole"), json!("EG"), json!(null), json!(0)),
            (json!("Border"), json!(null), json!(null), json!(0))
        ]
    );
    assert_eq!(
        (summary.elements, summary.openings, summary.with_storey),
        (4, 2, 4)
    );
}

/// 9: quantity sets of any name and with none, complex quantities; the first of a name wins.
#[test]
fn quantity_sets_of_any_name() {
    let records = format!(
        "{}#30=IFCELEMENTQUANTITY('{}',$,$,$,$,(#31,#32));
#31=IFCQUANTITYVOLUME('GrossVolume',$,$,3.,$);
#32=IFCPHYSICALCOMPLEXQUANTITY('Layer',$,(#33),'layer',$,$);
#33=IFCQUANTITYVOLUME('NetVolume',$,$,9.,$);
#34=IFCELEMENTQUANTITY('{}',$,'ArchiCADQuantities',$,$,(#35));
#35=IFCQUANTITYVOLUME('GrossVolume',$,$,4.,$);
#36=IFCRELDEFINESBYPROPERTIES('{}',$,$,$,(#20),#30);
#37=IFCRELDEFINESBYPROPERTIES('{}',$,$,$,(#20),#34);",
        wall(20),
        id(30),
        id(34),
        id(36),
        id(37)
    );
    let (parsed, _) = Sample::model("IFC4", &records).read();
    let element = &parsed["elements"][0];
    assert_eq!(
        element["quantities"],
        json!({"": {"GrossVolume": 3.0, "Layer.NetVolume": 9.0}, "ArchiCADQuantities": {"GrossVolume": 4.0}})
    );
    assert_eq!(
        (&element["volume_m3"], &element["net_volume_m3"]),
        (&json!(3.0), &json!(null))
    );
}

/// 9: volumes that stand in property sets are told apart from quantities, and say where they are from.
#[test]
fn volumes_in_property_sets() {
    let cases = [
        (
            "Dimensions",
            "Volume",
            "IFCVOLUMEMEASURE(2.)",
            "$",
            Some(2.0),
        ),
        (
            "PSet_Revit_Dimensions",
            "Volume",
            "IFCREAL(2.)",
            "$",
            Some(2.0),
        ),
        (
            "Tekla Quantity",
            "Net volume",
            "IFCVOLUMEMEASURE(2.)",
            "#60",
            Some(0.002),
        ),
        (
            "Anything",
            "GrossVolume",
            "IFCVOLUMEMEASURE(3.)",
            "$",
            Some(3.0),
        ),
        ("Tank", "Volume", "IFCREAL(200.)", "$", None),
        ("Dimensions", "Volume", "IFCTEXT('2 m3')", "$", None),
        (
            "Dimensions",
            "Volumetric flow",
            "IFCVOLUMEMEASURE(2.)",
            "$",
            None,
        ),
    ];
    for (set, name, value, unit, expected) in cases {
        let records = format!(
            "{}#30=IFCPROPERTYSET('{}',$,'{set}',$,(#31));
#31=IFCPROPERTYSINGLEVALUE('{name}',$,{value},{unit});
#32=IFCRELDEFINESBYPROPERTIES('{}',$,$,$,(#20),#30);
#60=IFCSIUNIT(*,.VOLUMEUNIT.,.DECI.,.CUBIC_METRE.);",
            wall(20),
            id(30),
            id(32)
        );
        let (parsed, summary) =
            Sample::model("IFC2X3", &records.replace("$,$);\n#30", "$);\n#30")).read();
        let element = &parsed["elements"][0];
        let volume = element["property_volume_m3"].as_f64();
        assert_eq!(
            volume.map(|volume| (volume * 1e9).round() / 1e9),
            expected,
            "{set}.{name}"
        );
        let from = expected.map(|_| format!("{set}.{name}"));
        assert_eq!(element["property_volume_from"], json!(from));
        assert_eq!(element["volume_m3"], json!(null));
        assert_eq!(
            summary.with_property_volume,
            usize::from(expected.is_some())
        );
    }
}

/// 9: a net volume is better than one that does not say, wherever it stands.
#[test]
fn the_best_volume_of_several() {
    let records = format!(
        "{}#30=IFCPROPERTYSET('{}',$,'A',$,(#31));
#31=IFCPROPERTYSINGLEVALUE('Volume',$,IFCVOLUMEMEASURE(5.),$);
#32=IFCRELDEFINESBYPROPERTIES('{}',$,$,$,(#20),#30);
#33=IFCPROPERTYSET('{}',$,'B',$,(#34,#35));
#34=IFCPROPERTYSINGLEVALUE('Gross volume',$,IFCVOLUMEMEASURE(6.),$);
#35=IFCPROPERTYSINGLEVALUE('Net volume',$,IFCVOLUMEMEASURE(4.),$);
#36=IFCRELDEFINESBYPROPERTIES('{}',$,$,$,(#20),#33);",
        wall(20),
        id(30),
        id(32),
        id(33),
        id(36)
    );
    let (parsed, _) = Sample::model("IFC4", &records).read();
    assert_eq!(parsed["elements"][0]["property_volume_m3"], json!(4.0));
    assert_eq!(
        parsed["elements"][0]["property_volume_from"],
        "B.Net volume"
    );
}

/// 10: an inline set of definitions, and GlobalIds that are not unique.
#[test]
fn inline_sets_and_shared_global_ids() {
    let records = format!(
        "{}{}{}#30=IFCPROPERTYSET('{}',$,'P',$,(#31));
#31=IFCPROPERTYSINGLEVALUE('a',$,IFCLABEL('b'),$);
#32=IFCPROPERTYSET('{}',$,'Q',$,(#31));
#33=IFCRELDEFINESBYPROPERTIES('{}',$,$,$,(#20),IFCPROPERTYSETDEFINITIONSET((#30,#32)));",
        wall(20),
        wall(21),
        wall(22).replace(&id(22), &id(20)),
        id(30),
        id(32),
        id(33)
    );
    let (parsed, summary) = Sample::model("IFC4", &records).read();
    assert_eq!(
        parsed["elements"][0]["properties"],
        json!({"P": {"a": "b"}, "Q": {"a": "b"}})
    );
    assert_eq!(summary.elements, 3);
    assert_eq!(summary.duplicate_global_ids, [id(20)]);
    assert_eq!(parsed["model"]["duplicate_global_ids"], json!([id(20)]));
    assert_eq!(
        summary.warnings,
        ["1 GlobalId shared by several elements: all were kept"]
    );
}

/// Codes stand in `ItemReference` or `Identification`; those of the occurrence hide those of the type.
#[test]
fn classifications_of_both_releases() {
    for (schema, reference) in [
        ("IFC2X3", "$,'21.10','Walls',$"),
        ("IFC4", "$,'21.10','Walls',$,$,$"),
    ] {
        let tail = if schema == "IFC4" { ",$" } else { "" };
        let records = format!(
            "#20=IFCWALL('{}',$,'W',$,$,$,$,$ {tail});
#30=IFCCLASSIFICATIONREFERENCE({reference});
#31=IFCCLASSIFICATIONREFERENCE({});
#32=IFCRELASSOCIATESCLASSIFICATION('{}',$,$,$,(#20),#30);
#33=IFCRELASSOCIATESCLASSIFICATION('{}',$,$,$,(#34),#31);
#34=IFCWALLTYPE('{}',$,'T',$,$,$,$,$,$,.STANDARD.);
#35=IFCRELDEFINESBYTYPE('{}',$,$,$,(#20),#34);",
            id(20),
            reference.replace("21.10", "other"),
            id(32),
            id(33),
            id(34),
            id(35)
        );
        let (parsed, _) = Sample::model(schema, &records).read();
        assert_eq!(
            parsed["elements"][0]["classifications"],
            json!(["21.10"]),
            "{schema}"
        );
    }
}
