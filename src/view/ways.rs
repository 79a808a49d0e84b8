//! What can be done about files that somebody altered: commands, with what each does.

use super::call::Call;
use super::words::{shell_word, some_of};
use milepost_engine::ops::plan::{Blocker, Precondition};

/// Commands beyond this are longer than what they are aligned with.
const LONG: usize = 60;

/// The ways on for a stage. A checkpoint is only written anew; of files that a stage made, a person says what becomes of them.
pub(crate) fn after_altered(
    stage: &str,
    number: u32,
    altered: &[&str],
    workspace: &str,
    call: &Call,
) -> Vec<(String, String)> {
    let checkpoint = format!("stage_{number}_complete.json");
    if altered == [checkpoint.as_str()] {
        let path = shell_word(&call.near(&format!("{workspace}/{checkpoint}")));
        let what = "then the next run rewrites the checkpoint".to_owned();
        return vec![(format!("rm {path}"), what)];
    }
    let keep = format!(
        "accept the modified output: {}",
        some_of(altered.iter().copied(), 1)
    );
    let again = "rebuild; the modified output goes to quarantine".to_owned();
    vec![
        (call.line(&["accept", stage, "--why", "TEXT"]), keep),
        (call.run(&["--force", stage]), again),
    ]
}

/// The ways on for a stage that an earlier one is in the way of: first what is wrong there, then the run that does both.
pub(crate) fn after_blocked(
    stage: &str,
    by: Option<&Blocker>,
    workspace: &str,
    call: &Call,
) -> Vec<(String, String)> {
    let with_those_before = (
        call.run(&["--until", stage]),
        "run it with the stages before it".to_owned(),
    );
    let Some(by) = by else {
        return vec![with_those_before];
    };
    if by.how == Precondition::Altered {
        let paths: Vec<&str> = by.altered.iter().map(String::as_str).collect();
        return after_altered(&by.stage, by.number, &paths, workspace, call);
    }
    let log = by.failed.as_deref().map(|batch| {
        let what = "show what happened".to_owned();
        (call.line(&["log", batch]), what)
    });
    let run = match by.how {
        Precondition::Partial => (
            call.run(&["--failed", &by.stage]),
            "rerun the failed batches".to_owned(),
        ),
        _ => with_those_before,
    };
    log.into_iter().chain([run]).collect()
}

/// The way on where someone outside has to answer.
pub(crate) fn outside(call: &Call) -> (String, String) {
    let what = "serve external agents, then run again".to_owned();
    (call.line(&["mcp"]), what)
}

/// Commands under each other, each with what it does; `label` stands before the first.
pub(crate) fn lines(
    ways: &[(String, String)],
    label: &str,
    code: &dyn Fn(&str) -> String,
) -> Vec<String> {
    let length = |command: &str| command.chars().count();
    // One that is very long does not push away what stands beside the others.
    let lengths = ways.iter().map(|(command, _)| length(command));
    let width = lengths.filter(|&length| length <= LONG).max().unwrap_or(0);
    let line = |(at, (command, what)): (usize, &(String, String))| {
        let label = if at == 0 { label } else { "" };
        let blanks = " ".repeat(width.saturating_sub(length(command)));
        format!("{label:9}{}{blanks}  {what}", code(command))
    };
    ways.iter().enumerate().map(line).collect()
}
