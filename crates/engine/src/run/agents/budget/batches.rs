//! The record of provider batches, which outlive runs.

use super::{Ledger, RunCalls, kept};
use crate::steps::calls::{Calls, ProviderBatches};
use jiff::Timestamp;
use milepost_core::model::batched::{CallId, Left, LeftCall, Submitting};
use milepost_core::model::call::{CallResponse, SentCall, Spent};
use milepost_core::model::outcome::Outcome;
use milepost_store::store::batches;

impl RunCalls<'_> {
    /// Returns how many provider batches are in flight. Finished ones are recorded as such, so that later runs need not search
    /// all calls for them.
    ///
    /// # Errors
    /// When the records cannot be read, or the disk fails.
    pub(crate) fn under_way(&self) -> Result<u64, String> {
        let layout = self.ctx.layout;
        let failed =
            |error: &dyn std::fmt::Display| format!("{}: {error}", layout.batches().display());
        let (open, done) = batches::standing(layout).map_err(|error| failed(&error))?;
        for batch in &done {
            let over = self.ledger().batches.over(batch);
            over.map_err(|error| failed(&error))?;
        }
        Ok(open)
    }
}

impl Ledger {
    /// Updates what an earlier run spent.
    fn receive_late(&mut self, left: &LeftCall, response: &CallResponse) {
        if let Some(before) = &mut self.before {
            *before -= Spent::of(&left.sent, left.response.as_ref());
            *before += Spent::of(&left.sent, Some(response));
        }
    }
}

impl ProviderBatches for RunCalls<'_> {
    fn left(&self, agent: &str, place: &str) -> Result<Left, Outcome> {
        let mut ledger = self.ledger();
        let layout = self.ctx.layout;
        let (mut left, never) = batches::left(layout, &self.run)
            .map_err(|error| kept(format!("{}: {error}", layout.batches().display())))?;
        // The run was killed before it could submit them: they cost nothing.
        for call in never.iter().filter(|call| call.sent.agent == agent) {
            let now = self.ctx.clock.now();
            let log = &mut ledger.log;
            let response = CallResponse::never_sent();
            log.received_late(now, &call.call, &response, b"")
                .map_err(kept)?;
            ledger.receive_late(call, &response);
        }
        let key = (agent.to_owned(), place.to_owned());
        Ok(left.remove(&key).unwrap_or_default())
    }

    fn take_over(&self, left: &LeftCall, sent: &SentCall, body: &[u8]) -> Result<CallId, Outcome> {
        let mut ledger = self.ledger();
        let now = self.ctx.clock.now();
        let without = sent.clone().without_keys(self.ctx.redactor);
        let number = ledger.log.taken_over(now, &left.call, &without, body);
        let number = number.map_err(kept)?;
        if let Some(before) = &mut ledger.before {
            *before -= Spent::of(&left.sent, left.response.as_ref());
        }
        ledger.standing.hold(sent);
        ledger.open.insert(number, None);
        let run = self.run.clone();
        Ok(CallId { run, number })
    }

    fn submitting(&self, batch: &Submitting) -> Result<(CallId, Timestamp), Outcome> {
        let now = self.ctx.clock.now();
        let which = self.ledger().batches.submitting(now, batch);
        Ok((which.map_err(kept)?, now))
    }

    fn submitted(&self, batch: &CallId, ids: &[String]) -> Result<(), Outcome> {
        self.ledger().batches.submitted(batch, ids).map_err(kept)
    }

    fn over(&self, batch: &CallId) -> Result<(), Outcome> {
        self.ledger().batches.over(batch).map_err(kept)
    }

    fn received_late(
        &self,
        left: &LeftCall,
        response: &CallResponse,
        raw: &[u8],
    ) -> Result<(), Outcome> {
        if left.call.run == self.run {
            let response = self.received(left.call.number, &left.sent, response.clone(), raw);
            return response.map(drop);
        }
        let redactor = self.ctx.redactor;
        let raw = redactor.bytes(raw);
        let response = &response.clone().without_keys(redactor, &raw);
        let mut ledger = self.ledger();
        let now = self.ctx.clock.now();
        let recorded = ledger.log.received_late(now, &left.call, response, &raw);
        recorded.map_err(kept)?;
        ledger.receive_late(left, response);
        Ok(())
    }

    fn used(&self, number: u64) -> Result<(), Outcome> {
        self.ledger().log.used(number).map_err(kept)
    }
}
