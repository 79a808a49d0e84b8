//! Hangs the state machine to the disk and the clock: listens, looks, runs.

use super::bell::Bell;
use super::folders::Folders;
use super::machine::{Kind, Machine, Next, Pace, Sight, Verdict, What};
use super::todo;
use milepost_core::model::money::NanoUsd;
use milepost_engine::ops::plan::Plan;
use milepost_engine::ops::project::snapshot::Runner;
use milepost_engine::ops::project::{OpsError, Request};
use milepost_engine::ops::run::look::{Grounds, Look, Sources, grounds, look};
use milepost_engine::ops::run::{
    Observer, Report, RunOptions, StageStatus, StopFlag, Stopwatch, run,
};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How often a watch looks that cannot listen to so many folders as there are.
const INSTEAD: Duration = Duration::from_secs(2);

/// What to run, and how patiently.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    /// What each run is asked to do. Its budget is that of all runs together.
    pub(crate) options: RunOptions,
    /// When to look.
    pub(crate) pace: Pace,
}

/// What is next for whoever shows it.
#[derive(Debug)]
pub(crate) enum Due {
    /// Something to say.
    Told(Told),
    /// A run by this plan: see [`Watcher::run`].
    Run(Box<Plan>),
    /// The end.
    End,
}

/// What a watch has to say.
#[derive(Debug)]
pub(crate) enum Told {
    /// It waits for changes.
    Waits(Waits),
    /// What a person has to do before anything can run.
    Trouble(Box<Plan>),
    /// Why nothing can be told at present.
    Wrong(OpsError),
    /// Another run is at work.
    Busy(Box<Runner>),
    /// Folders, or the project's file, are away.
    Gone(Sources),
    /// Runs change what they read: the next begins after so long at the soonest.
    PutOff(Duration),
    /// It looks every so often, because it cannot listen, and why.
    Polls(Duration, String),
}

/// What is left when a watch waits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Waits {
    /// Batches that failed as they stand: stage and batch.
    pub(crate) failed: Vec<(String, String)>,
    /// Stages in which a person has something to see to.
    pub(crate) trouble: BTreeSet<String>,
}

/// Watches a project and a workspace.
pub(crate) struct Watcher {
    request: Request,
    settings: Settings,
    grounds: Grounds,
    machine: Machine,
    bell: Arc<Bell>,
    folders: Option<Folders>,
    /// Where people's files are, as the last plan knew.
    sources: Sources,
    since: Stopwatch,
    spent: NanoUsd,
    /// What is said after what is said first.
    later: Vec<Told>,
    has_looked: bool,
}

impl Watcher {
    /// Of a project and a workspace. It listens unless it is to poll.
    ///
    /// # Errors
    /// When there is no project.
    pub(crate) fn new(
        request: Request,
        settings: Settings,
        bell: Arc<Bell>,
    ) -> Result<Self, OpsError> {
        let grounds = grounds(&request)?;
        let mut watcher = Self {
            machine: Machine::new(settings.pace),
            request,
            settings,
            grounds,
            bell,
            folders: None,
            sources: Sources::new(),
            since: Stopwatch::start(),
            spent: NanoUsd::ZERO,
            later: Vec::new(),
            has_looked: false,
        };
        if settings_listen(&watcher.settings) {
            match Folders::new(&watcher.grounds, Arc::clone(&watcher.bell)) {
                Ok(folders) => watcher.folders = Some(folders),
                Err(error) => watcher.poll_instead(&error),
            }
        }
        Ok(watcher)
    }

    /// Where it watches.
    pub(crate) fn grounds(&self) -> &Grounds {
        &self.grounds
    }

    /// Waits for what is next.
    ///
    /// # Errors
    /// What was asked for cannot be.
    pub(crate) fn due(&mut self) -> Result<Due, OpsError> {
        loop {
            if self.bell.ends() {
                return Ok(Due::End);
            }
            if let Some(told) = self.later.pop() {
                return Ok(Due::Told(told));
            }
            let now = self.since.elapsed();
            match self.machine.next(now) {
                Next::Wait(until) => {
                    let most = until.map(|until| until.saturating_sub(now));
                    if self.bell.wait(most) {
                        self.machine.heard(self.since.elapsed());
                    }
                }
                Next::Look => {
                    if let Some(due) = self.look()? {
                        return Ok(due);
                    }
                }
            }
        }
    }

