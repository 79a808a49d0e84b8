//! Agents: killed anywhere, a run pays again at most for what was in flight; what is kept is valid, and there after a power failure;
//! `gc` takes nothing that is in use, stopped anywhere, and beside runs that write.

use super::project::operations;
use super::sweep::{at_each, in_parallel, setting, stops};
use crate::agents::pipeline::Served;
use crate::support::{Files, Project};
use milepost_core::model::event::Event;
use milepost_store::store::answers::Answer;
use milepost_store::store::checksummed::{files, whole_lines};
use serde_json::json;
use std::collections::BTreeSet;
use std::process::Stdio;
use std::sync::LazyLock;

const RUN: &[&str] = &["run"];

/// Batches of two that are asked at once.
const AT_ONCE: usize = 2;

/// Says outside the workspace that it was started, and answers each question with its own name; one of them first with a number.
const SPELLER: &str = r#"echo spell >> ../../../../../../ran
p=$(cat | tr '\n' ' ')
case "$p" in *"not valid"*) bad= ;; *) bad='s/"word":"name 1"/"word":1/' ;; esac
printf '%s' "$p" | sed 's/.*Questions: *\(\[[^]]*\]\).*/\1/; s/"question":{"name":\("[^"]*"\)}/"word":\1/g; '"$bad""#;

/// Says the last line of what it was told.
const TELLER: &str = r"echo tell >> ../../../../../../ran
sed '/^$/d' | tail -n 1";

/// A service, as long as the tests run.
static SERVICE: LazyLock<Served> = LazyLock::new(|| Served::new("well"));

fn declared(with_service: bool) -> Vec<(&'static str, String)> {
    let agents = format!(
        "name = \"asking\"\n[agents.speller]\ncli = [\"sh\", \"-c\", '''{SPELLER}''']\n[agents.teller]\ncli = [\"sh\", \"-c\", '''{TELLER}''']\n"
    );
    let mut files = vec![
        ("milepost.toml", agents),
        (
            "stages/1_split.toml",
            r#"
[inputs]
things = "inputs/things.json"
[step]
split = ".things"
question = "{name}"
size = 2
[outputs]
batches = { path = "intermediate/batches/batch_*.json", schema = false }
"#
            .to_owned(),
        ),
        (
            "stages/2_ask.toml",
            format!(
                r#"
[each.batch]
path = "intermediate/batches/batch_*.json"
[step]
agent = "speller"
prompt = "spell.md"
questions = true
schema = "word.schema.json"
result = '{{id: $element.id, word}}'
[outputs]
words = {{ path = "intermediate/words/{{{{ batch.stem }}}}.json", schema = false }}
[conserve]
in = ".batch.data.elements[].id"
out = ".words[].id"
[policy]
concurrency = {AT_ONCE}
"#
            ),
        ),
        (
            "stages/3_tell.toml",
            r#"
[refine]
until = ".iteration == 3"
[[step]]
agent = "teller"
prompt = "tell.md"
answer = "text"
out = "draft"
[outputs]
draft = "intermediate/drafts/draft_{{ iteration }}.txt"
"#
            .to_owned(),
        ),
        (
            "stages/5_join.toml",
            r#"
[inputs]
things = "inputs/things.json"
words = "intermediate/words/*.json"
drafts = "intermediate/drafts/*.txt"
[[step]]
merge = ".words[][]"
key = ".id"
order = ".things[].id"
out = "all"
[[step]]
jq = '$drafts | join("")'
out = "letter"
[outputs]
all = { path = "outputs/all.json", schema = false }
letter = "outputs/letter.txt"
"#
            .to_owned(),
        ),
        ("spell.md", "Spell.\n\nQuestions: {{ questions | tojson }}\n".to_owned()),
        (
            "tell.md",
            "Tell.\n\nRound {{ iteration }} after {{ previous.draft if previous else 'nothing' }}\n".to_owned(),
        ),
        (
            "word.schema.json",
            r#"{"type": "object", "required": ["word"], "properties": {"word": {"type": "string"}}}"#
                .to_owned(),
        ),
    ];
    if with_service {
        files.push((
            "stages/4_fetch.toml",
            format!(
                r#"
[step]
http = "http://127.0.0.1:{}/list"
headers = {{ x-api-key = "right" }}
[outputs]
list = {{ path = "outputs/list.json", schema = false }}
"#,
                SERVICE.port
            ),
        ));
    }
    files
}

/// Things, of which every two have one name.
fn things(from: usize, to: usize) -> String {
    let one = |n: usize| json!({"id": n, "name": format!("name {}", n / 2)});
    (from..to)
        .map(one)
        .collect::<serde_json::Value>()
        .to_string()
}

