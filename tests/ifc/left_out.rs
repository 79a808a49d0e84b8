//! Figures that cannot be read: left out, counted with the line of the record, and named at the element.

use serde_json::{Value, json};

use super::{Sample, id, step, wall};

/// Reads a wall with a quantity set of these records, and returns the wall and the warnings.
fn with_quantities(schema: &str, quantities: &[&str]) -> (Value, Vec<String>) {
    let names: Vec<_> = (30..)
        .take(quantities.len())
        .map(|at| format!("#{at}"))
        .collect();
    let records = (30..)
        .zip(quantities)
        .map(|(at, record): (u32, _)| format!("#{at}={record};\n"));
    let records = format!(
        "{}#21=IFCELEMENTQUANTITY('{}',$,'Qto',$,$,({}));\n#22=IFCRELDEFINESBYPROPERTIES('{}',$,$,$,(#20),#21);\n{}",
        wall(20),
        id(21),
        names.join(","),
        id(22),
        records.collect::<String>(),
    );
    let (parsed, summary) = Sample::model(schema, &records).read();
    (parsed["elements"][0].clone(), summary.warnings)
}

const MISFIT: &str = "1 record with attributes that do not fit their class: #30 (IfcQuantityVolume, line 16); their values were left out; a decimal comma may be the cause";
const UNREAD: &str = "1 record with values that cannot be read: #30 (IfcQuantityVolume, line 16); the values were left out";

#[test]
fn a_quantity_that_cannot_be_read_is_left_out_and_named() {
    for (schema, value, warning) in [
        ("IFC2X3", "3,75", MISFIT),
        ("IFC4", "3,75", MISFIT),
        ("IFC4", "3,75,$", MISFIT),
        ("IFC4X3", "1,234,5", MISFIT),
        ("IFC4", "IFCVOLUMEMEASURE(3,75),$", UNREAD),
        ("IFC4", "1.#QNAN,$", UNREAD),
        ("IFC4", "-1.#IND,$", UNREAD),
        ("IFC4", "NaN,$", UNREAD),
        ("IFC4", "3.E400,$", UNREAD),
        ("IFC4", "'3',$", UNREAD),
        ("IFC4", "3.7.5,$", UNREAD),
        ("IFC4", "#3,$", UNREAD),
        ("IFC4", ".T.,$", UNREAD),
        ("IFC4", "(3.),$", UNREAD),
    ] {
        let record = format!("IFCQUANTITYVOLUME('NetVolume',$,$,{value})");
        let (wall, warnings) = with_quantities(schema, &[&record]);
        assert_eq!(warnings, [warning], "{schema} {value}");
        assert_eq!(
            (&wall["volume_m3"], &wall["quantities"]),
            (&Value::Null, &json!({"Qto": {}})),
            "{value}"
        );
        let expected = json!([{
            "quantity": "volume", "stated": null, "property": null, "geometry": null, "taken": null,
            "reason": "`NetVolume` (#30) cannot be read; no value is used",
        }]);
        assert_eq!(wall["takeoff"]["implausible"], expected, "{value}");
    }
}

#[test]
fn another_figure_counts_and_the_element_is_reviewed() {
    let (wall, _) = with_quantities(
        "IFC4",
        &[
            "IFCQUANTITYVOLUME('NetVolume',$,$,3,75)",
            "IFCQUANTITYVOLUME('GrossVolume',$,$,4.,$)",
        ],
    );
    assert_eq!(wall["takeoff"]["volume_m3"], 4.0);
    let reason = &wall["takeoff"]["implausible"][0]["reason"];
    assert_eq!(
        reason,
        "`NetVolume` (#30) cannot be read; the value of the quantity set is used"
    );
}

#[test]
fn what_is_not_set_is_no_loss() {
    for record in [
        "IFCQUANTITYVOLUME('NetVolume',$,$,$,$)",
        "IFCQUANTITYVOLUME('NetVolume',$,$,3.75)",
        "IFCQUANTITYVOLUME('NetVolume',$,$,3.75,'a * b')",
        "IFCQUANTITYVOLUME('NetVolume',$,$,3.75E0,*)",
    ] {
        let (wall, warnings) = with_quantities("IFC4", &[record]);
        assert_eq!(
            (warnings, &wall["takeoff"]["implausible"]),
            (Vec::new(), &json!([])),
            "{record}"
        );
    }
}

