//! Arguments and environment as what `ops` is asked for.

use super::args::{Everywhere, RunFlags, Values, WatchFlags, When};
use super::env::Environment;
use super::print::{Printer, Screen};
use crate::view::call::Call;
use crate::view::paint::Paint;
use crate::view::words::shell_word;
use milepost_engine::ops::open::{OpsError, Request};
use milepost_engine::ops::run::Wanted;
use std::path::Path;

/// Project, workspace and values.
///
/// # Errors
/// When `SOURCE_DATE_EPOCH` is no time.
pub fn request(
    everywhere: &Everywhere,
    values: Values,
    environment: &Environment,
) -> Result<Request, OpsError> {
    let folder = match &everywhere.directory {
        Some(folder) => environment.folder.join(folder),
        None => environment.folder.clone(),
    };
    let mut request = Request::new(folder, environment.variables.clone());
    request.workspace.clone_from(&everywhere.workspace);
    request.set = values.set;
    request.unset = values.unset;
    request.agents = values.agent;
    request.epoch = environment.epoch().map_err(OpsError::Usage)?;
    Ok(request)
}

/// What to run.
pub fn wanted(targets: Vec<String>, flags: &RunFlags, environment: &Environment) -> Wanted {
    Wanted {
        targets,
        until: flags.select.until.clone(),
        limit: flags.select.limit,
        failed: flags.select.failed,
        force: flags.select.force,
        no_force: flags.select.no_force,
        keep_going: flags.keep_going,
        fresh: flags.fresh,
        until_paid: flags.until_paid,
        budget: flags.budget_usd,
        jobs: flags.jobs.map(usize::from),
        command: command_line(environment),
        ..Wanted::default()
    }
}

/// What each run of a watch is to do. What costs something is not done unless it is said how much it may be.
pub fn watched(targets: Vec<String>, flags: &WatchFlags, environment: &Environment) -> Wanted {
    Wanted {
        targets,
        until: flags.until.clone(),
        keep_going: flags.keep_going,
        until_paid: !flags.paid && flags.budget_usd.is_none(),
        budget: flags.budget_usd,
        jobs: flags.jobs.map(usize::from),
        command: command_line(environment),
        ..Wanted::default()
    }
}

/// What was typed, for the journal and the lock.
pub fn command_line(environment: &Environment) -> String {
    let words = environment.arguments.iter().skip(1);
    let words = words.map(|word| shell_word(&word.to_string_lossy()));
    let all: Vec<String> = std::iter::once("milepost".to_owned())
        .chain(words)
        .collect();
    all.join(" ")
}

/// The flags and targets of a plan, for the run that does it.
pub fn planned(targets: &[String], flags: &RunFlags) -> Vec<String> {
    let select = &flags.select;
    let values = &flags.values;
    let mut words = Vec::new();
    for (flag, values) in [
        ("--agent", &values.agent),
        ("--set", &values.set),
        ("--unset", &values.unset),
    ] {
        let values = values.iter();
        words.extend(values.flat_map(|value| [flag.to_owned(), value.clone()]));
    }
    words.extend(select.force.then(|| "--force".to_owned()));
    words.extend(select.failed.then(|| "--failed".to_owned()));
    words.extend(flags.keep_going.then(|| "--keep-going".to_owned()));
    let limit = select.limit.map(|limit| limit.to_string());
    for (flag, value) in [("--limit", &limit), ("--until", &select.until)] {
        words.extend(
            value
                .iter()
                .flat_map(|value| [flag.to_owned(), value.clone()]),
        );
    }
    words.extend(targets.iter().cloned());
    words
}

/// How to print. Bars are drawn only where a run is watched.
pub fn printer(everywhere: &Everywhere, environment: &Environment, watched: bool) -> Printer {
    let colour = |is_terminal| match everywhere.color {
        When::Always => Paint { on: true },
        When::Never => Paint::PLAIN,
        When::Auto => Paint {
            on: environment.wants_colour(is_terminal),
        },
    };
    let bars = watched && !everywhere.quiet && environment.may_draw();
    Printer {
        out: colour(environment.stdout_is_terminal),
        err: colour(environment.stderr_is_terminal),
        json: everywhere.json,
        quiet: everywhere.quiet,
        screen: if bars {
            Screen::with_bars()
        } else {
            Screen::default()
        },
    }
}

/// How the program is called for this project and workspace, so that what is proposed can be typed.
pub fn call(everywhere: &Everywhere, environment: &Environment, flags: Vec<String>) -> Call {
    let folders = [
        ("-C", &everywhere.directory),
        ("--workspace", &everywhere.workspace),
    ];
    let mut words = vec!["milepost".to_owned()];
    for (flag, path) in folders {
        if let Some(path) = path.as_deref().and_then(Path::to_str) {
            words.push(flag.to_owned());
            words.push(shell_word(path));
        }
    }
    Call {
        milepost: words.join(" "),
        flags,
        folder: environment.folder.clone(),
    }
}
