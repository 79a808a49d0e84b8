//! Clocks and times that mislead: what counts is the content.

use super::super::house::{House, code, long_ago, said};
use super::super::letters::{PAGE, glanced, letters, settled};
use super::super::meeting::{go, here, meeting, start};
use super::super::mounted::Mounted;
use super::{as_made_anew, both};
use std::process::Command;
use std::time::{Duration, SystemTime};

const BO: &str = "workspace/inputs/person_2.json";
/// As long as what it replaces.
const BI: &str = r#"{"id": 2, "name": "Bi"}"#;
const WHAT_READS_IT: [&str; 3] = ["clean/person_2", "greet/person_2", "join"];
const LETTER: &str = "workspace/intermediate/letters/person_1.txt";

#[test]
fn an_input_edited_while_its_batch_runs_makes_the_result_stale_and_the_next_run_does_it_again() {
    let house = meeting();
    house.write(
        "stages/1_meet.toml",
        house
            .read("stages/1_meet.toml")
            .replace(
                "[each.n]\ncount = 2\n",
                "[inputs]\ntext = \"inputs/text.txt\"\n",
            )
            .replace("{{ n }}.txt", "made.txt")
            .replace("{{ n }}", "1"),
    );
    house.write("workspace/inputs/text.txt", "before");
    let run = start(&house, &["run"]);
    here(&house, 1);
    house.write("workspace/inputs/text.txt", "after");
    go(&house, 1);
    let output = run.wait_with_output().unwrap();
    assert_eq!(code(&output), 3, "{}", said(&output));
    assert!(!house.exists("workspace/stage_1_complete.json"));
    let plan = house.plan(&[]).unwrap();
    assert_eq!(
        plan["stages"][0]["will"][0]["reasons"][0]["reason"], "stale",
        "{plan:#}"
    );
    let run = start(&house, &["run"]);
    here(&house, 1);
    go(&house, 1);
    let output = run.wait_with_output().unwrap();
    assert_eq!(code(&output), 0, "{}", said(&output));
    assert!(house.exists("workspace/stage_1_complete.json"));
    let again = house.run(&[]);
    again.expect(0, &[]);
    assert!(again.records.is_empty(), "{:#?}", again.records);
}

/// Everything that lies there is given one time.
fn at_one_time(house: &House, time: SystemTime) {
    for path in house.contents().keys() {
        house.set_mtime(&format!("workspace/{path}"), time);
    }
}

/// An output of the same size is refused; when it is put back, nothing runs. An input of the same size runs what reads it.
fn is_right(house: &House) {
    let made = house.read(LETTER);
    house.write_with_mtime_kept(LETTER, &made.replace("ADA", "EVE"));
    house.run(&[]).expect(5, &[]).says("person_1.txt");
    house.write_with_mtime_kept(LETTER, &made);
    house.run(&[]).expect(0, &[]);
    house.write_with_mtime_kept(BO, BI);
    house.run(&[]).expect(0, &WHAT_READS_IT);
    let page = PAGE.replace("BO", "BI");
    assert_eq!(house.read("workspace/outputs/page.md"), page);
    as_made_anew(house);
}

#[test]
fn a_clock_set_back() {
    // What was recorded was recorded an hour from now; then a clock that was right is set two hours back.
    for clock in ["0", "-7200"] {
        let mut house = glanced();
        house.env("MILEPOST_AHEAD", clock);
        is_right(&house);
    }
}

#[test]
fn equal_mtimes_and_another_content() {
    both(|house| {
        at_one_time(house, long_ago());
        house.run(&[]).expect(0, &[]);
        is_right(house);
    });
}

#[test]
fn mtimes_in_the_future() {
    both(|house| {
        at_one_time(house, SystemTime::now() + Duration::from_hours(24));
        house.run(&[]).expect(0, &[]);
        house.run(&[]).expect(0, &[]);
        is_right(house);
    });
}

/// Times of whole seconds, by which nothing that happens within one can be told apart: those of ext4 with small inodes.
#[test]
fn a_file_system_with_times_of_one_second() {
    let house = letters();
    let image = house.at("image");
    std::fs::File::create(&image)
        .unwrap()
        .set_len(16 << 20)
        .unwrap();
    let made = Command::new("mkfs.ext4")
        .args(["-q", "-I", "128"])
        .arg(&image)
        .output();
    if !made.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: mkfs.ext4 is not here");
        return;
    }
    let given = house.contents();
    let inputs: Vec<_> = given
        .keys()
        .map(|path| format!("workspace/{path}"))
        .map(|path| (house.read(&path), path))
        .collect();
    let arguments = ["-o", "loop", image.to_str().unwrap()];
    let Some(_mounted) = Mounted::at(&house.at("workspace"), &arguments) else {
        return;
    };
    for (text, path) in inputs {
        house.write(&path, text);
    }
    assert_eq!(house.run(&[]).code, 0);
    is_right(&house);
    assert_eq!(settled().made().len(), house.made().len());
}
