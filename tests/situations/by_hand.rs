//! What a person wrote is kept: accepted and modified outputs, files in Milepost's places, edited checkpoints and progress files.

use super::letters::{completed, letters};
use crate::support::Project;
use milepost_core::base::digest::Digest;
use serde_json::{Value, json};

const PATH: &str = "intermediate/letters/person_2.txt";
const EDIT: &str = "Dear Bo, as I said on the phone\n";

/// A completed project with one letter that a person modified and accepted.
fn accepted() -> Project {
    let project = completed();
    edit(&project);
    accept(&project, "greet");
    project
}

fn edit(project: &Project) {
    project.write(&format!("workspace/{PATH}"), EDIT);
}

#[track_caller]
fn accept(project: &Project, target: &str) {
    let (code, said) = project.milepost(&["accept", target, "--why", "by phone", "--who", "Ada"]);
    assert_eq!(code, 0, "{said}");
}

/// The files of this text, below the workspace.
#[track_caller]
fn kept(project: &Project, text: &str) -> Vec<String> {
    let root = project.at("workspace");
    let all = walkdir::WalkDir::new(&root).sort_by_file_name();
    let all = all.into_iter().map(Result::unwrap);
    all.filter(|entry| entry.file_type().is_file())
        .filter(|entry| std::fs::read(entry.path()).unwrap() == text.as_bytes())
        .map(|entry| {
            entry
                .path()
                .strip_prefix(&root)
                .unwrap()
                .display()
                .to_string()
        })
        .collect()
}

/// The path in the store of accepted content.
fn stored(text: &str) -> String {
    let hex = Digest::of(text).hex();
    format!(".milepost/accepted/{}/{hex}", &hex[..2])
}

#[track_caller]
fn in_quarantine(project: &Project, said: &str, path: &str, text: &str) {
    let found = kept(project, text);
    let place = found
        .iter()
        .find(|place| place.starts_with(".milepost/quarantine/") && place.ends_with(path))
        .unwrap_or_else(|| panic!("{path} is not in quarantine, but {found:?}\n{said}"));
    let help = format!("help: your version is in {place}");
    assert!(said.contains(&help), "not said: {help}\n{said}");
    let why = place.replace(path, "WHY.txt");
    let why = project.read(&format!("workspace/{why}"));
    assert!(why.contains(path), "{why}");
}

#[test]
fn accepted_bytes_are_copied_when_they_are_accepted() {
    let project = accepted();
    assert_eq!(kept(&project, EDIT), [stored(EDIT), PATH.to_owned()]);
}

#[test]
fn an_accepted_output_that_is_forced_goes_to_quarantine() {
    let project = accepted();
    project.write(
        "workspace/inputs/person_2.json",
        r#"{"id": 2, "name": "Bob"}"#,
    );
    let ran = project.run_unplanned(&[]);
    ran.expect(5, &["clean/person_2"]).says("--force greet");
    let ran = project.run(&["--force", "greet"]);
    assert_eq!(ran.code, 0, "{}", ran.output);
    in_quarantine(&project, &ran.output, PATH, EDIT);
    assert_eq!(
        project.read(&format!("workspace/{PATH}")),
        "Dear, BOB (plain)\n"
    );
    // Nothing holds it back any more.
    project.run(&[]).expect(0, &["join"]);
    project.run(&[]).expect(0, &[]).says("nothing changed");
}

#[test]
fn an_accepted_output_that_was_deleted_is_in_the_store() {
    let project = accepted();
    project.run(&[]).expect(0, &["join"]);
    project.remove(&format!("workspace/{PATH}"));
    let ran = project.run(&[]);
    ran.expect(0, &["greet/person_2", "join"])
        .says(&format!("help: your version is in {}", stored(EDIT)));
    assert_eq!(kept(&project, EDIT), [stored(EDIT)]);
}

