//! Declarations and settings: what is changed runs what depends on it, or only has it revalidated.

use super::letters::{PAGE, SCHEMA, completed};

const GREETED: [&str; 4] = [
    "greet/person_1",
    "greet/person_10",
    "greet/person_2",
    "join",
];
const CLEANED: [&str; 3] = ["clean/person_1", "clean/person_10", "clean/person_2"];

#[test]
fn a_comment_and_a_description_change_nothing() {
    let project = completed();
    for stage in ["1_clean", "2_greet", "3_join"] {
        let path = format!("stages/{stage}.toml");
        project.write(
            &path,
            format!(
                "# Why it is so.\ndescription = \"Says more\"\n{}",
                project.read(&path)
            ),
        );
    }
    project.run(&[]).expect(0, &[]);
}

#[test]
fn how_a_stage_is_run_changes_nothing() {
    let project = completed();
    project.write(
        "stages/2_greet.toml",
        format!(
            "{}\n[policy]\nconcurrency = 2\ntimeout = \"1m\"\non_failure = \"continue\"\n",
            project.read("stages/2_greet.toml")
        ),
    );
    project.run(&["--jobs", "2"]).expect(0, &[]);
}

#[test]
fn a_filter_changed_runs_what_uses_it() {
    let project = completed();
    project.edit("filters/clean.jq", "ascii_upcase", "ascii_downcase");
    project
        .run(&[])
        .expect(0, &[&CLEANED[..], &GREETED[..]].concat());
    assert_eq!(
        project.read("workspace/outputs/page.md"),
        PAGE.to_lowercase().replace("dear", "Dear")
    );
}

#[test]
fn an_included_filter_is_a_file_of_what_includes_it() {
    let project = completed();
    let shout = "# What names are written in.\ndef shout: ascii_upcase; # capitals";
    project.write("filters/shared/shout.jq", shout);
    project.write("filters/names.jq", "include \"shared/shout\";");
    project.edit("filters/clean.jq", "ascii_upcase", "shout");
    let own = project.read("filters/clean.jq");
    project.write("filters/clean.jq", format!("include \"names\";\n{own}"));
    project.run(&[]).expect(0, &CLEANED);
    project.run(&[]).expect(0, &[]);
    project.edit("filters/shared/shout.jq", "ascii_upcase", "ascii_downcase");
    let why = project.milepost(&["why", "clean"]).1;
    assert!(why.contains("filters/shared/shout.jq changed"), "{why}");
    let why = project
        .milepost(&["why", "project:filters/shared/shout.jq"])
        .1;
    assert!(why.contains("clean"), "{why}");
    project
        .run(&[])
        .expect(0, &[&CLEANED[..], &GREETED[..]].concat());
    assert_eq!(
        project.read("workspace/outputs/page.md"),
        PAGE.to_lowercase().replace("dear", "Dear")
    );
}

#[test]
fn a_filter_that_gives_the_same_runs_and_stops_there() {
    let project = completed();
    project.edit(
        "filters/clean.jq",
        ".person.data",
        "# The person's name in capitals.\n.person.data",
    );
    project.run(&[]).expect(0, &CLEANED);
}

#[test]
fn a_template_changed_runs_what_renders_it() {
    let project = completed();
    project.edit("templates/page.md", "* ", "- ");
    project.run(&[]).expect(0, &["join"]);
    assert_eq!(
        project.read("workspace/outputs/page.md"),
        PAGE.replace("* ", "- ")
    );
}

#[test]
fn a_parameter_set_runs_what_mentions_it_and_is_kept() {
    let project = completed();
    project.run(&["--set", "greeting=Hi"]).expect(0, &GREETED);
    project.run(&[]).expect(0, &[]);
    assert_eq!(
        project.read("workspace/outputs/page.md"),
        PAGE.replace("Dear", "Hi")
    );
    project.edit(
        "milepost.toml",
        "greeting = \"Dear\"",
        "greeting = \"Dear\"\nunused = 1",
    );
    project.run(&["--set", "unused=2"]).expect(0, &[]);
}

#[test]
fn a_declared_variable_changed_runs_what_sees_it() {
    let mut project = completed();
    project.env("OTHER", "x");
    project.run(&[]).expect(0, &[]);
    project.env("TONE", "warm");
    project.run(&[]).expect(0, &GREETED);
    assert_eq!(
        project.read("workspace/outputs/page.md"),
        PAGE.replace("plain", "warm")
    );
}

#[test]
fn a_secret_is_in_no_file() {
    let mut project = completed();
    project.env("TONE", "s3cret-of-nobody");
    project.edit("tools/greet.sh", "\"$TONE\"", "\"${#TONE}\"");
    project.run(&[]).expect(0, &GREETED);
    for entry in walkdir::WalkDir::new(project.at(""))
        .into_iter()
        .filter_map(Result::ok)
    {
        if entry.file_type().is_file() {
            let bytes = std::fs::read(entry.path()).unwrap();
            assert!(
                !String::from_utf8_lossy(&bytes).contains("s3cret"),
                "{}",
                entry.path().display()
            );
        }
    }
}

