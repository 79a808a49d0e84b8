//! Names of files: those that no record can hold, and those that some file systems take for one.

use crate::support::{Output, Project, pipe};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;

/// Each note becomes a page, and a stage beside it counts all notes.
fn notes(names: &[&str]) -> Project {
    let project = Project::new(&[
        ("milepost.toml", "name = \"notes\"\n"),
        (
            "stages/1_page.toml",
            "[each.note]\npath = \"inputs/*.txt\"\n\n[step]\nrender = \"page.md\"\n\n[outputs]\npage = \"outputs/{{ note.stem }}.md\"\n",
        ),
        (
            "stages/2_count.toml",
            "[inputs]\nnotes = \"inputs/*.txt\"\n\n[step]\nrender = \"count.md\"\n\n[outputs]\ncount = \"counted/all.md\"\n",
        ),
        ("page.md", "{{ note.data }}\n"),
        ("count.md", "{{ notes | length }}\n"),
    ]);
    for name in names {
        project.write(&format!("workspace/inputs/{name}"), *name);
    }
    project
}

/// Writes an input whose name is bytes.
fn write_odd(project: &Project, name: &[u8]) {
    let path = project.at("workspace/inputs").join(OsStr::from_bytes(name));
    std::fs::write(path, "odd").unwrap();
}

/// Asserts that a command ends with this code and prints each of the texts.
fn says(project: &Project, command: &str, code: i32, texts: &[&str]) -> Output {
    let output = project.output(command);
    let text = output.text();
    assert_eq!(output.code, code, "{command}\n{text}");
    for expected in texts {
        assert!(text.contains(expected), "{command}: {expected}\n{text}");
    }
    output
}

#[test]
#[cfg_attr(target_os = "macos", ignore = "macOS has no such names or files")]
fn files_that_no_record_can_hold_fail_their_own_batches() {
    let project = notes(&["a.txt", "b.txt"]);
    for name in [b"odd_\xff.txt".as_slice(), b"odd_\n.txt", b"odd_\\.txt"] {
        write_odd(&project, name);
    }
    pipe(&project.at("workspace/inputs/pipe.txt"));
    symlink("nowhere", project.at("workspace/inputs/dead.txt")).unwrap();
    symlink("/etc/hostname", project.at("workspace/inputs/out.txt")).unwrap();
    let all = [
        r"the name of `inputs/odd_\xff.txt` cannot be written in a record",
        r"the name of `inputs/odd_\n.txt` cannot be written in a record",
        r"the name of `inputs/odd_\\.txt` cannot be written in a record",
        "`inputs/pipe.txt`: expected a regular file, found a named pipe",
        "`inputs/dead.txt` is a symbolic link to `nowhere`, where nothing is",
        "`inputs/out.txt` leaves the workspace by a symbolic link",
    ];
    for (command, code) in [
        ("plan", 1),
        ("status", 0),
        ("why page", 0),
        ("why count", 0),
        ("run", 1),
        ("status", 0),
        ("plan", 1),
        ("run", 1),
    ] {
        says(&project, command, code, &all);
    }
    assert_eq!(project.read("workspace/outputs/a.md"), "a.txt\n");
    assert_eq!(project.read("workspace/outputs/b.md"), "b.txt\n");
    assert_eq!(
        std::fs::read_dir(project.at("workspace/outputs"))
            .unwrap()
            .count(),
        2
    );
    assert!(!project.exists("workspace/counted"));
    let why = says(&project, r"why page/odd_\xff", 0, &all[..1]);
    assert!(why.text().contains("cannot run"), "{}", why.text());

    for entry in std::fs::read_dir(project.at("workspace/inputs")).unwrap() {
        let path = entry.unwrap().path();
        if !path.ends_with("a.txt") && !path.ends_with("b.txt") {
            std::fs::remove_file(path).unwrap();
        }
    }
    says(&project, "run", 0, &["page", "count"]);
    assert_eq!(project.read("workspace/counted/all.md"), "2\n");
    says(&project, "run", 0, &["up to date"]);
}

