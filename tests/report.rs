//! The reports of the main pipeline's last stage: filter, workbook and PDF, made and read back whole.

#[path = "report/fixture.rs"]
mod fixture;
#[path = "report/make.rs"]
mod make;
#[path = "report/parts.rs"]
mod parts;
#[path = "report/plans.rs"]
mod plans;
#[path = "report/workbooks.rs"]
mod workbooks;
#[path = "report/xlsx.rs"]
pub mod xlsx;

use serde_json::{Value, json};

use make::make;

fn sheet<'s>(sheets: &'s [xlsx::Sheet], name: &str) -> &'s [Vec<String>] {
    &sheets.iter().find(|(n, _)| n == name).unwrap().1
}

fn lines(rows: &[Vec<String>]) -> Vec<String> {
    rows.iter().map(|cells| cells.join(";")).collect()
}

#[test]
fn the_filter_counts_sums_and_orders() {
    let report = make(&fixture::records(), fixture::scope()).report;
    assert_eq!(report["count"], 300);
    assert_eq!(report["missing"], 1);
    assert_eq!(
        report["total"],
        json!({"count": 300, "volume_m3": 653.22, "areas": {"net side": 615.0, "net footprint": 2190.0, "not stated": 717.0},
            "length_m": null, "without_volume": 120, "parts": 30, "left_out_volume_m3": 1.5,
            "left_out_areas": {"not stated": 75.0}, "left_out_length_m": null})
    );
    assert_eq!(
        report["area_kinds"],
        json!(["net side", "net footprint", "not stated"])
    );
    assert_eq!(report["title"], "Büro Nord");
    assert_eq!(
        (&report["material"], &report["volume"]),
        (
            &json!({"named": 180, "inferred": 60, "several": 0, "none": 60, "person": 0}),
            &json!({"quantity set": 150, "property set": 30, "geometry": 0, "person": 0, "none": 120})
        )
    );
    let of = |list: &str, field: &str| -> Vec<Value> {
        report[list]
            .as_array()
            .unwrap()
            .iter()
            .map(|r| r[field].clone())
            .collect()
    };
    assert_eq!(
        json!(of("by_storey", "storey")),
        json!([
            "-1 Tiefgarage",
            "00 Erdgeschoss",
            "01 Obergeschoss",
            "02 Dach | Technik",
            null
        ])
    );
    assert_eq!(
        report["storey_numbers"],
        json!({
            "-1 Tiefgarage": {"-3.2": 1}, "00 Erdgeschoss": {"0.0": 2}, "01 Obergeschoss": {"3.5": 3},
            "02 Dach | Technik": {"7.0": 4}, "": {"null": 5}
        })
    );
    assert_eq!(
        report["assemblies"],
        json!({"2O2Fr$t4X7Zf8NOew3F000": {"volume": true, "area": true, "length": false}})
    );
    assert_eq!(
        of("by_material", "category"),
        [
            "concrete",
            "gypsum",
            "insulation",
            "steel",
            "glass",
            "none",
            "timber"
        ]
    );
    assert_eq!(
        report["by_type"][7],
        json!({"element_type": "plate", "count": 30, "volume_m3": null, "areas": {}, "length_m": null, "without_volume": 0,
            "parts": 30, "left_out_volume_m3": 1.5, "left_out_areas": {"not stated": 75.0}, "left_out_length_m": null})
    );
    assert_eq!(
        report["by_type_storey_material"][0],
        json!({"number": 1, "element_type": "slab_structural", "storey": "-1 Tiefgarage", "elevation_m": -3.2, "category": "concrete",
            "count": 7, "volume_m3": 127.75, "areas": {"net footprint": 511.0}, "length_m": null, "without_volume": 0,
            "parts": 0, "left_out_volume_m3": null, "left_out_areas": {}, "left_out_length_m": null})
    );
    for list in [
        "by_type",
        "by_material",
        "by_storey",
        "by_type_storey_material",
    ] {
        let sum: u64 = of(list, "count").iter().filter_map(Value::as_u64).sum();
        assert_eq!(sum, 300, "{list}");
    }
    // 30 are under the threshold, two of them corrected by a person. The others ask one question.
    assert_eq!(report["review_count"], 28);
    assert_eq!(
        report["review"],
        json!([{
            "question": "000000000008", "count": 28, "global_id": "2O2Fr$t4X7Zf8NOew3F028", "ifc_type": "IfcBuildingElementProxy",
            "type_name": null, "materials": [], "storey": "00 Erdgeschoss", "element_type": "other", "category": null,
            "names": ["BuildingElementProxy:28", "BuildingElementProxy:38", "BuildingElementProxy:48"],
            "confidence": 0.3, "reasoning": "rule other: ifc_type is IfcBuildingElementProxy"
        }])
    );
    let rows = [8, 18].map(|n| {
        json!({
            "count": 1, "global_id": format!("2O2Fr$t4X7Zf8NOew3F{n:03}"), "question": null,
            "name": format!("BuildingElementProxy:{n}"), "field": "element_type", "from": "other", "to": "furniture",
            "who": "A. Berger", "why": "=is a cupboard, seen on site"
        })
    });
    let unmatched = json!([{
        "global_id": "not in the model", "question": null, "field": "element_type", "value": "beam", "who": "A. Berger",
        "why": "typed wrong"
    }]);
    assert_eq!(
        report["corrections"],
        json!({"given": 3, "applied": 2, "rows": rows, "unmatched": unmatched})
    );
    let coverage: Vec<String> = report["coverage"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| {
            format!(
                "{} {} {}",
                c["what"].as_str().unwrap(),
                c["count"],
                c["share"]
            )
        })
        .collect();
    assert_eq!(
        coverage,
        [
            "Material named in the model 180 0.6",
            "Material inferred from names 60 0.2",
            "Several materials, none leads 0 0.0",
            "No material 60 0.2",
            "Storey 297 0.99",
            "No storey 3 0.01",
            "Volume from a quantity set 150 0.5",
            "Volume from a property set 30 0.1",
            "Volume from the geometry 0 0.0",
            "No volume 120 0.4",
            "Area 210 0.7",
            "No area 90 0.3",
            "Implausible quantities 0 0.0",
            "Implausible quantities that nothing confirms 0 0.0",
            "Confidence at or above the threshold 270 0.9",
            "Confidence under the threshold 30 0.1",
            "Corrected by a person 2 0.0067",
        ]
    );
}

