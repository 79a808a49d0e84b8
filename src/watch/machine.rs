//! Decides when to scan and when to run: a state machine without clock and disk. Times are passed in, counted from its start.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// How long a watch waits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Pace {
    /// The time without changes before a scan.
    pub(crate) quiet: Duration,
    /// The longest time of changes without a pause before a scan.
    pub(crate) longest: Duration,
    /// The interval between scans, if the watch polls.
    pub(crate) poll: Option<Duration>,
    /// The interval between checks whether another run has ended, a missing folder is back, or an approval was recorded.
    pub(crate) retry: Duration,
    /// The time after which a run continues that waits for a server.
    pub(crate) reconnect: Duration,
}

/// Runs in a row during which inputs changed, before the next run is delayed.
const RESTLESS_RUNS: u32 = 3;
/// The first delay; each further one is twice as long.
const PAUSE: Duration = Duration::from_secs(10);
const LONGEST_PAUSE: Duration = Duration::from_mins(5);

/// Identifies pending work.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PendingKey {
    pub(crate) stage: String,
    pub(crate) kind: PendingKind,
    /// The batch or file.
    pub(crate) name: String,
}

/// The kinds of pending work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PendingKind {
    /// A batch to run or to validate again, or one without its input.
    Batch,
    /// A failed batch whose request a service may have carried out.
    Sent,
    /// A batch to retire.
    Retired,
    /// A stage that is no longer declared.
    Forgotten,
    /// A checkpoint to write.
    Checkpoint,
    /// An output that was modified by hand.
    Modified,
    /// A stage that cannot run.
    Problem,
    /// A stage that waits for an earlier one.
    Blocked,
    /// A stage that waits for approval.
    Approval,
}

/// The state of pending work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PendingItem {
    /// Everything that the work depends on.
    pub(crate) facts: String,
    /// The part of the facts that no run changes, if it is known.
    pub(crate) outside: Option<String>,
    /// True if a person changed an input.
    pub(crate) by_people: bool,
    pub(crate) remedy: Remedy,
}

/// The event that completes pending work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Remedy {
    Run,
    /// A run, which failed last time.
    Retry,
    Person,
}

pub(crate) type PendingWork = BTreeMap<PendingKey, PendingItem>;

/// The result of a scan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Observation {
    Pending(PendingWork),
    /// The declarations are invalid: the message.
    Invalid(String),
    /// Another run is in progress: its id.
    Busy(String),
    /// Folders of inputs are missing.
    Missing(BTreeSet<String>),
}

/// The next action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    Scan,
    /// Check whether something was recorded in the journal.
    CheckJournal,
    /// Wait for a change, at most until this time.
    Wait(Option<Duration>),
}

/// The decision after a scan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Nothing to report.
    Quiet,
    /// Nothing is left to run: report it.
    Idle,
    /// Start a run.
    Run,
    /// Report what a person has to do.
    NeedsPerson,
    /// Report why there is no plan.
    CannotPlan,
    /// Scan again at once, now that failures of another run are known.
    ScanAgain,
    /// Delay the next run by this time, because runs change their own inputs.
    Delay(Duration),
}

/// A run that has ended.
#[derive(Debug, Clone)]
struct EndedRun {
    /// The work that was pending before the run.
    before: PendingWork,
    /// True if the run did everything.
    whole: bool,
    /// Batches that failed, with their facts.
    failed: BTreeMap<PendingKey, String>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Machine {
    pace: Pace,
    /// Times of the first and the last change since the last scan.
    changed: Option<(Duration, Duration)>,
    /// Time of the next scan, even without a change.
    due: Option<Duration>,
    /// Time of the next check of the journal, while a stage waits for approval.
    journal_due: Option<Duration>,
    /// Time before which no scan leads to a run.
    not_before: Option<Duration>,
    /// Time of the next run if the last one waits for a server.
    reconnect_at: Option<Duration>,
    /// Work that stays until something about it changes; `None` before the first successful scan.
    known: Option<PendingWork>,
    /// Work of the last scan, if another scan must confirm it or a run is in progress for it.
    last_seen: Option<PendingWork>,
    after: Option<EndedRun>,
    /// The obstacle that was reported last.
    obstacle: Option<Observation>,
    /// True if trouble was reported that a scan may find resolved.
    reported_trouble: bool,
    /// True if the next scan accepts failed batches, and the stages that they block, as known.
    settles: bool,
    /// Time since when changes disturb the scans.
    unsettled: Option<Duration>,
    /// Time of the start of the last scan.
    began: Duration,
    restless: u32,
}

impl Machine {
    /// Creates a state machine that scans at once.
    pub(crate) fn new(pace: Pace) -> Self {
        Self {
            pace,
            due: Some(Duration::ZERO),
            reported_trouble: true,
            ..Self::default()
        }
    }

    /// Polls at this interval from now on.
    pub(crate) fn poll(&mut self, every: Duration) {
        self.pace.poll = Some(every);
    }

    /// Records a change.
    pub(crate) fn changed(&mut self, now: Duration) {
        let first = self.changed.map_or(now, |(first, _)| first);
        self.changed = Some((first, now));
    }

