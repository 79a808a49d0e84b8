//! Each command: calls `ops`, and prints the result.

use super::args::{Cli, Command, Everywhere, GraphFormat};
use super::env::Environment;
use super::failure;
use super::flags::RunFlags;
use super::print::Printer;
use super::run::progress::RunProgress;
use super::run::{watch, workspaces};
use super::{complete, follow, help, log_file, settings, signals, usage};
use crate::mcp;
use crate::page;
use crate::view;
use crate::web::{self, ServerNotice, UiOptions};
use milepost_core::plan::options::flags::Flags as _;
use milepost_engine::ops;
use milepost_engine::ops::change::accept::AcceptOptions;
use milepost_engine::ops::change::approve::{ApproveOptions, approve};
use milepost_engine::ops::change::clean::CleanOptions;
use milepost_engine::ops::change::gc::GcOptions;
use milepost_engine::ops::change::import_review::{ImportOptions, import_review};
use milepost_engine::ops::change::man::write_man_pages;
use milepost_engine::ops::eval::EvalOptions;
use milepost_engine::ops::exit_code::{FAILED, MODIFIED, WAITING, exit_code};
use milepost_engine::ops::inspect::diff::DiffOptions;
use milepost_engine::ops::inspect::log::LogOptions;
use milepost_engine::ops::plan::PlanDetails;
use milepost_engine::ops::project::{OpsError, Request};
use milepost_engine::ops::run::{RunOptions, Values, adopt_orphans};
use milepost_engine::ops::trace::TraceOptions;
use serde::Serialize;
use std::net::Ipv4Addr;

/// Carries out the command line, and returns the exit code.
pub(crate) fn carry_out(cli: Cli, environment: &Environment) -> u8 {
    if let Some((flag, command)) = usage::misplaced(&cli) {
        return usage::conflict(format!("`{flag}` is a flag of `run`, not of `{command}`"));
    }
    let dry = cli.run.dry_run;
    let watched = match &cli.command {
        None => !dry,
        Some(Command::Run { flags, .. }) => !dry && !flags.dry_run,
        Some(Command::Watch { .. }) => true,
        Some(_) => false,
    };
    let printer = settings::printer(&cli.everywhere, environment, watched);
    let done = start_log(&cli, environment).and_then(|()| command(cli, environment, &printer));
    printer.ended(done.unwrap_or_else(|error| failure::print(&printer, &error)))
}

fn start_log(cli: &Cli, environment: &Environment) -> Result<(), OpsError> {
    match &cli.everywhere.log_file {
        Some(file) => log_file::begin(&environment.folder.join(file), environment),
        None => Ok(()),
    }
}

