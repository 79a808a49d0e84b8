//! What `{{ }}` renders is one literal path: a name is no pattern, and no value reaches Milepost's own files.

use crate::support::Project;
use serde_json::json;

/// Names that patterns would take for others.
const NAMES: [&str; 6] = ["[ab]", "a", "a[1]", "a1", "comment_*", "{a,b}"];

/// A project with a text for each name, and a note beside each.
fn texts(inputs: &str) -> Project {
    let stage = format!(
        "[each.f]\npath = \"inputs/*.txt\"\n\n[inputs]\n{inputs}\n\n[step]\njq = '{{d: $d, n: $n}}'\n\n[outputs]\nmade = {{ path = \"outputs/{{{{ f.stem }}}}.json\", schema = false }}\n"
    );
    let project = Project::new(&[
        ("milepost.toml", "name = \"texts\"\n"),
        ("stages/1_work.toml", &stage),
    ]);
    for name in NAMES {
        project.write(
            &format!("workspace/inputs/{name}.txt"),
            format!("text of {name}"),
        );
        project.write(
            &format!("workspace/notes/{name}_1.txt"),
            format!("note of {name}"),
        );
    }
    project
}

/// The output of a file.
fn output(name: &str) -> String {
    match name {
        "comment_*" => "comment__~fe42d9ff0242f0773bc246db".to_owned(),
        name => name.to_owned(),
    }
}

#[test]
fn the_batch_of_a_file_reads_this_file() {
    let project = texts("d = \"{{ f.path }}\"\nn = \"notes/{{ f.stem }}_1.txt\"");
    project.rename(
        "workspace/notes/comment_*_1.txt",
        "workspace/notes/comment__~fe42d9ff0242f0773bc246db_1.txt",
    );
    let ran = project.run(&[]);
    assert_eq!((ran.code, ran.tried().len()), (0, 6), "{}", ran.output);
    for name in NAMES {
        assert_eq!(
            project.json(&format!("workspace/outputs/{}.json", output(name))),
            json!({"d": format!("text of {name}"), "n": format!("note of {name}")}),
        );
    }
    project.run(&[]).expect(0, &[]);
    project.write("workspace/inputs/a[1].txt", "changed");
    project.run(&[]).expect(0, &["work/a[1]"]);
}

#[test]
fn a_value_in_a_pattern_stands_for_itself() {
    let project = texts("d = \"{{ f.path }}\"\nn = \"notes/{{ f.stem }}_*.txt\"");
    project.remove("workspace/inputs/comment_*.txt");
    let ran = project.run(&[]);
    assert_eq!((ran.code, ran.tried().len()), (0, 5), "{}", ran.output);
    for name in NAMES.iter().filter(|name| **name != "comment_*") {
        assert_eq!(
            project.json(&format!("workspace/outputs/{name}.json"))["n"],
            json!([format!("note of {name}")]),
        );
    }
    project.write("workspace/notes/[ab]_2.txt", "second");
    project.run(&[]).expect(0, &["work/[ab]"]);
    project.run(&[]).expect(0, &[]);
}

#[test]
fn outputs_with_a_star_are_found_beside_brackets() {
    let project = Project::new(&[
        ("milepost.toml", "name = \"stars\"\n"),
        (
            "stages/1_work.toml",
            "[each.f]\npath = \"inputs/*.txt\"\n\n[inputs]\nd = \"{{ f.path }}\"\n\n[step]\ncommand = [\"sh\", \"-c\", 'echo 1 > \"outputs/$1_x.txt\"; echo 2 > \"outputs/$1_y.txt\"', \"sh\", \"{{ f.stem }}\", \"{{ paths.made }}\"]\n\n[outputs]\nmade = { path = \"outputs/{{ f.stem }}_*.txt\", schema = false }\n",
        ),
        ("workspace/inputs/a[1].txt", ""),
        ("workspace/inputs/{b}.txt", ""),
    ]);
    project.run(&[]).expect(0, &["work/a[1]", "work/{b}"]);
    for name in ["a[1]_x", "a[1]_y", "{b}_x", "{b}_y"] {
        assert!(
            project.exists(&format!("workspace/outputs/{name}.txt")),
            "{name}"
        );
    }
    project.run(&[]).expect(0, &[]);
}

