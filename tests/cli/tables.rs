//! Tables that people fill in: what is wrong is named by the file's line, and what spreadsheets write is read.

use crate::support::Project;

const HEADER: &str = "id,field,value";

fn project(table: &[u8]) -> Project {
    let project = Project::new(&[
        ("milepost.toml", "name = \"tables\"\n"),
        (
            "stages/1_read.toml",
            "[inputs]\nrows = { path = \"inputs/rows.csv\", schema = \"schemas/row.schema.json\" }\n\n[step]\njq = '[.rows[] | [.id, .field, .value]]'\n\n[outputs]\nread = { path = \"outputs/read.json\", schema = false }\n",
        ),
        (
            "schemas/row.schema.json",
            r#"{"type": "object", "required": ["id", "field"], "properties": {"field": {"minLength": 1}, "value": {"pattern": "^[0-9.]+$"}}}"#,
        ),
        ("workspace/inputs/rows.csv", ""),
    ]);
    std::fs::write(project.at("workspace/inputs/rows.csv"), table).unwrap();
    project
}

/// What is said of a table that is refused: the line of the failure and its details.
fn refused(table: &[u8]) -> String {
    let said = project(table).run("-q");
    assert_eq!(said.code, 1, "{}", said.err);
    let lines = said.err.lines();
    let lines =
        lines.take_while(|line| line.starts_with("read failed: ") || line.starts_with("    "));
    lines
        .map(|line| format!("{}\n", line.trim_start()))
        .collect()
}

#[test]
fn a_wrong_row_is_named_by_its_line() {
    // Blank lines and cells of several lines count as they stand in the file.
    let table = format!("{HEADER}\n1,a,2\n\n\"2\nand more\",b,2\n3,,2\n4,d,x\n");
    assert_eq!(
        refused(table.as_bytes()),
        "\
read failed: SCHEMA: inputs/rows.csv:6: field: an empty text, and it must not be empty (by schemas/row.schema.json)
inputs/rows.csv:7: value: \"x\" does not match ^[0-9.]+$
"
    );
    assert_eq!(
        refused(b"id,fiedl,value\n1,a,2\n2,b,2\n"),
        "read failed: SCHEMA: inputs/rows.csv:1: Missing field in the header, which has id, fiedl, value (by schemas/row.schema.json)\n"
    );
    assert_eq!(
        refused("\u{feff}id;field\r\n1;a\r\n\r\n2;\r\n".as_bytes()),
        "read failed: SCHEMA: inputs/rows.csv:4: field: an empty text, and it must not be empty (by schemas/row.schema.json)\n"
    );
    assert_eq!(
        refused(b"id,field,value\r\n\r\n1,a\r\n"),
        "read failed: INPUT: inputs/rows.csv: line 3: 2 cells, but the header has 3\n"
    );
    assert_eq!(
        refused(b"id,field,value\n1,a\n"),
        "read failed: INPUT: inputs/rows.csv: line 2: 2 cells, but the header has 3\n"
    );
}

#[test]
fn what_spreadsheets_write_is_read() {
    let rows = "[\n  [\n    \"1\",\n    \"a\",\n    \"2.5\"\n  ]\n]\n";
    for table in [
        "id,field,value\n1,a,2.5\n",
        "id,field,value\r\n1,a,2.5\r\n",
        "\u{feff}id;field;value\r\n1;a;2.5\r\n",
        "id\tfield\tvalue\n1\ta\t2.5\n",
        "id, field ,value\n1,a,\"2.5\"\n\n",
    ] {
        let project = project(table.as_bytes());
        let said = project.run("-q");
        assert_eq!(said.code, 0, "{table:?}: {}", said.err);
        let read: serde_json::Value =
            serde_json::from_str(&project.read("workspace/outputs/read.json")).unwrap();
        assert_eq!(
            read,
            serde_json::from_str::<serde_json::Value>(rows).unwrap(),
            "{table:?}"
        );
    }
}

#[test]
fn what_is_no_utf_8_is_told_how_to_save() {
    let utf16: Vec<u8> = "\u{feff}id,field\n1,a\n"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    assert_eq!(
        refused(&utf16),
        "read failed: INPUT: inputs/rows.csv: it is UTF-16 text: save it as UTF-8 (in a spreadsheet: `CSV UTF-8`)\n"
    );
    assert_eq!(
        refused(b"id,field,value\n1,M\xfcller,2\n"),
        "read failed: INPUT: inputs/rows.csv: line 2: it is not UTF-8 text: save it as UTF-8 (in a spreadsheet: `CSV UTF-8`)\n"
    );
}
