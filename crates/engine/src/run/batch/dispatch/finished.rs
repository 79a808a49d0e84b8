//! Records how a batch ended: built, waiting, or failed.

use super::Dispatcher;
use crate::run::batch::attempt::once;
use crate::run::batch::set_aside::set_aside;
use crate::run::batch::stage_context::AttemptResult;
use crate::run::error::RunError;
use crate::run::notice::Notice;
use crate::run::record::commit::Finished;
use milepost_core::model::event::{Event, EventType};
use milepost_core::model::outcome::{Outcome, OutcomeKind};
use milepost_core::plan::expand::batch_name;
use std::time::Duration;

impl Dispatcher<'_, '_> {
    /// Returns the outcome of a batch with the name that the stage declares, and the facts of a request that was accepted.
    fn named(&self, index: usize, outcome: Outcome) -> Outcome {
        let mut outcome = self.stage.named(outcome);
        if let Some(accepted) = &mut outcome.accepted {
            *accepted = self.scan.facts(&self.scan.batches[index]);
        }
        outcome
    }

    #[expect(clippy::too_many_lines)]
    pub(super) fn finished(
        &mut self,
        index: usize,
        tried: AttemptResult,
        took: Duration,
    ) -> Result<(), RunError> {
        self.changes += 1;
        self.running.remove(&index);
        let batch = self.key(index);
        let stage = self.stage.name.clone();
        let attempts = self.tries.get(&index).copied().unwrap_or(1);
        let refused = self.refused.remove(&index).unwrap_or_default();
        let acting = self.acting(index);
        self.roles.remove(&index);
        let result = tried.result.and_then(|produced| {
            let claimed = self.claims.claim(&batch, &produced);
            match (claimed, &produced.sent) {
                (Ok(()), _) => Ok(produced),
                (Err(outcome), Some(done)) => Err(once(outcome, done)),
                (Err(outcome), None) => Err(outcome),
            }
        });
        match (result, tried.scratch) {
            (Ok(produced), Some(scratch)) => {
                let mut produced = produced;
                let placeholder = produced.placeholder;
                produced.placeholder = placeholder.map(|outcome| self.named(index, outcome));
                for failed in &mut produced.failed {
                    failed.outcome = self.stage.named(failed.outcome.clone());
                }
                let failure = match &produced.placeholder {
                    Some(outcome) => Some((outcome.clone(), None)),
                    None => self.elements_failed(&batch, &produced.failed, &refused)?,
                };
                self.verdict(&batch, &produced)?;
                match failure {
                    Some((outcome, quarantine)) => {
                        self.done.failed.push((batch.clone(), outcome.clone()));
                        self.observer.notice(Notice::BatchFailed {
                            stage,
                            batch,
                            outcome,
                            quarantine,
                        });
                    }
                    None => {
                        self.done.ran += 1;
                        self.observer.notice(Notice::BatchDone {
                            stage,
                            batch,
                            took,
                            warnings: produced.warnings.clone(),
                        });
                    }
                }
                self.group.push(Finished {
                    index,
                    produced,
                    scratch,
                    attempts,
                    spent: self.spent.remove(&index),
                    took,
                });
            }
            (Ok(_), None) => {}
            (Err(outcome), scratch) if outcome.kind.waits() => {
                self.done.left += 1;
                let name = batch_name(&stage, &batch);
                let summary = match outcome.kind {
                    OutcomeKind::Budget | OutcomeKind::Awaited | OutcomeKind::Unreachable => {
                        let why = || outcome.message.clone();
                        match outcome.kind {
                            OutcomeKind::Budget => drop(self.done.held.get_or_insert_with(why)),
                            OutcomeKind::Awaited => self.done.awaits += 1,
                            _ => drop(self.done.unreachable.get_or_insert_with(why)),
                        }
                        format!("{name} waits: {}", outcome.message)
                    }
                    _ if self.leaves_jobs => format!("{name} continues in its job"),
                    _ => format!("{name} was stopped"),
                };
                let event = Event::BatchCancelled { stage, batch };
                self.recorder
                    .record(EventType::Error, self.stage.actor(), event, summary)?;
                if let Some(scratch) = scratch {
                    scratch.remove();
                }
            }
            (Err(outcome), scratch) => {
                let outcome = self.named(index, outcome);
                let name = batch_name(&stage, &batch);
                let kept = set_aside(self.recorder, &name, &outcome, scratch, &refused)?;
                let summary = format!("{name} failed: {outcome}");
                let event = Event::BatchFailed {
                    stage: stage.clone(),
                    batch: batch.clone(),
                    outcome: outcome.clone(),
                    quarantine: kept.clone(),
                };
                let refs = kept.iter().chain(&tried.log).cloned().collect();
                self.recorder
                    .record_with(EventType::Error, &acting, event, summary, refs)?;
                self.done.failed.push((batch.clone(), outcome.clone()));
                self.observer.notice(Notice::BatchFailed {
                    stage,
                    batch,
                    outcome,
                    quarantine: kept,
                });
            }
        }
        Ok(())
    }
}
