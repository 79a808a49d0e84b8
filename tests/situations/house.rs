//! A project in a temporary folder, run through the binary; every run is compared with the plan that was made just before.

use milepost_core::base::digest::Digest;
use serde_json::Value;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, SystemTime};

/// A project, its workspace in `workspace`.
pub struct House {
    folder: tempfile::TempDir,
    environment: BTreeMap<String, String>,
    /// What lay there after the last run that was not refused.
    left: RefCell<BTreeMap<String, Digest>>,
}

/// What a run left: its exit code, what it said, and what the journal says of it.
pub struct Ran {
    /// The exit code; 128 and the signal's number when a signal ended it.
    pub code: i32,
    /// Standard output and standard error.
    pub said: String,
    /// The records that it appended to the journal.
    pub records: Vec<Value>,
}

impl House {
    /// A project of these files, with an empty workspace.
    pub fn new(files: &[(&str, &str)]) -> House {
        let house = House {
            folder: tempfile::tempdir().unwrap(),
            environment: BTreeMap::new(),
            left: RefCell::default(),
        };
        for (path, text) in files {
            house.write(path, text);
        }
        house
    }

    /// Copies files or folders of this package.
    pub fn take(&self, paths: &[&str]) {
        let package = Path::new(env!("CARGO_MANIFEST_DIR"));
        for path in paths {
            for entry in walkdir::WalkDir::new(package.join(path)) {
                let entry = entry.unwrap();
                if entry.file_type().is_file() {
                    let place = entry.path().strip_prefix(package).unwrap();
                    std::fs::create_dir_all(self.at("").join(place).parent().unwrap()).unwrap();
                    std::fs::copy(entry.path(), self.at("").join(place)).unwrap();
                }
            }
        }
    }

    /// Sets a variable for the runs that follow.
    pub fn env(&mut self, name: &str, value: &str) {
        self.environment.insert(name.to_owned(), value.to_owned());
    }

