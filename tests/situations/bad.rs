//! Bad input: a clear error, the exit code of the table, and nothing lost.

use super::house::House;
use super::letters::{PAGE, letters, settled};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The first stage of the main project.
fn parse() -> House {
    let house = House::new(&[]);
    house.take(&[
        "milepost.toml",
        "stages/1_parse.toml",
        "schemas",
        "rules",
        "workspace/inputs",
    ]);
    house
}

const MODEL: &str = "workspace/inputs/sample.ifc";

#[test]
fn models_that_are_none() {
    let house = parse();
    let sample = house.read(MODEL);
    house.run(&[]).expect(0, &["parse"]);
    let made = house.read("workspace/intermediate/parsed_data.json");
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
        house.write(MODEL, text);
        let ran = house.run(&[]);
        ran.expect(1, &["parse"])
            .says("inputs/sample.ifc")
            .says(said);
        // What was made before is still there, and nothing vouches for it.
        assert_eq!(house.read("workspace/intermediate/parsed_data.json"), made);
        assert!(!house.exists("workspace/stage_1_complete.json"));
    }
    house.remove(MODEL);
    house
        .run(&[])
        .expect(1, &[])
        .says("inputs/sample.ifc")
        .says("is not there");
    house.write(MODEL, sample);
    house.run(&[]).expect(0, &["parse"]);
    assert_eq!(house.read("workspace/intermediate/parsed_data.json"), made);
}

#[test]
fn a_model_from_anywhere_is_copied_into_the_inputs() {
    let house = parse();
    house.rename(MODEL, "house.ifc");
    house
        .run(&["--set", "model=nowhere.ifc"])
        .expect(2, &[])
        .says("nowhere.ifc");
    house
        .run(&["--set", "model=house.ifc"])
        .expect(0, &["parse"]);
    assert_eq!(
        house.read("workspace/inputs/house.ifc"),
        house.read("house.ifc")
    );
    house.run(&[]).expect(0, &[]);
}

