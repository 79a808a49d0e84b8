//! The records of a call of an agent: the request, written before it is sent, and the response.

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
pub struct SentCall {
    /// The stage.
    pub stage: String,
    /// The batch.
    pub batch: String,
    /// The number of the call in its batch, from 1.
    pub attempt: u32,
    /// The agent that answers, after `--agent`.
    pub agent: String,
    /// The provider, in one line.
    pub provider: String,
    /// The model; empty if the agent names none.
    pub model: String,
    /// The digest of prompt, attachments and schema, whichever agent answers.
    pub asked: Digest,
    /// The digest of the exact bytes of the request.
    pub request: Digest,
    /// The number of questions.
    pub questions: u64,
    /// The expected input tokens.
    pub likely_input: u64,
    /// The most input tokens that are reserved; 0 in records of earlier versions, which reserved the expected ones.
    #[serde(default)]
    pub most_input: u64,
    /// The most tokens that the answer may have.
    pub most_output: u64,
    /// The most that it may cost; `None` if no price is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reserved: Option<NanoUsd>,
    /// True if it is part of a provider batch.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub batched: bool,
}

/// The outcome of a call that was answered.
pub const ANSWERED: &str = "answered";

/// The reason why a call is not charged what its agent reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Estimated {
    /// The agent reported no usage, or none that can be read.
    NoUsage,
    /// The agent reported far more usage than the request allows.
    ImplausibleUsage,
    /// The agent reported its usage, and the price is unknown.
    NoPrice,
}

/// The response to a call, or how the call failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct CallResponse {
    /// `answered`, or the kind of failure.
    pub outcome: String,
    /// The error message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Tokens used.
    pub usage: Usage,
    /// The cost; `None` if no price is known and the tool reports none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<NanoUsd>,
    /// Why the cost is the reserved amount; `None` if it is measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated: Option<Estimated>,
    /// The model that answered, as the provider names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub served: Option<String>,
    /// The provider's id of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// The answer's text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The answer as a value, if the provider returns one beside the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured: Option<Value>,
    /// Why the answer ended: `end`, `length`, `refused`, or the provider's own word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<String>,
    /// The digest of the exact bytes of the response.
    pub raw: Digest,
    /// The duration in milliseconds.
    pub took_ms: u64,
}

impl SentCall {
    /// Returns the most tokens of input and output, which are reserved until the call is answered.
    pub fn most_tokens(&self) -> u64 {
        self.reserved_usage().total()
    }

    /// Returns the reserved tokens as usage.
    fn reserved_usage(&self) -> Usage {
        Usage {
            input: self.likely_input.max(self.most_input),
            output: self.most_output,
            ..Usage::NONE
        }
    }

    /// Removes keys from the command line.
    #[must_use]
    pub fn without_keys(mut self, redactor: &Redactor) -> Self {
        if let Cow::Owned(hidden) = redactor.text(&self.provider) {
            self.provider = hidden;
        }
        self
    }
}

impl CallResponse {
    /// Returns the outcome of a call that was recorded and then not sent.
    pub fn never_sent() -> Self {
        Self {
            outcome: OutcomeKind::Cancelled.name().to_owned(),
            message: Some("the run ended before it was sent".to_owned()),
            usage: Usage::default(),
            cost: Some(NanoUsd::ZERO),
            estimated: None,
            served: None,
            request_id: None,
            text: None,
            structured: None,
            stop: None,
            raw: Digest::of(""),
            took_ms: 0,
        }
    }

    /// Returns true if the call cost more than was reserved for it.
    pub fn exceeds(&self, sent: &SentCall) -> bool {
        self.cost
            .zip(sent.reserved)
            .is_some_and(|(cost, reserved)| cost > reserved)
    }

    /// Removes keys; `raw` is the response without them.
    #[must_use]
    pub fn without_keys(mut self, redactor: &Redactor, raw: &[u8]) -> Self {
        let texts = [
            &mut self.message,
            &mut self.text,
            &mut self.served,
            &mut self.request_id,
            &mut self.stop,
        ];
        for text in texts.into_iter().flatten() {
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

/// The cost of the calls of a batch, a stage, a run or a workspace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Spent {
    /// The number of calls that were sent.
    pub calls: u64,
    /// Tokens used.
    pub usage: Usage,
    /// The cost. A call without a known result counts with the most that it may have cost.
    pub cost: NanoUsd,
    /// The sum of their durations in milliseconds.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub took_ms: u64,
    /// The number of calls whose cost is unknown.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unpriced: u64,
    /// The number of calls whose cost is the most that they may have cost.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub estimated: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Spent {
    /// Returns the cost of one call. A call without a known result, or without a usage that can be believed, counts with the most
    /// that it may have cost.
    pub fn of(sent: &SentCall, response: Option<&CallResponse>) -> Self {
        let cost = match response {
            Some(response) => response.cost,
            None => sent.reserved,
        };
        let estimated = response.map_or(Some(Estimated::NoUsage), |response| response.estimated);
        let usage = match (response, estimated) {
            (Some(response), None | Some(Estimated::NoPrice)) => response.usage,
            (None, _) | (Some(_), Some(Estimated::NoUsage | Estimated::ImplausibleUsage)) => {
                sent.reserved_usage()
            }
        };
        Self {
            calls: 1,
            usage,
            cost: cost.unwrap_or_default(),
            // Calls of a provider batch share one wait, which the provider decides.
            took_ms: response
                .filter(|_| !sent.batched)
                .map_or(0, |response| response.took_ms),
            unpriced: u64::from(cost.is_none()),
            estimated: u64::from(estimated.is_some()),
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
        self.estimated = self.estimated.saturating_sub(other.estimated);
    }
}

impl AddAssign for Spent {
    fn add_assign(&mut self, other: Self) {
        self.calls = self.calls.saturating_add(other.calls);
        self.usage = self.usage + other.usage;
        self.cost = self.cost + other.cost;
        self.took_ms = self.took_ms.saturating_add(other.took_ms);
        self.unpriced = self.unpriced.saturating_add(other.unpriced);
        self.estimated = self.estimated.saturating_add(other.estimated);
    }
}
