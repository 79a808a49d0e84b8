//! A full disk is reported as a full disk, whatever met it, and loses nothing.

use crate::situations::mounted::Mounted;
use crate::support::Project;
use crate::support::required::require;
use milepost_core::base::digest::Digest;
use milepost_core::model::call::SentCall;
use milepost_core::model::money::NanoUsd;
use milepost_store::store::calls::{self, CallLog};
use milepost_store::store::disk::Disk;
use milepost_store::store::layout::Layout;

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
    let disk = require!(Mounted::at(
        &folder,
        &["-t", "tmpfs", "-o", "size=4m", "tmpfs"]
    ));
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
                said.contains("free space, then run again to continue"),
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

/// A request that could not be recorded leaves no half line before the next one: what the workspace has spent stays known.
#[test]
fn a_call_after_a_full_disk_is_recorded_on_a_line_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let small = ["-t", "tmpfs", "-o", "size=20k", "tmpfs"];
    let disk = require!(Mounted::at(folder.path(), &small));
    let layout = Layout::new(folder.path());
    let mut log = CallLog::new(&Disk::real(), &layout, "01A");
    let sent = SentCall {
        // A line of three pages: the second one fits in part.
        stage: "s".repeat(9_000),
        batch: "b".to_owned(),
        attempt: 1,
        agent: "api".to_owned(),
        provider: "openai gpt".to_owned(),
        model: "gpt".to_owned(),
        asked: Digest::of("asked"),
        request: Digest::of("{}"),
        questions: 1,
        likely_input: 10,
        most_input: 0,
        most_output: 20,
        reserved: Some(NanoUsd(7)),
        batched: false,
    };
    let now = jiff::Timestamp::from_second(1).unwrap();
    log.sent(now, &sent, b"{}").unwrap();
    let refused = log.sent(now, &sent, b"{}").unwrap_err().to_string();
    assert!(refused.contains("no space left on "), "{refused}");
    disk.again("size=4m");
    log.sent(now, &sent, b"{}").unwrap();
    let spent = calls::spent(&layout, "").unwrap();
    assert_eq!((spent.calls, spent.cost), (2, NanoUsd(14)));
}
