//! The command line: reads arguments and environment, calls `ops`, prints the text of `view`, and returns the exit code.

mod args;
mod commands;
mod env;
mod failure;
mod guard;
mod log_file;
mod print;
mod progress;
mod run_flags;
mod settings;
mod signals;
mod usage;
mod watch;
mod workspaces;

use args::Cli;
use clap::Parser as _;
use env::Environment;
use std::process::ExitCode;

/// Runs the program, and returns its exit code.
pub fn main() -> ExitCode {
    let environment = Environment::read();
    ExitCode::from(guard::guarded(|| start(&environment)))
}

fn start(environment: &Environment) -> u8 {
    match Cli::try_parse_from(&environment.arguments) {
        Ok(cli) => commands::carry_out(cli, environment),
        Err(error) => usage::report(usage::with_suggestion(error, environment)),
    }
}