    /// Where a path of the project is.
    pub fn at(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    /// Writes a file, and the folders that it needs; until the file system, whose clock may have steps of milliseconds, gives a
    /// file that was there another time.
    pub fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.at(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let changed = || {
            let found = path.metadata().ok()?;
            Some((found.ctime(), found.ctime_nsec()))
        };
        let before = changed();
        std::fs::write(&path, &text).unwrap();
        let end = std::time::Instant::now() + Duration::from_millis(50);
        while changed() == before && std::time::Instant::now() < end {
            std::fs::write(&path, &text).unwrap();
        }
    }

    /// Another project of the same files, with the same inputs, that was never run.
    pub fn anew(&self) -> House {
        let mut anew = House::new(&[]);
        anew.environment.clone_from(&self.environment);
        let workspace = self.at("workspace");
        let is_given = |path: &Path| {
            !path.starts_with(&workspace)
                || path == workspace
                || path.starts_with(workspace.join("inputs"))
        };
        let all = walkdir::WalkDir::new(self.at("")).into_iter();
        for entry in all.filter_entry(|entry| is_given(entry.path())) {
            let entry = entry.unwrap();
            if entry.file_type().is_file() {
                let place = entry.path().strip_prefix(self.at("")).unwrap();
                anew.write(
                    place.to_str().unwrap(),
                    std::fs::read(entry.path()).unwrap(),
                );
            }
        }
        anew
    }

    /// The digests of what stages made.
    pub fn made(&self) -> BTreeMap<String, Digest> {
        let mut files = self.contents();
        files.retain(|path, _| path.starts_with("intermediate/") || path.starts_with("outputs/"));
        files
    }

    /// Writes a file and gives it the time of change that it had.
    pub fn write_with_mtime_kept(&self, path: &str, text: &str) {
        let modified = self.at(path).metadata().unwrap().modified().unwrap();
        self.write(path, text);
        self.set_mtime(path, modified);
    }

    /// Gives a file a time of change.
    pub fn set_mtime(&self, path: &str, time: SystemTime) {
        let file = std::fs::File::options()
            .write(true)
            .open(self.at(path))
            .unwrap();
        file.set_modified(time).unwrap();
    }

    /// Replaces text in a file; it must be there.
    pub fn edit(&self, path: &str, from: &str, to: &str) {
        let text = self.read(path);
        assert!(text.contains(from), "{path} has no {from:?}:\n{text}");
        self.write(path, text.replace(from, to));
    }

    /// The text of a file.
    pub fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.at(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// A file as JSON.
    pub fn json(&self, path: &str) -> Value {
        serde_json::from_str(&self.read(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// Removes a file.
    pub fn remove(&self, path: &str) {
        std::fs::remove_file(self.at(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
    }

    /// Renames a file.
    pub fn rename(&self, from: &str, to: &str) {
        std::fs::rename(self.at(from), self.at(to)).unwrap();
    }

    /// Whether something lies there.
    pub fn exists(&self, path: &str) -> bool {
        self.at(path).symlink_metadata().is_ok()
    }

    /// The program with arguments, in the project's folder, with no variables but the usual and those set.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_milepost"));
        command
            .current_dir(self.folder.path())
            .args(arguments)
            .env_clear();
        for name in ["PATH", "HOME", "LANG"] {
            command.envs(std::env::var_os(name).map(|value: OsString| (name, value)));
        }
        command.envs(&self.environment).stdin(Stdio::null());
        command
    }

    /// Starts the program with arguments, and waits for it.
    pub fn milepost(&self, arguments: &[&str]) -> (i32, String) {
        let output = self.command(arguments).output().unwrap();
        (code(&output), said(&output))
    }

    /// Runs, and checks that the run does what a plan made just before says, and that nothing is vouched for that is not so.
    pub fn run(&self, arguments: &[&str]) -> Ran {
        let plan = self.plan(arguments);
        let before = self.left.borrow().clone();
        let ran = self.run_unplanned(arguments);
        if let Some(plan) = plan {
            Agreement {
                house: self,
                plan: &plan,
                ran: &ran,
                before: &before,
            }
            .check();
        }
        // What somebody altered is left as it is.
        if ran.code != 5 {
            self.check_vouched();
            self.left.replace(self.contents());
        }
        ran
    }

    /// Runs without a plan before it.
    pub fn run_unplanned(&self, arguments: &[&str]) -> Ran {
        let known = self.records().len();
        let (code, said) = self.milepost(&[&["run"], arguments].concat());
        let records = self.records().split_off(known);
        Ran {
            code,
            said,
            records,
        }
    }

    /// The plan, as data; none when it is refused. Making it writes nothing.
    pub fn plan(&self, arguments: &[&str]) -> Option<Value> {
        let before = self.tree();
        let arguments: Vec<&str> = arguments
            .iter()
            .copied()
            .filter(|argument| !["-k", "--keep-going"].contains(argument))
            .collect();
        let output = self
            .command(&[&["plan", "--json"], arguments.as_slice()].concat())
            .output()
            .unwrap();
        assert_eq!(self.tree(), before, "a plan writes nothing");
        serde_json::from_slice(&output.stdout).ok()
    }

    /// The records of the journal, from the first on.
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

    /// The digests of the files that people and stages see: everything of the workspace but Milepost's own folder.
    pub fn contents(&self) -> BTreeMap<String, Digest> {
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

    /// The files in quarantine, by what was set aside: without the run and the number of the event.
    pub fn quarantine(&self) -> Vec<String> {
        let mut names: Vec<String> = self
            .list(".milepost/quarantine")
            .iter()
            .map(|name| name.splitn(2, '/').last().unwrap().to_owned())
            .collect();
        names.sort();
        names
    }

    fn name(&self, path: &Path) -> String {
        path.strip_prefix(self.at("workspace"))
            .unwrap()
            .to_str()
            .unwrap()
            .to_owned()
    }

    /// Every output that a manifest lists for a stage with a checkpoint is there with its bytes, and every checkpoint's
    /// one output is what it says.
    pub fn check_vouched(&self) {
        for number in 1..20 {
            let path = format!("workspace/stage_{number}_complete.json");
            if !self.exists(&path) {
                continue;
            }
            let Ok(checkpoint) = serde_json::from_str::<Value>(&self.read(&path)) else {
                continue;
            };
            assert_eq!(checkpoint["number"], number, "{checkpoint:#}");
            if let Some(only) = checkpoint["output_file"].as_str() {
                assert_eq!(
                    Digest::of(self.read_bytes(only)).to_string(),
                    checkpoint["checksums"]["output"],
                    "{path} vouches for {only}"
                );
            }
            let pages = self.list(checkpoint["manifest"].as_str().unwrap());
            for page in pages {
                let page = self.read(&format!(
                    "workspace/{}/{page}",
                    checkpoint["manifest"].as_str().unwrap()
                ));
                for (digest, file) in page
                    .lines()
                    .filter(|line| !line.starts_with('#'))
                    .filter_map(|line| line.split_once("  "))
                {
                    let there = Digest::of(self.read_bytes(file)).to_string();
                    assert_eq!(
                        there,
                        format!("sha256:{digest}"),
                        "the manifest of {} vouches for {file}",
                        checkpoint["stage"]
                    );
                }
            }
        }
    }

    fn read_bytes(&self, path: &str) -> Vec<u8> {
        std::fs::read(self.at("workspace").join(path))
            .unwrap_or_else(|error| panic!("{path}: {error}"))
    }
}

impl Ran {
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

    /// The batches that were validated again and hold.
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

    /// Fails unless it ended with this code and tried these batches.
    #[track_caller]
    pub fn expect(&self, code: i32, tried: &[&str]) -> &Ran {
        assert_eq!(
            (self.code, self.tried()),
            (code, tried.iter().map(ToString::to_string).collect()),
            "{}",
            self.said
        );
        self
    }

    /// Fails unless this was said.
    #[track_caller]
    pub fn says(&self, text: &str) -> &Ran {
        assert!(
            self.said.contains(text),
            "not said: {text}\n--- said:\n{}",
            self.said
        );
        self
    }
}

/// A plan beside the run that followed it.
struct Agreement<'a> {
    house: &'a House,
    plan: &'a Value,
    ran: &'a Ran,
    before: &'a BTreeMap<String, Digest>,
}

impl Agreement<'_> {
    /// Run did every *will*, none of the *reused*, and a *may* only if its condition came true. After a failure what was
    /// to run need not have.
    /// As many calls as planned, more only where some may come beside them or an answer is not taken.
    fn check_asked(&self, name: &str, stage: &Value) {
        let called = self.ran.data("called");
        let called = called.filter(|data| data["stage"] == name).count() as u64;
        let planned = stage["asks"]["calls"].as_u64().unwrap_or(0);
        let failed = !self.ran.batches("batch_failed").is_empty() || self.ran.code != 0;
        assert!(
            called >= planned || failed,
            "{name}: {called} calls, {planned} were planned\n{self}"
        );
        if stage["asks"].is_null() && stage["may_ask"].is_null() {
            let may = stage["certain"] == false || !stage["may"].as_array().unwrap().is_empty();
            assert!(
                called == 0 || may,
                "{name}: {called} calls, none were planned\n{self}"
            );
        }
    }

    fn check(&self) {
        let tried: BTreeSet<String> = self.ran.tried().into_iter().collect();
        let judged = self.ran.judged();
        let after = self.house.contents();
        let failed = !self.ran.batches("batch_failed").is_empty() || self.ran.code == 130;
        let mut named = BTreeSet::new();
        for stage in self.plan["stages"].as_array().unwrap() {
            let stage_name = stage["stage"].as_str().unwrap();
            self.check_asked(stage_name, stage);
            let of = |kind: &str| -> Vec<(String, &Value)> {
                let list = stage[kind].as_array().unwrap();
                list.iter()
                    .map(|batch| (name(stage_name, batch["batch"].as_str().unwrap()), batch))
                    .collect()
            };
            for (batch, _) in of("will") {
                assert!(
                    tried.contains(&batch) || failed,
                    "planned and not run: {batch}\n{self}"
                );
                named.insert(batch);
            }
            let gone = self.ran.batches("retired");
            for (batch, may) in of("may")
                .into_iter()
                .filter(|(batch, _)| !gone.contains(batch))
            {
                let differs = |path: &str| {
                    let glob = milepost_core::base::glob::Glob::parse(path).unwrap();
                    let matching = |files: &BTreeMap<String, Digest>| -> Vec<(String, Digest)> {
                        let all = files.iter().filter(|(file, _)| {
                            glob.matches(&milepost_core::base::path::RelPath::parse(file).unwrap())
                        });
                        all.map(|(file, digest)| (file.clone(), *digest)).collect()
                    };
                    matching(self.before) != matching(&after)
                };
                let conditions = may["conditions"].as_array().unwrap();
                let differing: Vec<&Value> = conditions
                    .iter()
                    .filter(|condition| condition["path"].as_str().is_some_and(differs))
                    .collect();
                // A file of many items may differ in those of other batches only.
                let by_item = |condition: &&Value| condition["condition"] == "item_changes";
                let came_true = match differing.as_slice() {
                    [] => vec![false],
                    all if all.iter().all(by_item) => vec![false, true],
                    _ => vec![true],
                };
                assert!(
                    came_true.contains(&tried.contains(&batch)) || failed,
                    "may run, its condition is {came_true:?}: {batch}\n{self}"
                );
                named.insert(batch);
            }
            for (batch, _) in of("judge") {
                assert!(
                    tried.contains(&batch) != judged.contains(&batch) || failed,
                    "either holds or runs: {batch}\n{self}"
                );
                named.insert(batch);
            }
            if stage["certain"] == false {
                let prefix = format!("{stage_name}/");
                named.extend(
                    tried
                        .iter()
                        .filter(|batch| batch.starts_with(&prefix))
                        .cloned(),
                );
            }
            let retired: BTreeSet<&str> = self
                .ran
                .data("retired")
                .filter(|data| data["stage"] == stage_name)
                .map(|data| data["batch"].as_str().unwrap())
                .collect();
            let planned: BTreeSet<&str> = stage["retire"]
                .as_array()
                .unwrap()
                .iter()
                .map(|key| key.as_str().unwrap())
                .collect();
            assert!(
                retired.is_superset(&planned)
                    && (retired == planned || stage["certain"] == false || failed),
                "planned to retire {planned:?}, retired {retired:?}\n{self}"
            );
        }
        let unplanned: Vec<&String> = tried.difference(&named).collect();
        assert!(
            unplanned.is_empty(),
            "run and not planned: {unplanned:?}\n{self}"
        );
        let altered = |stage: &Value| !stage["altered"].as_array().unwrap().is_empty();
        let stops = self.plan["stages"].as_array().unwrap().iter().any(altered);
        assert_eq!(
            stops,
            self.ran.code == 5,
            "a plan names altered files if, and only if, the run stops at them\n{self}"
        );
    }
}

impl std::fmt::Display for Agreement<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "plan: {:#}\nsaid: {}", self.plan, self.ran.said)
    }
}

/// `classify/batch_1`, or `parse` for the only batch of a stage.
fn name(stage: &str, batch: &str) -> String {
    if batch.is_empty() {
        stage.to_owned()
    } else {
        format!("{stage}/{batch}")
    }
}

/// The exit code of a program, or 128 and its signal.
pub fn code(output: &Output) -> i32 {
    use std::os::unix::process::ExitStatusExt as _;
    output
        .status
        .code()
        .unwrap_or_else(|| 128 + output.status.signal().unwrap())
}

/// What a program said, on both of its streams.
pub fn said(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// A day in 2001.
pub fn long_ago() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000)
}
