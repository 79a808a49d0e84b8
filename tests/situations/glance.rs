//! A run that had nothing to do is remembered, and the next one only glances at the disk: it sees what a long look would.

use super::house::Ran;
use super::letters::{NOTES, PAGE, glanced};

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
    house.write("workspace/outputs/page.md", "another\n");
    let (_, status) = house.milepost(&["status"]);
    assert!(status.contains("altered"), "{status}");
    let (_, plan) = house.milepost(&["plan"]);
    assert!(plan.contains("outputs/page.md"), "{plan}");
}
