//! Mistakes on the command line: unknown commands with a suggestion, flags in the wrong place.

use super::args::{Cli, Command};
use super::complete::everywhere;
use super::env::Environment;
use super::settings::milepost;
use clap::CommandFactory as _;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use milepost_core::base::visible::visible_lines;
use milepost_core::expr::place::nearest;
use milepost_core::plan::options::flags::Flags as _;
use milepost_core::plan::options::invocation::shell_word;
use milepost_engine::ops::exit_code::{FAILED, USAGE};
use std::borrow::Cow;
use std::io::Write as _;

/// Adds a suggestion to an unknown command: a stage, a file, or a similar command.
pub(crate) fn with_suggestion(mut error: clap::Error, environment: &Environment) -> clap::Error {
    let Some(ContextValue::String(name)) = error.get(ContextKind::InvalidSubcommand) else {
        return error;
    };
    if error.kind() != ErrorKind::InvalidSubcommand {
        return error;
    }
    let everywhere = everywhere(environment.arguments.iter().skip(1));
    let elsewhere = everywhere.directory.iter();
    let folder = elsewhere.fold(environment.folder.clone(), |folder, other| {
        folder.join(other)
    });
    let stages = milepost_engine::ops::project::stage_names(&folder);
    let milepost = milepost(&everywhere);
    let word = shell_word(name);
    let tip = if stages.iter().any(|stage| stage == name) {
        format!("to run the stage `{name}`: {milepost} run {word}")
    } else if is_near(name, error.get(ContextKind::SuggestedSubcommand)) {
        return error;
    } else if environment.folder.join(name).exists() {
        format!("`{name}` is a file: `{milepost} run {word}` shows how to read it")
    } else if let Some(near) = nearest(name, stages.iter().map(String::as_str)) {
        format!(
            "did you mean the stage `{near}`? {milepost} run {}",
            shell_word(near)
        )
    } else if stages.is_empty() {
        return error;
    } else {
        format!(
            "the stages of this project are {}: {milepost} run STAGE",
            stages.join(", ")
        )
    };
    error.remove(ContextKind::SuggestedSubcommand);
    error.insert(
        ContextKind::Suggested,
        ContextValue::StyledStrs(vec![tip.into()]),
    );
    error
}

/// Prints an error, or the requested help or version, and returns the exit code.
pub(crate) fn report(error: clap::Error) -> u8 {
    let plain = error.render().to_string();
    let printed = match visible_lines(&plain) {
        Cow::Borrowed(_) => error.print(),
        Cow::Owned(shown) => std::io::stderr().write_all(shown.as_bytes()),
    };
    match printed {
        // The reader may have closed the pipe, as `head` does.
        Err(failed) if !error.use_stderr() && failed.kind() != std::io::ErrorKind::BrokenPipe => {
            // Without standard error, nothing can say so.
            let _ = writeln!(
                std::io::stderr(),
                "error: cannot write to standard output: {failed}"
            );
            FAILED
        }
        _ => u8::from(error.use_stderr()) * USAGE,
    }
}

// clap also suggests a name as short as `mcp` for many words that have nothing to do with it.
fn is_near(name: &str, suggested: Option<&ContextValue>) -> bool {
    let near = |command: &str| strsim::damerau_levenshtein(name, command) <= 2;
    match suggested {
        Some(ContextValue::String(command)) => near(command),
        Some(ContextValue::Strings(commands)) => commands.iter().any(|command| near(command)),
        _ => false,
    }
}

/// Prints an error about flags that do not go together, as clap does, and returns the exit code.
pub(crate) fn conflict(message: String) -> u8 {
    report(Cli::command().error(ErrorKind::ArgumentConflict, message))
}

/// Returns a flag before the command that belongs to `run`, and the command.
pub(crate) fn misplaced(cli: &Cli) -> Option<(String, &'static str)> {
    let flags = &cli.run;
    let other = match &cli.command {
        None | Some(Command::Run { .. } | Command::Plan { .. }) => return None,
        Some(other) => other,
    };
    let values = flags.values.given.first();
    let found = flags.only_of_run();
    let found = found.or_else(|| values.filter(|_| !other.takes_values()));
    let verbose = (flags.verbose > 0).then(|| "--verbose".to_owned());
    Some((found.or(verbose)?, other.name()))
}
