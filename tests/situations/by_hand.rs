//! What a person wrote is kept: accepted and modified outputs, files in Milepost's places, edited checkpoints and progress files.

use super::house::House;
use super::letters::{letters, settled};
use milepost::base::digest::Digest;

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
