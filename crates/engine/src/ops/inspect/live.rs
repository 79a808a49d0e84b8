//! A workspace that is watched: its state is kept in memory and follows the journal, so that showing it costs what changed.

mod allowance;
mod history;
mod known;
mod running;

use crate::ops::change::review::{ReviewOptions, review_list};
use crate::ops::inspect::calls::cache::CallCache;
use crate::ops::inspect::follow::Position;
use crate::ops::inspect::graph::{Graph, graph_of};
use crate::ops::inspect::history::Run;
use crate::ops::inspect::history::timeline::{Timeline, Window};
use crate::ops::inspect::status::{Status, of_state, status};
use crate::ops::project::error::OpsError;
use crate::ops::project::half_published::{recover_for_reading, redirect};
use crate::ops::project::open::open_recorded;
use crate::ops::project::open_project::OpenProject;
use crate::ops::project::request::Request;
use crate::ops::project::snapshot::{Runner, runner};
use allowance::Allowance;
use history::FollowedHistory;
use jiff::Timestamp;
use known::Known;
use milepost_core::model::event::Record;
use milepost_core::model::state::State;
use milepost_store::store::clock::Stopwatch;
use std::borrow::Cow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

pub use running::RunningBatch;

/// The most running batches that are listed.
const RUNNING: usize = 20;

/// How long declarations and an up-to-date check count as present.
const FRESH: Duration = Duration::from_secs(2);

/// How much rarer than its own time an up-to-date check is repeated.
const PAUSE: u32 = 20;

/// How often the workspace may be unreadable in a row, because a run writes it.
const FAILURES: u32 = 10;

/// A watched workspace. Clones share its state.
#[derive(Clone)]
pub struct Live(Arc<LiveState>);

struct LiveState {
    request: Request,
    inner: Mutex<Inner>,
    calls: CallCache,
    /// Read when first requested.
    history: Mutex<Option<FollowedHistory>>,
}

struct Inner {
    opened: Arc<OpenProject>,
    opened_at: Stopwatch,
    known: Known,
    /// The time for following a run.
    allowance: Allowance,
    /// The last up-to-date check.
    checked: Option<Checked>,
    is_checking: bool,
    /// Grows when something changes that the journal does not record.
    version: u64,
    /// How often in a row the workspace could not be read; the last state is shown meanwhile.
    failures: u32,
}

struct Checked {
    status: Arc<Status>,
    review: Option<OpenReview>,
    /// Where the journal was then.
    at: Position,
    age: Stopwatch,
    took: Duration,
}

/// The elements that need review.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenReview {
    /// The items without a correction.
    pub items: u64,
    /// True if there are corrections that no run has applied yet.
    pub is_unapplied: bool,
}

/// The names of a project and its workspace.
#[derive(Debug, Clone)]
pub struct ProjectNames {
    /// The name of the project.
    pub name: String,
    /// The path of the workspace.
    pub workspace: String,
}

/// The state of a workspace at a moment.
pub struct Overview {
    /// The stages.
    pub status: Arc<Status>,
    /// The stages as a graph.
    pub graph: Graph,
    /// True if `status` says what a run would do; false while a run is in progress, or until the up-to-date check is done.
    pub is_checked: bool,
    /// The elements that need review, by the last check; `None` if the project declares no review sheet.
    pub review: Option<OpenReview>,
    /// The batches that the current run builds now: the first 20, by the time of their start.
    pub running: Vec<RunningBatch>,
    /// The number of running batches that `running` leaves out.
    pub more_running: u64,
    /// The latest records of the journal, oldest first.
    pub latest: Vec<Record>,
    /// Identifies this state for [`Live::changes`].
    pub at: String,
}

/// A part of the history of a workspace.
pub struct SeenTimeline {
    /// The part.
    pub timeline: Timeline,
    /// The run that it shows; `None` for all.
    pub run: Option<String>,
    /// All runs, oldest first.
    pub runs: Vec<Run>,
    /// Identifies the state for [`Live::changes`].
    pub at: String,
}

