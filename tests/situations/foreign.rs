//! Files as other programs write them: byte order marks, line ends, separators, numbers that JSON lacks.

use crate::report::xlsx;
use crate::support::Project;
use serde_json::{Value, json};

/// A project with a stage of this step, which makes `o.json` from `inputs/FILE`.
fn fixture(step: &str, file: &str, content: &str) -> Project {
    let stage = format!(
        "[inputs]\ni = \"inputs/{file}\"\n[step]\n{step}\n[outputs]\no = {{ path = \"o.json\", schema = false }}\n"
    );
    let project = Project::new(&[
        ("milepost.toml", "name = \"foreign\"\n"),
        ("stages/1_read.toml", &stage),
    ]);
    project.write(&format!("workspace/inputs/{file}"), content);
    project
}

/// What a stage makes of a file, or the message of its failure.
fn read(file: &str, content: &str) -> Result<Value, String> {
    let project = fixture("jq = \"$i\"", file, content);
    let ran = project.run(&[]);
    if ran.code == 0 {
        return Ok(project.json("workspace/o.json"));
    }
    let failed = ran
        .records
        .iter()
        .find(|record| record["kind"] == "batch_failed");
    let message = failed.map(|failed| failed["data"]["outcome"]["message"].clone());
    Err(message.unwrap().as_str().unwrap().to_owned())
}

#[test]
fn a_table_is_divided_where_all_its_rows_can_be() {
    let prices = json!([{"Price, net": "1,5", "Qty": "2", "Note": "a"}]);
    let text = "Price, net;Qty;Note\n1,5;2;a\n";
    assert_eq!(read("a.csv", text), Ok(prices.clone()));
    assert_eq!(read("a.csv", &text.replace(';', "\t")), Ok(prices));
    // Two columns either way.
    let ambiguous = "the header has 2 columns if it is divided at commas and if it is divided at semicolons: declare the `columns`, or put \
                     quotes around cells with such a character";
    let text = "Price, net;Qty\n1,5;2\n2,5;3\n";
    assert_eq!(
        read("a.csv", text),
        Err(format!("inputs/a.csv:1: {ambiguous}"))
    );
    let columns = fixture("jq = \"$i\"", "a.csv", text);
    columns.edit(
        "stages/1_read.toml",
        "i = \"inputs/a.csv\"",
        "i = { path = \"inputs/a.csv\", columns = { \"Price, net\" = \"string\", Qty = \"integer\" } }",
    );
    columns.run(&[]).expect(0, &["read"]);
    let rows = json!([{"Price, net": "1,5", "Qty": 2}, {"Price, net": "2,5", "Qty": 3}]);
    assert_eq!(columns.json("workspace/o.json"), rows);
    // A separator that only some rows have is none.
    let notes = json!([{"id": "1", "note": "a; b"}, {"id": "2", "note": "c"}]);
    assert_eq!(read("a.csv", "id,note\n1,a; b\n2,c\n"), Ok(notes));
    let notes = json!([{"id": "1", "note; why": "a; b"}, {"id": "2", "note; why": "c"}]);
    assert_eq!(read("a.csv", "id,note; why\n1,a; b\n2,c\n"), Ok(notes));
}

#[test]
fn a_number_that_json_lacks_is_refused_at_its_place() {
    for (text, place) in [
        ("a = nan\n", "line 1, column 5: `nan`"),
        ("a = 1\n[b]\nc = [1.0, -inf]\n", "line 3, column 11: `-inf`"),
    ] {
        let expected = format!("inputs/i.toml: {place} is not a finite number");
        assert_eq!(read("i.toml", text), Err(expected));
    }
    let read = read("i.toml", "a = 1.5\nb = 2026-11-26\n");
    assert_eq!(read, Ok(json!({"a": 1.5, "b": "2026-11-26"})));
    let project = fixture("jq = \"1\"", "a.txt", "");
    project.write("milepost.toml", "name = \"x\"\n[params]\nlimit = inf\n");
    let (code, text) = project.milepost(&["plan"]);
    assert_eq!(code, 4, "{text}");
    assert!(
        text.contains("this is not a finite number") && text.contains("milepost.toml:3:9"),
        "{text}"
    );
}