#[test]
fn the_report_is_of_its_schema() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let schema = std::fs::read_to_string(root.join("schemas/report.schema.json")).unwrap();
    let schema: Value = serde_json::from_str(&schema).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    for records in [fixture::records(), Vec::new()] {
        let report = make(&records, fixture::scope()).report;
        let found: Vec<String> = validator
            .iter_errors(&report)
            .map(|e| format!("{}: {e}", e.instance_path()))
            .collect();
        assert_eq!(found, Vec::<String>::new());
    }
}

#[test]
fn the_workbook_has_its_sheets_whole() {
    let bytes = make(&fixture::records(), fixture::scope()).xlsx;
    let sheets = xlsx::sheets(&bytes);
    let sizes: Vec<String> = sheets
        .iter()
        .map(|(n, r)| format!("{n} {}", r.len()))
        .collect();
    assert_eq!(
        sizes,
        [
            "Summary 42",
            "Elements 301",
            "By type 12",
            "By material 9",
            "By storey 7",
            "Type × storey × material 45",
            "Review 2",
            "Corrections 4",
            "Coverage 18",
            "Element types 34",
            "Materials 18",
        ]
    );
    assert_eq!(
        lines(sheet(&sheets, "Summary")),
        [
            "'What;'Value;'Unit;'Share;'Note",
            "'Büro Nord",
            "'File;'inputs/büro.ifc",
            "'Project;'Büro Nord",
            "'Schema;'IFC4",
            "'SHA-256;'sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
            "'Elements;300;'elements",
            "'Openings, listed apart and not counted;12;'elements",
            "'Elements without a record;1;'elements;;'they failed, and are named in the checkpoints of the run",
            "'GlobalIds that the model has more than once;1;'GlobalIds;;'2O2Fr$t4X7Zf8NOew3F007",
            "'Totals",
            "'Volume;653.22;'m³",
            "'Area: Side, net of openings;615;'m²;;'areas of different kinds are not added together",
            "'Area: Footprint, net of openings;2190;'m²;;'areas of different kinds are not added together",
            "'Area: Kind of area not stated;717;'m²;;'areas of different kinds are not added together",
            "'Parts of assemblies;30;'elements;;'left out of a sum only if the assembly carries the same quantity",
            "'Volume of parts, left out;1.5;'m³;;'their assemblies carry it",
            "'Area of parts, left out: Kind of area not stated;75;'m²;;'their assemblies carry it",
            "'Where volumes come from",
            "'Quantity set;150;'elements;0.5",
            "'Property set;30;'elements;0.1",
            "'Geometry;0;'elements;0",
            "'No volume;120;'elements;0.4",
            "'Where materials come from",
            "'Named in the model;180;'elements;0.6",
            "'Inferred from names;60;'elements;0.2;'a word of the type or the element tells it; the model does not",
            "'Several, none leads;0;'elements;0;'named in the column Secondary materials",
            "'None;60;'elements;0.2",
            "'To review",
            "'Confidence below 0.5, or quantities that nothing confirms;28;'elements;0.09333333333333334;'see the sheet Review",
            "'Questions that they ask;1;'questions",
            "'Implausible quantities;0;'elements;0",
            "'of them confirmed by nothing, and in no total;0;'elements;0",
            "'Corrected by a person;2;'elements;0.006666666666666667",
            "'Corrections that match nothing;1;'corrections;;'see the sheet Corrections",
            "'How it was made",
            "'Classified by;'rules rules/elements.toml sha256:ab12cd34",
            "'Workspace;'workspace",
            "'Date;'2026-11-21",
            "'Milepost;'0.1.0",
            "'Warnings of the model",
            "'no unit for lengths: metres are assumed",
        ]
    );
    let elements = lines(sheet(&sheets, "Elements"));
    assert_eq!(
        elements[0],
        "'GlobalId;'IFC type;'Name;'Type name;'Tag;'Element type;'Type id;'Function;'Location;'Storey;'Storey no.;'Material;\
         'Material id;'Material name;'Grade or kind;'Layers;'Layers [m];'Secondary materials;'Classification;'Code;'Title of the code;\
         'Volume [m³];'Area [m²];'Area kind;'Length [m];'Height [m];'Volume from;'Area from;'Length from;'Height from;\
         'Material from;'Part of;'Volume left out [m³];'Area left out [m²];'Confidence;'Evidence;'Implausible;'Question;\
         'Corrected by a person"
    );
    assert_eq!(
        elements[7],
        "'2O2Fr$t4X7Zf8NOew3F006;'IfcCovering;'Covering:6;;;'Suspended ceiling;'ceiling;'Finishing;;'02 Dach | Technik;4;\
         'Insulation;'insulation;'Steinwolle <15 mm>;;;;;;;;0.4;20;'not stated;;;'quantity set;;;;'type name;;;;0.7;\
         'rule ceiling: ifc_type is IfcCovering;;'000000000006"
    );
    // What its assembly carries stands in columns of its own.
    assert_eq!(
        elements[10],
        "'2O2Fr$t4X7Zf8NOew3F009;'IfcPlate;'Plate:9;;;'Plate;'plate;'Enclosure;;'02 Dach | Technik;4;'Glass;'glass;'HR++;\
         ;;;;;;;;;'not stated;;;'quantity set;;;;'material;'2O2Fr$t4X7Zf8NOew3F000;0.05;2.5;0.85;\
         'rule plate: ifc_type is IfcPlate;;'000000000009"
    );
    for (at, line) in elements[1..].iter().enumerate() {
        assert!(
            line.starts_with(&format!("'2O2Fr$t4X7Zf8NOew3F{at:03};")),
            "{line}"
        );
    }
    assert_eq!(
        lines(sheet(&sheets, "By storey"))[..2],
        [
            "'Storey no.;'Storey;'Elevation [m];'Count;'Volume [m³];'Net side area [m²];'Gross side area [m²];'Net footprint [m²];\
             'Gross footprint [m²];'Surface [m²];'Area of unknown kind [m²];'Length [m];'Without a volume;'Of them parts;\
             'Volume left out [m³]",
            "1;'-1 Tiefgarage;-3.2;69;152.394;143.5;;511;;;167.3;;28;7;0.35",
        ]
    );
    assert_eq!(
        lines(sheet(&sheets, "By storey"))[6],
        "'Total;;;300;653.22;615;;2190;;;717;;120;30;1.5"
    );
    assert_eq!(
        lines(sheet(&sheets, "Review")),
        [
            "'Question;'Elements;'GlobalId;'Example;'IFC type;'Type name;'Names;'Materials;'Storey;'Element type;'Type id;'Material id;\
             'Confidence;'Evidence;'Implausible;'Correct element type;'Correct material;'Correct volume [m³];'Who;'Why",
            "'000000000008;28;;'2O2Fr$t4X7Zf8NOew3F028;'IfcBuildingElementProxy;;\
             'BuildingElementProxy:28; BuildingElementProxy:38; BuildingElementProxy:48;;'00 Erdgeschoss;'Not classified;'other;;0.3;\
             'rule other: ifc_type is IfcBuildingElementProxy",
        ]
    );
    assert_eq!(
        lines(sheet(&sheets, "Corrections"))[1..],
        [
            ";'2O2Fr$t4X7Zf8NOew3F008;'BuildingElementProxy:8;1;'element_type;'other;'furniture;'A. Berger;\
             '=is a cupboard, seen on site;'applied",
            ";'2O2Fr$t4X7Zf8NOew3F018;'BuildingElementProxy:18;1;'element_type;'other;'furniture;'A. Berger;\
             '=is a cupboard, seen on site;'applied",
            ";'not in the model;;0;'element_type;;'beam;'A. Berger;'typed wrong;'matches nothing in this model",
        ]
    );

    let elements = xlsx::part(&bytes, "xl/worksheets/sheet2.xml");
    for wanted in [
        "<autoFilter ref=\"A1:AM301\"/>",
        "ySplit=\"1\" topLeftCell=\"A2\"",
        "state=\"frozen\"",
    ] {
        assert!(elements.contains(wanted), "{wanted}");
    }
    assert!(!elements.contains("<f>") && !elements.contains("hyperlink"));
    let by_type = xlsx::part(&bytes, "xl/worksheets/sheet3.xml");
    assert!(
        by_type
            .contains("<f>SUMIFS(Elements!$V$2:$V$301,Elements!$G$2:$G$301,$B2)</f><v>547.5</v>"),
        "{by_type}"
    );
    assert!(xlsx::part(&bytes, "xl/charts/chart1.xml").contains("'By type'!$D$2:$D$11"));
    assert!(
        xlsx::part(&bytes, "docProps/core.xml").contains("2026-11-21T00:00:00Z</dcterms:created>")
    );
}

