//! Other stages that ask somebody outside: one answer for a prompt, checks on what is made of it, and what commands say.

use super::client::{Site, run_as};
use crate::support::{Project, expect};
use milepost_engine::ops::exit_code::exit_code;
use milepost_engine::ops::external::WhyNothing;
use milepost_engine::ops::inspect::status::{StageProgress, status};
use milepost_engine::ops::plan::plan;
use milepost_engine::ops::run::{RunOptions, StopFlag};
use serde_json::json;

const PROJECT: &str = "name = \"minutes\"\n\n[agents.writer]\nexternal = true\n";

const STAGE: &str = r#"
[each.meeting]
path = "inputs/*.json"

[step]
agent = "writer"
prompt = "prompts/write.md"

[outputs]
minutes = "intermediate/{{ meeting.stem }}.json"

[[check]]
test = '.minutes.people == (.meeting.data.people | length)'
error = "WRONG_COUNT"
message = "{{ minutes.people }} people were counted"
"#;

const SCHEMA: &str = r#"{"type": "object", "required": ["title", "people"],
 "properties": {"title": {"type": "string"}, "people": {"type": "integer"}}}"#;

const JOIN: &str = r#"
[inputs]
all = "intermediate/*.json"

[step]
jq = '[$all[].title]'

[outputs]
titles = { path = "outputs/titles.json", schema = false }
"#;

/// Two meetings, whose minutes somebody outside writes.
pub fn meetings() -> Site {
    let site = Site::bare();
    site.write("milepost.toml", PROJECT);
    site.write("stages/1_write.toml", STAGE);
    site.write("stages/2_join.toml", JOIN);
    site.write("schemas/minutes.schema.json", SCHEMA);
    site.write(
        "prompts/write.md",
        "Write the minutes of {{ meeting.data | tojson }}.\n",
    );
    for (name, people) in [("a", 2), ("b", 3)] {
        let people: Vec<u32> = (0..people).collect();
        let text = json!({ "title": name, "people": people }).to_string();
        site.write(&format!("workspace/inputs/{name}.json"), &text);
    }
    site
}

fn request(site: &Site) -> milepost_engine::ops::project::Request {
    site.with_rules()
}

#[test]
fn a_prompt_is_answered_and_what_is_made_of_it_is_checked() {
    let site = meetings();
    let next = || {
        let wanted = milepost_engine::ops::external::LeaseOptions {
            client: "secretary".to_owned(),
            stage: Some("write".to_owned()),
            with_prompt: true,
            ..Default::default()
        };
        milepost_engine::ops::external::next_batch(&request(&site), &wanted, &StopFlag::new())
            .unwrap()
    };
    let submit = |lease: &str, answer: serde_json::Value| {
        let submission = milepost_engine::ops::external::Submission {
            lease: lease.to_owned(),
            client: None,
            answer: Some(answer),
        };
        milepost_engine::ops::external::submit_batch(&request(&site), &submission, &StopFlag::new())
            .unwrap()
    };
    let leased = next().leased.unwrap();
    assert_eq!(
        leased.prompt.as_deref(),
        Some("Write the minutes of {\"title\":\"a\",\"people\":[0,1]}.\n")
    );
    assert_eq!(
        (leased.questions, leased.input_file.clone()),
        (0, leased.prompt_file.clone())
    );
    assert_eq!(leased.schema, Some(serde_json::from_str(SCHEMA).unwrap()));

    let told = submit(&leased.lease, json!({ "title": 7 }));
    let codes: Vec<(&str, &str)> = told
        .violations
        .iter()
        .map(|wrong| (wrong.code.as_str(), wrong.pointer.as_str()))
        .collect();
    assert_eq!(
        (told.accepted, codes),
        (false, vec![("schema", ""), ("schema", "/title")])
    );
    assert_eq!(told.open, ["answer"]);

    // Valid, and still not true.
    let told = submit(&leased.lease, json!({ "title": "a", "people": 5 }));
    assert_eq!((told.accepted, told.kept), (false, 1));
    let wrong: Vec<(&str, &str)> = told
        .violations
        .iter()
        .map(|wrong| (wrong.code.as_str(), wrong.message.as_str()))
        .collect();
    assert_eq!(wrong, [("WRONG_COUNT", "5 people were counted")]);

    // Whoever takes it after that is told how it failed.
    milepost_engine::ops::external::release_batch(
        &request(&site),
        &leased.lease,
        None,
        &StopFlag::new(),
    )
    .unwrap();
    let other = next().leased.unwrap();
    assert_eq!(other.batch, "b");
    let again = next().leased.unwrap();
    assert_eq!(again.batch, "a");
    assert_eq!(
        again.failed.first().map(String::as_str),
        Some("WRONG_COUNT: 5 people were counted")
    );
    // Of two answers the later one counts.
    site.wait(1);
    let told = submit(&again.lease, json!({ "title": "a", "people": 2 }));
    assert!(told.accepted, "{told:#?}");
    assert_eq!(told.output_files, ["intermediate/a.json"]);
    let told = submit(&other.lease, json!({ "title": "b", "people": 3 }));
    assert_eq!(told.checkpoint.as_deref(), Some("stage_1_complete.json"));
    assert_eq!(next().nothing.unwrap().reason, WhyNothing::Complete);
    assert_eq!(exit_code(&run_as(&request(&site), &[])), 0);
    assert_eq!(
        site.read("workspace/outputs/titles.json"),
        "[\n  \"a\",\n  \"b\"\n]\n"
    );
}