#[test]
fn clean_moves_what_a_person_wrote_to_quarantine_and_removes_the_rest() {
    let project = accepted();
    project.write("workspace/intermediate/letters/person_1.txt", "changed\n");
    project.edit(
        "workspace/stage_1_complete.json",
        "\"batches\": 3",
        "\"batches\": 4",
    );
    let checkpoint = project.read("workspace/stage_1_complete.json");
    project.edit(
        "workspace/clean_progress.json",
        "\"total_batches\": 3",
        "\"total_batches\": 9",
    );
    let progress = project.read("workspace/clean_progress.json");
    let (code, said) = project.milepost(&["clean", "--yes"]);
    assert_eq!(code, 0, "{said}");
    in_quarantine(&project, &said, PATH, EDIT);
    in_quarantine(
        &project,
        &said,
        "intermediate/letters/person_1.txt",
        "changed\n",
    );
    in_quarantine(&project, &said, "stage_1_complete.json", &checkpoint);
    in_quarantine(&project, &said, "clean_progress.json", &progress);
    let left: Vec<String> = project.digests().into_keys().collect();
    let inputs = [
        "inputs/person_1.json",
        "inputs/person_10.json",
        "inputs/person_2.json",
    ];
    assert_eq!(left, inputs);
}

#[test]
fn a_modified_output_that_is_forced_goes_to_quarantine() {
    let project = completed();
    edit(&project);
    let ran = project.run(&["--force", "greet"]);
    assert_eq!(ran.code, 0, "{}", ran.output);
    in_quarantine(&project, &ran.output, PATH, EDIT);
}

#[test]
fn a_policy_that_makes_altered_outputs_again_keeps_accepted_and_modified_ones() {
    let project = completed();
    let stage = format!("{}\n[policy]\naltered = \"redo\"\n", super::letters::GREET);
    project.write("stages/2_greet.toml", &stage);
    edit(&project);
    let ran = project.run(&[]);
    assert_eq!(ran.code, 0, "{}", ran.output);
    in_quarantine(&project, &ran.output, PATH, EDIT);
}

#[test]
fn an_accepted_output_of_a_batch_that_is_gone_goes_to_quarantine() {
    let project = accepted();
    project.remove("workspace/inputs/person_2.json");
    let ran = project.run(&[]);
    assert_eq!(ran.code, 0, "{}", ran.output);
    in_quarantine(&project, &ran.output, PATH, EDIT);
}

#[test]
fn an_edited_checkpoint_goes_to_quarantine_before_it_is_replaced() {
    for words in [&["run", "--force"][..], &["accept", "join", "--why", "x"]] {
        let project = completed();
        project.edit(
            "workspace/stage_3_complete.json",
            "\"batches\": 1",
            "\"batches\": 7",
        );
        let edited = project.read("workspace/stage_3_complete.json");
        let (code, said) = project.milepost(words);
        assert_eq!(code, 0, "{said}");
        in_quarantine(&project, &said, "stage_3_complete.json", &edited);
    }
}

#[test]
fn an_edited_progress_file_goes_to_quarantine_before_it_is_replaced() {
    let project = completed();
    for text in ["my notes\n", "{}\n"] {
        project.write("workspace/greet_progress.json", text);
        let ran = project.run(&["--force", "greet"]);
        in_quarantine(&project, &ran.output, "greet_progress.json", text);
    }
}

#[test]
fn a_file_in_the_manifests_of_a_stage_that_is_gone_stays() {
    let project = completed();
    project.write("workspace/manifests/join/notes.txt", "mine");
    project.remove("stages/3_join.toml");
    project.run(&[]).expect(0, &[]);
    assert_eq!(project.list("manifests/join"), ["notes.txt"]);
}

