//! Suggested commands, each with what it does.

use crate::view::text::words::some_of;
use milepost_core::plan::options::invocation::Invocation;
use milepost_core::plan::options::invocation::shell_word;
use milepost_engine::ops::plan::{Blocker, Precondition};

/// The longest command, in characters, that its description is aligned with.
const LONG: usize = 60;

/// The effect of `--failed` if a service may have carried out the request of a failed batch.
pub(crate) const SEND_AGAIN: &str =
    "send the requests again: only if the service did not carry them out";

/// Returns the commands for a stage with files that were modified by hand.
pub(crate) fn after_altered(
    stage: &str,
    number: u32,
    altered: &[&str],
    workspace: &str,
    invocation: &Invocation,
) -> Vec<(String, String)> {
    let checkpoint = format!("stage_{number}_complete.json");
    if altered == [checkpoint.as_str()] {
        let path = shell_word(&invocation.near(&format!("{workspace}/{checkpoint}")));
        let what = "then the next run rewrites the checkpoint".to_owned();
        return vec![(format!("rm {path}"), what)];
    }
    let keep = format!(
        "accept the modified output: {}",
        some_of(altered.iter().copied(), 1)
    );
    let again = "rebuild; the modified output goes to quarantine".to_owned();
    vec![
        (invocation.line(&["accept", stage, "--why", "TEXT"]), keep),
        (invocation.run(&["--force", stage]), again),
    ]
}

/// Returns the commands for a blocked stage: first for the cause, then the run of both stages.
pub(crate) fn after_blocked(
    stage: &str,
    by: Option<&Blocker>,
    workspace: &str,
    invocation: &Invocation,
) -> Vec<(String, String)> {
    let with_those_before = (
        invocation.run(&["--until", stage]),
        "run it with the stages before it".to_owned(),
    );
    let Some(by) = by else {
        return vec![with_those_before];
    };
    if by.how == Precondition::Modified {
        let paths: Vec<&str> = by.altered.iter().map(String::as_str).collect();
        return after_altered(&by.stage, by.number, &paths, workspace, invocation);
    }
    let log = by.failed.as_deref().map(|batch| {
        let what = "show what happened".to_owned();
        (invocation.line(&["log", batch]), what)
    });
    let run = match by.how {
        Precondition::Partial => {
            let again = ["rerun the failed batches", SEND_AGAIN][usize::from(by.sent)];
            (invocation.run(&["--failed", &by.stage]), again.to_owned())
        }
        _ => with_those_before,
    };
    log.into_iter().chain([run]).collect()
}

/// Returns the command for batches that wait for an external agent.
pub(crate) fn outside(invocation: &Invocation) -> (String, String) {
    let what = "serve external agents, then run again".to_owned();
    (invocation.line(&["mcp"]), what)
}

/// Returns the command that makes the paid calls, if this run excludes them.
pub(crate) fn pay(invocation: &Invocation) -> Option<(String, String)> {
    let mut paid = invocation.clone();
    let is_excluded = std::mem::take(&mut paid.options.until_paid);
    is_excluded.then(|| {
        (
            paid.next_run(),
            "make these calls, and pay for them".to_owned(),
        )
    })
}

/// Returns the command that approves a stage.
pub(crate) fn approve(stage: &str, invocation: &Invocation) -> (String, String) {
    let what = "approve these batches, then run again".to_owned();
    (invocation.line(&["approve", stage, "--why", "TEXT"]), what)
}

/// Returns a line for each command and its description; the first line starts with `label`.
pub(crate) fn lines(
    next_steps: &[(String, String)],
    label: &str,
    code: &dyn Fn(&str) -> String,
) -> Vec<String> {
    let length = |command: &str| command.chars().count();
    // One very long command must not move the descriptions of the others.
    let lengths = next_steps.iter().map(|(command, _)| length(command));
    let width = lengths.filter(|&length| length <= LONG).max().unwrap_or(0);
    let line = |(at, (command, what)): (usize, &(String, String))| {
        let label = if at == 0 { label } else { "" };
        let blanks = " ".repeat(width.saturating_sub(length(command)));
        format!("{label:9}{}{blanks}  {what}", code(command))
    };
    next_steps.iter().enumerate().map(line).collect()
}
