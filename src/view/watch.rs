//! What a watch says between its runs.

use super::call::Call;
use super::paint::Paint;
use super::words::{batches, place, seconds, some_of};
use milepost_engine::ops::project::snapshot::Runner;
use std::path::Path;
use std::time::Duration;

/// How many batches or folders are named.
const NAMED: usize = 3;

/// What it watches, at its beginning.
pub(crate) fn begins(paint: Paint, project: &Path, workspace: &Path, call: &Call) -> String {
    let shown = |path: &Path| call.near(&path.display().to_string());
    let (project, workspace) = (shown(project), shown(workspace));
    let place = if project == "." {
        workspace
    } else {
        format!("{project} and {workspace}")
    };
    paint.dim(format!("watching {place} (press Ctrl-C to stop)"))
}

/// It waits; what failed as it stands and what a person has to see to are named.
pub(crate) fn waits<'a>(
    paint: Paint,
    failed: &[(String, String)],
    trouble: impl Iterator<Item = &'a str>,
    call: &Call,
) -> String {
    let mut lines = Vec::new();
    if !failed.is_empty() {
        let names: Vec<String> = failed
            .iter()
            .map(|(stage, batch)| place(stage, batch))
            .collect();
        let names = some_of(names.iter().map(String::as_str), NAMED);
        let many = batches(failed.len() as u64);
        let again = paint.code(call.run(&["--failed"]));
        lines.push(format!(
            "{many} failed: {names}; rerun when an input changes, or by {again}"
        ));
    }
    let trouble: Vec<&str> = trouble.collect();
    if trouble.is_empty() {
        lines.push(paint.good("waiting for changes"));
    } else {
        let names = some_of(trouble, NAMED);
        lines.push(format!(
            "{}: {names} cannot continue",
            paint.warn("waiting for changes")
        ));
    }
    lines.join("\n")
}

/// Agents that cost something were not asked.
pub(crate) fn unpaid(paint: Paint) -> String {
    format!(
        "paid agents are called with {}, or with {}",
        paint.code("--budget-usd DOLLARS"),
        paint.code("--paid")
    )
}

/// Another run is at work.
pub(crate) fn busy(paint: Paint, runner: &Runner) -> String {
    format!(
        "{} for another run: `{}` (process {} on {})",
        paint.warn("waiting"),
        runner.command,
        runner.pid,
        runner.host
    )
}

/// Folders are away.
pub(crate) fn gone<'a>(paint: Paint, gone: impl Iterator<Item = &'a Path>, call: &Call) -> String {
    let gone: Vec<String> = gone
        .map(|path| call.near(&path.display().to_string()))
        .collect();
    let is = if gone.len() == 1 { "is" } else { "are" };
    let it = if gone.len() == 1 { "it is" } else { "they are" };
    let names = some_of(gone.iter().map(String::as_str), NAMED);
    format!(
        "{} {names} {is} not there: no run until {it} back; to run anyway: {}",
        paint.warn("waiting:"),
        paint.code(call.run(&[]))
    )
}

/// Declarations, or the workspace, are wrong.
pub(crate) fn wrong(paint: Paint) -> String {
    format!("{} until this is fixed", paint.warn("waiting"))
}

/// The next run is put off.
pub(crate) fn put_off(paint: Paint, pause: Duration) -> String {
    format!(
        "{} its inputs keep changing while it runs: the next run in {} (does a stage write its own inputs?)",
        paint.warn("slower:"),
        seconds(pause.as_secs_f64())
    )
}

/// It polls, because it cannot listen.
pub(crate) fn polls(every: Duration, why: &str) -> String {
    format!(
        "cannot receive notifications of changes ({why}): scanning every {} instead, as with --poll",
        seconds(every.as_secs_f64())
    )
}
