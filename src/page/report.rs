//! The report of a workspace: one HTML page that needs no other file, no script and no network.

use super::{RenderError, STYLE, Templates, graph, timeline, value};
use crate::view::run::summary::shown;
use crate::view::status::last_end;
use crate::view::text::overrides;
use crate::view::text::words::{count, grouped, seconds};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use milepost_core::base::digest::Digest;
use milepost_core::base::visible::visible;
use milepost_core::model::stage_word::StageWord;
use milepost_engine::ops::inspect::history::timeline::Timeline;
use milepost_engine::ops::inspect::history::{Run, timestamp};
use milepost_engine::ops::inspect::report::{BEGINNING, CutList, FileDigest, WorkspaceReport};
use minijinja::{Value, context};
use serde::Serialize;
use std::collections::BTreeMap;

/// The style of reports beside that of pages.
const REPORT_STYLE: &str = include_str!("assets/report.css");

/// The most characters of a message or a reason.
const MESSAGE: usize = 2000;

/// Maximum bytes of the entries of a list, so that the report stays small with entries of any length.
const ENTRIES: usize = 150_000;

/// The bytes of a character that is escaped, at most.
const ESCAPED: usize = 8;

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
    let failures = listed(&data.failures, |failure, room| {
        context! { outcome => beginning(&failure.outcome, room), ..value(failure) }
    });
    let decisions = listed(&data.decisions, |decision, room| {
        let what = beginning(&decision.what, room);
        context! { what, why => reasons(&decision.why, room), ..value(decision) }
    });
    let modified = listed(&CutList::of(modified(data)), |one, room| {
        let accepted = one.accepted.as_ref().map(|text| beginning(text, room));
        context! { accepted, ..value(one) }
    });
    let runs = listed(&data.runs, |one, room| {
        context! { command => beginning(&one.command, room), ..value(run(one)) }
    });
    let whole = |file: &FileDigest, _| value(file);
    let inputs = listed(&data.inputs, whole);
    let page = context! {
        style,
        hash,
        project => &data.status.project,
        headline => headline(data),
        graph => graph::element(&data.graph, &|stage| format!("#stage-{stage}")),
        timelines => drawn.collect::<Vec<_>>(),
        runs,
        failures,
        costs => listed(&data.costs, |line, _| value(line)),
        decisions,
        modified,
        input_list => input_list(data, &inputs),
        inputs,
        declarations => listed(&data.declarations, whole),
        total => data.status.money.as_ref().map(|money| value(money.spent)),
        last => data.status.last_run.as_ref().map(|run| context! {
            word => last_end(&data.status), ..value(run)
        }),
        checkpoint_list => checkpoint_list(data),
        data => value(data),
    };
    let rendered = Templates::new()?.render("report.html", page)?;
    Ok(format!("{BEGINNING}{rendered}"))
}

/// Counts the stages in each state.
fn headline(data: &WorkspaceReport) -> String {
    let stages = &data.graph.stages;
    let all = stages.len() as u64;
    let mut words: BTreeMap<&str, u64> = BTreeMap::new();
    for stage in stages {
        *words.entry(stage.state.text()).or_default() += 1;
    }
    if words.get(StageWord::UpToDate.text()) == Some(&all) {
        return match all {
            1 => "The stage is up to date.".to_owned(),
            _ => format!("All {} stages are up to date.", grouped(all)),
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

/// Returns the digests of the listed inputs in the workspace as `sha256sum` reads them.
fn input_list(data: &WorkspaceReport, listed: &Value) -> String {
    let listed = listed.get_attr("shown").ok().and_then(|shown| shown.len());
    let inputs = data.inputs.shown.iter().take(listed.unwrap_or(0));
    let inputs = inputs.filter(|input| !input.path.starts_with("project:"));
    lines(&inputs.cloned().collect::<Vec<_>>())
}

/// Returns digests in the format of `sha256sum`, each on its own line; control characters in paths are made visible.
fn lines(files: &[FileDigest]) -> String {
    let line = |file: &FileDigest| {
        let digest = file.digest.strip_prefix("sha256:").unwrap_or(&file.digest);
        format!("{digest}  {}\n", visible(&file.path))
    };
    files.iter().map(line).collect()
}

/// Returns the first entries of a list and the number of the others. `show` returns an entry with texts that fit into its room.
fn listed<T>(list: &CutList<T>, show: impl Fn(&T, usize) -> Value) -> Value {
    let room = ENTRIES / 3 / list.shown.len().max(1);
    let mut left = ENTRIES;
    let shown = list.shown.iter().map(|entry| show(entry, room));
    let fits = |entry: &Value| {
        let text = serde_json::to_string(entry).unwrap_or_default();
        let fits = left.checked_sub(size(&text));
        left = fits.unwrap_or(0);
        fits.is_some()
    };
    let shown: Vec<Value> = shown.take_while(fits).collect();
    let left_out = list.left_out + (list.shown.len() - shown.len()) as u64;
    context! { shown, left_out }
}

/// Returns the most bytes that a text has on the page.
fn size(text: &str) -> usize {
    text.chars().map(size_of).sum()
}

/// Returns the most bytes that a character has on the page. A quotation mark in a text has a backslash before it in JSON, which counts.
fn size_of(char: char) -> usize {
    let is_plain = char.is_alphanumeric() || " .,:;-_/\"{}[]".contains(char);
    if is_plain { char.len_utf8() } else { ESCAPED }
}

/// Returns the reasons that fit, and how many do not.
fn reasons(why: &CutList<String>, room: usize) -> Vec<String> {
    let mut shown = Vec::new();
    let mut left = room;
    for one in &why.shown {
        let text = beginning(one, room);
        let Some(rest) = left.checked_sub(size(&text)) else {
            break;
        };
        left = rest;
        shown.push(text);
    }
    match why.left_out + (why.shown.len() - shown.len()) as u64 {
        0 => {}
        more => shown.push(format!("and {} more", grouped(more))),
    }
    shown
}

/// Returns the beginning of a long text that has so much room.
fn beginning(text: &str, mut room: usize) -> String {
    let mut fits = |char: &char| {
        let left = room.checked_sub(size_of(*char));
        room = left.unwrap_or(0);
        left.is_some()
    };
    let chars = text.chars().take(MESSAGE);
    let beginning: String = chars.take_while(|char| fits(char)).collect();
    match text[beginning.len()..].chars().count() {
        0 => beginning,
        more => format!("{beginning}… ({} more characters)", grouped(more as u64)),
    }
}