impl Project {
    /// Questions to an agent in batches, another in rounds, and a service.
    pub fn asking() -> Self {
        Self::asks(true)
    }

    fn asks(with_service: bool) -> Self {
        let project = Self::empty();
        for (path, text) in declared(with_service) {
            project.write(path, &text);
        }
        project.write("workspace/inputs/things.json", things(0, 10));
        project
    }

    /// The answers that are kept in a folder, in order, by the file that each stands in.
    fn answers(&self, folder: &str) -> Vec<(String, Answer)> {
        let mut all = Vec::new();
        for path in files(&self.at(folder).join(".milepost/answers")).unwrap() {
            let bytes = std::fs::read(&path).unwrap();
            let name = path.file_stem().unwrap().to_str().unwrap();
            for line in whole_lines(&bytes) {
                all.push((name.to_owned(), serde_json::from_str(line).unwrap()));
            }
        }
        all
    }

    /// What is kept is valid.
    fn assert_answers_valid(&self, folder: &str) {
        for (_, answer) in self.answers(folder) {
            let value = &answer.answer;
            let is_valid = value["word"].is_string() || value["answer"].is_string();
            assert!(is_valid, "{value}");
        }
    }

    /// Starts of agents.
    fn asked(&self) -> usize {
        self.ran().len()
    }
}

/// Each batch once, one of them twice, and three rounds.
const CALLS: usize = 3 + 1 + 3;

#[test]
fn at_most_what_was_in_flight_is_paid_again() {
    let whole = Project::asking();
    let operations = operations(&whole, RUN);
    let expected = whole.outputs();
    assert_eq!(whole.asked(), CALLS);
    let letter = String::from_utf8(expected["outputs/letter.txt"].clone()).unwrap();
    assert!(
        letter.contains("Round 3 after Round 2 after Round 1 after nothing"),
        "{letter}"
    );
    whole.assert_complete(&expected);
    let stops = stops(&operations, 40);
    at_each(&operations, &stops, |stop| {
        let project = Project::asking();
        project.run_on_disk(RUN, &stop.setting);
        project.assert_truth(&[&expected], &Files::new());
        for folder in ["", "workspace"] {
            project.assert_answers_valid(folder);
        }
        let kept: BTreeSet<_> = project
            .answers("workspace")
            .into_iter()
            .map(|(_, answer)| answer.address)
            .collect();
        let before: BTreeSet<String> = project
            .answers("workspace")
            .into_iter()
            .map(|it| it.0)
            .collect();
        project.complete(RUN);
        project.assert_complete(&expected);
        for (run, answer) in project.answers("workspace") {
            let again = !before.contains(&run) && kept.contains(&answer.address);
            assert!(!again, "{} was kept and asked again", answer.answer);
        }
        // One more where what was not valid was heard, and not what follows it.
        let asked = project.asked();
        assert!(asked <= CALLS + AT_ONCE + 1, "{asked} calls");
        for folder in ["", "workspace"] {
            project.assert_answers_valid(folder);
        }
    });
}

/// Answers whose batch is published are there after a power failure, in the workspace and in what is shared.
#[test]
fn an_answer_that_is_kept_outlives_a_power_failure() {
    let whole = Project::asks(false);
    let count = operations(&whole, RUN).len();
    let outputs = whole.workspace_files(&["outputs"]);
    let first = setting("MILEPOST_TEST_SEED", 0);
    let seeds: Vec<usize> = (first..first + setting("MILEPOST_TEST_SEEDS", 120) / 8).collect();
    in_parallel(&seeds, |&seed| {
        let project = Project::asks(false);
        let at = 1 + super::power::chosen(seed, 7, count);
        let half = ["", ":half"][seed % 2];
        let power = format!("{at}{half},power={seed}@{}", project.path().display());
        project.run_on_disk(RUN, &power);
        for folder in ["", "workspace"] {
            project.assert_answers_valid(folder);
        }
        for record in project.journal() {
            let Event::Published { stage, record, .. } = record.event else {
                continue;
            };
            for from in &record.answers {
                let shared = ["", "workspace"];
                let folders = if stage == "ask" {
                    &shared[..]
                } else {
                    &shared[1..]
                };
                for folder in folders {
                    let answers = project.answers(folder).into_iter();
                    let found = answers.filter(|it| it.1.call == (from.run.clone(), from.call));
                    assert_eq!(
                        found.count() as u64,
                        from.answers,
                        "{stage} in `{folder}`: {from:?}"
                    );
                }
            }
        }
        project.complete(RUN);
        assert_eq!(project.workspace_files(&["outputs"]), outputs);
    });
}

/// A project whose prompts were others once: half of its answers are of no use.
fn revised() -> Project {
    let project = Project::asks(false);
    project.complete(RUN);
    for prompt in ["spell.md", "tell.md"] {
        project.replace(prompt, "l.\n", "l!\n");
    }
    project.complete(RUN);
    project
}

