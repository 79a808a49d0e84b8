//! The text of PDFs: what comes out, by which engine, and what is said when none gives any.

use crate::mutated::structures;
use crate::support::Project;
use crate::support::required::{self, require};
use lopdf::{
    Document, EncryptionState, EncryptionVersion, Object, Permissions, Stream, dictionary,
};
use milepost_formats::pdf::{PdfInfo, markdown_to_pdf};
use serde_json::{Value, json};

const MARKDOWN: &str = "\
# A small service

It answers questions about the offices of a firm.

## Layout

All code is in one file:

```python
def answer(question):
    if not question:
        return None

    return question.lower()
```

### Tests

There are five of them.
";

/// A stage that reads each PDF of `inputs/`, by these engines.
fn reading(engines: &str) -> Project {
    let stage = format!(
        r#"
[each.file]
path = "inputs/*.pdf"

[inputs]
pdf = "{{{{ file.path }}}}"

[step]
pdf_text = "pdf"
{engines}

[outputs]
text = {{ path = "intermediate/{{{{ file.stem }}}}.json", schema = false }}

[policy]
on_failure = "continue"

[errors]
engines = "ALL_PARSERS_FAILED"
"#
    );
    Project::new(&[
        ("milepost.toml", "name = \"reading\"\n"),
        ("stages/1_read.toml", &stage),
    ])
}

/// A document of pages with these contents, in Helvetica (`F1`) and Courier (`F2`).
fn document(pages: &[&str]) -> Document {
    let mut doc = Document::with_version("1.7");
    let root = doc.new_object_id();
    let font = |name: &str| dictionary! { "Type" => "Font", "Subtype" => "Type1", "BaseFont" => name, "Encoding" => "WinAnsiEncoding" };
    let fonts = dictionary! { "F1" => font("Helvetica"), "F2" => font("Courier") };
    let resources = doc.add_object(dictionary! { "Font" => fonts });
    let kids: Vec<Object> = pages
        .iter()
        .map(|content| {
            let content = doc.add_object(Stream::new(dictionary! {}, content.as_bytes().to_vec()));
            let page = dictionary! { "Type" => "Page", "Parent" => root, "Contents" => content };
            doc.add_object(page).into()
        })
        .collect();
    let count = kids.len() as i64;
    let pages = dictionary! {
        "Type" => "Pages", "Kids" => kids, "Count" => count, "Resources" => resources,
        "MediaBox" => vec![0.into(), 0.into(), 595.into(), 842.into()],
    };
    doc.objects.insert(root, Object::Dictionary(pages));
    let catalog = doc.add_object(dictionary! { "Type" => "Catalog", "Pages" => root });
    doc.trailer.set("Root", catalog);
    let id = Object::string_literal("0123456789abcdef");
    doc.trailer.set("ID", vec![id.clone(), id]);
    doc
}

fn bytes(mut doc: Document) -> Vec<u8> {
    let mut bytes = Vec::new();
    doc.save_to(&mut bytes).unwrap();
    bytes
}

/// The same, for whoever knows the password.
fn locked(mut doc: Document, password: &str) -> Vec<u8> {
    let version = EncryptionVersion::V2 {
        document: &doc,
        owner_password: "owner",
        user_password: password,
        key_length: 128,
        permissions: Permissions::all(),
    };
    let state = EncryptionState::try_from(version).unwrap();
    doc.encrypt(&state).unwrap();
    bytes(doc)
}

const SIMPLE: &str = "BT /F1 12 Tf 72 700 Td (Read me) Tj ET";

fn simple() -> Vec<u8> {
    bytes(document(&[SIMPLE]))
}

