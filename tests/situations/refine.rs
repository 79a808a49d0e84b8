//! Steps that are repeated: what a round sees, when they end, what stays.

use crate::support::Project;
use serde_json::{Value, json};

/// A stage whose draft gets better by round, with more keys of `[refine]`.
fn fixture(refine: &str) -> Project {
    Project::new(&[
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

fn history(project: &Project) -> Value {
    project.json("workspace/outputs/history.json")
}

fn rounds(most: u32) -> Value {
    (1..=most)
        .map(|n| json!({"n": n, "page": format!("round {n}"), "once": 1}))
        .collect()
}

#[test]
fn rounds_end_when_the_result_is_right_and_their_files_stay() {
    let project = fixture("until = \".draft.n == $params.wanted\"");
    project.run(&[]).expect(0, &["write"]);
    assert_eq!(
        project.list("intermediate/drafts"),
        ["draft_1.json", "draft_2.json"]
    );
    assert_eq!(
        project.json("workspace/intermediate/drafts/draft_2.json"),
        json!({"n": 2, "score": 9, "before": 1})
    );
    assert_eq!(
        project.json("workspace/intermediate/drafts/draft_1.json")["before"],
        Value::Null
    );
    assert_eq!(history(&project), rounds(2));
    assert_eq!(project.read("workspace/outputs/page.txt"), "round 2");
    project.run(&[]).expect(0, &[]);
    // More rounds, and then fewer: what is not made any more does not stay.
    project.edit("milepost.toml", "wanted = 2", "wanted = 3");
    project.run(&[]).expect(0, &["write"]);
    assert_eq!(history(&project), rounds(3));
    project.edit("milepost.toml", "wanted = 3", "wanted = 1");
    project.run(&[]).expect(0, &["write"]);
    assert_eq!(project.list("intermediate/drafts"), ["draft_1.json"]);
    assert_eq!(history(&project), rounds(1));
    project.edit(
        "stages/1_write.toml",
        "== $params.wanted",
        ">= $params.wanted",
    );
    project.run(&[]).expect(0, &["write"]);
}

#[test]
fn no_round_that_is_right_is_a_failure_with_a_name() {
    let project = fixture("until = \".draft.score > 9\"\nscore = \".draft.score\"");
    let ran = project.run(&[]);
    ran.expect(1, &["write"]);
    let failed = &ran
        .records
        .iter()
        .find(|record| record["kind"] == "batch_failed")
        .unwrap()["data"]["outcome"];
    assert_eq!(
        *failed,
        json!({"kind": "refine", "code": "QUALITY", "message": "after 3 iterations, `.draft.score > 9` is not true",
            "details": ["iteration 1: not right, score 5", "iteration 2: not right, score 9", "iteration 3: not right, score 7"]})
    );
    assert_eq!(project.list("outputs"), Vec::<String>::new());
    let kept = project.quarantine();
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
    let project = fixture(
        "until = \".draft.score > 9\"\nscore = \".draft.score\"\notherwise = \"best\"\nmax_iterations = \"{{ params.wanted + 1 }}\"",
    );
    project
        .run(&[])
        .expect(0, &["write"])
        .says("`until` was true in none of 3 iterations: iteration 2 is used, with the score 9");
    assert_eq!(
        project.list("intermediate/drafts"),
        ["draft_1.json", "draft_2.json", "draft_3.json"]
    );
    assert_eq!(history(&project), rounds(2));
    assert_eq!(project.read("workspace/outputs/page.txt"), "round 2");
    project.run(&[]).expect(0, &[]);
}

#[test]
fn a_condition_that_is_none_fails_the_batch() {
    let project = fixture("until = \".draft.n\"");
    project
        .run(&[])
        .expect(1, &["write"])
        .says("`until`: expected true or false, found 1");
}

#[test]
fn what_other_steps_made_outlives_a_try_of_a_program() {
    let project = Project::new(&[
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
    project.run(&[]).expect(0, &["make"]);
    assert_eq!(project.read("workspace/outputs/first.txt"), "first");
}

/// A stage of three rounds, whose program says outside the workspace which round it does, and fails where a file says so.
fn counting(refine: &str) -> Project {
    Project::new(&[
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

fn counted(project: &Project) -> String {
    let ran = project.read("ran");
    project.remove("ran");
    ran.split_whitespace().collect()
}

fn kept(project: &Project) -> Vec<String> {
    project.list(".milepost/rounds/write/only")
}

#[test]
fn verdicts_have_as_many_values_as_a_condition_tells_apart() {
    let project = counting(VERDICTS);
    project.run(&[]).expect(0, &["write"]);
    assert_eq!(counted(&project), "123");
    assert_eq!(
        project.json("workspace/outputs/history.json"),
        json!([
            {"iteration": 1, "score": 2, "feedback": "needs_revision"},
            {"iteration": 2, "score": 3, "feedback": "needs_revision"},
            {"iteration": 3, "score": 1, "feedback": "capacity_limited_plan"},
        ])
    );
    assert_eq!(project.read("workspace/outputs/draft.txt"), "walls 3\n");
}

#[test]
fn a_batch_that_failed_in_a_round_continues_with_that_round() {
    let project = counting(VERDICTS);
    project.write("fails_3", "");
    project.run(&[]).expect(1, &["write"]);
    project.run(&[]).expect(1, &["write"]);
    assert_eq!(counted(&project), "1233");
    assert!(kept(&project).contains(&"2.json".to_owned()));
    project.remove("fails_3");
    project.run(&[]).expect(0, &["write"]);
    assert_eq!(
        (counted(&project), kept(&project)),
        ("3".to_owned(), vec![])
    );
    let whole = counting(VERDICTS);
    whole.run(&[]).expect(0, &["write"]);
    assert_eq!(project.output_digests(), whole.output_digests());

    // Made again by wish, from another input, or asked afresh: from the first round.
    project.write("fails_2", "");
    project.run(&["-B"]).expect(1, &["write"]);
    project.run(&["-B"]).expect(1, &["write"]);
    assert_eq!(counted(&project), "1212");
    project.write("workspace/inputs/topic.txt", "roofs");
    project.run(&[]).expect(1, &["write"]);
    project.run(&["--fresh"]).expect(1, &["write"]);
    project.run(&[]).expect(1, &["write"]);
    assert_eq!(counted(&project), "12122");
    // What was begun for an input that is no more is of no use.
    project.write("workspace/inputs/topic.txt", "walls");
    project.remove("fails_2");
    project.run(&[]).expect(0, &["write"]);
    assert_eq!(
        (counted(&project), kept(&project)),
        ("123".to_owned(), vec![])
    );
    assert_eq!(project.output_digests(), whole.output_digests());
}

#[test]
fn rounds_that_are_over_are_not_gone_on_with() {
    // None is right; then what is right does not pass a check.
    for (refine, topic) in [("until = 'false'", "walls"), (VERDICTS, "doors")] {
        let project = counting(refine);
        project.write("workspace/inputs/topic.txt", topic);
        project.run(&[]).expect(1, &["write"]);
        assert_eq!(kept(&project), Vec::<String>::new());
        project.run(&[]).expect(1, &["write"]);
        assert_eq!(counted(&project), "123123");
    }
    // What is left of a stage that is cleaned, or not repeated any more, goes.
    let project = counting(VERDICTS);
    project.write("fails_2", "");
    project.run(&[]).expect(1, &["write"]);
    assert_eq!(project.milepost(&["clean", "--yes"]).0, 0);
    assert_eq!(kept(&project), Vec::<String>::new());
}

#[test]
fn the_best_of_the_rounds_of_two_runs_stands() {
    let refine =
        "until = 'false'\nmax_iterations = 4\notherwise = \"best\"\nscore = \".review.score\"";
    let project = counting(refine);
    project.write("fails_4", "");
    project.run(&[]).expect(1, &["write"]);
    project.remove("fails_4");
    project
        .run(&[])
        .expect(0, &["write"])
        .says("`until` was true in none of 4 iterations: iteration 2 is used, with the score 3");
    assert_eq!(counted(&project), "12344");
    let whole = counting(refine);
    whole.run(&[]).expect(0, &["write"]);
    assert_eq!(project.output_digests(), whole.output_digests());
    assert_eq!(project.read("workspace/outputs/draft.txt"), "walls 2\n");
}

#[test]
fn a_batch_that_has_a_placeholder_or_is_held_continues_as_well() {
    let project = counting(VERDICTS);
    let declared = project.read("stages/1_write.toml");
    project.write(
        "stages/1_write.toml",
        format!("{declared}\n[policy]\nplaceholder = '.error_code'\n"),
    );
    project.write("fails_2", "");
    project.run(&[]).expect(3, &["write"]);
    assert_eq!(project.read("workspace/outputs/draft.txt"), "\"EXIT\"\n");
    project.remove("fails_2");
    project.run(&[]).expect(0, &["write"]);
    assert_eq!(
        (counted(&project), kept(&project)),
        ("1223".to_owned(), vec![])
    );
    assert_eq!(project.read("workspace/outputs/draft.txt"), "walls 3\n");

    // The agent is asked in each round, and may be asked once.
    let project = counting(VERDICTS);
    let asks = "[[step]]\nagent = \"teller\"\nprompt = \"tell.md\"\nanswer = \"text\"\nout = \"told\"\n\n[outputs]";
    project.edit("stages/1_write.toml", "[outputs]", asks);
    project.write("tell.md", "Round {{ iteration }}\n");
    let agent = "[agents.teller]\ncli = [\"tail\", \"-n\", \"1\"]\n";
    let declared = |calls: u32| format!("name = \"rounds\"\n{agent}[limits]\ncalls = {calls}\n");
    project.write("milepost.toml", declared(1));
    for _ in 0..2 {
        project
            .run(&[])
            .expect(3, &["write"])
            .says("under [limits]");
    }
    project.write("milepost.toml", declared(3));
    project.run(&[]).expect(0, &["write"]);
    assert_eq!(
        (counted(&project), kept(&project)),
        ("12223".to_owned(), vec![])
    );
}
