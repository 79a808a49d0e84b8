//! One harness: a project in a temporary folder, the program run in it, and what must hold afterwards.

mod agreement;
mod checks;
mod folder;
mod gate;
mod in_process;
mod killed;
mod output;
pub mod required;
mod run;
pub mod unprivileged;

pub use folder::{files_below, temporary};
pub use gate::{is_alive, pipe};
pub use in_process::NOW;
pub use killed::continues_after_kills;
pub use output::{Output, exit_code, expect, printed};
pub use run::RunResult;

use milepost_core::base::digest::Digest;
use milepost_store::store::disk::Disk;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

/// Files by path.
pub type Files = BTreeMap<String, Vec<u8>>;

/// Digests of files by path.
pub type Digests = BTreeMap<String, Digest>;

/// The parts of the main pipeline of this repository.
pub const MAIN_PIPELINE: [&str; 7] = [
    "milepost.toml",
    "stages",
    "schemas",
    "rules",
    "filters",
    "prompts",
    "templates",
];

/// A project whose workspace is `workspace`. Its folder is removed with it.
pub struct Project {
    folder: tempfile::TempDir,
    environment: BTreeMap<String, String>,
    /// The files of the workspace after the last run that was not refused.
    last: Mutex<Digests>,
    /// The disk of runs inside the test's process.
    pub disk: Disk,
    /// Whether those runs are forced.
    pub force: bool,
}

impl Project {
    /// A project of these files.
    pub fn new(files: &[(&str, &str)]) -> Project {
        let project = Project {
            folder: temporary(),
            environment: BTreeMap::new(),
            last: Mutex::default(),
            disk: Disk::real(),
            force: false,
        };
        for (path, text) in files {
            project.write(path, text);
        }
        project
    }

    /// A copy of a project of this repository, such as `examples/grading`, with its inputs and without results.
    pub fn copy_of(path: &str) -> Project {
        let project = Project::new(&[]);
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
        let is_source = |path: &Path| {
            let path = path.strip_prefix(&root).unwrap();
            let is_result = path.starts_with("workspace")
                && path != Path::new("workspace")
                && !path.starts_with("workspace/inputs");
            let skipped = ["workspaces", ".milepost", "node_modules"].map(Path::new);
            !is_result && !skipped.iter().any(|name| path.ends_with(name))
        };
        project.copy_files(&root, is_source);
        project
    }

    /// A copy of a project of this repository with all its files.
    pub fn copy_with_results(path: &str) -> Project {
        let project = Project::new(&[]);
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
        project.copy_files(&root, |_| true);
        project
    }

    /// Two stages: each of three people who have a name is copied, then all are joined into a page.
    pub fn letters() -> Project {
        Project::new(&[
            (
                "milepost.toml",
                "name = \"letters\"\n\n[params]\ngreeting = \"Hello\"\n",
            ),
            (
                "stages/1_copy.toml",
                r#"description = "Copy each person"

[each.person]
path = "inputs/person_*.json"

[step]
command = ["sh", "-c", 'grep -q name "$1" && cp "$1" "$2"', "copy", "{{ person.path }}", "{{ paths.copy }}"]

[outputs]
copy = { path = "intermediate/{{ person.stem }}.json", schema = false }
"#,
            ),
            (
                "stages/2_join.toml",
                r#"description = "Greet them all"

[inputs]
people = "intermediate/person_*.json"

[step]
jq = '[.people[] | $params.greeting + " " + .name] | join("\n")'

[outputs]
page = "outputs/page.txt"
"#,
            ),
            ("workspace/inputs/person_1.json", "{\"name\": \"Ann\"}\n"),
            ("workspace/inputs/person_2.json", "{\"name\": \"Bo\"}\n"),
            ("workspace/inputs/person_10.json", "{\"name\": \"Cy\"}\n"),
        ])
    }

    /// Another project with the same files and the same environment.
    pub fn copy(&self) -> Project {
        self.copy_where(|_| true)
    }

    /// Another project with the same declarations and inputs, never run.
    pub fn without_results(&self) -> Project {
        let workspace = self.at("workspace");
        self.copy_where(|path| {
            !path.starts_with(&workspace)
                || path == workspace
                || path.starts_with(workspace.join("inputs"))
        })
    }

    fn copy_where(&self, is_copied: impl Fn(&Path) -> bool) -> Project {
        let mut copy = Project::new(&[]);
        copy.environment.clone_from(&self.environment);
        copy.copy_files(self.path(), is_copied);
        copy
    }

    /// Copies the files below a folder, but no folder or file that is not to be copied.
    fn copy_files(&self, root: &Path, is_copied: impl Fn(&Path) -> bool) {
        let all = walkdir::WalkDir::new(root).into_iter();
        for entry in all.filter_entry(|entry| is_copied(entry.path())) {
            let entry = entry.unwrap();
            let to = self.path().join(entry.path().strip_prefix(root).unwrap());
            if entry.file_type().is_file() {
                std::fs::copy(entry.path(), to).unwrap();
            } else if entry.file_type().is_dir() {
                std::fs::create_dir_all(to).unwrap();
            }
        }
    }

