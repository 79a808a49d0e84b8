//! The output of `watch` between its runs.

use crate::view::text::next_steps::SEND_AGAIN;
use crate::view::text::style::Style;
use crate::view::text::words::{batches, place, seconds, some_of};
use milepost_core::base::visible::visible;
use milepost_core::plan::options::invocation::Invocation;
use milepost_engine::ops::project::snapshot::Runner;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

/// How many batches or folders are named.
const NAMED: usize = 3;

/// Pending work while a watch waits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Unresolved {
    /// Batches that failed: stage and batch.
    pub(crate) failed: Vec<(String, String)>,
    /// True if a service may have carried out the request of one of them.
    pub(crate) sent: bool,
    /// Stages that need a person.
    pub(crate) trouble: BTreeSet<String>,
    /// The time until the next run, if the last one waits for a server.
    pub(crate) next_run: Option<Duration>,
}

/// The start of a watch.
pub(crate) fn begins(
    style: Style,
    project: &Path,
    workspace: &Path,
    invocation: &Invocation,
) -> String {
    let shown = |path: &Path| invocation.near(&path.display().to_string());
    let (project, workspace) = (shown(project), shown(workspace));
    let place = match project.as_str() {
        "." => workspace,
        _ => format!("{project} and {workspace}"),
    };
    style.dim(format!(
        "watching {} (press Ctrl-C to stop)",
        visible(&place)
    ))
}

/// The watch waits for changes.
pub(crate) fn idle(style: Style, unresolved: &Unresolved, invocation: &Invocation) -> String {
    let Unresolved {
        failed, trouble, ..
    } = unresolved;
    let mut lines = Vec::new();
    if !failed.is_empty() {
        let names = failed.iter().map(|(stage, batch)| place(stage, batch));
        let names: Vec<String> = names.collect();
        let names = some_of(names.iter().map(String::as_str), NAMED);
        let many = batches(failed.len() as u64);
        let again = style.code(invocation.run(&["--failed"]));
        let effect = unresolved.sent.then(|| format!(" ({SEND_AGAIN})"));
        let effect = effect.unwrap_or_default();
        lines.push(format!(
            "{many} failed: {names}; rerun when an input changes, or now with {again}{effect}"
        ));
    }
    let mut waits = style.good("waiting for changes");
    if !trouble.is_empty() {
        let names = some_of(trouble.iter().map(String::as_str), NAMED);
        let word = style.warn("waiting for changes");
        waits = format!("{word}: {names} cannot continue");
    }
    if let Some(wait) = unresolved.next_run {
        waits.push_str(&format!("; next run in {}", seconds(wait.as_secs_f64())));
    }
    lines.push(waits);
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
