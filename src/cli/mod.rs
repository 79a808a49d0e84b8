//! The command line: reads arguments and environment, calls `ops`, prints the text of `view`, and returns the exit code.

mod args;
mod commands;
mod complete;
mod env;
mod failure;
mod flags;
mod follow;
mod guard;
mod help;
mod log_file;
mod print;
mod run;
mod settings;
mod signals;
mod usage;

use args::Cli;
use clap::Parser as _;
use env::Environment;
use milepost_engine::ops::exit_code::FAILED;
use milepost_engine::ops::run::{JOB_WORKER, WORKER, serve, use_workers};
use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Runs the program, and returns its exit code.
pub fn main() -> ExitCode {
    let environment = Environment::read();
    ExitCode::from(guard::guarded(|| start(&environment)))
}

fn start(environment: &Environment) -> u8 {
    signals::handle_inherited();
    if environment
        .arguments
        .get(1)
        .is_some_and(|first| first == WORKER)
    {
        return work();
    }
    if environment
        .arguments
        .get(1)
        .is_some_and(|first| first == JOB_WORKER)
    {
        use_workers(own_program());
        return run::job::run(environment);
    }
    if environment.get(complete::VARIABLE).is_some() {
        complete::complete(environment);
        return 0;
    }
    use_workers(own_program());
    match Cli::try_parse_from(&environment.arguments) {
        Ok(cli) => commands::carry_out(cli, environment),
        Err(error) => usage::report(usage::with_suggestion(error, environment)),
    }
}

/// Returns the program of workers: this one, even if its file was replaced since it started.
fn own_program() -> PathBuf {
    let own = Path::new("/proc/self/exe");
    if own.exists() {
        return own.to_owned();
    }
    // Where even that is unknown, the first worker fails to start, with the reason.
    std::env::current_exe().unwrap_or_else(|_| own.to_owned())
}

/// Serves the requests of the program that started this worker, and returns the exit code.
fn work() -> u8 {
    let served = || -> io::Result<()> {
        let input = io::stdin().as_fd().try_clone_to_owned()?;
        let output = io::stdout().as_fd().try_clone_to_owned()?;
        let errors = io::stderr().as_fd().try_clone_to_owned()?;
        serve(File::from(input), File::from(output), &File::from(errors))
    };
    if served().is_ok() { 0 } else { FAILED }
}
