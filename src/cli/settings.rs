//! Arguments and environment as what `ops` is asked for.

use super::args::{Everywhere, RunFlags, Values, When};
use super::env::Environment;
use super::print::{Printer, Screen};
use crate::ops::open::{OpsError, Request};
use crate::ops::run::Wanted;
use crate::view::call::Call;
use crate::view::paint::Paint;
use crate::view::words::shell_word;
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
    request.agents = values.agent;
    request.today = environment.today().map_err(OpsError::Usage)?;
    Ok(request)
}

/// What to run.
pub fn wanted(targets: Vec<String>, flags: &RunFlags, environment: &Environment) -> Wanted {
    let words = environment.arguments.iter().skip(1);
    let words = words.map(|word| format!(" {}", shell_word(&word.to_string_lossy())));
    Wanted {
        targets,
        until: flags.select.until.clone(),
        limit: flags.select.limit,
        failed: flags.select.failed,
        force: flags.select.force,
        keep_going: flags.keep_going,
        jobs: flags.jobs.map(usize::from),
        command: format!("milepost{}", words.collect::<String>()),
        ..Wanted::default()
    }
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
pub fn call(everywhere: &Everywhere, environment: &Environment) -> Call {
    let flags = [
        ("-C", &everywhere.directory),
        ("--workspace", &everywhere.workspace),
    ];
    let mut words = vec!["milepost".to_owned()];
    for (flag, path) in flags {
        if let Some(path) = path.as_deref().and_then(Path::to_str) {
            words.push(flag.to_owned());
            words.push(shell_word(path));
        }
    }
    Call {
        milepost: words.join(" "),
        folder: environment.folder.clone(),
    }
}