#[test]
fn the_text_says_what_is_known_and_what_is_not() {
    let text = make(&fixture::records(), fixture::scope()).markdown;
    for wanted in [
        "# Büro Nord\n",
        "300 elements. 180 of them have a volume (60.0 %), 240 a material (80.0 %). 28 need review. 2 are corrected by a person.",
        "| Volume | 653.22 | m³ |\n| Area: Side, net of openings | 615.00 | m² |\n\
         | Area: Footprint, net of openings | 2\u{a0}190.00 | m² |\n| Area: Kind of area not stated | 717.00 | m² |\n\
         | Volume of parts, left out of the total | 1.50 | m³ |\n\
         | Area of parts, left out of the total: Kind of area not stated | 75.00 | m² |\n",
        "| Material named in the model | 180 | 60.0 % |",
        "| **Total** | **300** | **653.22** | **120** | **1.50** |\n\n### Areas by element type",
        "| Structural slab | – | 2\u{a0}190.00 | – |",
        "| Structural slab | -1 Tiefgarage | Concrete | 7 | 127.75 |",
        "| -1 Tiefgarage | −3.20 | 69 | 152.39 | 28 |",
        "| Furniture | 32 | – | 32 | – |",
        "| 02 Dach \\| Technik | 7.00 | 80 | 174.19 | 32 |",
        "**1 of 301 elements of the model have no record:**",
        "**GlobalIds that the model has more than once: 1** (`2O2Fr$t4X7Zf8NOew3F007`).",
        "| 28 | IfcBuildingElementProxy | BuildingElementProxy:28; BuildingElementProxy:38; BuildingElementProxy:48 | Not classified | 0.30 |",
        "| SHA-256 of the input | `sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08` |",
        "| Corrections | 3 given, 2 fields changed, 1 match nothing |",
        "## Corrected by a person\n\n| GlobalId | Elements | Field | Was | Is | Who | Why |\n|---|---:|---|---|---|---|---|\n\
         | 2O2Fr$t4X7Zf8NOew3F008 | 1 | element\\_type | other | furniture | A. Berger | =is a cupboard, seen on site |",
        "**1 correction matches no element of this model.**",
    ] {
        assert!(text.contains(wanted), "{wanted}\n---\n{text}");
    }
}