fn page_texts(project: &Project, name: &str) -> Vec<String> {
    let read = project.json(&format!("workspace/intermediate/{name}.json"));
    let pages = read["pages"].as_array().unwrap();
    pages
        .iter()
        .map(|page| page["text"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn what_was_set_as_pdf_comes_out_with_its_headings_and_code() {
    let project = Project::new(&[
        ("milepost.toml", "name = \"both_ways\"\n"),
        ("workspace/inputs/a.md", MARKDOWN),
        (
            "stages/1_both.toml",
            r#"
[inputs]
source = "inputs/a.md"

[[step]]
pdf = "source"
out = "set"

[[step]]
pdf_text = "set"
engines = ["builtin"]
out = "read"

[outputs]
read = { path = "outputs/read.json", schema = false }
"#,
        ),
    ]);
    project.run(&[]).expect(0, &["both"]);
    let code = "def answer(question):\n    if not question:\n        return None\n\n    return question.lower()";
    let text = format!(
        "A small service\n\nIt answers questions about the offices of a firm.\n\nLayout\n\nAll code is in one file:\n\n{code}\n\nTests\n\nThere are five of them.\n\nA small service  page 1 of 1"
    );
    let heading = |title: &str, level: u8| json!({"title": title, "page": 1, "level": level});
    let headings = [("A small service", 1), ("Layout", 2), ("Tests", 3)];
    let headings: Vec<Value> = headings
        .map(|(title, level)| heading(title, level))
        .to_vec();
    let read = project.json("workspace/outputs/read.json");
    assert_eq!(
        read,
        json!({
            "engine": "builtin",
            "total_pages": 1,
            "pages": [{"number": 1, "text": text, "code": [{"content": code, "line_count": 5}]}],
            "outline": read["outline"],
            "headings": headings,
            "warnings": [],
        })
    );
    assert_eq!(
        project.json("workspace/stage_1_complete.json")["summary"],
        json!({"engine": "builtin", "engine_version": "hayro-syntax 0.9", "pages": 1, "letters": 190,
            "letters_without_unicode": 0, "pages_without_text": []})
    );
    project.run(&[]).expect(0, &[]);
}

#[test]
fn words_columns_and_code_are_read_as_they_stand() {
    let project = reading("engines = [\"builtin\"]");
    let letters = [
        // Words apart by moves and by gaps in one string, letters apart by their own space, and one that is drawn twice.
        "BT /F1 10 Tf 72 700 Td (Two) Tj 25 0 Td (words) Tj 0 -14 Td [(O) 20 (n) -30 (e) -400 (more)] TJ ET",
        "BT /F1 10 Tf 3 Tc 72 660 Td (wide apart) Tj ET",
        "BT /F1 10 Tf 72 640 Td (Heavy) Tj 0.3 0 Td (Heavy) Tj ET",
    ];
    let columns = "BT /F1 10 Tf 12 TL 72 700 Td (left one) Tj T* (left two) Tj ET BT /F1 10 Tf 12 TL 320 700 Td (right one) Tj (right two) ' ET";
    let code = "BT /F2 10 Tf 12 TL 72 700 Td (if x:) Tj 24 -12 Td (y = 1) Tj -24 -24 Td (end   # done) Tj ET";
    let turned = "BT /F1 10 Tf 72 700 Td (The longer line of this page) Tj ET BT /F1 10 Tf 0 1 -1 0 40 300 Tm (up) Tj ET";
    let doc = document(&[&letters.join("\n"), columns, code, turned]);
    project.write("workspace/inputs/a.pdf", bytes(doc));
    project.run(&[]).expect(0, &["read/a"]);
    assert_eq!(
        page_texts(&project, "a"),
        [
            "Two words\nOne more\n\nwide apart\n\nHeavy",
            "left one\nleft two\n\nright one\nright two",
            "if x:\n    y = 1\n\nend   # done",
            "The longer line of this page\n\nup",
        ]
    );
    let read = project.json("workspace/intermediate/a.json");
    assert_eq!(
        read["pages"][2]["code"],
        json!([{"content": "if x:\n    y = 1\n\nend   # done", "line_count": 4}])
    );
}

#[test]
fn what_cannot_be_read_is_told_with_what_to_do() {
    let project = reading("engines = [\"builtin\"]");
    let file =
        |name: &str, bytes: &[u8]| project.write(&format!("workspace/inputs/{name}.pdf"), bytes);
    let whole = simple();
    file("cut", &whole[..whole.len() - 40]);
    file("empty", b"");
    file("locked", &locked(document(&[SIMPLE]), "secret"));
    file("other", b"PK\x03\x04 a text document");
    file("scan", &bytes(document(&["q 100 0 0 100 0 0 cm Q", ""])));
    file(
        "strange",
        &bytes(document(&[
            "BT /F1 12 Tf 72 700 Td (\x01\x02\x03\x04 a) Tj ET",
        ])),
    );
    file("open", &locked(document(&[SIMPLE]), ""));
    file("part", &bytes(document(&[SIMPLE, "", SIMPLE])));
    let ran = project.run(&[]);
    let names = [
        "cut", "empty", "locked", "open", "other", "part", "scan", "strange",
    ];
    let names = names.map(|name| format!("read/{name}"));
    ran.expect(3, &names.each_ref().map(String::as_str));
    for line in [
        "read/cut failed: ALL_PARSERS_FAILED: `inputs/cut.pdf` is cut off (it ends after",
        "copy or download it again",
        "`inputs/empty.pdf` is empty: put the file there again",
        "`inputs/locked.pdf` needs a password (",
        "save a copy without one, such as with `qpdf --decrypt --password=… in.pdf out.pdf`",
        "`inputs/other.pdf` is not a PDF, it begins with \"PK",
        "`inputs/scan.pdf` has no text on its pages (2), as in a scan: add a text layer, such as with `ocrmypdf in.pdf out.pdf`",
        "`inputs/strange.pdf` has no Unicode for 4 of its 5 characters: export it again from its source",
        "read/part warning: no text on page 2: blank, or a picture",
    ] {
        ran.says(line);
    }
    assert_eq!(page_texts(&project, "open"), ["Read me"]);
    assert_eq!(page_texts(&project, "part"), ["Read me", "", "Read me"]);
}

#[test]
fn form_fields_and_notes_are_warned_about() {
    let project = reading("engines = [\"builtin\"]");
    let notes = "/Annots[<</Type/Annot/Subtype/Link/Contents(x)>> 8 0 R]";
    for (name, note) in [
        ("blank", "<</Subtype/Widget/FT/Tx/V()>>"),
        ("button", "<</Subtype/Widget/FT/Btn/V/Yes>>"),
        ("comment", "<</Subtype/FreeText/Contents(Look here)>>"),
        ("field", "<</Subtype/Widget/FT/Tx/V(Anna)>>"),
        ("inner", "<</Subtype/Widget/Parent 9 0 R>>"),
    ] {
        let mut objects = structures::page("", notes);
        objects.push((8, note.to_owned()));
        objects.push((9, "<</FT/Tx/V(Anna)>>".to_owned()));
        project.write(
            &format!("workspace/inputs/{name}.pdf"),
            structures::pdf(&objects),
        );
    }
    let ran = project.run(&[]);
    let warned: Vec<&str> = ran
        .output
        .lines()
        .filter(|line| line.contains("warning"))
        .collect();
    let expected = ["comment", "field", "inner"].map(|name| {
        format!("read/{name} warning: the form fields and notes on page 1 are not read: print the document to a new PDF")
    });
    assert_eq!(warned, expected);
}

/// The same with a wrong place of the table of objects.
fn without_table(whole: Vec<u8>) -> Vec<u8> {
    let mark = b"startxref";
    let at = whole.windows(mark.len()).rposition(|part| part == mark);
    [&whole[..at.unwrap()], b"startxref\n7\n%%EOF\n"].concat()
}

#[test]
fn a_damaged_file_is_read_whole_on_a_bare_machine() {
    let mut project = reading("");
    project.env("PATH", "/nowhere");
    let whole = markdown_to_pdf(MARKDOWN, &PdfInfo::default()).unwrap();
    let text = String::from_utf8_lossy(&whole);
    // Each is damaged in another way; letters that are not ASCII are not touched.
    let edited = |from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        let parts: Vec<&[u8]> = split(&whole, from.as_bytes());
        parts.join(to.as_bytes())
    };
    let file = |name: &str, bytes: Vec<u8>| {
        project.write(&format!("workspace/inputs/{name}.pdf"), bytes);
    };
    file("whole", whole.clone());
    file("table", without_table(whole.clone()));
    file("length", edited("/Length ", "/Length 9"));
    file("ends", edited("endobj", ""));
    file("shifted", edited("\n2 0 obj", "\n% a line more\n2 0 obj"));
    file("tail", [&whole[..], &[0; 3000]].concat());
    let damaged = ["ends", "length", "shifted", "table", "tail"];
    let ran = project.run(&[]);
    let names = ["ends", "length", "shifted", "table", "tail", "whole"];
    let names = names.map(|name| format!("read/{name}"));
    ran.expect(0, &names.each_ref().map(String::as_str));
    let read = |name: &str| project.json(&format!("workspace/intermediate/{name}.json"));
    let expected = read("whole");
    assert_eq!(
        (&expected["engine"], &expected["warnings"]),
        (&json!("builtin"), &json!([]))
    );
    assert_eq!(expected["headings"].as_array().unwrap().len(), 3);
    for name in damaged {
        assert_eq!(read(name), expected, "{name}");
    }
}

/// The parts of `bytes` between each `mark`.
fn split<'a>(bytes: &'a [u8], mark: &[u8]) -> Vec<&'a [u8]> {
    let mut parts = Vec::new();
    let mut rest = bytes;
    while let Some(at) = rest.windows(mark.len()).position(|part| part == mark) {
        parts.push(&rest[..at]);
        rest = &rest[at + mark.len()..];
    }
    parts.push(rest);
    parts
}

