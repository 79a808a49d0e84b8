//! Converts arguments and environment to the request for `ops`.

use super::args::{Everywhere, When};
use super::env::Environment;
use super::print::{OutputFault, Printer, Screen};
use crate::view::text::style::Style;
use milepost_core::plan::options::invocation::Invocation;
use milepost_core::plan::options::invocation::shell_word;
use milepost_engine::ops::project::{OpsError, Request};
use milepost_engine::ops::run::Values;
use std::path::Path;

/// Returns the request: project, workspace and values.
///
/// # Errors
/// If `SOURCE_DATE_EPOCH` is not a time.
pub(crate) fn request(
    everywhere: &Everywhere,
    values: Values,
    environment: &Environment,
) -> Result<Request, OpsError> {
    let folder = match &everywhere.directory {
        Some(folder) => environment.folder.join(folder),
        None => environment.folder.clone(),
    };
    let mut request = Request::new(folder, environment.variables.clone());
    request.not_utf8.clone_from(&environment.not_utf8);
    request.workspace.clone_from(&everywhere.workspace);
    request.invocation = Invocation {
        milepost: milepost(everywhere),
        values: values.clone(),
        folder: environment.folder.clone(),
        ..Invocation::default()
    };
    request.values = values;
    request.program.clone_from(&environment.program);
    request.command = command_line(environment);
    request.epoch = environment.epoch().map_err(OpsError::Usage)?;
    Ok(request)
}

/// Returns the command line, for journal and lock.
fn command_line(environment: &Environment) -> String {
    let words = environment.arguments.iter().skip(1);
    let words = words.map(|word| shell_word(&word.to_string_lossy()));
    let all: Vec<String> = std::iter::once("milepost".to_owned())
        .chain(words)
        .collect();
    all.join(" ")
}

/// Returns the printer; `watched` is true for a run, which draws bars.
pub(crate) fn printer(
    everywhere: &Everywhere,
    environment: &Environment,
    watched: bool,
) -> Printer {
    let colour = |is_terminal| match everywhere.color {
        When::Always => Style { on: true },
        When::Never => Style::PLAIN,
        When::Auto => Style {
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
        fault: OutputFault::default(),
    }
}

/// Returns the program with the flags for project and workspace, for suggested commands.
pub(crate) fn milepost(everywhere: &Everywhere) -> String {
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
    words.join(" ")
}
