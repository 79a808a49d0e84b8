//! A stage with `[approve]` waits until a person approves the batches that would run.

use crate::support::{Project, expect};
use serde_json::{Value, json};

const GATE: &str = "\n[approve]\nby = \"reviewer\"\n";

/// Letters whose first stage needs approval, and a stage that depends on no other.
fn letters() -> Project {
    let project = Project::letters();
    append(&project, "stages/1_copy.toml", GATE);
    project.write(
        "stages/3_count.toml",
        "[inputs]\nall = \"inputs/*.json\"\n\n[step]\njq = '.all | length'\n\n[outputs]\ncount = { path = \"outputs/count.json\", schema = false }\n",
    );
    project
}

/// The same when everything was approved and ran.
fn finished() -> Project {
    let project = letters();
    project.run(&[]).expect(3, &["count"]);
    approve(&project);
    project.run(&[]).expect(
        0,
        &["copy/person_1", "copy/person_10", "copy/person_2", "join"],
    );
    project
}

fn append(project: &Project, path: &str, text: &str) {
    project.write(path, project.read(path) + text);
}

const APPROVE: [&str; 6] = ["approve", "copy", "--why", "seen", "--who", "Ada"];

fn approve(project: &Project) {
    let (code, said) = project.milepost(&APPROVE);
    assert!(
        code == 0 && said.starts_with("approved copy: "),
        "{code}: {said}"
    );
}

/// What a command prints, with `…` for the time of the approval.
#[track_caller]
fn says(project: &Project, arguments: &[&str], code: i32, text: &str) {
    let mut found = project.output_of(&mut project.command(arguments));
    for approval in approvals(project) {
        let at = approval["pin"]["at"].as_str().unwrap();
        let shown = format!("{} {}Z", &at[..10], &at[11..19]);
        found.out = found.out.replace(&shown, "…");
    }
    let (out, err) = if code == 1 { ("", text) } else { (text, "") };
    expect(found, code, out, err);
}

/// The data of the approvals in the journal.
fn approvals(project: &Project) -> Vec<Value> {
    let records = project.records().into_iter();
    records
        .filter(|record| record["kind"] == "approved")
        .map(|record| record["data"].clone())
        .collect()
}

/// A stage of a command that prints JSON.
fn stage(project: &Project, arguments: &[&str], at: usize) -> Value {
    let output = project.command(arguments).output().unwrap();
    let value: Value = serde_json::from_slice(&output.stdout).unwrap();
    value["stages"][at].clone()
}

#[test]
fn a_stage_waits_and_runs_when_it_is_approved() {
    let project = letters();
    expect(
        project.output("run"),
        3,
        "\
copy   waiting      waiting for approval by reviewer: 3 batches
join   out of date  stage `copy` is not complete
count  up to date   ran  …

waiting after …
outputs  workspace/outputs/count.json
next     milepost approve copy --why TEXT  approve these batches, then run again
",
        "count starts\ncount: up to date after …\n",
    );
    expect(
        project.output("plan"),
        0,
        "\
letters in workspace

  1 copy   needs approval by reviewer: 3 batches
           never run  person_1, person_2, person_10
  2 join   out of date: stage `copy` is not complete
  3 count  up to date

nothing can run until these batches are approved
next     milepost approve copy --why TEXT  approve these batches, then run again
",
        "",
    );
    let status = project.output("status");
    let line = "\n  copy: waiting for approval by reviewer: 3 batches (`milepost approve copy --why TEXT`)\n";
    assert!(status.out.ends_with(line), "{}", status.out);
    let why = "\
stage 1 copy: Copy each person
3 batches, 0 up to date

copy/person_1: waiting for approval by reviewer
  never run

copy/person_2: waiting for approval by reviewer
  never run

copy/person_10: waiting for approval by reviewer
  never run
";
    expect(project.output("why copy"), 0, why, "");

    says(
        &project,
        &APPROVE,
        0,
        "\
approved copy: 3 batches by Ada as reviewer on …: seen
next     milepost run  continue
",
    );
    says(
        &project,
        &["approve", "copy", "--why", "again"],
        0,
        "\
copy: already approved: 3 batches by Ada as reviewer on …: seen
next     milepost run  continue
",
    );
    let all = ["copy/person_1", "copy/person_10", "copy/person_2", "join"];
    project.run(&[]).expect(0, &all);
    says(
        &project,
        &["approve", "copy", "--why", "again"],
        0,
        "copy: up to date, nothing to approve\n",
    );
    let [approval] = &approvals(&project)[..] else {
        panic!("{:#?}", approvals(&project));
    };
    assert_eq!(
        project.json("workspace/stage_1_complete.json")["approval"],
        json!({
            "role": "reviewer", "by": "Ada", "at": approval["pin"]["at"], "why": "seen", "batches": 3,
            "facts": approval["facts"],
        })
    );
    let (_, log) = project.milepost(&["log", "copy"]);
    assert!(
        log.contains("Z  review    copy  copy: Ada approved 3 batches as reviewer: seen\n"),
        "{log}"
    );
    let verify = project.output("verify");
    let line = format!(
        "approved copy: 3 batches by Ada as reviewer on {}: seen\n",
        approval["pin"]["at"]
            .as_str()
            .map_or(String::new(), |at| format!(
                "{} {}Z",
                &at[..10],
                &at[11..19]
            ))
    );
    assert!(verify.out.starts_with(&line), "{}", verify.out);
    assert!(verify.out.ends_with(": everything matches the record\n"));
}

