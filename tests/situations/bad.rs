//! Bad input: a clear error, the exit code of the table, and nothing lost.

use super::letters::{PAGE, completed, letters};
use super::mounted::Mounted;
use crate::support::Project;
use crate::support::required::require;
use serde_json::json;
use std::path::Path;
use std::process::Command;

/// The first stage of the main project.
fn parse() -> Project {
    let project = Project::new(&[]);
    project.take(&[
        "milepost.toml",
        "stages/1_parse.toml",
        "schemas",
        "rules",
        "workspace/inputs",
    ]);
    project
}

const MODEL: &str = "workspace/inputs/sample.ifc";

#[test]
fn models_that_are_none() {
    let project = parse();
    let sample = project.read(MODEL);
    project.run(&[]).expect(0, &["parse"]);
    let made = project.read("workspace/intermediate/parsed_data.json");
    let half = &sample[..sample.len() / 2];
    let cases = [
        (String::new(), "is empty"),
        (
            "Dear reader,\nthis is no model.\n".to_owned(),
            "ISO-10303-21",
        ),
        (half[..half.rfind('\n').unwrap()].to_owned(), "cut off"),
        (half.to_owned(), "cut off"),
        (
            sample.replace("FILE_SCHEMA(('IFC4'))", "FILE_SCHEMA(('IFC9'))"),
            "IFC9",
        ),
    ];
    for (text, said) in cases {
        project.write(MODEL, text);
        let ran = project.run(&[]);
        ran.expect(1, &["parse"])
            .says("inputs/sample.ifc")
            .says(said);
        // What was made before is still there, and nothing vouches for it.
        assert_eq!(
            project.read("workspace/intermediate/parsed_data.json"),
            made
        );
        assert!(!project.exists("workspace/stage_1_complete.json"));
    }
    project.remove(MODEL);
    project
        .run(&[])
        .expect(1, &[])
        .says("inputs/sample.ifc")
        .says("does not exist");
    project.write(MODEL, sample);
    project.run(&[]).expect(0, &["parse"]);
    assert_eq!(
        project.read("workspace/intermediate/parsed_data.json"),
        made
    );
}

/// One command that writes what it is told.
fn writer(text: &str, rest: &str) -> Project {
    let stage = format!(
        "[inputs]\nin = \"inputs/in.json\"\n\n[step]\ncommand = [\"sh\", \"-c\", 'printf \"%s\" \"$1\" > \"$2\"', \"sh\", '{text}', \"{{{{ paths.made }}}}\"]\n\n[outputs]\nmade = {{ path = \"intermediate/made.json\", stream = \".elements\" }}\n{rest}"
    );
    Project::new(&[
        ("milepost.toml", "name = \"writer\"\n"),
        ("stages/1_write.toml", &stage),
        (
            "schemas/made.schema.json",
            r#"{"type": "object", "required": ["elements"], "properties": {"elements": {"type": "array", "items": {"title": "element", "type": "object", "required": ["global_id"]}}}}"#,
        ),
        (
            "workspace/inputs/in.json",
            r#"{"elements": [{"global_id": "a"}, {"global_id": "b"}, {"global_id": "b"}]}"#,
        ),
    ])
}

const CONSERVE: &str =
    "\n[conserve]\nin = \".in.elements[].global_id\"\nout = \".made.elements[].global_id\"\n";

