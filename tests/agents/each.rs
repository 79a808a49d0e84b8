//! Steps that send one request for each item.

use super::batch_mode::{batched, set, sizes_of};
use super::pipeline::{Served, speller};
use crate::external::client::{Site, run_as};
use crate::support::Project;
use milepost_engine::ops::exit_code::exit_code;
use milepost_engine::ops::external::{LeaseOptions, Submission, next_batch, submit_batch};
use milepost_engine::ops::run::StopFlag;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

const AGENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/agents/item_agent.py");

const STAGE: &str = r#"
[inputs]
words = "inputs/words.json"

[step]
agent = "teller"
each.word = ".words[]"
prompt = "prompts/tell.md"
schema = "schemas/told.schema.json"
result = '{name: $word.name, said, cost: $usage.cost_usd}'
attempts = 2

[outputs]
told = { path = "outputs/told.json", schema = false }

[errors]
schema = "NOT_TOLD"
"#;

/// A project that asks about these words, each with how its agent answers; and the folder with a file for each call.
fn fixture(words: &[(&str, &str)]) -> (Project, PathBuf) {
    let project = Project::new(&[
        ("stages/1_tell.toml", STAGE),
        (
            "prompts/tell.md",
            "item: {{ word.name }}\nhow: {{ word.how }}\n",
        ),
        (
            "schemas/told.schema.json",
            r#"{"type": "object", "required": ["said"], "properties": {"said": {"type": "string"}}}"#,
        ),
    ]);
    let folder = project.at("calls");
    std::fs::create_dir(&folder).unwrap();
    let command = json!(["python3", AGENT, folder]);
    let agents = format!(
        "name = \"words\"\n\n[agents.teller]\ncli = {command}\n\n\
         [agents.upper]\njq = '{{said: (.word.name | ascii_upcase)}}'\n\n[agents.outside]\nexternal = true\n"
    );
    project.write("milepost.toml", agents);
    asks_about(&project, words);
    (project, folder)
}

fn asks_about(project: &Project, words: &[(&str, &str)]) {
    let words = words.iter();
    let words: Value = words
        .map(|(name, how)| json!({"name": name, "how": how}))
        .collect();
    project.write("workspace/inputs/words.json", words.to_string());
}

/// The calls so far, such as `b_1`.
fn calls(folder: &PathBuf) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| name.contains('_')).collect();
    names.sort();
    names
}

fn told(names: &[&str]) -> Value {
    let names = names.iter();
    names
        .map(|name| json!({"name": name, "said": name.to_uppercase(), "cost": null}))
        .collect()
}

#[test]
fn items_are_asked_at_once_and_come_in_their_order() {
    let words = [("a", "meet 3"), ("b", "meet 3"), ("c", "meet 3")];
    let (project, folder) = fixture(&words);
    let ran = project.run(&[]);
    assert_eq!(ran.code, 0, "{}", ran.output);
    assert_eq!(
        project.json("workspace/outputs/told.json"),
        told(&["a", "b", "c"])
    );
    assert_eq!(calls(&folder), ["a_1", "b_1", "c_1"]);
    assert_eq!(ran.data("called").count(), 3);
    project.run(&[]).expect(0, &[]);

    // An answer belongs to its item, wherever the item is.
    let words = [
        ("d", "well"),
        ("c", "meet 3"),
        ("a", "meet 3"),
        ("b", "meet 3"),
    ];
    asks_about(&project, &words);
    let plan = project.plan(&[]).unwrap();
    let asks = &plan["stages"][0]["asks"];
    assert_eq!(
        (&asks["calls"], &asks["kept"]),
        (&json!(1), &json!(3)),
        "{asks:#}"
    );
    assert_eq!(project.run(&[]).code, 0);
    assert_eq!(
        project.json("workspace/outputs/told.json"),
        told(&["d", "c", "a", "b"])
    );
    assert_eq!(calls(&folder), ["a_1", "b_1", "c_1", "d_1"]);

    // Everything is asked anew, once.
    assert_eq!(project.run(&["-B", "--fresh"]).code, 0);
    assert_eq!(calls(&folder).len(), 8);
}

