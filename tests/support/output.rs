//! What the program printed, without the text that differs from run to run, and how tests compare it.

use std::path::Path;
use std::process::Output as ProcessOutput;

/// The result of a program.
#[derive(Debug, PartialEq, Eq)]
pub struct Output {
    /// The exit code; 128 and the signal's number when a signal ended it.
    pub code: i32,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

impl Output {
    /// The result of a process.
    pub fn of(output: &ProcessOutput) -> Output {
        use std::os::unix::process::ExitStatusExt as _;
        let code = output.status.code();
        Output {
            code: code.unwrap_or_else(|| 128 + output.status.signal().unwrap()),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// The text of both streams.
    pub fn text(&self) -> String {
        format!("{}{}", self.out, self.err)
    }

    /// The same with `…` for durations, ids of runs, times, and the folder of the project.
    pub fn normalized(&self, folder: &Path) -> Output {
        Output {
            code: self.code,
            out: normalized(&self.out, folder),
            err: normalized(&self.err, folder),
        }
    }
}

/// The text with `…` for durations, ids of runs, times, and the folder of a project.
pub fn normalized(text: &str, folder: &Path) -> String {
    let folder = folder.canonicalize().unwrap();
    let text = text.replace(folder.to_str().unwrap(), "…");
    text.split_inclusive('\n').map(normalized_line).collect()
}

/// A duration that fills a column keeps two blanks before it.
fn normalized_line(line: &str) -> String {
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

/// Fails unless the program ended with this code and printed exactly this.
#[track_caller]
pub fn expect(found: Output, code: i32, out: &str, err: &str) {
    let expected = Output {
        code,
        out: out.to_owned(),
        err: err.to_owned(),
    };
    assert!(
        found == expected,
        "exit code {}, expected {code}\n--- out\n{}--- expected\n{out}--- err\n{}--- expected\n{err}",
        found.code,
        found.out,
        found.err
    );
}

/// The exit code of a process, or 128 and its signal.
pub fn exit_code(output: &ProcessOutput) -> i32 {
    Output::of(output).code
}

/// The text of both streams of a process.
pub fn printed(output: &ProcessOutput) -> String {
    Output::of(output).text()
}
