//! When to look, and when to run: a state machine over what was heard and seen. Time is handed in, as what has passed since it began.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// How patient it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pace {
    /// A look follows when nothing was heard for so long,
    pub(crate) quiet: Duration,
    /// or when changes have been heard for so long without an end.
    pub(crate) longest: Duration,
    /// How often it looks although nothing was heard, where changes cannot be heard.
    pub(crate) poll: Option<Duration>,
    /// How often it looks whether another run has ended, or a folder is back.
    pub(crate) retry: Duration,
}

/// Runs in a row, each of which left what it reads otherwise than it was, before the next is put off.
const RESTLESS: u32 = 3;
/// By how much at least,
const PAUSE: Duration = Duration::from_secs(10);
/// and at most.
const LONGEST_PAUSE: Duration = Duration::from_mins(5);

/// A thing to be done.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    /// Of which stage.
    pub(crate) stage: String,
    /// What it is.
    pub(crate) what: What,
    /// Which of those.
    pub name: String,
}

/// What a thing to be done is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum What {
    /// A batch that runs, is validated again, or lacks an input.
    Batch,
    /// A batch that there is no more.
    Retired,
    /// A stage that is no longer declared.
    Forgotten,
    /// A checkpoint that is not there.
    Checkpoint,
    /// A file that somebody altered.
    Altered,
    /// A stage that cannot begin.
    Hindered,
    /// A stage that another one is in the way of.
    Blocked,
}

/// How a thing stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Item {
    /// Everything that it depends on, in short.
    pub(crate) facts: String,
    /// What of that no run changes, where this can be told.
    pub(crate) outside: Option<String>,
    /// Whether a person changed what it was made from.
    pub(crate) by_people: bool,
    /// What a run can do about it.
    pub(crate) kind: Kind,
}

/// What a run can do about a thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// It does it.
    Open,
    /// It tries again what failed.
    Failed,
    /// Nothing: a person has to.
    Trouble,
}

/// All that is to be done.
pub(crate) type Todo = BTreeMap<Key, Item>;

/// What a look saw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Sight {
    /// What is to be done.
    Todo(Todo),
    /// That it cannot be told: in words.
    Wrong(String),
    /// That another run is at work: its id.
    Busy(String),
    /// That folders are away which everything is made from.
    Gone(BTreeSet<String>),
}

/// What is next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// To look.
    Look,
    /// To wait for something to be heard, until then at most.
    Wait(Option<Duration>),
}

/// What follows from a look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Nothing that must be said.
    Quiet,
    /// That all is as the last run left it.
    Rests,
    /// A run.
    Run,
    /// What a person has to do.
    Trouble,
    /// The sight says why there can be no run.
    Hindered,
    /// Another look at once: what failed elsewhere is left from here on.
    Again,
    /// The next run is put off by so long: runs change what they read.
    PutOff(Duration),
}

/// A run that has ended.
#[derive(Debug, Clone)]
struct After {
    /// What was to be done before it.
    before: Todo,
    /// Whether it did everything.
    whole: bool,
    /// What failed, with the facts that it was tried with.
    failed: BTreeMap<Key, String>,
}

/// The state machine.
#[derive(Debug, Clone)]
pub(crate) struct Machine {
    pace: Pace,
    /// When something was heard first and last that no look has followed.
    heard: Option<(Duration, Duration)>,
    /// When to look in any case.
    due: Option<Duration>,
    /// No look that leads to a run before that.
    not_before: Option<Duration>,
    /// What is left to do, and nobody's business until it changes; none before the first look that tells.
    rest: Option<Todo>,
    /// What was to be done at the last look, where a second one must confirm it, or a run is under way for it.
    seen: Option<Todo>,
    after: Option<After>,
    /// What hinders, as it was said last.
    hindered: Option<Sight>,
    /// Whether something was said that a look may find mended.
    troubled: bool,
    /// Whether a look follows that leaves what has failed: what is blocked by that is no news.
    settles: bool,
    /// Since when looks are disturbed by changes.
    unsettled: Option<Duration>,
    /// When the last look began.
    began: Duration,
    restless: u32,
}

impl Machine {
    /// One that looks at once.
    pub(crate) fn new(pace: Pace) -> Self {
        Self {
            pace,
            heard: None,
            due: Some(Duration::ZERO),
            not_before: None,
            rest: None,
            seen: None,
            after: None,
            hindered: None,
            troubled: true,
            settles: false,
            unsettled: None,
            began: Duration::ZERO,
            restless: 0,
        }
    }

