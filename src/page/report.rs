//! The report of a workspace: one HTML page that needs no other file, no script and no network.

use super::{RenderError, STYLE, Templates, graph, timeline, value};
use crate::view::graph::state;
use crate::view::run::summary::shown;
use crate::view::text::overrides;
use crate::view::text::words::{count, grouped, seconds};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use milepost_core::base::digest::Digest;
use milepost_core::base::visible::visible;
use milepost_engine::ops::inspect::history::timeline::Timeline;
use milepost_engine::ops::inspect::history::{Run, timestamp};
use milepost_engine::ops::inspect::report::{BEGINNING, FileDigest, WorkspaceReport};
use minijinja::context;
use serde::Serialize;
use std::collections::BTreeMap;

/// The style of reports beside that of pages.
const REPORT_STYLE: &str = include_str!("assets/report.css");

/// The most characters of a message or a reason.
const MESSAGE: usize = 2000;

/// A run as the table of runs shows it.
#[derive(Serialize)]
struct ShownRun<'a> {
    run: &'a str,
    command: &'a str,
    version: &'a str,
    when: String,
    lasted: String,
    end: &'a str,
    batches: u64,
    failed: u64,
}

/// An output that a person modified.
#[derive(Serialize)]
struct Modified {
    stage: String,
    path: String,
    /// Who accepted it and why; `None` if no one did.
    accepted: Option<String>,
}

/// Returns the report as a page.
///
/// # Errors
/// If the template cannot be rendered, which is a bug.
pub(crate) fn report(data: &WorkspaceReport) -> Result<String, RenderError> {
    let style = format!("\n{STYLE}\n{REPORT_STYLE}");
    let hash = STANDARD.encode(Digest::of(&style).bytes());
    let drawn = data.timelines.iter().enumerate();
    let drawn = drawn.map(|(at, one)| {
        let drawing = timeline::element(one, &format!("timeline-{}", at + 1), None);
        context! { drawing, notes => notes(one) }
    });
    let failures = data.failures.shown.iter().map(|failure| {
        let outcome = beginning(&failure.outcome);
        context! { outcome, ..value(failure) }
    });
    let decisions = data.decisions.shown.iter().map(|decision| {
        let why: Vec<String> = decision.why.iter().map(|why| beginning(why)).collect();
        context! { why, ..value(decision) }
    });
    let page = context! {
        style,
        hash,
        project => &data.status.project,
        headline => headline(data),
        graph => graph::element(&data.graph, &|stage| format!("#stage-{stage}")),
        timelines => drawn.collect::<Vec<_>>(),
        runs => value(data.runs.shown.iter().map(run).collect::<Vec<_>>()),
        failures => failures.collect::<Vec<_>>(),
        decisions => decisions.collect::<Vec<_>>(),
        modified => value(modified(data)),
        total => data.status.money.as_ref().map(|money| value(money.spent)),
        last => data.status.last_run.as_ref().map(|run| context! {
            word => shown(&run.status), ..value(run)
        }),
        checkpoint_list => checkpoint_list(data),
        input_list => input_list(data),
        data => value(data),
    };
    let rendered = Templates::new()?.render("report.html", page)?;
    Ok(format!("{BEGINNING}{rendered}"))
}

/// Returns how many stages have which status.
fn headline(data: &WorkspaceReport) -> String {
    let stages = &data.graph.stages;
    let all = stages.len() as u64;
    let mut words: BTreeMap<String, u64> = BTreeMap::new();
    for stage in stages {
        *words.entry(state(stage)).or_default() += 1;
    }
    if words.get("complete") == Some(&all) {
        return match all {
            1 => "The stage is complete and up to date.".to_owned(),
            _ => format!("All {} stages are complete and up to date.", grouped(all)),
        };
    }
    let words = words
        .iter()
        .map(|(word, stages)| format!("{} {word}", grouped(*stages)));
    let words: Vec<String> = words.collect();
    format!("{}: {}.", count(all, "stage", "stages"), words.join("; "))
}

/// Returns what a timeline leaves out.
fn notes(data: &Timeline) -> Vec<String> {
    let mut notes = Vec::new();
    if data.left_out > 0 {
        let lanes = count(data.left_out, "earlier lane is", "earlier lanes are");
        notes.push(format!("{lanes} left out."));
    }
    notes
}

fn run(run: &Run) -> ShownRun<'_> {
    ShownRun {
        run: &run.run,
        command: &run.command,
        version: &run.version,
        when: timestamp(run.from).to_string(),
        lasted: seconds((run.to - run.from) as f64 / 1000.0),
        end: run.status.as_deref().map_or("no end recorded", shown),
        batches: run.batches,
        failed: run.failed,
    }
}

/// Returns the outputs that persons modified, accepted or not.
fn modified(data: &WorkspaceReport) -> Vec<Modified> {
    let stages = data.status.stages.iter();
    let all = stages.flat_map(|stage| {
        let accepted = stage.overrides.iter().map(|one| Modified {
            stage: stage.stage.clone(),
            path: one.path.clone().unwrap_or_default(),
            accepted: Some(overrides::accepted(one)),
        });
        let open = stage.due.iter().flat_map(|due| &due.altered);
        accepted.chain(open.map(|path| Modified {
            stage: stage.stage.clone(),
            path: path.clone(),
            accepted: None,
        }))
    });
    all.collect()
}

/// Returns the digests of the checkpoints as `sha256sum` reads them.
fn checkpoint_list(data: &WorkspaceReport) -> String {
    let files = data.checkpoints.iter().map(|checkpoint| FileDigest {
        path: checkpoint.path.clone(),
        digest: checkpoint.digest.to_string(),
    });
    lines(&files.collect::<Vec<_>>())
}

/// Returns the digests of the inputs in the workspace as `sha256sum` reads them.
fn input_list(data: &WorkspaceReport) -> String {
    let inputs = data.inputs.shown.iter();
    let inputs = inputs.filter(|input| !input.path.starts_with("project:"));
    lines(&inputs.cloned().collect::<Vec<_>>())
}

/// Returns digests as `sha256sum` reads them, each on its own line whatever its path is.
fn lines(files: &[FileDigest]) -> String {
    let line = |file: &FileDigest| {
        let digest = file.digest.strip_prefix("sha256:").unwrap_or(&file.digest);
        format!("{digest}  {}\n", visible(&file.path))
    };
    files.iter().map(line).collect()
}

/// Returns the beginning of a long text.
fn beginning(text: &str) -> String {
    let mut chars = text.chars();
    let beginning: String = chars.by_ref().take(MESSAGE).collect();
    match chars.count() {
        0 => beginning,
        more => format!("{beginning}… ({} more characters)", grouped(more as u64)),
    }
}
