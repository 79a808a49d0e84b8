//! Tables that people fill in: what is wrong is named by the file's line, and what spreadsheets write is read.

use crate::support::Project;
use serde_json::{Value, json};

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
    let said = project(table).output("-q");
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
        "read failed: INPUT: inputs/rows.csv:3: expected 3 cells as in the header, found 2\n"
    );
    assert_eq!(
        refused(b"id,field,value\n1,a\n"),
        "read failed: INPUT: inputs/rows.csv:2: expected 3 cells as in the header, found 2\n"
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
        let said = project.output("-q");
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
        "read failed: INPUT: inputs/rows.csv:2: it is not UTF-8 text: save it as UTF-8 (in a spreadsheet: `CSV UTF-8`)\n"
    );
}

/// A project that adds up what its table says, with declared columns.
fn typed(path: &str, table: &str) -> Project {
    let project = Project::new(&[
        ("milepost.toml", "name = \"tables\"\n"),
        (
            "stages/1_read.toml",
            &format!(
                "[inputs.rows]\npath = \"{path}\"\ncolumns = {{ item = \"string\", count = \"integer\", price = \"number\", paid = \"boolean\", due = \"date\" }}\n\n[step]\njq = '{{rows: .rows, count: (.rows | map(.count) | add)}}'\n\n[outputs]\nread = {{ path = \"outputs/read.json\", schema = false }}\n"
            ),
        ),
    ]);
    std::fs::create_dir_all(project.at("workspace/inputs")).unwrap();
    std::fs::write(project.at(&format!("workspace/{path}")), table).unwrap();
    project
}

fn refused_typed(path: &str, table: &str) -> String {
    let project = typed(path, table);
    let said = project.output("-q");
    assert_eq!(said.code, 1, "{table:?}: {}", said.err);
    assert!(!project.at("workspace/outputs/read.json").exists());
    let lines = said.err.lines();
    let lines =
        lines.take_while(|line| line.starts_with("read failed: ") || line.starts_with("    "));
    lines
        .map(|line| format!("{}\n", line.trim_start()))
        .collect()
}

#[test]
fn cells_have_the_types_that_the_columns_declare() {
    let expected = json!({
        "count": 73,
        "rows": [
            {"item": "A, 1", "count": 20, "price": 2.5, "paid": true, "due": "2026-11-23"},
            {"item": "007", "count": 53, "price": null, "paid": false, "due": null},
            {"item": null, "count": null, "price": 0, "paid": null, "due": null},
        ],
    });
    for (path, table) in [
        (
            "inputs/rows.csv",
            "item,count,price,paid,due\n\"A, 1\",20,2.5,true,2026-11-23\n007,53,,FALSE,\n,,0,,\n",
        ),
        // In any order of the columns, as spreadsheets write it.
        (
            "inputs/rows.csv",
            "\u{feff}due;paid;price;count;item\r\n2026-11-23;true;2.5;20;A, 1\r\n;false;;53;007\r\n;;0;;\r\n",
        ),
        (
            "inputs/rows.tsv",
            "item\tcount\tprice\tpaid\tdue\nA, 1\t20\t2.5\ttrue\t2026-11-23\n007\t53\t\tfalse\t\n\t\t0\t\t\n",
        ),
    ] {
        let project = typed(path, table);
        let said = project.output("-q");
        assert_eq!(said.code, 0, "{table:?}: {}", said.err);
        let read: Value =
            serde_json::from_str(&project.read("workspace/outputs/read.json")).unwrap();
        assert_eq!(read, expected, "{table:?}");
        let order: Vec<&String> = read["rows"][0].as_object().unwrap().keys().collect();
        assert_eq!(
            order,
            ["item", "count", "price", "paid", "due"],
            "{table:?}"
        );
    }
}

#[test]
fn cells_that_do_not_fit_their_column_are_named_all_at_once() {
    let path = "inputs/rows.csv";
    assert_eq!(
        refused_typed(
            path,
            "item,count,price,paid,due\na,many,\"2,5\",yes,2027-02-29\n\nb,1.5,1,true,\n"
        ),
        "\
read failed: SCHEMA: inputs/rows.csv:2: column `count`: expected an integer, found \"many\"
inputs/rows.csv:2: column `price`: expected a number, found \"2,5\": write 2.5
inputs/rows.csv:2: column `paid`: expected true or false, found \"yes\"
inputs/rows.csv:2: column `due`: expected a date such as 2026-11-23, found \"2027-02-29\"
inputs/rows.csv:4: column `count`: expected an integer, found \"1.5\"
"
    );
}

