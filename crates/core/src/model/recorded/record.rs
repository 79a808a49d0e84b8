//! The record of a finished batch: its fingerprint, its outputs and how it ran.

use super::call::Spent;
use super::job::JobOfBatch;
pub use super::made::Made;
pub use super::pin::{ModifiedFile, Override, Pin};
use crate::base::path::RelPath;
use crate::expr::json::plain_text;
use crate::model::fingerprint::Facts;
use crate::model::outcome::Outcome;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeSet;

/// The results of `summary` and `verdict` for a batch.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Opinion {
    /// The result of `summary`; without one, the reports of the steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<Box<Value>>,
    /// The reports of the steps, if the stage has a `summary`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<Box<Value>>,
    /// The result of `verdict`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<bool>,
}

impl Opinion {
    /// Returns the `warnings` of the summary.
    pub fn warnings(&self) -> Vec<String> {
        let told = self.summary.as_ref().map(|summary| &summary["warnings"]);
        let lines = told.and_then(Value::as_array).into_iter().flatten();
        lines.map(plain_text).collect()
    }
}

/// Elements that failed for one cause in a batch that is finished without them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct FailedKeys {
    /// Their keys as in `[conserve]`; without it, their positions in the batch.
    pub keys: Vec<String>,
    /// The failure.
    pub outcome: Outcome,
}

impl FailedKeys {
    /// Returns the outcome of a batch with these failures; `None` if there are none.
    pub fn outcome(failed: &[Self]) -> Option<Outcome> {
        const NAMED: usize = 5;
        let first = failed.first()?;
        let keys: Vec<&str> = failed
            .iter()
            .flat_map(|failed| failed.keys.iter().map(String::as_str))
            .collect();
        let (what, have) = match keys.len() {
            1 => ("element", "has"),
            _ => ("elements", "have"),
        };
        let more = if keys.len() > NAMED { ", …" } else { "" };
        let named = keys.iter().take(NAMED).copied().collect::<Vec<_>>();
        Some(Outcome {
            message: format!(
                "{} {what} {have} no valid answer: {}{more}",
                keys.len(),
                named.join(", ")
            ),
            details: failed
                .iter()
                .flat_map(|failed| &failed.outcome.details)
                .take(20)
                .cloned()
                .collect(),
            ..first.outcome.clone()
        })
    }
}

/// The answers of one call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct AnswersOf {
    /// The run.
    pub run: String,
    /// The number of the call in the run.
    pub call: u64,
    /// The number of the batch's questions that they answer.
    pub answers: u64,
}

impl AnswersOf {
    /// Returns one answer of a call.
    pub fn one(run: &str, call: u64) -> Self {
        Self {
            run: run.to_owned(),
            call,
            answers: 1,
        }
    }

    /// Adds them to others, in the order of runs and calls.
    pub fn add_to(self, others: &mut Vec<Self>) {
        let place = others.binary_search_by(|other| {
            let other = (other.run.as_str(), other.call);
            other.cmp(&(self.run.as_str(), self.call))
        });
        match place {
            Ok(place) => others[place].answers += self.answers,
            Err(place) => others.insert(place, self),
        }
    }
}

/// The record of a finished batch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[cfg_attr(debug_assertions, schemars(rename = "BatchRecord"))]
pub struct BatchRecord<Output = Made> {
    /// The key of the batch; empty for the only batch of a stage.
    pub key: String,
    /// The id of the facts that it shares with other batches of the stage.
    pub shared: String,
    /// Its own facts.
    pub facts: Facts,
    /// Its outputs.
    pub outputs: Vec<Output>,
    /// The number of elements in the outputs, if the stage declares how to count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elements: Option<u64>,
    /// The result of `summary`; without one, the reports of the steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<Box<Value>>,
    /// The reports of the steps, if the stage has a `summary`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<Box<Value>>,
    /// The result of `verdict`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<bool>,
    /// The failure, if the outputs are a placeholder for a failed batch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placeholder: Option<Box<Outcome>>,
    /// Elements that failed: the outputs lack their records.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<FailedKeys>,
    /// The calls whose answers the outputs contain, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<AnswersOf>,
    /// Set if a person accepted modified outputs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pin: Option<Box<Pin>>,
    /// An input that changed while the batch ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stale: Option<String>,
    /// The number of attempts.
    pub attempts: u32,
    /// The cost of its calls; `None` if there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent: Option<Box<Spent>>,
    /// The duration of the last attempt in milliseconds.
    pub duration_ms: u64,
    /// The run that built it.
    pub run: String,
    /// The job of a scheduler that ran it; `None` if it ran on the machine of the runner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<Box<JobOfBatch>>,
}

impl<Output> Default for BatchRecord<Output> {
    fn default() -> Self {
        Self {
            key: String::new(),
            shared: String::new(),
            facts: Facts::default(),
            outputs: Vec::new(),
            elements: None,
            summary: None,
            said: None,
            verdict: None,
            placeholder: None,
            failed: Vec::new(),
            answers: Vec::new(),
            pin: None,
            stale: None,
            attempts: 0,
            spent: None,
            duration_ms: 0,
            run: String::new(),
            job: None,
        }
    }
}

impl BatchRecord {
    /// Returns the accepted modifications of its outputs.
    pub fn overrides(&self, stage: &str) -> Vec<Override> {
        let pin = self.pin.iter();
        pin.flat_map(|pin| pin.overrides(stage, &self.key, &self.outputs))
            .collect()
    }
}

impl<Output> BatchRecord<Output> {
    /// Returns the record with other outputs.
    pub fn with_outputs<Other>(self, outputs: Vec<Other>) -> BatchRecord<Other> {
        BatchRecord {
            key: self.key,
            shared: self.shared,
            facts: self.facts,
            outputs,
            elements: self.elements,
            summary: self.summary,
            said: self.said,
            verdict: self.verdict,
            placeholder: self.placeholder,
            failed: self.failed,
            answers: self.answers,
            pin: self.pin,
            stale: self.stale,
            attempts: self.attempts,
            spent: self.spent,
            duration_ms: self.duration_ms,
            run: self.run,
            job: self.job,
        }
    }

    /// Returns true if the recorded bytes of a file may be a person's, who accepted them.
    pub fn is_by_hand(&self, path: &RelPath) -> bool {
        self.pin.as_ref().is_some_and(|pin| pin.covers(path))
    }

    /// Returns the failure, if the outputs are a placeholder or elements are missing.
    pub fn failure(&self) -> Option<Cow<'_, Outcome>> {
        match &self.placeholder {
            Some(outcome) => Some(Cow::Borrowed(outcome)),
            None => FailedKeys::outcome(&self.failed).map(Cow::Owned),
        }
    }

    /// Returns the keys of the elements that failed.
    pub fn failed_keys(&self) -> BTreeSet<String> {
        let keys = self.failed.iter().flat_map(|failed| &failed.keys);
        keys.cloned().collect()
    }

    /// Returns the results of `summary` and `verdict`.
    pub fn opinion(&self) -> Opinion {
        Opinion {
            summary: self.summary.clone(),
            said: self.said.clone(),
            verdict: self.verdict,
        }
    }
}
