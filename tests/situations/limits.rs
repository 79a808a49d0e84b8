//! Time, the wish to stop, and failures: what ends midway, what counts, and what is left for the next run.

use super::house::{House, code, said};
use serde_json::json;
use std::io::Read as _;
use std::process::{Command, Stdio};

/// A stage with these steps and one output `made`.
fn stage(steps: &str) -> House {
    let text = format!("{steps}\n[outputs]\nmade = \"outputs/made.txt\"\n");
    House::new(&[
        ("milepost.toml", "name = \"limits\"\n"),
        ("stages/1_make.toml", &text),
    ])
}

/// A program that never gives a value.
const NEVER: &str = "jq = 'last(range(1e18)) | tostring'";

#[test]
fn a_program_of_jq_that_never_ends_is_ended_by_its_time() {
    let house = stage(&format!("[step]\n{NEVER}\ntimeout = \"300ms\"\n"));
    house
        .run(&[])
        .expect(1, &["make"])
        .says("`jq` took longer than 0.3 s");
    house.edit("stages/1_make.toml", "1e18", "3");
    house.run(&[]).expect(0, &["make"]);
    assert_eq!(house.read("workspace/outputs/made.txt"), "2");
}

#[test]
fn a_program_of_jq_that_never_ends_is_ended_by_the_time_of_its_stage() {
    let house = stage(&format!("[step]\n{NEVER}\n[policy]\ntimeout = \"300ms\"\n"));
    house
        .run(&[])
        .expect(1, &["make"])
        .says("the time of stage `make` is over");
}

#[test]
fn ctrl_c_ends_work_inside_and_the_next_run_goes_on() {
    let house = stage(&format!(
        "[[step]]\ncommand = [\"sh\", \"-c\", 'echo here > \"$1\"', \"sh\", \"project:here\"]\nout = \"told\"\n[[step]]\n{NEVER}\nout = \"made\"\n"
    ));
    let made = Command::new("mkfifo").arg(house.at("here")).status();
    assert!(made.unwrap().success());
    // A pipe cannot be an input: the program names it by its place.
    house.edit(
        "stages/1_make.toml",
        "project:here",
        &house.at("here").display().to_string(),
    );
    let run = house
        .command(&["run"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut word = String::new();
    let mut pipe = std::fs::File::open(house.at("here")).unwrap();
    pipe.read_to_string(&mut word).unwrap();
    let sent = Command::new("kill")
        .args(["-INT", &run.id().to_string()])
        .status();
    assert!(sent.unwrap().success());
    let output = run.wait_with_output().unwrap();
    assert_eq!(code(&output), 130, "{}", said(&output));
    assert!(!house.exists("workspace/stage_1_complete.json"));
    let kinds = |kind: &str| {
        let records = house.records();
        records
            .iter()
            .filter(|record| record["kind"] == kind)
            .count()
    };
    assert_eq!((kinds("batch_cancelled"), kinds("batch_failed")), (1, 0));
    house.edit("stages/1_make.toml", "1e18", "3");
    house.write(
        "stages/1_make.toml",
        house
            .read("stages/1_make.toml")
            .replace("echo here > \"$1\"", "true"),
    );
    house.run(&[]).expect(0, &["make"]);
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
            let house = stage(&format!(
                "[step]\ncommand = [\"sh\", \"-c\", 'set -- \"$(echo \"$1\" | tr \"*\" 1)\"; {made}', \"sh\", \"{{{{ paths.made }}}}\"]\n"
            ));
            house.edit("stages/1_make.toml", "outputs/made.txt", path);
            house
                .run(&[])
                .expect(1, &["make"])
                .says("an output is a plain file");
            assert_eq!(house.list("outputs"), Vec::<String>::new(), "{made} {path}");
            house.edit("stages/1_make.toml", made, "echo done > \"$1\"");
            house.run(&[]).expect(0, &["make"]);
        }
    }
}