#[test]
fn an_import_keeps_the_file_that_it_replaces() {
    let project = Project::new(&[
        (
            "milepost.toml",
            "name = \"x\"\n[params]\nlist = { file = \"inputs/list.json\" }\n",
        ),
        (
            "stages/1_copy.toml",
            "[inputs]\nlist = \"{{ params.list }}\"\n[step]\ncopy = \"list\"\nout = \"copy\"\n[outputs]\ncopy = { path = \"outputs/list.json\", schema = false }\n",
        ),
        ("workspace/inputs/list.json", "[\"mine\"]\n"),
        ("elsewhere/list.json", "[\"theirs\"]\n"),
    ]);
    let ran = project.run_unplanned(&["--set", "list=elsewhere/list.json"]);
    assert_eq!(ran.code, 0, "{}", ran.output);
    in_quarantine(&project, &ran.output, "inputs/list.json", "[\"mine\"]\n");
    assert_eq!(
        project.read("workspace/outputs/list.json"),
        "[\"theirs\"]\n"
    );
}

#[test]
fn a_debug_log_is_appended_to_what_is_there() {
    let project = letters();
    project.write("notes.txt", "mine\n");
    project.milepost(&["--log-file", "notes.txt", "status"]);
    assert!(project.read("notes.txt").starts_with("mine\n"));
}

#[test]
fn gc_removes_accepted_content_only_when_it_is_old_and_not_in_use() {
    let project = accepted();
    let old = crate::support::long_ago();
    let copy = format!("workspace/{}", stored(EDIT));
    let set_old = || project.set_mtime(&copy, old);
    set_old();
    let gc = |words: &[&str]| {
        let (code, said) = project.milepost(&[&["gc", "--yes"], words].concat());
        assert_eq!(code, 0, "{said}");
        said
    };
    gc(&["--older-than", "1d"]);
    assert!(project.exists(&copy));
    project.run(&["--force", "greet"]);
    gc(&[]);
    assert!(project.exists(&copy));
    let said = gc(&["--older-than", "1d"]);
    assert!(said.contains("accepted"), "{said}");
    assert!(!project.exists(&copy));
    assert_eq!(
        kept(&project, EDIT).len(),
        1,
        "in quarantine, which is young"
    );
}

/// What was accepted is said by every command, by the checkpoint and by the journal.
#[test]
fn what_was_accepted_is_reported_with_who_when_why_and_both_digests() {
    let project = completed();
    let made = project.read(&format!("workspace/{PATH}"));
    edit(&project);
    accept(&project, "greet");
    let (from, to) = (Digest::of(&made), Digest::of(EDIT));
    let checkpoint = project.json("workspace/stage_2_complete.json");
    let at = checkpoint["overrides"][0]["at"].as_str().unwrap();
    let one = json!({
        "stage": "greet", "batch": "person_2", "path": PATH, "by": "Ada", "at": at, "why": "by phone", "from": from, "to": to,
    });
    assert_eq!(checkpoint["overrides"], json!([one]));
    assert_eq!(
        project.json("workspace/stage_1_complete.json")["overrides"],
        Value::Null
    );

    let when: jiff::Timestamp = at.parse().unwrap();
    let when = when.strftime("%Y-%m-%d %H:%M:%SZ");
    let (short, shorter) = (from.short(), to.short());
    let words = format!("accepted by Ada on {when}: by phone; {short}… → {shorter}…");
    let line = format!("{PATH} (of greet/person_2): {words}");
    let said = |words: &[&str]| project.milepost(words).1;
    let status = said(&["status"]);
    assert!(
        status.contains(&format!("greet: modified by hand: {line}")),
        "{status}"
    );
    let (code, verify) = project.milepost(&["verify"]);
    assert_eq!(code, 0, "{verify}");
    assert!(verify.contains(&format!("modified {line}\n")), "{verify}");
    assert!(
        verify.ends_with("everything matches the record, 1 output modified by hand and accepted\n"),
        "{verify}"
    );
    let why = said(&["why", PATH]);
    assert!(why.contains(&format!("modified by hand: {words}")), "{why}");
    assert!(!why.contains("as they were made"), "{why}");
    let why = said(&["why", "greet/person_2"]);
    assert!(
        why.contains(&format!(
            "modified by hand: accepted by Ada on {when}: by phone"
        )),
        "{why}"
    );

    let data = |words: &[&str]| -> Value {
        let output = project.command(words).output().unwrap();
        serde_json::from_slice(&output.stdout).unwrap()
    };
    assert_eq!(
        data(&["status", "--json"])["stages"][1]["overrides"],
        json!([one])
    );
    assert_eq!(data(&["verify", "--json"])["overrides"], json!([one]));
    let why = data(&["why", PATH, "--json"]);
    assert_eq!(
        (&why["made"]["modified"], &why["made"]["state"]),
        (&one, &json!("accepted"))
    );
    let records = project.records();
    let event = records
        .iter()
        .rfind(|record| record["kind"] == "accepted")
        .unwrap();
    assert_eq!(event["data"]["pin"]["files"][0]["from"], json!(from));
    // The same when a run had nothing to do, and only the notes are looked at.
    project.run(&[]).expect(0, &["join"]);
    project.run(&[]).expect(0, &[]);
    assert_eq!(
        data(&["status", "--json"])["stages"][1]["overrides"],
        json!([one])
    );
}

