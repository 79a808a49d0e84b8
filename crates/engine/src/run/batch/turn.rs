//! The role that acts in a batch, and the handover when another role takes over.

use crate::run::record::words::all_in_words;
use milepost_core::model::event::Event;
use serde_json::Value;
use std::collections::BTreeMap;

/// The role of the last step, and what its steps wrote since it took over.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    role: Option<String>,
    outs: Vec<String>,
    summaries: BTreeMap<String, Value>,
}

impl Turn {
    /// Notes that a step of this role finished.
    pub(crate) fn finished(&mut self, role: &str, out: &str, summary: Option<&Value>) {
        self.role = Some(role.to_owned());
        if !self.outs.iter().any(|known| known == out) {
            self.outs.push(out.to_owned());
        }
        match summary {
            Some(summary) => drop(self.summaries.insert(out.to_owned(), summary.clone())),
            None => drop(self.summaries.remove(out)),
        }
    }

    /// Notes that the last step finished in an earlier run, unless it did in this one.
    pub(crate) fn resume(&mut self, role: &str, out: &str) {
        if self.role.is_none() {
            self.finished(role, out, None);
        }
    }

    /// Returns what a step of this role takes over and says so in words; `None` if the role does not change.
    pub(crate) fn pass_to(
        &mut self,
        role: &str,
        (stage, batch): (&str, &str),
        round: Option<u32>,
    ) -> Option<(Event, String)> {
        if self.role.as_deref().is_none_or(|known| known == role) {
            return None;
        }
        let Self {
            role: from,
            outs,
            summaries,
        } = std::mem::take(self);
        let from = from?;
        let mut text = format!("{role} reads {} from {from}", outs.join(", "));
        text.push_str(&all_in_words(&summaries));
        let event = Event::StepHandoff {
            stage: stage.to_owned(),
            batch: batch.to_owned(),
            from,
            outs,
            round,
            summaries,
        };
        Some((event, text))
    }
}
