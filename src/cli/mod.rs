//! The command line: reads arguments and environment, calls `ops`, prints what `view` makes of it, gives the exit code.

mod args;
mod commands;
mod env;
mod failure;
mod guard;
mod log_file;
mod manifest;
mod print;
mod progress;
mod run_flags;
mod settings;
mod signals;
mod watch;

use args::{Cli, Command};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory as _, Parser as _};
use env::Environment;
use milepost_core::expr::place::nearest;
use std::process::ExitCode;

/// The program, from its arguments to its exit code.
pub fn main() -> ExitCode {
    let environment = Environment::read();
    ExitCode::from(guard::guarded(|| start(&environment)))
}

fn start(environment: &Environment) -> u8 {
    match Cli::try_parse_from(&environment.arguments) {
        Ok(cli) => commands::carry_out(cli, environment),
        Err(error) => refused(meant(error, environment)),
    }
}

/// The error with what was meant in the place of a command: a stage, a file, or a command that is misspelt.
fn meant(mut error: clap::Error, environment: &Environment) -> clap::Error {
    let Some(ContextValue::String(name)) = error.get(ContextKind::InvalidSubcommand) else {
        return error;
    };
    if error.kind() != ErrorKind::InvalidSubcommand {
        return error;
    }
    let arguments: Vec<_> = environment.arguments.iter().collect();
    let elsewhere = arguments
        .windows(2)
        .find(|pair| pair[0] == "-C")
        .map(|pair| pair[1]);
    let folder = elsewhere.map_or_else(
        || environment.folder.clone(),
        |folder| environment.folder.join(folder),
    );
    let stages = milepost_engine::ops::project::stage_names(&folder);
    let word = crate::view::words::shell_word(name);
    let tip = if stages.iter().any(|stage| stage == name) {
        format!("to run the stage `{name}`: milepost run {word}")
    } else if is_near(name, error.get(ContextKind::SuggestedSubcommand)) {
        return error;
    } else if environment.folder.join(name).exists() {
        format!("`{name}` is a file: `milepost run {word}` says how to read it")
    } else if let Some(near) = nearest(name, stages.iter().map(String::as_str)) {
        format!("did you mean the stage `{near}`? milepost run {near}")
    } else if stages.is_empty() {
        return error;
    } else {
        format!(
            "the stages of this project are {}: milepost run STAGE",
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

/// Help and version are asked for; all else is a mistake of usage.
fn refused(error: clap::Error) -> u8 {
    // Nobody is left to tell when the terminal is gone.
    let _ = error.print();
    u8::from(error.use_stderr()) * failure::USAGE
}

/// Whether a command that is suggested is what was meant: so short a name as `mcp` is like many others.
fn is_near(name: &str, suggested: Option<&ContextValue>) -> bool {
    let near = |command: &str| strsim::damerau_levenshtein(name, command) <= 2;
    match suggested {
        Some(ContextValue::String(command)) => near(command),
        Some(ContextValue::Strings(commands)) => commands.iter().any(|command| near(command)),
        _ => false,
    }
}

/// A mistake in how flags go together, said as clap says its own.
pub(crate) fn conflict(message: String) -> u8 {
    refused(Cli::command().error(ErrorKind::ArgumentConflict, message))
}

/// Flags before a command that only another command understands.
fn misplaced(cli: &Cli) -> Option<(&'static str, &'static str)> {
    let flags = &cli.run;
    let (name, found) = match &cli.command {
        None | Some(Command::Run { .. }) => return None,
        Some(Command::Plan { .. }) => ("plan", flags.only_of_run()),
        Some(other) => {
            let values = flags.values.first().filter(|_| !other.takes_values());
            let found = flags.only_of_run().or(flags.select.first());
            (other.name(), found.or(values))
        }
    };
    found.map(|flag| (flag, name))
}