#[test]
fn data_for_programs_names_the_role_and_the_batches() {
    let project = letters();
    let awaited = json!({ "by": "reviewer", "batches": 3 });
    let run = stage(&project, &["run", "--json"], 0);
    assert_eq!(
        (&run["approval"], &run["left"], &run["awaits"]),
        (&awaited, &json!(3), &Value::Null)
    );
    let plan = stage(&project, &["plan", "--json"], 0);
    assert_eq!((&plan["approval"], &plan["left"]), (&awaited, &json!(3)));
    assert_eq!(
        plan["unapproved"],
        json!(
            ["person_1", "person_2", "person_10"].map(|batch| {
                json!({ "batch": batch, "reasons": [{ "reason": "never_made" }] })
            })
        )
    );
    assert_eq!((&plan["will"], &plan["asks"]), (&json!([]), &Value::Null));
    let status = stage(&project, &["status", "--json"], 0);
    assert_eq!(status["due"]["approval"], awaited);
    approve(&project);
    let plan = stage(&project, &["plan", "--json"], 0);
    assert_eq!(
        (&plan["approval"], &plan["unapproved"]),
        (&Value::Null, &json!([]))
    );
    let verified = project.command(&["verify", "--json"]).output().unwrap();
    let verified: Value = serde_json::from_slice(&verified.stdout).unwrap();
    assert_eq!(verified["approvals"]["copy"]["by"], "Ada");
}

#[test]
fn what_changes_waits_again_and_nothing_else() {
    let project = finished();
    // An input of one batch.
    project.write("workspace/inputs/person_2.json", "{\"name\": \"Bea\"}\n");
    project
        .run(&[])
        .expect(3, &["count"])
        .says("2 up to date, waiting for approval by reviewer: 1 batch");
    approve(&project);
    // Approved as it was: it changed since.
    project.write("workspace/inputs/person_2.json", "{\"name\": \"Bert\"}\n");
    project
        .run(&[])
        .expect(3, &["count"])
        .says("waiting for approval by reviewer: 1 batch");
    approve(&project);
    project.run(&[]).expect(0, &["copy/person_2", "join"]);
    // The declaration of all.
    project.edit("stages/1_copy.toml", "grep -q", "grep -s");
    project
        .run(&[])
        .expect(3, &[])
        .says("waiting for approval by reviewer: 3 batches");
    approve(&project);
    // A batch that nobody has seen.
    project.write("workspace/inputs/person_3.json", "{\"name\": \"Di\"}\n");
    project
        .run(&[])
        .expect(
            3,
            &["copy/person_1", "copy/person_10", "copy/person_2", "count"],
        )
        .says("3 ran, waiting for approval by reviewer: 1 batch");
    approve(&project);
    project.run(&[]).expect(0, &["copy/person_3", "join"]);
    let many: Vec<usize> = approvals(&project)
        .iter()
        .map(|approval| approval["batches"].as_object().unwrap().len())
        .collect();
    assert_eq!(many, [3, 1, 1, 3, 1]);
}

#[test]
fn what_is_rebuilt_as_it_was_needs_no_approval() {
    let project = finished();
    let all = ["copy/person_1", "copy/person_10", "copy/person_2"];
    project.run(&["--force", "copy"]).expect(0, &all);
    project.remove("workspace/intermediate/person_2.json");
    project.run(&[]).expect(0, &["copy/person_2"]);
    assert_eq!(approvals(&project).len(), 1);
}