#[test]
fn texts_that_are_none_are_named() {
    let records = format!(
        "#20=IFCWALL('{}',$,5.,$,('x'),$,$,12,$);\n\
         #21=IFCPROPERTYSET('{}',$,'Dimensions',$,(#30,#31));\n#22=IFCRELDEFINESBYPROPERTIES('{}',$,$,$,(#20),#21);\n\
         #30=IFCPROPERTYSINGLEVALUE(Volume,$,IFCVOLUMEMEASURE(3.75),$);\n\
         #31=IFCPROPERTYSINGLEVALUE('Mark',$,IFCLABEL('a'),$);\n\
         #40=IFCMATERIAL(7,$,$);\n#43=IFCRELASSOCIATESMATERIAL('{}',$,$,$,(#20),#40);\n",
        id(20),
        id(21),
        id(22),
        id(43),
    );
    let (parsed, summary) = Sample::model("IFC4", &records).read();
    assert_eq!(
        summary.warnings,
        [
            "3 records with values that cannot be read: #20 (IfcWall, line 13), #30 (IfcPropertySingleValue, line 16), #40 (IfcMaterial, line 18); the values were left out"
        ]
    );
    let wall = &parsed["elements"][0];
    assert_eq!(wall["properties"], json!({"Dimensions": {"Mark": "a"}}));
}

#[test]
fn properties_layers_and_storeys_are_held_to_the_same() {
    let records = format!(
        "{}#21=IFCPROPERTYSET('{}',$,'Dimensions',$,(#30,#31,#32));\n#22=IFCRELDEFINESBYPROPERTIES('{}',$,$,$,(#20),#21);\n\
         #30=IFCPROPERTYSINGLEVALUE('Volume',$,IFCVOLUMEMEASURE(3,75),$);\n\
         #31=IFCPROPERTYSINGLEVALUE('Area',$,IFCAREAMEASURE(1.#INF),$);\n\
         #32=IFCPROPERTYSINGLEVALUE('Mark',$,$,$);\n\
         #40=IFCMATERIAL('Brick',$,$);\n#41=IFCMATERIALLAYER(#40,0,24,$,$,$,$,$);\n#42=IFCMATERIALLAYERSET((#41),$,$);\n\
         #43=IFCRELASSOCIATESMATERIAL('{}',$,$,$,(#20),#42);\n\
         #50=IFCBUILDINGSTOREY('{}',$,'First',$,$,$,$,$,.ELEMENT.,2,5);\n\
         #51=IFCRELCONTAINEDINSPATIALSTRUCTURE('{}',$,$,$,(#20),#50);\n",
        wall(20),
        id(21),
        id(22),
        id(43),
        id(50),
        id(51),
    );
    let (parsed, summary) = Sample::model("IFC4", &records).read();
    assert_eq!(
        summary.warnings,
        [
            "2 records with attributes that do not fit their class: #41 (IfcMaterialLayer, line 20), #50 (IfcBuildingStorey, line 23); their values were left out; a decimal comma may be the cause",
            "2 records with values that cannot be read: #30 (IfcPropertySingleValue, line 16), #31 (IfcPropertySingleValue, line 17); the values were left out",
        ]
    );
    let wall = &parsed["elements"][0];
    assert_eq!(
        wall["properties"],
        json!({"Dimensions": {"Volume": null, "Area": null, "Mark": null}})
    );
    assert_eq!(
        wall["layers"],
        json!([{"material": "Brick", "thickness_m": null}])
    );
    assert_eq!(
        (&wall["storey"], &wall["storey_elevation_m"]),
        (&json!("First"), &Value::Null)
    );
    let reasons: Vec<_> = wall["takeoff"]["implausible"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["reason"].as_str().unwrap())
        .collect();
    assert_eq!(
        reasons,
        [
            "`Volume` (#30) cannot be read; no value is used",
            "`Area` (#31) cannot be read; no value is used"
        ]
    );
}

