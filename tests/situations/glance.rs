//! A run that had nothing to do is remembered, and the next one only glances at the disk: it sees what a long look would.

use super::house::{House, Ran};
use super::letters::{NOTES, PAGE, glanced, letters};

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

#[test]
fn a_run_that_worked_leaves_what_a_long_look_would() {
    let mut house = letters();
    house.env("MILEPOST_AHEAD", "3600");
    assert_eq!(house.run(&[]).code, 0);
    let commands = [&["plan", "--json"][..], &["status", "--json"]];
    let told = |house: &House| commands.map(|command| house.milepost(command));
    let by_glance = told(&house);
    let notes = std::fs::read(house.at(NOTES)).unwrap();
    house.remove(NOTES);
    assert_eq!(by_glance, told(&house));
    house.write(NOTES, notes);

    house.edit("workspace/inputs/person_2.json", "Bo", "Bea");
    let all = ["clean/person_2", "greet/person_2", "join"];
    house.run(&[]).expect(0, &all);
    let page = PAGE.replace("BO", "BEA");
    assert_eq!(house.read("workspace/outputs/page.md"), page);
    let by_glance = told(&house);
    house.remove(NOTES);
    assert_eq!(by_glance, told(&house));
}

/// What happens to a workspace between two runs.
type Change = fn(&House, u64);

const CHANGES: [Change; 14] = [
    |_, _| {},
    |house, n| house.write(&person(n), format!(r#"{{"id": {n}, "name": "New {n}"}}"#)),
    |house, n| house.write(&person(n % 3), r#"{"id": 7, "name": "Same"}"#),
    |house, n| touch(house, any(house, "inputs", n)),
    |house, n| remove(house, any(house, "inputs", n)),
    |house, n| {
        for m in 0..20 {
            touch(house, any(house, "inputs", m));
        }
        house.write(&person(n), format!(r#"{{"id": {n}, "name": "Late"}}"#));
    },
    |house, n| remove(house, any(house, "intermediate/clean", n)),
    |house, n| remove(house, any(house, "intermediate/letters", n)),
    |house, n| write(house, any(house, "intermediate/letters", n), "altered\n"),
    |house, _| remove(house, any(house, "outputs", 0)),
    |house, n| {
        if let Some(path) = any(house, "intermediate/clean", n) {
            house.write_with_mtime_kept(&path, "{}");
        }
    },
    |house, n| {
        let page = "{% for letter in letters %}{{ letter }}{% endfor %}";
        house.write("templates/page.md", format!("{n} {page}"));
    },
    |house, n| {
        let two = (any(house, "inputs", n), any(house, "inputs", n + 1));
        if let (Some(one), Some(other)) = two {
            let held = (house.read(&one), house.read(&other));
            house.write(&one, held.1);
            house.write(&other, held.0);
        }
    },
    |house, _| house.write("workspace/notes.txt", "nobody asks for it"),
];

fn touch(house: &House, path: Option<String>) {
    if let Some(path) = path {
        house.set_mtime(&path, super::house::long_ago());
    }
}

fn remove(house: &House, path: Option<String>) {
    if let Some(path) = path {
        house.remove(&path);
    }
}

fn write(house: &House, path: Option<String>, text: &str) {
    if let Some(path) = path {
        house.write(&path, text);
    }
}

fn person(n: u64) -> String {
    format!("workspace/inputs/person_{}.json", n % 20)
}

/// One of the files in a folder; none when there is none.
fn any(house: &House, folder: &str, n: u64) -> Option<String> {
    let names = house.list(folder);
    let name = names.get(n as usize % names.len().max(1))?;
    Some(format!("workspace/{folder}/{name}"))
}

/// Two workspaces go through the same; in one there is never anything to glance at. All that runs do must be the same.
#[test]
fn runs_do_the_same_with_and_without_a_glance() {
    for seed in 1..=4_u64 {
        let mut random = seed;
        let mut next = || {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            random >> 33
        };
        let mut by_glance = letters();
        by_glance.env("MILEPOST_AHEAD", "3600");
        let mut by_look = by_glance.anew();
        by_look.env("MILEPOST_AHEAD", "3600");
        let mut glances = 0;
        for step in 0..12 {
            let changes: Vec<(usize, u64)> = (0..next() % 3)
                .map(|_| ((next() % 14) as usize, next()))
                .collect();
            let arguments: &[&str] = match next() % 6 {
                0 => &["-B", "greet"],
                1 => &["--limit", "2"],
                2 => &["clean"],
                _ => &[],
            };
            let mut ran = Vec::new();
            for house in [&by_glance, &by_look] {
                for (change, n) in &changes {
                    CHANGES[*change](house, *n);
                }
                ran.push(house.run_unplanned(arguments));
            }
            let at = format!("seed {seed}, step {step}: {changes:?} {arguments:?}");
            let (one, two) = (&ran[0], &ran[1]);
            assert_eq!(
                (one.code, one.tried(), one.retired()),
                (two.code, two.tried(), two.retired()),
                "{at}\n{}\n{}",
                one.said,
                two.said
            );
            assert_eq!(by_glance.made(), by_look.made(), "{at}");
            if one.code == 0 && arguments.is_empty() {
                by_glance.check_vouched();
            }
            glances += usize::from(one.records.is_empty() && one.code == 0);
            // What was altered by hand would stop all that follows.
            for house in [&by_glance, &by_look] {
                if one.code == 5 {
                    house.run_unplanned(&["--force"]);
                }
            }
            if by_look.exists(NOTES) {
                by_look.remove(NOTES);
            }
        }
        assert!(glances > 0, "seed {seed}: no run had nothing to do");
    }
}
