//! `run --wait`: waits for the other run in a workspace to end.

use crate::ops::project::error::OpsError;
use crate::ops::project::find::find_project;
use crate::ops::project::open::workspace_of;
use crate::ops::project::request::Request;
use crate::ops::project::snapshot::runner;
use crate::run::notice::{Notice, Observer};
use crate::run::report::Report;
use crate::run::stop::StopFlag;
use milepost_store::store::clock::Stopwatch;
use milepost_store::store::layout::Layout;
use milepost_store::store::lock::LockError;
use std::time::Duration;

/// The time between two checks whether the other run has ended.
const PAUSE: Duration = Duration::from_millis(200);

/// Calls `run` as soon as no other process has locked the workspace.
///
/// # Errors
/// As a run. [`OpsError::Lock`] if the other process still has the lock after `time`.
pub(super) fn run_after_others(
    request: &Request,
    time: Duration,
    observer: &mut dyn Observer,
    stop: &StopFlag,
    run: &dyn Fn(&mut dyn Observer) -> Result<Report, OpsError>,
) -> Result<Report, OpsError> {
    let layout = Layout::new(workspace_of(request, &find_project(&request.folder)?));
    let watch = Stopwatch::start();
    let mut shown = None;
    loop {
        let left = time.saturating_sub(watch.elapsed());
        let other = runner(&layout).filter(|other| other.pid != std::process::id());
        if other.is_none() || left.is_zero() {
            match run(observer) {
                // Another process that waited took the lock first, or the holder has not written its name yet.
                Err(OpsError::Lock(error @ LockError::Taken { .. }))
                    if !error.is_ours() && !left.is_zero() => {}
                ended => return ended,
            }
        }
        if let Some(other) = other.filter(|other| shown.as_ref() != Some(other)) {
            observer.notice(Notice::WaitingForRun {
                command: other.command.clone(),
                pid: other.pid,
            });
            shown = Some(other);
        }
        if stop.is_set() {
            return Ok(interrupted(&layout, &watch));
        }
        stop.pause(PAUSE.min(left));
    }
}

/// Returns the report of a run that was stopped before it began.
fn interrupted(layout: &Layout, watch: &Stopwatch) -> Report {
    Report {
        workspace: layout.root().display().to_string(),
        interrupted: true,
        seconds: watch.elapsed().as_secs_f64(),
        ..Report::default()
    }
}
