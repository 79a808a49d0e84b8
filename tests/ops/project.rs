//! Temporary projects that are built in code and run by the library.

use milepost_core::base::clock::StillClock;
use milepost_engine::ops::open::Request;
use milepost_engine::ops::run::{RunOptions, Timing, Values, run};
use milepost_engine::run::notice::Silent;
use milepost_engine::run::report::Report;
use milepost_engine::run::stop::StopFlag;
use milepost_store::store::disk::Disk;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The time of day in all tests.
pub const NOW: &str = "2026-11-21T10:00:00Z";

/// A project in a temporary folder.
pub struct Project {
    folder: tempfile::TempDir,
    pub disk: Disk,
    pub force: bool,
}

impl Project {
    /// With these files, each a path and what it holds.
    pub fn new(files: &[(&str, &str)]) -> Self {
        let project = Self {
            folder: tempfile::tempdir().unwrap(),
            disk: Disk::real(),
            force: false,
        };
        for (path, text) in files {
            project.put(path, text);
        }
        project
    }

    /// Two stages over three lists of names: each is sorted, then all are counted.
    pub fn names() -> Self {
        Self::new(&[
            (
                "milepost.toml",
                "name = \"names\"\n\n[params]\ngreeting = \"hello\"\n",
            ),
            (
                "stages/1_sort.toml",
                r#"description = "Sort each list"

[each.list]
path = "inputs/list_*.json"

[step]
jq = '{people: [$list.data.people | sort_by(.id)[] | {id, name, greeting: $params.greeting}]}'

[outputs]
sorted = "intermediate/{{ list.stem }}.json"

[conserve]
in = ".list.data.people[].id"
out = ".sorted.people[].id"

[[check]]
test = 'all(.sorted.people[]; .name != "")'
error = "NO_NAME"
"#,
            ),
            (
                "stages/2_count.toml",
                r#"description = "Count all"

[inputs]
lists = "intermediate/list_*.json"

[step]
jq = '{count: ([$lists[] | .people[]] | length)}'

[outputs]
total = { path = "outputs/total.json", schema = false }
"#,
            ),
            (
                "schemas/sorted.schema.json",
                r#"{"type": "object", "required": ["people"], "properties": {"people": {"type": "array",
                "items": {"type": "object", "required": ["id", "name"], "properties": {"id": {"type": "string"}}}}}}"#,
            ),
            (
                "workspace/inputs/list_1.json",
                &people(&[("b", "Bo"), ("a", "Al")]),
            ),
            ("workspace/inputs/list_2.json", &people(&[("c", "Cy")])),
            (
                "workspace/inputs/list_10.json",
                &people(&[("d", "Di"), ("e", "Ed")]),
            ),
        ])
    }

    /// A path in the project.
    pub fn at(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    /// Writes a file.
    pub fn put(&self, path: &str, text: &str) {
        let path = self.at(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// What a file holds.
    pub fn text(&self, path: &str) -> String {
        std::fs::read_to_string(self.at(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// Replaces a text in a file that holds it.
    pub fn change(&self, path: &str, from: &str, to: &str) {
        let text = self.text(path);
        assert!(text.contains(from), "{path} does not hold {from}: {text}");
        self.put(path, &text.replace(from, to));
    }

    /// The project, with nothing set.
    pub fn request(&self) -> Request {
        Request {
            folder: self.folder.path().to_owned(),
            workspace: None,
            values: Values::default(),
            command: "milepost run".into(),
            environment: BTreeMap::from([("PATH".into(), "/usr/bin:/bin".into())]),
            epoch: None,
            disk: self.disk.clone(),
            clock: Arc::new(StillClock(NOW.parse().unwrap())),
            ahead: milepost_store::store::clock::Ahead::from_setting(None),
            version: "0.0.0".into(),
            confined: false,
        }
    }

    /// What a run is asked for.
    pub fn wanted(&self) -> RunOptions {
        RunOptions {
            force: self.force,
            timing: Timing {
                backoff: Duration::ZERO,
                ..Timing::default()
            },
            ..RunOptions::default()
        }
    }

    /// Runs it.
    pub fn run(&self) -> Report {
        self.run_with(&self.wanted())
    }

    /// Runs what is wanted.
    pub fn run_with(&self, wanted: &RunOptions) -> Report {
        let report = run(&self.request(), wanted, &mut Silent, &StopFlag::new());
        report.unwrap_or_else(|error| panic!("{error}: {error:?}"))
    }

    /// Every file below the project, with what it holds, but for the journal and the cache.
    pub fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let root = self.folder.path();
        let walk = walkdir::WalkDir::new(root).into_iter().map(Result::unwrap);
        walk.filter(|entry| entry.file_type().is_file())
            .map(|entry| {
                let path = entry.path().strip_prefix(root).unwrap();
                (
                    path.display().to_string(),
                    std::fs::read(entry.path()).unwrap(),
                )
            })
            .collect()
    }
}

/// A list of people as JSON.
pub fn people(people: &[(&str, &str)]) -> String {
    let people: Vec<_> = people
        .iter()
        .map(|(id, name)| serde_json::json!({ "id": id, "name": name }))
        .collect();
    serde_json::json!({ "people": people }).to_string()
}
