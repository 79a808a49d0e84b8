//! What can be done about files that somebody altered: commands, with what each does.

use super::call::Call;
use super::words::{shell_word, some_of};

/// The ways on for a stage. A checkpoint is only written anew; of files that a stage made, a person says what becomes of them.
pub fn after_altered(
    stage: &str,
    number: u32,
    altered: &[&str],
    workspace: &str,
    call: &Call,
) -> Vec<(String, String)> {
    let checkpoint = format!("stage_{number}_complete.json");
    if altered == [checkpoint.as_str()] {
        let path = shell_word(&call.near(&format!("{workspace}/{checkpoint}")));
        let what = "the next run writes the checkpoint anew".to_owned();
        return vec![(format!("rm {path}"), what)];
    }
    let keep = format!(
        "keep what is there: {}",
        some_of(altered.iter().copied(), 1)
    );
    let again = "make it again; what is there goes to quarantine".to_owned();
    vec![
        (call.line(&["accept", stage, "--why", "TEXT"]), keep),
        (call.run(&["--force", stage]), again),
    ]
}

/// Commands under each other, each with what it does; `label` stands before the first.
pub fn lines(ways: &[(String, String)], label: &str, code: &dyn Fn(&str) -> String) -> Vec<String> {
    let length = |command: &str| command.chars().count();
    let width = ways
        .iter()
        .map(|(command, _)| length(command))
        .max()
        .unwrap_or(0);
    let line = |(at, (command, what)): (usize, &(String, String))| {
        let label = if at == 0 { label } else { "" };
        let blanks = " ".repeat(width - length(command));
        format!("{label:9}{}{blanks}  {what}", code(command))
    };
    ways.iter().enumerate().map(line).collect()
}
