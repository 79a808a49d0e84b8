//! Workspaces that an earlier program wrote: the program of today finds them up to date and leaves every file alone.

use crate::support::Project;
use serde_json::Value;
use std::collections::BTreeMap;

/// A copy of a fixture. Its files have other inodes and times than those that the caches of the workspace know.
fn fixture(name: &str) -> Project {
    Project::copy_with_results(&format!("tests/fixtures/workspaces/{name}"))
}

/// The size, time, inode and content of every file of the project but the caches and the lock.
fn files(project: &Project) -> BTreeMap<String, (u64, std::time::SystemTime, u64, Vec<u8>)> {
    use std::os::unix::fs::MetadataExt as _;
    let mut files = BTreeMap::new();
    for entry in walkdir::WalkDir::new(project.at("")) {
        let entry = entry.unwrap();
        let is_cache = [
            "stat-cache",
            "stat-cache-changes",
            "glance",
            "glance-changes",
            "lock",
        ]
        .iter()
        .any(|name| entry.path().ends_with(format!(".milepost/{name}")));
        if entry.file_type().is_file() && !is_cache {
            let path = entry.path().strip_prefix(project.at("")).unwrap();
            let found = entry.metadata().unwrap();
            let bytes = std::fs::read(entry.path()).unwrap();
            files.insert(
                path.to_str().unwrap().to_owned(),
                (found.len(), found.modified().unwrap(), found.ino(), bytes),
            );
        }
    }
    files
}

/// Runs a command in one workspace of the project.
#[track_caller]
fn milepost(project: &Project, workspace: &str, words: &[&str], code: i32) -> String {
    let (ended, text) = project.milepost(&[words, &["--workspace", workspace]].concat());
    assert_eq!(ended, code, "{words:?}: {text}");
    text
}

/// The batches that a plan names, by stage: those that will run with their reasons, and those that may run.
fn planned(project: &Project, workspace: &str) -> Vec<String> {
    let text = milepost(project, workspace, &["plan", "--json"], 0);
    let plan: Value = serde_json::from_str(&text).unwrap();
    let mut batches = Vec::new();
    for stage in plan["stages"].as_array().unwrap() {
        assert_eq!(
            (&stage["problem"], &stage["blocked"], &stage["checkpoint"]),
            (&Value::Null, &Value::Null, &Value::Bool(false)),
            "{stage:#}"
        );
        let of = |list: &str| stage[list].as_array().unwrap().clone();
        for list in ["judge", "retire", "altered", "missing"] {
            assert_eq!(of(list), Vec::<Value>::new(), "{list} of {stage:#}");
        }
        for batch in of("will") {
            let reasons = batch["reasons"].as_array().unwrap().iter();
            let reasons: Vec<_> = reasons
                .map(|reason| reason["reason"].as_str().unwrap())
                .collect();
            batches.push(format!(
                "{}/{} {}",
                stage["stage"].as_str().unwrap(),
                batch["batch"].as_str().unwrap(),
                reasons.join(" ")
            ));
        }
        for batch in of("may") {
            batches.push(format!(
                "{}/{} may run",
                stage["stage"].as_str().unwrap(),
                batch["batch"].as_str().unwrap()
            ));
        }
    }
    batches
}

/// Every command that reads understands what is there, and a run changes nothing.
#[track_caller]
fn is_up_to_date(project: &Project, workspace: &str, last_stage: &str) {
    let before = files(project);
    assert_eq!(planned(project, workspace), Vec::<String>::new());
    for words in [
        &["verify"][..],
        &["status"],
        &["log"],
        &["graph"],
        &["params"],
        &["why", last_stage],
        &["run"],
        &["run"],
    ] {
        milepost(project, workspace, words, 0);
        let after = files(project);
        assert_eq!(
            after.keys().collect::<Vec<_>>(),
            before.keys().collect::<Vec<_>>(),
            "{words:?}"
        );
        for (path, file) in &after {
            assert!(*file == before[path], "{words:?} wrote {path}");
        }
    }
}