    /// From here on it looks every so often.
    pub(crate) fn poll(&mut self, every: Duration) {
        self.pace.poll = Some(every);
    }

    /// Something changed.
    pub(crate) fn heard(&mut self, now: Duration) {
        let first = self.heard.map_or(now, |(first, _)| first);
        self.heard = Some((first, now));
    }

    /// What is next.
    pub(crate) fn next(&self, now: Duration) -> Next {
        let settled = self
            .heard
            .map(|(first, last)| (last + self.pace.quiet).min(first + self.pace.longest));
        let at = settled.into_iter().chain(self.due).min();
        match at.map(|at| at.max(self.not_before.unwrap_or_default())) {
            Some(at) if at <= now => Next::Look,
            at => Next::Wait(at),
        }
    }

    /// What is left that failed, or that a person has to see to.
    pub(crate) fn left(&self) -> impl Iterator<Item = (&Key, Kind)> {
        let rest = self.rest.iter().flatten();
        rest.filter(|(_, item)| item.kind != Kind::Open)
            .map(|(key, item)| (key, item.kind))
    }

    /// The batches that a run leaves, because they failed as they stand: by stage, with their facts.
    pub(crate) fn tried(&self) -> BTreeMap<String, BTreeMap<String, String>> {
        let mut tried: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
        for (key, item) in self.rest.iter().flatten() {
            if key.what == What::Batch && item.kind == Kind::Failed {
                let of_stage = tried.entry(key.stage.clone()).or_default();
                of_stage.insert(key.name.clone(), item.facts.clone());
            }
        }
        tried
    }

    /// A look begins. What changes while it is taken is heard after this, and looked at again.
    pub(crate) fn looks(&mut self, now: Duration) {
        self.began = now;
        self.heard = None;
        self.due = None;
        self.not_before = None;
    }

    /// What a look saw; `disturbed` if something changed while it was taken.
    pub(crate) fn saw(&mut self, now: Duration, sight: Sight, disturbed: bool) -> Verdict {
        // Polling leaves most of the time to others, however long a look takes.
        let took = now.saturating_sub(self.began);
        self.due = self.pace.poll.map(|every| now + every.max(took * 4));
        let todo = match sight {
            Sight::Todo(todo) => todo,
            hindrance => {
                if matches!(hindrance, Sight::Busy(_) | Sight::Gone(_)) {
                    self.due = Some(now + self.pace.retry);
                }
                if self.hindered.as_ref() == Some(&hindrance) {
                    return Verdict::Quiet;
                }
                self.hindered = Some(hindrance);
                return Verdict::Hindered;
            }
        };
        let was_hindered = self.hindered.take().is_some();
        if let Some(after) = self.after.take() {
            return self.saw_after(now, todo, &after);
        }
        let settles = std::mem::take(&mut self.settles);
        if self.took_over(&todo, settles) {
            self.due = Some(now);
            self.settles = true;
            self.troubled |= was_hindered;
            return Verdict::Again;
        }
        let fresh = self.fresh(&todo);
        if fresh.is_empty() {
            self.unsettled = None;
            let is_mended = todo.values().all(|item| item.kind != Kind::Trouble);
            self.rest = Some(todo);
            self.seen = None;
            let says = settles || was_hindered || self.troubled && is_mended;
            self.troubled &= !is_mended;
            return if says { Verdict::Rests } else { Verdict::Quiet };
        }
        let since = *self.unsettled.get_or_insert(now);
        if disturbed && now.saturating_sub(since) < self.pace.longest {
            // What changes is not seen whole.
            self.heard(now);
            self.troubled |= was_hindered;
            return Verdict::Quiet;
        }
        self.unsettled = None;
        let may_go_on = self.pace.poll.is_some() && self.rest.is_some();
        if may_go_on && self.seen.as_ref() != Some(&todo) {
            // Nobody tells when a change ends: it has, when two looks see the same.
            self.seen = Some(todo);
            self.due = Some(now + self.pace.quiet);
            self.troubled |= was_hindered;
            return Verdict::Quiet;
        }
        if fresh.iter().all(|kind| *kind == Kind::Trouble) {
            self.rest = Some(todo);
            self.seen = None;
            self.troubled = true;
            return Verdict::Trouble;
        }
        self.seen = Some(todo);
        Verdict::Run
    }

