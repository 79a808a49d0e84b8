//! Progress while slow batches run: the progress file counts what is published, and bars fit the terminal.

use super::gated::{gated, release, wait_for_batch};
use crate::command::until;
use crate::support::{Project, exit_code, printed};
use serde_json::{Value, json};
use std::io::Read as _;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

#[test]
fn a_published_batch_is_counted_while_a_slow_one_runs() {
    let project = gated();
    let run = project.spawn(&["run", "--jobs", "2"]);
    wait_for_batch(&project, 1);
    wait_for_batch(&project, 2);
    release(&project, 1);
    // No batch begins or ends from here on until the test says so: the dispatcher has to wake up by itself.
    let end = Instant::now() + Duration::from_secs(30);
    let shown = loop {
        let text = std::fs::read(project.at("workspace/meet_progress.json")).unwrap_or_default();
        let progress: Value = serde_json::from_slice(&text).unwrap_or_default();
        let shown = (
            progress["completed_batches"].clone(),
            progress["current_batch"].clone(),
            progress["status"].clone(),
        );
        if shown.0 == json!([1]) || Instant::now() > end {
            break shown;
        }
        std::thread::yield_now();
    };
    release(&project, 2);
    let output = run.wait_with_output().unwrap();
    assert_eq!(shown, (json!([1]), json!(2), json!("in_progress")));
    assert_eq!(exit_code(&output), 0, "{}", printed(&output));
    let last = project.json("workspace/meet_progress.json");
    assert_eq!(
        (&last["completed_batches"], &last["status"]),
        (&json!([1, 2]), &json!("complete"))
    );
}

/// What `status` shows of the only stage: how many batches are done, and of how many.
fn shown(project: &Project) -> (Value, Value) {
    let (code, text) = project.milepost(&["status", "--json"]);
    assert_eq!(code, 0, "{text}");
    let status: Value = serde_json::from_str(&text).unwrap();
    let stage = &status["stages"][0];
    (stage["done"].clone(), stage["batches"].clone())
}

#[test]
fn outputs_that_are_out_of_date_are_not_counted_as_done() {
    let project = gated();
    let first = project.spawn(&["run", "--jobs", "2"]);
    for n in [1, 2] {
        wait_for_batch(&project, n);
        release(&project, n);
    }
    assert_eq!(exit_code(&first.wait_with_output().unwrap()), 0);
    assert_eq!(shown(&project), (json!(2), json!(2)));
    project.edit(
        "stages/1_meet.toml",
        "echo \"$word\"",
        "echo \"$word again\"",
    );
    assert_eq!(shown(&project), (json!(0), json!(2)));

    let run = project.spawn(&["run"]);
    let completed = || {
        let text = std::fs::read(project.at("workspace/meet_progress.json")).unwrap_or_default();
        let progress: Value = serde_json::from_slice(&text).unwrap_or_default();
        progress["completed_batches"].clone()
    };
    wait_for_batch(&project, 1);
    until("the progress file counts no batch", || {
        completed() == json!([])
    });
    assert_eq!(shown(&project), (json!(0), json!(2)));
    release(&project, 1);
    wait_for_batch(&project, 2);
    until("the progress file counts one batch", || {
        completed() == json!([1])
    });
    assert_eq!(shown(&project), (json!(1), json!(2)));
    let id = run.id().to_string();
    let sent = Command::new("kill").args(["-INT", &id]).status();
    assert!(sent.unwrap().success());
    assert_eq!(exit_code(&run.wait_with_output().unwrap()), 130);
    assert_eq!(
        (completed(), shown(&project)),
        (json!([1]), (json!(1), json!(2)))
    );
}