#[test]
fn an_input_that_becomes_a_pipe_keeps_its_outputs() {
    let project = notes(&["a.txt", "b.txt"]);
    says(&project, "run", 0, &[]);
    project.remove("workspace/inputs/b.txt");
    pipe(&project.at("workspace/inputs/b.txt"));
    says(
        &project,
        "run",
        1,
        &["`inputs/b.txt`: expected a regular file"],
    );
    assert_eq!(project.read("workspace/outputs/b.md"), "b.txt\n");
    project.remove("workspace/inputs/b.txt");
    project.write("workspace/inputs/b.txt", "b.txt");
    says(&project, "run", 0, &[]);
}

#[test]
#[cfg_attr(target_os = "macos", ignore = "macOS has no such names or files")]
fn an_optional_list_with_a_file_that_cannot_be_used_is_not_empty() {
    let project = notes(&["a.txt"]);
    project.edit(
        "stages/2_count.toml",
        "\"inputs/*.txt\"",
        "{ path = \"inputs/*.txt\", optional = true }",
    );
    write_odd(&project, b"\xff.txt");
    let output = says(&project, "run --keep-going", 1, &[r"inputs/\xff.txt"]);
    assert!(!project.exists("workspace/counted"), "{}", output.text());
}

#[test]
#[cfg_attr(target_os = "macos", ignore = "macOS has no such names or files")]
fn an_escaped_name_takes_no_batch_from_another_file() {
    let project = notes(&["a.txt"]);
    project.edit(
        "stages/1_page.toml",
        "path = \"inputs/*.txt\"",
        "path = \"inputs/*.txt\"\nkey = '.stem | explode | map(select(. < 123 and . > 96)) | implode | .[:1]'",
    );
    for name in [b"a\xff.txt".as_slice(), b"a\n.txt"] {
        write_odd(&project, name);
    }
    let all = [r"`inputs/a\xff.txt`", r"`inputs/a\n.txt`"];
    says(&project, "plan", 1, &all);
    says(&project, "run", 1, &all);
    assert_eq!(project.read("workspace/outputs/a.md"), "a.txt\n");
}

#[test]
fn a_folder_that_leads_out_stops_no_other() {
    let project = notes(&[]);
    for stage in ["1_page", "2_count"] {
        let stage = format!("stages/{stage}.toml");
        project.edit(&stage, "inputs/*.txt", "inputs/*/*.txt");
    }
    project.write("workspace/inputs/good/a.txt", "a");
    symlink("/etc", project.at("workspace/inputs/evil")).unwrap();
    let why = ["`inputs/evil` leaves the workspace by a symbolic link, to /etc"];
    for (command, code) in [("plan", 1), ("run", 1), ("status", 0)] {
        says(&project, command, code, &why);
    }
    assert_eq!(project.read("workspace/outputs/a.md"), "a\n");
}

#[test]
#[cfg_attr(target_os = "macos", ignore = "macOS has no such names or files")]
fn a_placeholder_stands_for_a_file_that_cannot_be_used() {
    let project = notes(&["a.txt"]);
    let stage = project.read("stages/1_page.toml");
    project.write(
        "stages/1_page.toml",
        format!("[policy]\non_failure = \"continue\"\nplaceholder = '.message'\n\n{stage}"),
    );
    project.remove("stages/2_count.toml");
    write_odd(&project, b"b\xff.txt");
    let output = project.output("run");
    let text = output.text();
    assert!(text.contains(r"`inputs/b\xff.txt`"), "{text}");
    assert_eq!(project.read("workspace/outputs/a.md"), "a.txt\n");
    let pages = std::fs::read_dir(project.at("workspace/outputs")).unwrap();
    assert_eq!(pages.count(), 2, "{text}");
}

