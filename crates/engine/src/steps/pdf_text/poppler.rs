//! The engine `pdftotext`: the program of Poppler, where it is installed.

use crate::steps::command::{CommandSpec, Exit, Started, run_command};
use crate::steps::work::Work;
use milepost_core::model::outcome::{Outcome, OutcomeKind};
use milepost_formats::pdf_text::text::{Fault, Page, Text};
use std::path::Path;
use std::time::Duration;

/// The most text that is taken, in bytes.
const MOST: u64 = 1 << 30;

/// What the program is called.
const PROGRAM: &str = "pdftotext";

/// Its version, for the record.
///
/// # Errors
/// When it is not installed, or the run is stopped.
pub fn version(work: &mut Work<'_>) -> Result<Result<String, Fault>, Outcome> {
    let (exit, said) = match run(work, &["-v"], Duration::from_secs(10))? {
        Ok(ran) => ran,
        Err(fault) => return Ok(Err(fault)),
    };
    let first = said.lines().next().unwrap_or_default();
    Ok(match exit {
        // Older ones end with 99 after they said it.
        Exit::Code(0 | 99) => Ok(first.to_owned()),
        _ => Err(Fault::Program(format!("`{PROGRAM} -v` failed: {first}"))),
    })
}

/// Reads a PDF.
///
/// # Errors
/// The outer when the run is stopped; the inner when the program is not installed or fails.
pub fn read(
    work: &mut Work<'_>,
    file: &Path,
    time: Duration,
) -> Result<Result<Text, Fault>, Outcome> {
    let file = file.display().to_string();
    // In the order of the file, which keeps columns apart; nothing but the text, as what is printed comes together.
    let arguments = ["-raw", "-enc", "UTF-8", "-eol", "unix", "-q", &file, "-"];
    let (exit, text) = match run(work, &arguments, time)? {
        Ok(ran) => ran,
        Err(fault) => return Ok(Err(fault)),
    };
    let program = |message: String| Err(Fault::Program(message));
    Ok(match exit {
        Exit::Code(0) => Ok(pages(&text)),
        Exit::Code(1) => Err(Fault::Damaged(format!("{PROGRAM} could not open it"))),
        Exit::Code(3) => program("forbids that its text is copied".to_owned()),
        Exit::Code(code) => program(format!("`{PROGRAM}` ended with exit code {code}")),
        Exit::Signal(signal) => program(format!("`{PROGRAM}` was ended by signal {signal}")),
        Exit::TimedOut => program(format!("`{PROGRAM}` took too long")),
        Exit::Cancelled => return Err(Outcome::new(OutcomeKind::Cancelled, "the run was stopped")),
    })
}

fn pages(text: &str) -> Text {
    let mut pages: Vec<&str> = text.split('\u{c}').collect();
    // Each page ends with one.
    if pages.len() > 1 && pages.last().is_some_and(|last| last.trim().is_empty()) {
        pages.pop();
    }
    let pages = (1..).zip(pages).map(|(number, text)| Page {
        number,
        text: text.trim_end().to_owned(),
        code: None,
    });
    Text {
        pages: pages.collect(),
        outline: Vec::new(),
        headings: None,
    }
}

fn run(
    work: &mut Work<'_>,
    arguments: &[&str],
    timeout: Duration,
) -> Result<Result<(Exit, String), Fault>, Outcome> {
    let mut program = vec![PROGRAM.to_owned()];
    program.extend(arguments.iter().map(|argument| (*argument).to_owned()));
    let environment = work.environment.clone();
    let environment: Vec<(String, String)> = environment.into_iter().collect();
    let mut said = Vec::new();
    let watcher = work.watcher;
    let exit = run_command(
        CommandSpec {
            program_and_args: &program,
            cwd: work.project,
            env: &environment,
            stdin: None,
            timeout,
            grace: work.limits.grace,
            token: work.token,
            log: &mut said,
            log_cap: MOST,
        },
        work.stop,
        &mut |child: &Started| watcher.started(child),
    );
    Ok(match exit {
        Ok(Exit::Cancelled) => {
            return Err(Outcome::new(OutcomeKind::Cancelled, "the run was stopped"));
        }
        Ok(exit) => Ok((exit, String::from_utf8_lossy(&said).into_owned())),
        Err(error) => Err(Fault::Program(error.to_string())),
    })
}

#[cfg(test)]
mod tests {
    use super::pages;

    #[test]
    fn pages_end_with_a_form_feed() {
        let text = pages("one\n\u{c}\u{c}three\n\n\u{c}");
        let found: Vec<_> = text
            .pages
            .iter()
            .map(|page| (page.number, page.text.as_str()))
            .collect();
        assert_eq!(found, [(1, "one"), (2, ""), (3, "three")]);
    }
}