/// Lists of references with something else, in relations and in sets: what is a reference is read, the record is named.
#[test]
fn something_else_where_references_are_expected_is_named() {
    let relation = |class: &str, fourth: &str, fifth: &str| {
        let global_id = id(90);
        format!("#90={class}('{global_id}',$,$,$,{fourth},{fifth});\n")
    };
    let named = |record: &str| {
        vec![format!(
            "1 record with something else where references are expected: {record}; it was left out"
        )]
    };
    let list = "(#20,'x',$,12,#21)";
    for (relation, class) in [
        (
            relation("IFCRELCONTAINEDINSPATIALSTRUCTURE", list, "#40"),
            "IfcRelContainedInSpatialStructure",
        ),
        (
            relation("IFCRELAGGREGATES", "#40", list),
            "IfcRelAggregates",
        ),
        (relation("IFCRELNESTS", "#40", list), "IfcRelNests"),
        (
            relation("IFCRELDEFINESBYTYPE", list, "#41"),
            "IfcRelDefinesByType",
        ),
        (
            relation("IFCRELDEFINESBYPROPERTIES", list, "#42"),
            "IfcRelDefinesByProperties",
        ),
        (
            relation("IFCRELASSOCIATESMATERIAL", list, "#43"),
            "IfcRelAssociatesMaterial",
        ),
        (
            relation("IFCRELASSOCIATESCLASSIFICATION", list, "#44"),
            "IfcRelAssociatesClassification",
        ),
        (
            relation("IFCRELVOIDSELEMENT", "'x'", "#45"),
            "IfcRelVoidsElement",
        ),
        (
            relation("IFCRELFILLSELEMENT", "#45", ".T."),
            "IfcRelFillsElement",
        ),
        (
            relation(
                "IFCRELDEFINESBYPROPERTIES",
                "(#20)",
                "IFCPROPERTYSETDEFINITIONSET((#42,'x'))",
            ),
            "IfcRelDefinesByProperties",
        ),
    ] {
        let records = format!(
            "{}{}#40=IFCBUILDINGSTOREY('{}',$,'First',$,$,$,$,$,.ELEMENT.,2.);\n\
             #41=IFCWALLTYPE('{}',$,'Brick',$,$,$,$,$,$,.NOTDEFINED.);\n\
             #42=IFCPROPERTYSET('{}',$,'Dimensions',$,());\n#43=IFCMATERIAL('Brick',$,$);\n\
             #44=IFCCLASSIFICATIONREFERENCE($,'1','Walls',$,$,$);\n\
             #45=IFCOPENINGELEMENT('{}',$,$,$,$,$,$,$,.OPENING.);\n{relation}",
            wall(20),
            wall(21),
            id(40),
            id(41),
            id(42),
            id(45),
        );
        let (parsed, summary) = Sample::model("IFC4", &records).read();
        assert_eq!(
            summary.warnings,
            named(&format!("#90 ({class}, line 21)")),
            "{relation}"
        );
        if class == "IfcRelContainedInSpatialStructure" {
            let storeys = [0, 1].map(|at| &parsed["elements"][at]["storey"]);
            assert_eq!(storeys, ["First", "First"]);
        }
    }
    let set = format!(
        "{}#21=IFCPROPERTYSET('{}',$,'Dimensions',$,(#30,IFCLABEL('x')));\n#22=IFCRELDEFINESBYPROPERTIES('{}',$,$,$,(#20),#21);\n\
         #30=IFCPROPERTYSINGLEVALUE('Mark',$,IFCLABEL('a'),$);\n",
        wall(20),
        id(21),
        id(22),
    );
    let (parsed, summary) = Sample::model("IFC4", &set).read();
    assert_eq!(summary.warnings, named("#21 (IfcPropertySet, line 14)"));
    assert_eq!(
        parsed["elements"][0]["properties"],
        json!({"Dimensions": {"Mark": "a"}})
    );
}

/// Reads a wall with a volume in a model of which one record is changed, and returns the warnings and the reasons of its review.
fn changed(from: &str, to: &str) -> (Vec<String>, Vec<String>) {
    let records = format!(
        "{}#21=IFCELEMENTQUANTITY('{}',$,'Qto',$,$,(#30));\n#22=IFCRELDEFINESBYPROPERTIES('{}',$,$,$,(#20),#21);\n\
         #30=IFCQUANTITYVOLUME('NetVolume',$,$,3.75,$);\n#23=IFCWALLTYPE('{}',$,'T',$,$,(#24),$,$,$,.SOLIDWALL.);\n\
         #24=IFCELEMENTQUANTITY('{}',$,'Type',$,$,(#31));\n#31=IFCQUANTITYLENGTH('Length',$,$,5.,$);\n\
         #25=IFCRELDEFINESBYTYPE('{}',$,$,$,(#20),#23);\n",
        wall(20),
        id(21),
        id(22),
        id(23),
        id(24),
        id(25),
    );
    let text = step("IFC4", &records);
    assert_eq!(text.matches(from).count(), 1, "{from}");
    let (parsed, summary) = Sample::bytes("model.ifc", text.replace(from, to).as_bytes()).read();
    let wall = &parsed["elements"][0];
    let all = wall["takeoff"]["implausible"].as_array().unwrap();
    let reasons = all
        .iter()
        .map(|it| it["reason"].as_str().unwrap().to_owned());
    (summary.warnings, reasons.collect())
}

