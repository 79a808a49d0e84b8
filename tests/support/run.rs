//! A run through the binary: its exit code, its text, and the records that it appended to the journal.

use super::agreement::Agreement;
use super::{Digests, Project};
use milepost_core::base::digest::Digest;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// The result of a run.
pub struct RunResult {
    /// The exit code; 128 and the signal's number when a signal ended it.
    pub code: i32,
    /// Standard output and standard error.
    pub output: String,
    /// The records that the run appended to the journal.
    pub records: Vec<Value>,
}

impl Project {
    /// Runs, and checks that the run does what a plan made just before shows, and that every checkpoint is true.
    pub fn run(&self, arguments: &[&str]) -> RunResult {
        let plan = self.plan(arguments);
        let before = self.last.lock().unwrap().clone();
        let ran = self.run_unplanned(arguments);
        match plan {
            Some(plan) => Agreement {
                project: self,
                plan: &plan,
                ran: &ran,
                before: &before,
            }
            .check(),
            None => assert_ne!(ran.code, 0, "the plan was refused: {}", ran.output),
        }
        // A refused run changes nothing, and outputs that a person modified do not match their record.
        if ran.code != 5 {
            self.check_checkpoints();
            *self.last.lock().unwrap() = self.digests();
        }
        ran
    }

    /// Runs without a plan before it.
    pub fn run_unplanned(&self, arguments: &[&str]) -> RunResult {
        let known = self.records().len();
        let (code, output) = self.milepost(&[&["run"], arguments].concat());
        let records = self.records().split_off(known);
        RunResult {
            code,
            output,
            records,
        }
    }

    /// Returns the plan as data, or `None` when it is refused. Checks that planning writes nothing.
    pub fn plan(&self, arguments: &[&str]) -> Option<Value> {
        let before = self.tree();
        let output = self
            .command(&[&["plan", "--json"], arguments].concat())
            .output()
            .unwrap();
        assert_eq!(self.tree(), before, "a plan writes nothing");
        let plan: Value = serde_json::from_slice(&output.stdout).ok()?;
        plan["stages"].is_array().then_some(plan)
    }

    /// The records of the journal, oldest first.
    pub fn records(&self) -> Vec<Value> {
        let mut segments: Vec<PathBuf> = std::fs::read_dir(self.at("workspace/.milepost/journal"))
            .into_iter()
            .flatten()
            .map(|entry| entry.unwrap().path())
            .collect();
        segments.sort();
        let text: String = segments
            .iter()
            .map(|path| std::fs::read_to_string(path).unwrap())
            .collect();
        text.lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect()
    }

    /// Every file and folder of the workspace: its size, time of change, inode and content.
    pub fn tree(&self) -> BTreeMap<String, (u64, i64, i64, u64, Option<Digest>)> {
        walkdir::WalkDir::new(self.at("workspace"))
            .into_iter()
            .filter_map(Result::ok)
            .map(|entry| {
                let found = entry.path().symlink_metadata().unwrap();
                let content = found
                    .is_file()
                    .then(|| Digest::of(std::fs::read(entry.path()).unwrap()));
                let name = self.name(entry.path());
                (
                    name,
                    (
                        found.size(),
                        found.mtime(),
                        found.mtime_nsec(),
                        found.ino(),
                        content,
                    ),
                )
            })
            .collect()
    }

    /// The digests of the files that people and stages see: the workspace without Milepost's own folder.
    pub fn digests(&self) -> Digests {
        walkdir::WalkDir::new(self.at("workspace"))
            .into_iter()
            .filter_entry(|entry| entry.file_name() != ".milepost")
            .filter_map(Result::ok)
            .filter(|entry| entry.file_type().is_file())
            .map(|entry| {
                (
                    self.name(entry.path()),
                    Digest::of(std::fs::read(entry.path()).unwrap()),
                )
            })
            .collect()
    }

    /// The names of the files under a folder of the workspace, in order.
    pub fn list(&self, folder: &str) -> Vec<String> {
        let folder = format!("{folder}/");
        let files = walkdir::WalkDir::new(self.at("workspace").join(&folder))
            .into_iter()
            .filter_map(Result::ok);
        let mut names: Vec<String> = files
            .filter(|entry| entry.file_type().is_file())
            .map(|entry| self.name(entry.path())[folder.len()..].to_owned())
            .collect();
        names.sort();
        names
    }

    /// The files in quarantine, by the path that each had, without the run's id and the number of the event. Records are left out.
    pub fn quarantine(&self) -> Vec<String> {
        let mut names: Vec<String> = self
            .list(".milepost/quarantine")
            .iter()
            .map(|name| name.splitn(2, '/').last().unwrap().to_owned())
            .filter(|name| name != ".milepost/record.json")
            .collect();
        names.sort();
        names
    }

    /// The digests of what stages produced.
    pub fn output_digests(&self) -> Digests {
        let mut files = self.digests();
        files.retain(|path, _| path.starts_with("intermediate/") || path.starts_with("outputs/"));
        files
    }

    fn name(&self, path: &Path) -> String {
        path.strip_prefix(self.at("workspace"))
            .unwrap()
            .to_str()
            .unwrap()
            .to_owned()
    }
}

impl RunResult {
    /// The batches that were tried, as `stage/batch`, or `stage` for its only one; in order of their names.
    pub fn tried(&self) -> Vec<String> {
        self.batches("attempt_started")
    }

    /// The batches of events of a kind, each once.
    pub fn batches(&self, kind: &str) -> Vec<String> {
        let named = self.data(kind).map(|data| {
            let batch = data["batch"]
                .as_str()
                .or_else(|| data["record"]["key"].as_str());
            name(data["stage"].as_str().unwrap(), batch.unwrap_or_default())
        });
        named.collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// The batches whose outputs were restored from quarantine.
    pub fn restored(&self) -> Vec<String> {
        let tried = self.tried();
        let mut restored = self.batches("published");
        restored.retain(|batch| !tried.contains(batch));
        restored
    }

    /// The batches that were revalidated and hold.
    pub fn judged(&self) -> Vec<String> {
        let all = self.data("judged").flat_map(|data| {
            let stage = data["stage"].as_str().unwrap();
            data["batches"]
                .as_array()
                .unwrap()
                .iter()
                .map(move |batch| name(stage, batch.as_str().unwrap()))
        });
        let mut all: Vec<String> = all.collect();
        all.sort();
        all
    }

    /// The files that were retired.
    pub fn retired(&self) -> Vec<String> {
        let files = self
            .data("retired")
            .flat_map(|data| data["files"].as_object().unwrap().keys());
        files.cloned().collect()
    }

    /// The data of the events of a kind.
    pub fn data<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Value> {
        self.records
            .iter()
            .filter(move |record| record["kind"] == kind)
            .map(|record| &record["data"])
    }

    /// Fails unless the run ended with this code and tried these batches.
    #[track_caller]
    pub fn expect(&self, code: i32, tried: &[&str]) -> &RunResult {
        assert_eq!(
            (self.code, self.tried()),
            (code, tried.iter().map(ToString::to_string).collect()),
            "{}",
            self.output
        );
        self
    }

    /// Fails unless this text was printed.
    #[track_caller]
    pub fn says(&self, text: &str) -> &RunResult {
        assert!(
            self.output.contains(text),
            "not printed: {text}\n--- printed:\n{}",
            self.output
        );
        self
    }
}

/// `classify/batch_1`, or `parse` for the only batch of a stage.
pub fn name(stage: &str, batch: &str) -> String {
    if batch.is_empty() {
        stage.to_owned()
    } else {
        format!("{stage}/{batch}")
    }
}
