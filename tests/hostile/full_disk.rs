//! A full disk is reported as a full disk, whatever met it, and loses nothing.

use crate::situations::mounted::Mounted;
use crate::support::Project;

/// A workspace of so many KiB with every kind of writing: our own, a library's, and programs that ignore their errors.
fn fixture() -> Project {
    let project = Project::new(&[
        ("milepost.toml", "name = \"full\"\n"),
        (
            "stages/1_all.toml",
            r#"[inputs]
text = "inputs/text.txt"

[[step]]
copy = "text"
out = "copied"

[[step]]
jq = "[range(400) | {a: ., b: \"xxxxxxxxxxxxxxxxxxxxxxxx\"}]"
out = "rows"

[[step]]
command = ["sh", "-c", 'cat "$1" "$1" > "$2" 2>/dev/null || true', "sh", "{{ paths.rows }}", "{{ paths.joined }}"]
out = "joined"

[[step]]
render = "templates/page.md"
out = "page"

[[step]]
pdf = "page"
out = "printed"

[[step]]
xlsx = "templates/book.toml"
out = "book"

[outputs]
copied = "outputs/copied.txt"
rows = { path = "outputs/rows.json", schema = "schemas/rows.json" }
joined = { path = "outputs/joined.ndjson", schema = false }
page = "outputs/page.md"
printed = "outputs/page.pdf"
book = "outputs/book.xlsx"
"#,
        ),
        ("schemas/rows.json", "{\"type\": \"array\"}"),
        (
            "templates/page.md",
            "# Rows\n\n{% for row in rows %}- {{ row.b }}\n{% endfor %}",
        ),
        (
            "templates/book.toml",
            "[[sheet]]\nname = \"Rows\"\nrows = \"$rows[]\"\ncolumns = [[\"a\", \".a\"]]\n",
        ),
    ]);
    project.write("workspace/keep", "");
    project
}

#[test]
fn every_step_says_that_the_disk_is_full() {
    let project = fixture();
    let folder = project.at("workspace");
    let Some(disk) = Mounted::at(&folder, &["-t", "tmpfs", "-o", "size=4m", "tmpfs"]) else {
        return;
    };
    project.write("workspace/inputs/text.txt", "x".repeat(30_000));
    let (code, said) = project.milepost(&["run"]);
    assert_eq!(code, 0, "{said}");
    drop(disk);
    let mut full = 0;
    for size in (60..520).step_by(20) {
        let options = format!("size={size}k");
        let disk = Mounted::at(&folder, &["-t", "tmpfs", "-o", &options, "tmpfs"]).unwrap();
        project.write("workspace/inputs/text.txt", "x".repeat(30_000));
        let (code, said) = project.milepost(&["run"]);
        if code != 0 {
            full += 1;
            assert!(said.contains("no space left on "), "{size} KiB: {said}");
            assert!(
                said.contains("make room, then run again to continue"),
                "{size} KiB: {said}"
            );
        }
        disk.again("size=4m");
        let (code, said) = project.milepost(&["run"]);
        assert_eq!(code, 0, "{size} KiB, with room: {said}");
        let (code, said) = project.milepost(&["verify", "--deep"]);
        assert_eq!(code, 0, "{size} KiB, with room: {said}");
        drop(disk);
    }
    assert!(full >= 5, "{full}");
}
