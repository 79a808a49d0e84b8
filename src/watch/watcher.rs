//! Connects the state machine to disk and clock: waits for changes, scans, runs.

use super::folders::Folders;
use super::machine::{Decision, Machine, Next, Observation, Pace, PendingKind, Remedy};
use super::notify::Notify;
use super::pending;
use crate::view::run::watch::Unresolved;
use milepost_core::model::money::NanoUsd;
use milepost_engine::ops::plan::Plan;
use milepost_engine::ops::project::snapshot::Runner;
use milepost_engine::ops::project::{OpsError, Request};
use milepost_engine::ops::run::reported::ReportedChanges;
use milepost_engine::ops::run::watch_plan::{
    Position, RunFolders, Sources, WatchPlan, journal_end, plan_for_watch, run_folders,
};
use milepost_engine::ops::run::{
    Observer, Report, RunOptions, StageStatus, StopFlag, Stopwatch, run,
};
use notify::{RecommendedWatcher, Watcher as _, WatcherKind};
use std::sync::Arc;
use std::time::Duration;

/// The interval of scans if there are too many folders to watch.
const INSTEAD: Duration = Duration::from_secs(2);

/// A run, or a plan without one, is followed by a full check if the last such check is older than this: not every change is reported.
const CHECK_ALL: Duration = Duration::from_mins(10);

/// The options of a watch.
#[derive(Debug, Clone)]
pub(crate) struct WatchSettings {
    /// The options of each run. The budget is for all runs together.
    pub(crate) options: RunOptions,
    pub(crate) pace: Pace,
}

/// The next action of the caller of a watch.
#[derive(Debug)]
pub(crate) enum WatchAction {
    Report(WatchEvent),
    /// Call [`Watcher::run`], which carries out this plan.
    Run(Box<Plan>),
    End,
}

/// An event between the runs of a watch.
#[derive(Debug)]
pub(crate) enum WatchEvent {
    /// The watch waits for changes.
    Idle(Unresolved),
    /// Nothing can run until a person acts.
    NeedsPerson(Box<Plan>),
    /// There is no plan, because of this error.
    Invalid(OpsError),
    /// Another run is in progress.
    Busy(Box<Runner>),
    /// Folders, or the file of the project, are missing.
    Missing(Sources),
    /// The next run is delayed by this time, because runs change their own inputs.
    Delayed(Duration),
    /// The watch polls at this interval, because of this error.
    Polling(Duration, String),
}

/// Watches a project and a workspace.
pub(crate) struct Watcher {
    request: Request,
    settings: WatchSettings,
    roots: RunFolders,
    machine: Machine,
    notify: Arc<Notify>,
    folders: Option<Folders>,
    /// Folders of inputs, as of the last plan.
    sources: Sources,
    /// The end of the journal, as of the last scan.
    journal: Option<Position>,
    since: Stopwatch,
    spent: NanoUsd,
    /// Events to report later.
    later: Vec<WatchEvent>,
    has_scanned: bool,
}

impl Watcher {
    /// Starts to watch.
    ///
    /// # Errors
    /// If there is no project.
    pub(crate) fn new(
        request: Request,
        settings: WatchSettings,
        notify: Arc<Notify>,
    ) -> Result<Self, OpsError> {
        let roots = run_folders(&request)?;
        let mut watcher = Self {
            machine: Machine::new(settings.pace),
            request,
            settings,
            roots,
            notify,
            folders: None,
            sources: Sources::new(),
            journal: None,
            since: Stopwatch::start(),
            spent: NanoUsd::ZERO,
            later: Vec::new(),
            has_scanned: false,
        };
        if watcher.settings.pace.poll.is_none() {
            let real = watcher.roots.real();
            let reported = Arc::new(ReportedChanges::new(&real.workspace));
            let notify = Arc::clone(&watcher.notify);
            match Folders::new(&real, notify, Arc::clone(&reported)) {
                Ok(folders) => {
                    watcher.folders = Some(folders);
                    // Other systems may report a path in another spelling.
                    let is_exact = RecommendedWatcher::kind() == WatcherKind::Inotify;
                    watcher.request.reported = is_exact.then_some(reported);
                }
                Err(error) => watcher.poll_instead(&error),
            }
        }
        Ok(watcher)
    }

    /// Returns the watched folders.
    pub(crate) fn roots(&self) -> &RunFolders {
        &self.roots
    }

    /// Waits for the next action.
    ///
    /// # Errors
    /// If the options do not fit the project.
    pub(crate) fn next(&mut self) -> Result<WatchAction, OpsError> {
        loop {
            if self.notify.ends() {
                return Ok(WatchAction::End);
            }
            if let Some(event) = self.later.pop() {
                return Ok(WatchAction::Report(event));
            }
            let now = self.since.elapsed();
            match self.machine.next(now) {
                Next::Wait(until) => {
                    let most = until.map(|until| until.saturating_sub(now));
                    if self.notify.wait(most) {
                        self.machine.changed(self.since.elapsed());
                    }
                }
                Next::CheckJournal => {
                    let has_moved = journal_end(&self.roots) != self.journal;
                    self.machine
                        .checked_journal(self.since.elapsed(), has_moved);
                }
                Next::Scan => {
                    if let Some(due) = self.scan()? {
                        return Ok(due);
                    }
                }
            }
        }
    }