#[test]
fn a_value_that_is_too_long_for_a_name_stops_no_other_batch() {
    let project = Project::new(&[
        ("milepost.toml", "name = \"keys\"\n"),
        (
            "stages/1_make.toml",
            "[each.x]\nfrom = \"inputs/list.json\"\nselect = '.[]'\n\n[step]\njq = '$x'\n\n[outputs]\nmade = { path = \"outputs/{{ x }}.json\", schema = false }\n",
        ),
    ]);
    let long = "x".repeat(300);
    let list = serde_json::json!(["a", long, "b"]).to_string();
    project.write("workspace/inputs/list.json", list);
    for _ in 0..2 {
        says(&project, "run", 0, &[]);
    }
    for made in ["a", "b"] {
        let text = project.read(&format!("workspace/outputs/{made}.json"));
        assert_eq!(text, format!("{made:?}\n"));
    }
    assert_eq!(project.list("outputs").len(), 3);
}

const CASE: &str = "`inputs/Plan.txt` and `inputs/plan.txt` differ only in letter case; rename one";
const CASE_OUT: &str = "`outputs/Plan.md` and `outputs/plan.md` differ only in letter case; change the values that the outputs are named after";
const NORMALIZATION: &str = r"`inputs/u\u0308.txt` and `inputs/\u00fc.txt` differ only in Unicode normalization; rename one";

#[test]
#[cfg_attr(target_os = "macos", ignore = "macOS has no such names or files")]
fn names_that_collide_elsewhere_are_warned_about() {
    let project = notes(&["Plan.txt", "plan.txt"]);
    let inputs =
        format!("warning: stage `page`: some file systems take inputs for one file: {CASE}");
    let outputs =
        format!("warning: stage `page`: some file systems take outputs for one file: {CASE_OUT}");
    let counted =
        format!("warning: stage `count`: some file systems take inputs for one file: {CASE}");
    let all = [&*inputs, &*outputs, &*counted];
    for command in ["plan", "run", "status", "plan", "run"] {
        let text = says(&project, command, 0, &all).text();
        for warning in all {
            assert_eq!(text.matches(warning).count(), 1, "{command}\n{text}");
        }
    }
    assert_eq!(project.read("workspace/outputs/Plan.md"), "Plan.txt\n");
    assert_eq!(project.read("workspace/outputs/plan.md"), "plan.txt\n");

    project.remove("workspace/inputs/Plan.txt");
    let text = says(&project, "run", 0, &[]).text();
    assert!(!text.contains("file systems"), "{text}");
    says(&project, "run", 0, &["up to date"]);
}

#[test]
#[cfg_attr(target_os = "macos", ignore = "macOS has no such names or files")]
fn names_that_look_the_same_are_escaped() {
    let project = notes(&["\u{fc}.txt", "u\u{308}.txt"]);
    for command in ["plan", "run", "status"] {
        says(&project, command, 0, &[NORMALIZATION]);
    }
    let plan = serde_json::from_str::<serde_json::Value>(&project.output("plan --json").out);
    let found = &plan.unwrap()["stages"][1]["collisions"];
    let pair = serde_json::json!({ "a": "inputs/u\u{308}.txt", "b": "inputs/\u{fc}.txt", "by": "normalization" });
    assert_eq!(
        *found,
        serde_json::json!({ "inputs": [pair], "outputs": [] })
    );
}

#[test]
fn keys_that_collide_are_warned_about() {
    let project = Project::new(&[
        ("milepost.toml", "name = \"keys\"\n"),
        (
            "stages/1_make.toml",
            "[each.x]\nfrom = \"inputs/list.json\"\nselect = '.[]'\n\n[step]\njq = '$x'\n\n[outputs]\nmade = { path = \"outputs/{{ x }}.json\", schema = false }\n",
        ),
        (
            "workspace/inputs/list.json",
            r#"["Ann", "ann", "ANN", "Bo", "bo", "Cy", "cy"]"#,
        ),
    ]);
    let warning = "warning: stage `make`: some file systems take outputs for one file: `outputs/ANN.json` and `outputs/Ann.json` differ only in letter case, `outputs/ANN.json` and `outputs/ann.json` differ only in letter case, `outputs/Bo.json` and `outputs/bo.json` differ only in letter case, 1 more pair; change";
    for command in ["plan", "run", "status", "run"] {
        says(&project, command, 0, &[warning]);
    }
}
