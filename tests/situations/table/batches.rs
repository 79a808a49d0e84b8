//! A batch's input deleted, fewer batches than before: its output is retired, and the aggregate made again without it.

use super::super::letters::PAGE;
use super::super::packed::{ELEMENTS, model, packed};
use super::{both, matches_a_fresh_run};
use serde_json::json;

#[test]
fn the_input_of_a_batch_deleted() {
    both(|project| {
        project.remove("workspace/inputs/person_2.json");
        let ran = project.run(&[]);
        ran.expect(0, &["join"]);
        let retired = [
            "intermediate/clean/person_2.json",
            "intermediate/letters/person_2.txt",
        ];
        assert_eq!(ran.retired(), retired);
        assert_eq!(project.quarantine(), retired);
        let page = PAGE.replace("* Dear, BO (plain)\n", "");
        assert_eq!(project.read("workspace/outputs/page.md"), page);
        assert_eq!(
            project.json("workspace/stage_2_complete.json")["batches"],
            2
        );
        matches_a_fresh_run(project);
        // It comes back.
        project.write(
            "workspace/inputs/person_2.json",
            r#"{"id": 2, "name": "Bo"}"#,
        );
        let ran = project.run(&[]);
        ran.expect(0, &["join"]);
        assert_eq!(ran.restored(), ["clean/person_2", "greet/person_2"]);
        matches_a_fresh_run(project);
    });
}

#[test]
fn all_but_one_deleted() {
    both(|project| {
        project.remove("workspace/inputs/person_1.json");
        project.remove("workspace/inputs/person_10.json");
        project.run(&[]).expect(0, &["join"]);
        assert_eq!(
            project.list("intermediate"),
            ["clean/person_2.json", "letters/person_2.txt"]
        );
        assert_eq!(
            project.json("workspace/outputs/book.json")["ids"],
            json!([2])
        );
        matches_a_fresh_run(project);
    });
}

#[test]
fn fewer_batches_of_a_split() {
    let project = packed(&ELEMENTS);
    let all = [
        "batch",
        "classify/batch_1",
        "classify/batch_2",
        "classify/batch_3",
        "generate",
        "parse",
    ];
    project.run(&[]).expect(0, &all);
    project.write("workspace/inputs/model.json", model(&ELEMENTS[..7]));
    let ran = project.run(&[]);
    ran.expect(0, &["batch", "generate", "parse"]);
    assert_eq!(
        ran.retired(),
        [
            "intermediate/classified/batch_3_classified.json",
            "intermediate/classified/batch_3_complete.txt"
        ]
    );
    matches_a_fresh_run(&project);
}
