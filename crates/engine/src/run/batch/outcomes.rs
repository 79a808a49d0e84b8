//! Records the events of a running batch: calls, iterations, reviews, failed elements.

use crate::run::batch::dispatch::Dispatcher;
use crate::run::batch::set_aside::{Refused, set_aside};
use crate::run::batch::stage_context::Produced;
use crate::run::error::RunError;
use crate::run::notice::Notice;
use milepost_core::base::words;
use milepost_core::model::call::{CallResponse, Estimated, SentCall, Spent};
use milepost_core::model::event::{Event, EventType};
use milepost_core::model::executor::ExecutorName;
use milepost_core::model::money::NanoUsd;
use milepost_core::model::outcome::Outcome;
use milepost_core::model::record::FailedKeys;
use milepost_core::plan::expand::batch_name;
use milepost_store::store::layout;

impl Dispatcher<'_, '_> {
    pub(crate) fn called(
        &mut self,
        index: usize,
        role: Option<String>,
        number: u64,
        (sent, response): (&SentCall, &CallResponse),
    ) -> Result<(), RunError> {
        let spent = Spent::of(sent, Some(response));
        self.done.spent += spent;
        *self.spent.entry(index).or_default() += spent;
        let batch = self.key(index);
        self.observer.notice(Notice::Called {
            stage: self.stage.name.clone(),
            batch: batch.clone(),
            spent,
        });
        self.warn_of_usage(sent, response);
        let name = batch_name(&self.stage.name, &batch);
        let summary = match &response.message {
            None => {
                let questions = match sent.questions {
                    1 => "1 question".to_owned(),
                    many => format!("{many} questions"),
                };
                let cost = response.cost.map(|cost| format!(", {cost}"));
                let mut cost = cost.unwrap_or_default();
                if !cost.is_empty() && response.estimated.is_some() {
                    cost.push_str(" (estimated)");
                }
                let usage = response.usage;
                let tokens = match usage.total() {
                    0 => String::new(),
                    _ => format!(", {} + {} tokens", usage.total_input(), usage.output),
                };
                let agent = &sent.agent;
                format!(
                    "{name} asked {agent}: {questions} {}{tokens}{cost}",
                    response.outcome
                )
            }
            Some(message) => format!("{name} asked {}: {message}", sent.agent),
        };
        let done = &self.done;
        let finished = done.ran + done.failed.len() as u64 + done.left;
        let watched = self.one_at_a_time.as_mut();
        if let Some((waiting, mean)) =
            watched.and_then(|watched| watched.called(response.took_ms, finished))
        {
            self.observer.notice(Notice::OneAtATime {
                stage: self.stage.name.clone(),
                waiting,
                mean,
            });
        }
        let event = called_event(&self.stage.name, &batch, number, sent, response);
        let kind = match response.message {
            None => EventType::Invoke,
            Some(_) => EventType::Error,
        };
        let refs = ["request", "answer"].map(|what| {
            let run = self.recorder.run_id();
            layout::call(run, number, what).to_string()
        });
        let agent = role.as_deref().unwrap_or_else(|| self.stage.actor());
        self.recorder
            .record_with(kind, agent, event, summary, refs.into())
    }

    /// Records that batches were submitted as jobs.
    pub(crate) fn submitted(
        &mut self,
        executor: ExecutorName,
        id: String,
        jobs: u64,
        batches: u64,
    ) -> Result<(), RunError> {
        let stage = self.stage.name.clone();
        let summary = format!(
            "{stage}: {} in {} of {executor}, {id}",
            words::count(batches, "batch", "batches"),
            words::count(jobs, "job", "jobs")
        );
        self.observer.notice(Notice::JobsSubmitted {
            stage: stage.clone(),
            executor,
            id: id.clone(),
            jobs,
            batches,
        });
        let event = Event::JobsSubmitted {
            stage,
            executor,
            id,
            jobs,
            batches,
        };
        let agent = self.stage.actor();
        self.recorder
            .record(EventType::Invoke, agent, event, summary)
    }

