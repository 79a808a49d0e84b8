//! The step `wait`: waits until a file that another process writes is present, unchanged for a while, valid and marked, and
//! copies it.

use super::batch_context::{
    BatchContext, StepReport, StepResult, input_failure, output_failure, parse_failure,
};
use super::command::Deadline;
use super::files;
use milepost_core::base::duration::show_duration;
use milepost_core::base::path::FilePath;
use milepost_core::base::source::Source;
use milepost_core::expr::scope::Format;
use milepost_core::model::outcome::{Outcome, OutcomeKind};
use milepost_core::model::stage::{ExpressionError, PathTemplate};
use milepost_core::plan::paths;
use milepost_store::check::content;
use milepost_store::store::stamp::FileStamp;
use std::io::{BufReader, ErrorKind};
use std::path::Path;
use std::time::Duration;

/// The most violations that are shown.
const SHOWN: usize = 20;

/// The reason why the step still waits.
#[derive(Debug, Clone)]
enum WaitBlocker {
    File,
    Marker(FilePath),
    Rest,
    Invalid {
        message: String,
        details: Vec<String>,
    },
}

/// The observations of the file so far.
#[derive(Default)]
struct WatchedFile {
    /// The current version, and when it will have been unchanged for long enough.
    stamp: Option<(FileStamp, Deadline)>,
    /// The version that was invalid, and why.
    invalid: Option<(FileStamp, WaitBlocker)>,
}

/// Runs the step.
///
/// # Errors
/// When the time is over, the run is stopped, or the file cannot be read.
pub(crate) fn wait(
    ctx: &mut BatchContext<'_>,
    out: &str,
    path: &PathTemplate,
    marker: Option<&PathTemplate>,
    timeout: Duration,
) -> StepResult {
    let file = place(ctx, path)?;
    let marker = marker.map(|marker| place(ctx, marker)).transpose()?;
    let end = Deadline::after(timeout);
    let mut watched = WatchedFile::default();
    loop {
        let Some(blocker) = look(ctx, out, &file, marker.as_ref(), &mut watched)? else {
            return Ok(StepReport::default());
        };
        if ctx.stop.stopping() || ctx.cancel.reason().is_some() || end.is_over() {
            return Err(timeout_outcome(&file, blocker, timeout));
        }
        let rest = watched
            .stamp
            .map_or(Duration::ZERO, |(_, rested)| rested.left());
        let pause = match blocker {
            WaitBlocker::Rest => rest,
            _ => ctx.limits.poll,
        };
        let left = (ctx.left)().unwrap_or(Duration::MAX).min(end.left());
        // The file is checked once more when the time is over.
        ctx.stop.wait(pause.min(left).max(Duration::from_millis(1)));
    }
}

fn place(ctx: &BatchContext<'_>, path: &PathTemplate) -> Result<FilePath, Outcome> {
    let scope = ctx.scope.context_of(&path.template)?;
    paths::render(path, &scope).map_err(|error| match error {
        ExpressionError::Path { .. } => Outcome::new(OutcomeKind::Path, error.to_string()),
        error => parse_failure(error),
    })
}