#[test]
fn an_approval_holds_until_every_batch_is_built() {
    let project = letters();
    project.write("workspace/inputs/person_2.json", "{}");
    project.run(&[]).expect(3, &["count"]);
    approve(&project);
    // A part of them; then another stage seals the journal; then a failure, and a retry after it.
    project
        .run(&["copy/person_1"])
        .expect(3, &["copy/person_1"]);
    project.run(&["--force", "count"]).expect(0, &["count"]);
    project
        .run(&["-k", "copy"])
        .expect(1, &["copy/person_10", "copy/person_2"]);
    project
        .run(&["--failed", "copy"])
        .expect(1, &["copy/person_2"]);
    // A part that nobody approved.
    project.write("workspace/inputs/person_2.json", "{\"name\": \"Bo\"}\n");
    project
        .run(&["copy"])
        .expect(3, &[])
        .says("waiting for approval by reviewer: 1 batch");
    approve(&project);
    project
        .run(&[])
        .expect(0, &["copy/person_2", "count", "join"]);
}

#[test]
fn a_forced_batch_that_fails_is_tried_again_without_another_approval() {
    let project = letters();
    // A file that no fingerprint tells, from the folder that the program runs in.
    let test = "test ! -e ../../../../../../broken && grep -q name";
    project.edit("stages/1_copy.toml", "grep -q name", test);
    project.run(&[]).expect(3, &["count"]);
    approve(&project);
    project.run(&[]).expect(
        0,
        &["copy/person_1", "copy/person_10", "copy/person_2", "join"],
    );
    project.write("broken", "");
    let failed = project.run(&["--force", "copy/person_2"]);
    failed.expect(1, &["copy/person_2"]);
    project.remove("broken");
    project.run(&[]).expect(0, &["copy/person_2"]);
    assert_eq!(approvals(&project).len(), 1);
}

#[test]
fn a_gate_that_is_added_or_removed_reruns_nothing() {
    let project = Project::letters();
    project.run(&[]).expect(
        0,
        &["copy/person_1", "copy/person_10", "copy/person_2", "join"],
    );
    append(&project, "stages/1_copy.toml", GATE);
    project.run(&[]).expect(0, &[]).says("nothing changed");
    expect(
        project.output("approve copy --why seen"),
        0,
        "copy: up to date, nothing to approve\n",
        "",
    );
    project.write("workspace/inputs/person_2.json", "{\"name\": \"Bea\"}\n");
    project.run(&[]).expect(3, &[]);
    project.edit("stages/1_copy.toml", GATE, "");
    project.run(&[]).expect(0, &["copy/person_2", "join"]);
    assert_eq!(
        project.json("workspace/stage_1_complete.json")["approval"],
        Value::Null
    );
}

#[test]
fn what_cannot_be_approved_is_refused_with_its_reason() {
    let project = letters();
    append(&project, "stages/2_join.toml", GATE);
    let nothing = "this workspace has no run: there is nothing to approve";
    let refused = |arguments: &str, code: i32, text: &str| {
        expect(
            project.output(arguments),
            code,
            "",
            &format!("error: {text}\n"),
        );
    };
    refused("approve copy --why seen", 2, nothing);
    project.run(&[]).expect(3, &["count"]);
    refused(
        "approve copy join count --why seen",
        1,
        "nothing was approved:\n  \
         join: its inputs are not complete: stage `copy` is not complete\n  \
         count: the stage needs no approval: `stages/3_count.toml` declares no [approve]",
    );
    refused(
        "approve copy/person_1 --why seen",
        2,
        "`copy/person_1` is a batch: an approval is for the whole stage `copy`",
    );
    refused(
        "approve cop --why seen",
        2,
        "there is no stage `cop`; this project has copy, join, count: did you mean `copy`?",
    );
    let mut blank = project.command(&["approve", "copy", "--why", " "]);
    let text = "error: give a reason with `--why TEXT`: the journal records it\n";
    expect(project.output_of(&mut blank), 2, "", text);
    // Not from inside a run.
    let mut step = project.command(&APPROVE);
    step.env("MILEPOST_ATTEMPT", "token");
    let text = "error: a person approves a stage: a step of a run cannot\n";
    expect(project.output_of(&mut step), 2, "", text);
    assert_eq!(approvals(&project), Vec::<Value>::new());
    approve(&project);
    project.run(&["copy"]);
    project.write("workspace/intermediate/person_2.json", "{}");
    refused(
        "approve copy --why seen",
        1,
        "nothing was approved:\n  copy: modified by hand: intermediate/person_2.json",
    );
}

