//! Steps that are repeated: what a round sees, when they end, what stays.

use super::house::House;
use serde_json::{Value, json};

/// A stage whose draft gets better by round, with more keys of `[refine]`.
fn house(refine: &str) -> House {
    House::new(&[
        ("milepost.toml", "name = \"rounds\"\n[params]\nwanted = 2\n"),
        (
            "stages/1_write.toml",
            &format!(
                r#"[refine]
{refine}

[[step]]
jq = '{{n: $iteration, score: [5, 9, 7][$iteration - 1], before: .previous.draft.n}}'
out = "draft"

[[step]]
jq = '{{first: $iteration}}'
out = "once"
when = ".iteration == 1"

[[step]]
command = ["sh", "-c", 'printf "%s" "$1" > "$2"', "sh", "round {{{{ iteration }}}}", "{{{{ paths.page }}}}"]
out = "page"

[[step]]
jq = '(.previous.history // []) + [{{n: $iteration, page: $page, once: $once.first}}]'
out = "history"

[outputs]
draft = {{ path = "intermediate/drafts/draft_{{{{ iteration }}}}.json", schema = false }}
page = "outputs/page.txt"
history = {{ path = "outputs/history.json", schema = false }}

[errors]
refine = "QUALITY"
"#
            ),
        ),
    ])
}

fn history(house: &House) -> Value {
    house.json("workspace/outputs/history.json")
}

fn rounds(most: u32) -> Value {
    (1..=most)
        .map(|n| json!({"n": n, "page": format!("round {n}"), "once": 1}))
        .collect()
}

#[test]
fn rounds_end_when_the_result_is_right_and_their_files_stay() {
    let house = house("until = \".draft.n == $params.wanted\"");
    house.run(&[]).expect(0, &["write"]);
    assert_eq!(
        house.list("intermediate/drafts"),
        ["draft_1.json", "draft_2.json"]
    );
    assert_eq!(
        house.json("workspace/intermediate/drafts/draft_2.json"),
        json!({"n": 2, "score": 9, "before": 1})
    );
    assert_eq!(
        house.json("workspace/intermediate/drafts/draft_1.json")["before"],
        Value::Null
    );
    assert_eq!(history(&house), rounds(2));
    assert_eq!(house.read("workspace/outputs/page.txt"), "round 2");
    house.run(&[]).expect(0, &[]);
    // More rounds, and then fewer: what is not made any more does not stay.
    house.edit("milepost.toml", "wanted = 2", "wanted = 3");
    house.run(&[]).expect(0, &["write"]);
    assert_eq!(history(&house), rounds(3));
    house.edit("milepost.toml", "wanted = 3", "wanted = 1");
    house.run(&[]).expect(0, &["write"]);
    assert_eq!(house.list("intermediate/drafts"), ["draft_1.json"]);
    assert_eq!(history(&house), rounds(1));
    house.edit(
        "stages/1_write.toml",
        "== $params.wanted",
        ">= $params.wanted",
    );
    house.run(&[]).expect(0, &["write"]);
}

#[test]
fn no_round_that_is_right_is_a_failure_with_a_name() {
    let house = house("until = \".draft.score > 9\"\nscore = \".draft.score\"");
    let ran = house.run(&[]);
    ran.expect(1, &["write"]);
    let failed = &ran
        .records
        .iter()
        .find(|record| record["kind"] == "batch_failed")
        .unwrap()["data"]["outcome"];
    assert_eq!(
        *failed,
        json!({"kind": "refine", "code": "QUALITY", "message": "after 3 rounds `.draft.score > 9` is not true",
            "details": ["round 1: not right, score 5", "round 2: not right, score 9", "round 3: not right, score 7"]})
    );
    assert_eq!(house.list("outputs"), Vec::<String>::new());
    let kept = house.quarantine();
    for name in [
        "draft_1.json",
        "draft_2.json",
        "draft_3.json",
        "history.json",
    ] {
        assert!(
            kept.iter().any(|path| path.ends_with(name)),
            "{name}: {kept:?}"
        );
    }
}

#[test]
fn the_best_round_stands_when_that_is_declared() {
    let house = house(
        "until = \".draft.score > 9\"\nscore = \".draft.score\"\notherwise = \"best\"\nmax_iterations = \"{{ params.wanted + 1 }}\"",
    );
    house
        .run(&[])
        .expect(0, &["write"])
        .says("no round of 3 was right: round 2 stands, with the score 9");
    assert_eq!(
        house.list("intermediate/drafts"),
        ["draft_1.json", "draft_2.json", "draft_3.json"]
    );
    assert_eq!(history(&house), rounds(2));
    assert_eq!(house.read("workspace/outputs/page.txt"), "round 2");
    house.run(&[]).expect(0, &[]);
}

#[test]
fn a_condition_that_is_none_fails_the_batch() {
    let house = house("until = \".draft.n\"");
    house
        .run(&[])
        .expect(1, &["write"])
        .says("`until` gave 1: true or false was expected");
}

#[test]
fn what_other_steps_made_outlives_a_try_of_a_program() {
    let house = House::new(&[
        ("milepost.toml", "name = \"tries\"\n"),
        (
            "stages/1_make.toml",
            r#"[[step]]
jq = '"first"'
out = "first"

[[step]]
command = "test -e again && echo second > {{ paths.second }} && echo third > {{ paths.third }} || { touch again; echo wrong > {{ paths.third }}; exit 1; }"
attempts = 2
out = "second"

[outputs]
first = "outputs/first.txt"
second = "outputs/second.txt"
third = "outputs/third.txt"
"#,
        ),
    ]);
    house.run(&[]).expect(0, &["make"]);
    assert_eq!(house.read("workspace/outputs/first.txt"), "first");
}
