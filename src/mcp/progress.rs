//! Notifies a client of the progress of its call, if it asked for that.

use crate::view::run::notice;
use crate::view::text::style::Style;
use crate::view::text::words::place;
use milepost_engine::ops::run::{Notice, Observer};
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RoleServer};
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// The most notifications that wait for a slow client. Further ones are dropped: each one describes the progress of the whole call.
const WAITING: usize = 64;

/// The progress of a call.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ProgressUpdate {
    done: f64,
    total: Option<f64>,
    message: String,
}

/// Reports the progress of a call, from any thread.
#[derive(Debug, Clone)]
pub(super) struct ProgressSender(Option<Sender<ProgressUpdate>>);

impl ProgressSender {
    /// Reports progress. `done` must grow with each report.
    pub(super) fn report(&self, done: f64, total: Option<f64>, message: String) {
        if let Some(sender) = &self.0 {
            let update = ProgressUpdate {
                done,
                total,
                message,
            };
            // A run does not wait for its clients.
            let _ = sender.try_send(update);
        }
    }
}

/// Returns both ends of a channel; the second one is `None` if the client asked for no progress.
pub(super) fn progress_channel(
    token: Option<ProgressToken>,
) -> (ProgressSender, Option<ProgressUpdates>) {
    let Some(token) = token else {
        return (ProgressSender(None), None);
    };
    let (sender, updates) = channel(WAITING);
    (
        ProgressSender(Some(sender)),
        Some(ProgressUpdates { token, updates }),
    )
}

/// The progress to send.
pub(super) struct ProgressUpdates {
    token: ProgressToken,
    updates: Receiver<ProgressUpdate>,
}

impl ProgressUpdates {
    /// Sends progress to the client until the call ends.
    pub(super) async fn send(mut self, peer: Peer<RoleServer>) {
        while let Some(update) = self.updates.recv().await {
            let mut notification = ProgressNotificationParam::new(self.token.clone(), update.done)
                .with_message(update.message);
            notification.total = update.total;
            if peer.notify_progress(notification).await.is_err() {
                break;
            }
        }
    }
}

/// Reports a run: one notification for each stage that starts and each batch that ends.
pub(super) struct RunProgress<'a> {
    progress: &'a ProgressSender,
    /// Stages that have started, and batches that have ended.
    done: u64,
    stage: String,
    will: u64,
    over: u64,
}

impl<'a> RunProgress<'a> {
    pub(super) fn new(progress: &'a ProgressSender) -> Self {
        Self {
            progress,
            done: 0,
            stage: String::new(),
            will: 0,
            over: 0,
        }
    }

    fn advance(&mut self, message: String) {
        self.done += 1;
        let left = self.will.saturating_sub(self.over);
        let total = (self.done + left) as f64;
        self.progress.report(self.done as f64, Some(total), message);
    }

    fn over(&mut self, batch: &str, what: &str) {
        self.over += 1;
        let name = place(&self.stage, batch);
        let (over, will) = (self.over, self.will);
        self.advance(format!("{name} {what}: {over} of {will}"));
    }
}

impl Observer for RunProgress<'_> {
    fn notice(&mut self, notice: Notice) {
        match notice {
            Notice::StageStarted {
                stage,
                description,
                batches,
                will,
                ..
            } => {
                (self.will, self.over) = (will, 0);
                let about = description.as_deref();
                let line = notice::started(Style::PLAIN, &stage, batches, will, about);
                self.stage = stage;
                self.advance(line);
            }
            Notice::BatchDone { batch, .. } => self.over(&batch, "done"),
            Notice::BatchFailed { batch, outcome, .. } => {
                self.over(&batch, &format!("failed ({})", outcome.code));
            }
            _ => {}
        }
    }
}
