//! A call of an agent: what is recorded before it is sent, and what was heard.

use super::usage::Usage;
use crate::base::digest::Digest;
use crate::base::redact::Redactor;
use crate::model::money::NanoUsd;
use crate::model::outcome::OutcomeKind;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;
use std::ops::{AddAssign, SubAssign};

/// A call that is about to be sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Sent {
    /// The stage.
    pub stage: String,
    /// The batch.
    pub batch: String,
    /// Which call of its batch, from 1 on.
    pub attempt: u32,
    /// The agent that is asked, after replacements.
    pub agent: String,
    /// Who that is, in one line.
    pub provider: String,
    /// The model, where one is named.
    pub model: String,
    /// What is asked, whoever is asked: the digest of prompt, attachments and schema.
    pub asked: Digest,
    /// The digest of the exact bytes of the request.
    pub request: Digest,
    /// Questions in it.
    pub questions: u64,
    /// Tokens that it is likely to have as input.
    pub likely_input: u64,
    /// The most tokens of the answer.
    pub most_output: u64,
    /// What it may cost at most; none when no price is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reserved: Option<NanoUsd>,
    /// Whether it goes in a batch of the provider's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub batched: bool,
}

/// The outcome of a call that was answered.
pub const ANSWERED: &str = "answered";

/// What was heard of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Heard {
    /// `answered`, or how it failed.
    pub outcome: String,
    /// What was wrong, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Tokens used.
    pub usage: Usage,
    /// What it cost; none when no price is known and the tool does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<NanoUsd>,
    /// The model that answered, as the provider names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub served: Option<String>,
    /// The provider's id of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// The answer's text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The answer as a value, where the provider gives it apart from the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured: Option<Value>,
    /// Why the answer ended: `end`, `length`, `refused`, or as the provider calls it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<String>,
    /// The digest of the exact bytes that arrived.
    pub raw: Digest,
    /// How long it took, in milliseconds.
    pub took_ms: u64,
}

impl Sent {
    /// The same without keys that stand in a command line.
    #[must_use]
    pub fn without_keys(mut self, redactor: &Redactor) -> Self {
        if let Cow::Owned(hidden) = redactor.text(&self.provider) {
            self.provider = hidden;
        }
        self
    }
}

impl Heard {
    /// Of a call that was recorded and not sent after all.
    pub fn never_sent() -> Self {
        Self {
            outcome: OutcomeKind::Cancelled.name().to_owned(),
            message: Some("the run ended before it was sent".to_owned()),
            usage: Usage::default(),
            cost: Some(NanoUsd::ZERO),
            served: None,
            request_id: None,
            text: None,
            structured: None,
            stop: None,
            raw: Digest::of(""),
            took_ms: 0,
        }
    }

    /// The same without keys, where `raw` is what arrived without them.
    #[must_use]
    pub fn without_keys(mut self, redactor: &Redactor, raw: &[u8]) -> Self {
        for text in [&mut self.message, &mut self.text].into_iter().flatten() {
            if let Cow::Owned(hidden) = redactor.text(text) {
                *text = hidden;
            }
        }
        if let Some(value) = &mut self.structured
            && let Cow::Owned(hidden) = redactor.text(&value.to_string())
        {
            *value = serde_json::from_str(&hidden).unwrap_or(Value::String(hidden));
        }
        self.raw = Digest::of(raw);
        self
    }
}

/// What calls cost, of a batch, a stage, a run or a workspace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Spent {
    /// Calls that were sent.
    pub calls: u64,
    /// Tokens used.
    pub usage: Usage,
    /// What they cost. Of a call of which nothing was heard, what it may have cost at most.
    pub cost: NanoUsd,
    /// How long they took, added up, in milliseconds.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub took_ms: u64,
    /// Calls whose cost nobody knows.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unpriced: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Spent {
    /// Of one call.
    pub fn of(sent: &Sent, heard: Option<&Heard>) -> Self {
        let cost = match heard {
            Some(heard) => heard.cost,
            None => sent.reserved,
        };
        Self {
            calls: 1,
            usage: heard.map_or_else(Usage::default, |heard| heard.usage),
            cost: cost.unwrap_or_default(),
            // A batch is waited for together with others, and for as long as the provider likes.
            took_ms: heard
                .filter(|_| !sent.batched)
                .map_or(0, |heard| heard.took_ms),
            unpriced: u64::from(cost.is_none()),
        }
    }
}

impl SubAssign for Spent {
    fn sub_assign(&mut self, other: Self) {
        self.calls = self.calls.saturating_sub(other.calls);
        self.usage = self.usage - other.usage;
        self.cost = self.cost.less(other.cost);
        self.took_ms = self.took_ms.saturating_sub(other.took_ms);
        self.unpriced = self.unpriced.saturating_sub(other.unpriced);
    }
}

impl AddAssign for Spent {
    fn add_assign(&mut self, other: Self) {
        self.calls += other.calls;
        self.usage = self.usage + other.usage;
        self.cost = self.cost + other.cost;
        self.took_ms += other.took_ms;
        self.unpriced += other.unpriced;
    }
}
