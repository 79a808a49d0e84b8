//! Time, the wish to stop, and failures: what ends midway, what counts, and what is left for the next run.

use crate::support::{Project, exit_code, pipe, printed};
use serde_json::json;
use std::io::Read as _;
use std::process::{Command, Stdio};

/// A stage with these steps and one output `made`.
fn stage(steps: &str) -> Project {
    let text = format!("{steps}\n[outputs]\nmade = \"outputs/made.txt\"\n");
    Project::new(&[
        ("milepost.toml", "name = \"limits\"\n"),
        ("stages/1_make.toml", &text),
    ])
}

/// A program that never gives a value.
const NEVER: &str = "jq = 'last(range(1e18)) | tostring'";

#[test]
fn a_program_of_jq_that_never_ends_is_ended_by_its_time() {
    let project = stage(&format!("[step]\n{NEVER}\ntimeout = \"300ms\"\n"));
    project
        .run(&[])
        .expect(1, &["make"])
        .says("`jq` took longer than 0.3 s");
    project.edit("stages/1_make.toml", "1e18", "3");
    project.run(&[]).expect(0, &["make"]);
    assert_eq!(project.read("workspace/outputs/made.txt"), "2");
}

#[test]
fn a_program_of_jq_that_never_ends_is_ended_by_the_time_of_its_stage() {
    let project = stage(&format!("[step]\n{NEVER}\n[policy]\ntimeout = \"300ms\"\n"));
    project
        .run(&[])
        .expect(1, &["make"])
        .says("stage `make` exceeded its time limit");
}