    /// Runs what the last scan found. Returns `None` if the run could not start, because of another run or changed declarations.
    ///
    /// # Errors
    /// If the run ended with an error. The watch can continue.
    pub(crate) fn run(
        &mut self,
        observer: &mut dyn Observer,
        stop: &StopFlag,
    ) -> Result<Option<Report>, OpsError> {
        let ended = run(&self.request, &self.options(), observer, stop);
        self.expire();
        let now = self.since.elapsed();
        match ended {
            Ok(report) => {
                // The workspace now keeps the values of the flags. Later changes by other commands win.
                self.request.values.unset.clear();
                let stages = report.stages.iter();
                self.spent = stages.fold(self.spent, |sum, stage| sum + stage.spent.cost);
                self.machine
                    .run_ended(now, is_complete(&report), pending::tried(&report));
                if report
                    .stages
                    .iter()
                    .any(|stage| stage.unreachable.is_some())
                {
                    self.machine.waits_for_server(now);
                }
                Ok(Some(report))
            }
            Err(OpsError::Lock(_) | OpsError::Declarations(_) | OpsError::NoProject(_)) => {
                self.machine.run_refused(now);
                Ok(None)
            }
            Err(error) => {
                self.machine.run_aborted(now);
                Err(error)
            }
        }
    }

    /// Returns the options of the next run.
    fn options(&self) -> RunOptions {
        let options = &self.settings.options;
        RunOptions {
            budget_usd: options.budget_usd.map(|budget| budget.less(self.spent)),
            known_failures: Some(self.machine.failed_batches()),
            ..options.clone()
        }
    }

    fn scan(&mut self) -> Result<Option<WatchAction>, OpsError> {
        self.machine.begin_scan(self.since.elapsed());
        self.journal = journal_end(&self.roots);
        let moved = self.notify.take();
        if let Some(folders) = &mut self.folders
            && let Err(error) = folders.follow(&moved)
        {
            self.poll_instead(&error);
        }
        let gone: Sources = self
            .sources
            .iter()
            .filter(|it| !it.is_dir())
            .cloned()
            .collect();
        if !gone.is_empty() {
            return Ok(self.lacks(gone));
        }
        let planned = plan_for_watch(&self.request, &self.roots, &self.options());
        let is_first = !std::mem::replace(&mut self.has_scanned, true);
        Ok(match planned {
            Ok(WatchPlan::Plan(plan, sources)) => {
                self.sources = sources;
                self.planned(plan)
            }
            Ok(WatchPlan::Busy(runner)) => self.cannot_plan(
                Observation::Busy(runner.run_id.clone()),
                WatchEvent::Busy(runner),
            ),
            Err(error @ OpsError::Usage(_)) if is_first => return Err(error),
            Err(OpsError::NoProject(_)) => {
                let file = self
                    .roots
                    .project
                    .join(milepost_engine::ops::project::PROJECT_FILE);
                self.lacks(Sources::from([file]))
            }
            Err(error) => {
                let text = match &error {
                    OpsError::Declarations(problems) => problems.render(false),
                    other => other.to_string(),
                };
                self.cannot_plan(Observation::Invalid(text), WatchEvent::Invalid(error))
            }
        })
    }

    fn expire(&self) {
        if let Some(reported) = &self.request.reported {
            reported.expire(CHECK_ALL);
        }
    }

    fn planned(&mut self, plan: Box<Plan>) -> Option<WatchAction> {
        let disturbed = self.notify.has_changed();
        let now = self.since.elapsed();
        let pending = Observation::Pending(pending::of(&plan));
        let event = match self.machine.scanned(now, pending, disturbed) {
            Decision::Run => return Some(WatchAction::Run(plan)),
            Decision::NeedsPerson => {
                self.later.push(WatchEvent::Idle(self.unresolved()));
                Some(WatchEvent::NeedsPerson(plan))
            }
            Decision::Idle => Some(WatchEvent::Idle(self.unresolved())),
            Decision::Delay(pause) => Some(WatchEvent::Delayed(pause)),
            Decision::Quiet | Decision::ScanAgain | Decision::CannotPlan => None,
        };
        self.expire();
        event.map(WatchAction::Report)
    }

    fn lacks(&mut self, gone: Sources) -> Option<WatchAction> {
        let names = gone.iter().map(|path| path.display().to_string());
        let missing = Observation::Missing(names.collect());
        self.cannot_plan(missing, WatchEvent::Missing(gone))
    }

    fn cannot_plan(&mut self, observation: Observation, event: WatchEvent) -> Option<WatchAction> {
        let decision = self
            .machine
            .scanned(self.since.elapsed(), observation, false);
        (decision == Decision::CannotPlan).then_some(WatchAction::Report(event))
    }

    fn unresolved(&self) -> Unresolved {
        let mut unresolved = Unresolved {
            next_run: self.machine.reconnects(),
            ..Unresolved::default()
        };
        for (key, remedy) in self.machine.unresolved() {
            let sent = key.kind == PendingKind::Sent;
            if remedy == Remedy::Retry || sent {
                let batch = (key.stage.clone(), key.name.clone());
                unresolved.failed.push(batch);
                unresolved.sent |= sent;
            } else if key.kind != PendingKind::Blocked {
                unresolved.trouble.insert(key.stage.clone());
            }
        }
        unresolved
    }

    fn poll_instead(&mut self, why: &notify::Error) {
        self.folders = None;
        self.request.reported = None;
        self.machine.poll(INSTEAD);
        self.later
            .push(WatchEvent::Polling(INSTEAD, why.to_string()));
    }
}

/// Returns true if a run left nothing to do.
fn is_complete(report: &Report) -> bool {
    let is_done = |status| status == StageStatus::Complete;
    let mut stages = report.stages.iter();
    stages.all(|stage| is_done(stage.status) && stage.left == 0 && stage.failed.is_empty())
        && !report.interrupted
        && report.under_way == 0
}
