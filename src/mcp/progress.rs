//! Tells a client how far its call is: by notifications, where it asked for them.

use crate::view::notice;
use crate::view::paint::Paint;
use crate::view::words::place;
use milepost_engine::ops::run::{Notice, Observer};
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RoleServer};
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// Notifications that wait for a slow client. Beyond them some are left out: each one says how far the call is as a whole.
const WAITING: usize = 64;

/// How far a call is.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Step {
    done: f64,
    total: Option<f64>,
    message: String,
}

/// Tells how far a call is, from whichever thread does it.
#[derive(Debug, Clone)]
pub(super) struct Teller(Option<Sender<Step>>);

impl Teller {
    /// Tells it. `done` grows with each.
    pub(super) fn tell(&self, done: f64, total: Option<f64>, message: String) {
        if let Some(sender) = &self.0 {
            let step = Step {
                done,
                total,
                message,
            };
            // A run does not wait for whoever listens.
            let _ = sender.try_send(step);
        }
    }
}

/// A teller, and what it tells; nothing is told when the client asked for nothing.
pub(super) fn telling(token: Option<ProgressToken>) -> (Teller, Option<Steps>) {
    let Some(token) = token else {
        return (Teller(None), None);
    };
    let (sender, steps) = channel(WAITING);
    (Teller(Some(sender)), Some(Steps { token, steps }))
}

/// What is to be told.
pub(super) struct Steps {
    token: ProgressToken,
    steps: Receiver<Step>,
}

impl Steps {
    /// Sends what is told, until the call is over.
    pub(super) async fn send(mut self, peer: Peer<RoleServer>) {
        while let Some(step) = self.steps.recv().await {
            let mut told = ProgressNotificationParam::new(self.token.clone(), step.done)
                .with_message(step.message);
            told.total = step.total;
            if peer.notify_progress(told).await.is_err() {
                break;
            }
        }
    }
}

/// Shows a run: one notification when a stage begins and one for each batch that is over.
pub(super) struct Show<'a> {
    teller: &'a Teller,
    /// Stages that began, and batches that are over, of all stages.
    done: u64,
    stage: String,
    will: u64,
    over: u64,
}

impl<'a> Show<'a> {
    /// Shows it by this teller.
    pub(super) fn new(teller: &'a Teller) -> Self {
        Self {
            teller,
            done: 0,
            stage: String::new(),
            will: 0,
            over: 0,
        }
    }

    fn step(&mut self, message: String) {
        self.done += 1;
        let left = self.will.saturating_sub(self.over);
        let total = (self.done + left) as f64;
        self.teller.tell(self.done as f64, Some(total), message);
    }

    fn over(&mut self, batch: &str, what: &str) {
        self.over += 1;
        let name = place(&self.stage, batch);
        let (over, will) = (self.over, self.will);
        self.step(format!("{name} {what}: {over} of {will}"));
    }
}

impl Observer for Show<'_> {
    fn notice(&mut self, notice: Notice) {
        match notice {
            Notice::StageStarted {
                stage,
                description,
                batches,
                will,
            } => {
                (self.will, self.over) = (will, 0);
                let about = description.as_deref();
                let line = notice::started(Paint::PLAIN, &stage, batches, will, about);
                self.stage = stage;
                self.step(line);
            }
            Notice::BatchDone { batch, .. } => self.over(&batch, "done"),
            Notice::BatchFailed { batch, outcome, .. } => {
                self.over(&batch, &format!("failed ({})", outcome.code));
            }
            _ => {}
        }
    }
}
