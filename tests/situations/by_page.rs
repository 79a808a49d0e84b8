//! After a change of files, a run reads only the pages of manifests that name them, and does what it does with all of them.

use super::letters::NOTES;
use crate::support::{Project, RunResult};
use serde_json::{Map, Value};

/// So many batches with two files each are on three pages, with one on two.
const ITEMS: u64 = 1_050;

const MAP: &str = r#"
summary = '{sum: $mapped.value, names: [$mapped.name]}'

[each.item]
path = "inputs/items/*.json"

[inputs]
file = "{{ item.path }}"
factor = "inputs/factor.json"

[[step]]
jq = '{name: $file.name, value: ($file.value * $factor)}'
out = "mapped"

[[step]]
jq = '$file.name'
out = "name"

[outputs]
name = { path = "intermediate/names/{{ item.stem }}.json", schema = false }
mapped = { path = "intermediate/mapped/{{ item.stem }}.json", schema = "schemas/mapped.schema.json" }
"#;

const AGAIN: &str = r#"
[each.item]
path = "intermediate/mapped/*.json"

[inputs]
file = "{{ item.path }}"

[step]
copy = "file"
out = "copied"

[outputs]
copied = { path = "outputs/{{ item.stem }}.json", schema = false }
"#;

const SUM: &str = r#"
[inputs]
all = "outputs/item_*.json"

[step]
jq = '[$all[].value] | add'
out = "sum"

[outputs]
sum = { path = "sum.json", schema = false }
"#;

fn item(number: u64) -> String {
    // Names with and without a number, as people have them.
    match number % 3 {
        0 => format!("workspace/inputs/items/item_{number:04}.json"),
        1 => format!("workspace/inputs/items/item_{number}.json"),
        _ => {
            let letter = |at: u64| char::from(b'a' + u8::try_from(at % 26).unwrap());
            let word: String = [number / 676, number / 26, number]
                .map(letter)
                .iter()
                .collect();
            format!("workspace/inputs/items/item_{word}.json")
        }
    }
}