/// A stage that reads the file that each row names, after a run.
fn named() -> Project {
    let project = Project::new(&[
        ("milepost.toml", "name = \"named\"\n"),
        (
            "stages/1_work.toml",
            "[each.r]\nfrom = \"inputs/rows.json\"\nselect = '.[]'\nkey = '.id'\n\n[inputs]\nd = { path = \"{{ r.file }}\", format = \"text\" }\n\n[step]\njq = '$d'\n\n[outputs]\nmade = { path = \"outputs/{{ r.id }}.json\", schema = false }\n",
        ),
        (
            "workspace/inputs/rows.json",
            r#"[{"id": "1", "file": "inputs/a.txt"}]"#,
        ),
        ("workspace/inputs/a.txt", "a"),
    ]);
    project.run(&[]).expect(0, &["work/1"]);
    project.write("workspace/.milepost/mcp-token", "token");
    project
}

/// Runs with another file in the row, which fails.
fn fails_with(project: &Project, path: &str, says: &str) {
    let rows = json!([{"id": "1", "file": path}]);
    project.write("workspace/inputs/rows.json", rows.to_string());
    let ran = project.run(&[]);
    assert_eq!(ran.code, 1, "{path}: {}", ran.output);
    ran.says(says);
    assert_eq!(
        project.json("workspace/outputs/1.json"),
        json!("a"),
        "{path}"
    );
}

#[test]
fn a_value_of_a_row_reaches_no_other_file() {
    let project = named();
    for (path, says) in [
        ("inputs/*.txt", "`inputs/*.txt` does not exist"),
        ("inputs/[a].txt", "`inputs/[a].txt` does not exist"),
        (
            ".milepost/mcp-token",
            "`.milepost/mcp-token` is Milepost's own folder, which stages neither read nor write",
        ),
        (".milepost/*", "is Milepost's own folder"),
        (".MILEPOST/mcp-token", "is Milepost's own folder"),
        (
            "project:workspace/.milepost/mcp-token",
            "is Milepost's own folder",
        ),
        (
            "manifests/work/page_0001.sha256",
            "is the folder of the manifests",
        ),
        ("stage_1_complete.json", "is a checkpoint"),
        ("project:workspace/stage_1_complete.json", "is a checkpoint"),
        ("project:other/stage_1_complete.json", "is a checkpoint"),
        (
            "project:workspace/manifests/work/page_0001.sha256",
            "is a manifest",
        ),
    ] {
        fails_with(&project, path, says);
    }
}

#[test]
fn a_link_to_milepost_s_own_files_is_refused() {
    let project = named();
    for target in [
        ".milepost/mcp-token",
        "stage_1_complete.json",
        "manifests/work/page_0001.sha256",
    ] {
        for path in ["inputs/link.txt", "project:workspace/inputs/link.txt"] {
            let rows = json!([{"id": "1", "file": "inputs/a.txt"}]);
            project.write("workspace/inputs/rows.json", rows.to_string());
            assert_eq!(project.run(&[]).code, 0);
            assert!(project.exists(&format!("workspace/{target}")), "{target}");
            let link = project.at("workspace/inputs/link.txt");
            std::os::unix::fs::symlink(format!("../{target}"), &link).unwrap();
            let says = format!("`{path}` leads by a symbolic link to");
            fails_with(&project, path, &says);
            std::fs::remove_file(link).unwrap();
        }
    }
}

#[test]
fn a_pattern_matches_no_file_of_milepost_s_own() {
    let project = Project::new(&[
        (
            "milepost.toml",
            "name = \"wide\"\n\n[params]\nwide = \"**/*.json\"\n",
        ),
        (
            "stages/1_work.toml",
            "[inputs]\nall = \"{{ params.wide }}\"\n\n[step]\njq = '$all | tostring'\n\n[outputs]\nmade = { path = \"results/made.txt\", schema = false }\n",
        ),
        ("workspace/a.json", "1"),
        ("workspace/b/c.json", "2"),
        ("workspace/manifests/x/y.json", "3"),
    ]);
    project.run(&[]).expect(0, &["work"]);
    assert_eq!(project.read("workspace/results/made.txt"), "[1,2]");
    // Now the workspace has a checkpoint, an identity and a manifest.
    project.run(&[]).expect(0, &[]);
}

