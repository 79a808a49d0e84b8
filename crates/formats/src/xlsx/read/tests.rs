//! Tests of reading columns: workbooks as Excel, LibreOffice and scripts save them, and hostile ones.

use super::*;
use std::io::{Cursor, Write as _};
use zip::write::{SimpleFileOptions, ZipWriter};

const RELATIONS: &str = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
const MAIN: &str = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";

/// A workbook with a sheet `Review` of this content.
fn workbook(sheet: &str) -> Vec<u8> {
    archive(&files(sheet))
}

/// Its files.
fn files(sheet: &str) -> Vec<(&'static str, String)> {
    vec![
        (
            "[Content_Types].xml",
            "<Types xmlns=\"http://schemas.openxmlformats.org/package/2006/content-types\"/>"
                .to_owned(),
        ),
        (
            "_rels/.rels",
            format!(
                "<Relationships xmlns=\"http://schemas.openxmlformats.org/package/2006/relationships\"><Relationship Id=\"r1\" Type=\"{RELATIONS}/officeDocument\" Target=\"xl/workbook.xml\"/></Relationships>"
            ),
        ),
        (
            "xl/_rels/workbook.xml.rels",
            format!(
                "<Relationships xmlns=\"http://schemas.openxmlformats.org/package/2006/relationships\"><Relationship Id=\"r1\" Type=\"{RELATIONS}/worksheet\" Target=\"worksheets/sheet1.xml\"/></Relationships>"
            ),
        ),
        (
            "xl/workbook.xml",
            format!(
                "<workbook xmlns=\"{MAIN}\" xmlns:r=\"{RELATIONS}\"><sheets><sheet name=\"Review\" sheetId=\"1\" r:id=\"r1\"/></sheets></workbook>"
            ),
        ),
        (
            "xl/worksheets/sheet1.xml",
            format!("<worksheet xmlns=\"{MAIN}\">{sheet}</worksheet>"),
        ),
    ]
}

