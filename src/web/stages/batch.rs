//! A batch: why it is in its state, its files, violations, calls, iterations and log, and what can be done about it.

use super::versions::LastVersion;
use crate::page::value;
use crate::view;
use crate::view::text::words::{place, target};
use crate::web::calls::lines;
use crate::web::request::PageRequest;
use crate::web::response::{PageResponse, WebError};
use crate::web::review::reviewer::{remember, reviewer};
use crate::web::site::Site;
use milepost_core::model::event::Event;
use milepost_engine::ops;
use milepost_engine::ops::inspect::batches::{BatchQuery, BatchRow};
use milepost_engine::ops::inspect::file::{FileViolation, SetAsideFile};
use milepost_engine::ops::inspect::log::{Log, LogOptions};
use milepost_engine::ops::project::OpsError;
use milepost_engine::ops::why::{BatchWhy, FileState, InputFile, OutputFile, Verdict, Why};
use minijinja::{Value, context};
use serde::Serialize;

/// The most records of the log that are shown.
const RECORDS: usize = 200;

/// The most files of a kind that are listed.
const FILES: usize = 200;

/// The most files that are validated, and their size in bytes.
const VALIDATED: (usize, u64) = (10, 1 << 20);

/// An input or output in a table.
#[derive(Serialize)]
struct FileLine {
    path: String,
    href: String,
    digest: Option<String>,
    size: Option<u64>,
    /// The class of its mark.
    kind: &'static str,
    word: &'static str,
    /// The batch that built an input, as `STAGE/BATCH`.
    made_by: Option<String>,
}

/// Violations of one file.
#[derive(Serialize)]
struct Invalid {
    path: String,
    href: String,
    schema: String,
    violations: Vec<FileViolation>,
}

/// Shows a batch.
pub(in crate::web) fn batch(site: &Site, request: &PageRequest) -> Result<PageResponse, WebError> {
    let stage = request.required("stage")?;
    let key = request.query("batch").unwrap_or_default();
    let name = target(stage, key);
    let row = row(site, stage, key)?;
    let now = site.live.changes(None)?;
    // If the outputs change after this, the page shows others, and their acceptance is refused.
    let shown_outputs = ops::change::accept::shown(&site.request, stage, key)?;
    let (why, problem) = match ops::why::why(&site.request, &name) {
        Ok(Why::Batch(why)) => (Some(*why), None),
        Ok(_) => return Err(WebError::Wrong(format!("there is no batch `{name}`"))),
        Err(OpsError::Usage(problem)) if row.is_some() => (None, Some(problem)),
        Err(error) => return Err(error.into()),
    };
    let options = LogOptions {
        target: Some(name.clone()),
        limit: Some(RECORDS),
        unchecked: true,
        ..LogOptions::default()
    };
    let log = ops::inspect::log::log(&site.request, &options)?;
    let outputs: Vec<&str> = why
        .iter()
        .flat_map(|why| &why.outputs)
        .map(|output| output.path.as_str())
        .collect();
    let quarantine = why.as_ref().and_then(|why| why.quarantine.as_deref());
    let set_aside = site.live.set_aside(&outputs, quarantine)?;
    let files = outputs
        .iter()
        .copied()
        .chain(set_aside.iter().map(|file| file.path.as_str()));
    let data = context! {
        stage,
        batch => key,
        name => place(stage, key),
        target => name,
        row => value(&row),
        problem,
        is_running => now.running,
        iterations => iterations(&log),
        version => value(LastVersion::of(&log.records)),
        printed => log.printed.len(),
        log => view::log::log(&log),
        invalid => value(invalid(site, files)),
        set_aside => set_aside.iter().map(|file| kept(site, file)).collect::<Vec<_>>(),
        why => why.map(|why| shown(site, &why)).transpose()?,
        shown => value(shown_outputs),
        who => reviewer(site, request),
        reason => request.query("why"),
        has_changed => request.query("changed").is_some(),
        at => now.at,
    };
    Ok(site.page("batch.html", "stages", &place(stage, key), data)?)
}

/// Accepts the modified outputs of a batch.
pub(in crate::web) fn accept(site: &Site, request: &PageRequest) -> Result<PageResponse, WebError> {
    let lacks = |name: &str| WebError::Wrong(format!("the form lacks the field `{name}`"));
    let stage = request.form("stage").ok_or_else(|| lacks("stage"))?;
    let key = request.form("batch").unwrap_or_default();
    let name = target(stage, key);
    let mut by = site.request.clone();
    by.command = format!("milepost accept {name} (page)");
    let shown = request.form("shown").and_then(|shown| shown.parse().ok());
    let options = ops::change::accept::AcceptOptions {
        targets: vec![name],
        why: request.form("why").unwrap_or_default().to_owned(),
        who: request.form("who").map(str::to_owned),
        changes: Vec::new(),
        expected: Some(shown.ok_or_else(|| lacks("shown"))?),
    };
    let mut parameters = vec![("stage", stage), ("batch", key)];
    match ops::change::accept::accept(&by, &options) {
        Ok(_) => {}
        Err(OpsError::NotAsShown(_)) => {
            parameters.extend([("changed", "1"), ("why", options.why.as_str())]);
        }
        Err(error) => return Err(error.into()),
    }
    let shown = PageResponse::see(&site.url("batch", &parameters));
    Ok(remember(shown, request.form("who").unwrap_or_default()))
}