/// The changes since a state.
#[derive(Default)]
pub struct Changes {
    /// The new records, oldest first; the last ones of many.
    pub records: Vec<Record>,
    /// The number of earlier new records that are left out.
    pub left_out: u64,
    /// True if a run is in progress.
    pub running: bool,
    /// True if anything changed.
    pub is_new: bool,
    /// Identifies the state now.
    pub at: String,
}

impl Changes {
    /// Returns no change since a state, because the workspace cannot be read.
    pub fn unknown(since: Option<&str>) -> Self {
        Self {
            at: since.unwrap_or_default().to_owned(),
            ..Self::default()
        }
    }
}

impl Live {
    /// Opens a workspace, and begins to check in the background what a run would do.
    ///
    /// # Errors
    /// When there is no project, or the workspace cannot be read.
    pub fn open(request: &Request) -> Result<Self, OpsError> {
        let opened = open_recorded(request)?;
        let known = Known::read(request, &opened, 0)?;
        let live = Self(Arc::new(LiveState {
            request: request.clone(),
            calls: CallCache::default(),
            inner: Mutex::new(Inner {
                opened: Arc::new(opened),
                opened_at: Stopwatch::start(),
                known,
                allowance: Allowance::start(),
                checked: None,
                is_checking: false,
                version: 0,
                failures: 0,
            }),
            history: Mutex::new(None),
        }));
        live.check(&mut live.inner());
        let reader = live.clone();
        let thread = std::thread::Builder::new().name("history".to_owned());
        // The first request of the timeline reads what this does not.
        let _ = thread.spawn(move || reader.read_history());
        Ok(live)
    }

    /// Returns the names of the project and the workspace.
    pub fn project(&self) -> ProjectNames {
        let opened = Arc::clone(&self.inner().opened);
        ProjectNames {
            name: opened.pipeline.name.clone(),
            workspace: opened.workspace.layout.root().display().to_string(),
        }
    }

    /// Returns the mistakes in the declarations, each in one line with its place.
    pub fn problems(&self) -> Vec<String> {
        self.inner().opened.problem_lines()
    }

    /// Returns the state of the workspace. What a run would do is as the last check found it; a new check begins in the background if
    /// that may have changed.
    ///
    /// # Errors
    /// When the workspace cannot be read.
    pub fn overview(&self) -> Result<Overview, OpsError> {
        let mut inner = self.refreshed()?;
        let mut spending = None;
        if !inner.is_checked() {
            let opened = Arc::clone(&inner.opened);
            drop(inner);
            // This may read all calls. Other pages do not wait for it.
            spending = self.0.calls.spending(&opened)?;
            inner = self.refreshed()?;
        }
        let opened = Arc::clone(&inner.opened);
        let runner = inner.runner();
        let checked = inner.present_check();
        let is_checked = runner.is_none() && checked.is_some();
        let is_fresh =
            checked.is_some_and(|checked| checked.age.elapsed() < FRESH.max(checked.took * PAUSE));
        let status = match checked {
            Some(checked) if is_checked => Arc::clone(&checked.status),
            _ => {
                let (state, seen) = (inner.recovered()?, &inner.known.seen);
                let runner = runner.clone();
                Arc::new(of_state(&opened, &state, seen, runner, spending))
            }
        };
        let running = if runner.is_some() {
            inner.known.running.list()
        } else {
            Vec::new()
        };
        if runner.is_none() && !is_fresh {
            self.check(&mut inner);
        }
        Ok(Overview {
            graph: graph_of(&opened, &status),
            status,
            is_checked,
            review: inner.checked.as_ref().and_then(|checked| checked.review),
            more_running: running.len().saturating_sub(RUNNING) as u64,
            running: running.into_iter().take(RUNNING).collect(),
            latest: inner
                .known
                .latest
                .iter()
                .map(|(_, record)| record.clone())
                .collect(),
            at: inner.at(),
        })
    }