#[test]
fn an_output_that_is_not_valid_is_in_quarantine_and_never_at_its_place() {
    let cases = [
        (r#"{"elements": [{"global_id": "a"}, {"glo"#, "", "EOF"),
        (
            r#"{"elements": [{"global_id": "a"}, {"guid": "b"}]}"#,
            "",
            "Missing global_id in element at /elements/1",
        ),
        (
            r#"{"elements": [{"global_id": "a"}, {"global_id": "b"}]}"#,
            CONSERVE,
            "lost: b",
        ),
        (
            r#"{"elements": [{"global_id": "a"}, {"global_id": "b"}, {"global_id": "b"}, {"global_id": "b"}]}"#,
            CONSERVE,
            "doubled: b",
        ),
        (
            r#"{"elements": [{"global_id": "a"}, {"global_id": "b"}, {"global_id": "b"}, {"global_id": "c"}]}"#,
            CONSERVE,
            "invented: c",
        ),
    ];
    for (text, rest, said) in cases {
        let project = writer(text, rest);
        let ran = project.run(&[]);
        ran.expect(1, &["write"]).says(said);
        assert!(
            !project.exists("workspace/intermediate/made.json")
                && !project.exists("workspace/stage_1_complete.json")
        );
        let kept = project.list(".milepost/quarantine");
        let kept: Vec<&String> = kept
            .iter()
            .filter(|name| name.ends_with("made.json"))
            .collect();
        assert_eq!(kept.len(), 1, "{kept:?}");
        assert_eq!(
            project.read(&format!("workspace/.milepost/quarantine/{}", kept[0])),
            text
        );
        project.run(&[]).expect(1, &["write"]);
    }
    let project = writer(
        r#"{"elements": [{"global_id": "b"}, {"global_id": "a"}, {"global_id": "b"}]}"#,
        CONSERVE,
    );
    project.run(&[]).expect(0, &["write"]);
    assert_eq!(
        project.json("workspace/stage_1_complete.json")["element_count"],
        3
    );
}

#[test]
fn an_output_that_nothing_wrote_is_an_error() {
    let project = writer("x", "");
    project.edit("stages/1_write.toml", "> \"$2\"", "");
    project
        .run(&[])
        .expect(1, &["write"])
        .says("no step wrote `intermediate/made.json`");
}

#[test]
fn an_input_that_is_a_link_out_of_the_workspace_is_refused() {
    let project = completed();
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(
        outside.path().join("secret.json"),
        r#"{"id": 2, "name": "Secret"}"#,
    )
    .unwrap();
    project.remove("workspace/inputs/person_2.json");
    std::os::unix::fs::symlink(
        outside.path().join("secret.json"),
        project.at("workspace/inputs/person_2.json"),
    )
    .unwrap();
    let ran = project.run(&[]);
    assert_eq!(ran.code, 1, "{}", ran.output);
    ran.says("inputs/person_2.json").says("symbolic link");
    assert_eq!(project.read("workspace/outputs/page.md"), PAGE);
}

#[test]
fn an_output_folder_that_is_a_link_out_of_the_workspace_is_refused() {
    let project = letters();
    let outside = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(outside.path(), project.at("workspace/outputs")).unwrap();
    let ran = project.run(&[]);
    assert_eq!(ran.code, 1, "{}", ran.output);
    ran.says("symbolic link").says("outputs/");
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
    project.remove("workspace/outputs");
    assert_eq!(project.run(&[]).code, 0);
}

/// A stage that writes the file that each of two rows names.
fn two_rows(paths: [&str; 2]) -> Project {
    let rows = json!([{"id": "1", "to": paths[0]}, {"id": "2", "to": paths[1]}]);
    Project::new(&[
        ("milepost.toml", "name = \"rows\"\n"),
        (
            "stages/1_write.toml",
            "[each.r]\nfrom = \"inputs/rows.json\"\nselect = '.[]'\nkey = '.id'\n\n[step]\njq = '$r.id'\n\n[outputs]\nmade = { path = \"outputs/{{ r.to }}/made.json\", schema = false }\n",
        ),
        ("workspace/inputs/rows.json", &rows.to_string()),
    ])
}

#[test]
fn two_names_of_one_folder_of_outputs_are_refused() {
    let project = two_rows(["a", "b"]);
    project.write("workspace/outputs/a/kept", "");
    std::os::unix::fs::symlink("a", project.at("workspace/outputs/b")).unwrap();
    let ran = project.run(&["--keep-going"]);
    assert_eq!(ran.code, 1, "{}", ran.output);
    ran.says("write/2 failed: PATH: output `made`: `outputs/b/made.json`: `outputs/b` is a symbolic link, so another output may be the same file: replace it with a folder");
    assert_eq!(project.json("workspace/outputs/a/made.json"), "1");
    std::fs::remove_file(project.at("workspace/outputs/b")).unwrap();
    project.run(&[]).expect(0, &["write/2"]);
}

#[test]
fn an_output_in_another_workspace_is_refused() {
    let project = two_rows(["a", "b"]);
    project.run(&["--workspace", "workspace/outputs/a"]);
    assert!(project.exists("workspace/outputs/a/.milepost/workspace.json"));
    let ran = project.run(&[]);
    assert_eq!(ran.code, 1, "{}", ran.output);
    ran.says("write/1 failed: PATH: output `made`: `outputs/a/made.json`: `outputs/a` is another workspace, whose outputs may be the same files: choose another path");
}

#[test]
fn a_workspace_that_cannot_be_written() {
    let project = Project::new(&[]);
    let mounted = require!(Mounted::at(
        &project.at("workspace"),
        &["-t", "tmpfs", "-o", "size=4m", "tmpfs"],
    ));
    for entry in [
        "milepost.toml",
        "stages",
        "schemas",
        "filters",
        "tools",
        "templates",
    ] {
        copy(&letters().at(entry), &project.at(entry));
    }
    project.write(
        "workspace/inputs/person_1.json",
        r#"{"id": 1, "name": "Ada"}"#,
    );
    mounted.again("ro");
    let (code, said) = project.milepost(&["run"]);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("workspace"), "{said}");
    assert!(
        said.to_lowercase().contains("read-only") || said.contains("no permission to write"),
        "{said}"
    );
    assert!(project.plan(&[]).is_some(), "a plan needs to write nothing");
    mounted.again("rw");
    assert_eq!(project.run(&[]).code, 0);
}