#[test]
fn the_limit_of_an_agent_holds_for_items() {
    let (project, folder) = fixture(&[("a", "alone"), ("b", "alone"), ("c", "alone")]);
    project.edit("milepost.toml", "cli = ", "concurrency = 1\ncli = ");
    let ran = project.run(&[]);
    assert_eq!(ran.code, 0, "{}", ran.output);
    assert_eq!(calls(&folder), ["a_1", "b_1", "c_1"]);
}

/// What an ended call leaves running is ended, but nothing of another call.
#[cfg(target_os = "linux")]
#[test]
fn a_call_that_ends_leaves_the_processes_of_others_alone() {
    let (project, folder) = fixture(&[("a", "guards b"), ("b", "wait b")]);
    project.edit("stages/1_tell.toml", "attempts = 2", "attempts = 1");
    let ran = project.run(&[]);
    assert_eq!(ran.code, 0, "{}", ran.output);
    assert_eq!(calls(&folder), ["a_1", "b_1"]);
}

#[test]
fn without_items_nothing_is_asked() {
    let (project, folder) = fixture(&[]);
    let plan = project.plan(&[]).unwrap();
    assert_eq!(plan["stages"][0]["asks"]["calls"], json!(0), "{plan:#}");
    let ran = project.run(&[]);
    assert_eq!(ran.code, 0, "{}", ran.output);
    assert_eq!(project.json("workspace/outputs/told.json"), json!([]));
    assert_eq!(calls(&folder), [""; 0]);
}

#[test]
fn two_items_with_one_prompt_are_two_calls() {
    let (project, folder) = fixture(&[("a", "well"), ("a", "well")]);
    let ran = project.run(&[]);
    assert_eq!(ran.code, 0, "{}", ran.output);
    assert_eq!(
        project.json("workspace/outputs/told.json"),
        told(&["a", "a"])
    );
    assert_eq!(calls(&folder), ["a_1", "a_2"]);
    assert_eq!(project.run(&["-B"]).code, 0);
    assert_eq!(calls(&folder).len(), 2);
}

#[test]
fn items_without_a_valid_answer_are_named_and_asked_again_alone() {
    let (project, folder) = fixture(&[("a", "well"), ("b", "wrong"), ("c", "wrong once")]);
    let ran = project.run(&[]);
    assert_eq!(ran.code, 1, "{}", ran.output);
    ran.says(
        "tell failed: NOT_TOLD: word 2 ({\"name\":\"b\",\"how\":\"wrong\"}): agent `teller` gave no valid answer in 2 requests",
    );
    assert_eq!(calls(&folder), ["a_1", "b_1", "b_2", "c_1", "c_2"]);
    assert!(!project.exists("workspace/outputs/told.json"));

    asks_about(
        &project,
        &[("a", "well"), ("b", "well"), ("c", "wrong once")],
    );
    let ran = project.run(&[]);
    assert_eq!(ran.code, 0, "{}", ran.output);
    assert_eq!(
        project.json("workspace/outputs/told.json"),
        told(&["a", "b", "c"])
    );
    assert_eq!(ran.data("called").count(), 1);

    // With several, each has its reason.
    let (project, _) = fixture(&[("a", "wrong"), ("b", "well"), ("c", "exit")]);
    let ran = project.run(&[]);
    assert_eq!(ran.code, 1, "{}", ran.output);
    let failed: Vec<&Value> = ran.data("batch_failed").collect();
    let outcome = &failed[0]["outcome"];
    assert_eq!(
        (&outcome["kind"], &outcome["code"], &outcome["message"]),
        (
            &json!("schema"),
            &json!("NOT_TOLD"),
            &json!(
                "2 of 3 answers are missing; word 1: agent `teller` gave no valid answer in 2 requests"
            )
        )
    );
    let details: Vec<&str> = outcome["details"]
        .as_array()
        .unwrap()
        .iter()
        .map(|line| line.as_str().unwrap())
        .collect();
    let first = "word 1 ({\"name\":\"a\",\"how\":\"wrong\"}): NOT_TOLD: agent `teller` gave no valid answer in 2 requests: \
                 Missing said in object";
    assert_eq!((details.len(), details[0]), (2, first));
    let third = "word 3 ({\"name\":\"c\",\"how\":\"exit\"}): EXIT: agent `teller`: ";
    assert!(details[1].starts_with(third), "{details:#?}");
}

