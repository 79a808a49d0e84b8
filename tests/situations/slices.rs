//! Stages with so many new batches that they are scanned, run and recorded in slices. In debug builds a slice has 25 batches.

use crate::support::Project;
use serde_json::{Value, json};
use std::time::{Duration, Instant, SystemTime};

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

/// How many outputs each batch has: so many that 40 batches fill a page of the manifest.
const OUTPUTS: u64 = 25;

/// Copies each of 180 items to many files, which stand on 5 pages. A checkpoint names files of the first 100 batches. Those listed in the file `bad` fail; one waits as long as there is a file `bad.hold`.
fn pages(policy: &str) -> Project {
    let outputs = || 1..=OUTPUTS;
    let paths: Vec<String> = outputs()
        .map(|n| format!(r#""{{{{ paths.o{n} }}}}""#))
        .collect();
    let declared: Vec<String> = outputs()
        .map(|n| {
            format!("o{n} = {{ path = \"outputs/{{{{ item.stem }}}}/{n}.txt\", schema = false }}\n")
        })
        .collect();
    let project = items("");
    let work = format!(
        r#"
[each.item]
path = "inputs/*.txt"

[inputs]
file = "{{{{ item.path }}}}"

[step]
command = ["sh", "-c", 'echo "$1" >> "$BAD.ran"; grep -qx "$1" "$BAD" && exit 7; [ "$1" != item_60 ] || while [ -e "$BAD.hold" ]; do sleep 0.02; done; file=$2; shift 2; text=$(cat "$file"); for made; do echo "$text" > "$made"; done', "sh", "{{{{ item.stem }}}}", "{{{{ paths.file }}}}", {}]
env = ["BAD"]

[outputs]
{}{policy}"#,
        paths.join(", "),
        declared.concat()
    );
    project.write("stages/1_work.toml", work);
    for item in ITEMS + 1..=180 {
        let path = format!("workspace/inputs/item_{item}.txt");
        project.write(&path, format!("item {item}\n"));
    }
    project
}

/// Returns the pages of the manifest without durations and runs.
fn manifest(project: &Project) -> Vec<String> {
    let names = project.list("manifests/work");
    let page = |name: &String| {
        let text = project.read(&format!("workspace/manifests/work/{name}"));
        let lines = text.lines().filter(|line| !line.starts_with("# end"));
        let lines = lines.map(|line| {
            let same = line.split_once(",\"duration_ms\":");
            same.map_or(line, |(same, _)| same)
        });
        lines.collect::<Vec<_>>().join("\n")
    };
    names.iter().map(page).collect()
}

/// Returns the checkpoint without what differs from run to run.
fn checkpoint(project: &Project) -> Value {
    let mut checkpoint = project.json("workspace/stage_1_complete.json");
    for differs in ["timestamp", "duration_s", "run_id"] {
        checkpoint[differs] = Value::Null;
    }
    // The manifest has durations.
    checkpoint["checksums"]["output"] = Value::Null;
    checkpoint
}

fn check(project: &Project) {
    let (code, shown) = project.milepost(&["verify"]);
    assert_eq!(code, 0, "{shown}");
    project.run(&[]).expect(0, &[]);
}

#[test]
fn pages_that_are_written_meanwhile_are_those_of_a_run_with_all_records() {
    let meanwhile = pages("");
    let at_the_end = meanwhile.without_results();
    assert_eq!(meanwhile.run(&[]).code, 0);
    // With a limit, nothing runs in slices.
    assert_eq!(at_the_end.run(&["--limit", "180"]).code, 0);
    assert_eq!(manifest(&meanwhile).len(), 5);
    assert!(manifest(&meanwhile) == manifest(&at_the_end));
    assert_eq!(checkpoint(&meanwhile), checkpoint(&at_the_end));
    for project in [meanwhile, at_the_end] {
        check(&project);
        project.write("workspace/inputs/item_150.txt", "another\n");
        project.run(&[]).expect(0, &["work/item_150"]);
        check(&project);
    }
}

#[test]
fn a_failure_on_a_page_that_was_written_meanwhile_is_told_and_mended() {
    let project = pages("\n[policy]\non_failure = \"continue\"\n");
    project.write("bad", "item_150\n");
    let ran = project.run(&[]);
    assert_eq!(ran.code, 3, "{}", ran.output);
    ran.says("work/item_150");
    let made = checkpoint(&project);
    assert_eq!(
        (&made["status"], &made["batches"], &made["failed"]),
        (
            &json!("partial"),
            &json!(180),
            &json!({"item_150": made["failed"]["item_150"]})
        )
    );
    let progress = project.json("workspace/work_progress.json");
    let completed: Vec<u64> = (1..=180).filter(|item| *item != 150).collect();
    assert_eq!(progress["completed_batches"], json!(completed));
    assert_eq!(progress["failed_batches"], json!(["item_150"]));
    project.write("bad", "");
    project.run(&[]).expect(0, &["work/item_150"]);
    check(&project);
}

#[test]
fn what_was_written_before_a_run_was_killed_is_not_run_again() {
    let project = pages("");
    project.write("bad.hold", "");
    let mut run = project.spawn(&["run", "--jobs", "2"]);
    let end = Instant::now() + Duration::from_mins(1);
    while !project.exists("workspace/manifests/work/page_0001.sha256") {
        assert!(Instant::now() < end && run.try_wait().unwrap().is_none());
        std::thread::sleep(Duration::from_millis(10));
    }
    let completed = || project.json("workspace/work_progress.json")["completed_batches"].clone();
    let first: Vec<Value> = (1..=50).map(Value::from).collect();
    while !completed()
        .as_array()
        .is_some_and(|all| all.starts_with(&first))
    {
        assert!(Instant::now() < end, "{}", completed());
        std::thread::sleep(Duration::from_millis(10));
    }
    run.kill().unwrap();
    run.wait().unwrap();
    project.remove("bad.hold");
    // A page that was written meanwhile is not as the journal says at the end of a run that fails.
    project.write("bad", "item_100\n");
    // Steps of the run that was killed may still write to its scratch, so that a plan cannot be shown to write nothing.
    assert_eq!(project.run_unplanned(&[]).code, 1);
    let (code, shown) = project.milepost(&["verify"]);
    assert_eq!(code, 0, "{shown}");
    project.write("bad", "");
    assert_eq!(project.run(&[]).code, 0);
    let ran = project.read("bad.ran");
    for item in 1..=180 {
        let times = ran.lines().filter(|line| *line == format!("item_{item}"));
        let most = if item <= 50 { 1 } else { 3 };
        assert!((1..=most).contains(&times.count()), "{item}: {ran}");
    }
    assert_eq!(manifest(&project).len(), 5);
    check(&project);
}

#[test]
fn an_earlier_stage_with_many_new_batches_is_out_of_date() {
    let project = items("");
    project.write(
        "stages/2_again.toml",
        "[each.item]\npath = \"outputs/*.txt\"\n\n[inputs]\nfile = \"{{ item.path }}\"\n\n[step]\ncommand = [\"cp\", \"{{ paths.file }}\", \"{{ paths.made }}\"]\n\n[outputs]\nmade = { path = \"again/{{ item.stem }}.txt\", schema = false }\n",
    );
    assert_eq!(project.run(&[]).code, 0);
    for item in ITEMS + 1..=2 * ITEMS {
        let path = format!("workspace/inputs/item_{item}.txt");
        project.write(&path, format!("item {item}\n"));
    }
    let ran = project.run(&["again"]);
    assert_eq!((ran.code, ran.tried()), (3, vec![]), "{}", ran.output);
    ran.says("stage `work` is out of date");
    assert_eq!(project.run(&[]).code, 0);
    check(&project);
}