#[test]
fn a_parameter_that_is_a_file_is_one_file() {
    let project = Project::new(&[
        (
            "milepost.toml",
            "name = \"file\"\n\n[params]\nfirst = { file = \"inputs/first.txt\" }\nsecond = { file = \"inputs/second.txt\" }\n",
        ),
        (
            "stages/1_work.toml",
            "[inputs]\na = \"{{ params.first }}\"\nb = \"{{ params.second }}\"\n\n[step]\njq = '[$a, $b]'\n\n[outputs]\nmade = { path = \"outputs/made.json\", schema = false }\n",
        ),
        ("workspace/inputs/a[1].txt", "in the workspace"),
        ("workspace/inputs/second.txt", "second"),
        ("x/b[1].txt", "from outside"),
    ]);
    let ran = project.run(&[
        "--set",
        "first=inputs/a[1].txt",
        "--set",
        "second=x/b[1].txt",
    ]);
    assert_eq!(ran.code, 0, "{}", ran.output);
    assert_eq!(
        project.json("workspace/outputs/made.json"),
        json!(["in the workspace", "from outside"])
    );
    assert!(project.exists("workspace/inputs/b[1].txt"));
}

#[test]
fn two_parameters_with_one_file_name_have_two_files() {
    let project = Project::new(&[
        (
            "milepost.toml",
            "name = \"file\"\n\n[params]\nfirst = { file = \"inputs/first.txt\" }\nsecond = { file = \"inputs/second.txt\" }\n",
        ),
        (
            "stages/1_work.toml",
            "[inputs]\na = \"{{ params.first }}\"\nb = \"{{ params.second }}\"\n\n[step]\njq = '[$a, $b]'\n\n[outputs]\nmade = { path = \"outputs/made.json\", schema = false }\n",
        ),
        ("x/rows.txt", "x"),
        ("y/rows.txt", "y"),
        ("y/first.txt", "z"),
    ]);
    let made = || project.json("workspace/outputs/made.json");
    let ran = project.run(&["--set", "first=x/rows.txt", "--set", "second=y/rows.txt"]);
    assert_eq!((ran.code, made()), (0, json!(["x", "y"])), "{}", ran.output);
    assert_eq!(project.read("workspace/inputs/second/rows.txt"), "y");
    // The other way round, each keeps its place.
    let ran = project.run(&["--set", "second=x/rows.txt", "--set", "first=y/rows.txt"]);
    assert_eq!((ran.code, made()), (0, json!(["y", "x"])), "{}", ran.output);
    assert_eq!(project.read("workspace/inputs/second/rows.txt"), "x");
    // The default of another parameter is its own, too.
    let ran = project.run(&["--set", "second=y/first.txt"]);
    assert_eq!((ran.code, made()), (0, json!(["y", "z"])), "{}", ran.output);
    assert!(!project.exists("workspace/inputs/first.txt"));
}

#[test]
fn a_declaration_that_reads_milepost_s_own_files_is_wrong() {
    for path in [
        ".milepost/mcp-token",
        "stage_1_complete.json",
        "manifests/work/*.sha256",
        "project:x/.milepost/answers/*",
        "project:workspace/stage_1_complete.json",
    ] {
        let project = Project::new(&[
            ("milepost.toml", "name = \"own\"\n"),
            (
                "stages/2_work.toml",
                &format!(
                    "[inputs]\nall = {{ path = \"{path}\", format = \"text\" }}\n\n[step]\njq = '$all'\n\n[outputs]\nmade = \"results/made.txt\"\n"
                ),
            ),
        ]);
        let ran = project.run_unplanned(&[]);
        assert_eq!(ran.code, 4, "{path}: {}", ran.output);
        ran.says("a stage cannot read");
    }
}
