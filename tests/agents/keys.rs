//! No key is in what Milepost records and shows, whoever repeats it.

use super::pipeline::{Served, speller};
use crate::support::Project;
use serde_json::{Value, json};

/// The value of a variable that has a key.
const KNOWN: &str = "local-token-0001";

/// A text that has the form of a key.
const LOOKS_LIKE_ONE: &str = "sk-ant-api03-0123456789abcdef";

/// That a key is nowhere in the workspace, nor in what was said.
fn assert_hidden(project: &Project, said: &str, key: &str) {
    assert!(!said.contains(key), "{said}");
    for entry in walkdir::WalkDir::new(project.at("workspace")) {
        let entry = entry.unwrap();
        if entry.file_type().is_file() {
            let bytes = std::fs::read(entry.path()).unwrap();
            let text = String::from_utf8_lossy(&bytes);
            assert!(!text.contains(key), "{}\n{text}", entry.path().display());
        }
    }
}

#[test]
fn a_key_that_somebody_repeats_is_in_no_file_and_nowhere_on_the_screen() {
    const KEY: &str = "local-secret-0001";
    let answering = format!("leaky:{KEY}");
    let served = Served::new(&answering);
    for agent in ["api", "chat", "tool"] {
        let mut project = speller(served.port, &answering);
        project.env("KEY", KEY);
        // A tool that fails is tried again while there is time.
        let ask = project.read("stages/2_ask.toml");
        project.write(
            "stages/2_ask.toml",
            format!("{ask}\n[policy]\ntimeout = \"6s\"\n"),
        );
        let agent = format!("speller={agent}");
        let file = project.at("debug.log").display().to_string();
        let ran = project.run_unplanned(&["--agent", &agent, "--log-file", &file]);
        assert_eq!(ran.code, 1, "{}", ran.output);
        ran.says("I was sent [key]");
        assert_hidden(&project, &ran.output, KEY);
        assert_hidden(&project, &ran.output, LOOKS_LIKE_ONE);
        let log = project.read("debug.log");
        assert!(!log.contains(KEY) && !log.contains(LOOKS_LIKE_ONE), "{log}");
        for command in [
            &["log", "ask/batch_1"][..],
            &["log", "ask/batch_1", "--calls"],
            &["why", "ask/batch_1", "--agent", &agent],
            &["status", "--agent", &agent],
            &["params"],
        ] {
            let (_, said) = project.milepost(command);
            assert!(
                !said.contains(KEY) && !said.contains(LOOKS_LIKE_ONE),
                "{said}"
            );
        }
    }
}

#[test]
fn the_failures_of_elements_have_no_keys() {
    let served = Served::new("well");
    let project = speller(served.port, "well");
    let names = json!(["NAME 1", "NAME 2", "NAME 3", "NAME 4", LOOKS_LIKE_ONE]);
    let schema = json!({"type": "object", "properties": {"word": {"enum": names}}});
    project.write("schemas/word.schema.json", schema.to_string());
    let ask = project.read("stages/2_ask.toml");
    let policy = "\n[policy]\non_failure = \"continue\"\n";
    project.write("stages/2_ask.toml", ask + policy);
    let ran = project.run_unplanned(&["--agent", "speller=api", "--until", "ask"]);
    let records = project.records();
    let mut published = records.iter().filter(|it| it["kind"] == "published");
    assert!(
        published.any(|it| !it["data"]["record"]["failed"].is_null()),
        "{}",
        ran.output
    );
    let shown = serde_json::to_string(&records).unwrap();
    assert!(shown.contains("[key]") && !shown.contains(LOOKS_LIKE_ONE));
    let manifest = project.read("workspace/manifests/ask/page_0001.sha256");
    assert!(manifest.contains("[key]") && !manifest.contains(LOOKS_LIKE_ONE));
}