fn content(number: u64, value: u64) -> String {
    format!(r#"{{"name": "n{number}", "value": {value}}}"#)
}

fn project() -> Project {
    let mut project = Project::new(&[
        ("milepost.toml", "name = \"pages\"\n"),
        ("stages/1_map.toml", MAP),
        ("stages/2_again.toml", AGAIN),
        ("stages/3_sum.toml", SUM),
        (
            "schemas/mapped.schema.json",
            r#"{"type": "object", "required": ["name", "value"], "properties": {"value": {"maximum": 100000}}}"#,
        ),
        ("workspace/inputs/factor.json", "2"),
    ]);
    for number in 0..ITEMS {
        project.write(&item(number), content(number, number));
    }
    // Stamps tell what files contain at once.
    project.env("MILEPOST_AHEAD", "3600");
    project
}

/// What is the same after a run, however it found out what to do: without times and ids.
fn told(project: &Project) -> Map<String, Value> {
    let mut all = Map::new();
    for file in [
        "stage_1_complete.json",
        "stage_2_complete.json",
        "stage_3_complete.json",
        "stage_4_complete.json",
        "stage_5_complete.json",
        "map_progress.json",
        "again_progress.json",
    ] {
        let path = format!("workspace/{file}");
        if !project.exists(&path) {
            continue;
        }
        let mut json = project.json(&path);
        for key in [
            "timestamp",
            "run_id",
            "duration_s",
            "updated",
            "pid",
            "checksum",
        ] {
            json.as_object_mut().unwrap().remove(key);
        }
        let overrides = json.get_mut("overrides").and_then(Value::as_array_mut);
        for one in overrides.into_iter().flatten() {
            one["at"] = Value::Null;
        }
        // The pages name the run of each batch and how long it took.
        if json["output_file"].is_null() && json.get("checksums").is_some() {
            json["checksums"]["output"] = Value::Null;
        }
        all.insert(file.to_owned(), json);
    }
    all
}

/// Runs with a debug log, and returns how many pages of manifests of each stage were read by their names.
fn pages_read(project: &Project) -> (RunResult, Vec<String>) {
    let log = project.at("debug.log");
    let ran = project.run_unplanned(&["--log-file", log.to_str().unwrap()]);
    let text = std::fs::read_to_string(&log).unwrap();
    std::fs::remove_file(&log).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    let read = lines.filter(|line: &Value| line["pages_read"].is_number());
    let line = |line: Value| {
        let (stage, read) = (line["stage"].as_str().unwrap(), &line["pages_read"]);
        format!("{stage}: {read} of {} pages", line["pages"])
    };
    (ran, read.map(line).collect())
}

#[test]
fn one_changed_file_of_many_reads_few_pages() {
    let project = project();
    let first = project.run_unplanned(&[]);
    assert_eq!(first.code, 0, "{}", first.output);
    project.write(&item(1023), content(1023, 7));
    let (ran, read) = pages_read(&project);
    let changed = ["again/item_1023", "map/item_1023", "sum"];
    ran.expect(0, &changed);
    // The first page is read for the files that a checkpoint names. The sum reads all outputs, so all records.
    assert_eq!(read, ["map: 2 of 3 pages", "again: 1 of 2 pages"]);
    let (code, verified) = project.milepost(&["verify"]);
    assert_eq!(code, 0, "{verified}");
}

/// What happens between two runs.
type Change = Box<dyn Fn(&Project)>;

fn writes(number: u64, text: String) -> Change {
    Box::new(move |project| project.write(&item(number), &text))
}

fn removes(path: &'static str) -> Change {
    Box::new(move |project| project.remove(path))
}

#[test]
fn runs_do_the_same_by_page_and_with_all_records() {
    let by_page = project();
    let whole = by_page.copy();
    let formatted = r#"{"name":  "n20", "value":  20}"#.to_owned();
    let steps: Vec<Vec<Change>> = vec![
        vec![],
        vec![writes(7, content(7, 5000))],
        vec![
            writes(0, content(0, 1)),
            writes(1100, content(1100, 2)),
            writes(1049, content(1049, 3)),
        ],
        // Other bytes, the same outputs.
        vec![writes(20, formatted)],
        vec![Box::new(|project| {
            project.set_mtime(&item(300), crate::support::long_ago());
        })],
        // A value that the schema refuses, and then a valid one.
        vec![writes(801, content(801, 70_000)), writes(3, content(3, 4))],
        vec![writes(4, content(4, 5))],
        vec![writes(801, content(801, 6))],
        vec![removes("workspace/intermediate/mapped/item_0900.json")],
        vec![removes("workspace/outputs/item_0903.json")],
        vec![Box::new(|project| {
            project.write("workspace/outputs/item_0009.json", r#"{"value": 1}"#);
        })],
        vec![Box::new(|project| {
            let (code, said) = project.milepost(&["accept", "again/item_0009", "--why", "known"]);
            assert_eq!(code, 0, "{said}");
        })],
        vec![writes(1000, content(1000, 8))],
        vec![writes(9, content(9, 10))],
        vec![
            removes("workspace/inputs/items/item_0012.json"),
            writes(9000, content(9000, 1)),
        ],
        vec![writes(15, content(15, 16)), writes(1001, content(1001, 2))],
        vec![Box::new(|project| {
            project.write("workspace/inputs/factor.json", "3");
        })],
        vec![writes(15, content(15, 17))],
    ];
    do_the_same(&by_page, &whole, &steps);
}

/// The lines of a run that name outputs.
fn files_named(ran: &RunResult) -> Vec<String> {
    let lines = ran.output.lines();
    let named = lines.filter(|line| line.contains("workspace/outputs"));
    named.map(str::to_owned).collect()
}

/// Takes two projects through the same; in one of them a run always has all records. All that runs do must be the same.
fn do_the_same(by_page: &Project, whole: &Project, steps: &[Vec<Change>]) {
    for (step, changes) in steps.iter().enumerate() {
        let mut all = Vec::new();
        for project in [by_page, whole] {
            for change in changes {
                change(project);
            }
            if project.path() == whole.path() && project.exists(NOTES) {
                project.remove(NOTES);
            }
            let (_, plan) = project.milepost(&["plan", "--json"]);
            let plan: Value = serde_json::from_str(&plan).unwrap_or_else(|_| panic!("{plan}"));
            let ran = project.run_unplanned(&[]);
            all.push((
                (ran.code, ran.tried(), ran.retired()),
                plan["stages"].clone(),
                project.output_digests(),
                told(project),
                files_named(&ran),
            ));
        }
        let (whole, by_page) = (all.remove(1), all.remove(0));
        assert_eq!(by_page.0, whole.0, "step {step}");
        assert_eq!(by_page.1, whole.1, "step {step}: plan");
        assert_eq!(by_page.2, whole.2, "step {step}: outputs");
        assert_eq!(by_page.4, whole.4, "step {step}: files that the run names");
        for (file, found) in &by_page.3 {
            for (key, value) in found.as_object().unwrap() {
                assert_eq!(*value, whole.3[file][key], "step {step}: {key} of {file}");
            }
        }
    }
    let (code, verified) = by_page.milepost(&["verify"]);
    assert_eq!(code, 0, "{verified}");
}

/// The stages after the first one read an only file, other outputs of the same batches, or what a parameter names.
#[test]
fn stages_that_no_changed_file_concerns_keep_their_checkpoints() {
    let mut by_page = Project::new(&[
        (
            "milepost.toml",
            "name = \"special\"\n[params.source]\ntype = \"string\"\ndefault = \"outputs/one/*.json\"\n",
        ),
        (
            "stages/1_split.toml",
            r#"
[each.item]
path = "inputs/*.json"

[inputs]
file = "{{ item.path }}"

[[step]]
jq = '$file.one'
out = "one"

[[step]]
when = '$file.two != null'
jq = '$file.two'
out = "two"

[outputs]
one = { path = "outputs/one/{{ item.stem }}.json", schema = false }
two = { path = "outputs/two/{{ item.stem }}.json", schema = false }
"#,
        ),
        (
            "stages/2_copy.toml",
            r#"
[each.item]
path = "outputs/two/*.json"

[inputs]
file = "{{ item.path }}"

[step]
copy = "file"

[outputs]
copied = { path = "outputs/copied/{{ item.stem }}.json", schema = false }
"#,
        ),
        (
            "stages/3_again.toml",
            r#"
[each.item]
path = "outputs/copied/*.json"

[inputs]
file = "{{ item.path }}"

[step]
copy = "file"

[outputs]
again = { path = "outputs/again/{{ item.stem }}.json", schema = false }
"#,
        ),
        (
            "stages/4_special.toml",
            "[inputs]\nfile = \"outputs/one/a.json\"\n[step]\ncopy = \"file\"\n[outputs]\nreport = { path = \"outputs/report.json\", schema = false }\n",
        ),
        (
            "stages/5_named.toml",
            "[inputs]\nall = { path = \"{{ params.source }}\", optional = true }\n[step]\njq = '[$all[]?] | add'\n[outputs]\nsum = { path = \"outputs/sum.json\", schema = false }\n",
        ),
    ]);
    by_page.env("MILEPOST_AHEAD", "3600");
    let input = |name: &str, text: &str| -> Change {
        let (path, text) = (format!("workspace/inputs/{name}.json"), text.to_owned());
        Box::new(move |project| project.write(&path, &text))
    };
    for name in ["a", "b", "c"] {
        input(name, r#"{"one": 1, "two": 2}"#)(&by_page);
    }
    let whole = by_page.copy();
    let steps = vec![
        vec![],
        vec![input("b", r#"{"one": 3, "two": 2}"#)],
        vec![input("c", r#"{"one": 3, "two": 4}"#)],
        // One output fewer, and one more.
        vec![input("c", r#"{"one": 3}"#)],
        vec![input("b", r#"{"one": 5, "two": 2}"#)],
        vec![input("c", r#"{"one": 3, "two": 6}"#)],
        vec![input("a", r#"{"one": 7, "two": 2}"#)],
        vec![input("d", r#"{"one": 8, "two": 2}"#)],
        vec![input("b", r#"{"one": 9, "two": 9}"#)],
    ];
    do_the_same(&by_page, &whole, &steps);
}
