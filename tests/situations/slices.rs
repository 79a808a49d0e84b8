//! Stages with so many batches that only a slice of them has its details at once. In debug builds a slice has 25 batches.

use crate::support::Project;
use serde_json::json;
use std::time::{Duration, SystemTime};

/// How many items there are.
const ITEMS: u64 = 50;

/// Copies each item. Those listed in the file `bad` fail.
fn items(policy: &str) -> Project {
    let work = format!(
        r#"
[each.item]
path = "inputs/*.txt"

[inputs]
file = "{{{{ item.path }}}}"

[step]
command = ["sh", "-c", 'grep -qx "$1" "$BAD" && exit 7; cp "$2" "$3"', "sh", "{{{{ item.stem }}}}", "{{{{ paths.file }}}}", "{{{{ paths.made }}}}"]
env = ["BAD"]

[outputs]
made = {{ path = "outputs/{{{{ item.stem }}}}.txt", schema = false }}
{policy}"#
    );
    let mut project = Project::new(&[
        (
            "milepost.toml",
            "name = \"items\"\n\n[env]\nBAD = \"/dev/null\"\n",
        ),
        ("stages/1_work.toml", &work),
        ("bad", ""),
    ]);
    for item in 1..=ITEMS {
        let path = format!("workspace/inputs/item_{item}.txt");
        project.write(&path, format!("item {item}\n"));
    }
    let bad = project.at("bad").display().to_string();
    project.env("BAD", &bad);
    project
}

fn tried(items: impl IntoIterator<Item = u64>) -> Vec<String> {
    let mut tried: Vec<String> = items
        .into_iter()
        .map(|n| format!("work/item_{n}"))
        .collect();
    tried.sort();
    tried
}

#[test]
fn failures_of_all_slices_count_together() {
    let project = items("\n[policy]\non_failure = \"continue\"\nmax_failures = 2\n");
    project.write("bad", "item_5\nitem_30\n");
    let ran = project.run(&[]);
    assert_eq!(
        (ran.code, ran.tried()),
        (1, tried(1..=30)),
        "{}",
        ran.output
    );
    let progress = project.json("workspace/work_progress.json");
    let completed: Vec<u64> = (1..30).filter(|item| *item != 5).collect();
    assert_eq!(progress["completed_batches"], json!(completed));
    assert_eq!(progress["failed_batches"], json!(["item_5", "item_30"]));
    assert_eq!(
        (&progress["status"], &progress["total_batches"]),
        (&json!("failed"), &json!(ITEMS))
    );
    project.write("bad", "");
    let ran = project.run(&[]);
    let rest = (1..=ITEMS).filter(|item| *item == 5 || *item >= 30);
    assert_eq!((ran.code, ran.tried()), (0, tried(rest)), "{}", ran.output);
    for item in 1..=ITEMS {
        let made = project.read(&format!("workspace/outputs/item_{item}.txt"));
        assert_eq!(made, format!("item {item}\n"));
    }
    assert_eq!(
        project.json("workspace/stage_1_complete.json")["batches"],
        json!(ITEMS)
    );
    project.run(&[]).expect(0, &[]);
}

#[test]
fn a_failure_at_the_end_of_a_slice_stops_the_next() {
    let project = items("");
    project.write("bad", "item_25\n");
    let ran = project.run(&[]);
    assert_eq!(
        (ran.code, ran.tried()),
        (1, tried(1..=25)),
        "{}",
        ran.output
    );
}

#[test]
fn names_of_several_slices_that_collide_are_told() {
    let project = items("");
    project.write("workspace/inputs/Item_1.txt", "another\n");
    project
        .run(&[])
        .says("outputs/Item_1.txt")
        .says("outputs/item_1.txt");
}

#[test]
fn an_input_that_is_gone_when_its_slice_begins_fails_its_batch() {
    let project = items("\n[policy]\non_failure = \"continue\"\n");
    let last = project.at("workspace/inputs/item_50.txt");
    project.edit(
        "stages/1_work.toml",
        "exit 7; cp",
        &format!("exit 7; rm -f {}; cp", last.display()),
    );
    let ran = project.run(&[]);
    assert_eq!(ran.code, 3, "{}", ran.output);
    ran.says("work/item_50").says("inputs/item_50.txt");
    assert!(!project.exists("workspace/outputs/item_50.txt"));
    assert!(project.exists("workspace/outputs/item_49.txt"));
}

#[test]
fn a_batch_runs_again_if_its_input_changed_before_its_slice_and_changed_back() {
    let project = items("");
    let last = "workspace/inputs/item_50.txt";
    // After two seconds, the times of the changed file prove its content on every file system.
    let change = format!(
        "exit 7; [ $1 = item_1 ] && grep -qx change \"$BAD\" && echo changed > {} && sleep 2.2; cp",
        project.at(last).display()
    );
    project.edit("stages/1_work.toml", "exit 7; cp", &change);
    project.write("bad", "change\n");
    // A time in the future proves no content, so the notes have the digest of the file.
    project.set_mtime(last, SystemTime::now() + Duration::from_hours(24));
    assert_eq!(project.run(&[]).code, 0);
    assert_eq!(project.read("workspace/outputs/item_50.txt"), "changed\n");
    project.write("bad", "");
    project.write(last, "item 50\n");
    project.run(&[]).expect(0, &["work/item_50"]);
    assert_eq!(project.read("workspace/outputs/item_50.txt"), "item 50\n");
}
