//! Runs a project's pipeline over a workspace.

use super::choices::{check_agents, keep, notes};
use super::glance;
use super::hold::take;
use super::open::{Opened, OpsError, Request, open};
use crate::run::agents::{Purpose, agents};
use crate::run::calls::Purse;
use crate::run::engine;
use crate::run::report::{Options, Pace};
use milepost_core::model::money::NanoUsd;
use milepost_core::plan::selection::{Selection, Target, Tried};
use std::collections::BTreeMap;
use std::time::Duration;

pub use crate::run::kept::{Content, KeptFile, Removal};
pub use crate::run::notice::{Notice, Observer, Silent};
pub use crate::run::report::{Report, StageReport, StageStatus};
pub use crate::run::stop::{StopFlag, adopt_orphans};
pub use milepost_store::store::clock::Stopwatch;

/// What to run, as on the command line.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag of the command line, by its name"
)]
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    /// `STAGE` or `STAGE/BATCH`.
    pub targets: Vec<String>,
    /// The last stage.
    pub until: Option<String>,
    /// At most so many batches.
    pub limit: Option<u64>,
    /// Only batches that failed.
    pub failed: bool,
    /// Run in any case.
    pub force: bool,
    /// Forget that earlier runs with `--force` did not rebuild what is selected.
    pub no_force: bool,
    /// Go on after a failed batch.
    pub keep_going: bool,
    /// Of one who watches: the batches that are left, having failed with these facts.
    pub watched: Option<Tried>,
    /// Ask for answers that are kept once more.
    pub fresh: bool,
    /// What the run may spend.
    pub budget: Option<NanoUsd>,
    /// Ask no agent that costs something.
    pub until_paid: bool,
    /// Batches at once, for stages that declare nothing.
    pub jobs: Option<usize>,
    /// How long a program gets to end after SIGTERM.
    pub grace: Option<Duration>,
    /// The wait after a first failed try.
    pub backoff: Option<Duration>,
    /// How often a file that someone else writes is looked for.
    pub poll: Option<Duration>,
    /// How long such a file must have been left alone.
    pub stable: Option<Duration>,
    /// How long a service may take until it answers.
    pub ready: Option<Duration>,
    /// The command line, for the journal and the lock.
    pub command: String,
}

/// The selection that a command line stands for.
///
/// # Errors
/// When a stage is not declared.
pub fn selection(opened: &Opened, wanted: &Wanted) -> Result<Selection, OpsError> {
    let parse = |text: &String| {
        Target::parse(&opened.pipeline, text).map_err(|error| {
            let help = file_help(opened, text).unwrap_or_default();
            OpsError::Usage(format!("{error}{help}"))
        })
    };
    let until = wanted.until.as_ref().map(parse).transpose()?;
    Ok(Selection {
        targets: wanted.targets.iter().map(parse).collect::<Result<_, _>>()?,
        until: until.map(|target| target.stage),
        limit: wanted.limit,
        failed: wanted.failed,
        force: wanted.force,
        no_force: wanted.no_force,
        keep_going: wanted.keep_going,
        watched: wanted.watched.clone(),
    })
}

/// What to type for a file that was named where a stage is expected; none where there is no such file.
fn file_help(opened: &Opened, text: &str) -> Option<String> {
    let inside = opened.workspace.layout.root().join(text);
    if ![opened.folder.join(text), inside]
        .iter()
        .any(|path| path.is_file())
    {
        return None;
    }
    let word = if text.contains(char::is_whitespace) {
        format!("'{text}'")
    } else {
        text.to_owned()
    };
    let params = opened
        .pipeline
        .params
        .iter()
        .filter(|param| param.file.is_some());
    let ways: Vec<String> = params
        .map(|param| format!("`milepost run --set {}={word}`", param.name))
        .collect();
    Some(if ways.is_empty() {
        format!(
            "\nhelp: `{text}` is a file, and no parameter of this project takes one: put it under `inputs/` of the workspace, and run without it"
        )
    } else {
        format!(
            "\nhelp: `{text}` is a file; to read it: {}",
            ways.join(" or ")
        )
    })
}

