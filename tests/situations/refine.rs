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

/// A stage of three rounds, whose program says outside the workspace which round it does, and fails where a file says so.
fn counting(refine: &str) -> House {
    House::new(&[
        ("milepost.toml", "name = \"rounds\"\n"),
        ("workspace/inputs/topic.txt", "walls"),
        (
            "stages/1_write.toml",
            &format!(
                r#"[inputs]
topic = "inputs/topic.txt"

[refine]
{refine}

[[step]]
command = ["sh", "-c", 'up=../../../../../..; echo "$1" >> $up/ran; test ! -e $up/fails_$1 && echo "$2 $1" > "$3"', "sh", "{{{{ iteration }}}}", "{{{{ topic }}}}", "{{{{ paths.draft }}}}"]
out = "draft"

[[step]]
jq = '{{verdict: ["needs_revision", "needs_revision", "capacity_limited_plan", "approved_plan"][$iteration - 1], score: [2, 3, 1, 1][$iteration - 1]}}'
out = "review"

[[step]]
jq = '(.previous.history // []) + [{{iteration: $iteration, score: .review.score, feedback: .review.verdict}}]'
out = "history"

[outputs]
draft = "outputs/draft.txt"
review = {{ path = "outputs/reviews/review_{{{{ iteration }}}}.json", schema = false }}
history = {{ path = "outputs/history.json", schema = false }}

[[check]]
test = '.topic != "doors"'
"#
            ),
        ),
    ])
}

const VERDICTS: &str = "until = '.review.verdict != \"needs_revision\"'\nmax_iterations = 4";

fn counted(house: &House) -> String {
    let ran = house.read("ran");
    house.remove("ran");
    ran.split_whitespace().collect()
}

fn kept(house: &House) -> Vec<String> {
    house.list(".milepost/rounds/write/only")
}

#[test]
fn verdicts_have_as_many_values_as_a_condition_tells_apart() {
    let house = counting(VERDICTS);
    house.run(&[]).expect(0, &["write"]);
    assert_eq!(counted(&house), "123");
    assert_eq!(
        house.json("workspace/outputs/history.json"),
        json!([
            {"iteration": 1, "score": 2, "feedback": "needs_revision"},
            {"iteration": 2, "score": 3, "feedback": "needs_revision"},
            {"iteration": 3, "score": 1, "feedback": "capacity_limited_plan"},
        ])
    );
    assert_eq!(house.read("workspace/outputs/draft.txt"), "walls 3\n");
}

#[test]
fn a_batch_that_failed_in_a_round_goes_on_with_that_round() {
    let house = counting(VERDICTS);
    house.write("fails_3", "");
    house.run(&[]).expect(1, &["write"]);
    house.run(&[]).expect(1, &["write"]);
    assert_eq!(counted(&house), "1233");
    assert!(kept(&house).contains(&"2.json".to_owned()));
    house.remove("fails_3");
    house.run(&[]).expect(0, &["write"]);
    assert_eq!((counted(&house), kept(&house)), ("3".to_owned(), vec![]));
    let whole = counting(VERDICTS);
    whole.run(&[]).expect(0, &["write"]);
    assert_eq!(house.made(), whole.made());

    // Made again by wish, from another input, or asked afresh: from the first round.
    house.write("fails_2", "");
    house.run(&["-B"]).expect(1, &["write"]);
    house.run(&["-B"]).expect(1, &["write"]);
    assert_eq!(counted(&house), "1212");
    house.write("workspace/inputs/topic.txt", "roofs");
    house.run(&[]).expect(1, &["write"]);
    house.run(&["--fresh"]).expect(1, &["write"]);
    house.run(&[]).expect(1, &["write"]);
    assert_eq!(counted(&house), "12122");
    // What was begun for an input that is no more is of no use.
    house.write("workspace/inputs/topic.txt", "walls");
    house.remove("fails_2");
    house.run(&[]).expect(0, &["write"]);
    assert_eq!((counted(&house), kept(&house)), ("123".to_owned(), vec![]));
    assert_eq!(house.made(), whole.made());
}

#[test]
fn rounds_that_are_over_are_not_gone_on_with() {
    // None is right; then what is right does not pass a check.
    for (refine, topic) in [("until = 'false'", "walls"), (VERDICTS, "doors")] {
        let house = counting(refine);
        house.write("workspace/inputs/topic.txt", topic);
        house.run(&[]).expect(1, &["write"]);
        assert_eq!(kept(&house), Vec::<String>::new());
        house.run(&[]).expect(1, &["write"]);
        assert_eq!(counted(&house), "123123");
    }
    // What is left of a stage that is cleaned, or not repeated any more, goes.
    let house = counting(VERDICTS);
    house.write("fails_2", "");
    house.run(&[]).expect(1, &["write"]);
    assert_eq!(house.milepost(&["clean", "--yes"]).0, 0);
    assert_eq!(kept(&house), Vec::<String>::new());
}

#[test]
fn the_best_of_the_rounds_of_two_runs_stands() {
    let refine =
        "until = 'false'\nmax_iterations = 4\notherwise = \"best\"\nscore = \".review.score\"";
    let house = counting(refine);
    house.write("fails_4", "");
    house.run(&[]).expect(1, &["write"]);
    house.remove("fails_4");
    house
        .run(&[])
        .expect(0, &["write"])
        .says("no round of 4 was right: round 2 stands, with the score 3");
    assert_eq!(counted(&house), "12344");
    let whole = counting(refine);
    whole.run(&[]).expect(0, &["write"]);
    assert_eq!(house.made(), whole.made());
    assert_eq!(house.read("workspace/outputs/draft.txt"), "walls 2\n");
}

#[test]
fn a_batch_that_has_a_placeholder_or_is_held_goes_on_as_well() {
    let house = counting(VERDICTS);
    let declared = house.read("stages/1_write.toml");
    house.write(
        "stages/1_write.toml",
        format!("{declared}\n[policy]\nplaceholder = '.error_code'\n"),
    );
    house.write("fails_2", "");
    house.run(&[]).expect(3, &["write"]);
    assert_eq!(house.read("workspace/outputs/draft.txt"), "\"EXIT\"\n");
    house.remove("fails_2");
    house.run(&[]).expect(0, &["write"]);
    assert_eq!((counted(&house), kept(&house)), ("1223".to_owned(), vec![]));
    assert_eq!(house.read("workspace/outputs/draft.txt"), "walls 3\n");

    // The agent is asked in each round, and may be asked once.
    let house = counting(VERDICTS);
    let asks = "[[step]]\nagent = \"teller\"\nprompt = \"tell.md\"\nanswer = \"text\"\nout = \"told\"\n\n[outputs]";
    house.edit("stages/1_write.toml", "[outputs]", asks);
    house.write("tell.md", "Round {{ iteration }}\n");
    let agent = "[agents.teller]\ncli = [\"tail\", \"-n\", \"1\"]\n";
    let project = |calls: u32| format!("name = \"rounds\"\n{agent}[limits]\ncalls = {calls}\n");
    house.write("milepost.toml", project(1));
    for _ in 0..2 {
        house.run(&[]).expect(3, &["write"]).says("under [limits]");
    }
    house.write("milepost.toml", project(3));
    house.run(&[]).expect(0, &["write"]);
    assert_eq!(
        (counted(&house), kept(&house)),
        ("12223".to_owned(), vec![])
    );
}