fn archive(files: &[(&str, String)]) -> Vec<u8> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in files {
        archive
            .start_file(*name, SimpleFileOptions::default())
            .unwrap();
        archive.write_all(content.as_bytes()).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

/// A row of texts from column A.
fn row(number: u32, cells: &[&str]) -> String {
    let cells = cells.iter().zip(0..).map(|(text, column)| {
        let name = cell_name((number - 1, column));
        format!("<c r=\"{name}\" t=\"inlineStr\"><is><t>{text}</t></is></c>")
    });
    format!("<row r=\"{number}\">{}</row>", cells.collect::<String>())
}

fn read(sheet: &str, headers: &[&str]) -> Result<SheetColumns, XlsxReadError> {
    let headers: Vec<String> = headers.iter().map(|&header| header.to_owned()).collect();
    read_columns(Cursor::new(workbook(sheet)), "Review", &headers)
}

fn said(sheet: &str) -> String {
    read(sheet, &["Id", "Type"]).unwrap_err().to_string()
}

fn text(text: &str) -> CellValue {
    CellValue::Text(text.to_owned())
}

#[test]
fn columns_are_found_by_their_headers_wherever_they_are() {
    let rows = [
        row(1, &["A title that a person wrote"]),
        row(3, &["More", " Type ", "x", "Id"]),
        row(4, &["1", "beam", "y", " a "]),
        row(5, &["2", "", "z", ""]),
        row(9, &["3", "", "z", "b"]),
    ];
    let sheet = format!("<sheetData>{}</sheetData>", rows.concat());
    let found = read(&sheet, &["Id", "Type"]).unwrap();
    assert_eq!(found.letters, ["D", "B"]);
    assert_eq!(
        found.rows,
        BTreeMap::from([
            (4, vec![text("a"), text("beam")]),
            (9, vec![text("b"), CellValue::Empty]),
        ])
    );
}

#[test]
fn headers_are_found_in_any_case_and_with_other_blanks() {
    let rows = row(1, &["ID", "Correct\n element\u{a0}type"]) + &row(2, &["a", "beam"]);
    let found = read(
        &format!("<sheetData>{rows}</sheetData>"),
        &["Correct element type", "Id"],
    );
    assert_eq!(found.unwrap().rows[&2], [text("beam"), text("a")]);
    // A header that is written exactly so comes first.
    let rows = row(1, &["id", "Id"]) + &row(2, &["a", "b"]);
    let found = read(&format!("<sheetData>{rows}</sheetData>"), &["Id", "id"]);
    assert_eq!(found.unwrap().rows[&2], [text("b"), text("a")]);
}

#[test]
fn shared_strings_hidden_rows_and_cached_values_are_read_as_other_programs_save_them() {
    let shared = format!(
        "<sst xmlns=\"{MAIN}\"><si><t>Id</t></si><si><t>Type</t></si><si><r><t>be</t></r><r><rPr><b/></rPr><t>am</t></r></si><si><t xml:space=\"preserve\"> a </t></si></sst>"
    );
    let sheet = "<cols><col min=\"1\" max=\"1\" hidden=\"1\"/></cols><sheetData>\
        <row r=\"1\"><c r=\"A1\" t=\"s\"><v>0</v></c><c r=\"B1\" t=\"s\"><v>1</v></c></row>\
        <row r=\"2\" hidden=\"1\"><c r=\"A2\" t=\"s\"><v>3</v></c><c r=\"B2\" t=\"s\"><v>2</v></c></row>\
        <row r=\"3\"><c r=\"A3\" t=\"str\"><f>A2</f><v>a</v></c><c r=\"B3\" s=\"7\"><f>1+1</f><v>2</v></c></row></sheetData>";
    let relation = format!(
        "<Relationship Id=\"r2\" Type=\"{RELATIONS}/sharedStrings\" Target=\"sharedStrings.xml\"/></Relationships>"
    );
    let mut files = files(sheet);
    let relations = files
        .iter_mut()
        .find(|(name, _)| *name == "xl/_rels/workbook.xml.rels")
        .unwrap();
    relations.1 = relations.1.replace("</Relationships>", &relation);
    files.push(("xl/sharedStrings.xml", shared));
    let headers = ["Id".to_owned(), "Type".to_owned()];
    let found = read_columns(Cursor::new(archive(&files)), "Review", &headers).unwrap();
    assert_eq!(
        found.rows,
        BTreeMap::from([
            (2, vec![text("a"), text("beam")]),
            (3, vec![text("a"), CellValue::Number(2.0)]),
        ])
    );
}

#[test]
fn cells_have_the_type_that_they_have() {
    let cells = "<c r=\"A2\"><v>0.25</v></c><c r=\"B2\" t=\"b\"><v>1</v></c>\
        <c r=\"C2\" t=\"e\"><v>#N/A</v></c><c r=\"D2\"><f>1+1</f></c><c r=\"E2\"><f>1+1</f><v>2</v></c>\
        <c r=\"F2\" t=\"d\"><v>2026-11-23</v></c><c r=\"G2\" t=\"str\"><f>\"a\"</f><v>a</v></c>";
    let headers = ["A", "B", "C", "D", "E", "F", "G"];
    let sheet = format!(
        "<sheetData>{}<row r=\"2\">{cells}</row></sheetData>",
        row(1, &headers)
    );
    let found = read(&sheet, &headers).unwrap();
    assert_eq!(
        found.rows[&2],
        [
            CellValue::Number(0.25),
            CellValue::Bool(true),
            CellValue::Error("#N/A".to_owned()),
            CellValue::Formula,
            CellValue::Number(2.0),
            CellValue::Date,
            text("a"),
        ]
    );
}

#[test]
fn what_cannot_be_read_is_named() {
    let header = row(1, &["Id", "Kind"]);
    assert_eq!(
        said(&format!("<sheetData>{header}</sheetData>")),
        "Review: missing column `Type` in the header; found `Id`, `Kind`"
    );
    let header = row(1, &["Id", "Type", "Id"]);
    assert_eq!(
        said(&format!("<sheetData>{header}</sheetData>")),
        "Review: duplicate column `Id` in the header; found `Id`, `Type`"
    );
    let rows = row(1, &["Id", "Type"]) + &row(2, &["a", "beam"]);
    let merged = |cells: &str| {
        format!(
            "<sheetData>{rows}</sheetData><mergeCells><mergeCell ref=\"{cells}\"/></mergeCells>"
        )
    };
    assert_eq!(
        said(&merged("B2:B3")),
        "Review!B2:B3: the cells are merged; split them, so that each row has its own"
    );
    assert!(read(&merged("C2:D9"), &["Id", "Type"]).is_ok());
    assert!(said("<sheetData><row r=\"1\"><c r=\"A1\"").starts_with("Review: it cannot be read: "));
    let long = "x".repeat(LONGEST + 1);
    let rows = row(1, &["Id", "Type"]) + &row(2, &[&long]);
    assert_eq!(
        said(&format!("<sheetData>{rows}</sheetData>")),
        "it is too large: the text of Review!A2 is longer than 32767 characters"
    );
    let other = read_columns(Cursor::new(workbook("<sheetData/>")), "Elements", &[]);
    assert_eq!(
        other.unwrap_err().to_string(),
        "there is no sheet `Elements`; it has `Review`"
    );
    for bytes in [&b""[..], b"PK", b"global_id,field\n"] {
        let found = read_columns(Cursor::new(bytes), "Review", &[]);
        assert!(matches!(found, Err(XlsxReadError::NoWorkbook(_))));
    }
}

#[test]
fn cells_far_away_cost_no_memory() {
    let rows = row(1, &["Id", "Type"])
        + "<row r=\"1048576\"><c r=\"A1048576\"><v>1</v></c><c r=\"XFD1048576\"><v>1</v></c></row>";
    let found = read(&format!("<sheetData>{rows}</sheetData>"), &["Id", "Type"]).unwrap();
    assert_eq!(
        found.rows,
        BTreeMap::from([(1_048_576, vec![CellValue::Number(1.0), CellValue::Empty])])
    );
}

/// No number of a damaged sheet becomes another one, and none ends the program.
#[test]
fn cells_outside_of_a_sheet_are_errors_with_their_place() {
    let header = row(1, &["Id", "Type"]);
    let cell = |name: &str| format!("<row r=\"2\"><c r=\"{name}\"><v>1</v></c></row>");
    let range = "Review: it cannot be read: a number in it is out of range, after cell B1";
    let outside = |name: &str| {
        format!(
            "Review: it cannot be read: cell {name} is outside of a sheet, which ends at XFD1048576, after cell B1"
        )
    };
    for (rows, expected) in [
        (cell("A4294967298"), range.to_owned()),
        (cell("A99999999999999999999"), range.to_owned()),
        (cell("ZZZZZZZZ1"), range.to_owned()),
        ("<row r=\"4294967298\"/>".to_owned(), range.to_owned()),
        (cell("A1048577"), outside("A1048577")),
        (cell("XFE1"), outside("XFE1")),
        (cell("ZZZZZZ1"), outside("ZZZZZZ1")),
        (cell("A4294967295"), outside("A4294967295")),
    ] {
        assert_eq!(
            said(&format!("<sheetData>{header}{rows}</sheetData>")),
            expected
        );
        let sheet = format!("<sheetData>{header}{rows}</sheetData>");
        let found = read_row(Cursor::new(workbook(&sheet)), "Review", 1_000_000);
        assert_eq!(found.unwrap_err().to_string(), expected, "{rows}");
    }
    for name in ["A-2", "", "A", "2", "A0", "Ä2"] {
        let found = said(&format!("<sheetData>{header}{}</sheetData>", cell(name)));
        let is_placed = found.starts_with("Review: it cannot be read: ")
            && found.ends_with(", after cell B1")
            && !found.contains("out of range");
        assert!(is_placed, "{name}: {found}");
    }
    let texts = "<row r=\"2\"><c r=\"A2\" t=\"s\"><v>99999999999</v></c></row>";
    let found = said(&format!("<sheetData>{header}{texts}</sheetData>"));
    assert!(
        found.ends_with("not found in shared strings table, after cell B1"),
        "{found}"
    );
    // The size that a sheet names is not believed.
    let dimension =
        |cells: &str| format!("<dimension ref=\"{cells}\"/><sheetData>{header}</sheetData>");
    assert!(read(&dimension("A1:XFD1048576"), &["Id", "Type"]).is_ok());
    let found = said(&dimension("A1:B4294967298"));
    assert_eq!(
        found,
        "Review: it cannot be read: a number in it is out of range"
    );
    let merged = format!(
        "<sheetData>{header}</sheetData><mergeCells><mergeCell ref=\"B2:B4294967298\"/></mergeCells>"
    );
    assert_eq!(said(&merged), range);
}

#[test]
fn a_truncated_workbook_is_an_error_and_no_panic() {
    let rows = row(1, &["Id", "Type"]) + &row(2, &["a", "beam"]);
    let whole = workbook(&format!("<sheetData>{rows}</sheetData>"));
    let headers = ["Id".to_owned(), "Type".to_owned()];
    for length in 0..whole.len() {
        let found = read_columns(Cursor::new(&whole[..length]), "Review", &headers);
        assert!(found.is_err(), "{length}");
    }
}

#[test]
fn columns_have_the_letters_of_a_spreadsheet() {
    assert_eq!(
        [0, 25, 26, 701, 702, 16_383].map(letters),
        ["A", "Z", "AA", "ZZ", "AAA", "XFD"]
    );
}

/// The part of a sheet that is kept to read a row; `None` if the sheet cannot be cut.
fn cut(sheet: &str, row: u32) -> Option<String> {
    let cut = excerpt::excerpt(Cursor::new(workbook(sheet)), "Review", row)?;
    let mut archive = zip::ZipArchive::new(cut).unwrap();
    let mut text = String::new();
    let mut part = archive.by_name("xl/worksheets/sheet1.xml").unwrap();
    part.read_to_string(&mut text).unwrap();
    let text = text.strip_prefix(&format!("<worksheet xmlns=\"{MAIN}\">"));
    Some(
        text.unwrap()
            .strip_suffix("</worksheet>")
            .unwrap()
            .to_owned(),
    )
}

#[test]
fn of_a_sheet_only_headers_and_one_row_are_read() {
    // Longer than what is unpacked at once, so that tags are split.
    let filler = "y".repeat(997);
    let rows: Vec<String> = (1..=2000)
        .map(|number| match number {
            1 => row(1, &["Id", "Type"]),
            _ => row(number, &[&format!("id-{number}"), &filler]),
        })
        .collect();
    let sheet = |rows: &[String]| format!("<sheetData>{}</sheetData>", rows.concat());
    let whole = sheet(&rows);
    for number in [1, 2, 20, 21, 260, 261, 1999, 2000, 2001] {
        let mut kept = rows[..20.min(number as usize)].to_vec();
        let further = rows.get(number as usize - 1).filter(|_| number > 20);
        kept.extend(further.cloned());
        assert!(cut(&whole, number) == Some(sheet(&kept)), "{number}");
        let found = read_row(Cursor::new(workbook(&whole)), "Review", number).unwrap();
        let headers = BTreeMap::from([
            ("A".to_owned(), "Id".to_owned()),
            ("B".to_owned(), "Type".to_owned()),
        ]);
        let cells = match number {
            1 => BTreeMap::from([("A".to_owned(), text("Id")), ("B".to_owned(), text("Type"))]),
            2001 => BTreeMap::new(),
            _ => BTreeMap::from([
                ("A".to_owned(), text(&format!("id-{number}"))),
                ("B".to_owned(), text(&filler)),
            ]),
        };
        let headers = if number == 1 {
            BTreeMap::new()
        } else {
            headers
        };
        assert_eq!((found.headers, found.cells), (headers, cells), "{number}");
    }
}

#[test]
fn a_sheet_whose_rows_are_not_certain_is_read_whole() {
    let data = |rows: &str| format!("<sheetData>{rows}</sheetData>");
    let first = row(1, &["Id", "Type"]);
    let second = row(30, &["a", "b"]);
    for sheet in [
        data(&format!("{first}<!-- <row r=\"30\"> -->{second}")),
        data(&format!(
            "{first}<row r='30'><c r=\"A30\"><v>1</v></c></row>"
        )),
        data(&format!("{first}{second}{}", row(30, &["c", "d"]))),
        data(&format!("{first}<row r=\"x\"/>{second}")),
        "<sheetData/>".to_owned(),
    ] {
        assert_eq!(cut(&sheet, 30), None, "{sheet}");
    }
    // A row without a number follows the last one, and other tags are no rows.
    let breaks = "<rowBreaks count=\"1\"><brk id=\"1\"/></rowBreaks>";
    let sheet = data(&format!(
        "{first}<row><c t=\"inlineStr\"><is><t>a</t></is></c></row>"
    )) + breaks;
    assert_eq!(cut(&sheet, 2), Some(sheet.clone()));
}

#[test]
fn a_row_of_an_excerpt_has_shared_texts_and_formulas() {
    let mut files = files(&format!(
        "<sheetData>{}<row r=\"40\"><c r=\"A40\" t=\"s\"><v>1</v></c><c r=\"B40\"><f>1+1</f><v>2</v></c><c r=\"C40\"><f>2+2</f></c></row><row r=\"41\"/></sheetData>",
        row(1, &["Id", "Type"]) + &row(30, &["x", "y"]),
    ));
    files[2].1 = files[2].1.replace("</Relationships>", &format!("<Relationship Id=\"r2\" Type=\"{RELATIONS}/sharedStrings\" Target=\"sharedStrings.xml\"/></Relationships>"));
    files.push((
        "xl/sharedStrings.xml",
        format!("<sst xmlns=\"{MAIN}\"><si><t>none</t></si><si><t>shared</t></si></sst>"),
    ));
    let archive = archive(&files);
    assert!(excerpt::excerpt(Cursor::new(&archive), "Review", 40).is_some());
    let found = read_row(Cursor::new(&archive), "Review", 40).unwrap();
    let expected = [
        ("A".to_owned(), text("shared")),
        ("B".to_owned(), CellValue::Number(2.0)),
        ("C".to_owned(), CellValue::Formula),
    ];
    assert_eq!(found.cells, BTreeMap::from(expected));
    let formulas = [("B", "1+1"), ("C", "2+2")];
    let formulas = formulas.map(|(column, formula)| (column.to_owned(), formula.to_owned()));
    assert_eq!(found.formulas, BTreeMap::from(formulas));
}
