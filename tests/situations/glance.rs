//! A run that had nothing to do is remembered, and the next one only glances at the disk: it sees what a long look would.

use super::house::{House, Ran};
use super::letters::{PAGE, letters};
use std::os::unix::fs::MetadataExt as _;

/// The project, run until the third run has nothing to do but glance. Its files count as an hour old.
fn glanced() -> House {
    let mut house = letters();
    house.env("MILEPOST_AHEAD", "3600");
    assert_eq!(house.run(&[]).code, 0);
    assert!(!house.exists(NOTES), "the first run had something to do");
    house.run(&[]).expect(0, &[]);
    let noted = inode(&house);
    house.run(&[]).expect(0, &[]);
    assert_eq!(inode(&house), noted, "the third run looked at everything");
    house
}

const NOTES: &str = "workspace/.milepost/glance";

fn inode(house: &House) -> u64 {
    house.at(NOTES).metadata().unwrap().ino()
}

/// Writes until the file system, whose clock may have steps of milliseconds, gives the file another time.
fn write(house: &House, path: &str, text: &str) {
    let ctime = || {
        house
            .at(path)
            .metadata()
            .map(|data| (data.ctime(), data.ctime_nsec()))
            .ok()
    };
    let before = ctime();
    while ctime() == before {
        house.write(path, text);
    }
}

#[test]
fn says_what_a_long_look_says() {
    let house = glanced();
    let glance = house.run_unplanned(&[]);
    house.remove(NOTES);
    let look = house.run_unplanned(&[]);
    let without_time = |ran: &Ran| {
        let lines = ran.said.lines();
        lines
            .filter(|line| !line.contains(" s"))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(glance.code, 0);
    assert_eq!(without_time(&glance), without_time(&look));
    assert!(glance.records.is_empty());
}

#[test]
fn an_input_of_the_same_size_and_time_is_seen() {
    let house = glanced();
    let path = "workspace/inputs/person_2.json";
    let modified = house.at(path).metadata().unwrap().modified().unwrap();
    write(&house, path, r#"{"id": 2, "name": "Bi"}"#);
    house.set_mtime(path, modified);
    house
        .run(&[])
        .expect(0, &["clean/person_2", "greet/person_2", "join"]);
    assert_eq!(
        house.read("workspace/outputs/page.md"),
        PAGE.replace("BO", "BI")
    );
}

#[test]
fn an_input_more_and_one_less_are_seen() {
    let house = glanced();
    house.write(
        "workspace/inputs/person_3.json",
        r#"{"id": 3, "name": "Di"}"#,
    );
    house
        .run(&[])
        .expect(0, &["clean/person_3", "greet/person_3", "join"]);
    house.run(&[]).expect(0, &[]);
    house.run(&[]).expect(0, &[]);
    house.remove("workspace/inputs/person_3.json");
    house.run(&[]).expect(0, &["join"]);
    assert_eq!(house.read("workspace/outputs/page.md"), PAGE);
}

#[test]
fn outputs_altered_emptied_and_gone_are_seen() {
    let house = glanced();
    let path = "workspace/intermediate/letters/person_1.txt";
    let text = house.read(path);
    let modified = house.at(path).metadata().unwrap().modified().unwrap();
    for altered in [text.replace("ADA", "EVE"), String::new()] {
        write(&house, path, &altered);
        house.set_mtime(path, modified);
        let ran = house.run(&[]);
        assert_eq!(ran.code, 5, "{}", ran.said);
        assert!(
            ran.said.contains("intermediate/letters/person_1.txt"),
            "{}",
            ran.said
        );
    }
    house.remove(path);
    house.run(&[]).expect(0, &["greet/person_1"]);
    assert_eq!(house.read(path), text);
}

#[test]
fn what_the_project_says_is_seen() {
    let house = glanced();
    house.edit("filters/clean.jq", "ascii_upcase", "ascii_downcase");
    let ran = house.run(&[]);
    assert_eq!(
        (ran.code, house.read("workspace/outputs/page.md")),
        (0, PAGE.to_lowercase().replace("dear", "Dear"))
    );

    let mut house = glanced();
    house.env("TONE", "loud");
    assert_eq!(house.run(&[]).code, 0);
    assert_eq!(
        house.read("workspace/outputs/page.md"),
        PAGE.replace("plain", "loud")
    );

    let house = glanced();
    house.edit("tools/greet.sh", "%s, %s", "%s: %s");
    assert_eq!(house.run(&[]).code, 0);
    assert_eq!(
        house.read("workspace/outputs/page.md"),
        PAGE.replace("Dear,", "Dear:")
    );

    let house = glanced();
    assert_eq!(house.run(&["--set", "greeting=Hi"]).code, 0);
    assert_eq!(
        house.read("workspace/outputs/page.md"),
        PAGE.replace("Dear", "Hi")
    );
}

#[test]
fn milepost_s_own_files_are_seen() {
    let house = glanced();
    house.remove("workspace/stage_2_complete.json");
    house.run(&[]).expect(0, &[]);
    assert!(house.exists("workspace/stage_2_complete.json"));

    let house = glanced();
    house.edit(
        "workspace/stage_2_complete.json",
        "\"complete\"",
        "\"partial\"",
    );
    assert_eq!(house.run(&[]).code, 5);

    let house = glanced();
    let page = "workspace/manifests/greet/page_0001.sha256";
    let text = house.read(page);
    house.write(page, text.replace("# end\n", ""));
    let ran = house.run_unplanned(&[]);
    assert!(
        ran.code != 0 && ran.said.contains("page_0001.sha256"),
        "{} {}",
        ran.code,
        ran.said
    );
}

#[test]
fn torn_notes_are_nothing_to_go_by() {
    let house = glanced();
    let notes = std::fs::read(house.at(NOTES)).unwrap();
    house.write(NOTES, &notes[..notes.len() / 2]);
    house.run(&[]).expect(0, &[]);
    assert_eq!(std::fs::read(house.at(NOTES)).unwrap(), notes);
}

#[test]
fn readers_say_the_same_by_a_glance() {
    let house = glanced();
    for command in [
        &["plan", "--json"][..],
        &["status", "--json"],
        &["why", "clean", "--json"],
        &["plan"],
        &["status"],
    ] {
        let by_glance = house.milepost(command);
        let notes = std::fs::read(house.at(NOTES)).unwrap();
        house.remove(NOTES);
        let by_look = house.milepost(command);
        house.write(NOTES, notes);
        assert_eq!(by_glance, by_look, "{command:?}");
        assert_eq!(by_glance.0, 0, "{command:?}: {}", by_glance.1);
    }
    // An altered output is seen all the same.
    write(&house, "workspace/outputs/page.md", "another\n");
    let (_, status) = house.milepost(&["status"]);
    assert!(status.contains("altered"), "{status}");
    let (_, plan) = house.milepost(&["plan"]);
    assert!(plan.contains("outputs/page.md"), "{plan}");
}