    /// Shows that a call is not charged what its agent reports, or more than was reserved.
    fn warn_of_usage(&mut self, sent: &SentCall, response: &CallResponse) {
        let (Some(reserved), Some(charged)) = (sent.reserved, response.cost) else {
            return;
        };
        let estimated = match response.estimated {
            Some(Estimated::NoPrice) => return,
            // A call that failed reports no usage.
            Some(_) if charged == NanoUsd::ZERO || response.message.is_some() => return,
            None if !response.exceeds(sent) => return,
            estimated => estimated,
        };
        if self.recorder.warned.insert((sent.agent.clone(), estimated)) {
            self.observer.notice(Notice::UnexpectedUsage {
                agent: sent.agent.clone(),
                estimated,
                reserved,
                charged,
            });
        }
    }

    /// Returns who acts for a batch: the role of its current step, if the journal names steps.
    pub(crate) fn acting(&self, index: usize) -> String {
        let role = self.roles.get(&index);
        role.map_or_else(|| self.stage.actor().to_owned(), Clone::clone)
    }

    pub(crate) fn happened(
        &mut self,
        index: usize,
        kind: EventType,
        role: Option<String>,
        event: Event,
        summary: String,
    ) -> Result<(), RunError> {
        if let Event::StepStarted { .. } = event {
            match &role {
                Some(role) => self.roles.insert(index, role.clone()),
                None => self.roles.remove(&index),
            };
        }
        let mut refs = Vec::new();
        if let Event::AnswersRefused {
            number, violations, ..
        } = &event
        {
            let run = self.recorder.run_id();
            refs.push(layout::call(run, *number, "answer").to_string());
            let refused = self.refused.entry(index).or_default();
            refused.push((*number, violations.clone()));
        }
        let agent = role.as_deref().unwrap_or_else(|| self.stage.actor());
        self.recorder.record_with(kind, agent, event, summary, refs)
    }

    /// Records failed elements of a batch that was built, and returns their outcome and the quarantine folder.
    pub(crate) fn elements_failed(
        &mut self,
        batch: &str,
        failed: &[FailedKeys],
        refused: &[Refused],
    ) -> Result<Option<(Outcome, Option<String>)>, RunError> {
        let Some(outcome) = FailedKeys::outcome(failed) else {
            return Ok(None);
        };
        let name = batch_name(&self.stage.name, batch);
        let quarantine = set_aside(self.recorder, &name, &outcome, None, refused)?;
        let event = Event::ElementsFailed {
            stage: self.stage.name.clone(),
            batch: batch.to_owned(),
            failed: failed.to_vec(),
            quarantine: quarantine.clone(),
        };
        let refs = quarantine.iter().cloned().collect();
        let summary = format!("{name}: {outcome}");
        self.recorder
            .record_with(EventType::Error, self.stage.actor(), event, summary, refs)?;
        Ok(Some((outcome, quarantine)))
    }

    /// Records what the stage's `verdict` says of a batch.
    pub(crate) fn verdict(&mut self, batch: &str, produced: &Produced) -> Result<(), RunError> {
        let Some(verdict) = produced.opinion.verdict else {
            return Ok(());
        };
        let said = produced.opinion.summary.as_deref().cloned();
        let word = if verdict { "yes" } else { "no" };
        let more = said.as_ref().map(|said| format!(": {said}"));
        let name = batch_name(&self.stage.name, batch);
        let summary = format!("{name}: the verdict is {word}{}", more.unwrap_or_default());
        let event = Event::Verdict {
            stage: self.stage.name.clone(),
            batch: batch.to_owned(),
            verdict,
            summary: said,
        };
        let files = produced.files.iter().take(20);
        let refs = files.map(|(made, _)| made.path.to_string()).collect();
        self.recorder
            .record_with(EventType::Review, self.stage.actor(), event, summary, refs)
    }
}

/// Returns the event of a call.
pub(crate) fn called_event(
    stage: &str,
    batch: &str,
    number: u64,
    sent: &SentCall,
    response: &CallResponse,
) -> Event {
    Event::Called {
        stage: stage.to_owned(),
        batch: batch.to_owned(),
        number,
        agent: format!("{} ({})", sent.agent, sent.provider),
        model: sent.model.clone(),
        served: response.served.clone(),
        questions: sent.questions,
        request: sent.request,
        answer: response.raw,
        outcome: response.outcome.clone(),
        usage: response.usage,
        cost: response.cost,
        estimated: response.estimated,
        took_ms: response.took_ms,
    }
}