    /// What is to be done and was not at the last look, or stood otherwise.
    fn fresh(&self, todo: &Todo) -> Vec<Kind> {
        let is_known = |key: &Key, item: &Item| {
            let rest = self.rest.as_ref().and_then(|rest| rest.get(key));
            rest.is_some_and(|rest| rest.facts == item.facts)
        };
        let fresh = todo.iter().filter(|(key, item)| !is_known(key, item));
        fresh.map(|(_, item)| item.kind).collect()
    }

    /// Takes over what failed in runs of others: it was tried as it stands. What `settles` takes over what is blocked, too.
    fn took_over(&mut self, todo: &Todo, settles: bool) -> bool {
        let Some(rest) = &mut self.rest else {
            return false;
        };
        let mut has_failed = false;
        for (key, item) in todo {
            let failed = item.kind == Kind::Failed && !rest.contains_key(key);
            if failed || settles && key.what == What::Blocked {
                has_failed |= failed;
                rest.insert(key.clone(), item.clone());
            }
        }
        has_failed
    }

    /// The first look after a run: what changed while it was at work?
    fn saw_after(&mut self, now: Duration, mut todo: Todo, after: &After) -> Verdict {
        self.seen = None;
        self.troubled = false;
        let known = self.rest.take().unwrap_or_default();
        // What it failed with: in this run, or in an earlier one.
        let tried = |key: &Key| {
            let earlier = known.get(key).filter(|item| item.kind == Kind::Failed);
            let earlier = earlier.map(|item| &item.facts);
            after.failed.get(key).or(earlier)
        };
        let changed = |key: &Key, item: &Item| {
            // A run that did everything leaves nothing. What another leaves it left, unless people changed what it is made from.
            if let Some(tried) = tried(key)
                && (after.failed.contains_key(key) || item.facts == *tried)
            {
                return item.facts != *tried;
            }
            after.whole
                || match after.before.get(key) {
                    None => key.what == What::Altered || item.by_people,
                    Some(before) => {
                        before.outside.is_some()
                            && item.outside.is_some()
                            && before.outside != item.outside
                    }
                }
        };
        let mut fresh = Vec::new();
        todo.retain(|key, item| {
            if !changed(key, item) {
                return true;
            }
            fresh.push(item.kind);
            // That it failed with what it was made from before is still known.
            let before = after.before.get(key).map(|before| &before.facts);
            item.facts = tried(key).or(before).cloned().unwrap_or_default();
            item.kind == Kind::Failed
        });
        let has_failed = todo.values().any(|item| item.kind == Kind::Failed);
        self.rest = Some(todo);
        if !fresh.is_empty() {
            self.heard(now);
        }
        if fresh.iter().all(|kind| *kind == Kind::Trouble) {
            self.restless = 0;
            if has_failed {
                self.settles = true;
                self.due = Some(now);
                return Verdict::Again;
            }
            return Verdict::Rests;
        }
        self.restless += 1;
        if self.restless < RESTLESS {
            return Verdict::Rests;
        }
        let doubled = 1 << (self.restless - RESTLESS).min(8);
        let pause = (PAUSE * doubled).min(LONGEST_PAUSE);
        self.not_before = Some(now + pause);
        Verdict::PutOff(pause)
    }

    /// The run that was due has ended; `whole` if it did everything that there is to do. What failed comes with the facts that it
    /// was tried with.
    pub(crate) fn ended(&mut self, now: Duration, whole: bool, failed: BTreeMap<Key, String>) {
        let before = self.seen.take().unwrap_or_default();
        self.after = Some(After {
            before,
            whole,
            failed,
        });
        self.heard = None;
        self.due = Some(now);
    }

    /// The run that was due did not begin: what hindered it is looked at.
    pub(crate) fn refused(&mut self, now: Duration) {
        self.seen = None;
        self.due = Some(now + self.pace.quiet);
    }

    /// The run that was due broke off, and would again: it waits for something else to change.
    pub(crate) fn broke_off(&mut self, now: Duration) {
        self.rest = self.seen.take();
        self.due = self.pace.poll.map(|every| now + every);
        self.troubled = true;
    }
}

#[cfg(test)]
mod tests;