    /// Returns what to do next.
    pub(crate) fn next(&self, now: Duration) -> Next {
        let settled = self
            .changed
            .map(|(first, last)| (last + self.pace.quiet).min(first + self.pace.longest));
        let at = settled.into_iter().chain(self.due);
        let at = at.chain(self.reconnect_at).min();
        match at.map(|at| at.max(self.not_before.unwrap_or_default())) {
            Some(at) if at <= now => Next::Scan,
            _ if self.journal_due.is_some_and(|at| at <= now) => Next::CheckJournal,
            at => Next::Wait(at.into_iter().chain(self.journal_due).min()),
        }
    }

    /// Takes the result of a check of the journal: a record may be an approval, which changes no file that is watched.
    pub(crate) fn checked_journal(&mut self, now: Duration, has_moved: bool) {
        self.journal_due = (!has_moved).then_some(now + self.pace.retry);
        if has_moved {
            self.due = Some(now);
        }
    }

    /// Returns failed work, and work for a person.
    pub(crate) fn unresolved(&self) -> impl Iterator<Item = (&PendingKey, Remedy)> {
        let known = self.known.iter().flatten();
        known
            .filter(|(_, item)| item.remedy != Remedy::Run)
            .map(|(key, item)| (key, item.remedy))
    }

    /// Returns the batches that a run skips, because they failed and nothing has changed since: by stage, with their facts.
    pub(crate) fn failed_batches(&self) -> BTreeMap<String, BTreeMap<String, String>> {
        let mut failed_batches: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
        for (key, item) in self.known.iter().flatten() {
            if key.kind == PendingKind::Batch && item.remedy == Remedy::Retry {
                let of_stage = failed_batches.entry(key.stage.clone()).or_default();
                of_stage.insert(key.name.clone(), item.facts.clone());
            }
        }
        failed_batches
    }

    /// Starts a scan. Changes during the scan lead to another one.
    pub(crate) fn begin_scan(&mut self, now: Duration) {
        self.began = now;
        self.changed = None;
        self.due = None;
        self.journal_due = None;
        self.not_before = None;
        if self.reconnect_at.take_if(|at| *at <= now).is_some()
            && let Some(known) = &mut self.known
        {
            known.retain(|_, item| item.remedy != Remedy::Run);
        }
    }

    /// Takes the result of a scan; `disturbed` says that something changed during the scan.
    pub(crate) fn scanned(
        &mut self,
        now: Duration,
        observation: Observation,
        disturbed: bool,
    ) -> Decision {
        // Polling takes at most a fifth of the time, however long a scan takes.
        let took = now.saturating_sub(self.began);
        self.due = self.pace.poll.map(|every| now + every.max(took * 4));
        let pending = match observation {
            Observation::Pending(pending) => pending,
            obstacle => {
                if matches!(obstacle, Observation::Busy(_) | Observation::Missing(_)) {
                    self.due = Some(now + self.pace.retry);
                }
                if self.obstacle.as_ref() == Some(&obstacle) {
                    return Decision::Quiet;
                }
                self.obstacle = Some(obstacle);
                return Decision::CannotPlan;
            }
        };
        if pending.keys().any(|key| key.kind == PendingKind::Approval) {
            self.journal_due = Some(now + self.pace.retry);
        }
        let had_obstacle = self.obstacle.take().is_some();
        if let Some(after) = self.after.take() {
            return self.scanned_after_run(now, pending, &after);
        }
        let settles = std::mem::take(&mut self.settles);
        if self.adopt_failures(&pending, settles) {
            self.due = Some(now);
            self.settles = true;
            self.reported_trouble |= had_obstacle;
            return Decision::ScanAgain;
        }
        let new_work = self.new_work(&pending);
        if new_work.is_empty() {
            self.unsettled = None;
            let is_mended = pending.values().all(|item| item.remedy != Remedy::Person);
            self.known = Some(pending);
            self.last_seen = None;
            let says = settles || had_obstacle || self.reported_trouble && is_mended;
            self.reported_trouble &= !is_mended;
            return if says {
                Decision::Idle
            } else {
                Decision::Quiet
            };
        }
        let since = *self.unsettled.get_or_insert(now);
        if disturbed && now.saturating_sub(since) < self.pace.longest {
            // The scan may have missed something.
            self.changed(now);
            self.reported_trouble |= had_obstacle;
            return Decision::Quiet;
        }
        self.unsettled = None;
        let may_be_partial = self.pace.poll.is_some() && self.known.is_some();
        if may_be_partial && self.last_seen.as_ref() != Some(&pending) {
            // Without notifications, a change has ended if two scans see the same.
            self.last_seen = Some(pending);
            self.due = Some(now + self.pace.quiet);
            self.reported_trouble |= had_obstacle;
            return Decision::Quiet;
        }
        if new_work.iter().all(|remedy| *remedy == Remedy::Person) {
            self.known = Some(pending);
            self.last_seen = None;
            self.reported_trouble = true;
            return Decision::NeedsPerson;
        }
        self.last_seen = Some(pending);
        Decision::Run
    }

