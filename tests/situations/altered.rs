//! Outputs and Milepost's own files altered by hand: never trusted, never overwritten unasked.

use super::house::House;
use super::letters::{PAGE, settled};

/// The run stops before it does anything, names the file and the ways on, and leaves everything as it is.
fn stops_and_names(house: &House, path: &str) {
    let before = house.contents();
    let ways: &[&str] = if path.starts_with("stage_") {
        &["rm "]
    } else {
        &["accept", "--force"]
    };
    for _ in 0..2 {
        let ran = house.run(&[]);
        ran.expect(5, &[]).says(path);
        for way in ways {
            ran.says(way);
        }
    }
    assert_eq!(house.contents(), before);
}

#[test]
fn stages_before_the_altered_output_still_run() {
    let house = settled();
    house.write("workspace/intermediate/letters/person_2.txt", "Dear me");
    house.write(
        "workspace/inputs/person_1.json",
        r#"{"id": 1, "name": "Adi"}"#,
    );
    house
        .run(&[])
        .expect(5, &["clean/person_1"])
        .says("intermediate/letters/person_2.txt");
}

#[test]
fn all_outputs_deleted_are_made_again() {
    let house = settled();
    std::fs::remove_dir_all(house.at("workspace/intermediate")).unwrap();
    std::fs::remove_dir_all(house.at("workspace/outputs")).unwrap();
    let ran = house.run(&[]);
    assert_eq!((ran.code, ran.tried().len()), (0, 7), "{}", ran.said);
    assert_eq!(house.read("workspace/outputs/page.md"), PAGE);
}

#[test]
fn a_foreign_file_at_an_outputs_place_is_not_overwritten() {
    let house = super::letters::letters();
    house.write("workspace/intermediate/clean/person_2.json", "mine");
    let ran = house.run(&[]);
    ran.expect(5, &[]).says("intermediate/clean/person_2.json");
    assert_eq!(
        house.read("workspace/intermediate/clean/person_2.json"),
        "mine"
    );
    house.remove("workspace/intermediate/clean/person_2.json");
    assert_eq!(house.run(&[]).code, 0);
}

#[test]
fn a_foreign_file_beside_outputs_is_no_output() {
    let house = settled();
    house.write(
        "workspace/intermediate/clean/person_9.json",
        r#"{"id": 9, "name": "Nobody"}"#,
    );
    house.run(&[]).expect(0, &[]);
    assert_eq!(
        house.json("workspace/outputs/book.json")["ids"],
        serde_json::json!([1, 2, 10])
    );
}

#[test]
fn a_checkpoint_edited_by_hand_is_noticed() {
    let house = settled();
    house.edit(
        "workspace/stage_2_complete.json",
        "\"batches\": 3",
        "\"batches\": 4",
    );
    stops_and_names(&house, "stage_2_complete.json");
    house.remove("workspace/stage_2_complete.json");
    house.run(&[]).expect(0, &[]);
    assert_eq!(house.json("workspace/stage_2_complete.json")["batches"], 3);
}

#[test]
fn a_checkpoint_that_is_no_json_is_noticed() {
    let house = settled();
    house.write("workspace/stage_1_complete.json", "{\"stage\": \"cl");
    stops_and_names(&house, "stage_1_complete.json");
}

#[test]
fn a_checkpoint_deleted_is_written_again_and_nothing_runs() {
    let house = settled();
    for number in 1..=3 {
        house.remove(&format!("workspace/stage_{number}_complete.json"));
    }
    house.run(&[]).expect(0, &[]);
    assert_eq!(
        (1..=3)
            .filter(|number| house.exists(&format!("workspace/stage_{number}_complete.json")))
            .count(),
        3
    );
    house.run(&[]).expect(0, &[]);
}

#[test]
fn a_progress_file_or_manifest_is_information_and_the_manifest_is_guarded() {
    let house = settled();
    house.remove("workspace/clean_progress.json");
    house.run(&[]).expect(0, &[]);
    // A manifest says what was made: a file that it no longer lists is nobody's, and is not overwritten.
    let page = "workspace/manifests/clean/page_0001.sha256";
    house.edit(
        page,
        "intermediate/clean/person_2.json",
        "intermediate/clean/person_3.json",
    );
    stops_and_names(&house, "intermediate/clean/person_2.json");
    house.edit(page, "person_3.json", "person_2.json");
    house.run(&[]).expect(0, &[]);
    let digest = milepost_core::base::digest::Digest::of(
        house.read("workspace/intermediate/clean/person_1.json"),
    )
    .to_string();
    house.edit(
        page,
        digest.strip_prefix("sha256:").unwrap(),
        &"0".repeat(64),
    );
    stops_and_names(&house, "intermediate/clean/person_1.json");
}

#[test]
fn without_its_own_folder_a_workspace_goes_on_from_its_manifests() {
    let house = settled();
    std::fs::remove_dir_all(house.at("workspace/.milepost")).unwrap();
    house.run(&[]).expect(0, &[]);
    house.write(
        "workspace/inputs/person_2.json",
        r#"{"id": 2, "name": "Bi"}"#,
    );
    house
        .run(&[])
        .expect(0, &["clean/person_2", "greet/person_2", "join"]);
    assert_eq!(
        house.read("workspace/outputs/page.md"),
        PAGE.replace("BO", "BI")
    );
}