#[test]
fn a_second_modification_keeps_what_milepost_wrote_and_a_restored_file_is_no_modification() {
    let project = completed();
    let path = format!("workspace/{PATH}");
    let made = project.read(&path);
    for (text, who) in [("one\n", "Ada"), ("two\n", "Bo")] {
        project.write(&path, text);
        let words = ["accept", "greet", "--why", "x", "--who", who];
        assert_eq!(project.milepost(&words).0, 0);
    }
    let one = &project.json("workspace/stage_2_complete.json")["overrides"];
    assert_eq!(one.as_array().unwrap().len(), 1);
    assert_eq!(one[0]["by"], "Bo");
    assert_eq!(one[0]["from"], json!(Digest::of(&made)));
    assert_eq!(one[0]["to"], json!(Digest::of("two\n")));
    project.write(&path, &made);
    accept(&project, "greet");
    let checkpoint = project.json("workspace/stage_2_complete.json");
    assert_eq!(checkpoint["overrides"], Value::Null);
    // Nobody's word is in the way any more.
    project.write(
        "workspace/inputs/person_2.json",
        r#"{"id": 2, "name": "Bob"}"#,
    );
    project
        .run(&[])
        .expect(0, &["clean/person_2", "greet/person_2", "join"]);
}

/// `source` has a note that nothing reads; `value` is made from it, and two stages report it.
fn reported() -> Project {
    Project::new(&[
        ("milepost.toml", "name = \"x\"\n"),
        ("workspace/inputs/in.json", "{\"x\": 1, \"note\": \"a\"}\n"),
        (
            "stages/1_source.toml",
            "[inputs]\nin = \"inputs/in.json\"\n[step]\njq = '.in'\nout = \"source\"\n[outputs]\nsource = { path = \"intermediate/source.json\", schema = false }\n",
        ),
        (
            "stages/2_value.toml",
            "[inputs]\nsource = \"intermediate/source.json\"\n[step]\njq = '{x: .source.x}'\nout = \"value\"\n[outputs]\nvalue = { path = \"intermediate/value.json\", schema = false }\n",
        ),
        (
            "stages/3_plain.toml",
            "[inputs]\nvalue = \"intermediate/value.json\"\n[step]\njq = '.'\nout = \"plain\"\n[outputs]\nplain = { path = \"outputs/plain.json\", schema = false }\n",
        ),
        (
            "stages/4_report.toml",
            "[inputs]\nvalue = \"intermediate/value.json\"\n[step]\nrender = \"report.md\"\nout = \"report\"\n[outputs]\nreport = \"outputs/report.md\"\n",
        ),
        (
            "report.md",
            "x is {{ value.x }}.{% for o in overrides %} {{ o.path }} by {{ o.by }}: {{ o.why }}.{% endfor %}",
        ),
    ])
}

