//! The reports of the main pipeline's last stage: filter, workbook and PDF, made and read back whole.

#[path = "report/fixture.rs"]
mod fixture;
#[path = "report/make.rs"]
mod make;
#[path = "report/parts.rs"]
mod parts;
#[path = "report/workbooks.rs"]
mod workbooks;
#[path = "report/xlsx.rs"]
mod xlsx;

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
        json!({"count": 300, "volume_m3": 653.22, "area_m2": 3522.0, "length_m": null, "without_volume": 120,
            "parts": 30, "left_out_volume_m3": 1.5, "left_out_area_m2": 75.0, "left_out_length_m": null})
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
        of("by_storey", "storey"),
        [
            "-1 Tiefgarage",
            "00 Erdgeschoss",
            "01 Obergeschoss",
            "02 Dach | Technik",
            "none"
        ]
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
        json!({"element_type": "plate", "count": 30, "volume_m3": null, "area_m2": null, "length_m": null,
            "without_volume": 0, "parts": 30, "left_out_volume_m3": 1.5, "left_out_area_m2": 75.0, "left_out_length_m": null})
    );
    for list in ["by_type", "by_material", "by_storey"] {
        let sum: u64 = of(list, "count").iter().filter_map(Value::as_u64).sum();
        assert_eq!(sum, 300, "{list}");
    }
    // 30 are under the threshold, two of them corrected by a person; 25 are shown.
    assert_eq!(report["review_count"], 28);
    assert_eq!(of("review", "element_type").len(), 25);
    let first = [8, 18].map(|n| {
        json!({
            "global_id": format!("2O2Fr$t4X7Zf8NOew3F{n:03}"), "name": format!("BuildingElementProxy:{n}"),
            "field": "element_type", "from": "other", "to": "furniture", "who": "A. Berger",
            "why": "=is a cupboard, seen on site"
        })
    });
    assert_eq!(
        report["corrections"],
        json!({"given": 3, "applied": 2, "first": first})
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
            "Material stated in the model 180 0.6",
            "Material inferred from names 60 0.2",
            "No material 60 0.2",
            "Storey 297 0.99",
            "No storey 3 0.01",
            "Volume from a quantity set 150 0.5",
            "Volume from a property set 30 0.1",
            "No volume 120 0.4",
            "Area 210 0.7",
            "No area 90 0.3",
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
            "Summary 28",
            "Elements 301",
            "By type 11",
            "By material 8",
            "By storey 6",
            "Review 29",
            "Corrections 3",
            "Coverage 14",
        ]
    );
    assert_eq!(
        lines(sheet(&sheets, "Summary")),
        [
            "'What;'Value;'Unit;'Share;'Note",
            "'Model",
            "'File;'inputs/büro.ifc",
            "'Project;'Büro Nord",
            "'Schema;'IFC4",
            "'SHA-256;'sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
            "'Elements;300;'elements",
            "'Openings, listed apart and not counted;12;'elements",
            "'Elements without a record;1;'elements",
            "'GlobalIds that the model has more than once;1;'GlobalIds",
            "'Totals",
            "'Volume;653.22;'m³",
            "'Area;3522;'m²;;'as the quantity sets have it: sides and footprints are not told apart",
            "'Parts of assemblies;30;'elements;;'left out of a sum only if the assembly carries the same quantity",
            "'Volume of parts, left out;1.5;'m³;;'with it the total is the sum of the column Volume of the sheet Elements",
            "'Area of parts, left out;75;'m²;;'with it the total is the sum of the column Area of the sheet Elements",
            "'Coverage",
            "'With a volume;180;'elements;0.6",
            "'With a material;240;'elements;0.8",
            "'To review: confidence below 0.5, not corrected;28;'elements;0.09333333333333334",
            "'Corrected by a person;2;'elements;0.006666666666666667",
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
        "'GlobalId;'IFC type;'Name;'Element type;'Function;'Location;'Storey;'Material;'Material name;\
         'Volume [m³];'Area [m²];'Length [m];'Part of;'Confidence;'Reasoning;'Corrected by a person"
    );
    assert_eq!(
        elements[7],
        "'2O2Fr$t4X7Zf8NOew3F006;'IfcCovering;'Covering:6;'ceiling;'finishing;;'02 Dach | Technik;\
         'insulation;'Steinwolle <15 mm>;0.4;20;;;0.7;'rule ceiling: ifc_type is IfcCovering"
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
            "'Storey;'Elevation [m];'Count;'Volume [m³];'Area [m²];'Length [m];'Without a volume;\
             'Of them parts;'Volume left out [m³];'Area left out [m²]",
            "'-1 Tiefgarage;-3.2;69;152.394;821.8;;28;7;0.35;17.5",
        ]
    );
    assert_eq!(
        lines(sheet(&sheets, "Review"))[..2],
        [
            "'GlobalId;'IFC type;'Name;'Storey;'Element type;'Material;'Confidence;'Reasoning;'Correction",
            "'2O2Fr$t4X7Zf8NOew3F028;'IfcBuildingElementProxy;'BuildingElementProxy:28;'00 Erdgeschoss;\
             'other;;0.3;'rule other: ifc_type is IfcBuildingElementProxy",
        ]
    );
    assert_eq!(
        lines(sheet(&sheets, "Corrections"))[1],
        "'2O2Fr$t4X7Zf8NOew3F008;'BuildingElementProxy:8;'element_type;'other;'furniture;'A. Berger;\
         '=is a cupboard, seen on site"
    );

    let elements = xlsx::part(&bytes, "xl/worksheets/sheet2.xml");
    for wanted in [
        "<autoFilter ref=\"A1:P301\"/>",
        "ySplit=\"1\" topLeftCell=\"A2\"",
        "state=\"frozen\"",
    ] {
        assert!(elements.contains(wanted), "{wanted}");
    }
    assert!(!elements.contains("<f>") && !elements.contains("hyperlink"));
    assert!(xlsx::part(&bytes, "xl/charts/chart1.xml").contains("'By type'!$C$2:$C$11"));
    assert!(
        xlsx::part(&bytes, "docProps/core.xml").contains("2026-11-21T00:00:00Z</dcterms:created>")
    );
}