#[test]
fn under_a_stricter_schema_only_what_fails_it_runs() {
    let project = completed();
    project.write(
        "workspace/inputs/person_2.json",
        r#"{"id": 2, "name": "Bartholomew"}"#,
    );
    project
        .run(&[])
        .expect(0, &["clean/person_2", "greet/person_2", "join"]);
    project.write("schemas/clean.schema.json", SCHEMA.replace("40", "5"));
    let ran = project.run(&[]);
    ran.expect(1, &["clean/person_2"])
        .says("clean/person_2")
        .says("/name");
    assert_eq!(ran.judged(), ["clean/person_1", "clean/person_10"]);
    assert!(!project.exists("workspace/stage_1_complete.json"));
    // What it made before is no output any more: it is kept aside, with why.
    assert!(!project.exists("workspace/intermediate/clean/person_2.json"));
    let kept = project.list(".milepost/quarantine");
    let old = kept
        .iter()
        .find(|path| path.ends_with("-retired/intermediate/clean/person_2.json"));
    let old = old.unwrap_or_else(|| panic!("{kept:?}"));
    let old = &format!("workspace/.milepost/quarantine/{old}");
    assert!(project.read(old).contains("BARTHOLOMEW"));
    let why = old.replace("intermediate/clean/person_2.json", "WHY.txt");
    assert!(
        project.read(&why).contains("/name"),
        "{}",
        project.read(&why)
    );
    project.run(&[]).expect(1, &["clean/person_2"]);
    project.edit("filters/clean.jq", "ascii_upcase", "ascii_upcase[:5]");
    project.run(&[]).expect(
        0,
        &[
            "clean/person_1",
            "clean/person_10",
            "clean/person_2",
            "greet/person_2",
            "join",
        ],
    );
}

#[test]
fn a_check_added_is_judged_without_a_run() {
    let project = completed();
    project.write(
        "stages/1_clean.toml",
        format!(
            "{}\n[[check]]\ntest = '.clean.id > 0'\n",
            project.read("stages/1_clean.toml")
        ),
    );
    let ran = project.run(&[]);
    ran.expect(0, &[]);
    assert_eq!(ran.judged(), CLEANED);
    project.edit("stages/1_clean.toml", "> 0", "> 1");
    let ran = project.run(&[]);
    ran.expect(1, &["clean/person_1"])
        .says("CHECK_FAILED")
        .says("`.clean.id > 1` is not true");
}

#[test]
fn a_stage_inserted_before_others_moves_their_numbers_and_runs_alone() {
    let project = completed();
    for (from, to) in [("3_join", "4_join"), ("2_greet", "3_greet")] {
        project.rename(&format!("stages/{from}.toml"), &format!("stages/{to}.toml"));
    }
    project.write("stages/2_count.toml", "[inputs]\npeople = \"intermediate/clean/*.json\"\n\n[step]\njq = '.people | length'\n\n[outputs]\ncount = { path = \"outputs/count.json\", schema = false }\n");
    project.run(&[]).expect(0, &["count"]);
    assert_eq!(project.read("workspace/outputs/count.json").trim(), "3");
    let stages: Vec<String> = (1..=5)
        .map(|number| format!("workspace/stage_{number}_complete.json"))
        .filter(|path| project.exists(path))
        .map(|path| {
            format!(
                "{} {}",
                project.json(&path)["number"],
                project.json(&path)["stage"]
            )
        })
        .collect();
    assert_eq!(
        stages,
        ["1 \"clean\"", "2 \"count\"", "3 \"greet\"", "4 \"join\""]
    );
    project.run(&[]).expect(0, &[]);
}

#[test]
fn a_stage_taken_out_has_its_outputs_retired() {
    let project = completed();
    project.write("stages/4_count.toml", "[inputs]\npeople = \"intermediate/clean/*.json\"\n\n[step]\njq = '.people | length'\n\n[outputs]\ncount = { path = \"outputs/count.json\", schema = false }\n");
    project.run(&[]).expect(0, &["count"]);
    project.remove("stages/4_count.toml");
    let ran = project.run(&[]);
    ran.expect(0, &[]);
    assert_eq!(ran.retired(), ["outputs/count.json"]);
    assert!(
        !project.exists("workspace/outputs/count.json")
            && !project.exists("workspace/stage_4_complete.json")
            && !project.exists("workspace/manifests/count")
    );
    assert_eq!(project.quarantine().len(), 1);
    project.run(&[]).expect(0, &[]);
}

#[test]
fn a_stage_renamed_is_another_stage() {
    let project = completed();
    project.rename("stages/2_greet.toml", "stages/2_welcome.toml");
    let ran = project.run(&[]);
    assert_eq!(ran.code, 0, "{}", ran.output);
    // It makes the same files, so what reads them stays.
    assert_eq!(
        ran.tried(),
        ["welcome/person_1", "welcome/person_10", "welcome/person_2"]
    );
    assert_eq!(
        project.json("workspace/stage_2_complete.json")["stage"],
        "welcome"
    );
    assert_eq!(project.read("workspace/outputs/page.md"), PAGE);
    assert!(!project.exists("workspace/manifests/greet"));
    project.run(&[]).expect(0, &[]);
}

#[test]
fn an_output_moved_leaves_nothing_behind() {
    let project = completed();
    project.edit(
        "stages/3_join.toml",
        "outputs/page.md",
        "outputs/letters.md",
    );
    project.run(&[]).expect(0, &["join"]);
    assert_eq!(project.list("outputs"), ["book.json", "letters.md"]);
    assert_eq!(project.quarantine().len(), 1, "{:?}", project.quarantine());
    project.run(&[]).expect(0, &[]);
}

#[test]
fn another_key_makes_other_batches_of_the_same_files() {
    let project = completed();
    project.edit(
        "stages/1_clean.toml",
        "path = \"inputs/person_*.json\"",
        "path = \"inputs/person_*.json\"\nkey = '\"p\\(.number)\"'",
    );
    let ran = project.run(&[]);
    ran.expect(0, &["clean/p1", "clean/p10", "clean/p2"]);
    assert_eq!(project.read("workspace/outputs/page.md"), PAGE);
    project.run(&[]).expect(0, &[]);
}
