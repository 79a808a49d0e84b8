//! What is known of a batch that was made: its fingerprint, its outputs and how it went.

use super::call::Spent;
pub use super::made::Made;
pub use super::pin::{ModifiedFile, Override, Pin};
use crate::base::path::RelPath;
use crate::model::fingerprint::Facts;
use crate::model::outcome::Outcome;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeSet;

/// What a stage says of a batch that was made.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Opinion {
    /// What the stage's `summary` gave; where it has none, what its steps said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<Box<Value>>,
    /// What its steps said, where the stage's `summary` stands in its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<Box<Value>>,
    /// What the stage's `verdict` gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<bool>,
}

impl Opinion {
    /// The `warnings` in what it says, for people.
    pub fn warnings(&self) -> Vec<String> {
        let told = self.summary.as_ref().map(|summary| &summary["warnings"]);
        let lines = told.and_then(Value::as_array).into_iter().flatten();
        let lines = lines.map(|line| match line {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        });
        lines.collect()
    }
}

/// Elements of a batch that failed although the batch is made, by one cause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct FailedKeys {
    /// Their keys, as conservation counts them; of a stage that has none, where they stand in the batch.
    pub keys: Vec<String>,
    /// How they failed.
    pub outcome: Outcome,
}

impl FailedKeys {
    /// How a batch ended of which these failed; none: nothing did.
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

/// Answers that came with one call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct AnswersOf {
    /// The run that called.
    pub run: String,
    /// Which of its calls it was.
    pub call: u64,
    /// How many questions of the batch they answer.
    pub answers: u64,
}

impl AnswersOf {
    /// One answer of a call.
    pub fn one(run: &str, call: u64) -> Self {
        Self {
            run: run.to_owned(),
            call,
            answers: 1,
        }
    }

    /// Counts them among others, in the order of runs and calls.
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

/// A batch that was made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[cfg_attr(debug_assertions, schemars(rename = "BatchRecord"))]
pub struct BatchRecord<Output = Made> {
    /// What the batch is known by; empty for the only batch of a stage.
    pub key: String,
    /// The id of the facts that it shares with other batches of the stage.
    pub shared: String,
    /// The facts that are its own.
    pub facts: Facts,
    /// What it made.
    pub outputs: Vec<Output>,
    /// Elements that came out, where the stage says how to count them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elements: Option<u64>,
    /// What the stage's `summary` gave; where it has none, what its steps said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<Box<Value>>,
    /// What its steps said, where the stage's `summary` stands in its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<Box<Value>>,
    /// What the stage's `verdict` gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<bool>,
    /// Set when the outputs are a placeholder for a batch that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placeholder: Option<Box<Outcome>>,
    /// Elements that failed: their records are not among what was made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<FailedKeys>,
    /// The calls of agents whose answers its outputs were made from, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<AnswersOf>,
    /// Set when a person pinned the outputs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pin: Option<Box<Pin>>,
    /// An input that changed while the batch ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stale: Option<String>,
    /// Tries that it took.
    pub attempts: u32,
    /// What its calls of agents cost; none: there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent: Option<Box<Spent>>,
    /// How long the last try took, in milliseconds.
    pub duration_ms: u64,
    /// The run that made it.
    pub run: String,
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
    /// The same with other outputs.
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
        }
    }

    /// Returns true if the recorded bytes of a file may be a person's, who accepted them.
    pub fn is_by_hand(&self, path: &RelPath) -> bool {
        self.pin.as_ref().is_some_and(|pin| pin.covers(path))
    }

    /// How it failed, where a placeholder stands for it or elements of it are missing.
    pub fn failure(&self) -> Option<Cow<'_, Outcome>> {
        match &self.placeholder {
            Some(outcome) => Some(Cow::Borrowed(outcome)),
            None => FailedKeys::outcome(&self.failed).map(Cow::Owned),
        }
    }

    /// Keys of the elements that failed.
    pub fn failed_keys(&self) -> BTreeSet<String> {
        let keys = self.failed.iter().flat_map(|failed| &failed.keys);
        keys.cloned().collect()
    }

    /// What the stage says of it.
    pub fn opinion(&self) -> Opinion {
        Opinion {
            summary: self.summary.clone(),
            said: self.said.clone(),
            verdict: self.verdict,
        }
    }
}