/// One command that writes what it is told.
fn writer(text: &str, rest: &str) -> House {
    let stage = format!(
        "[inputs]\nin = \"inputs/in.json\"\n\n[step]\ncommand = [\"sh\", \"-c\", 'printf \"%s\" \"$1\" > \"$2\"', \"sh\", '{text}', \"{{{{ paths.made }}}}\"]\n\n[outputs]\nmade = {{ path = \"intermediate/made.json\", stream = \".elements\" }}\n{rest}"
    );
    House::new(&[
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
        let house = writer(text, rest);
        let ran = house.run(&[]);
        ran.expect(1, &["write"]).says(said);
        assert!(
            !house.exists("workspace/intermediate/made.json")
                && !house.exists("workspace/stage_1_complete.json")
        );
        let kept = house.list(".milepost/quarantine");
        let kept: Vec<&String> = kept
            .iter()
            .filter(|name| name.ends_with("made.json"))
            .collect();
        assert_eq!(kept.len(), 1, "{kept:?}");
        assert_eq!(
            house.read(&format!("workspace/.milepost/quarantine/{}", kept[0])),
            text
        );
        house.run(&[]).expect(1, &["write"]);
    }
    let house = writer(
        r#"{"elements": [{"global_id": "b"}, {"global_id": "a"}, {"global_id": "b"}]}"#,
        CONSERVE,
    );
    house.run(&[]).expect(0, &["write"]);
    assert_eq!(
        house.json("workspace/stage_1_complete.json")["element_count"],
        3
    );
}

#[test]
fn an_output_that_nothing_wrote_is_an_error() {
    let house = writer("x", "");
    house.edit("stages/1_write.toml", "> \"$2\"", "");
    house
        .run(&[])
        .expect(1, &["write"])
        .says("nothing wrote `intermediate/made.json`");
}

#[test]
fn declarations_that_cannot_be() {
    let cases = [
        (
            "intermediate/clean/person_*.json",
            "intermediate/cleaned/person_*.json",
            "stages/2_greet.toml",
            "intermediate/cleaned/person_*.json",
        ),
        (
            "outputs/page.md",
            "intermediate/clean/person_1.json",
            "stages/3_join.toml",
            "can be the same file",
        ),
        (
            "outputs/page.md",
            "../page.md",
            "stages/3_join.toml",
            "`..`",
        ),
        (
            "outputs/page.md",
            "/tmp/page.md",
            "stages/3_join.toml",
            "absolute",
        ),
        (
            "outputs/page.md",
            "project:page.md",
            "stages/3_join.toml",
            "project",
        ),
        (
            "outputs/page.md",
            "Outputs/Book.json",
            "stages/3_join.toml",
            "equal but for case",
        ),
        (
            "outputs/page.md",
            "stage_3_complete.json",
            "stages/3_join.toml",
            "checkpoint",
        ),
        (
            "outputs/page.md",
            ".milepost/page.md",
            "stages/3_join.toml",
            "Milepost's own",
        ),
        (
            "templates/page.md",
            "templates/pages.md",
            "stages/3_join.toml",
            "templates/pages.md",
        ),
        ("[outputs]", "[output]", "stages/3_join.toml", "outputs"),
    ];
    let house = settled();
    let before = house.contents();
    for (from, to, stage, said) in cases {
        let text = house.read(stage);
        house.edit(stage, from, to);
        let ran = house.run(&[]);
        ran.expect(4, &[]).says(stage).says(said);
        assert_eq!(house.contents(), before);
        house.write(stage, text);
    }
    house.rename("stages/3_join.toml", "stages/2_join.toml");
    house
        .run(&[])
        .expect(4, &[])
        .says("2_join.toml")
        .says("2_greet.toml");
    house.rename("stages/2_join.toml", "stages/3_join.toml");
    house.run(&[]).expect(0, &[]);
}

#[test]
fn an_input_that_is_a_link_out_of_the_workspace_is_refused() {
    let house = settled();
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(
        outside.path().join("secret.json"),
        r#"{"id": 2, "name": "Secret"}"#,
    )
    .unwrap();
    house.remove("workspace/inputs/person_2.json");
    std::os::unix::fs::symlink(
        outside.path().join("secret.json"),
        house.at("workspace/inputs/person_2.json"),
    )
    .unwrap();
    let ran = house.run(&[]);
    assert_eq!(ran.code, 1, "{}", ran.said);
    ran.says("inputs/person_2.json").says("symbolic link");
    assert_eq!(house.read("workspace/outputs/page.md"), PAGE);
}

#[test]
fn an_output_folder_that_is_a_link_out_of_the_workspace_is_refused() {
    let house = letters();
    let outside = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(outside.path(), house.at("workspace/outputs")).unwrap();
    let ran = house.run(&[]);
    assert_eq!(ran.code, 1, "{}", ran.said);
    ran.says("symbolic link").says("outputs/");
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
    house.remove("workspace/outputs");
    assert_eq!(house.run(&[]).code, 0);
}

#[test]
fn what_a_person_puts_into_a_path_is_one_safe_component() {
    let house = letters();
    house.write(
        "stages/1_clean.toml",
        house
            .read("stages/1_clean.toml")
            .replace("{{ person.stem }}", "{{ person.data.name }}"),
    );
    let ran = house.run(&[]);
    assert_eq!(ran.code, 4, "content is no part of a path: {}", ran.said);
}

/// A file system of its own at a folder, where that is allowed; gone with this value.
struct Mounted(PathBuf);

impl Mounted {
    fn at(folder: &Path, options: &str) -> Option<Mounted> {
        std::fs::create_dir_all(folder).unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", options, "tmpfs"])
            .arg(folder)
            .output();
        let done = mounted.is_ok_and(|output| output.status.success());
        if !done {
            eprintln!("skipped: a file system cannot be mounted here");
        }
        done.then(|| Mounted(folder.to_owned()))
    }

    fn again(&self, options: &str) {
        let done = Command::new("mount")
            .args(["-o", &format!("remount,{options}")])
            .arg(&self.0)
            .status()
            .unwrap();
        assert!(done.success());
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").args(["-l"]).arg(&self.0).status();
    }
}

#[test]
fn a_workspace_that_cannot_be_written() {
    let house = House::new(&[]);
    let Some(mounted) = Mounted::at(&house.at("workspace"), "size=4m") else {
        return;
    };
    for entry in [
        "milepost.toml",
        "stages",
        "schemas",
        "filters",
        "tools",
        "templates",
    ] {
        copy(&letters().at(entry), &house.at(entry));
    }
    house.write(
        "workspace/inputs/person_1.json",
        r#"{"id": 1, "name": "Ada"}"#,
    );
    mounted.again("ro");
    let (code, said) = house.milepost(&["run"]);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("workspace"), "{said}");
    assert!(
        said.to_lowercase().contains("read-only") || said.contains("no permission to write"),
        "{said}"
    );
    assert!(house.plan(&[]).is_some(), "a plan needs to write nothing");
    mounted.again("rw");
    assert_eq!(house.run(&[]).code, 0);
}