#[test]
fn accepting_makes_the_reports_that_show_it_out_of_date_and_no_others() {
    let project = reported();
    let all = ["plain", "report", "source", "value"];
    project.run(&[]).expect(0, &all);
    let plain = project.read("workspace/outputs/plain.json");
    assert!(!plain.contains("overrides"), "{plain}");
    assert_eq!(project.read("workspace/outputs/report.md"), "x is 1.");
    project.edit("workspace/intermediate/source.json", "\"a\"", "\"b\"");
    accept(&project, "source");
    let ran = project.run(&[]);
    ran.expect(0, &["report", "value"]);
    let with = "x is 1. intermediate/source.json by Ada: by phone.";
    assert_eq!(project.read("workspace/outputs/report.md"), with);
    project.run(&[]).expect(0, &[]);
    // Made again, it is nobody's word any more: the plan knows that too.
    let stage = project.read("stages/1_source.toml");
    project.write(
        "stages/1_source.toml",
        format!("{stage}\n[policy]\naltered = \"redo\"\n"),
    );
    project.write("workspace/inputs/in.json", "{\"x\": 1, \"note\": \"c\"}\n");
    let ran = project.run(&[]);
    ran.expect(0, &["report", "source", "value"])
        .says("your version is in");
    assert_eq!(project.read("workspace/outputs/report.md"), "x is 1.");
}

#[test]
fn a_stage_with_an_output_called_overrides_keeps_its_own() {
    let project = Project::new(&[
        ("milepost.toml", "name = \"x\"\n"),
        (
            "stages/1_x.toml",
            "[[step]]\njq = '{a: 1}'\nout = \"overrides\"\n[[step]]\njq = '[$overrides.a, .overrides.a]'\nout = \"all\"\n[outputs]\noverrides = { path = \"outputs/o.json\", schema = false }\nall = { path = \"outputs/all.json\", schema = false }\n",
        ),
    ]);
    project.run(&[]).expect(0, &["x"]);
    assert_eq!(project.json("workspace/outputs/all.json"), json!([1, 1]));
}

#[test]
fn a_retired_output_is_named_by_plan_and_run_and_by_its_place() {
    let project = Project::new(&[
        (
            "milepost.toml",
            "name = \"skip\"\n[params]\nformats = [\"one\", \"two\"]\n",
        ),
        (
            "stages/1_report.toml",
            "[[step]]\njq = '1'\nwhen = '$params.formats | index(\"one\") != null'\nout = \"one\"\n[[step]]\njq = '2'\nwhen = '$params.formats | index(\"two\") != null'\nout = \"two\"\n[outputs]\none = { path = \"outputs/one.json\", schema = false }\ntwo = { path = \"outputs/two.json\", schema = false }\n",
        ),
    ]);
    project.run(&[]).expect(0, &["report"]);
    let only = ["--set", "formats=[\"one\"]"];
    let (_, said) = project.milepost(&[&["plan"], &only[..]].concat());
    assert!(
        said.contains("retires outputs/two.json: it goes to quarantine"),
        "{said}"
    );
    let plan = project.plan(&only).unwrap();
    let file = json!({"stage": "report", "batch": "", "path": "outputs/two.json"});
    assert_eq!(plan["retires"], json!([file]));
    let output = project
        .command(&[&["run", "--json"], &only[..]].concat())
        .output()
        .unwrap();
    let ended: Value = serde_json::from_slice(&output.stdout).unwrap();
    let kept = kept(&project, "2\n");
    let [place] = kept.as_slice() else {
        panic!("{kept:?}")
    };
    let file = json!({
        "stage": "report", "batch": "", "path": "outputs/two.json", "quarantine": place, "why": "retired", "was": "as_made",
    });
    assert_eq!(ended["quarantined"], json!([file]));
    let line =
        format!("note: outputs/two.json is no longer produced by report: moved to {place}\n");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains(&line), "{said}");
    project
        .run(&["--set", "formats=[\"one\", \"two\"]"])
        .expect(0, &["report"]);
    let ran = project.run(&only);
    let lines = ran
        .output
        .matches("note: outputs/two.json is no longer produced by report: moved to ");
    assert_eq!(lines.count(), 1, "{}", ran.output);
}