#[test]
fn the_same_records_give_the_same_bytes() {
    let first = make(&fixture::records(), fixture::scope());
    let second = make(&fixture::records(), fixture::scope());
    assert_eq!(first.xlsx, second.xlsx);
    assert_eq!(first.pdf, second.pdf);
    assert!(first.pdf.starts_with(b"%PDF-1.7"));
    // Two to six pages.
    let pages = first
        .pdf
        .windows(15)
        .filter(|w| w == b"/StructParents ")
        .count();
    assert!((2..=6).contains(&pages), "{pages} pages");
}

#[test]
fn a_model_without_elements_and_one_of_unknown_values_have_reports_too() {
    let empty = make(&[], fixture::scope());
    assert_eq!(empty.report["total"]["volume_m3"], Value::Null);
    assert!(empty.markdown.contains("| Volume | – | m³ |"));
    // A share of no elements is no share.
    let coverage = empty.report["coverage"].as_array().unwrap();
    assert!(coverage.iter().all(|row| row["share"] == Value::Null));
    assert!(empty.markdown.contains("| Storey | 0 | – |"));
    assert!(!empty.markdown.contains("## By") && !empty.markdown.contains("```chart"));
    let mut scope = fixture::scope();
    scope.insert("parsed".to_owned(), Value::Null);
    scope.insert("corrections".to_owned(), Value::Null);
    let bare = json!({"global_id": "a", "ifc_type": "IfcWall", "name": null, "element_type": "other",
        "material_primary": null, "volume_m3": null, "confidence": 0.1, "data_quality": "none"});
    let made = make(&[bare], scope);
    assert_eq!(made.report["missing"], 0);
    let said = "**No element has a volume or an area.** The model states none, and its geometry gives none.";
    assert!(made.markdown.contains(said), "{}", made.markdown);
    assert!(
        made.markdown
            .contains("| Element type | Count |\n|---|---:|\n| Not classified | 1 |\n")
    );
    let sheets = xlsx::sheets(&made.xlsx);
    assert_eq!(
        lines(sheet(&sheets, "By storey"))[1],
        "1;'none;;1;;;;;;;;;1;0"
    );
}