#[test]
fn records_that_do_not_fit_their_class_lose_their_figures() {
    let volume = "`NetVolume` (#30) cannot be read; no value is used";
    let length = "`Length` (#31) cannot be read; no value is used";
    for (from, to, record, reasons) in [
        (
            "'Qto',$,$,(#30)",
            "'Qto',$,(#30)",
            "#21 (IfcElementQuantity, line 14)",
            &[volume][..],
        ),
        (
            "'Qto',$,$,(#30)",
            "'Qto',$,$,$,(#30)",
            "#21 (IfcElementQuantity, line 14)",
            &[volume],
        ),
        (
            "$,$,$,(#20),#21",
            "$,$,(#20),#21",
            "#22 (IfcRelDefinesByProperties, line 15)",
            &[volume],
        ),
        (
            "$,$,$,(#20),#21",
            "$,$,$,$,(#20),#21",
            "#22 (IfcRelDefinesByProperties, line 15)",
            &[volume],
        ),
        (
            "'T',$,$,(#24)",
            "'T',$,(#24)",
            "#23 (IfcWallType, line 17)",
            &[length],
        ),
        (
            "'Type',$,$,(#31)",
            "'Type',$,(#31)",
            "#24 (IfcElementQuantity, line 18)",
            &[length],
        ),
        (
            "$,$,$,(#20),#23",
            "$,$,(#20),#23",
            "#25 (IfcRelDefinesByType, line 20)",
            &[length],
        ),
        (
            "((#3,#4,#5))",
            "((#3,#4,#5),$)",
            "#2 (IfcUnitAssignment, line 9)",
            &[volume, length],
        ),
        (
            "'Project',$,$,$,$,$,#2",
            "'Project',$,$,$,$,#2",
            "#1 (IfcProject, line 8)",
            &[volume, length],
        ),
    ] {
        let (warnings, found) = changed(from, to);
        let warning = format!(
            "1 record with attributes that do not fit their class: {record}; their values were left out; a decimal comma may be the cause"
        );
        let expected: Vec<_> = reasons.iter().map(|it| (*it).to_owned()).collect();
        assert_eq!((warnings, found), (vec![warning], expected), "{to}");
    }
}

#[test]
fn a_unit_that_cannot_be_read_is_none() {
    const SI: &str = "#5=IFCSIUNIT(*,.VOLUMEUNIT.,$,.CUBIC_METRE.)";
    const SUFFIX: &str = "#6=IFCSIUNIT(*,.VOLUMEUNIT.,$,.CUBIC_METRE.)";
    let volume = "`NetVolume` (#30) cannot be read; no value is used";
    let conversion = |factor: &str| {
        format!(
            "#5=IFCCONVERSIONBASEDUNIT($,.VOLUMEUNIT.,'v',#7);#7=IFCMEASUREWITHUNIT({factor},#6);{SUFFIX}"
        )
    };
    for (to, record) in [
        (SI.replace('$', ".MILI."), "#5 (IfcSIUnit, line 12)"),
        (SI.replace('$', "'MILLI'"), "#5 (IfcSIUnit, line 12)"),
        (SI.replace("METRE", "METER"), "#5 (IfcSIUnit, line 12)"),
        (
            conversion("IFCVOLUMEMEASURE(0,3048)"),
            "#7 (IfcMeasureWithUnit, line 12)",
        ),
        (
            conversion("IFCVOLUMEMEASURE(0.)"),
            "#7 (IfcMeasureWithUnit, line 12)",
        ),
        (conversion("$"), "#7 (IfcMeasureWithUnit, line 12)"),
    ] {
        let (warnings, reasons) = changed(SI, &to);
        let warning =
            format!("1 record with values that cannot be read: {record}; the values were left out");
        assert_eq!(
            (warnings, reasons),
            (vec![warning], vec![volume.to_owned()]),
            "{to}"
        );
    }
    let (warnings, reasons) = changed(SI, &conversion("0,3048"));
    assert!(
        warnings[0].contains("#7 (IfcMeasureWithUnit, line 12)"),
        "{warnings:?}"
    );
    assert_eq!(reasons, [volume]);
    let (warnings, reasons) = changed("$,$,3.75,$", "$,#99,3.75,$");
    assert!(warnings[0].contains("to #99"), "{warnings:?}");
    assert_eq!(reasons, [volume]);
    for to in [
        SI.replace('$', ".DECI."),
        SI.replace('$', ".deci."),
        conversion("IFCVOLUMEMEASURE(0.3048)"),
        conversion("IFCRATIOMEASURE(2)"),
    ] {
        assert_eq!(changed(SI, &to), (Vec::new(), Vec::new()), "{to}");
    }
}