#[test]
fn killed_between_items_a_run_asks_only_for_the_open_ones() {
    let (project, folder) = fixture(&[("a", "well"), ("b", "wait go"), ("c", "well")]);
    let mut command = project.command(&["run"]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let kept = project.at("workspace/.milepost/answers");
    let lines = || {
        let files = walk(&kept).into_iter();
        files.map(|file| file.lines().count()).sum::<usize>()
    };
    while lines() < 2 || !folder.join("b_1").exists() {
        assert_eq!(child.try_wait().unwrap(), None, "it ended before");
        std::thread::park_timeout(Duration::from_millis(2));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    std::fs::write(folder.join("go"), "").unwrap();
    let ran = project.run_unplanned(&[]);
    assert_eq!(ran.code, 0, "{}", ran.output);
    assert_eq!(
        project.json("workspace/outputs/told.json"),
        told(&["a", "b", "c"])
    );
    assert_eq!(calls(&folder), ["a_1", "b_1", "b_2", "c_1"]);
}

/// The texts of all files below a folder.
fn walk(folder: &PathBuf) -> Vec<String> {
    let mut texts = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            texts.extend(walk(&path));
        } else {
            texts.extend(std::fs::read_to_string(&path));
        }
    }
    texts
}

#[test]
fn a_plan_counts_the_calls_of_items() {
    let (project, _) = fixture(&[("a", "well"), ("b", "well"), ("c", "well")]);
    let asks = |project: &Project| {
        let plan = project.plan(&[]).unwrap();
        let asks = &plan["stages"][0]["asks"];
        (
            asks["calls"].clone(),
            asks["questions"].clone(),
            asks["most_calls"].clone(),
        )
    };
    // Two attempts, each sent up to six times while the agent is too busy.
    assert_eq!(asks(&project), (json!(3), json!(3), json!(3 * 2 * 6)));
    let (_, text) = project.milepost(&["plan"]);
    assert!(
        text.contains("3 calls, at most 36 with every retry"),
        "{text}"
    );

    // Behind another request the items are counted if that answer does not decide them.
    let first = "[[step]]\nagent = \"teller\"\nprompt = \"prompts/first.md\"\nattempts = 1\nout = \"first\"\n\n[[step]]\nout = \"told\"";
    project.edit("stages/1_tell.toml", "[step]", first);
    project.write("prompts/first.md", "item: first\nhow: well\n");
    assert_eq!(asks(&project), (json!(4), json!(4), json!(6 + 3 * 2 * 6)));
    project.edit(
        "stages/1_tell.toml",
        "\".words[]\"",
        "'.words[] | select($first)'",
    );
    assert_eq!(asks(&project), (json!(1), json!(1), json!(null)));
    let (_, text) = project.milepost(&["plan"]);
    assert!(text.contains("at least 1 call, no bound"), "{text}");
    let ran = project.run(&[]);
    assert_eq!(
        (ran.code, ran.data("called").count()),
        (0, 4),
        "{}",
        ran.output
    );
}

#[test]
fn a_batch_depends_on_its_items() {
    let (project, _) = fixture(&[("a", "well"), ("b", "well")]);
    assert_eq!(project.run(&["--agent", "teller=upper"]).code, 0);
    let told = project.json("workspace/outputs/told.json");
    assert_eq!(
        told,
        json!([{"name": "a", "said": "A", "cost": 0.0}, {"name": "b", "said": "B", "cost": 0.0}])
    );
    project.run(&[]).expect(0, &[]);
    project.edit(
        "stages/1_tell.toml",
        "\".words[]\"",
        "'.words[] | select(.name == \"b\")'",
    );
    let (_, text) = project.milepost(&["plan"]);
    assert!(text.contains("each"), "{text}");
    project.run(&[]).expect(0, &["tell"]);
    let told = project.json("workspace/outputs/told.json");
    assert_eq!(told, json!([{"name": "b", "said": "B", "cost": 0.0}]));
    // A parameter that only the items mention.
    project.edit(
        "milepost.toml",
        "name = \"words\"\n",
        "name = \"words\"\n\n[params]\nonly = \"b\"\n",
    );
    project.edit("stages/1_tell.toml", "== \"b\"", "== $params.only");
    project.run(&[]).expect(0, &["tell"]);
    project.run(&["--set", "only=a"]).expect(0, &["tell"]);
    let told = project.json("workspace/outputs/told.json");
    assert_eq!(told, json!([{"name": "a", "said": "A", "cost": 0.0}]));
}