#[test]
fn commands_say_in_words_who_is_waited_for() {
    let files = [
        ("milepost.toml", PROJECT),
        ("stages/1_write.toml", STAGE),
        ("stages/2_join.toml", JOIN),
        ("schemas/minutes.schema.json", SCHEMA),
        (
            "prompts/write.md",
            "Write the minutes of {{ meeting.data | tojson }}.\n",
        ),
        ("workspace/inputs/a.json", "{\"title\": \"a\"}"),
        ("workspace/inputs/b.json", "{\"title\": \"b\"}"),
    ];
    let project = Project::new(&files);
    let next = "next     milepost mcp  serve external agents, then run again\n";
    expect(
        project.output("plan"),
        0,
        &format!(
            "minutes in workspace\n\n  1 write  waiting for writer: 2 batches, 2 questions\n  2 join   out of date: stage `write` is not \
             complete\n\nnothing can run until these questions are answered\n{next}"
        ),
        "",
    );
    expect(
        project.output("run"),
        3,
        &format!(
            "write  waiting      waiting for writer: 2 batches, 2 questions\njoin   out of date  stage `write` is not complete\n\nwaiting after \
             …\n{next}"
        ),
        "",
    );
    let why = project.output("why write").out;
    assert_eq!(
        why,
        "stage 1 write\n2 batches, 0 up to date\n\nwrite/a: waiting for the external agent writer\n  never run\n\nwrite/b: waiting for \
         the external agent writer\n  never run\n"
    );
    let status = project.output("status").out;
    let line = "  write: waiting for writer: 2 batches, 2 questions (`milepost mcp` serve external agents, then run again)\n";
    assert!(status.contains(line), "{status}");
}

#[test]
fn plan_run_and_status_say_who_is_waited_for() {
    let site = meetings();
    let said = || {
        let plan = plan(&request(&site), &RunOptions::default()).unwrap();
        let write = &plan.stages[0];
        let awaits = write
            .awaits
            .clone()
            .map(|awaits| (awaits.agents, awaits.batches));
        let join = plan.stages[1].blocked.clone();
        (awaits, write.will.len(), join, plan.is_empty())
    };
    let waits = Some((vec!["writer".to_owned()], 2));
    let join = Some("stage `write` is not complete".to_owned());
    assert_eq!(said(), (waits.clone(), 0, join.clone(), false));
    let report = run_as(&request(&site), &[]);
    assert_eq!(exit_code(&report), 3);
    // A run in which nothing could be done leaves no trace.
    assert_eq!(site.read("workspace/.milepost/journal/000001.jsonl"), "");
    assert_eq!(said(), (waits, 0, join, false));
    let told = status(&request(&site)).unwrap();
    assert_eq!(told.stages[0].status, StageProgress::Waiting);
    let due = told.stages[0].due.clone().unwrap();
    assert_eq!(due.awaits.map(|awaits| awaits.batches), Some(2));
}