    /// Returns the remedies of work that is new or has changed.
    fn new_work(&self, pending: &PendingWork) -> Vec<Remedy> {
        let is_known = |key: &PendingKey, item: &PendingItem| {
            let known = self.known.as_ref().and_then(|known| known.get(key));
            known.is_some_and(|known| known.facts == item.facts)
        };
        let new_work = pending.iter().filter(|(key, item)| !is_known(key, item));
        new_work.map(|(_, item)| item.remedy).collect()
    }

    /// Adopts batches that failed in other runs, and returns true if there are any. With `settles`, adopts blocked stages too.
    fn adopt_failures(&mut self, pending: &PendingWork, settles: bool) -> bool {
        let Some(known) = &mut self.known else {
            return false;
        };
        let mut has_failed = false;
        for (key, item) in pending {
            let failed = item.remedy == Remedy::Retry && !known.contains_key(key);
            if failed || settles && key.kind == PendingKind::Blocked {
                has_failed |= failed;
                known.insert(key.clone(), item.clone());
            }
        }
        has_failed
    }

    /// Takes the first scan after a run, to find changes during the run.
    fn scanned_after_run(
        &mut self,
        now: Duration,
        mut pending: PendingWork,
        after: &EndedRun,
    ) -> Decision {
        self.last_seen = None;
        self.reported_trouble = false;
        let known = self.known.take().unwrap_or_default();
        // The facts with which the batch failed, in this run or an earlier one. A batch that needs no retry now has been made since.
        let failed_batches = |key: &PendingKey, item: &PendingItem| {
            let is_retry = |item: &PendingItem| item.remedy == Remedy::Retry;
            let earlier = known
                .get(key)
                .filter(|known| is_retry(known) && is_retry(item));
            let earlier = earlier.map(|item| &item.facts);
            after.failed.get(key).or(earlier)
        };
        let changed = |key: &PendingKey, item: &PendingItem| {
            // After a complete run, all work is new. An incomplete run left work behind, which is new only if a person changed an input.
            if let Some(failed_batches) = failed_batches(key, item)
                && (after.failed.contains_key(key) || item.facts == *failed_batches)
            {
                return item.facts != *failed_batches;
            }
            after.whole
                || match after.before.get(key) {
                    None => key.kind == PendingKind::Modified || item.by_people,
                    Some(before) => {
                        before.outside.is_some()
                            && item.outside.is_some()
                            && before.outside != item.outside
                    }
                }
        };
        let mut new_work = Vec::new();
        pending.retain(|key, item| {
            if !changed(key, item) {
                return true;
            }
            new_work.push(item.remedy);
            // The batch stays known as failed with its earlier facts.
            let before = after.before.get(key).map(|before| &before.facts);
            item.facts = failed_batches(key, item)
                .or(before)
                .cloned()
                .unwrap_or_default();
            item.remedy == Remedy::Retry
        });
        let has_failed = pending.values().any(|item| item.remedy == Remedy::Retry);
        self.known = Some(pending);
        if !new_work.is_empty() {
            self.changed(now);
        }
        if new_work.iter().all(|remedy| *remedy == Remedy::Person) {
            self.restless = 0;
            if has_failed {
                self.settles = true;
                self.due = Some(now);
                return Decision::ScanAgain;
            }
            return Decision::Idle;
        }
        self.restless += 1;
        if self.restless < RESTLESS_RUNS {
            return Decision::Idle;
        }
        let doubled = 1 << (self.restless - RESTLESS_RUNS).min(8);
        let pause = (PAUSE * doubled).min(LONGEST_PAUSE);
        self.not_before = Some(now + pause);
        Decision::Delay(pause)
    }

    /// Records the end of a run; `whole` says that it did everything. `failed` holds the failed batches with their facts.
    pub(crate) fn run_ended(
        &mut self,
        now: Duration,
        whole: bool,
        failed: BTreeMap<PendingKey, String>,
    ) {
        let before = self.last_seen.take().unwrap_or_default();
        self.after = Some(EndedRun {
            before,
            whole,
            failed,
        });
        self.changed = None;
        self.reconnect_at = None;
        self.due = Some(now);
    }

    /// Records that the run that has ended waits for a server.
    pub(crate) fn waits_for_server(&mut self, now: Duration) {
        self.reconnect_at = Some(now + self.pace.reconnect);
    }

    /// Returns how long after a run the next one continues, if it waits for a server.
    pub(crate) fn reconnects(&self) -> Option<Duration> {
        self.reconnect_at.map(|_| self.pace.reconnect)
    }

    /// Records that the run could not start; a scan finds out why.
    pub(crate) fn run_refused(&mut self, now: Duration) {
        self.last_seen = None;
        self.due = Some(now + self.pace.quiet);
    }

    /// Records that the run ended with an error. It would end so again: the next run needs a change.
    pub(crate) fn run_aborted(&mut self, now: Duration) {
        self.known = self.last_seen.take();
        self.reconnect_at = None;
        self.due = self.pace.poll.map(|every| now + every);
        self.reported_trouble = true;
    }
}

#[cfg(test)]
mod tests;
