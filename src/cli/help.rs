//! The help of commands.

use super::args::Cli;
use crate::view::text::words::some_of;
use clap::CommandFactory as _;
use milepost_core::expr::place::nearest;
use milepost_engine::ops::project::OpsError;

/// Returns the help of a command, named by its words, or of the program.
///
/// # Errors
/// If there is no such command.
pub(crate) fn help(words: &[String]) -> Result<String, OpsError> {
    let mut cli = Cli::command();
    cli.build();
    let mut command = &mut cli;
    for (at, word) in words.iter().enumerate() {
        let names = command
            .get_subcommands()
            .filter(|command| !command.is_hide_set());
        let names: Vec<String> = names.map(|command| command.get_name().to_owned()).collect();
        let Some(found) = command.find_subcommand_mut(word) else {
            return Err(OpsError::Usage(unknown(&words[..at], word, &names)));
        };
        command = found;
    }
    Ok(command.render_help().to_string())
}

fn unknown(parents: &[String], word: &str, names: &[String]) -> String {
    let known = names.iter().map(String::as_str);
    let meant = match (nearest(word, known.clone()), parents) {
        (Some(near), _) => format!(": did you mean `{near}`?"),
        (None, []) => String::new(),
        (None, _) if names.is_empty() => {
            format!(": `{}` has no commands", parents.join(" "))
        }
        (None, _) => format!("; available: {}", some_of(known, usize::MAX - 1)),
    };
    let all: Vec<&str> = parents.iter().map(String::as_str).chain([word]).collect();
    format!("there is no command `{}`{meant}", all.join(" "))
}