    /// Returns what changed since a state that was returned; `None` for now.
    ///
    /// # Errors
    /// When the workspace cannot be read.
    pub fn changes(&self, since: Option<&str>) -> Result<Changes, OpsError> {
        let inner = self.refreshed()?;
        let at = inner.at();
        let is_new = since.is_some_and(|since| since != at);
        let known = &inner.known;
        // After the journal was replaced, earlier records cannot be counted: the page shows the new state.
        let last = since.and_then(written_at);
        let last = last.filter(|last| is_new && *last <= known.written);
        let last = last.unwrap_or(known.written);
        let new = known.latest.iter().filter(|(number, _)| *number > last);
        let records: Vec<Record> = new.map(|(_, record)| record.clone()).collect();
        Ok(Changes {
            left_out: (known.written - last).saturating_sub(records.len() as u64),
            records,
            running: inner.runner().is_some(),
            is_new,
            at,
        })
    }

    /// Calls `read` with the declarations and the state of the workspace as they are now, and whether a run is in progress.
    ///
    /// # Errors
    /// When the workspace cannot be read.
    pub(crate) fn with_state<T>(
        &self,
        read: impl FnOnce(&Arc<OpenProject>, &State, bool) -> T,
    ) -> Result<T, OpsError> {
        let inner = self.refreshed()?;
        let state = inner.recovered()?;
        Ok(read(&inner.opened, &state, inner.runner().is_some()))
    }

    /// Returns the calls that are kept in memory.
    pub(crate) fn call_cache(&self) -> &CallCache {
        &self.0.calls
    }

    /// Returns the time of the last record that the state includes, if a run writes records faster than they are read.
    pub fn as_of(&self) -> Option<Timestamp> {
        self.inner().known.as_of
    }

    /// Reads the journal for the timeline, while no run needs the processors.
    fn read_history(&self) -> Result<(), OpsError> {
        let layout = self.inner().opened.workspace.layout.clone();
        while runner(&layout).is_none() {
            let mut followed = lock(&self.0.history);
            let mut known = match followed.take() {
                Some(known) => known,
                None => FollowedHistory::start(&self.0.request)?,
            };
            let is_more = known.add_some()?;
            *followed = Some(known);
            if !is_more {
                break;
            }
        }
        Ok(())
    }

    /// Returns the timeline of a run, by default of the last run in which a batch ran. The first call reads the whole journal, later
    /// ones what was appended; while a run is in progress, as much of it as there is time for.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub fn timeline(&self, window: Window, of_last_run: bool) -> Result<SeenTimeline, OpsError> {
        let request = &self.0.request;
        let (at, is_running) = {
            let inner = self.refreshed()?;
            (inner.at(), inner.runner().is_some())
        };
        let mut followed = lock(&self.0.history);
        let known = followed
            .take()
            .and_then(|mut known| known.follow(is_running).ok().map(|()| known));
        let known = match known {
            Some(known) => known,
            // The first call, or the journal was replaced.
            None => {
                let mut known = FollowedHistory::start(request)?;
                known.follow(is_running)?;
                known
            }
        };
        let history = &followed.insert(known).history;
        let last = || {
            let mut runs = history.runs().iter().rev();
            runs.find(|run| run.batches > 0).map(|run| run.run.clone())
        };
        let run = window.run.or_else(|| of_last_run.then(last).flatten());
        let window = Window {
            run: run.clone(),
            now: request.clock.now().as_millisecond(),
            ..window
        };
        Ok(SeenTimeline {
            timeline: history.view(&window),
            run,
            runs: history.runs().to_vec(),
            at,
        })
    }

    /// Checks on another thread what a run would do.
    fn check(&self, inner: &mut Inner) {
        if inner.is_checking {
            return;
        }
        inner.is_checking = true;
        let at = inner.known.follower.position();
        let live = self.clone();
        let check = move || {
            let watch = Stopwatch::start();
            let found = status(&live.0.request);
            let review = open_review(&live.0.request);
            let took = watch.elapsed();
            let mut inner = live.inner();
            inner.is_checking = false;
            // A page that needs it opens the project itself, and reports the error.
            let Ok(found) = found else {
                return;
            };
            // Pages that were shown before the check say so, even if it finds what the last one found.
            let present = inner.known.follower.position();
            let is_new = inner.checked.as_ref().is_none_or(|checked| {
                checked.at != present || *checked.status != found || checked.review != review
            });
            inner.version += u64::from(is_new);
            inner.checked = Some(Checked {
                status: Arc::new(found),
                review,
                at,
                age: Stopwatch::start(),
                took,
            });
        };
        let thread = std::thread::Builder::new().name("check".to_owned());
        if thread.spawn(check).is_err() {
            inner.is_checking = false;
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        lock(&self.0.inner)
    }

    /// Returns the state as it is now.
    fn refreshed(&self) -> Result<MutexGuard<'_, Inner>, OpsError> {
        let mut inner = self.inner();
        inner.refresh(&self.0.request)?;
        Ok(inner)
    }
}