#[test]
fn a_plan_shows_what_the_batches_would_cost() {
    let mut project = Project::new(&[
        (
            "milepost.toml",
            "name = \"letters\"\n\n[agents.writer]\nanthropic = \"claude-haiku-4-5\"\n",
        ),
        (
            "stages/1_ask.toml",
            r#"
[each.letter]
path = "inputs/*.txt"

[approve]
by = "owner of the budget"

[step]
prompt = "prompt.md"
agent = "writer"

[outputs]
answer = { path = "outputs/{{ letter.stem }}.txt", schema = false }
"#,
        ),
        ("prompt.md", "Answer {{ letter.data }}\n"),
        ("workspace/inputs/a.txt", "Hello\n"),
        ("workspace/inputs/b.txt", "Hi\n"),
    ]);
    project.env("ANTHROPIC_API_KEY", "key");
    expect(
        project.output("plan"),
        0,
        "\
letters in workspace

  1 ask  needs approval by owner of the budget: 2 batches
         never run  a, b
         would ask writer (anthropic claude-haiku-4-5): 2 calls, at most 36 with every retry
         about 9 tokens in and 2,000 out, about $0.0100; assuming 1,000 tokens per answer

nothing can run until these batches are approved
next     milepost approve ask --why TEXT  approve these batches, then run again
",
        "",
    );
    // Only a budget reserves anything.
    let reserves = "about $0.0100; a budget reserves $0.0422 for these calls; assuming";
    let budget = "name = \"letters\"\n\n[limits]\nusd = 5\n";
    let planned = project.output("plan --budget-usd 1").text();
    assert!(planned.contains(reserves), "{planned}");
    project.edit("milepost.toml", "name = \"letters\"\n", budget);
    let planned = project.output("plan").text();
    assert!(planned.contains(reserves), "{planned}");
}

#[test]
fn a_plan_of_a_finished_stage_does_not_block_what_follows() {
    let project = Project::new(&[
        ("milepost.toml", "name = \"letters\"\n"),
        (
            "stages/1_list.toml",
            "[inputs]\nfile = \"inputs/people.csv\"\n\n[step]\njq = \"[.file[].name]\"\n\n[outputs]\npeople = { path = \"intermediate/people.json\", schema = false }\n",
        ),
        (
            "stages/2_write.toml",
            r#"
[each.person]
from = "intermediate/people.json"
select = ".[]"

[approve]
by = "reviewer"

[step]
jq = '"Dear \(.person)"'

[outputs]
letter = { path = "intermediate/letters/{{ person }}.json", schema = false }
"#,
        ),
        (
            "stages/3_join.toml",
            "[inputs]\nletters = \"intermediate/letters/*.json\"\n\n[step]\njq = \".letters\"\n\n[outputs]\nall = { path = \"outputs/all.json\", schema = false }\n",
        ),
        ("workspace/inputs/people.csv", "name,age\nAda,36\n"),
    ]);
    expect(
        project.output("plan"),
        0,
        "\
letters in workspace

  1 list   will run
           never run
  2 write  needs approval by reviewer, once earlier stages are complete
  3 join   out of date: stage `write` is not complete

1 batch will run, later stages depend on their outputs; to do it: milepost run
",
        "",
    );
    project.run(&[]).expect(3, &["list"]);
    let (code, said) = project.milepost(&["approve", "write", "--why", "seen"]);
    assert_eq!(code, 0, "{said}");
    project.run(&[]).expect(0, &["join", "write/Ada"]);
    // The list will be the same.
    project.write("workspace/inputs/people.csv", "name,age\nAda,37\n");
    expect(
        project.output("plan"),
        0,
        "\
letters in workspace

  1 list   will run
           input inputs/people.csv changed (0202b2c0… → e28a11ae…)
  2 write  may run, needs approval by reviewer, once earlier stages are complete
           if list changes the items in intermediate/people.json
  3 join   may run
           if write changes intermediate/letters/*.json

1 batch will run, 2 may; to do it: milepost run
",
        "",
    );
    project.run(&[]).expect(0, &["list"]);
}

#[test]
fn an_approval_that_was_changed_in_the_journal_is_found() {
    let project = finished();
    let segment = project.list(".milepost/journal").pop().unwrap();
    let path = format!("workspace/.milepost/journal/{segment}");
    let text = project.read(&path);
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let is_seal = |line: &&str| line.contains("\"kind\":\"sealed\"");
    let seal = lines.iter().rposition(is_seal).unwrap();
    let sealed = lines[seal].replace("\"why\":\"seen\"", "\"why\":\"Seen\"");
    let changed = lines[..seal].concat() + &sealed;
    project.write(&path, changed.clone() + &lines[seal + 1..].concat());
    let (code, said) = project.milepost(&["verify"]);
    assert_eq!(code, 5, "{said}");
    assert!(said.contains("the journal is broken"), "{said}");
    // Where no later record follows it, the records before tell.
    project.write(&path, changed);
    project.remove("workspace/.milepost/journal-head.json");
    let (code, said) = project.milepost(&["verify"]);
    assert_eq!(code, 5, "{said}");
    assert!(
        said.contains("copy: its approval is not the one that the journal records"),
        "{said}"
    );
}