#[test]
fn a_table_with_other_columns_than_declared_is_refused() {
    const EXPECTED: &str = "expected columns `item`, `count`, `price`, `paid`, `due`; found ";
    for (table, why) in [
        (
            "item,cuont,price,paid,due\n",
            "1: EXPECTED`item`, `cuont`, `price`, `paid`, `due`; did you mean `count`?",
        ),
        (
            "item,count,price,paid\na,1,1,true\n",
            "1: EXPECTED`item`, `count`, `price`, `paid`",
        ),
        (
            "\u{feff}item;count;price;paid;due;note\r\n",
            "1: EXPECTED`item`, `count`, `price`, `paid`, `due`, `note`",
        ),
        (
            "chair,1,9.5,true,2026-11-23\n",
            "1: EXPECTED`chair`, `1`, `9.5`, `true`, `2026-11-23`; the first line must name the columns",
        ),
        (
            "\nitem,count,price,paid,due,due\n",
            "2: the header has `due` twice",
        ),
        ("", "1: EXPECTEDno header"),
        (
            "item,count,price,paid,due\na,1,2.5,true\n",
            "2: expected 5 cells as in the header, found 4",
        ),
        (
            "item,count,price,paid,due\na,1,2.5,true,,\n",
            "2: expected 5 cells as in the header, found 6",
        ),
        // A quote that is never closed makes one cell of the lines after it.
        (
            "due,item,count,price,paid\n,a,1,1,true\n,b,1,1,\"true\n,c,1,1,true\n",
            "3: a quote is opened here and never closed",
        ),
        (
            "item,count,price,paid,due\na,1,2.5,true,\nb,\"1\"7,2.5,true,\n",
            "3: text follows the quote that closes a cell: quote the whole cell, and write a quote within it twice",
        ),
        (
            "item,count,price,paid,due\na\0,1,2.5,true,\n",
            "2: unexpected zero byte: a table must be text",
        ),
    ] {
        let why = why.replace("EXPECTED", EXPECTED);
        assert_eq!(
            refused_typed("inputs/rows.csv", table),
            format!("read failed: SCHEMA: inputs/rows.csv:{why}\n"),
            "{table:?}"
        );
    }
}

#[test]
fn a_header_without_rows_is_judged_by_the_schema_too() {
    assert_eq!(
        refused(b"1,a,2\n"),
        "read failed: SCHEMA: inputs/rows.csv:1: Missing id in the header, which has 1, a, 2 (by schemas/row.schema.json)\ninputs/rows.csv:1: Missing field in the header, which has 1, a, 2\n"
    );
    assert_eq!(
        refused(b""),
        "read failed: SCHEMA: inputs/rows.csv:1: Missing id in the header, which is empty (by schemas/row.schema.json)\ninputs/rows.csv:1: Missing field in the header, which is empty\n"
    );
    let project = project(format!("{HEADER}\n").as_bytes());
    let said = project.output("-q");
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(project.read("workspace/outputs/read.json"), "[]\n");
}

#[test]
fn an_output_and_the_rows_of_batches_have_declared_columns_too() {
    let project = Project::new(&[
        ("milepost.toml", "name = \"tables\"\n"),
        (
            "stages/1_write.toml",
            "[step]\njq = '\"id,count\\n1,\" + $params.count + \"\\n2,\\n\"'\n\n[outputs.rows]\npath = \"intermediate/rows.csv\"\ncolumns = { id = \"integer\", count = \"integer\" }\n\n[[check]]\ntest = '[.rows[].count] == [20, null]'\n",
        ),
        (
            "stages/2_each.toml",
            "[each.row]\nfrom = \"intermediate/rows.csv\"\nselect = '.[]'\nkey = '.id'\ncolumns = { id = \"integer\", count = \"integer\" }\n\n[step]\njq = '.row'\n\n[outputs]\none = { path = \"outputs/{{ row.id }}.json\", schema = false }\n",
        ),
    ]);
    let declare = |count: &str| {
        let text = format!("name = \"tables\"\n\n[params]\ncount = \"{count}\"\n");
        std::fs::write(project.at("milepost.toml"), text).unwrap();
    };
    declare("20");
    let said = project.output("-q");
    assert_eq!(said.code, 0, "{}", said.err);
    let row = |id| {
        let text = project.read(&format!("workspace/outputs/{id}.json"));
        serde_json::from_str::<Value>(&text).unwrap()
    };
    assert_eq!(row(1), json!({"id": 1, "count": 20}));
    assert_eq!(row(2), json!({"id": 2, "count": null}));

    declare("many");
    let said = project.output("-q");
    assert_eq!(said.code, 1, "{}", said.err);
    let expected = "write failed: SCHEMA: intermediate/rows.csv:2: column `count`: expected an integer, found \"many\"";
    assert!(said.err.contains(expected), "{}", said.err);
}

#[test]
fn a_column_of_another_type_reruns_what_reads_it() {
    let project = typed(
        "inputs/rows.csv",
        "item,count,price,paid,due\n1,20,2.5,true,\n",
    );
    assert_eq!(project.output("-q").code, 0);
    let stage = project.read("stages/1_read.toml");
    let stage = stage.replace("item = \"string\"", "item = \"integer\"");
    std::fs::write(project.at("stages/1_read.toml"), stage).unwrap();
    let said = project.output("-q");
    assert_eq!(said.code, 0, "{}", said.err);
    let read: Value = serde_json::from_str(&project.read("workspace/outputs/read.json")).unwrap();
    assert_eq!(read["rows"][0]["item"], 1);
}