/// Copies the file, or returns what is still missing.
fn look(
    ctx: &BatchContext<'_>,
    out: &str,
    file: &FilePath,
    marker: Option<&FilePath>,
    watched: &mut WatchedFile,
) -> Result<Option<WaitBlocker>, Outcome> {
    let find = |file: &FilePath| (ctx.find)(file);
    let Some(found) = find(file)? else {
        watched.stamp = None;
        return Ok(Some(WaitBlocker::File));
    };
    if let Some(marker) = marker
        && find(marker)?.is_none()
    {
        return Ok(Some(WaitBlocker::Marker(marker.clone())));
    }
    let Some(stamp) = stamp_of(found.path())? else {
        return Ok(Some(WaitBlocker::File));
    };
    let rested = match watched.stamp {
        Some((before, rested)) if before == stamp => rested,
        _ => Deadline::after(ctx.limits.stable),
    };
    watched.stamp = Some((stamp, rested));
    if !rested.is_over() {
        return Ok(Some(WaitBlocker::Rest));
    }
    if let Some((_, blocker)) = watched
        .invalid
        .as_ref()
        .filter(|(before, _)| *before == stamp)
    {
        return Ok(Some(blocker.clone()));
    }
    // The file is opened after its version was read. If it changed meanwhile, the version differs afterwards.
    let Some(source) = find(file)? else {
        return Ok(Some(WaitBlocker::File));
    };
    let blocker = invalid(ctx, out, &*source)?;
    if blocker.is_none() {
        files::copy_of(ctx, out, &*source)?;
    }
    if stamp_of(source.path())? != Some(stamp) {
        watched.stamp = None;
        ctx.outputs
            .clear(out)
            .map_err(|error| output_failure(out, error))?;
        return Ok(Some(WaitBlocker::Rest));
    }
    watched.invalid = blocker.clone().map(|blocker| (stamp, blocker));
    Ok(blocker)
}

fn stamp_of(path: &Path) -> Result<Option<FileStamp>, Outcome> {
    match std::fs::metadata(path) {
        Ok(found) => Ok(Some(FileStamp::of(&found))),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(input_failure(&path.display().to_string(), error)),
    }
}

/// Validates the file by the schema of its output.
fn invalid(
    ctx: &BatchContext<'_>,
    out: &str,
    source: &dyn Source,
) -> Result<Option<WaitBlocker>, Outcome> {
    let Some(output) = ctx.stage.output(out) else {
        return Ok(None);
    };
    let wrong = |error: String| Outcome::new(OutcomeKind::Schema, error);
    let asset = output.schema.as_ref();
    let schema = asset
        .map(|asset| ctx.schemas.get(asset))
        .transpose()
        .map_err(|error| wrong(error.to_string()))?;
    let schema = schema.as_deref().zip(asset.map(|asset| &asset.path));
    if schema.is_none() && output.columns.is_none() {
        return Ok(None);
    }
    let document = schema.filter(|_| matches!(output.format, Format::Json | Format::Binary));
    let Some((schema, path)) = document else {
        let judged = content::validate(schema, source, &output.reading());
        return Ok(judged.err().map(|outcome| WaitBlocker::Invalid {
            message: format!("is not valid: {}", outcome.message),
            details: outcome.details,
        }));
    };
    let opened = source
        .open()
        .map_err(|error| input_failure(&source.name(), error))?;
    let reader = BufReader::with_capacity(1 << 16, opened);
    let found = schema
        .validate_stream(reader, output.stream.as_ref(), SHOWN)
        .map_err(|error| wrong(error.to_string()))?;
    Ok(found.violations.first().map(|first| WaitBlocker::Invalid {
        message: format!("does not match {path}: {first}"),
        details: found.violations.iter().map(ToString::to_string).collect(),
    }))
}

/// Returns the outcome of a wait that timed out.
fn timeout_outcome(file: &FilePath, blocker: WaitBlocker, timeout: Duration) -> Outcome {
    let time = show_duration(timeout);
    let (message, details) = match blocker {
        WaitBlocker::File => (format!("`{file}` did not appear within {time}"), Vec::new()),
        WaitBlocker::Marker(marker) => {
            let message =
                format!("`{file}` exists, but its marker `{marker}` did not appear within {time}");
            (message, Vec::new())
        }
        WaitBlocker::Rest => {
            let message = format!("`{file}` was still changing after {time}");
            (message, Vec::new())
        }
        WaitBlocker::Invalid { message, details } => {
            let message = format!("`{file}` {message}; no valid version appeared within {time}");
            (message, details)
        }
    };
    Outcome::new(OutcomeKind::Timeout, message).with_details(details)
}