#[test]
fn the_main_pipeline_is_up_to_date() {
    is_up_to_date(&fixture("building-model"), "workspace", "generate");
}

#[test]
fn grading_is_up_to_date() {
    is_up_to_date(&fixture("grading"), "workspace", "report");
}

#[test]
fn a_study_plan_is_up_to_date() {
    is_up_to_date(&fixture("study-plan"), "workspace", "export");
}

#[test]
fn diagrams_are_up_to_date() {
    is_up_to_date(&fixture("diagrams"), "workspace", "collect");
}

#[test]
fn prompt_tests_are_up_to_date() {
    is_up_to_date(&fixture("prompt-tests"), "workspace", "report");
}

#[test]
fn an_accepted_output_is_up_to_date() {
    let project = fixture("letters");
    let page = project.read("workspaces/accepted/outputs/page.txt");
    assert_eq!(page, "Dear Ann\nDear Bo\nDear Cy");
    is_up_to_date(&project, "workspaces/accepted", "join");
}

#[test]
fn a_failed_batch_runs_again_and_no_other() {
    let project = fixture("letters");
    let workspace = "workspaces/failed";
    assert_eq!(
        planned(&project, workspace),
        ["copy/person_2 failed", "join/ never_made"]
    );
    let done = format!("{workspace}/intermediate/person_1.json");
    let before = files(&project);
    milepost(&project, workspace, &["run"], 1);
    assert!(files(&project)[&done] == before[&done]);

    project.write(
        &format!("{workspace}/inputs/person_2.json"),
        "{\"name\": \"Bo\"}\n",
    );
    milepost(&project, workspace, &["run"], 0);
    assert!(files(&project)[&done] == before[&done]);
    let page = project.read(&format!("{workspace}/outputs/page.txt"));
    assert_eq!(page, "Hello Ann\nHello Bo\nHello Cy");
}

#[test]
fn a_forced_batch_that_did_not_run_stays_forced() {
    let project = fixture("letters");
    let workspace = "workspaces/forced";
    assert_eq!(
        planned(&project, workspace),
        [
            "copy/person_2 forced_before",
            "copy/person_3 forced_before",
            "join/ may run"
        ]
    );
    let before = files(&project);
    milepost(&project, workspace, &["run"], 0);
    let after = files(&project);
    let is_new = |name: &str| {
        let path = format!("{workspace}/{name}");
        before[&path].2 != after[&path].2
    };
    let names = ["person_1", "person_2", "person_3"].map(|it| format!("intermediate/{it}.json"));
    assert_eq!(
        names.each_ref().map(|it| is_new(it)),
        [false, true, true],
        "{names:?}"
    );
    assert!(!is_new("outputs/page.txt"));
    assert_eq!(planned(&project, workspace), Vec::<String>::new());
}

#[test]
fn outputs_with_short_digests_in_their_names_are_rebuilt() {
    let project = fixture("short-digests");
    assert_eq!(
        planned(&project, "workspace"),
        [
            "clean/a:b renamed",
            "clean/2024/05 renamed",
            "grade/a:b renamed changed changed",
            "grade/2024/05 renamed changed changed",
        ]
    );
    let plain = "workspace/outputs/plain.json";
    let before = files(&project);
    milepost(&project, "workspace", &["run"], 0);
    assert!(files(&project)[plain] == before[plain]);
    let outputs: Vec<String> = files(&project)
        .into_keys()
        .filter_map(|path| path.strip_prefix("workspace/outputs/").map(str::to_owned))
        .collect();
    assert_eq!(
        outputs,
        [
            "2024_05~4f6e1bad2f48925a66052fea.json",
            "a_b~6783a31eabf68ccc0660f935.json",
            "plain.json"
        ]
    );
    assert_eq!(planned(&project, "workspace"), Vec::<String>::new());
    milepost(&project, "workspace", &["verify"], 0);
}
