//! A watch that is under way: what it says, line by line, with a deadline instead of sleeps.

use crate::support::{Project, pipe};
use std::fs::OpenOptions;
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// So long is waited for a line that must come.
const DEADLINE: Duration = Duration::from_mins(2);

/// The line that ends what a watch says.
pub const WAITS: &str = "waiting for changes";

/// A watch that is under way.
pub struct Session {
    child: Child,
    lines: Receiver<String>,
}

impl Session {
    /// Starts it. Arguments are words with blanks between.
    pub fn start(project: &Project, arguments: &str) -> Session {
        let words: Vec<&str> = ["watch", "--debounce", "0.1"]
            .into_iter()
            .chain(arguments.split_whitespace())
            .collect();
        Session::of(project.spawn(&words))
    }

    /// Reads a program that was started with both its streams piped.
    pub fn of(mut child: Child) -> Session {
        let out = child.stdout.take().unwrap();
        let err = child.stderr.take().unwrap();
        Session::reads(child, out, err)
    }

    /// Reads what such a program prints on standard error.
    pub fn of_errors(mut child: Child) -> Session {
        let out = child.stdout.take().unwrap();
        let err = child.stderr.take().unwrap();
        Session::reads(child, err, out)
    }

    fn reads(
        child: Child,
        shown: impl Read + Send + 'static,
        other: impl Read + Send + 'static,
    ) -> Session {
        let (sender, lines) = channel();
        let (out, err) = (BufReader::new(shown), BufReader::new(other));
        std::thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        // What is said beside must not fill the pipe.
        std::thread::spawn(move || err.lines().map_while(Result::ok).for_each(drop));
        Session { child, lines }
    }

    /// What it says up to a line that begins so, with that line.
    #[track_caller]
    pub fn until(&self, start: &str) -> Vec<String> {
        let mut said = Vec::new();
        loop {
            let line = self.lines.recv_timeout(DEADLINE);
            assert!(
                line.is_ok(),
                "`{start}` is not said, but:\n{}",
                said.join("\n")
            );
            said.extend(line);
            if said.last().is_some_and(|line| line.starts_with(start)) {
                return said;
            }
        }
    }

    /// What it says before it waits again.
    #[track_caller]
    pub fn waits(&self) -> Vec<String> {
        self.until(WAITS)
    }

    /// Sends it a signal.
    pub fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let mut kill = Command::new("kill");
        assert!(kill.args([name, &id]).status().unwrap().success());
    }

    /// Changes what the watch hears of at once, and only when it is whole.
    pub fn at_once(&self, change: impl FnOnce()) {
        self.signal("-STOP");
        change();
        self.signal("-CONT");
    }

    /// Its exit code, and what it says after Ctrl-C.
    #[track_caller]
    pub fn end(mut self) -> (Option<i32>, Vec<String>) {
        self.signal("-INT");
        let status = self.child.wait().unwrap();
        let mut said = Vec::new();
        while let Ok(line) = self.lines.recv_timeout(DEADLINE) {
            said.push(line);
        }
        (status.code(), said)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A gate that a program of a stage waits at, once for each time that it is opened.
pub struct Gate {
    folder: tempfile::TempDir,
}

impl Gate {
    pub fn new() -> Gate {
        let gate = Gate {
            folder: tempfile::tempdir().unwrap(),
        };
        pipe(&gate.path());
        gate
    }

    /// Where it is: reading there waits.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join("gate")
    }

    /// Waits until somebody waits there, does something, and lets them through.
    pub fn open(&self, meanwhile: impl FnOnce()) {
        let path = self.path();
        let (sender, opened) = channel();
        std::thread::spawn(move || {
            let _ = sender.send(OpenOptions::new().write(true).open(path).unwrap());
        });
        let mut gate = opened.recv_timeout(DEADLINE).unwrap();
        meanwhile();
        // Whoever was ended meanwhile does not hear it.
        let _ = gate.write_all(b"go on\n");
    }
}
