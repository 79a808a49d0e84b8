//! The output of `watch` between its runs.

use crate::view::text::style::Style;
use crate::view::text::words::{batches, place, seconds, some_of};
use milepost_core::base::visible::visible;
use milepost_core::plan::options::invocation::Invocation;
use milepost_engine::ops::project::snapshot::Runner;
use std::path::Path;
use std::time::Duration;

/// How many batches or folders are named.
const NAMED: usize = 3;

/// The start of a watch.
pub(crate) fn begins(
    style: Style,
    project: &Path,
    workspace: &Path,
    invocation: &Invocation,
) -> String {
    let shown = |path: &Path| invocation.near(&path.display().to_string());
    let (project, workspace) = (shown(project), shown(workspace));
    let place = if project == "." {
        workspace
    } else {
        format!("{project} and {workspace}")
    };
    style.dim(format!(
        "watching {} (press Ctrl-C to stop)",
        visible(&place)
    ))
}

/// The watch waits for changes.
pub(crate) fn idle<'a>(
    style: Style,
    failed: &[(String, String)],
    trouble: impl Iterator<Item = &'a str>,
    invocation: &Invocation,
) -> String {
    let mut lines = Vec::new();
    if !failed.is_empty() {
        let names: Vec<String> = failed
            .iter()
            .map(|(stage, batch)| place(stage, batch))
            .collect();
        let names = some_of(names.iter().map(String::as_str), NAMED);
        let many = batches(failed.len() as u64);
        let again = style.code(invocation.run(&["--failed"]));
        lines.push(format!(
            "{many} failed: {names}; rerun when an input changes, or now with {again}"
        ));
    }
    let trouble: Vec<&str> = trouble.collect();
    if trouble.is_empty() {
        lines.push(style.good("waiting for changes"));
    } else {
        let names = some_of(trouble, NAMED);
        lines.push(format!(
            "{}: {names} cannot continue",
            style.warn("waiting for changes")
        ));
    }
    lines.join("\n")
}

/// Paid agents were not called.
pub(crate) fn unpaid(style: Style) -> String {
    format!(
        "paid agents are called with {}, or with {}",
        style.code("--budget-usd DOLLARS"),
        style.code("--paid")
    )
}

/// Another run is in progress.
pub(crate) fn busy(style: Style, runner: &Runner) -> String {
    format!(
        "{} for another run: `{}` (process {} on {})",
        style.warn("waiting"),
        visible(&runner.command),
        runner.pid,
        visible(&runner.host)
    )
}

/// Folders are missing.
pub(crate) fn gone<'a>(
    style: Style,
    gone: impl Iterator<Item = &'a Path>,
    invocation: &Invocation,
) -> String {
    let gone: Vec<String> = gone
        .map(|path| invocation.near(&path.display().to_string()))
        .collect();
    let is = if gone.len() == 1 { "is" } else { "are" };
    let it = if gone.len() == 1 { "it is" } else { "they are" };
    let names = some_of(gone.iter().map(String::as_str), NAMED);
    format!(
        "{} {names} {is} missing: no run until {it} back; to run anyway: {}",
        style.warn("waiting:"),
        style.code(invocation.run(&[]))
    )
}

/// The declarations or the workspace are invalid.
pub(crate) fn wrong(style: Style) -> String {
    format!("{} until this is fixed", style.warn("waiting"))
}

/// The next run is delayed.
pub(crate) fn put_off(style: Style, pause: Duration) -> String {
    format!(
        "{} inputs changed during the last runs; next run in {} (does a stage write its own inputs?)",
        style.warn("slowing down:"),
        seconds(pause.as_secs_f64())
    )
}

/// The watch polls.
pub(crate) fn polls(every: Duration, why: &str) -> String {
    format!(
        "the system cannot report changes ({}): scanning every {} instead, as with --poll",
        visible(why),
        seconds(every.as_secs_f64())
    )
}