#[expect(clippy::too_many_lines)]
fn command(cli: Cli, environment: &Environment, printer: &Printer) -> Result<u8, OpsError> {
    let request = |values| {
        let mut request = settings::request(&cli.everywhere, values, environment)?;
        request.warn = Some(failure::warn_once(printer));
        Ok::<Request, OpsError>(request)
    };
    let with_values = |values: Values| {
        let mut all = cli.run.values.given.clone();
        all.merge(&values);
        request(all)
    };
    let of_run = |targets: Vec<String>, flags: RunFlags| {
        let (dry_run, verbose) = (flags.dry_run, flags.verbose);
        if flags.manifest.is_some() {
            printer.warning(
                "`--manifest` is now `--workspaces`; the next version removes the old name",
            );
        }
        let list = flags.workspaces.as_ref().or(flags.manifest.as_ref());
        let list = list.map(|file| environment.folder.join(file));
        let (options, values) = flags.options(targets);
        let mut request = request(values)?;
        request.invocation.options = options.clone();
        request.invocation.stored = !dry_run;
        if let Some(list) = list {
            let mut own: Everywhere = cli.everywhere.clone();
            own.workspace = None;
            request.invocation.milepost = settings::milepost(&own);
            workspaces::run(printer, &request, &options, &list, dry_run, verbose > 0)
        } else if dry_run {
            plan(printer, &request, &options, verbose, false)
        } else {
            run(printer, &request, &options, verbose)
        }
    };
    match cli.command {
        None => of_run(Vec::new(), cli.run.clone()),
        Some(Command::Run { targets, flags }) => of_run(targets, cli.run.clone().joined(flags)),
        Some(Command::Plan {
            show_request: Some(target),
            flags,
            ..
        }) => {
            let request = with_values(flags.values.given)?;
            let shown = ops::inspect::show_request::show_request(&request, &target)?;
            tell(printer, &shown, view::request::request)
        }
        Some(Command::Plan {
            targets,
            show_request: None,
            mut flags,
        }) => {
            flags.dry_run = true;
            of_run(targets, cli.run.clone().joined(flags))
        }
        Some(Command::Watch {
            targets,
            flags,
            values,
        }) => {
            let options = flags.options(targets);
            let mut request = with_values(values.given)?;
            request.invocation.options = options.clone();
            request.invocation.stored = true;
            watch::watch(printer, request, options, &flags)
        }
        Some(Command::Status { values }) => {
            let request = with_values(values.given)?;
            let status = ops::inspect::status::status(&request)?;
            tell(printer, &status, |status| {
                view::status::status(status, &request.invocation)
            })
        }
        Some(Command::Params { values }) => {
            let mut request = with_values(values.given)?;
            request.invocation.stored = true;
            let found = ops::change::params::params(&request)?;
            tell(printer, &found, |found| {
                view::change::params::params(printer.out, found, &request.invocation)
            })
        }
        Some(Command::Eval {
            filter,
            input,
            arg,
            set,
        }) => {
            let values = Values {
                set,
                ..Values::default()
            };
            let options = EvalOptions {
                filter,
                folder: environment.folder.clone(),
                inputs: input,
                args: arg,
            };
            let found = ops::eval::eval(&request(values)?, &options)?;
            tell(printer, &found, view::eval::eval)
        }
        Some(Command::Why { what, values }) => {
            let why = ops::why::why(&with_values(values.given)?, &what)?;
            tell(printer, &why, view::why::why)
        }
        Some(Command::Trace {
            what,
            cell,
            pointer,
            element,
            field,
            full,
            values,
        }) => {
            let options = TraceOptions {
                what,
                cell,
                pointer,
                element,
                field,
                confined: false,
            };
            let request = with_values(values.given)?;
            let traced = ops::trace::trace(&request, &options)?;
            tell(printer, &traced, |traced| {
                view::trace::trace(traced, full, &request.invocation)
            })
        }
        Some(Command::Log {
            target,
            run,
            errors,
            calls,
            last,
            follow,
        }) => {
            let options = LogOptions {
                target,
                run,
                errors,
                calls,
                limit: (last > 0).then_some(last),
                unchecked: false,
            };
            let request = request(Values::default())?;
            if follow {
                return follow::follow(printer, &request, &options);
            }
            let log = ops::inspect::log::log(&request, &options)?;
            let code = if log.broken.is_some() { FAILED } else { 0 };
            tell(printer, &log, view::log::log).map(|_| code)
        }
        Some(Command::Verify { deep, values }) => {
            let found = ops::inspect::verify::verify(&with_values(values.given)?, deep)?;
            tell(printer, &found, view::verify::verify)?;
            Ok(found.exit_code())
        }
        Some(Command::Accept {
            targets,
            why,
            who,
            change,
        }) => {
            let options = AcceptOptions {
                targets,
                why,
                who,
                changes: change,
                expected: None,
            };
            let accepted = ops::change::accept::accept(&request(Values::default())?, &options)?;
            tell(printer, &accepted, view::change::accept::accept)
        }
        Some(Command::Approve { stages, why, who }) => {
            let options = ApproveOptions {
                stages,
                why,
                who,
                expected: None,
            };
            let request = request(Values::default())?;
            let approved = approve(&request, &options)?;
            tell(printer, &approved, |approved| {
                view::change::approve::approve(approved, &request.invocation)
            })
        }
        Some(Command::ImportReview { file, who, why }) => {
            let file = environment.folder.join(file);
            let options = ImportOptions { file, who, why };
            let request = request(Values::default())?;
            let imported = import_review(&request, &options)?;
            tell(printer, &imported, |imported| {
                view::change::import_review::import_review(imported, &request.invocation)
            })
        }
        Some(Command::Graph { format, mermaid }) => {
            let graph = ops::inspect::graph::graph(&request(Values::default())?)?;
            let format = if mermaid {
                GraphFormat::Mermaid
            } else {
                format
            };
            let text = match format {
                GraphFormat::Text => view::graph::graph,
                GraphFormat::Svg => page::graph::file,
                GraphFormat::Dot => view::graph::dot,
                GraphFormat::Mermaid => view::graph::mermaid,
            };
            tell(printer, &graph, text)
        }
        Some(Command::Report { out }) => {
            let request = request(Values::default())?;
            let data = ops::inspect::report::report(&request)?;
            let written = page::report::report(&data);
            let written = written.map_err(|error| OpsError::World(error.to_string()))?;
            let saved = ops::inspect::report::save(&request, &written, &out)?;
            tell(printer, &saved, |saved| format!("written  {}", saved.path))
        }
        Some(Command::Diff {
            other,
            stages,
            limit,
        }) => {
            let options = DiffOptions {
                other: other.map(|folder| environment.folder.join(folder)),
                stages,
                limit,
            };
            let diff = ops::inspect::diff::diff(&request(Values::default())?, &options)?;
            tell(printer, &diff, view::diff::diff)
        }
        Some(Command::Init { template, folder }) => {
            let folder = folder.unwrap_or_else(|| template.clone());
            let disk = request(Values::default())?.disk;
            let base = &environment.folder;
            let made = ops::change::init::init(&disk, base, &folder, &template)?;
            tell(printer, &made, view::init::init)
        }
        Some(Command::Clean { stages, yes }) => {
            let options = CleanOptions {
                stages,
                dry_run: !yes,
            };
            let cleaned = ops::change::clean::clean(&request(Values::default())?, &options)?;
            tell(printer, &cleaned, view::change::clean::clean)
        }
        Some(Command::Gc { older_than, yes }) => {
            let options = GcOptions {
                older_than,
                dry_run: !yes,
            };
            let collected = ops::change::gc::gc(&request(Values::default())?, &options)?;
            tell(printer, &collected, view::change::clean::gc)
        }
        Some(Command::Mcp { agent }) => {
            let values = Values {
                agents: agent,
                ..Values::default()
            };
            // Standard output is reserved for the protocol.
            mcp::serve(request(values)?, &signals::stop_flag(printer))?;
            Ok(0)
        }
        Some(Command::Ui {
            port,
            listen,
            no_open,
            agent,
        }) => {
            let values = Values {
                agents: agent,
                ..Values::default()
            };
            let request = request(values)?;
            let address = listen.unwrap_or(Ipv4Addr::LOCALHOST.into());
            let options = UiOptions {
                address: (address, port).into(),
                opens_browser: !no_open && environment.has_browser(),
            };
            let say = |notice: ServerNotice| match notice {
                ServerNotice::Warning(text) => printer.warning(text),
                ServerNotice::Address(url) => {
                    printer
                        .say_with_key(&format!("open {url} in a browser; Ctrl-C ends the server"));
                }
            };
            web::serve(request, &options, &signals::stop_flag(printer), &say)?;
            Ok(0)
        }
        Some(Command::Schema { name }) => {
            match name {
                Some(name) => printer.result_json(&ops::schema::schema(&name)?),
                None => printer.result(&ops::schema::NAMES.join("\n")),
            }
            Ok(0)
        }
        Some(Command::Help { command }) => {
            printer.result(help::help(&command)?.trim_end());
            Ok(0)
        }
        Some(Command::Completions { shell }) => {
            let script = complete::script(shell, environment);
            let script = script.map_err(|error| OpsError::World(error.to_string()))?;
            printer.result(script.trim());
            Ok(0)
        }
        Some(Command::Man { folder }) => {
            let pages = help::man_pages();
            let pages = pages.map_err(|error| OpsError::World(error.to_string()))?;
            let disk = request(Values::default())?.disk;
            let written = write_man_pages(&disk, &environment.folder.join(folder), &pages)?;
            tell(printer, &written, view::init::man_pages)
        }
    }
}

