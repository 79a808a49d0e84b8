//! A stage that asks a model: each question once, none that is known, none that cannot be paid, no answer that is not valid.
//!
//! The model is `model.py`: a server that speaks both providers' languages, or a command line.

use crate::support::Project;
use milepost_core::base::digest::Digest;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/agents/model.py");

/// A server that ends when it is dropped.
pub struct Served {
    child: Child,
    /// Where it listens.
    pub port: u16,
}

impl Served {
    pub fn new(answering: &str) -> Self {
        let mut child = Command::new("python3")
            .args([MODEL, answering, "serve"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let out = child.stdout.as_mut().unwrap();
        BufReader::new(out).read_line(&mut line).unwrap();
        let port = line.trim().parse().unwrap();
        Self { child, port }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

const SPLIT: &str = r#"
[inputs]
things = "inputs/things.json"

[step]
split = ".things"
question = "{name}"
size = "{{ params.size }}"

[outputs]
batches = "intermediate/batches/batch_*.json"
"#;

const ASK: &str = r#"
[each.batch]
path = "intermediate/batches/batch_*.json"

[step]
agent = "speller"
prompt = "prompts/spell.md"
questions = true
schema = "schemas/word.schema.json"
result = '{id: $element.id, word}'

[outputs]
words = { path = "intermediate/words/{{ batch.stem }}.json", schema = false }

[conserve]
in = ".batch.data.elements[].id"
out = ".words[].id"
"#;

const JOIN: &str = r#"
[inputs]
things = "inputs/things.json"
words = "intermediate/words/*.json"

[step]
merge = ".words[][]"
key = ".id"
order = ".things[].id"

[outputs]
all = { path = "outputs/all.json", schema = false }
"#;

/// A project whose agents `api`, `chat` and `tool` are this model.
pub fn speller(port: u16, answering: &str) -> Project {
    let agents = format!(
        r#"
name = "words"

[params]
size = 4

[agents.speller]
jq = '{{word: (.name | ascii_upcase)}}'

[agents.api]
anthropic = "claude-sonnet-4-5"
base_url = "http://127.0.0.1:{port}"
api_key_env = "KEY"
max_tokens = 1000

[agents.chat]
openai = "gpt-5.1"
base_url = "http://127.0.0.1:{port}/v1"
api_key_env = "KEY"
max_tokens = 1000

[agents.tool]
cli = ["python3", "{MODEL}", "{answering}"]

[agents.recorded]
replay = "recorded"
"#
    );
    let mut project = Project::new(&[
        ("milepost.toml", &agents),
        ("stages/1_split.toml", SPLIT),
        ("stages/2_ask.toml", ASK),
        ("stages/3_join.toml", JOIN),
        (
            "schemas/word.schema.json",
            r#"{"type": "object", "required": ["word"], "additionalProperties": false, "properties": {"word": {"type": "string"}}}"#,
        ),
        (
            "prompts/spell.md",
            "Write each name in capitals.\n\nQuestions: {{ questions | tojson }}\n",
        ),
    ]);
    project.env("KEY", "right");
    project.write("workspace/inputs/things.json", things(10).to_string());
    project
}

/// So many things; every second has the name of the one before.
pub fn things(count: usize) -> Value {
    let one = |n: usize| json!({"id": n, "name": format!("name {}", n / 2), "more": n});
    (0..count).map(one).collect()
}

pub fn words(count: usize) -> Value {
    let one = |n: usize| json!({"id": n, "word": format!("NAME {}", n / 2)});
    (0..count).map(one).collect()
}

pub fn made(project: &Project) -> Value {
    project.json("workspace/outputs/all.json")["elements"].clone()
}

/// What the journal says of calls: questions and outcome of each.
pub fn calls(project: &Project) -> Vec<(u64, String)> {
    let records = project.records();
    let called = records.iter().filter(|record| record["kind"] == "called");
    called
        .map(|record| {
            let data = &record["data"];
            let outcome = data["outcome"].as_str().unwrap().to_owned();
            (data["questions"].as_u64().unwrap(), outcome)
        })
        .collect()
}

pub fn answered(questions: &[u64]) -> Vec<(u64, String)> {
    let one = |&count: &u64| (count, "answered".to_owned());
    questions.iter().map(one).collect()
}

#[test]
fn each_provider_is_asked_each_question_once() {
    let served = Served::new("well");
    for agent in ["api", "chat", "tool"] {
        let project = speller(served.port, "well");
        let with = ["--agent", &format!("speller={agent}")].map(str::to_owned);
        let run = |more: &[&str]| {
            let arguments: Vec<&str> = more
                .iter()
                .copied()
                .chain(with.iter().map(String::as_str))
                .collect();
            project.run(&arguments)
        };
        let ran = run(&[]);
        assert_eq!(ran.code, 0, "{}", ran.output);
        assert_eq!(made(&project), words(10), "{agent}");
        // Five names, four a request.
        assert_eq!(calls(&project), answered(&[4, 1]), "{agent}");

        // Another packing, another field, an element of a known name: nothing is asked.
        assert_eq!(run(&["--set", "size=2"]).code, 0);
        let mut more = things(11);
        more[0]["more"] = json!("other");
        more[10]["name"] = json!("name 3");
        project.write("workspace/inputs/things.json", more.to_string());
        assert_eq!(run(&[]).code, 0);
        assert_eq!(calls(&project).len(), 2, "{agent}");

        // Two new names: two questions.
        project.write("workspace/inputs/things.json", things(13).to_string());
        assert_eq!(run(&[]).code, 0);
        let asked: u64 = calls(&project)[2..].iter().map(|call| call.0).sum();
        assert_eq!(asked, 2, "{agent}");
        let before = calls(&project).len();

        // Another schema that what is known fits: nothing. One that it does not: what does not fit.
        project.edit(
            "schemas/word.schema.json",
            r#""string""#,
            r#""string", "maxLength": 40"#,
        );
        assert_eq!(run(&[]).code, 0);
        assert_eq!(calls(&project).len(), before, "{agent}");

        // Another prompt: all.
        project.edit("prompts/spell.md", "Write", "Do write");
        assert_eq!(run(&[]).code, 0);
        let asked: u64 = calls(&project)[before..].iter().map(|call| call.0).sum();
        assert_eq!(asked, 7, "{agent}");
        project.check_checkpoints();
    }
}

#[test]
fn what_was_recorded_is_replayed_and_nothing_else() {
    let served = Served::new("well");
    let project = speller(served.port, "well");
    assert_eq!(project.run(&["--agent", "speller=api"]).code, 0);
    let other = project.without_results();
    let from = project.at("workspace/.milepost/calls");
    for entry in std::fs::read_dir(&from).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            other.write(&format!("recorded/{name}"), std::fs::read(path).unwrap());
        }
    }
    let ran = other.run(&["--agent", "speller=recorded"]);
    assert_eq!(ran.code, 0, "{}", ran.output);
    assert_eq!(
        other.read("workspace/outputs/all.json"),
        project.read("workspace/outputs/all.json")
    );
    other.edit("prompts/spell.md", "Write", "Do write");
    let ran = other.run(&["--agent", "speller=recorded"]);
    assert_eq!(ran.code, 1);
    ran.says("no recorded answer to this request");
}

#[test]
fn a_wrong_key_is_told_with_nothing_spent() {
    let served = Served::new("well");
    for agent in ["api", "chat"] {
        let mut project = speller(served.port, "well");
        project.env("KEY", "wrong");
        let ran = project.run(&["--agent", &format!("speller={agent}")]);
        assert_eq!(ran.code, 1);
        ran.says("AuthenticationError");
        assert_eq!(calls(&project), []);
        assert!(!ran.output.contains("wrong"), "{}", ran.output);
    }
}

#[test]
fn no_call_is_made_that_the_budget_cannot_pay() {
    let served = Served::new("well");
    let project = speller(served.port, "well");
    let ran = project.run_unplanned(&["--agent", "speller=api", "--budget-usd", "0.001"]);
    assert_eq!(ran.code, 3, "{}", ran.output);
    ran.says("raise --budget-usd");
    assert_eq!(calls(&project), []);
    // One call may cost a little more than one cent and a half; it costs less.
    let ran = project.run_unplanned(&["--agent", "speller=api", "--budget-usd", "0.02"]);
    assert_eq!(
        (ran.code, calls(&project)),
        (0, answered(&[4, 1])),
        "{}",
        ran.output
    );
    ran.says("2 calls for $0.0");
    let spent = &project.json("workspace/stage_2_complete.json")["spent"];
    assert_eq!(
        (&spent["calls"], &spent["usage"]["output"]),
        (&json!(2), &json!(40))
    );

    // What has no price may not run under a budget.
    let project = speller(served.port, "well");
    let ran = project.run_unplanned(&["--agent", "speller=tool", "--budget-usd", "5"]);
    assert_eq!(ran.code, 3, "{}", ran.output);
    ran.says("max_usd_per_call");
    project.edit(
        "milepost.toml",
        "[agents.tool]",
        "[agents.tool]\nmax_usd_per_call = 0.5",
    );
    let ran = project.run_unplanned(&["--agent", "speller=tool", "--budget-usd", "5"]);
    assert_eq!(ran.code, 0, "{}", ran.output);

    // A limit of the workspace holds over its runs.
    let project = speller(served.port, "well");
    project.write(
        "milepost.toml",
        format!("{}\n[limits]\ncalls = 1\n", project.read("milepost.toml")),
    );
    for _ in 0..2 {
        let ran = project.run_unplanned(&["--agent", "speller=api"]);
        assert_eq!(ran.code, 3, "{}", ran.output);
        ran.says("under [limits]");
        assert_eq!(calls(&project), answered(&[4]));
    }
    project.edit("milepost.toml", "calls = 1", "calls = 2");
    assert_eq!(project.run_unplanned(&["--agent", "speller=api"]).code, 0);
    assert_eq!(calls(&project), answered(&[4, 1]));
}

#[test]
fn every_call_is_kept_with_its_bytes_and_without_the_key() {
    let served = Served::new("well");
    let mut project = speller(served.port, "well");
    project.env("KEY", "right");
    assert_eq!(project.run(&["--agent", "speller=api"]).code, 0);
    let records = project.records();
    let called: Vec<&Value> = records
        .iter()
        .filter(|record| record["kind"] == "called")
        .collect();
    for record in &called {
        let data = &record["data"];
        let run = record["run_id"].as_str().unwrap();
        let kept = |what: &str| {
            let number = data["number"].as_u64().unwrap();
            let path = format!("workspace/.milepost/calls/{run}/{number:06}.{what}");
            std::fs::read(project.at(&path)).unwrap()
        };
        assert_eq!(data["request"], Digest::of(kept("request")).to_string());
        assert_eq!(data["answer"], Digest::of(kept("answer")).to_string());
        let request: Value = serde_json::from_slice(&kept("request")).unwrap();
        assert_eq!(request["model"], "claude-sonnet-4-5");
        assert_eq!(data["served"], "claude-sonnet-4-5-served");
    }
    assert_eq!(called.len(), 2);
    for entry in walkdir::WalkDir::new(project.at("")) {
        let entry = entry.unwrap();
        if entry.file_type().is_file() {
            let bytes = std::fs::read(entry.path()).unwrap();
            let text = String::from_utf8_lossy(&bytes);
            let tells = text.contains("\"right\"") || text.contains("Bearer");
            assert!(!tells, "{}", entry.path().display());
        }
    }
}

#[test]
fn money_and_tokens_of_a_workspace_are_limits_too() {
    let served = Served::new("well");
    for (limit, said) in [
        ("usd = 0.001", "raise `usd` under [limits]"),
        ("tokens = 10", "raise `tokens` under [limits]"),
    ] {
        let project = speller(served.port, "well");
        let declared = project.read("milepost.toml");
        project.write("milepost.toml", format!("{declared}\n[limits]\n{limit}\n"));
        let ran = project.run_unplanned(&["--agent", "speller=chat"]);
        assert_eq!((ran.code, calls(&project)), (3, vec![]), "{}", ran.output);
        ran.says(said);
    }
}

/// An agent that does everything wrong at random: the pipeline ends right, or partial and says so.
#[test]
fn whatever_an_agent_does_the_end_is_right_or_said_to_be_partial() {
    for seed in 1..=3 {
        let badly = format!("badly:{seed}");
        let served = Served::new(&badly);
        let project = speller(served.port, &badly);
        project.write("workspace/inputs/things.json", things(40).to_string());
        let agent = ["api", "chat"][seed % 2];
        let agent = format!("speller={agent}");
        let mut codes = Vec::new();
        for _ in 0..20 {
            let ran = project.run_unplanned(&["-k", "--agent", &agent]);
            codes.push(ran.code);
            if ran.code == 0 {
                break;
            }
            assert_eq!(ran.code, 1, "{}", ran.output);
            ran.says(" no valid answer after 3 requests");
            project.check_checkpoints();
        }
        assert_eq!(codes.last(), Some(&0), "seed {seed}: {codes:?}");
        assert_eq!(made(&project), words(40), "seed {seed}");
        // What was valid was not asked again: each of the 20 names was answered validly once.
        let answers = project.list(".milepost/answers");
        let lines: usize = answers
            .iter()
            .map(|name| {
                project
                    .read(&format!("workspace/.milepost/answers/{name}"))
                    .lines()
                    .count()
            })
            .sum();
        assert_eq!(lines, 20, "seed {seed}");
    }
}

/// Two batches that ask the same at once: one asks it, the other waits for its answer; and a plan knows.
#[test]
fn a_question_of_two_batches_is_asked_once() {
    let served = Served::new("well");
    let project = speller(served.port, "well");
    project.edit(
        "stages/1_split.toml",
        "split =",
        "max_elements = 2\nsplit =",
    );
    // All ask the same, and stand in five batches.
    let things: Value = (0..10).map(|n| json!({"id": n, "name": "name"})).collect();
    project.write("workspace/inputs/things.json", things.to_string());
    let ran = project.run_unplanned(&["--agent", "speller=api", "--until-paid"]);
    ran.says("): 1 call, at most ");
    let ran = project.run(&["--agent", "speller=api", "-j", "5"]);
    assert_eq!(
        (ran.code, calls(&project)),
        (0, answered(&[1])),
        "{}",
        ran.output
    );
    assert_eq!(project.list("intermediate/words").len(), 5);
    // Once more, too, it is once.
    let ran = project.run_unplanned(&["--agent", "speller=api", "-j", "5", "--fresh", "-B"]);
    assert_eq!(
        (ran.code, calls(&project)),
        (0, answered(&[1, 1])),
        "{}",
        ran.output
    );
}