/// Three slabs whose figures are at odds: the geometry confirms one, a person a second, nothing the third.
#[test]
fn implausible_quantities_are_named_and_only_confirmed_ones_count() {
    let mut records = fixture::records();
    let odd = |taken: Option<&str>| {
        json!([{"quantity": "volume", "stated": 18250.0, "property": null, "geometry": taken.map(|_| 18.2), "taken": taken,
            "reason": "18,250 m³ is 1,000 times area × thickness"}])
    };
    records[2]["data_quality"]["implausible"] = odd(Some("geometry"));
    records[2]["data_quality"]["volume_from"] = json!("geometry");
    for number in [12, 22] {
        records[number]["data_quality"]["implausible"] = odd(None);
        records[number]["volume_m3"] = Value::Null;
        records[number]["data_quality"]["volume_from"] = Value::Null;
    }
    records[22]["volume_m3"] = json!(18.3);
    records[22]["corrections"] = json!([{"field": "volume_m3", "from": null, "to": 18.3, "who": "A. Berger", "why": "measured"}]);
    let made = make(&records, fixture::scope());
    let rows = made.report["implausible"]["rows"].as_array().unwrap();
    let rows: Vec<_> = rows
        .iter()
        .map(|row| (&row["global_id"], &row["open"]))
        .collect();
    let id = |number: usize| json!(format!("2O2Fr$t4X7Zf8NOew3F{number:03}"));
    assert_eq!(
        rows,
        [
            (&id(12), &json!(true)),
            (&id(2), &json!(false)),
            (&id(22), &json!(false))
        ]
    );
    assert_eq!(
        [
            &made.report["implausible"]["count"],
            &made.report["implausible"]["open"],
            &made.report["review_count"],
            &made.report["total"]["volume_m3"],
            &made.report["volume"],
        ],
        [
            &json!(3),
            &json!(1),
            &json!(29),
            &json!(635.02),
            &json!({"quantity set": 147, "property set": 30, "geometry": 1, "person": 1, "none": 121})
        ]
    );
    let wanted = "**3 elements have implausible quantities.** Nothing confirms those of 1, and no total contains them. \
        Of the others, the figure that is confirmed counts.";
    assert!(made.markdown.contains(wanted), "{}", made.markdown);
    let sheets = xlsx::sheets(&made.xlsx);
    let review = lines(sheet(&sheets, "Review"));
    assert_eq!(
        review[2..4],
        [
            ";1;'2O2Fr$t4X7Zf8NOew3F012;'2O2Fr$t4X7Zf8NOew3F012;'IfcSlab;;'Slab:12;'Beton C30/37;'01 Obergeschoss;'Structural slab;'slab_structural;'concrete;\
             0.95;'rule slab-structural: ifc_type is IfcSlab;'volume: 18,250 m³ is 1,000 times area × thickness (quantity set 18250) in no total",
            ";1;'2O2Fr$t4X7Zf8NOew3F002;'2O2Fr$t4X7Zf8NOew3F002;'IfcSlab;;'Slab:2;'Beton C30/37;'02 Dach | Technik;'Structural slab;'slab_structural;'concrete;\
             0.95;'rule slab-structural: ifc_type is IfcSlab;'volume: 18,250 m³ is 1,000 times area × thickness \
             (quantity set 18250, geometry 18.2) counts: geometry",
        ]
    );
}

#[test]
fn names_of_a_model_cannot_break_the_report() {
    let mut records = fixture::records();
    for name in [
        "a | b",
        "`code",
        "**bold",
        "<b>html</b>",
        "| |\n# Heading",
        "=cmd|' /C calc'!A0",
        "\u{1}\u{202e}x",
    ] {
        let mut record = records[8].clone();
        record.as_object_mut().unwrap().remove("corrections");
        record["name"] = json!(name);
        record["confidence"] = json!(0.01);
        record["element_type"] = json!(name);
        record["storey"] = json!(name);
        records.push(record);
    }
    let made = make(&records, fixture::scope());
    assert!(!made.markdown.contains("\n# Heading"));
    let sheets = xlsx::sheets(&made.xlsx);
    let elements = sheet(&sheets, "Elements");
    let shown: Vec<&str> = elements[301..].iter().map(|row| row[2].as_str()).collect();
    assert_eq!(
        shown,
        [
            "'a | b",
            "'`code",
            "'**bold",
            "'<b>html</b>",
            "'| |\n# Heading",
            "'=cmd|' /C calc'!A0",
            "'\u{FFFD}\u{202e}x"
        ]
    );
}
