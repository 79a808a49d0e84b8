//! Each command: what it asks of `ops`, and what it prints.

use super::args::{Cli, Command, RunFlags};
use super::env::Environment;
use super::failure::{self, ALTERED, FAILED};
use super::print::Printer;
use super::progress::Show;
use super::{conflict, log_file, misplaced, settings, signals};
use crate::ops;
use crate::ops::open::{OpsError, Request};
use crate::ops::run::{StopFlag, Wanted, adopt_orphans, exit_code};
use crate::view;
use clap::CommandFactory as _;
use std::sync::Arc;

/// Carries out what the command line says, and gives the exit code.
pub fn carry_out(cli: Cli, environment: &Environment) -> u8 {
    if let Some((flag, command)) = misplaced(&cli) {
        return conflict(format!(
            "`{flag}` belongs to `run`, and was given with `{command}`"
        ));
    }
    let dry = cli.run.dry_run;
    let watched = match &cli.command {
        None => !dry,
        Some(Command::Run { flags, .. }) => !dry && !flags.dry_run,
        Some(_) => false,
    };
    let printer = settings::printer(&cli.everywhere, environment, watched);
    let done = start_log(&cli, environment).and_then(|()| command(cli, environment, &printer));
    done.unwrap_or_else(|error| failure::tell(&printer, &error))
}

fn start_log(cli: &Cli, environment: &Environment) -> Result<(), OpsError> {
    match &cli.everywhere.log_file {
        Some(file) => log_file::begin(&environment.folder.join(file)),
        None => Ok(()),
    }
}

fn command(cli: Cli, environment: &Environment, printer: &Printer) -> Result<u8, OpsError> {
    let milepost = settings::milepost(&cli.everywhere);
    let of_run = |targets: Vec<String>, flags: RunFlags| {
        let wanted = settings::wanted(targets, &flags, environment);
        let request = settings::request(&cli.everywhere, flags.values, environment)?;
        if flags.dry_run {
            plan(printer, &request, &wanted, &milepost)
        } else {
            run(printer, &request, &wanted, &milepost)
        }
    };
    match cli.command {
        None => of_run(Vec::new(), cli.run),
        Some(Command::Run { targets, flags }) => of_run(targets, cli.run.joined(flags)),
        Some(Command::Plan {
            targets,
            select,
            values,
        }) => {
            let later = RunFlags {
                select,
                values,
                dry_run: true,
                ..RunFlags::default()
            };
            of_run(targets, cli.run.joined(later))
        }
        Some(Command::Completions { shell }) => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "milepost", &mut script);
            printer.result(&String::from_utf8_lossy(&script));
            Ok(0)
        }
    }
}

fn run(
    printer: &Printer,
    request: &Request,
    wanted: &Wanted,
    milepost: &str,
) -> Result<u8, OpsError> {
    adopt_orphans();
    let stop = Arc::new(StopFlag::new());
    if let Err(error) = signals::listen(Arc::clone(&stop), printer.clone()) {
        printer.warning(&format!("Ctrl-C ends the program at once: {error}"));
    }
    let mut show = Show::new(printer);
    let report = ops::run::run(request, wanted, &mut show, &stop);
    show.end();
    let report = report?;
    let code = exit_code(&report);
    if printer.json {
        printer.result_json(&view::report::json(&report));
    } else if !printer.quiet {
        printer.result(&view::report::summary(printer.out, &report, milepost));
    } else if code != 0 {
        printer.say(view::report::summary(printer.err, &report, milepost).trim_end());
    }
    Ok(code)
}

fn plan(
    printer: &Printer,
    request: &Request,
    wanted: &Wanted,
    milepost: &str,
) -> Result<u8, OpsError> {
    let plan = ops::plan::plan(request, wanted)?;
    if printer.json {
        let json =
            serde_json::to_value(&plan).map_err(|error| OpsError::World(error.to_string()))?;
        printer.result_json(&json);
    } else {
        printer.result(&view::plan::text(printer.out, &plan, milepost));
    }
    let any = |of: &dyn Fn(&ops::plan::StagePlan) -> bool| plan.stages.iter().any(of);
    Ok(if any(&|stage| !stage.altered.is_empty()) {
        ALTERED
    } else if any(&|stage| stage.problem.is_some() || !stage.missing.is_empty()) {
        FAILED
    } else {
        0
    })
}
