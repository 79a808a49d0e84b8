//! An input changed with its mtime kept or an older one, all inputs touched, one deleted, one added.

use super::super::house::long_ago;
use super::super::letters::PAGE;
use super::{as_made_anew, both};
use serde_json::json;
use std::time::SystemTime;

const BO: &str = "workspace/inputs/person_2.json";
/// As long as what it replaces.
const BI: &str = r#"{"id": 2, "name": "Bi"}"#;
const WHAT_READS_IT: [&str; 3] = ["clean/person_2", "greet/person_2", "join"];

#[test]
fn changed_with_its_mtime_kept() {
    both(|house| {
        house.write_with_mtime_kept(BO, BI);
        house.run(&[]).expect(0, &WHAT_READS_IT);
        let page = PAGE.replace("BO", "BI");
        assert_eq!(house.read("workspace/outputs/page.md"), page);
        as_made_anew(house);
    });
}

#[test]
fn changed_with_an_older_mtime() {
    both(|house| {
        house.write(BO, BI);
        house.set_mtime(BO, long_ago());
        house.run(&[]).expect(0, &WHAT_READS_IT);
        as_made_anew(house);
    });
}

#[test]
fn changed_so_that_what_is_made_of_it_is_the_same() {
    both(|house| {
        house.write(BO, r#"{"id": 2, "name": "bO"}"#);
        house.run(&[]).expect(0, &["clean/person_2"]);
        as_made_anew(house);
    });
}

#[test]
fn all_touched() {
    both(|house| {
        let before = house.contents();
        for person in ["1", "2", "10"] {
            let path = format!("workspace/inputs/person_{person}.json");
            house.set_mtime(&path, SystemTime::now());
        }
        let ran = house.run(&[]);
        ran.expect(0, &[]);
        assert!(ran.records.is_empty(), "{:#?}", ran.records);
        assert_eq!(house.contents(), before);
    });
}

#[test]
fn one_deleted() {
    both(|house| {
        house.remove(BO);
        house.run(&[]).expect(0, &["join"]);
        let ids = &house.json("workspace/outputs/book.json")["ids"];
        assert_eq!(*ids, json!([1, 10]));
        as_made_anew(house);
    });
}

#[test]
fn one_added() {
    both(|house| {
        house.write(
            "workspace/inputs/person_3.json",
            r#"{"id": 3, "name": "Di"}"#,
        );
        house
            .run(&[])
            .expect(0, &["clean/person_3", "greet/person_3", "join"]);
        let ids = &house.json("workspace/outputs/book.json")["ids"];
        assert_eq!(*ids, json!([1, 2, 3, 10]));
        let progress = house.json("workspace/clean_progress.json");
        assert_eq!(progress["completed_batches"], json!([1, 2, 3, 10]));
        as_made_anew(house);
    });
}
