//! The step `wait`: until a file that someone else writes is there, left alone, valid and marked; then it is copied.

use super::command::Deadline;
use super::files;
use super::work::{Said, StepResult, Work, input_failure, output_failure, parse_failure};
use milepost_core::base::duration::show_duration;
use milepost_core::base::path::FilePath;
use milepost_core::base::source::Source;
use milepost_core::expr::scope::Format;
use milepost_core::model::outcome::{Outcome, OutcomeKind};
use milepost_core::model::stage::PathTemplate;
use milepost_store::check::content;
use std::io::{BufReader, ErrorKind};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

/// Violations that are told.
const TOLD: usize = 20;

/// What of a file changes when somebody writes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    size: u64,
    modified: (i64, i64),
}

/// What is not there yet.
#[derive(Debug, Clone)]
enum Lack {
    File,
    Marker(FilePath),
    Rest,
    Valid {
        message: String,
        details: Vec<String>,
    },
}

/// What was seen of the file so far.
#[derive(Default)]
struct Seen {
    /// As it was when it last changed, and when it has been left alone for long enough.
    stamp: Option<(Stamp, Deadline)>,
    /// What is wrong with it as it was at this stamp.
    invalid: Option<(Stamp, Lack)>,
}

/// Does the step.
///
/// # Errors
/// When the time is over, with what is missing; when the run is stopped; when the file cannot be read.
pub(crate) fn wait(
    work: &mut Work<'_>,
    out: &str,
    path: &PathTemplate,
    marker: Option<&PathTemplate>,
    timeout: Duration,
) -> StepResult {
    let file = place(work, path)?;
    let marker = marker.map(|marker| place(work, marker)).transpose()?;
    let end = Deadline::after(timeout);
    let mut seen = Seen::default();
    loop {
        let Some(lack) = look(work, out, &file, marker.as_ref(), &mut seen)? else {
            return Ok(Said::default());
        };
        if work.stop.stopping() || work.alarm.rang().is_some() || end.is_over() {
            return Err(told(&file, lack, timeout));
        }
        let rest = seen
            .stamp
            .map_or(Duration::ZERO, |(_, rested)| rested.left());
        let pause = match lack {
            Lack::Rest => rest,
            _ => work.limits.poll,
        };
        let left = (work.left)().unwrap_or(Duration::MAX).min(end.left());
        // It is looked at once more when the time is over.
        work.stop
            .wait(pause.min(left).max(Duration::from_millis(1)));
    }
}

fn place(work: &Work<'_>, path: &PathTemplate) -> Result<FilePath, Outcome> {
    let scope = work.scope.context_of(&path.template)?;
    let rendered = if path.is_whole() {
        path.template.render(&scope)
    } else {
        path.template.render_path(&scope)
    };
    let rendered = rendered.map_err(parse_failure)?;
    path.place(&rendered)
        .map_err(|error| Outcome::new(OutcomeKind::Path, format!("`{}`: {error}", path.shown())))
}

/// Takes the file, or says what is not there yet.
fn look(
    work: &Work<'_>,
    out: &str,
    file: &FilePath,
    marker: Option<&FilePath>,
    seen: &mut Seen,
) -> Result<Option<Lack>, Outcome> {
    let find = |file: &FilePath| (work.find)(file);
    let Some(found) = find(file)? else {
        seen.stamp = None;
        return Ok(Some(Lack::File));
    };
    if let Some(marker) = marker
        && find(marker)?.is_none()
    {
        return Ok(Some(Lack::Marker(marker.clone())));
    }
    let Some(stamp) = stamp_of(found.path())? else {
        return Ok(Some(Lack::File));
    };
    let rested = match seen.stamp {
        Some((before, rested)) if before == stamp => rested,
        _ => Deadline::after(work.limits.stable),
    };
    seen.stamp = Some((stamp, rested));
    if !rested.is_over() {
        return Ok(Some(Lack::Rest));
    }
    if let Some((_, lack)) = seen.invalid.as_ref().filter(|(before, _)| *before == stamp) {
        return Ok(Some(lack.clone()));
    }
    // Opened after its stamp was taken: what is read is what the stamp is of, or the stamp is another one afterwards.
    let Some(source) = find(file)? else {
        return Ok(Some(Lack::File));
    };
    let lack = invalid(work, out, &*source)?;
    if lack.is_none() {
        files::copy_of(work, out, &*source)?;
    }
    if stamp_of(source.path())? != Some(stamp) {
        seen.stamp = None;
        work.outs
            .clear(out)
            .map_err(|error| output_failure(out, error))?;
        return Ok(Some(Lack::Rest));
    }
    seen.invalid = lack.clone().map(|lack| (stamp, lack));
    Ok(lack)
}

fn stamp_of(path: &Path) -> Result<Option<Stamp>, Outcome> {
    match std::fs::metadata(path) {
        Ok(found) => Ok(Some(Stamp {
            inode: found.ino(),
            size: found.size(),
            modified: (found.mtime(), found.mtime_nsec()),
        })),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(input_failure(&path.display().to_string(), error)),
    }
}

/// What is wrong with the file by the schema of the output that it becomes.
fn invalid(work: &Work<'_>, out: &str, source: &dyn Source) -> Result<Option<Lack>, Outcome> {
    let Some(output) = work.stage.output(out) else {
        return Ok(None);
    };
    let wrong = |error: String| Outcome::new(OutcomeKind::Schema, error);
    let asset = output.schema.as_ref();
    let schema = asset
        .map(|asset| work.schemas.get(asset))
        .transpose()
        .map_err(|error| wrong(error.to_string()))?;
    let schema = schema.as_deref().zip(asset.map(|asset| &asset.path));
    if schema.is_none() && output.columns.is_none() {
        return Ok(None);
    }
    let document = schema.filter(|_| matches!(output.format, Format::Json | Format::Binary));
    let Some((schema, path)) = document else {
        let judged = content::judge(schema, source, &output.reading());
        return Ok(judged.err().map(|outcome| Lack::Valid {
            message: format!("is not valid: {}", outcome.message),
            details: outcome.details,
        }));
    };
    let opened = source
        .open()
        .map_err(|error| input_failure(&source.name(), error))?;
    let reader = BufReader::with_capacity(1 << 16, opened);
    let found = schema
        .validate_stream(reader, output.stream.as_ref(), TOLD)
        .map_err(|error| wrong(error.to_string()))?;
    Ok(found.violations.first().map(|first| Lack::Valid {
        message: format!("does not match {path}: {first}"),
        details: found.violations.iter().map(ToString::to_string).collect(),
    }))
}

/// That the time is over, and what was missing.
fn told(file: &FilePath, lack: Lack, timeout: Duration) -> Outcome {
    let time = show_duration(timeout);
    let (message, details) = match lack {
        Lack::File => (format!("`{file}` was not there within {time}"), Vec::new()),
        Lack::Marker(marker) => {
            let message = format!(
                "`{file}` is there, but `{marker}`, which marks it as whole, was not within {time}"
            );
            (message, Vec::new())
        }
        Lack::Rest => {
            let message = format!("`{file}` was still being changed when its {time} were over");
            (message, Vec::new())
        }
        Lack::Valid { message, details } => {
            let message = format!("`{file}` {message}; nothing else came within {time}");
            (message, details)
        }
    };
    Outcome::new(OutcomeKind::Timeout, message).with_details(details)
}
