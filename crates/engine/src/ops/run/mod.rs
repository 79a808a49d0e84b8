//! Runs a project's pipeline over a workspace.

pub mod job;
pub mod reported;
pub mod result;
pub(crate) mod selected;
pub(crate) mod up_to_date;
mod wait;
pub mod watch_plan;
pub mod workspaces;

use crate::ops::plan::{PlanDetails, plan_of};
use crate::ops::project::error::OpsError;
use crate::ops::project::lock::lock;
use crate::ops::project::open::open;
use crate::ops::project::open_project::OpenProject;
use crate::ops::project::request::Request;
use crate::ops::project::stored_values::{check_agents, keep, notes};
use crate::ops::run::selected::selection;
use crate::run::agents::project_agents::Purpose;
use crate::run::engine;
use crate::run::error::RunError;
use milepost_core::base::digest::Digest;
use milepost_store::store::manifest::ManifestError;

pub use crate::ops::run::job::{JOB_WORKER, run_job};
pub use crate::run::expected::ExpectedStage;
pub use crate::run::notice::{Notice, Observer, ProviderBatchUpdate, Repair, Silent};
pub use crate::run::record::quarantined::{Content, KeptFile, Removal};
pub use crate::run::report::{Report, StageReport, StageStatus};
pub use crate::run::stop::{StopFlag, WORKER, adopt_orphans, ignored_signals, serve, use_workers};
pub use milepost_core::plan::options::{RunOptions, Timing, Values};
pub use milepost_store::store::clock::Stopwatch;

/// Runs every selected stage that is out of date.
///
/// # Errors
/// When there is no project, its declarations are wrong, another process has locked the workspace, or the disk fails.
pub fn run(
    request: &Request,
    options: &RunOptions,
    observer: &mut dyn Observer,
    stop: &StopFlag,
) -> Result<Report, OpsError> {
    match options.wait {
        Some(time) => wait::run_after_others(request, time, observer, stop, &|observer| {
            run_once(request, options, observer, stop)
        }),
        None => run_once(request, options, observer, stop),
    }
}

/// Checks, under the lock, that the run does what a person was shown.
fn check_shown(
    opened: &OpenProject,
    request: &Request,
    options: &RunOptions,
    shown: Digest,
) -> Result<(), OpsError> {
    let mut now = open(request)?;
    now.is_locked = true;
    let plan = plan_of(&mut now, request, options, PlanDetails::WITH_FACTS)?;
    let is_as_shown = now.declared == opened.declared && plan.digest() == shown;
    is_as_shown.then_some(()).ok_or(OpsError::NotAsShown("run"))
}

fn run_once(
    request: &Request,
    options: &RunOptions,
    observer: &mut dyn Observer,
    stop: &StopFlag,
) -> Result<Report, OpsError> {
    let mut opened = open(request)?;
    let selection = selection(&opened, options)?;
    if !opened.warnings.is_empty() {
        let warnings = opened.warnings.clone();
        observer.notice(Notice::Warned { warnings });
    }
    check_agents(&opened)?;
    let stored = notes(&opened);
    if !stored.is_empty() {
        observer.notice(Notice::Stored {
            notes: stored.clone(),
        });
    }
    // Locking reads the identity of the workspace again, without the day that was set.
    let today = opened.workspace.identity.today;
    let watch = Stopwatch::start();
    // A new workspace has no records that another run could change.
    let was_made = opened.workspace.is_made;
    let mut lock = lock(&mut opened, &request.command)?;
    if let Some(shown) = request.shown.filter(|_| was_made) {
        check_shown(&opened, request, options, shown)?;
    }
    let folders = std::mem::take(&mut lock.open_folders);
    if !folders.is_empty() {
        observer.notice(Notice::OpenFolders { folders });
    }
    let imported = keep(&mut opened, request, &lock.run_id, Some(today))?;
    if !imported.is_empty() {
        let files = imported.clone();
        observer.notice(Notice::Kept { files });
    }
    if options.covers_everything() {
        if let Some(stages) = up_to_date::before_a_run(&mut opened) {
            for stage in &stages {
                observer.notice(Notice::StageEnded(Box::new(stage.clone())));
            }
            return Ok(Report {
                run_id: lock.run_id,
                workspace: opened.workspace.layout.root().display().to_string(),
                quarantined: imported,
                stages,
                stored,
                seconds: watch.elapsed().as_secs_f64(),
                ..Report::default()
            });
        }
        up_to_date::note_state(&opened);
    }
    opened.check_schemas()?;
    let locked = lock.read(&opened)?;
    let cut = locked.cut.as_ref();
    let cut = cut.map(|cut| Repair::JournalCut { bytes: cut.bytes });
    let rebuilt = locked.rebuilt.iter().cloned();
    let rebuilt = rebuilt.map(|stage| Repair::ManifestRebuilt { stage });
    let repairs: Vec<Repair> = cut.into_iter().chain(rebuilt).collect();
    if !repairs.is_empty() {
        observer.notice(Notice::Recovered { repairs });
    }
    let purpose = if options.until_paid {
        Purpose::Plan
    } else {
        Purpose::Run
    };
    let agents = opened.agents(purpose, request)?;
    let mut report = engine::run(
        opened.context(),
        locked.state,
        locked.journal,
        &selection,
        &request.command,
        &agents,
        observer,
        stop,
    );
    if matches!(
        &report,
        Err(RunError::Manifest(ManifestError::Moving { .. }))
    ) {
        // A page is another than the notes say: the next run reads all of them.
        let _ = opened
            .disk
            .remove_file(&opened.workspace.layout.up_to_date_notes());
    }
    // Only caches: the run succeeds without them.
    let _ = opened.cache.save(&opened.disk);
    if let Ok(report) = &mut report {
        report.stored = stored;
        let _ = up_to_date::keep(&opened, report);
        report.quarantined.splice(0..0, imported);
    }
    drop(locked.lock);
    Ok(report?)
}