/// Returns the batch as the table of its stage shows it; `None` if no run has begun it.
fn row(site: &Site, stage: &str, key: &str) -> Result<Option<BatchRow>, WebError> {
    let query = BatchQuery {
        name: Some(key.to_owned()),
        ..BatchQuery::default()
    };
    let page = site.live.batches(stage, &query)?;
    Ok(page.rows.into_iter().next())
}

fn kept(site: &Site, file: &SetAsideFile) -> Value {
    let text = view::diff::value;
    // Each difference: the pointer, the value there, and the present one.
    let differences = file.changes.as_ref().map(|changes| {
        let changes = changes.iter();
        let changes = changes.map(|one| {
            (
                one.field.as_str(),
                text(one.old.as_ref()),
                text(one.new.as_ref()),
            )
        });
        changes.collect::<Vec<_>>()
    });
    context! {
        href => site.url("file", &[("path", &file.path)]),
        differences => value(differences),
        ..value(file)
    }
}

fn iterations(log: &Log) -> Vec<Value> {
    let records = log.records.iter();
    let judged = records.filter_map(|record| match &record.event {
        Event::RoundJudged { round, .. } => Some(context! {
            run => record.run_id.clone(),
            when => record.timestamp.to_string(),
            summary_text => round.summary.as_ref().map(ToString::to_string),
            ..value(round)
        }),
        _ => None,
    });
    judged.collect()
}

/// Validates the first small files.
fn invalid<'a>(site: &Site, files: impl Iterator<Item = &'a str>) -> Vec<Invalid> {
    let (most, size) = VALIDATED;
    let found = files.take(most).filter_map(|path| {
        // A file that cannot be read says so on its own page.
        let check = site.live.file_check(path, size).ok().flatten()?;
        (!check.violations.is_empty()).then(|| Invalid {
            path: path.to_owned(),
            href: site.url("file", &[("path", path)]),
            schema: check.schema,
            violations: check.violations,
        })
    });
    found.collect()
}

fn shown(site: &Site, why: &BatchWhy) -> Result<Value, OpsError> {
    let outputs: Vec<FileLine> = why
        .outputs
        .iter()
        .take(FILES)
        .map(|file| output(site, file))
        .collect();
    let inputs: Vec<FileLine> = why
        .inputs
        .iter()
        .take(FILES)
        .map(|file| input(site, file, why.made.is_some()))
        .collect();
    let calls = why.asked.as_ref().map(|asked| {
        let mut calls = asked.calls.clone();
        site.live.mark_invalid_answers(&mut calls).map(|()| calls)
    });
    let calls = calls.transpose()?;
    let is_modified = matches!(why.verdict, Verdict::Modified { .. })
        || why
            .outputs
            .iter()
            .any(|file| file.state == FileState::Modified);
    Ok(context! {
        decision => view::why::decision(&why.verdict),
        made => why.made.as_ref().map(|made| view::why::made_by(made).trim_start().to_owned()),
        failed => value(&why.failed),
        quarantine => why.quarantine.clone(),
        asked => value(&why.asked),
        spent => why.asked.as_ref().map(|asked| view::calls::spent(&asked.spent)),
        calls => calls.map(|calls| lines(&calls)),
        inputs => value(inputs),
        more_inputs => why.inputs.len().saturating_sub(FILES),
        outputs => value(outputs),
        more_outputs => why.outputs.len().saturating_sub(FILES),
        made_from => value(&why.made_from),
        judged_by => value(&why.judged_by),
        is_modified,
    })
}

fn output(site: &Site, file: &OutputFile) -> FileLine {
    let (kind, word) = match file.state {
        FileState::AsMade => ("matches", "matches"),
        FileState::Accepted => ("modified", "modified by hand, accepted"),
        FileState::Modified => ("modified", "modified"),
        FileState::Deleted => ("failed", "deleted"),
    };
    FileLine {
        path: file.path.clone(),
        href: site.url("file", &[("path", &file.path)]),
        digest: Some(file.digest.to_string()),
        size: Some(file.size),
        kind,
        word,
        made_by: None,
    }
}

fn input(site: &Site, file: &InputFile, is_made: bool) -> FileLine {
    let (kind, word) = match (&file.recorded, &file.present) {
        (Some(recorded), Some(present)) if recorded == present => ("matches", "matches"),
        (Some(_), Some(_)) => ("modified", "changed"),
        (None, Some(_)) if !is_made => ("idle", "present"),
        (None, Some(_)) => ("modified", "not read before"),
        (_, None) => ("idle", "no longer read"),
    };
    FileLine {
        path: file.path.clone(),
        href: site.url("file", &[("path", &file.path)]),
        digest: file.present.clone().or_else(|| file.recorded.clone()),
        size: None,
        kind,
        word,
        made_by: file.made_by.clone(),
    }
}
