//! An input changed with its mtime kept or an older one, all inputs touched, one deleted, one added.

use super::super::letters::PAGE;
use super::{both, matches_a_fresh_run};
use crate::support::long_ago;
use serde_json::json;
use std::time::SystemTime;

const BO: &str = "workspace/inputs/person_2.json";
/// As long as what it replaces.
const BI: &str = r#"{"id": 2, "name": "Bi"}"#;
const WHAT_READS_IT: [&str; 3] = ["clean/person_2", "greet/person_2", "join"];

#[test]
fn changed_with_its_mtime_kept() {
    both(|project| {
        project.write_with_mtime_kept(BO, BI);
        project.run(&[]).expect(0, &WHAT_READS_IT);
        let page = PAGE.replace("BO", "BI");
        assert_eq!(project.read("workspace/outputs/page.md"), page);
        matches_a_fresh_run(project);
    });
}

#[test]
fn changed_with_an_older_mtime() {
    both(|project| {
        project.write(BO, BI);
        project.set_mtime(BO, long_ago());
        project.run(&[]).expect(0, &WHAT_READS_IT);
        matches_a_fresh_run(project);
    });
}

#[test]
fn changed_so_that_what_is_made_of_it_is_the_same() {
    both(|project| {
        project.write(BO, r#"{"id": 2, "name": "bO"}"#);
        project.run(&[]).expect(0, &["clean/person_2"]);
        matches_a_fresh_run(project);
    });
}

#[test]
fn all_touched() {
    both(|project| {
        let before = project.digests();
        for person in ["1", "2", "10"] {
            let path = format!("workspace/inputs/person_{person}.json");
            project.set_mtime(&path, SystemTime::now());
        }
        let ran = project.run(&[]);
        ran.expect(0, &[]);
        assert!(ran.records.is_empty(), "{:#?}", ran.records);
        assert_eq!(project.digests(), before);
    });
}

#[test]
fn one_deleted() {
    both(|project| {
        project.remove(BO);
        project.run(&[]).expect(0, &["join"]);
        let ids = &project.json("workspace/outputs/book.json")["ids"];
        assert_eq!(*ids, json!([1, 10]));
        matches_a_fresh_run(project);
    });
}

#[test]
fn one_added() {
    both(|project| {
        project.write(
            "workspace/inputs/person_3.json",
            r#"{"id": 3, "name": "Di"}"#,
        );
        project
            .run(&[])
            .expect(0, &["clean/person_3", "greet/person_3", "join"]);
        let ids = &project.json("workspace/outputs/book.json")["ids"];
        assert_eq!(*ids, json!([1, 2, 3, 10]));
        let progress = project.json("workspace/clean_progress.json");
        assert_eq!(progress["completed_batches"], json!([1, 2, 3, 10]));
        matches_a_fresh_run(project);
    });
}
