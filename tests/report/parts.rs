//! What of the parts of assemblies the sums leave out: a quantity that the assembly, or one above it, carries itself.

use serde_json::{Value, json};

use super::{fixture, lines, make::make, sheet, xlsx};

/// GlobalId, the assembly it is part of, how many parts it has, m³, m².
type Row = (
    &'static str,
    Option<&'static str>,
    u32,
    Option<f64>,
    Option<f64>,
);

fn records(rows: &[Row], counted: bool) -> Vec<Value> {
    let record = |&(id, part_of, parts, volume, area): &Row| {
        json!({
            "global_id": id, "ifc_type": "IfcRoof", "name": id, "confidence": 0.9, "storey": "Roof",
            "element_type": if parts == 0 { "plate" } else { "roof_structure" },
            "material_primary": null, "volume_m3": volume, "area_m2": area, "length_m": volume,
            "part_of": part_of, "parts": counted.then_some(parts), "data_quality": {}
        })
    };
    rows.iter().map(record).collect()
}

/// Volume, area, volume left out, area left out.
fn sums(of: &Value) -> [Option<f64>; 4] {
    [
        "/volume_m3",
        "/areas/not stated",
        "/left_out_volume_m3",
        "/left_out_areas/not stated",
    ]
    .map(|key| of.pointer(key).and_then(Value::as_f64))
}

#[test]
fn a_part_is_left_out_of_a_sum_only_if_its_assembly_carries_that_quantity() {
    let cases: [(&str, &[Row], [Option<f64>; 4]); 9] = [
        (
            "an assembly that carries both",
            &[
                ("w", None, 2, Some(10.0), Some(4.0)),
                ("a", Some("w"), 0, Some(6.0), Some(3.0)),
                ("b", Some("w"), 0, Some(3.5), None),
            ],
            [Some(10.0), Some(4.0), Some(9.5), Some(3.0)],
        ),
        (
            "an assembly that carries nothing",
            &[
                ("w", None, 2, None, None),
                ("a", Some("w"), 0, Some(6.0), Some(3.0)),
                ("b", Some("w"), 0, Some(3.5), None),
            ],
            [Some(9.5), Some(3.0), None, None],
        ),
        (
            "an assembly with an area and no volume",
            &[
                ("w", None, 1, None, Some(4.0)),
                ("a", Some("w"), 0, Some(6.0), Some(3.0)),
            ],
            [Some(6.0), Some(4.0), None, Some(3.0)],
        ),
        (
            "zero is a quantity: the assembly says so",
            &[
                ("w", None, 1, Some(0.0), None),
                ("a", Some("w"), 0, Some(6.0), Some(3.0)),
            ],
            [Some(0.0), Some(3.0), Some(6.0), None],
        ),
        (
            "an assembly in an assembly: the outer one carries the volume, the inner one the area",
            &[
                ("o", None, 1, Some(20.0), None),
                ("w", Some("o"), 1, None, Some(4.0)),
                ("a", Some("w"), 0, Some(6.0), Some(3.0)),
            ],
            [Some(20.0), Some(4.0), Some(6.0), Some(3.0)],
        ),
        (
            "an assembly in an assembly: only the inner one carries the volume",
            &[
                ("o", None, 2, None, None),
                ("w", Some("o"), 1, Some(7.0), None),
                ("a", Some("w"), 0, Some(6.0), None),
                ("b", Some("o"), 0, Some(1.0), None),
            ],
            [Some(8.0), None, Some(6.0), None],
        ),
        (
            "an assembly that has no record",
            &[("a", Some("gone"), 0, Some(6.0), Some(3.0))],
            [Some(6.0), Some(3.0), None, None],
        ),
        (
            "two of one GlobalId: one of them carries the volume",
            &[
                ("w", None, 1, None, None),
                ("w", None, 1, Some(2.0), None),
                ("a", Some("w"), 0, Some(6.0), None),
            ],
            [Some(2.0), None, Some(6.0), None],
        ),
        (
            "assemblies that are part of each other end",
            &[
                ("v", Some("w"), 1, None, None),
                ("w", Some("v"), 2, None, None),
                ("a", Some("w"), 0, Some(6.0), None),
            ],
            [Some(6.0), None, None, None],
        ),
    ];
    for (case, rows, expected) in cases {
        let backwards: Vec<Row> = rows.iter().rev().copied().collect();
        for (rows, counted) in [
            (rows, true),
            (rows, false),
            (&backwards[..], true),
            (&backwards[..], false),
        ] {
            let report = make(&records(rows, counted), fixture::scope()).report;
            assert_eq!(
                sums(&report["total"]),
                expected,
                "{case}, parts counted: {counted}"
            );
            assert_eq!(report["total"]["count"], rows.len(), "{case}");
            for list in [
                "by_type",
                "by_material",
                "by_storey",
                "by_type_storey_material",
            ] {
                let groups: Vec<_> = report[list].as_array().unwrap().iter().map(sums).collect();
                for quantity in 0..4 {
                    let of_groups: f64 = groups.iter().filter_map(|group| group[quantity]).sum();
                    assert!(
                        (of_groups - expected[quantity].unwrap_or(0.0)).abs() < 1e-9,
                        "{case}: {list}"
                    );
                }
            }
        }
    }
}

#[test]
fn what_is_left_out_is_said_where_it_is() {
    let rows: &[Row] = &[
        ("w", None, 1, Some(10.0), None),
        ("a", Some("w"), 0, Some(6.0), Some(3.0)),
    ];
    let made = make(&records(rows, true), fixture::scope());
    for wanted in [
        "| Volume | 10.00 | m³ |\n| Area: Kind of area not stated | 3.00 | m² |\n| Volume of parts, left out of the total | 6.00 | m³ |\n\n",
        "\n1 of the elements is a part of an assembly, such as a layer of a wall. \
         A part is left out of a sum only if its assembly carries the same quantity, so that nothing counts \
         twice and nothing is missing.\n",
        "| Plate | 1 | – | 3.00 | – | 0 | 6.00 |",
    ] {
        assert!(
            made.markdown.contains(wanted),
            "{wanted}\n---\n{}",
            made.markdown
        );
    }
    let sheets = xlsx::sheets(&made.xlsx);
    let summary = lines(sheet(&sheets, "Summary")).join("\n");
    assert!(summary.contains("'Volume of parts, left out;6;'m³;;'their assemblies carry it"));
    assert!(!summary.contains("Area of parts"));

    let alone = make(&records(&rows[1..], true), fixture::scope());
    assert!(
        !alone.markdown.contains("left out of the total")
            && !alone.markdown.contains("Left out m³")
    );
}