#[test]
fn warnings_name_the_item() {
    let (project, _) = fixture(&[("a", "well"), ("b", "well")]);
    project.edit(
        "stages/1_tell.toml",
        "schema = \"schemas/told.schema.json\"",
        "answer = \"tap-yaml\"\ndefaults = { mood = \"plain\" }",
    );
    project.edit(
        "milepost.toml",
        "{said: (.word.name | ascii_upcase)}",
        "\"---\\nsaid: \\(.word.name)\\n---\\n\"",
    );
    let ran = project.run(&["--agent", "teller=upper"]);
    assert_eq!(ran.code, 0, "{}", ran.output);
    ran.says("word 2: the answer lacks `mood`: its default is used");
}

/// One item after the other waits for an external agent.
#[test]
fn an_external_agent_answers_item_by_item() {
    let (declared, _) = fixture(&[("a", "well"), ("b", "well")]);
    let site = Site::bare();
    for path in [
        "milepost.toml",
        "stages/1_tell.toml",
        "prompts/tell.md",
        "schemas/told.schema.json",
        "workspace/inputs/words.json",
    ] {
        site.write(path, declared.read(path));
    }
    site.edit("stages/1_tell.toml", "\"teller\"", "\"outside\"");
    let run = || run_as(&site.with_rules(), &[]);
    assert_eq!(exit_code(&run()), 3);
    for name in ["a", "b"] {
        let wanted = LeaseOptions {
            client: "scribe".to_owned(),
            with_prompt: true,
            ..LeaseOptions::default()
        };
        let next = next_batch(&site.with_rules(), &wanted, &StopFlag::new()).unwrap();
        let leased = next.leased.unwrap();
        let prompt = format!("item: {name}\nhow: well\n");
        assert_eq!(leased.prompt, Some(prompt));
        let submission = Submission {
            lease: leased.lease,
            client: None,
            answer: Some(json!({"said": name.to_uppercase()})),
        };
        let submitted = submit_batch(&site.with_rules(), &submission, &StopFlag::new()).unwrap();
        assert_eq!(
            (submitted.accepted, submitted.kept),
            (true, 1),
            "{submitted:#?}"
        );
    }
    assert_eq!(exit_code(&run()), 0);
    let told = site.json("workspace/outputs/told.json");
    assert_eq!(
        told,
        json!([{"name": "a", "said": "A", "cost": 0.0}, {"name": "b", "said": "B", "cost": 0.0}])
    );
}

/// The items of a batch are one provider batch.
#[test]
fn items_are_asked_in_one_provider_batch() {
    let served = Served::new("well");
    let project = batched(speller(served.port, "well"));
    for stage in [
        "stages/1_split.toml",
        "stages/2_ask.toml",
        "stages/3_join.toml",
    ] {
        project.remove(stage);
    }
    set(
        &served,
        &format!("watch={}", project.at("workspace").display()),
    );
    project.write("prompts/tell.md", "Tell of {{ thing.name }}\n");
    project.write(
        "stages/1_tell.toml",
        "[inputs]\nthings = \"inputs/things.json\"\n[step]\nagent = \"speller\"\neach.thing = \".things[:4][]\"\nprompt = \"prompts/tell.md\"\n\
         [outputs]\ntold = { path = \"told.json\", schema = false }\n",
    );
    let ran = project.run_unplanned(&["--agent", "speller=api"]);
    assert_eq!(ran.code, 0, "{}", ran.output);
    let told = project.json("workspace/told.json");
    let things = project.json("workspace/inputs/things.json");
    let said = |at: usize| {
        let said = format!("Tell of {}", things[at]["name"].as_str().unwrap());
        json!({"length": said.len(), "said": said})
    };
    assert_eq!(told, json!([said(0), said(1), said(2), said(3)]));
    assert_eq!(sizes_of(&served), [4]);
}
