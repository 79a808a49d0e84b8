//! `[[require]]`: preconditions of a batch, judged before anything is started, asked or paid for it; and what a failed loop says.

use crate::support::Project;
use serde_json::json;

/// Scores are collected, then each entry is copied by a program; not those above the most that is allowed.
fn entries() -> Project {
    Project::new(&[
        (
            "milepost.toml",
            "name = \"entries\"\n\n[params]\nmost = 10\nleast = 0\n",
        ),
        (
            "stages/1_copy.toml",
            r#"
[each.entry]
path = "inputs/entry_*.json"

[inputs]
entry_file = "{{ entry.path }}"

[[require]]
test = "$params.least <= $params.most"
error = "NO_RANGE"
message = "no score is from {{ params.least }} to {{ params.most }}"

[[require]]
test = ".entry_file.score <= $params.most"
error = "SCORE_TOO_HIGH"
message = "{{ entry.stem }} has {{ entry_file.score }}: at most {{ params.most }} is allowed"

[step]
command = ["sh", "-c", 'echo began >> "$1/began.txt"; cp "$2" "$3"', "sh", "{{ env.HERE }}", "{{ entry.path }}", "{{ paths.copy }}"]

[outputs]
copy = { path = "outputs/{{ entry.stem }}.json", schema = false }

[policy]
on_failure = "continue"
"#,
        ),
        ("workspace/inputs/entry_1.json", r#"{"score": 3}"#),
        ("workspace/inputs/entry_2.json", r#"{"score": 12}"#),
    ])
}

fn fixture() -> Project {
    let mut project = entries();
    let here = project.at("").to_str().unwrap().to_owned();
    project.env("HERE", &here);
    let declared = project.read("milepost.toml");
    project.write("milepost.toml", format!("{declared}\n[env]\nHERE = \"\"\n"));
    project
}

#[test]
fn a_batch_whose_precondition_does_not_hold_is_not_begun() {
    let project = fixture();
    let plan = project.plan(&[]).unwrap();
    let why = "entry_2 has 12: at most 10 is allowed";
    let missing = json!([{"batch": "entry_2", "code": "SCORE_TOO_HIGH", "why": why}]);
    assert_eq!(plan["stages"][0]["missing"], missing);
    let (_, said) = project.milepost(&["plan"]);
    assert!(
        said.contains(&format!("entry_2: SCORE_TOO_HIGH: {why}\n")),
        "{said}"
    );

    let ran = project.run(&[]);
    ran.expect(3, &["copy/entry_1"]);
    ran.says(&format!("SCORE_TOO_HIGH: {why}"));
    assert_eq!(project.read("began.txt"), "began\n");
    assert_eq!(ran.batches("batch_failed"), ["copy/entry_2"]);

    // It runs once it holds, and what is finished is only judged by what is another now.
    project
        .run(&["--set", "most=12"])
        .expect(0, &["copy/entry_2"]);
    let ran = project.run(&["--set", "most=15"]);
    ran.expect(0, &[]);
    assert_eq!(ran.judged(), ["copy/entry_1", "copy/entry_2"]);
    assert_eq!(project.read("began.txt"), "began\nbegan\n");
}

#[test]
fn a_finished_batch_whose_precondition_no_longer_holds_fails() {
    let project = fixture();
    project
        .run(&["--set", "most=12"])
        .expect(0, &["copy/entry_1", "copy/entry_2"]);
    let ran = project.run_unplanned(&["--set", "most=10"]);
    ran.expect(3, &[]);
    ran.says("SCORE_TOO_HIGH: entry_2 has 12: at most 10 is allowed");
    assert_eq!(project.read("began.txt"), "began\nbegan\n");
}

#[test]
fn what_mentions_no_input_is_judged_before_the_inputs_are_there() {
    let project = fixture();
    project.write(
        "stages/2_join.toml",
        r#"
[inputs]
copies = "outputs/entry_1.json"

[[require]]
test = "$params.least >= 0"
error = "BELOW_NOTHING"

[step]
jq = ".copies"

[outputs]
all = { path = "joined/all.json", schema = false }
"#,
    );
    let sets = ["--set", "most=20", "--set", "least=-1"];
    let plan = project.plan(&sets).unwrap();
    let missing =
        json!([{"batch": "", "code": "BELOW_NOTHING", "why": "`$params.least >= 0` is not true"}]);
    assert_eq!(plan["stages"][1]["missing"], missing);
    let ran = project.run(&sets);
    ran.expect(1, &["copy/entry_1", "copy/entry_2"]);
    ran.says("BELOW_NOTHING: `$params.least >= 0` is not true");
}

#[test]
fn a_loop_that_fails_says_what_is_declared() {
    let project = Project::new(&[
        (
            "milepost.toml",
            "name = \"loop\"\n\n[params]\nthreshold = 9\n",
        ),
        (
            "stages/1_loop.toml",
            r#"
[refine]
until = ".draft.score >= $params.threshold"
score = ".draft.score"
message = "failed to meet {{ params.threshold }} in {{ iteration }} rounds: best score {{ best.score }} in round {{ best.iteration }}"

[step]
jq = '{score: [4, 7, 5][$iteration - 1]}'

[outputs]
draft = { path = "outputs/draft.json", schema = false }
"#,
        ),
    ]);
    let ran = project.run(&[]);
    ran.expect(1, &["loop"]);
    ran.says("REFINE: failed to meet 9 in 3 rounds: best score 7 in round 2");
    // Another text is no reason to run what is finished.
    project.run(&["--set", "threshold=7"]).expect(0, &["loop"]);
    project.edit("stages/1_loop.toml", "failed to meet", "is below");
    project.run(&[]).expect(0, &[]);
    project.edit(
        "stages/1_loop.toml",
        "score = \".draft.score\"",
        "score = \".draft.score\"\notherwise = \"best\"",
    );
    let (code, said) = project.milepost(&["plan"]);
    assert_eq!(code, 4, "{said}");
    assert!(
        said.contains("`message` is for a loop that can fail"),
        "{said}"
    );
}
