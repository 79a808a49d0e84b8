//! Arguments and environment as what `ops` is asked for.

use super::args::{Everywhere, When};
use super::env::Environment;
use super::print::{Printer, Screen};
use crate::view::call::Call;
use crate::view::paint::Paint;
use crate::view::words::shell_word;
use milepost_engine::ops::project::{OpsError, Request};
use milepost_engine::ops::run::Values;
use std::path::Path;

/// Project, workspace and values.
///
/// # Errors
/// When `SOURCE_DATE_EPOCH` is no time.
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
    request.workspace.clone_from(&everywhere.workspace);
    request.values = values;
    request.command = command_line(environment);
    request.epoch = environment.epoch().map_err(OpsError::Usage)?;
    Ok(request)
}

/// What was typed, for the journal and the lock.
fn command_line(environment: &Environment) -> String {
    let words = environment.arguments.iter().skip(1);
    let words = words.map(|word| shell_word(&word.to_string_lossy()));
    let all: Vec<String> = std::iter::once("milepost".to_owned())
        .chain(words)
        .collect();
    all.join(" ")
}

/// How to print. Bars are drawn only where a run is watched.
pub(crate) fn printer(
    everywhere: &Everywhere,
    environment: &Environment,
    watched: bool,
) -> Printer {
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
pub(crate) fn call(everywhere: &Everywhere, environment: &Environment, flags: Vec<String>) -> Call {
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
