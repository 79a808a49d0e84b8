//! What a person wrote is kept: accepted and modified outputs, files in Milepost's places, edited checkpoints and progress files.

use super::house::House;
use super::letters::{letters, settled};
use milepost_core::base::digest::Digest;
use serde_json::{Value, json};

const PATH: &str = "intermediate/letters/person_2.txt";
const EDIT: &str = "Dear Bo, as I said on the phone\n";

/// A settled project with one letter that a person modified and accepted.
fn accepted() -> House {
    let house = settled();
    edit(&house);
    accept(&house, "greet");
    house
}

fn edit(house: &House) {
    house.write(&format!("workspace/{PATH}"), EDIT);
}

#[track_caller]
fn accept(house: &House, target: &str) {
    let (code, said) = house.milepost(&["accept", target, "--why", "by phone", "--who", "Ada"]);
    assert_eq!(code, 0, "{said}");
}

/// The files of this text, below the workspace.
#[track_caller]
fn kept(house: &House, text: &str) -> Vec<String> {
    let root = house.at("workspace");
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
fn in_quarantine(house: &House, said: &str, path: &str, text: &str) {
    let found = kept(house, text);
    let place = found
        .iter()
        .find(|place| place.starts_with(".milepost/quarantine/") && place.ends_with(path))
        .unwrap_or_else(|| panic!("{path} is not in quarantine, but {found:?}\n{said}"));
    let help = format!("help: your version is in {place}");
    assert!(said.contains(&help), "not said: {help}\n{said}");
    let why = place.replace(path, "WHY.txt");
    let why = house.read(&format!("workspace/{why}"));
    assert!(why.contains(path), "{why}");
}

#[test]
fn accepted_bytes_are_copied_when_they_are_accepted() {
    let house = accepted();
    assert_eq!(kept(&house, EDIT), [stored(EDIT), PATH.to_owned()]);
}

#[test]
fn an_accepted_output_that_is_forced_goes_to_quarantine() {
    let house = accepted();
    house.write(
        "workspace/inputs/person_2.json",
        r#"{"id": 2, "name": "Bob"}"#,
    );
    let ran = house.run_unplanned(&[]);
    ran.expect(5, &["clean/person_2"]).says("--force greet");
    let ran = house.run(&["--force", "greet"]);
    assert_eq!(ran.code, 0, "{}", ran.said);
    in_quarantine(&house, &ran.said, PATH, EDIT);
    assert_eq!(
        house.read(&format!("workspace/{PATH}")),
        "Dear, BOB (plain)\n"
    );
    // Nothing holds it back any more.
    house.run(&[]).expect(0, &["join"]);
    house.run(&[]).expect(0, &[]).says("nothing to do");
}

#[test]
fn an_accepted_output_that_was_deleted_is_in_the_store() {
    let house = accepted();
    house.run(&[]).expect(0, &["join"]);
    house.remove(&format!("workspace/{PATH}"));
    let ran = house.run(&[]);
    ran.expect(0, &["greet/person_2", "join"])
        .says(&format!("help: your version is in {}", stored(EDIT)));
    assert_eq!(kept(&house, EDIT), [stored(EDIT)]);
}

#[test]
fn clean_moves_what_a_person_wrote_to_quarantine_and_removes_the_rest() {
    let house = accepted();
    house.write("workspace/intermediate/letters/person_1.txt", "changed\n");
    house.edit(
        "workspace/stage_1_complete.json",
        "\"batches\": 3",
        "\"batches\": 4",
    );
    let checkpoint = house.read("workspace/stage_1_complete.json");
    house.edit(
        "workspace/clean_progress.json",
        "\"total_batches\": 3",
        "\"total_batches\": 9",
    );
    let progress = house.read("workspace/clean_progress.json");
    let (code, said) = house.milepost(&["clean", "--yes"]);
    assert_eq!(code, 0, "{said}");
    in_quarantine(&house, &said, PATH, EDIT);
    in_quarantine(
        &house,
        &said,
        "intermediate/letters/person_1.txt",
        "changed\n",
    );
    in_quarantine(&house, &said, "stage_1_complete.json", &checkpoint);
    in_quarantine(&house, &said, "clean_progress.json", &progress);
    let left: Vec<String> = house.contents().into_keys().collect();
    let inputs = [
        "inputs/person_1.json",
        "inputs/person_10.json",
        "inputs/person_2.json",
    ];
    assert_eq!(left, inputs);
}

#[test]
fn a_modified_output_that_is_forced_goes_to_quarantine() {
    let house = settled();
    edit(&house);
    let ran = house.run(&["--force", "greet"]);
    assert_eq!(ran.code, 0, "{}", ran.said);
    in_quarantine(&house, &ran.said, PATH, EDIT);
}

#[test]
fn a_policy_that_makes_altered_outputs_again_keeps_accepted_and_modified_ones() {
    let house = settled();
    let stage = format!("{}\n[policy]\naltered = \"redo\"\n", super::letters::GREET);
    house.write("stages/2_greet.toml", &stage);
    edit(&house);
    let ran = house.run(&[]);
    assert_eq!(ran.code, 0, "{}", ran.said);
    in_quarantine(&house, &ran.said, PATH, EDIT);
}

#[test]
fn an_accepted_output_of_a_batch_that_is_gone_goes_to_quarantine() {
    let house = accepted();
    house.remove("workspace/inputs/person_2.json");
    let ran = house.run(&[]);
    assert_eq!(ran.code, 0, "{}", ran.said);
    in_quarantine(&house, &ran.said, PATH, EDIT);
}

#[test]
fn an_edited_checkpoint_goes_to_quarantine_before_it_is_replaced() {
    for words in [&["run", "--force"][..], &["accept", "join", "--why", "x"]] {
        let house = settled();
        house.edit(
            "workspace/stage_3_complete.json",
            "\"batches\": 1",
            "\"batches\": 7",
        );
        let edited = house.read("workspace/stage_3_complete.json");
        let (code, said) = house.milepost(words);
        assert_eq!(code, 0, "{said}");
        in_quarantine(&house, &said, "stage_3_complete.json", &edited);
    }
}

#[test]
fn an_edited_progress_file_goes_to_quarantine_before_it_is_replaced() {
    let house = settled();
    for text in ["my notes\n", "{}\n"] {
        house.write("workspace/greet_progress.json", text);
        let ran = house.run(&["--force", "greet"]);
        in_quarantine(&house, &ran.said, "greet_progress.json", text);
    }
}

#[test]
fn a_file_in_the_manifests_of_a_stage_that_is_gone_stays() {
    let house = settled();
    house.write("workspace/manifests/join/notes.txt", "mine");
    house.remove("stages/3_join.toml");
    house.run(&[]).expect(0, &[]);
    assert_eq!(house.list("manifests/join"), ["notes.txt"]);
}

#[test]
fn an_import_keeps_the_file_that_it_replaces() {
    let house = House::new(&[
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
    let ran = house.run_unplanned(&["--set", "list=elsewhere/list.json"]);
    assert_eq!(ran.code, 0, "{}", ran.said);
    in_quarantine(&house, &ran.said, "inputs/list.json", "[\"mine\"]\n");
    assert_eq!(house.read("workspace/outputs/list.json"), "[\"theirs\"]\n");
}

#[test]
fn a_debug_log_is_appended_to_what_is_there() {
    let house = letters();
    house.write("notes.txt", "mine\n");
    house.milepost(&["--log-file", "notes.txt", "status"]);
    assert!(house.read("notes.txt").starts_with("mine\n"));
}

#[test]
fn gc_removes_accepted_content_only_when_it_is_old_and_not_in_use() {
    let house = accepted();
    let old = super::house::long_ago();
    let copy = format!("workspace/{}", stored(EDIT));
    let set_old = || house.set_mtime(&copy, old);
    set_old();
    let gc = |words: &[&str]| {
        let (code, said) = house.milepost(&[&["gc", "--yes"], words].concat());
        assert_eq!(code, 0, "{said}");
        said
    };
    gc(&["--older-than", "1d"]);
    assert!(house.exists(&copy));
    house.run(&["--force", "greet"]);
    gc(&[]);
    assert!(house.exists(&copy));
    let said = gc(&["--older-than", "1d"]);
    assert!(said.contains("accepted"), "{said}");
    assert!(!house.exists(&copy));
    assert_eq!(kept(&house, EDIT).len(), 1, "in quarantine, which is young");
}

/// What was accepted is said by every command, by the checkpoint and by the journal.
#[test]
fn what_was_accepted_is_reported_with_who_when_why_and_both_digests() {
    let house = settled();
    let made = house.read(&format!("workspace/{PATH}"));
    edit(&house);
    accept(&house, "greet");
    let (from, to) = (Digest::of(&made), Digest::of(EDIT));
    let checkpoint = house.json("workspace/stage_2_complete.json");
    let at = checkpoint["overrides"][0]["at"].as_str().unwrap();
    let one = json!({
        "stage": "greet", "batch": "person_2", "path": PATH, "by": "Ada", "at": at, "why": "by phone", "from": from, "to": to,
    });
    assert_eq!(checkpoint["overrides"], json!([one]));
    assert_eq!(
        house.json("workspace/stage_1_complete.json")["overrides"],
        Value::Null
    );

    let when: jiff::Timestamp = at.parse().unwrap();
    let when = when.strftime("%Y-%m-%d %H:%M:%SZ");
    let (short, shorter) = (from.short(), to.short());
    let words = format!("accepted by Ada on {when}: by phone; {short}… → {shorter}…");
    let line = format!("{PATH} (of greet/person_2): {words}");
    let said = |words: &[&str]| house.milepost(words).1;
    let status = said(&["status"]);
    assert!(
        status.contains(&format!("greet: modified by hand: {line}")),
        "{status}"
    );
    let (code, verify) = house.milepost(&["verify"]);
    assert_eq!(code, 0, "{verify}");
    assert!(verify.contains(&format!("modified {line}\n")), "{verify}");
    assert!(
        verify.ends_with("as it was recorded, 1 output modified by hand and accepted\n"),
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
        let output = house.command(words).output().unwrap();
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
    let records = house.records();
    let event = records
        .iter()
        .rfind(|record| record["kind"] == "accepted")
        .unwrap();
    assert_eq!(event["data"]["pin"]["files"][0]["from"], json!(from));
    // The same when a run had nothing to do, and only the notes are looked at.
    house.run(&[]).expect(0, &["join"]);
    house.run(&[]).expect(0, &[]);
    assert_eq!(
        data(&["status", "--json"])["stages"][1]["overrides"],
        json!([one])
    );
}

#[test]
fn a_second_modification_keeps_what_milepost_wrote_and_a_restored_file_is_no_modification() {
    let house = settled();
    let path = format!("workspace/{PATH}");
    let made = house.read(&path);
    for (text, who) in [("one\n", "Ada"), ("two\n", "Bo")] {
        house.write(&path, text);
        let words = ["accept", "greet", "--why", "x", "--who", who];
        assert_eq!(house.milepost(&words).0, 0);
    }
    let one = &house.json("workspace/stage_2_complete.json")["overrides"];
    assert_eq!(one.as_array().unwrap().len(), 1);
    assert_eq!(one[0]["by"], "Bo");
    assert_eq!(one[0]["from"], json!(Digest::of(&made)));
    assert_eq!(one[0]["to"], json!(Digest::of("two\n")));
    house.write(&path, &made);
    accept(&house, "greet");
    let checkpoint = house.json("workspace/stage_2_complete.json");
    assert_eq!(checkpoint["overrides"], Value::Null);
    // Nobody's word is in the way any more.
    house.write(
        "workspace/inputs/person_2.json",
        r#"{"id": 2, "name": "Bob"}"#,
    );
    house
        .run(&[])
        .expect(0, &["clean/person_2", "greet/person_2", "join"]);
}

/// `source` has a note that nothing reads; `value` is made from it, and two stages report it.
fn reported() -> House {
    House::new(&[
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
    let house = reported();
    let all = ["plain", "report", "source", "value"];
    house.run(&[]).expect(0, &all);
    let plain = house.read("workspace/outputs/plain.json");
    assert!(!plain.contains("overrides"), "{plain}");
    assert_eq!(house.read("workspace/outputs/report.md"), "x is 1.");
    house.edit("workspace/intermediate/source.json", "\"a\"", "\"b\"");
    accept(&house, "source");
    let ran = house.run(&[]);
    ran.expect(0, &["report", "value"]);
    let with = "x is 1. intermediate/source.json by Ada: by phone.";
    assert_eq!(house.read("workspace/outputs/report.md"), with);
    house.run(&[]).expect(0, &[]);
    // Made again, it is nobody's word any more: the plan knows that too.
    let stage = house.read("stages/1_source.toml");
    house.write(
        "stages/1_source.toml",
        format!("{stage}\n[policy]\naltered = \"redo\"\n"),
    );
    house.write("workspace/inputs/in.json", "{\"x\": 1, \"note\": \"c\"}\n");
    let ran = house.run(&[]);
    ran.expect(0, &["report", "source", "value"])
        .says("your version is in");
    assert_eq!(house.read("workspace/outputs/report.md"), "x is 1.");
}

#[test]
fn a_stage_with_an_output_called_overrides_keeps_its_own() {
    let house = House::new(&[
        ("milepost.toml", "name = \"x\"\n"),
        (
            "stages/1_x.toml",
            "[[step]]\njq = '{a: 1}'\nout = \"overrides\"\n[[step]]\njq = '[$overrides.a, .overrides.a]'\nout = \"all\"\n[outputs]\noverrides = { path = \"outputs/o.json\", schema = false }\nall = { path = \"outputs/all.json\", schema = false }\n",
        ),
    ]);
    house.run(&[]).expect(0, &["x"]);
    assert_eq!(house.json("workspace/outputs/all.json"), json!([1, 1]));
}

#[test]
fn a_retired_output_is_named_by_plan_and_run_and_by_its_place() {
    let house = House::new(&[
        (
            "milepost.toml",
            "name = \"skip\"\n[params]\nformats = [\"one\", \"two\"]\n",
        ),
        (
            "stages/1_report.toml",
            "[[step]]\njq = '1'\nwhen = '$params.formats | index(\"one\") != null'\nout = \"one\"\n[[step]]\njq = '2'\nwhen = '$params.formats | index(\"two\") != null'\nout = \"two\"\n[outputs]\none = { path = \"outputs/one.json\", schema = false }\ntwo = { path = \"outputs/two.json\", schema = false }\n",
        ),
    ]);
    house.run(&[]).expect(0, &["report"]);
    let only = ["--set", "formats=[\"one\"]"];
    let (_, said) = house.milepost(&[&["plan"], &only[..]].concat());
    assert!(
        said.contains("retires outputs/two.json: it goes to quarantine"),
        "{said}"
    );
    let plan = house.plan(&only).unwrap();
    let file = json!({"stage": "report", "batch": "", "path": "outputs/two.json"});
    assert_eq!(plan["retires"], json!([file]));
    let output = house
        .command(&[&["run", "--json"], &only[..]].concat())
        .output()
        .unwrap();
    let ended: Value = serde_json::from_slice(&output.stdout).unwrap();
    let kept = kept(&house, "2\n");
    let [place] = kept.as_slice() else {
        panic!("{kept:?}")
    };
    let file = json!({
        "stage": "report", "batch": "", "path": "outputs/two.json", "quarantine": place, "why": "retired", "was": "as_made",
    });
    assert_eq!(ended["quarantined"], json!([file]));
    let line = format!("note: outputs/two.json is no longer made by report: moved to {place}\n");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains(&line), "{said}");
    house
        .run(&["--set", "formats=[\"one\", \"two\"]"])
        .expect(0, &["report"]);
    let ran = house.run(&only);
    let lines = ran
        .said
        .matches("note: outputs/two.json is no longer made by report: moved to ");
    assert_eq!(
        lines.count(),
        2,
        "as it happens, and in the summary: {}",
        ran.said
    );
}