#[test]
fn the_last_change_of_a_damaged_file_counts() {
    let project = reading("engines = [\"builtin\"]");
    let old = String::from_utf8(structures::pdf(&structures::page("", ""))).unwrap();
    let new = structures::stream("", "BT /F1 12 Tf 72 700 Td (The new text.) Tj ET");
    let changed = format!("{old}4 0 obj\n{new}\nendobj\nxref\nno table\nstartxref\n7\n%%EOF\n");
    project.write("workspace/inputs/changed.pdf", changed);
    project.run(&[]).expect(0, &["read/changed"]);
    assert_eq!(page_texts(&project, "changed"), ["The new text."]);
}

#[test]
fn where_all_engines_fail_each_is_named_with_its_reason() {
    let mut project = reading("");
    project.env("PATH", "/nowhere");
    let mut objects = structures::page("", "");
    objects[1].1 = "<</Type/Pages/Kids[3 0 R 9 0 R]/Count 2>>".to_owned();
    let lost = without_table(structures::pdf(&objects));
    project.write("workspace/inputs/lost.pdf", lost);
    project
        .run(&[])
        .expect(3, &["read/lost"])
        .says("ALL_PARSERS_FAILED: `inputs/lost.pdf` is cut off (1 of its 2 pages were found): copy or download it again")
        .says("builtin: is cut off (1 of its 2 pages were found): copy")
        .says("pdftotext: program `pdftotext` was not found in PATH (/nowhere)");
    assert!(!project.exists("workspace/intermediate/lost.json"));
}

