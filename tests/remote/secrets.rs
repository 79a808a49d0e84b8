//! Keys that only the jobs of a stage have: their logs hold none, since the run does not know them.

use super::agents::API;
use super::pbs::Pbs;
use super::wait_until;
use crate::support::Project;
use serde_json::{Value, json};

const KEY: &str = "local-secret-0001";

const STAGE: &str = r#"
executor = "command"
summary = '{said: .said.said, warnings: ["it said " + .said.said]}'

[each.word]
path = "inputs/*.txt"

[[step]]
out = "answer"
agent = "speller"
prompt = "prompts/spell.md"
schema = "schemas/answer.schema.json"

[[step]]
out = "said"
command = ["sh", "-c", 'printf "{\"said\": \"%s\"}" "$(cat "$3")" >"$2"; [ "$1" = well ] || { cat "$3" >&2; exit 1; }', "say", "{{ word.stem }}", "{{ paths.said }}", "FOLDER/secret"]
summary = '{(.said.said): [.said.said]}'
attempts = 1

[outputs]
answer = { path = "answers/{{ word.stem }}.json", schema = "schemas/answer.schema.json" }
said = { path = "said/{{ word.stem }}.json", schema = false }

[policy]
on_failure = "continue"
placeholder = '"no"'
"#;

/// The agent repeats a key in its command line. Its first answer is refused, with a text in the form of a key.
fn project(pbs: &Pbs) -> Project {
    let project = Project::new(&[
        ("prompts/spell.md", "Spell."),
        (
            "schemas/answer.schema.json",
            r#"{"enum": ["sk-ant-api03-0123456789abcdef"]}"#,
        ),
    ]);
    let folder = project.path().display().to_string();
    project.write("stages/1_spell.toml", STAGE.replace("FOLDER", &folder));
    let executor = pbs.executor(&format!(
        "batches_per_job = 2\nsetup = [\"until [ -e {folder}/open ]; do sleep 0.05; done\", \"export KEY=$(cat {folder}/secret)\"]\n"
    ));
    let answers = format!(
        "cat >/dev/null; mkdir {folder}/once 2>/dev/null && echo '\"no\"' || echo '\"sk-ant-api03-0123456789abcdef\"'"
    );
    project.write(
        "milepost.toml",
        format!(
            "name = \"keys\"\n[agents.speller]\njq = '\"x\"'\n\
             [agents.api]\ncli = [\"sh\", \"-c\", '''{answers}''', \"{KEY}\"]\n\
             [agents.unused]\nanthropic = \"claude-sonnet-4-5\"\napi_key_env = \"KEY\"\n{executor}"
        ),
    );
    project.write("secret", KEY);
    for word in ["well", "worse"] {
        project.write(&format!("workspace/inputs/{word}.txt"), word);
    }
    project
}

#[test]
fn the_log_of_a_job_has_no_keys() {
    let Some(pbs) = Pbs::start(1) else { return };
    let project = project(&pbs);
    let mut runner = project.spawn(&[&["run"][..], &API].concat());
    let jobs = ".milepost/jobs";
    let has_id = || project.list(jobs).iter().any(|file| file.ends_with("/id"));
    wait_until("the job is submitted", has_id);
    runner.kill().unwrap();
    runner.wait().unwrap();
    project.write("open", "");
    pbs.wait_for_end();
    check_files(&project);
    let logs = project.list(jobs);
    let log = logs
        .iter()
        .find(|file| file.rsplit('.').next() == Some("jsonl"))
        .unwrap();
    let log = project.read(&format!("workspace/{jobs}/{log}"));
    let lines = log.lines().map(|line| line.split_once(' ').unwrap().1);
    let events: Vec<Value> = lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let done: Vec<&Value> = events.iter().filter(|it| it["kind"] == "done").collect();
    let (well, worse) = (done[0], done[1]);
    let provider = well["steps"][1]["called"][1]["provider"].as_str().unwrap();
    assert!(provider.ends_with(" [key]"), "{provider}");
    let texts = json!([
        well["steps"][2]["refused"]["violations"],
        well["steps"][6]["ended"][1],
        well["result"]["Ok"]["opinion"]["summary"],
        well["result"]["Ok"]["warnings"],
        worse["result"]["Err"]["details"],
    ]);
    let said = "it said [key]";
    let expected = json!([
        [": \"no\" is not one of \"[key]\""],
        {"[key]": ["[key]"]},
        {"said": "[key]", "warnings": [said]},
        [said],
        ["[key]", "its placeholder failed too: `answers/worse.json` does not match schemas/answer.schema.json: \"no\" is not one of \"[key]\""],
    ]);
    assert_eq!(texts, expected);
    // The next run, which does not know the key either, takes the job over.
    let ran = project.run_unplanned(&API);
    assert_eq!(ran.code, 3, "{}", ran.output);
    ran.says(said);
    assert!(!ran.output.contains(KEY), "{}", ran.output);
    check_files(&project);
    assert_eq!(pbs.submissions().len(), 1);
}

/// Asserts that no file of Milepost has the key, besides what programs made.
fn check_files(project: &Project) {
    let files = project.list(".milepost");
    let is_made = |file: &str| file.contains("/work/") || file.starts_with("quarantine/");
    for file in files.iter().filter(|file| !is_made(file)) {
        let text = project.bytes(&format!("workspace/.milepost/{file}"));
        let text = String::from_utf8_lossy(&text);
        assert!(!text.contains(KEY), "{file}: {text}");
    }
}
