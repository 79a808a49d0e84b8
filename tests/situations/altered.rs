//! Outputs and Milepost's own files altered by hand: never trusted, never overwritten unasked.

use super::letters::{PAGE, completed};
use crate::support::Project;
use milepost_core::base::digest::Digest;

/// The run stops before it does anything, names the file and the ways on, and leaves everything as it is.
fn stops_and_names(project: &Project, path: &str) {
    let before = project.digests();
    let ways: &[&str] = if path.starts_with("stage_") {
        &["rm "]
    } else {
        &["accept", "--force"]
    };
    for _ in 0..2 {
        let ran = project.run(&[]);
        ran.expect(5, &[]).says(path);
        for way in ways {
            ran.says(way);
        }
    }
    assert_eq!(project.digests(), before);
}

#[test]
fn stages_before_the_altered_output_still_run() {
    let project = completed();
    project.write("workspace/intermediate/letters/person_2.txt", "Dear me");
    project.write(
        "workspace/inputs/person_1.json",
        r#"{"id": 1, "name": "Adi"}"#,
    );
    project
        .run(&[])
        .expect(5, &["clean/person_1"])
        .says("intermediate/letters/person_2.txt");
}

#[test]
fn all_outputs_deleted_are_made_again() {
    let project = completed();
    std::fs::remove_dir_all(project.at("workspace/intermediate")).unwrap();
    std::fs::remove_dir_all(project.at("workspace/outputs")).unwrap();
    let ran = project.run(&[]);
    assert_eq!((ran.code, ran.tried().len()), (0, 7), "{}", ran.output);
    assert_eq!(project.read("workspace/outputs/page.md"), PAGE);
}

#[test]
fn a_foreign_file_at_an_outputs_place_is_not_overwritten() {
    let project = super::letters::letters();
    project.write("workspace/intermediate/clean/person_2.json", "mine");
    let ran = project.run(&[]);
    ran.expect(5, &[]).says("intermediate/clean/person_2.json");
    assert_eq!(
        project.read("workspace/intermediate/clean/person_2.json"),
        "mine"
    );
    project.remove("workspace/intermediate/clean/person_2.json");
    assert_eq!(project.run(&[]).code, 0);
}

#[test]
fn a_foreign_file_beside_outputs_is_no_output() {
    let project = completed();
    project.write(
        "workspace/intermediate/clean/person_9.json",
        r#"{"id": 9, "name": "Nobody"}"#,
    );
    project.run(&[]).expect(0, &[]);
    assert_eq!(
        project.json("workspace/outputs/book.json")["ids"],
        serde_json::json!([1, 2, 10])
    );
}

#[test]
fn a_checkpoint_edited_by_hand_is_noticed() {
    let project = completed();
    project.edit(
        "workspace/stage_2_complete.json",
        "\"batches\": 3",
        "\"batches\": 4",
    );
    stops_and_names(&project, "stage_2_complete.json");
    project.remove("workspace/stage_2_complete.json");
    project.run(&[]).expect(0, &[]);
    assert_eq!(
        project.json("workspace/stage_2_complete.json")["batches"],
        3
    );
}

#[test]
fn a_checkpoint_that_is_no_json_is_noticed() {
    let project = completed();
    project.write("workspace/stage_1_complete.json", "{\"stage\": \"cl");
    stops_and_names(&project, "stage_1_complete.json");
}

#[test]
fn a_checkpoint_deleted_is_written_again_and_nothing_runs() {
    let project = completed();
    for number in 1..=3 {
        project.remove(&format!("workspace/stage_{number}_complete.json"));
    }
    project.run(&[]).expect(0, &[]);
    assert_eq!(
        (1..=3)
            .filter(|number| project.exists(&format!("workspace/stage_{number}_complete.json")))
            .count(),
        3
    );
    project.run(&[]).expect(0, &[]);
}

#[test]
fn a_progress_file_is_information_and_a_damaged_manifest_is_an_error() {
    let project = completed();
    project.remove("workspace/clean_progress.json");
    project.run(&[]).expect(0, &[]);
    // One changed digit of a manifest is damage, and no word about the output.
    let page = "workspace/manifests/clean/page_0001.sha256";
    let whole = project.read(page);
    let output = project.read("workspace/intermediate/clean/person_1.json");
    let digest = Digest::of(output).hex();
    let other = format!(
        "{:x}{}",
        15 - u8::from_str_radix(&digest[..1], 16).unwrap(),
        &digest[1..]
    );
    for (from, to) in [
        (
            "intermediate/clean/person_2.json",
            "intermediate/clean/person_3.json",
        ),
        (digest.as_str(), other.as_str()),
    ] {
        project.edit(page, from, to);
        project.edit("workspace/inputs/person_2.json", "}", " }");
        for command in ["run", "plan", "status", "verify"] {
            let (code, said) = project.milepost(&[command]);
            let expected = if command == "verify" { 5 } else { 1 };
            assert_eq!(code, expected, "{command}: {said}");
            let damage = "the digest in the last line is not that of the lines before. The manifest was damaged: \
                put the page back from a copy, or remove its folder, and the next run rebuilds it from the journal";
            assert!(
                said.contains(page) && said.contains(damage),
                "{command}: {said}"
            );
            assert!(!said.contains("by hand"), "{command}: {said}");
        }
        project.write(page, &whole);
        project.edit("workspace/inputs/person_2.json", " }", "}");
    }
    project.remove(page);
    project.run_unplanned(&[]).expect(0, &[]);
}

#[test]
fn without_its_own_folder_a_workspace_continues_from_its_manifests() {
    let project = completed();
    std::fs::remove_dir_all(project.at("workspace/.milepost")).unwrap();
    project.run(&[]).expect(0, &[]);
    project.write(
        "workspace/inputs/person_2.json",
        r#"{"id": 2, "name": "Bi"}"#,
    );
    project
        .run(&[])
        .expect(0, &["clean/person_2", "greet/person_2", "join"]);
    assert_eq!(
        project.read("workspace/outputs/page.md"),
        PAGE.replace("BO", "BI")
    );
}
