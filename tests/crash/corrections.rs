//! A crash, or an edit by hand, while corrections are saved: no row of the table is lost, and none is without a record.

use super::project::operations;
use super::sweep::{at_each, stops};
use crate::situations::import_review::{HEADER, ann, project, workbook};
use crate::support::{NOW, Project};
use jiff::Timestamp;
use milepost_core::base::clock::Clock;
use milepost_core::base::digest::Digest;
use milepost_engine::ops::change::review::{FieldDecision, ItemName, ReviewDecision, correct};
use milepost_engine::ops::project::Request;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const FIXES: &str = "workspace/inputs/fixes.csv";
const EMPTY: &str = "id,question,field,value,who,why\n";
const MINE: &str = "2,,size,3,Bo,seen\n";
const IMPORT: &[&str] = &["import-review", "edited.xlsx"];

/// The digests of the table after each recorded import.
fn recorded(project: &Project) -> Vec<Value> {
    let records = project.records();
    let imports = records.iter();
    let imports = imports.filter(|record| record["kind"] == "corrections_imported");
    imports.map(|record| record["data"]["to"].clone()).collect()
}

#[test]
fn corrections_that_are_imported_have_a_record() {
    let base = project(EMPTY);
    let rows = [json!(["heard", "Cy", null, "anna", "Ann", null, ann()])];
    workbook(&base, &HEADER, &rows);
    let whole = base.copy();
    let operations = operations(&whole, IMPORT);
    let expected = whole.read(FIXES);
    let digest = json!(Digest::of(&expected));
    assert_eq!(recorded(&whole), std::slice::from_ref(&digest));
    at_each(&operations, &stops(&operations, 24), |stop| {
        let project = base.copy();
        project.run_on_disk(IMPORT, &stop.setting);
        let table = project.read(FIXES);
        assert!(table == EMPTY || table == expected, "{table}");
        if table == expected {
            assert_eq!(recorded(&project), std::slice::from_ref(&digest));
        }
        project.complete(IMPORT);
        assert_eq!(project.read(FIXES), expected);
        assert_eq!(recorded(&project).last(), Some(&digest));
        project.complete(&["run"]);
    });
}

/// A clock at whose `edit_at`th call a person adds a row to the table.
struct EditingClock {
    calls: AtomicUsize,
    edit_at: usize,
    table: PathBuf,
}

impl Clock for EditingClock {
    fn now(&self) -> Timestamp {
        if self.calls.fetch_add(1, Ordering::SeqCst) + 1 == self.edit_at {
            let table = std::fs::OpenOptions::new().append(true).open(&self.table);
            table.unwrap().write_all(MINE.as_bytes()).unwrap();
        }
        NOW.parse().unwrap()
    }
}

#[test]
fn a_row_that_is_added_by_hand_meanwhile_is_kept() {
    let base = project(EMPTY);
    // A killed run leaves a batch to repair, which takes a while.
    let force = &["run", "--force", "join"];
    let operations = operations(&base.copy(), force);
    let published = operations
        .iter()
        .position(|one| one.starts_with("rename") && one.ends_with("outputs/all.json"));
    base.run_on_disk(force, &format!("{},unflushed", published.unwrap() + 1));
    assert_eq!(base.state().unsettled.len(), 1);

    let mut were_refused = Vec::new();
    for edit_at in 1.. {
        let project = base.copy();
        let clock = Arc::new(EditingClock {
            calls: AtomicUsize::new(0),
            edit_at,
            table: project.at(FIXES),
        });
        let request = Request {
            clock: Arc::<EditingClock>::clone(&clock),
            ..project.request()
        };
        let decision = ReviewDecision {
            sheet: None,
            item: ItemName::SharedKey(ann()),
            fields: BTreeMap::from([(
                "Correct word".to_owned(),
                FieldDecision::Value("anna".to_owned()),
            )]),
            who: Some("Cy".to_owned()),
            why: "heard".to_owned(),
        };
        let result = correct(&request, &decision);
        if clock.calls.load(Ordering::SeqCst) < edit_at {
            break;
        }
        let table = project.read(FIXES);
        match result {
            Ok(_) => assert_eq!(recorded(&project).len(), 1),
            Err(error) => {
                assert_eq!(
                    error.to_string(),
                    "inputs/fixes.csv was modified while corrections were added: nothing was added; try again"
                );
                assert_eq!(table, format!("{EMPTY}{MINE}"));
                let records = project.records();
                let last = records.last().unwrap();
                assert_eq!(
                    (&last["kind"], &last["data"]["status"]),
                    (&json!("run_finished"), &json!("refused"))
                );
                correct(&request, &decision).unwrap();
            }
        }
        let after = project.read(FIXES);
        let row = format!(",{},word,anna,Cy,heard\n", ann());
        let either = [format!("{EMPTY}{MINE}{row}"), format!("{EMPTY}{row}{MINE}")];
        assert!(either.contains(&after), "call {edit_at}: {after}");
        were_refused.push(table != after);
    }
    assert!(were_refused.contains(&true) && were_refused.contains(&false));
}
