//! A project in a temporary folder, and the program run in it: what it gives back, and what it says.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// A project, its workspace in `workspace`.
pub struct Project {
    folder: tempfile::TempDir,
    environment: BTreeMap<String, String>,
}

/// What a program gave back. What differs from run to run is `…`: durations, ids of runs, times, the project's folder.
#[derive(Debug, PartialEq, Eq)]
pub struct Said {
    /// The exit code; 128 and the signal's number when a signal ended it.
    pub code: i32,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

impl Project {
    /// A project of these files.
    pub fn new(files: &[(&str, &str)]) -> Project {
        let project = Project {
            folder: tempfile::tempdir().unwrap(),
            environment: BTreeMap::new(),
        };
        for (path, text) in files {
            project.write(path, text);
        }
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

    /// Where a path of the project is.
    pub fn at(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    /// Writes a file, and the folders that it needs.
    pub fn write(&self, path: &str, text: &str) {
        let path = self.at(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// The text of a file.
    pub fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.at(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// Replaces text in a file; it must be there.
    pub fn edit(&self, path: &str, from: &str, to: &str) {
        let text = self.read(path);
        assert!(text.contains(from), "{path} has no {from:?}:\n{text}");
        self.write(path, &text.replace(from, to));
    }

    /// Removes a file.
    pub fn remove(&self, path: &str) {
        std::fs::remove_file(self.at(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
    }

    /// Sets a variable for the runs that follow.
    pub fn env(&mut self, name: &str, value: &str) {
        self.environment.insert(name.to_owned(), value.to_owned());
    }

    /// The program with arguments, in the project's folder, with no variables but the usual and those set.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_milepost"));
        command
            .current_dir(self.folder.path())
            .args(arguments)
            .env_clear();
        for name in ["PATH", "HOME", "LANG"] {
            command.envs(std::env::var_os(name).map(|value| (name, value)));
        }
        command.envs(&self.environment).stdin(Stdio::null());
        command
    }

    /// Runs the program to its end. Arguments are words with blanks between.
    pub fn run(&self, arguments: &str) -> Said {
        let arguments: Vec<&str> = arguments.split_whitespace().collect();
        self.said(&mut self.command(&arguments))
    }

    /// Runs a command to its end.
    pub fn said(&self, command: &mut Command) -> Said {
        use std::os::unix::process::ExitStatusExt as _;
        let output = command.output().unwrap();
        let code = output.status.code();
        Said {
            code: code.unwrap_or_else(|| 128 + output.status.signal().unwrap()),
            out: self.steady(&output.stdout),
            err: self.steady(&output.stderr),
        }
    }

    /// The text without what differs from run to run.
    pub fn steady(&self, bytes: &[u8]) -> String {
        let text = String::from_utf8_lossy(bytes);
        let folder = self.folder.path().canonicalize().unwrap();
        let text = text.replace(folder.to_str().unwrap(), "…");
        text.split_inclusive('\n').map(steady_line).collect()
    }
}

/// Durations (`0.3 s`), times and ids of runs become `…`; blanks before a duration that fills a column become two.
fn steady_line(line: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    for word in line.split(' ') {
        let bare = word.trim_end_matches(['\n', ',', ')', ':']);
        let tail = &word[bare.len()..];
        let number = words.last().is_some_and(|word| {
            !word.is_empty() && word.chars().all(|c| c.is_ascii_digit() || c == '.')
        });
        if bare == "s" && number {
            words.pop();
            while words.len() > 2
                && words[words.len() - 1].is_empty()
                && words[words.len() - 2].is_empty()
            {
                words.pop();
            }
            words.push(format!("…{tail}"));
        } else if bare.len() == 26 && bare.starts_with("01") {
            words.push(format!("…{tail}"));
        } else if let Some((before, run)) = word.split_once("quarantine/01") {
            // The rest of the run's id, and the number of the event.
            words.push(format!("{before}quarantine/…{}", &run[29..]));
        } else {
            words.push(word.to_owned());
        }
    }
    words.join(" ")
}

/// What the program must have given back.
#[track_caller]
pub fn expect(said: Said, code: i32, out: &str, err: &str) {
    let wanted = Said {
        code,
        out: out.to_owned(),
        err: err.to_owned(),
    };
    assert!(
        said == wanted,
        "exit code {} for {code}\n--- out\n{}--- wanted\n{out}--- err\n{}--- wanted\n{err}",
        said.code,
        said.out,
        said.err
    );
}