    /// Runs what the last look found.
    ///
    /// None when it did not begin: another run did, or the declarations have changed. The next look tells.
    ///
    /// # Errors
    /// What the run broke off for. The watch can go on.
    pub(crate) fn run(
        &mut self,
        observer: &mut dyn Observer,
        stop: &StopFlag,
    ) -> Result<Option<Report>, OpsError> {
        let ended = run(&self.request, &self.options(), observer, stop);
        let now = self.since.elapsed();
        match ended {
            Ok(report) => {
                // The workspace keeps what the flags say. A value that someone sets meanwhile stays.
                self.request.values.unset.clear();
                let stages = report.stages.iter();
                self.spent = stages.fold(self.spent, |sum, stage| sum + stage.spent.cost);
                self.machine
                    .ended(now, is_whole(&report), todo::tried(&report));
                Ok(Some(report))
            }
            Err(OpsError::Lock(_) | OpsError::Declarations(_) | OpsError::NoProject(_)) => {
                self.machine.refused(now);
                Ok(None)
            }
            Err(error) => {
                self.machine.broke_off(now);
                Err(error)
            }
        }
    }

    /// What a run is asked to do at this moment.
    fn options(&self) -> RunOptions {
        let options = &self.settings.options;
        RunOptions {
            budget_usd: options.budget_usd.map(|budget| budget.less(self.spent)),
            known_failures: Some(self.machine.tried()),
            ..options.clone()
        }
    }

    fn look(&mut self) -> Result<Option<Due>, OpsError> {
        self.machine.looks(self.since.elapsed());
        let moved = self.bell.take();
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
        let looked = if gone.is_empty() {
            look(&self.request, &self.grounds, &self.options())
        } else {
            return Ok(self.hindered(gone_sight(&gone), Told::Gone(gone)));
        };
        let is_first = !std::mem::replace(&mut self.has_looked, true);
        Ok(match looked {
            Ok(Look::Plan(plan, sources)) => {
                self.sources = sources;
                self.planned(plan)
            }
            Ok(Look::Busy(runner)) => {
                self.hindered(Sight::Busy(runner.run_id.clone()), Told::Busy(runner))
            }
            Err(error @ OpsError::Usage(_)) if is_first => return Err(error),
            Err(OpsError::NoProject(_)) => {
                let file = self
                    .grounds
                    .project
                    .join(milepost_engine::ops::project::PROJECT_FILE);
                let gone = Sources::from([file]);
                self.hindered(gone_sight(&gone), Told::Gone(gone))
            }
            Err(error) => {
                let text = match &error {
                    OpsError::Declarations(problems) => problems.render(false),
                    other => other.to_string(),
                };
                self.hindered(Sight::Wrong(text), Told::Wrong(error))
            }
        })
    }

    fn planned(&mut self, plan: Box<Plan>) -> Option<Due> {
        let disturbed = self.bell.has_changed();
        let now = self.since.elapsed();
        match self
            .machine
            .saw(now, Sight::Todo(todo::of(&plan)), disturbed)
        {
            Verdict::Run => Some(Due::Run(plan)),
            Verdict::Trouble => {
                self.later.push(Told::Waits(self.waits()));
                Some(Due::Told(Told::Trouble(plan)))
            }
            Verdict::Rests => Some(Due::Told(Told::Waits(self.waits()))),
            Verdict::PutOff(pause) => Some(Due::Told(Told::PutOff(pause))),
            Verdict::Quiet | Verdict::Again | Verdict::Hindered => None,
        }
    }

    fn hindered(&mut self, sight: Sight, told: Told) -> Option<Due> {
        let verdict = self.machine.saw(self.since.elapsed(), sight, false);
        (verdict == Verdict::Hindered).then_some(Due::Told(told))
    }

    fn waits(&self) -> Waits {
        let mut waits = Waits::default();
        for (key, kind) in self.machine.left() {
            if kind == Kind::Failed {
                let batch = (key.stage.clone(), key.name.clone());
                waits.failed.push(batch);
            } else if key.what != What::Blocked {
                waits.trouble.insert(key.stage.clone());
            }
        }
        waits
    }

    fn poll_instead(&mut self, why: &notify::Error) {
        self.folders = None;
        self.machine.poll(INSTEAD);
        self.later.push(Told::Polls(INSTEAD, why.to_string()));
    }
}

fn settings_listen(settings: &Settings) -> bool {
    settings.pace.poll.is_none()
}

fn gone_sight(gone: &Sources) -> Sight {
    let name = |path: &PathBuf| path.display().to_string();
    Sight::Gone(gone.iter().map(name).collect())
}

/// Whether a run did everything that there was to do.
fn is_whole(report: &Report) -> bool {
    let is_done = |status| status == StageStatus::Complete;
    let mut stages = report.stages.iter();
    stages.all(|stage| is_done(stage.status) && stage.left == 0 && stage.failed.is_empty())
        && !report.interrupted
        && report.under_way == 0
}