/// Returns what waits for a review; `None` if nothing does, or that is not known.
fn open_review(request: &Request) -> Option<OpenReview> {
    // The page of the review says what is wrong.
    let list = review_list(request, &ReviewOptions::default()).ok()??;
    list.has_run.then_some(OpenReview {
        items: list.open,
        is_unapplied: list.unapplied != Some(0),
    })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Inner {
    /// Reads the declarations again if they may have changed, and the new records of the journal.
    fn refresh(&mut self, request: &Request) -> Result<(), OpsError> {
        if self.opened_at.elapsed() > FRESH {
            let opened = open_recorded(request)?;
            self.version += u64::from(opened.declared != self.opened.declared);
            self.opened = Arc::new(opened);
            self.opened_at = Stopwatch::start();
        }
        let allowance = self.runner().is_some().then_some(&mut self.allowance);
        if self.known.follow(allowance) {
            return Ok(());
        }
        // The journal was replaced, or a record does not follow: the manifests tell. A run may write both meanwhile.
        match Known::read(request, &self.opened, self.known.written) {
            Ok(known) => {
                self.known = known;
                self.version += 1;
                self.failures = 0;
            }
            Err(_) if self.failures < FAILURES => self.failures += 1,
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Returns the state as the next run recovers it, and redirects reads accordingly.
    fn recovered(&self) -> Result<Cow<'_, State>, OpsError> {
        let (layout, state) = (&self.opened.workspace.layout, &self.known.state);
        let is_running = self.runner().is_some();
        if redirect(layout, state, is_running)?.is_empty() {
            return Ok(Cow::Borrowed(state));
        }
        let mut state = state.clone();
        recover_for_reading(layout, &mut state, is_running)?;
        Ok(Cow::Owned(state))
    }

    /// Returns the run in progress.
    fn runner(&self) -> Option<Runner> {
        runner(&self.opened.workspace.layout)
    }

    /// Returns the last check, if the journal is where it was then.
    fn present_check(&self) -> Option<&Checked> {
        let position = self.known.follower.position();
        self.checked
            .as_ref()
            .filter(|checked| checked.at == position)
    }

    /// Returns true if the last check says what a run would do.
    fn is_checked(&self) -> bool {
        self.runner().is_none() && self.present_check().is_some()
    }

    fn at(&self) -> String {
        let Known {
            follower, written, ..
        } = &self.known;
        format!("{}.{}.{written}", follower.position(), self.version)
    }
}

/// Returns the number of the last record at a state that [`Inner::at`] identified; `None` for any other text.
fn written_at(at: &str) -> Option<u64> {
    let mut parts = at.split('.');
    let (_, _, written) = (parts.next()?, parts.next()?, parts.next()?);
    written.parse().ok()
}
