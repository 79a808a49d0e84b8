//! A shell in an empty home folder: it keeps its folder and exit code from one command to the next, as a terminal does.

use crate::support::required::{self, Missing};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The home folder as pages show it.
const HOME: &str = "/home/ada";

/// A home folder with nothing in it but the programs that pages use.
pub struct Session {
    root: tempfile::TempDir,
    folder: PathBuf,
    code: i32,
    variables: Vec<(String, String)>,
    replaced: Vec<(String, String)>,
}

/// The result of a command.
pub struct Ran {
    /// Standard output and standard error, in the order of writing.
    pub text: String,
    /// The exit code.
    pub code: i32,
}

impl Session {
    pub fn new() -> Result<Self, Missing> {
        let python = ["-c", "import sys; print(sys.executable)"];
        required::program("python3", &python)?;
        let root = tempfile::tempdir().unwrap();
        let python = Command::new("python3").args(python).output().unwrap();
        let python = String::from_utf8(python.stdout).unwrap();
        let programs = root.path().join(".bin");
        std::fs::create_dir(&programs).unwrap();
        let milepost = env!("CARGO_BIN_EXE_milepost");
        std::os::unix::fs::symlink(milepost, programs.join("milepost")).unwrap();
        write_program(
            &programs.join("python3"),
            &format!("exec '{}' \"$@\"\n", python.trim()),
        );
        let folder = root.path().canonicalize().unwrap();
        Ok(Self {
            root,
            folder,
            code: 0,
            variables: Vec::new(),
            replaced: Vec::new(),
        })
    }

    /// Adds a program, given as a shell script.
    pub fn program(&self, name: &str, script: &str) {
        write_program(&self.root.path().join(".bin").join(name), script);
    }

    /// Sets a variable for the commands that follow.
    pub fn variable(&mut self, name: &str, value: &str) {
        self.variables.push((name.to_owned(), value.to_owned()));
    }

    /// Replaces text in the files that are written from now on.
    pub fn replace(&mut self, from: &str, to: &str) {
        self.replaced.push((from.to_owned(), to.to_owned()));
    }

    /// Writes a file, relative to the folder of the last command.
    pub fn write(&self, path: &str, text: &str) {
        let path = self.folder.join(path);
        let mut text = text.to_owned();
        for (from, to) in &self.replaced {
            text = text.replace(from, to);
        }
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// Runs a command to its end.
    pub fn run(&mut self, command: &str) -> Ran {
        let home = self.root.path().canonicalize().unwrap();
        let left = home.join(".folder");
        let script = format!(
            "cd '{}'; (exit {}); {command}\ncode=$?; pwd > '{}'; exit $code",
            self.folder.display(),
            self.code,
            left.display()
        );
        let path = std::env::var("PATH").unwrap();
        let output = Command::new("sh")
            .args(["-c", &format!("exec 2>&1\n{script}")])
            .env_clear()
            .env("PATH", format!("{}/.bin:{path}", home.display()))
            .env("HOME", &home)
            .env("USER", "ada")
            .env("LANG", "C.UTF-8")
            .envs(self.variables.iter().cloned())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        if let Ok(folder) = std::fs::read_to_string(&left) {
            self.folder = PathBuf::from(folder.trim());
        }
        self.code = output.status.code().expect("ended by a signal");
        let text = String::from_utf8(output.stdout).unwrap();
        Ran {
            text: text.replace(home.to_str().unwrap(), HOME),
            code: self.code,
        }
    }
}

fn write_program(path: &Path, script: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::write(path, format!("#!/bin/sh\n{script}")).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}