#[test]
fn marks_and_line_ends_of_declared_files_make_no_difference() {
    let stage = "[inputs]\ni = \"inputs/i.json\"\n[[step]]\njq = \"filters/x.jq\"\nout = \"o\"\n[[step]]\nrender = \"templates/t.txt\"\nout = \"t\"\n\
                 [[step]]\ncommand = '''\nif true; then\n  printf x > {{ paths.c }}\nfi\n'''\nout = \"c\"\n[outputs]\n\
                 o = { path = \"o.json\", schema = \"schemas/o.json\" }\nt = { path = \"t.txt\", schema = false }\n\
                 c = { path = \"c.txt\", schema = false }\n";
    let files = [
        ("milepost.toml", "name = \"foreign\"\n"),
        ("stages/1_all.toml", stage),
        ("filters/x.jq", "# one\n{a: 1}\n"),
        ("templates/t.txt", "Hello\n{{ i.b }}\n"),
        ("schemas/o.json", "{\"type\": \"object\"}\n"),
    ];
    let project = Project::new(&files);
    project.write("workspace/inputs/i.json", "{\"b\": 2}");
    project.run(&[]).expect(0, &["all"]);
    assert_eq!(project.read("workspace/t.txt"), "Hello\n2\n");
    assert_eq!(project.read("workspace/c.txt"), "x");
    // As Notepad saves them.
    for (path, text) in files {
        project.write(path, format!("\u{feff}{}", text.replace('\n', "\r\n")));
    }
    project.run(&[]).expect(0, &[]);
    project.run(&["-B"]).expect(0, &["all"]);
    assert_eq!(project.read("workspace/t.txt"), "Hello\n2\n");
    project.write("filters/x.jq", b"\xff\xfe{\0}\0");
    let (code, text) = project.milepost(&["plan"]);
    assert!(
        code == 4 && text.contains("it is UTF-16 text: save it as UTF-8"),
        "{text}"
    );
}

#[test]
fn null_in_a_joined_list_is_nothing() {
    let project = fixture(
        "render = \"t.txt\"",
        "i.json",
        "{\"l\": [\"a\", null, true, 1.5, [null]], \"r\": [{\"n\": null}, {\"n\": 2}]}",
    );
    project.edit("stages/1_read.toml", "o.json", "o.txt");
    project.write(
        "t.txt",
        "{{ i.l | join(', ') }}|{{ i.r | join('-', attribute='n') }}|{{ i.l[1] | string }}|{{ 'ab' | join('-') }}|{{ [] | join }}",
    );
    project.run(&[]).expect(0, &["read"]);
    assert_eq!(
        project.read("workspace/o.txt"),
        "a, , true, 1.5, [null]|-2||a-b|"
    );
}

#[test]
fn a_name_that_one_sheet_streams_has_its_value_in_all_others() {
    let records = "[{\"i\": 1, \"v\": 2.5}, {\"i\": 2, \"v\": 3.5}]";
    let project = fixture("xlsx = \"r.toml\"", "i.json", records);
    project.edit("stages/1_read.toml", "o.json", "o.xlsx");
    project.write(
        "r.toml",
        "[[sheet]]\nname = \"Summary\"\nrows = '[\"elements\", (.i | length)], [\"volume\", ([.i[].v] | add)]'\n\
         [[sheet]]\nname = \"Elements\"\nin = \"i\"\nstream = \".[]\"\ncolumns = [[\"i\", \".i\"], [\"share\", \".v / ($i | length)\"]]\n",
    );
    project.run(&[]).expect(0, &["read"]);
    let row = |a: &str, b: &str| vec![a.to_owned(), b.to_owned()];
    let summary = vec![row("'elements", "2"), row("'volume", "6")];
    let elements = vec![row("'i", "'share"), row("1", "1.25"), row("2", "1.75")];
    assert_eq!(
        xlsx::sheets(&project.bytes("workspace/o.xlsx")),
        [
            ("Summary".to_owned(), summary),
            ("Elements".to_owned(), elements)
        ]
    );
}