#[test]
fn the_next_engine_is_tried_when_one_fails() {
    require!(required::program("pdftotext", &["-v"]));
    let project = reading("engines = [\"builtin\", \"pdftotext\"]");
    // More than the engine takes, and nothing to Poppler.
    let damaged = format!("{}{SIMPLE}", "q ".repeat(30_000));
    project.write("workspace/inputs/damaged.pdf", bytes(document(&[&damaged])));
    project.write(
        "workspace/inputs/locked.pdf",
        locked(document(&[SIMPLE]), "secret"),
    );
    let ran = project.run(&[]);
    ran.expect(3, &["read/damaged", "read/locked"])
        .says("read/damaged warning: read by pdftotext; with builtin, it exceeds a limit of the reader (")
        // What says most is told, not what was tried last.
        .says("`inputs/locked.pdf` needs a password (");
    let read = project.json("workspace/intermediate/damaged.json");
    assert_eq!(read["engine"], "pdftotext");
    assert_eq!(
        read["pages"],
        json!([{"number": 1, "text": "Read me", "code": null}])
    );
    assert_eq!(
        (&read["outline"], &read["headings"]),
        (&json!([]), &Value::Null)
    );
}

#[test]
fn an_engine_that_is_not_installed_is_told() {
    let mut project = reading("engines = [\"pdftotext\"]");
    project.env("PATH", "/nowhere");
    project.write("workspace/inputs/a.pdf", simple());
    project
        .run(&[])
        .expect(3, &["read/a"])
        .says("program `pdftotext` was not found in PATH (/nowhere)");
}