#[test]
fn ctrl_c_ends_work_inside_and_the_next_run_continues() {
    let project = stage(&format!(
        "[[step]]\ncommand = [\"sh\", \"-c\", 'echo here > \"$1\"', \"sh\", \"project:here\"]\nout = \"told\"\n[[step]]\n{NEVER}\nout = \"made\"\n"
    ));
    pipe(&project.at("here"));
    // A pipe cannot be an input: the program names it by its place.
    project.edit(
        "stages/1_make.toml",
        "project:here",
        &project.at("here").display().to_string(),
    );
    let run = project
        .command(&["run"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut word = String::new();
    let mut pipe = std::fs::File::open(project.at("here")).unwrap();
    pipe.read_to_string(&mut word).unwrap();
    let sent = Command::new("kill")
        .args(["-INT", &run.id().to_string()])
        .status();
    assert!(sent.unwrap().success());
    let output = run.wait_with_output().unwrap();
    assert_eq!(exit_code(&output), 130, "{}", printed(&output));
    assert!(!project.exists("workspace/stage_1_complete.json"));
    let kinds = |kind: &str| {
        let records = project.records();
        records
            .iter()
            .filter(|record| record["kind"] == kind)
            .count()
    };
    assert_eq!((kinds("batch_cancelled"), kinds("batch_failed")), (1, 0));
    project.edit("stages/1_make.toml", "1e18", "3");
    project.write(
        "stages/1_make.toml",
        project
            .read("stages/1_make.toml")
            .replace("echo here > \"$1\"", "true"),
    );
    project.run(&[]).expect(0, &["make"]);
}

#[test]
fn what_is_no_file_is_no_output() {
    for made in [
        "ln -s /etc/hostname \"$1\"",
        "mkdir \"$1\"",
        "mkfifo \"$1\"",
        "ln -s /nowhere \"$1\"",
    ] {
        for path in ["outputs/made.txt", "outputs/made_*.txt"] {
            let project = stage(&format!(
                "[step]\ncommand = [\"sh\", \"-c\", 'set -- \"$(echo \"$1\" | tr \"*\" 1)\"; {made}', \"sh\", \"{{{{ paths.made }}}}\"]\n"
            ));
            project.edit("stages/1_make.toml", "outputs/made.txt", path);
            project
                .run(&[])
                .expect(1, &["make"])
                .says("an output is a regular file");
            assert_eq!(
                project.list("outputs"),
                Vec::<String>::new(),
                "{made} {path}"
            );
            project.edit("stages/1_make.toml", made, "echo done > \"$1\"");
            project.run(&[]).expect(0, &["make"]);
        }
    }
}

/// Five batches, each with a file that it needs.
fn five(policy: &str) -> Project {
    let text = format!(
        r#"
[each.n]
count = 5
[inputs]
number = {{ path = "inputs/{{{{ n }}}}.json", schema = "schemas/number.schema.json" }}
[step]
copy = "number"
[outputs]
made = {{ path = "outputs/{{{{ n }}}}.json", schema = false }}
{policy}"#
    );
    let project = Project::new(&[
        ("milepost.toml", "name = \"five\"\n"),
        ("stages/1_copy.toml", &text),
        ("schemas/number.schema.json", r#"{"type": "number"}"#),
    ]);
    for n in 1..=5 {
        project.write(&format!("workspace/inputs/{n}.json"), n.to_string());
    }
    project
}

#[test]
fn an_input_that_is_not_there_stops_the_stage_as_a_failure_does() {
    let project = five("");
    project.remove("workspace/inputs/2.json");
    let ran = project.run(&[]);
    ran.expect(1, &["copy/1"])
        .says("`inputs/2.json` does not exist");
    assert_eq!(ran.batches("batch_failed"), ["copy/2"]);
    project.write("workspace/inputs/2.json", "\"two\"");
    let ran = project.run(&[]);
    ran.expect(1, &["copy/2"]).says("inputs/2.json");
    project.write("workspace/inputs/2.json", "2");
    project
        .run(&[])
        .expect(0, &["copy/2", "copy/3", "copy/4", "copy/5"]);
}

#[test]
fn inputs_that_are_not_there_count_as_failures() {
    let project = five("[policy]\non_failure = \"continue\"\nmax_failures = 2\n");
    project.remove("workspace/inputs/2.json");
    project.write("workspace/inputs/3.json", "\"three\"");
    project.run(&[]).expect(1, &["copy/1", "copy/3"]);
    let project = five("[policy]\non_failure = \"continue\"\n");
    project.remove("workspace/inputs/2.json");
    project.write("workspace/inputs/3.json", "\"three\"");
    project
        .run(&[])
        .expect(3, &["copy/1", "copy/3", "copy/4", "copy/5"]);
    assert_eq!(
        project.json("workspace/copy_progress.json")["failed_batches"],
        json!(["2", "3"])
    );
}

#[test]
fn a_batch_may_make_what_another_of_its_group_makes_no_more() {
    let project = Project::new(&[
        ("milepost.toml", "name = \"move\"\n"),
        (
            "stages/1_cut.toml",
            r#"
[each.list]
path = "inputs/*.txt"
[inputs]
names = "inputs/{{ list.stem }}.txt"
[step]
command = ["sh", "-c", 'while read -r name; do echo "$2" > "$(echo "$3" | sed "s/\*/$name/")"; done < "$1"', "sh", "{{ paths.names }}", "{{ list.stem }}", "{{ paths.made }}"]
[outputs]
made = "outputs/{{ list.stem }}_*.txt"
[policy]
concurrency = 2
"#,
        ),
        ("workspace/inputs/a.txt", "1\nb_1\n"),
        ("workspace/inputs/a_b.txt", "2\n"),
    ]);
    project.run(&[]).expect(0, &["cut/a", "cut/a_b"]);
    project.write("workspace/inputs/a.txt", "1\n");
    project.write("workspace/inputs/a_b.txt", "1\n2\n");
    project.run(&[]).expect(0, &["cut/a", "cut/a_b"]);
    assert_eq!(
        project.list("outputs"),
        ["a_1.txt", "a_b_1.txt", "a_b_2.txt"]
    );
    assert_eq!(project.read("workspace/outputs/a_b_1.txt"), "a_b\n");
    project.run(&[]).expect(0, &[]);
}

#[test]
fn the_number_of_batches_may_be_a_parameter() {
    let project = Project::new(&[
        ("milepost.toml", "name = \"count\"\n[params]\nmost = 2\n"),
        (
            "stages/1_each.toml",
            "[each.n]\ncount = \"{{ params.most }}\"\n[step]\njq = '.n'\n[outputs]\nmade = { path = \"outputs/{{ n }}.json\", schema = false }\n",
        ),
    ]);
    project.run(&[]).expect(0, &["each/1", "each/2"]);
    project.run(&["--set", "most=3"]).expect(0, &["each/3"]);
    let ran = project.run(&["--set", "most=1"]);
    ran.expect(0, &[]);
    assert_eq!(ran.retired(), ["outputs/2.json", "outputs/3.json"]);
}

/// Three stages in a row.
fn row() -> Project {
    Project::new(&[
        ("milepost.toml", "name = \"row\"\n"),
        (
            "stages/1_a.toml",
            "[inputs]\nin = \"inputs/in.txt\"\n[step]\ncopy = \"in\"\n[outputs]\na = \"intermediate/a.txt\"\n",
        ),
        (
            "stages/2_b.toml",
            "[inputs]\na = \"intermediate/a.txt\"\n[step]\njq = '.a | ascii_upcase'\n[outputs]\nb = \"intermediate/b.txt\"\n",
        ),
        (
            "stages/3_c.toml",
            "[inputs]\nb = \"intermediate/b.txt\"\n[step]\ncopy = \"b\"\n[outputs]\nc = \"outputs/c.txt\"\n",
        ),
        ("workspace/inputs/in.txt", "x"),
    ])
}

#[test]
fn a_stage_does_not_begin_over_what_is_out_of_date_further_up() {
    let project = row();
    project.run(&[]).expect(0, &["a", "b", "c"]);
    project.write("workspace/inputs/in.txt", "y");
    project
        .run(&["--force", "c"])
        .expect(3, &[])
        .says("stage `a` is out of date");
    project.run(&["a", "c"]).expect(3, &["a"]);
    project.run(&[]).expect(0, &["b", "c"]);
    assert_eq!(project.read("workspace/outputs/c.txt"), "Y");
}

#[test]
fn a_schema_is_read_inside_the_project_only() {
    let project = row();
    project.edit(
        "stages/1_a.toml",
        "a = \"intermediate/a.txt\"",
        "a = { path = \"intermediate/a.txt\", schema = \"schemas/a.schema.json\" }",
    );
    project.write(
        "schemas/a.schema.json",
        r#"{"items": {"$ref": "linked.json"}}"#,
    );
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("x.json"), "{}").unwrap();
    std::os::unix::fs::symlink(
        outside.path().join("x.json"),
        project.at("schemas/linked.json"),
    )
    .unwrap();
    let (code, said) = project.milepost(&["plan"]);
    assert_eq!(code, 4, "{said}");
    assert!(
        said.contains("leaves the project by a symbolic link"),
        "{said}"
    );
}
