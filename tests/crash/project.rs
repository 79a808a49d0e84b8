//! Small projects that are stopped anywhere, and what must hold of their workspace at every moment.

use crate::support::{Files, MAIN_PIPELINE, Output, Project, files_below};
use milepost_core::base::digest::Digest;
use milepost_core::model::event::{Event, Record};
use milepost_core::model::state::State;
use milepost_engine::ops::project::state;
use milepost_store::store::layout::Layout;
use milepost_store::store::{checkpoint, journal, manifest};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Five stages: commands with a marker, two at once, that say outside the workspace that they ran; a jq program, split, rules, and a merge with two outputs.
const DECLARED: &[(&str, &str)] = &[
    (
        "milepost.toml",
        r#"
name = "small"
[agents.classifier]
rules = "rules.toml"
"#,
    ),
    (
        "rules.toml",
        r#"
[[rule]]
name = "wall"
ifc_type = ["IfcWall*"]
answer = { element_type = "external_wall" }
confidence = 0.9
"#,
    ),
    (
        "stages/1_copy.toml",
        r#"
marker = "intermediate/out/{{ batch.stem }}.done"
[each.batch]
path = "inputs/batch_*.json"
[step]
command = ["sh", "-c", 'echo "$1" >> ../../../../../../ran; cp "$1" "$2"', "sh", "{{ batch.path }}", "{{ paths.copy }}"]
[outputs]
copy = { path = "intermediate/out/{{ batch.stem }}.json", schema = "schemas/copy.schema.json" }
[policy]
concurrency = 2
"#,
    ),
    (
        "stages/2_parse.toml",
        r#"
[inputs]
parts = "intermediate/out/batch_*.json"
[step]
jq = '{ elements: [.parts[].items[]] }'
[outputs]
parsed = { path = "intermediate/parsed.json", schema = false }
"#,
    ),
    (
        "stages/3_batch.toml",
        r#"
[inputs]
parsed = "intermediate/parsed.json"
[step]
split = ".parsed.elements"
question = '{ifc_type, name}'
size = 4
[outputs]
batches = { path = "intermediate/batches/batch_*.json", schema = false }
[conserve]
in = ".parsed.elements[].global_id"
out = ".batches[].elements[].global_id"
"#,
    ),
    (
        "stages/4_classify.toml",
        r#"
marker = "intermediate/classified/{{ batch.stem }}.done"
[each.batch]
path = "intermediate/batches/batch_*.json"
[step]
agent = "classifier"
prompt = "prompt.md"
questions = true
result = '{global_id: $element.global_id, element_type, rule}'
[outputs]
classified = { path = "intermediate/classified/{{ batch.stem }}.json", schema = false }
[conserve]
in = ".batch.data.elements[].global_id"
out = ".classified[].global_id"
"#,
    ),
    (
        "stages/5_join.toml",
        r#"
[inputs]
parsed = "intermediate/parsed.json"
classified = "intermediate/classified/batch_*.json"
[[step]]
merge = ".classified[][]"
key = ".global_id"
order = ".parsed.elements[].global_id"
out = "all"
[[step]]
jq = '.all.elements | group_by(.element_type) | map({key: .[0].element_type, value: length}) | from_entries'
out = "count"
[outputs]
all = { path = "outputs/all.json", schema = false }
count = { path = "outputs/count.json", schema = false }
"#,
    ),
    ("prompt.md", "Classify."),
    ("schemas/copy.schema.json", r#"{"type": "object"}"#),
];

/// Files that a run may write although nothing is to do.
const CACHES: [&str; 4] = [
    ".milepost/stat-cache",
    ".milepost/stat-cache-changes",
    ".milepost/glance",
    ".milepost/glance-changes",
];

impl Project {
    /// An empty project whose runs all have one date.
    pub fn empty() -> Self {
        let mut project = Self::new(&[]);
        // 1 March 2026.
        project.env("SOURCE_DATE_EPOCH", "1772323200");
        project
    }

    /// The same project, whose files count as an hour old: a run notes what it found, and the next run believes the notes.
    pub fn old(mut self) -> Self {
        self.env("MILEPOST_AHEAD", "3600");
        self
    }

    /// The main pipeline of this repository with its settings, and no input.
    pub fn main_pipeline() -> Self {
        let project = Self::empty();
        project.take(&MAIN_PIPELINE);
        fs::create_dir_all(project.at("workspace/inputs")).unwrap();
        project
    }

    /// The main pipeline over a model of six elements.
    pub fn six() -> Self {
        let project = Self::main_pipeline();
        let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/crash/six_elements.ifc");
        fs::copy(model, project.at("workspace/inputs/sample.ifc")).unwrap();
        project
    }

    /// The small pipeline with four inputs.
    pub fn small() -> Self {
        let project = Self::empty();
        for (path, text) in DECLARED {
            project.write(path, text);
        }
        for number in 1..=4 {
            project.input(number, "IfcWall");
        }
        project
    }

    /// Writes an input with two elements.
    pub fn input(&self, number: u32, ifc_type: &str) {
        let element = |side: &str| {
            format!(
                r#"{{"global_id": "{side}{number}", "ifc_type": "{ifc_type}", "name": "{side} {number}"}}"#
            )
        };
        let text = format!(
            r#"{{"items": [{}, {}]}}"#,
            element("left"),
            element("right")
        );
        self.write(&format!("workspace/inputs/batch_{number}.json"), &text);
    }

    pub fn layout(&self) -> Layout {
        Layout::new(self.path().canonicalize().unwrap().join("workspace"))
    }

    /// Replaces text in a file and keeps its time of modification.
    pub fn replace(&self, path: &str, from: &str, to: &str) {
        let text = self.read(path);
        assert!(text.contains(from), "{text}");
        self.write_with_mtime_kept(path, text.replace(from, to));
    }

    /// The program in this project; `setting` says how its disk behaves.
    pub fn command_on_disk(&self, words: &[&str], setting: &str) -> Command {
        let mut command = self.command(words);
        command.env("MILEPOST_STOP_AT", setting);
        command
    }

    /// Runs the program on such a disk.
    pub fn run_on_disk(&self, words: &[&str], setting: &str) -> Output {
        Output::of(&self.command_on_disk(words, setting).output().unwrap())
    }

    /// Runs the program to its end, and checks that it succeeds.
    pub fn complete(&self, words: &[&str]) {
        let ended = self.run_on_disk(words, "unflushed");
        assert_eq!(ended.code, 0, "{}", ended.text());
    }

    /// Runs a command that only reads: it gives an answer and leaves everything as it is. Programs that a killed run left may
    /// still write in its scratch.
    pub fn query(&self, words: &[&str]) -> String {
        let all = || {
            let mut files = self.workspace_files(&[""]);
            files.retain(|path, _| !path.starts_with(".milepost/scratch/"));
            files
        };
        let before = all();
        let ended = self.run_on_disk(words, "");
        assert_eq!(ended.code, 0, "{words:?}: {}", ended.text());
        assert_same(&all(), &before);
        ended.text()
    }

    /// The batches of `copy` that were begun, in order, each as often as it was.
    pub fn ran(&self) -> Vec<String> {
        let text = fs::read_to_string(self.at("ran")).unwrap_or_default();
        text.lines()
            .map(|line| line.rsplit('/').next().unwrap().to_owned())
            .collect()
    }

    /// The inputs of batches of `copy` that the last run has finished.
    pub fn finished(&self) -> BTreeSet<String> {
        let journal = self.journal();
        let last = journal.last().map(|record| record.run_id.clone());
        let of_last = journal
            .into_iter()
            .filter(|record| Some(&record.run_id) == last.as_ref());
        let finished = of_last.filter_map(|record| match record.event {
            Event::Published { stage, record, .. } if stage == "copy" => {
                Some(format!("{}.json", record.key))
            }
            _ => None,
        });
        finished.collect()
    }

    /// Files below some folders of the workspace.
    pub fn workspace_files(&self, folders: &[&str]) -> Files {
        let root = self.at("workspace");
        let mut files = Files::new();
        for folder in folders {
            let below = files_below(&root.join(folder), |_| true).into_iter();
            let named = below.map(|(path, bytes)| match *folder {
                "" => (path, bytes),
                folder => (format!("{folder}/{path}"), bytes),
            });
            files.extend(named);
        }
        files
    }

    /// The files that stages produced.
    pub fn outputs(&self) -> Files {
        self.workspace_files(&["intermediate", "outputs"])
    }

    /// All records of the journal.
    pub fn journal(&self) -> Vec<Record> {
        let mut records = Vec::new();
        journal::read_all(&self.layout(), &mut |_, record| records.push(record)).unwrap();
        records
    }

    pub fn state(&self) -> State {
        state(&self.layout()).unwrap()
    }

    /// What must hold at every moment, also in the middle of a run that was killed. `known` are the files that may be there,
    /// each as one of these versions; `altered` are those that a person wrote over, for which no checkpoint can speak.
    pub fn assert_truth(&self, known: &[&Files], altered: &Files) {
        self.state();
        self.journal();
        self.assert_checkpoints(altered);
        for (path, bytes) in self.outputs() {
            let versions: Vec<_> = known.iter().filter_map(|files| files.get(&path)).collect();
            assert!(
                versions.contains(&&bytes),
                "{path} is half made: {}",
                String::from_utf8_lossy(&bytes)
            );
            if let Some(output) = path.strip_suffix(".done") {
                let output = format!("workspace/{output}.json");
                assert!(
                    self.at(&output).exists(),
                    "{path} stands without its output"
                );
            }
        }
    }

    /// Every checkpoint that is there vouches for bytes that are there.
    pub fn assert_checkpoints(&self, altered: &Files) {
        let layout = self.layout();
        for (number, found) in checkpoint::list(&layout).unwrap() {
            let found = found.unwrap().checkpoint;
            let name = format!("stage_{number}_complete.json of {}", found.stage);
            let kept = manifest::read(&layout, &found.stage).unwrap();
            let mut files = BTreeSet::new();
            for (_, made) in kept.outputs() {
                let bytes = fs::read(layout.at(&made.path));
                let bytes = bytes.unwrap_or_else(|_| panic!("{name}: {} is not there", made.path));
                if altered.get(made.path.as_str()) != Some(&bytes) {
                    assert_eq!(Digest::of(bytes), made.digest, "{name}: {}", made.path);
                }
                files.insert(made.path.clone());
            }
            let expected = match &found.output_file {
                Some(path) => {
                    assert!(files.contains(path), "{name}: {path} is in no manifest");
                    let made = kept.outputs().find(|(_, made)| made.path == *path);
                    made.unwrap().1.digest
                }
                None => manifest::digest(&layout, &found.stage).unwrap().unwrap(),
            };
            assert_eq!(
                found.checksums.output, expected,
                "{name}: checksum of the outputs"
            );
        }
    }

    /// What must hold after a run that ended well: nothing of scratch is left, every stage has its checkpoint, and no batch
    /// was made again for the same reasons.
    pub fn assert_complete(&self, expected: &Files) {
        self.assert_done(expected);
        self.assert_nothing_twice();
    }

    /// The same, where a run was forced.
    pub fn assert_done(&self, expected: &Files) {
        self.assert_truth(&[expected], &Files::new());
        assert_same(&self.outputs(), expected);
        let stages = checkpoint::list(&self.layout()).unwrap();
        let declared = fs::read_dir(self.at("stages")).unwrap().count();
        assert_eq!(stages.len(), declared, "checkpoints");
        let scratch = self.workspace_files(&[".milepost/scratch"]);
        assert_eq!(scratch.keys().collect::<Vec<_>>(), Vec::<&String>::new());
    }

    /// No batch that was finished was made again from the same facts.
    pub fn assert_nothing_twice(&self) {
        let mut finished = BTreeMap::new();
        for record in self.journal() {
            match record.event {
                Event::Published { stage, record, .. } => {
                    let name = (stage, record.key.clone());
                    let facts = (record.shared.clone(), record.facts.clone());
                    let before = finished.insert(name.clone(), facts.clone());
                    assert_ne!(before, Some(facts), "{name:?} was made twice");
                }
                Event::Lost { stage, batch, .. } => panic!("{stage}/{batch} was lost"),
                Event::Retired { stage, batch, .. } => {
                    finished.remove(&(stage, batch));
                }
                Event::BatchFailed {
                    stage,
                    batch,
                    outcome,
                    ..
                } => {
                    panic!("{stage}/{batch} failed: {outcome}")
                }
                _ => {}
            }
        }
    }

    /// An audit finds nothing.
    pub fn assert_verified(&self) {
        let said = self.query(&["verify"]);
        assert!(said.contains("everything matches the record"), "{said}");
    }

    /// A run that has nothing to do changes nothing but what it may.
    pub fn assert_at_rest(&self, words: &[&str]) {
        let all = || {
            let mut files = self.workspace_files(&[""]);
            files.retain(|path, _| !CACHES.contains(&path.as_str()));
            files
        };
        let before = all();
        self.complete(words);
        assert_same(&all(), &before);
    }
}

/// Says which file differs, not all of them.
pub fn assert_same(found: &Files, expected: &Files) {
    for (path, bytes) in expected {
        let there = found.get(path);
        let text = |bytes: &[u8]| {
            let text = String::from_utf8_lossy(bytes);
            text.chars().take(2000).collect::<String>()
        };
        assert_eq!(
            there.map(|bytes| text(bytes)),
            Some(text(bytes)),
            "{path} is not as it should be"
        );
    }
    let more: Vec<_> = found
        .keys()
        .filter(|path| !expected.contains_key(*path))
        .collect();
    assert!(more.is_empty(), "too many files: {more:?}");
}

/// The operations of a run in this project, one a line: what is done, and to what.
pub fn operations(project: &Project, words: &[&str]) -> Vec<String> {
    let list = tempfile::NamedTempFile::new().unwrap();
    let setting = format!("unflushed,list={}", list.path().display());
    let ended = project.run_on_disk(words, &setting);
    assert_eq!(ended.code, 0, "{}", ended.text());
    let text = fs::read_to_string(list.path()).unwrap();
    text.lines().map(str::to_owned).collect()
}