#[test]
fn a_full_disk_loses_nothing() {
    let house = House::new(&[]);
    let Some(mounted) = Mounted::at(&house.at("workspace"), "size=300k") else {
        return;
    };
    house.write("milepost.toml", "name = \"full\"\n");
    house.write("stages/1_fill.toml", "[each.n]\ncount = 6\n\n[step]\ncommand = [\"sh\", \"-c\", \"head -c 60000 /dev/zero | tr '\\\\0' x > $1\", \"sh\", \"{{ paths.made }}\"]\n\n[outputs]\nmade = \"outputs/{{ n }}.txt\"\n");
    let ran = house.run_unplanned(&[]);
    assert_eq!(ran.code, 1, "{}", ran.said);
    assert!(
        ran.said.contains("No space left") || ran.said.contains("exit code"),
        "{}",
        ran.said
    );
    let whole = house.list("outputs");
    assert!(!whole.is_empty() && whole.len() < 6, "{whole:?}");
    for name in &whole {
        assert_eq!(
            house.read(&format!("workspace/outputs/{name}")).len(),
            60000
        );
    }
    mounted.again("size=4m");
    let again = house.run(&[]);
    assert_eq!(
        (again.code, again.tried().len()),
        (0, 6 - whole.len()),
        "{}",
        again.said
    );
    assert_eq!(house.list("outputs").len(), 6);
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
fn last_segment(house: &House) -> String {
    let last = house.list(".milepost/journal").pop().unwrap();
    format!("workspace/.milepost/journal/{last}")
}

/// A run in which a batch failed, so that the last segment has several records.
fn failed() -> House {
    let house = settled();
    house.write("workspace/inputs/person_2.json", r#"{"id": 2}"#);
    assert_eq!(house.run(&[]).code, 1);
    house
}

#[test]
fn a_torn_record_at_the_end_of_the_journal_is_cut_and_said() {
    let house = failed();
    let segment = last_segment(&house);
    let whole = house.read(&segment);
    house.write(&segment, &whole[..whole.len() - 20]);
    house.write(
        "workspace/inputs/person_2.json",
        r#"{"id": 2, "name": "Bo"}"#,
    );
    let plan = house.plan(&[]);
    assert!(plan.is_some());
    let ran = house.run(&[]);
    ran.expect(0, &["clean/person_2"]).says("cut");
    assert_eq!(house.read("workspace/outputs/page.md"), PAGE);
}

#[test]
fn a_break_before_the_end_of_the_journal_is_an_error_and_never_repaired() {
    let house = failed();
    let segment = last_segment(&house);
    let whole = house.read(&segment);
    let lines: Vec<&str> = whole.lines().collect();
    let without_second = [&lines[..1], &lines[2..]].concat().join("\n") + "\n";
    let changed = whole.replacen("begins", "begun", 1);
    let garbage = whole.replacen("{\"timestamp\"", "{timestamp", 1);
    for text in [without_second, changed, garbage] {
        assert_ne!(text, whole);
        house.write(&segment, &text);
        let before = house.tree();
        for command in ["run", "plan"] {
            let (code, said) = house.milepost(&[command]);
            assert_eq!(code, 1, "{said}");
            assert!(said.contains("journal") && said.contains("line"), "{said}");
        }
        let own = |(name, _): &(&String, &_)| !name.ends_with("lock");
        assert_eq!(
            house
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
    house.write(&segment, &whole);
    house.run(&[]).expect(1, &["clean/person_2"]);
}

#[test]
fn a_workspace_of_a_newer_version_is_left_alone() {
    let house = settled();
    let identity = house.read("workspace/.milepost/workspace.json");
    house.edit(
        "workspace/.milepost/workspace.json",
        "\"format\": 1",
        "\"format\": 2",
    );
    let before = house.tree();
    let (code, said) = house.milepost(&["run"]);
    assert_eq!(code, 1, "{said}");
    assert!(
        said.contains("written by a newer Milepost") && said.contains("update milepost"),
        "{said}"
    );
    assert_eq!(house.tree(), before);
    house.write("workspace/.milepost/workspace.json", identity);
    let page = "workspace/manifests/clean/page_0001.sha256";
    house.edit(page, "# milepost manifest 1", "# milepost manifest 2");
    let (code, said) = house.milepost(&["run"]);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("newer Milepost"), "{said}");
}

#[test]
fn no_project_is_a_wrong_use() {
    let house = House::new(&[("workspace/inputs/x", "")]);
    let (code, said) = house.milepost(&["run"]);
    assert_eq!(code, 2, "{said}");
    assert!(
        said.contains("no `milepost.toml`") && said.contains("milepost init"),
        "{said}"
    );
}