#[test]
fn what_programs_print_is_kept_without_keys_and_what_they_make_as_it_is() {
    let mut project = Project::new(&[
        (
            "milepost.toml",
            "name = \"told\"\n\n[env]\nDEPLOY_TOKEN = \"\"\n",
        ),
        (
            "stages/1_say.toml",
            r#"[step]
command = ["sh", "-c", 'printf "token %s" "$DEPLOY_TOKEN"; echo "$DEPLOY_TOKEN" > "$1"; test -e "$0"', "{{ params.there }}", "{{ paths.said }}"]
env = ["DEPLOY_TOKEN"]

[outputs]
said = "outputs/said.txt"
"#,
        ),
    ]);
    project.write(
        "milepost.toml",
        format!(
            "{}\n[params]\nthere = \"/none\"\n",
            project.read("milepost.toml")
        ),
    );
    project.env("DEPLOY_TOKEN", KNOWN);
    let ran = project.run(&[]);
    assert_eq!(ran.code, 1, "{}", ran.output);
    ran.says("token [key]");
    let log = project.milepost(&["log", "say"]).1;
    assert!(log.contains("token [key]") && !log.contains(KNOWN), "{log}");
    let ran = project.run(&["--set", "there=/"]);
    assert_eq!(ran.code, 0, "{}", ran.output);
    let said = project.read("workspace/outputs/said.txt");
    assert_eq!(said, format!("{KNOWN}\n"));
}

/// Returns what the records of a kind have at a place.
fn recorded(project: &Project, kind: &str, pointer: &str) -> Vec<Value> {
    let records = project.records();
    let of_kind = records.iter().filter(|record| record["kind"] == kind);
    let found = of_kind.map(|record| record.pointer(pointer).cloned().unwrap_or_default());
    found.collect()
}

#[test]
fn summaries_and_failures_of_placeholders_have_no_keys() {
    let mut project = Project::new(&[
        (
            "milepost.toml",
            "name = \"said\"\n\n[env]\nDEPLOY_TOKEN = \"\"\n",
        ),
        (
            "stages/1_say.toml",
            r#"
summary = '{said: .said.said, warnings: ["it said " + .said.said]}'

[each.word]
path = "inputs/*.txt"

[refine]
until = "true"
max_iterations = 2
otherwise = "best"
score = "1"

[[step]]
out = "answer"
jq = '"sk-ant-api03-0123456789abcdef"'

[[step]]
out = "said"
command = ["sh", "-c", 'printf "{\"said\": \"%s\"}" "$DEPLOY_TOKEN" > "$2"; [ "$1" = well ]', "say", "{{ word.stem }}", "{{ paths.said }}"]
env = ["DEPLOY_TOKEN"]
summary = '{(.said.said): [.said.said]}'

[outputs]
answer = { path = "answers/{{ word.stem }}.json", schema = "schemas/answer.schema.json" }
said = { path = "said/{{ word.stem }}.json", schema = false }

[policy]
on_failure = "continue"
placeholder = '"no"'
"#,
        ),
        (
            "schemas/answer.schema.json",
            r#"{"enum": ["sk-ant-api03-0123456789abcdef"]}"#,
        ),
        ("workspace/inputs/well.txt", ""),
        ("workspace/inputs/worse.txt", ""),
    ]);
    project.env("DEPLOY_TOKEN", KNOWN);
    let ran = project.run(&[]);
    assert_eq!(ran.code, 3, "{}", ran.output);
    ran.says("it said [key]");
    let summary = json!({"said": "[key]", "warnings": ["it said [key]"]});
    let at = |kind: &str, pointer: &str| recorded(&project, kind, pointer);
    let of_step = json!({"[key]": ["[key]"]});
    assert!(at("step_finished", "/data/summary").contains(&of_step));
    for (kind, pointer) in [
        ("round_judged", "/data/summary"),
        ("published", "/data/record/summary"),
    ] {
        assert_eq!(at(kind, pointer), std::slice::from_ref(&summary), "{kind}");
    }
    let details = at("batch_failed", "/data/outcome/details");
    let last = details[0].as_array().and_then(|all| all.last()).unwrap();
    assert_eq!(
        last,
        "its placeholder failed too: `answers/worse.json` does not match schemas/answer.schema.json: \"no\" is not one of \"[key]\""
    );
    for folder in [".milepost/journal", "manifests"] {
        for file in project.list(folder) {
            let text = project.read(&format!("workspace/{folder}/{file}"));
            let has_none = !text.contains(KNOWN) && !text.contains(LOOKS_LIKE_ONE);
            assert!(has_none, "{file}: {text}");
        }
    }
}