fn copy(from: &Path, to: &Path) {
    let done = Command::new("cp")
        .arg("-r")
        .args([from, to])
        .status()
        .unwrap();
    assert!(done.success());
}

/// The last segment of the journal.
fn last_segment(project: &Project) -> String {
    let last = project.list(".milepost/journal").pop().unwrap();
    format!("workspace/.milepost/journal/{last}")
}

/// A run in which a batch failed, so that the last segment has several records.
fn failed() -> Project {
    let project = completed();
    project.write("workspace/inputs/person_2.json", r#"{"id": 2}"#);
    assert_eq!(project.run(&[]).code, 1);
    project
}

#[test]
fn a_torn_record_at_the_end_of_the_journal_is_cut_and_said() {
    let project = failed();
    let segment = last_segment(&project);
    let whole = project.read(&segment);
    project.write(&segment, &whole[..whole.len() - 20]);
    project.write(
        "workspace/inputs/person_2.json",
        r#"{"id": 2, "name": "Bo"}"#,
    );
    let plan = project.plan(&[]);
    assert!(plan.is_some());
    let ran = project.run(&[]);
    ran.expect(0, &["clean/person_2"])
        .says("recovered: removed an incomplete record of ");
    assert_eq!(project.read("workspace/outputs/page.md"), PAGE);
}

#[test]
fn a_break_before_the_end_of_the_journal_is_an_error_and_never_repaired() {
    let project = failed();
    let segment = last_segment(&project);
    let whole = project.read(&segment);
    let lines: Vec<&str> = whole.split_inclusive('\n').collect();
    let is_seal = |line: &&str| line.contains("\"kind\":\"sealed\"");
    let seal = lines.iter().rposition(is_seal).unwrap();
    let (before, since) = (lines[..seal].concat(), lines[seal..].concat());
    let without_second = lines[seal].to_owned() + &lines[seal + 2..].concat();
    let changed = since.replacen("run started", "run begun", 1);
    let garbage = since.replacen("{\"timestamp\"", "{timestamp", 1);
    for text in [without_second, changed, garbage] {
        assert_ne!(text, since);
        let text = before.clone() + &text;
        project.write(&segment, &text);
        let before = project.tree();
        for command in ["run", "plan"] {
            let (code, said) = project.milepost(&[command]);
            assert_eq!(code, 1, "{said}");
            assert!(said.contains("journal") && said.contains("line"), "{said}");
        }
        let own = |(name, _): &(&String, &_)| !name.ends_with("lock");
        assert_eq!(
            project
                .tree()
                .iter()
                .filter(own)
                .map(|(name, found)| (name, found.4))
                .collect::<Vec<_>>(),
            before
                .iter()
                .filter(own)
                .map(|(name, found)| (name, found.4))
                .collect::<Vec<_>>()
        );
    }
    project.write(&segment, &whole);
    project.run(&[]).expect(1, &["clean/person_2"]);
}

#[test]
fn a_workspace_of_a_newer_version_is_left_alone() {
    let project = completed();
    let identity = project.read("workspace/.milepost/workspace.json");
    project.edit(
        "workspace/.milepost/workspace.json",
        "\"format\": 2",
        "\"format\": 3",
    );
    let before = project.tree();
    let (code, said) = project.milepost(&["run"]);
    assert_eq!(code, 1, "{said}");
    assert!(
        said.contains("written by a newer Milepost") && said.contains("update milepost"),
        "{said}"
    );
    assert_eq!(project.tree(), before);
    project.write("workspace/.milepost/workspace.json", identity);
    let page = "workspace/manifests/clean/page_0001.sha256";
    project.edit(page, "# milepost manifest 1", "# milepost manifest 2");
    let (code, said) = project.milepost(&["run"]);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("newer Milepost"), "{said}");
}

#[test]
fn no_project_is_a_wrong_use() {
    let project = Project::new(&[("workspace/inputs/x", "")]);
    let (code, said) = project.milepost(&["run"]);
    assert_eq!(code, 2, "{said}");
    assert!(
        said.contains("no `milepost.toml`") && said.contains("milepost init"),
        "{said}"
    );
}
