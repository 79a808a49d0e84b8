//! Patterns with `*`: hidden names and lock files of other programs, and outputs that match no file.

use crate::support::Project;
use serde_json::json;

/// A stage that copies each file that `pattern` matches.
fn copies(pattern: &str) -> Project {
    let stage = format!(
        "[each.f]\npath = \"{pattern}\"\n\n[step]\ncommand = \"cp {{{{ f.path }}}} {{{{ paths.copy }}}}\"\n\n[outputs]\ncopy = \"outputs/{{{{ f.stem }}}}.txt\"\n"
    );
    Project::new(&[
        ("milepost.toml", "name = \"copies\"\n"),
        ("stages/1_copy.toml", &stage),
        ("workspace/inputs/a.json", "{}"),
    ])
}

#[test]
fn hidden_names_and_lock_files_are_no_inputs() {
    for pattern in [
        "inputs/*",
        "inputs/*.*",
        "inputs/**",
        "inputs/?*",
        "inputs/[!b]*",
    ] {
        let project = copies(pattern);
        project.run(&[]).expect(0, &["copy/a"]);
        for name in [
            ".DS_Store",
            "._a.json",
            ".a.json.swp",
            ".~lock.a.json#",
            "~$a.json",
        ] {
            project.write(&format!("workspace/inputs/{name}"), "{}");
        }
        std::os::unix::fs::symlink("user@host.1", project.at("workspace/inputs/.#a.json")).unwrap();
        project.run(&[]).expect(0, &[]);
        project.write("workspace/inputs/b.json", "{}");
        let ran = project.run(&["--force"]);
        let all = ["copy/a", "copy/b"];
        let tried = if pattern == "inputs/[!b]*" {
            &all[..1]
        } else {
            &all[..]
        };
        assert_eq!(
            (ran.code, ran.tried()),
            (0, tried.iter().map(|name| (*name).to_owned()).collect()),
            "{pattern}: {}",
            ran.output
        );
    }
}

#[test]
fn a_hidden_name_is_an_input_where_the_pattern_writes_it() {
    let project = copies("inputs/.*.json");
    project.write("workspace/inputs/.b.json", "{}");
    project.run(&[]).expect(0, &["copy/.b"]);
}

/// A stage whose program writes the files that a parameter names to an output with `*`.
fn parts(output: &str) -> Project {
    let stage = format!(
        "[step]\ncommand = 'mkdir -p parts; for name in {{{{ params.names }}}}; do echo 1 > parts/$name; done'\n\n[outputs]\nparts = {output}\n"
    );
    Project::new(&[
        (
            "milepost.toml",
            "name = \"parts\"\n\n[params]\nnames = []\n",
        ),
        ("stages/1_part.toml", &stage),
        ("workspace/inputs/a", ""),
    ])
}

#[test]
fn an_output_that_matches_no_file_is_a_warning() {
    let project = parts("\"parts/*.json\"");
    let none = "output `parts`: no file matches `parts/*.json`";
    project
        .run(&["--set", "names=a.txt"])
        .expect(0, &["part"])
        .says(none);
    let ran = project.run(&["--set", "names=a.json"]);
    ran.expect(0, &["part"]);
    assert!(!ran.output.contains("no file matches"), "{}", ran.output);
    project.edit(
        "stages/1_part.toml",
        "\"parts/*.json\"",
        "{ path = \"parts/*.json\", min = 0 }",
    );
    let ran = project.run(&["--set", "names=a.txt"]);
    ran.expect(0, &["part"]);
    assert!(!ran.output.contains("no file matches"), "{}", ran.output);
}

#[test]
fn fewer_files_than_min_fail_the_batch() {
    let project = parts("{ path = \"parts/*.json\", min = 2 }");
    project
        .run(&["--set", "names=a.json"])
        .expect(1, &["part"])
        .says("output `parts`: 1 file matches `parts/*.json`, expected at least 2");
    project
        .run(&["--set", "names=[\"a.json\",\"b.json\"]"])
        .expect(0, &["part"]);
    // A hidden file that a step writes is an output.
    project
        .run(&["--set", "names=[\".a.json\",\"b.json\"]"])
        .expect(0, &["part"]);
    assert!(project.exists("workspace/parts/.a.json"));
}

#[test]
fn min_needs_a_star() {
    let project = parts("{ path = \"parts/a.json\", min = 2 }");
    let said = project.output("--json plan");
    let json: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    let problem = &json["error"]["problems"][0];
    assert_eq!(
        (
            said.code,
            &problem["file"],
            &problem["line"],
            &problem["message"]
        ),
        (
            4,
            &json!("stages/1_part.toml"),
            &json!(5),
            &json!("`min` needs an output with `*`, which stands for any number of files")
        )
    );
}

#[test]
fn two_stars_do_not_enter_hidden_folders() {
    let project = copies("inputs/**/*.json");
    for hidden in [".git", ".b"] {
        let target = project.at("nowhere");
        std::fs::create_dir_all(project.at(&format!("workspace/inputs/{hidden}"))).unwrap();
        // A look inside would refuse the dead link.
        let link = project.at(&format!("workspace/inputs/{hidden}/link"));
        std::os::unix::fs::symlink(&target, link).unwrap();
        project.write(&format!("workspace/inputs/{hidden}/c.json"), "{}");
    }
    project.run(&[]).expect(0, &["copy/a"]);
    project.edit(
        "stages/1_copy.toml",
        "inputs/**/*.json",
        "inputs/**/.b/*.json",
    );
    project.run(&[]).expect(0, &["copy/c"]);
}