const GC: &[&str] = &["gc", "--yes", "--older-than", "0s"];

#[test]
fn gc_takes_nothing_that_is_in_use_wherever_it_is_stopped() {
    let base = revised();
    let whole = base.copy();
    let dry = whole.query(&GC[..1]);
    let answers = dry.lines().filter(|line| line.starts_with("answers"));
    assert_eq!(answers.count(), 2, "{dry}");
    let operations = operations(&whole, GC);
    let count = |project: &Project, folder: &str| project.answers(folder).len();
    for (folder, answers) in [("", 5), ("workspace", 8)] {
        assert_eq!(count(&base, folder), 2 * answers);
        assert_eq!(count(&whole, folder), answers);
    }
    let collected = whole.run_on_disk(GC, "").text();
    assert!(collected.ends_with("\n0 bytes freed\n"), "{collected}");
    let calls = |project: &Project| {
        let files = project.workspace_files(&[".milepost/calls"]);
        // RUN.jsonl, and RUN/N.request.
        let bytes = files.keys().filter(|path| path.split('/').count() == 4);
        bytes.count()
    };
    assert_eq!((calls(&base), calls(&whole)), (4 * CALLS, 2 * CALLS));
    let asked = base.asked();
    assert_eq!(asked, 2 * CALLS);
    let stops = stops(&operations, 24);
    at_each(&operations, &stops, |stop| {
        let project = base.copy();
        project.run_on_disk(GC, &stop.setting);
        project.complete(&["run", "-B"]);
        assert_eq!(project.asked(), asked);
        project.complete(GC);
        project.complete(&["run", "-B"]);
        assert_eq!(project.asked(), asked);
        assert_eq!(project.outputs(), base.outputs());
        for (folder, answers) in [("", 5), ("workspace", 8)] {
            assert_eq!(count(&project, folder), answers, "{folder}");
        }
    });
    let seeds: Vec<usize> = (0..setting("MILEPOST_TEST_SEEDS", 120) / 20).collect();
    in_parallel(&seeds, |&seed| {
        let project = base.copy();
        let at = 1 + super::power::chosen(seed, 9, operations.len());
        let power = format!("{at},power={seed}@{}", project.path().display());
        project.run_on_disk(GC, &power);
        project.complete(&["run", "-B"]);
        assert_eq!(project.asked(), asked);
    });
}

/// Runs in several workspaces ask what partly is the same, while `gc` goes through what they share.
#[test]
fn runs_at_once_share_answers_and_gc_loses_none() {
    let project = Project::asks(false);
    project.complete(RUN);
    project.replace("spell.md", "l.\n", "l!\n");
    let spans = [(0, 12), (6, 20), (2, 16)];
    let mut runs = Vec::new();
    for (at, (from, to)) in spans.into_iter().enumerate() {
        let inputs = format!("other_{at}/inputs/things.json");
        project.write(&inputs, things(from, to));
        let words = ["run", "--workspace", &format!("other_{at}")].map(str::to_owned);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let mut command = project.command_on_disk(&words, "");
        command.stdout(Stdio::null()).stderr(Stdio::null());
        runs.push(command.spawn().unwrap());
    }
    let mut collected = 0;
    while runs.iter_mut().any(|run| run.try_wait().unwrap().is_none()) {
        let ended = project.run_on_disk(&["gc", "--yes"], "");
        assert_eq!(ended.code, 0, "{}", ended.text());
        collected += 1;
    }
    assert!(collected > 0);
    for run in &mut runs {
        assert_eq!(run.wait().unwrap().code(), Some(0));
    }
    project.complete(&["gc", "--yes"]);
    project.assert_answers_valid("");
    let asked = project.asked();
    for (at, (from, to)) in spans.into_iter().enumerate() {
        let workspace = format!("other_{at}");
        project.assert_answers_valid(&workspace);
        let all = std::fs::read(project.at(&format!("{workspace}/outputs/all.json"))).unwrap();
        let all: serde_json::Value = serde_json::from_slice(&all).unwrap();
        let word = |n: usize| json!({"id": n, "word": format!("name {}", n / 2)});
        let words: serde_json::Value = (from..to).map(word).collect();
        assert_eq!(all["elements"], words, "{workspace}");
        project.complete(&["run", "-B", "--workspace", &workspace]);
    }
    assert_eq!(project.asked(), asked);
    // All that any of them asked is there for another, which has only its letter to be told.
    project.write("another/inputs/things.json", things(0, 20));
    project.complete(&["run", "--workspace", "another"]);
    assert_eq!(project.asked(), asked + 3);
}