    /// Copies files or folders of this repository to the same paths, but no schemas of Milepost's own files.
    pub fn take(&self, paths: &[&str]) {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        for path in paths {
            for entry in walkdir::WalkDir::new(root.join(path)) {
                let entry = entry.unwrap();
                let is_own = entry.path().starts_with(root.join("schemas/milepost"));
                if entry.file_type().is_file() && !is_own {
                    let to = self.path().join(entry.path().strip_prefix(root).unwrap());
                    std::fs::create_dir_all(to.parent().unwrap()).unwrap();
                    std::fs::copy(entry.path(), to).unwrap();
                }
            }
        }
    }

    /// The folder of the project.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The place of a path of the project.
    pub fn at(&self, path: &str) -> PathBuf {
        self.path().join(path)
    }

    /// Writes a file, and the folders that it needs. A file that exists gets a new time of change, even where the clock of the
    /// file system has steps of milliseconds.
    pub fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        use std::os::unix::fs::MetadataExt as _;
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

    /// Writes a file and gives it the time of modification that it had.
    pub fn write_with_mtime_kept(&self, path: &str, text: impl AsRef<[u8]>) {
        let modified = self.at(path).metadata().unwrap().modified().unwrap();
        self.write(path, text);
        self.set_mtime(path, modified);
    }

    /// Sets the time of modification of a file.
    pub fn set_mtime(&self, path: &str, time: SystemTime) {
        let file = std::fs::File::options()
            .write(true)
            .open(self.at(path))
            .unwrap();
        file.set_modified(time).unwrap();
    }

    /// The text of a file.
    pub fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.at(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// The bytes of a file.
    pub fn bytes(&self, path: &str) -> Vec<u8> {
        std::fs::read(self.at(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// A file as JSON.
    pub fn json(&self, path: &str) -> Value {
        serde_json::from_str(&self.read(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// Replaces text in a file. Fails if it does not exist.
    pub fn edit(&self, path: &str, from: &str, to: &str) {
        let text = self.read(path);
        assert!(text.contains(from), "{path} has no {from:?}:\n{text}");
        self.write(path, text.replace(from, to));
    }

    /// Removes a file.
    pub fn remove(&self, path: &str) {
        std::fs::remove_file(self.at(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
    }

    /// Renames a file.
    pub fn rename(&self, from: &str, to: &str) {
        std::fs::rename(self.at(from), self.at(to)).unwrap();
    }

    /// Returns true if there is a file, a folder or a link.
    pub fn exists(&self, path: &str) -> bool {
        self.at(path).symlink_metadata().is_ok()
    }

    /// Sets a variable for the runs that follow.
    pub fn env(&mut self, name: &str, value: &str) {
        self.environment.insert(name.to_owned(), value.to_owned());
    }

    /// Removes a variable for the runs that follow.
    pub fn unset(&mut self, name: &str) {
        self.environment.remove(name);
    }

    /// The program with arguments, in the project's folder, with the usual variables and those set. `MILEPOST_TEST_BINARY` names
    /// another build of it.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let program = std::env::var_os("MILEPOST_TEST_BINARY");
        let mut command =
            Command::new(program.unwrap_or_else(|| env!("CARGO_BIN_EXE_milepost").into()));
        command.current_dir(self.path()).args(arguments).env_clear();
        for name in ["PATH", "HOME", "LANG"] {
            command.envs(std::env::var_os(name).map(|value| (name, value)));
        }
        command.envs(&self.environment).stdin(Stdio::null());
        command
    }

    /// Starts the program with arguments; its output can be read.
    pub fn spawn(&self, arguments: &[&str]) -> std::process::Child {
        let mut command = self.command(arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    }

    /// Runs the program to its end, and returns its exit code and the text of both its streams.
    pub fn milepost(&self, arguments: &[&str]) -> (i32, String) {
        let output = Output::of(&self.command(arguments).output().unwrap());
        (output.code, output.text())
    }

    /// Runs the program to its end. Arguments are words with blanks between. Text that differs from run to run is `…`.
    pub fn output(&self, arguments: &str) -> Output {
        let arguments: Vec<&str> = arguments.split_whitespace().collect();
        self.output_of(&mut self.command(&arguments))
    }

    /// Runs a command to its end. Text that differs from run to run is `…`.
    pub fn output_of(&self, command: &mut Command) -> Output {
        Output::of(&command.output().unwrap()).normalized(self.path())
    }

    /// The text with `…` for all that differs from run to run.
    pub fn normalized(&self, bytes: &[u8]) -> String {
        output::normalized(&String::from_utf8_lossy(bytes), self.path())
    }
}

/// A day in 2001.
pub fn long_ago() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000)
}