/// A run on a terminal.
struct Terminal {
    child: Child,
    columns: usize,
    drawn: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

impl Terminal {
    fn run(project: &Project, columns: usize, arguments: &[&str]) -> Terminal {
        let milepost = project.command(arguments);
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/situations/terminal.py");
        let mut command = Command::new("python3");
        command.args([script, &columns.to_string()]);
        command
            .arg(milepost.get_program())
            .args(milepost.get_args());
        command.current_dir(project.path()).env_clear();
        let variables = milepost.get_envs();
        command.envs(variables.filter_map(|(name, value)| Some((name, value?))));
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let drawn: Arc<Mutex<Vec<u8>>> = Arc::default();
        let (mut out, kept) = (child.stdout.take().unwrap(), Arc::clone(&drawn));
        let reader = std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = out.read(&mut bytes) {
                kept.lock().unwrap().extend_from_slice(&bytes[..count]);
            }
        });
        Terminal {
            child,
            columns,
            drawn,
            reader,
        }
    }

    /// The lines that were drawn, in order, each with the text that it had on the terminal.
    fn lines(&self) -> Vec<String> {
        let bytes = self.drawn.lock().unwrap().clone();
        let text = String::from_utf8_lossy(&bytes);
        let mut lines = Vec::new();
        // Styles do not move the cursor, every other sequence does.
        let mut line = String::new();
        let mut rest = text.chars();
        while let Some(c) = rest.next() {
            match c {
                '\u{1b}' => {
                    let end = rest.find(char::is_ascii_alphabetic);
                    if end != Some('m') {
                        lines.push(std::mem::take(&mut line));
                    }
                }
                '\r' | '\n' => lines.push(std::mem::take(&mut line)),
                c => line.push(c),
            }
        }
        lines.push(line);
        let columns = self.columns;
        // Text that reaches the last column continues in the next line.
        let wrapped = lines.iter().flat_map(|line| {
            let all: Vec<char> = line.chars().collect();
            let of_terminal = all.chunks(columns);
            of_terminal
                .map(|line| line.iter().collect::<String>().trim_end().to_owned())
                .collect::<Vec<_>>()
        });
        wrapped.filter(|line| !line.is_empty()).collect()
    }

    /// Waits until a line contains all of this.
    fn until(&self, parts: &[&str]) {
        let end = Instant::now() + Duration::from_secs(30);
        let has_all = |line: &String| parts.iter().all(|part| line.contains(part));
        while !self.lines().iter().any(has_all) {
            assert!(
                Instant::now() < end,
                "{parts:?}\n{}",
                self.lines().join("\n")
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits for the end, and returns the lines.
    fn end(mut self) -> Vec<String> {
        let ended = self.child.wait().unwrap();
        while !self.reader.is_finished() {
            std::thread::yield_now();
        }
        let lines = self.lines();
        assert!(ended.success(), "{}", lines.join("\n"));
        lines
    }
}

#[test]
fn bars_fit_the_terminal_and_continue_where_a_run_stopped() {
    let project = gated();
    project.write(
        "stages/2_add_everything_up_in_one_long_file.toml",
        r#"
description = "Add up everything that was said in all of the meetings"

[inputs]
all = "outputs/*.txt"

[step]
command = ["sh", "-c", "cat $1 $2 > $0", "{{ paths.sum }}", "{{ paths.all }}"]

[outputs]
sum = "outputs/sum/sum.txt"
"#,
    );
    for columns in [40, 60] {
        let force = ["run", "--force", "--jobs", "2"];
        let run = Terminal::run(&project, columns, &force);
        wait_for_batch(&project, 1);
        wait_for_batch(&project, 2);
        // Either of the two may start first.
        run.until(&["meet  ", "0/2", ", "]);
        // The rest takes as long as the first batch: long enough to be told.
        run.until(&["total  ", "  1."]);
        release(&project, 1);
        run.until(&["meet  ", "1/2", " left", "  2"]);
        run.until(&["total  ", "stage 1 of 2"]);
        release(&project, 2);
        let lines = run.end();
        let is_start = |line: &String| {
            let starts = ["meet", "add_everyth", "total"];
            starts.iter().any(|start| line.starts_with(start)) && line.chars().count() <= columns
        };
        assert!(
            lines.iter().all(is_start),
            "{columns}\n{}",
            lines.join("\n")
        );

        project.remove("workspace/outputs/2.txt");
        let run = Terminal::run(&project, columns, &["run"]);
        wait_for_batch(&project, 2);
        run.until(&["meet  ", "1/2"]);
        release(&project, 2);
        let lines = run.end();
        assert!(!lines.iter().any(|line| line.contains("0/2")), "{lines:?}");
    }
}
