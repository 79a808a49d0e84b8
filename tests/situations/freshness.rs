//! Inputs: what is run again is what depends on their content, and nothing else.

use super::letters::{PAGE, completed, letters};

#[test]
fn a_first_run_makes_everything_and_a_second_touches_nothing() {
    let project = letters();
    let ran = project.run(&[]);
    assert_eq!(ran.code, 0, "{}", ran.output);
    assert_eq!(project.read("workspace/outputs/page.md"), PAGE);
    assert_eq!(
        project.json("workspace/outputs/book.json")["ids"],
        serde_json::json!([1, 2, 10])
    );
    assert_eq!(
        project.list("intermediate"),
        [
            "clean/person_1.json",
            "clean/person_10.json",
            "clean/person_2.json",
            "letters/person_1.txt",
            "letters/person_10.txt",
            "letters/person_2.txt"
        ]
    );
    let before = project.tree();
    let again = project.run(&[]);
    again.expect(0, &[]);
    assert!(again.records.is_empty(), "{:#?}", again.records);
    let after = project.tree();
    let differing: Vec<&String> = after
        .keys()
        .filter(|name| before.get(*name) != after.get(*name))
        .collect();
    // Milepost's own folder holds what are caches, and who ran last.
    let own = [
        ".milepost",
        ".milepost/glance",
        ".milepost/lock",
        ".milepost/stat-cache",
    ];
    assert!(
        differing.iter().all(|name| own.contains(&name.as_str())),
        "{differing:?}"
    );
    assert!(before.keys().all(|name| after.contains_key(name)));
}

#[test]
fn a_change_that_makes_no_difference_stops_there() {
    let project = completed();
    project.write(
        "workspace/inputs/person_2.json",
        r#"{"id": 2, "name": "bO"}"#,
    );
    project.run(&[]).expect(0, &["clean/person_2"]);
    project.run(&[]).expect(0, &[]);
}

#[test]
fn an_input_renamed_is_another_batch() {
    let project = completed();
    project.rename(
        "workspace/inputs/person_2.json",
        "workspace/inputs/person_4.json",
    );
    let ran = project.run(&[]);
    ran.expect(0, &["clean/person_4", "greet/person_4", "join"]);
    assert_eq!(
        ran.retired(),
        [
            "intermediate/clean/person_2.json",
            "intermediate/letters/person_2.txt"
        ]
    );
}

#[test]
fn all_inputs_gone_is_an_error_and_loses_nothing() {
    let project = completed();
    for person in ["1", "2", "10"] {
        project.remove(&format!("workspace/inputs/person_{person}.json"));
    }
    let before = project.list("intermediate");
    let ran = project.run(&[]);
    ran.expect(1, &[])
        .says("no file matches `inputs/person_*.json`");
    assert_eq!(project.list("intermediate"), before);
    assert_eq!(project.read("workspace/outputs/page.md"), PAGE);
}