#[test]
fn the_text_says_what_is_known_and_what_is_not() {
    let text = make(&fixture::records(), fixture::scope()).markdown;
    for wanted in [
        "300 elements of the project Büro Nord. 180 of them have a volume (60.0 %), 240 a material (80.0 %). \
         To review, with a confidence below 0.5: 28. Corrected by a person: 2.",
        "| Volume | 653.22 | m³ |",
        "| Volume of parts, left out of the total | 1.50 | m³ |",
        "| **Total** | **300** | **653.22** | **3\u{a0}522.00** | | **120** | **1.50** |\n\n## By material",
        "| -1 Tiefgarage | −3.20 | 69 | 152.39 | 821.80 | 28 |",
        "| furniture | 32 | – | – | – | 32 | – |",
        "| 02 Dach \\| Technik | 7.00 | 80 | 174.19 | 939.20 | 32 |",
        "**1 of 301 elements of the model have no record:**",
        "**GlobalIds that the model has more than once: 1** (`2O2Fr$t4X7Zf8NOew3F007`).",
        "These are the 15 least certain; the sheet Review of the workbook has them all.",
        "| SHA-256 of the input | `sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08` |",
        "| Corrections | 2 applied of 3 given |",
        "## Corrected by a person\n\n| GlobalId | Name | Field | Was | Is | Who |\n|---|---|---|---|---|---|\n\
         | 2O2Fr$t4X7Zf8NOew3F008 | BuildingElementProxy:8 | element\\_type | other | furniture | A. Berger |",
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
    assert!(!empty.markdown.contains("## By"));
    let mut scope = fixture::scope();
    scope.insert("parsed".to_owned(), Value::Null);
    scope.insert("corrections".to_owned(), Value::Null);
    let bare = json!({"global_id": "a", "ifc_type": "IfcWall", "name": null, "element_type": "other",
        "material_primary": null, "volume_m3": null, "confidence": 0.1, "data_quality": "none"});
    let made = make(&[bare], scope);
    assert_eq!(made.report["missing"], 0);
    let sheets = xlsx::sheets(&made.xlsx);
    assert_eq!(lines(sheet(&sheets, "By storey"))[1], "'none;;1;;;;1;0");
}

#[test]
fn quantities_beyond_reason_are_named() {
    let mut records = fixture::records();
    for number in [2, 12, 22, 32] {
        records[number]["volume_m3"] = json!(143_680_000_000.0);
    }
    let made = make(&records, fixture::scope());
    assert_eq!(made.report["implausible"]["count"], 4);
    let wanted = "**4 elements have a volume over 10000 m³ or an area over 100000 m²:** the units of the model are likely wrong, \
        and the sums with them. `2O2Fr$t4X7Zf8NOew3F002` Slab:2, `2O2Fr$t4X7Zf8NOew3F012` Slab:12, `2O2Fr$t4X7Zf8NOew3F022` Slab:22, …";
    assert!(made.markdown.contains(wanted), "{}", made.markdown);
    assert!(
        made.markdown
            .contains("| Volume | 574\u{a0}720\u{a0}000\u{a0}580.22 | m³ |"),
        "{}",
        made.markdown
    );
    let sheets = xlsx::sheets(&made.xlsx);
    assert_eq!(
        lines(sheet(&sheets, "Summary"))[10],
        "'Volume over 10000 m³ or area over 100000 m²;4;'elements;;'the units of the model are likely wrong, and the sums with them"
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
    let review = sheet(&sheets, "Review");
    let shown: Vec<&str> = review[29..].iter().map(|row| row[2].as_str()).collect();
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