/// Prints a result, as text or as JSON.
fn tell<T: Serialize>(
    printer: &Printer,
    data: &T,
    text: impl FnOnce(&T) -> String,
) -> Result<u8, OpsError> {
    if printer.json {
        let json = serde_json::to_value(data);
        printer.result_json(&json.map_err(|error| OpsError::World(error.to_string()))?);
    } else {
        printer.result(&text(data));
    }
    Ok(0)
}

fn run(
    printer: &Printer,
    request: &Request,
    options: &RunOptions,
    verbose: u8,
) -> Result<u8, OpsError> {
    let invocation = &request.invocation;
    adopt_orphans();
    let stop = signals::stop_flag(printer);
    let mut progress = RunProgress::new(printer, invocation).verbose(verbose > 0);
    let report = ops::run::run(request, options, &mut progress, &stop);
    progress.end();
    let report = report?;
    let code = exit_code(&report);
    if options.until_paid && code == WAITING {
        // `--until-paid` shows what the rest would cost.
        printer
            .say(view::run::summary::summary(printer.err, &report, invocation, false).trim_end());
        plan(printer, request, options, verbose, true)?;
        return Ok(code);
    }
    if printer.json {
        let ended = ops::run::result::RunResult::of(&report, view::run::summary::overall(&report));
        tell(printer, &ended, |_| String::new())?;
    } else if !printer.quiet {
        printer.result(&view::run::summary::summary(
            printer.out,
            &report,
            invocation,
            false,
        ));
    } else if code != 0 {
        printer.say(view::run::summary::summary(printer.err, &report, invocation, true).trim_end());
    }
    Ok(code)
}

/// The batches of a stage whose first action `plan -v` shows.
const FIRST: usize = 20;

fn plan(
    printer: &Printer,
    request: &Request,
    options: &RunOptions,
    verbose: u8,
    after_run: bool,
) -> Result<u8, OpsError> {
    let first = match verbose {
        0 => 0,
        1 => FIRST,
        _ => usize::MAX,
    };
    let details = PlanDetails {
        first,
        advice: verbose > 0,
        ..PlanDetails::default()
    };
    let mut plan = ops::plan::plan_with(request, options, details)?;
    if after_run && !printer.json {
        // The run has printed them.
        plan.stored.clear();
    }
    tell(printer, &plan, |plan| {
        let text = if after_run {
            view::plan::after_run
        } else {
            view::plan::text
        };
        let text = text(printer.out, plan, &request.invocation);
        let outside = (verbose > 0).then(|| view::plan::outside(printer.out));
        text + &outside.unwrap_or_default()
    })?;
    let any = |of: &dyn Fn(&ops::plan::StagePlan) -> bool| plan.stages.iter().any(of);
    Ok(if any(&|stage| !stage.altered.is_empty()) {
        MODIFIED
    } else if any(&|stage| stage.problem.is_some() || !stage.missing.is_empty()) {
        FAILED
    } else {
        0
    })
}