/// Runs what is wanted.
///
/// # Errors
/// When there is no project, its declarations are wrong, another run has the workspace, or the disk fails.
pub fn run(
    request: &Request,
    wanted: &Wanted,
    observer: &mut dyn Observer,
    stop: &StopFlag,
) -> Result<Report, OpsError> {
    let mut opened = open(request)?;
    let selection = selection(&opened, wanted)?;
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
    // Taking the workspace reads its identity anew, without the day that was set.
    let today = opened.workspace.identity.today;
    let watch = Stopwatch::start();
    let taken = take(&mut opened, &wanted.command)?;
    let imported = keep(&mut opened, request, &taken.run_id, Some(today))?;
    if !imported.is_empty() {
        let files = imported.clone();
        observer.notice(Notice::Kept { files });
    }
    let can_tell = glance::can_tell(wanted);
    if can_tell {
        if let Some(stages) = glance::before_a_run(&mut opened) {
            for stage in &stages {
                observer.notice(Notice::StageEnded(Box::new(stage.clone())));
            }
            return Ok(Report {
                run_id: taken.run_id,
                workspace: opened.workspace.layout.root().display().to_string(),
                forgotten: Vec::new(),
                quarantined: imported,
                stages,
                stored,
                interrupted: false,
                under_way: 0,
                seconds: watch.elapsed().as_secs_f64(),
            });
        }
        glance::note_state(&opened);
    }
    let held = taken.read(&opened)?;
    if let Some(cut) = &held.cut {
        let what = format!(
            "cut {} bytes of a record that was being written when the last run ended",
            cut.bytes
        );
        observer.notice(Notice::Recovered { what: vec![what] });
    }
    let options = Options {
        jobs: wanted.jobs,
        environment: usual_environment(&request.environment),
        grace: wanted.grace.unwrap_or(Duration::from_secs(5)),
        backoff: wanted.backoff.unwrap_or(Duration::from_secs(1)),
        purse: Purse {
            run: wanted.budget,
            workspace: opened.pipeline.limits.usd,
            calls: opened.pipeline.limits.calls,
            tokens: opened.pipeline.limits.tokens,
            time: opened.pipeline.limits.time,
            only_free: wanted.until_paid,
        },
        fresh: wanted.fresh,
        poll: wanted.poll.unwrap_or(Duration::from_secs(5)),
        stable: wanted.stable.unwrap_or(Duration::from_secs(1)),
        ready: wanted.ready.unwrap_or(Duration::from_mins(1)),
        pace: Pace::from_setting(request.environment.get("MILEPOST_PACE").map(String::as_str)),
    };
    let purpose = if wanted.until_paid {
        Purpose::Plan
    } else {
        Purpose::Run
    };
    let agents = agents(
        purpose,
        &opened.pipeline,
        &opened.project,
        &request.environment,
    );
    let agents = agents.map_err(OpsError::World)?;
    let mut report = engine::run(
        opened.context(),
        held.state,
        held.journal,
        &selection,
        &options,
        &wanted.command,
        &agents,
        observer,
        stop,
    );
    // Only caches: a run is not lost for them.
    let _ = opened.cache.save(&opened.disk);
    if let Ok(report) = &mut report {
        report.stored = stored;
        let _ = glance::keep(&opened, report);
        report.quarantined.splice(0..0, imported);
    }
    drop(held.lock);
    Ok(report?)
}

/// What programs of steps see of the environment, beside what they declare.
fn usual_environment(all: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    ["PATH", "HOME", "LANG"]
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), all.get(*name)?.clone())))
        .collect()
}

/// Returns the exit code of a report: the first that holds of 130 interrupted, 5 modified by hand, 1 a batch failed or a verdict is
/// no, 3 partial by policy or waiting; else 0.
pub fn exit_code(report: &Report) -> u8 {
    let any = |status: StageStatus| report.stages.iter().any(|stage| stage.status == status);
    let failed = |stage: &StageReport| stage.failure || stage.verdict == Some(false);
    if report.interrupted {
        130
    } else if any(StageStatus::Altered) {
        5
    } else if report.stages.iter().any(failed) {
        1
    } else if any(StageStatus::Partial) || any(StageStatus::Held) || any(StageStatus::Blocked) {
        3
    } else {
        0
    }
}