/// Five batches, each with a file that it needs.
fn five(policy: &str) -> House {
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
    let house = House::new(&[
        ("milepost.toml", "name = \"five\"\n"),
        ("stages/1_copy.toml", &text),
        ("schemas/number.schema.json", r#"{"type": "number"}"#),
    ]);
    for n in 1..=5 {
        house.write(&format!("workspace/inputs/{n}.json"), n.to_string());
    }
    house
}

#[test]
fn an_input_that_is_not_there_stops_the_stage_as_a_failure_does() {
    let house = five("");
    house.remove("workspace/inputs/2.json");
    let ran = house.run(&[]);
    ran.expect(1, &["copy/1"])
        .says("`inputs/2.json` is not there");
    assert_eq!(ran.batches("batch_failed"), ["copy/2"]);
    house.write("workspace/inputs/2.json", "\"two\"");
    let ran = house.run(&[]);
    ran.expect(1, &["copy/2"]).says("inputs/2.json");
    house.write("workspace/inputs/2.json", "2");
    house
        .run(&[])
        .expect(0, &["copy/2", "copy/3", "copy/4", "copy/5"]);
}

#[test]
fn inputs_that_are_not_there_count_as_failures() {
    let house = five("[policy]\non_failure = \"continue\"\nmax_failures = 2\n");
    house.remove("workspace/inputs/2.json");
    house.write("workspace/inputs/3.json", "\"three\"");
    house.run(&[]).expect(1, &["copy/1", "copy/3"]);
    let house = five("[policy]\non_failure = \"continue\"\n");
    house.remove("workspace/inputs/2.json");
    house.write("workspace/inputs/3.json", "\"three\"");
    house
        .run(&[])
        .expect(3, &["copy/1", "copy/3", "copy/4", "copy/5"]);
    assert_eq!(
        house.json("workspace/copy_progress.json")["failed_batches"],
        json!(["2", "3"])
    );
}

#[test]
fn a_batch_may_make_what_another_of_its_group_makes_no_more() {
    let house = House::new(&[
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
    house.run(&[]).expect(0, &["cut/a", "cut/a_b"]);
    house.write("workspace/inputs/a.txt", "1\n");
    house.write("workspace/inputs/a_b.txt", "1\n2\n");
    house.run(&[]).expect(0, &["cut/a", "cut/a_b"]);
    assert_eq!(house.list("outputs"), ["a_1.txt", "a_b_1.txt", "a_b_2.txt"]);
    assert_eq!(house.read("workspace/outputs/a_b_1.txt"), "a_b\n");
    house.run(&[]).expect(0, &[]);
}

#[test]
fn the_number_of_batches_may_be_a_parameter() {
    let house = House::new(&[
        ("milepost.toml", "name = \"count\"\n[params]\nmost = 2\n"),
        (
            "stages/1_each.toml",
            "[each.n]\ncount = \"{{ params.most }}\"\n[step]\njq = '.n'\n[outputs]\nmade = { path = \"outputs/{{ n }}.json\", schema = false }\n",
        ),
    ]);
    house.run(&[]).expect(0, &["each/1", "each/2"]);
    house.run(&["--set", "most=3"]).expect(0, &["each/3"]);
    let ran = house.run(&["--set", "most=1"]);
    ran.expect(0, &[]);
    assert_eq!(ran.retired(), ["outputs/2.json", "outputs/3.json"]);
}

/// Three stages in a row.
fn row() -> House {
    House::new(&[
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
    let house = row();
    house.run(&[]).expect(0, &["a", "b", "c"]);
    house.write("workspace/inputs/in.txt", "y");
    house
        .run(&["--force", "c"])
        .expect(3, &[])
        .says("stage `a` is no longer up to date");
    house.run(&["a", "c"]).expect(3, &["a"]);
    house.run(&[]).expect(0, &["b", "c"]);
    assert_eq!(house.read("workspace/outputs/c.txt"), "Y");
}

#[test]
fn a_schema_is_read_inside_the_project_only() {
    let house = row();
    house.edit(
        "stages/1_a.toml",
        "a = \"intermediate/a.txt\"",
        "a = { path = \"intermediate/a.txt\", schema = \"schemas/a.schema.json\" }",
    );
    house.write(
        "schemas/a.schema.json",
        r#"{"items": {"$ref": "linked.json"}}"#,
    );
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("x.json"), "{}").unwrap();
    std::os::unix::fs::symlink(
        outside.path().join("x.json"),
        house.at("schemas/linked.json"),
    )
    .unwrap();
    let (code, said) = house.milepost(&["plan"]);
    assert_eq!(code, 4, "{said}");
    assert!(
        said.contains("leaves the project by a symbolic link"),
        "{said}"
    );
}
