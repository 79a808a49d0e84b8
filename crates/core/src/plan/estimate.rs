//! The expected use of calls: as declared, as measured on earlier calls of the stage, or as assumed.

use crate::model::call::{CallResponse, SentCall};
use crate::model::money::NanoUsd;
use crate::model::stage::Estimate;
use crate::model::usage::Usage;
use serde::Serialize;

/// The assumed tokens of an answer to one question.
pub const ONE_ANSWER: u64 = 100;

/// The assumed tokens of an answer to a whole prompt.
pub const WHOLE_ANSWER: u64 = 1000;

/// The basis of an estimate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// `[estimate]` of the stage.
    Declared,
    /// This many answered calls of the stage.
    Measured(u64),
    /// This many assumed tokens for each answer.
    Assumed(u64),
}

/// The use of the answered calls of a stage.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Past {
    calls: u64,
    questions: u64,
    likely_input: u64,
    usage: Usage,
    /// The sum of the known costs.
    cost: NanoUsd,
    /// Calls whose cost is known.
    priced: u64,
}

impl Past {
    /// Adds a call.
    pub fn add(&mut self, sent: &SentCall, response: &CallResponse) {
        let is_measured = response.usage.total() > 0 || response.cost.is_some();
        if !is_measured || response.estimated.is_some() {
            return;
        }
        self.calls += 1;
        self.questions = self.questions.saturating_add(sent.questions);
        self.likely_input = self.likely_input.saturating_add(sent.likely_input);
        self.usage = self.usage + response.usage;
        if let Some(cost) = response.cost {
            self.cost = self.cost + cost;
            self.priced += 1;
        }
    }

    /// Returns the cost of this many such calls; `None` if no cost is known.
    pub fn cost_of(&self, calls: u64) -> Option<NanoUsd> {
        (self.priced > 0).then(|| NanoUsd(scaled(self.cost.0, calls, self.priced)))
    }
}

/// The calls of one stage to one agent that are expected.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExpectedCalls {
    /// The number of batches.
    pub batches: u64,
    /// The number of requests.
    pub calls: u64,
    /// The number of questions.
    pub questions: u64,
    /// The expected input tokens.
    pub likely_input: u64,
    /// The most tokens of their answers; 0 if no limit is declared.
    pub most_output: u64,
}

/// Returns the expected use, and the basis of the estimate.
pub fn expect(
    asked: &ExpectedCalls,
    past: &Past,
    declared: Option<&Estimate>,
    one_answer: u64,
) -> (Usage, Basis) {
    if let Some(declared) = declared {
        let all = declared.tokens.saturating_mul(asked.batches);
        let input = ((all as f64) * declared.input_share).round() as u64;
        let usage = Usage {
            input: input.min(all),
            output: all - input.min(all),
            ..Usage::default()
        };
        return (usage, Basis::Declared);
    }
    if past.calls > 0 && past.usage.total() > 0 {
        let by_input = |tokens: u64| scaled(tokens, asked.likely_input, past.likely_input);
        let usage = Usage {
            input: by_input(past.usage.input),
            cache_read: by_input(past.usage.cache_read),
            cache_write: by_input(past.usage.cache_write),
            output: scaled(past.usage.output, asked.questions, past.questions),
            reasoning: 0,
        };
        return (usage, Basis::Measured(past.calls));
    }
    let output = one_answer.saturating_mul(asked.questions);
    let output = match asked.most_output {
        0 => output,
        most => output.min(most),
    };
    let usage = Usage {
        input: asked.likely_input,
        output,
        ..Usage::default()
    };
    let per_answer = output.div_ceil(asked.questions.max(1));
    (usage, Basis::Assumed(per_answer.min(one_answer)))
}

/// Scales the use of `of` calls to `part` calls, rounded up.
fn scaled(used: u64, part: u64, of: u64) -> u64 {
    let scaled = (u128::from(used) * u128::from(part)).div_ceil(u128::from(of.max(1)));
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::digest::Digest;

    fn asked() -> ExpectedCalls {
        ExpectedCalls {
            batches: 4,
            calls: 3,
            questions: 130,
            likely_input: 9000,
            most_output: 12288,
        }
    }

    fn past() -> Past {
        let sent = SentCall {
            stage: "classify".to_owned(),
            batch: "batch_1".to_owned(),
            attempt: 1,
            agent: "api".to_owned(),
            provider: "openai gpt".to_owned(),
            model: "gpt".to_owned(),
            asked: Digest::of("asked"),
            request: Digest::of("{}"),
            questions: 50,
            likely_input: 3000,
            most_input: 0,
            most_output: 4096,
            reserved: None,
            batched: false,
        };
        let response = |usage, cost| CallResponse {
            outcome: "answered".to_owned(),
            message: None,
            usage,
            cost,
            estimated: None,
            served: None,
            request_id: None,
            text: None,
            structured: None,
            stop: None,
            raw: Digest::of(""),
            took_ms: 1,
        };
        let usage = Usage {
            input: 2000,
            cache_read: 500,
            output: 1501,
            ..Usage::default()
        };
        let mut past = Past::default();
        past.add(&sent, &response(usage, Some(NanoUsd(70))));
        // Of a tool that says nothing of tokens and money nothing is learnt.
        past.add(&sent, &response(Usage::default(), None));
        // Nor of a call that counts with its reservation.
        let estimated = CallResponse {
            estimated: Some(crate::model::call::Estimated::NoUsage),
            ..response(Usage::default(), Some(NanoUsd(7000)))
        };
        past.add(&sent, &estimated);
        past
    }

    #[test]
    fn what_is_declared_wins_then_what_was_used_then_what_is_assumed() {
        let declared = Estimate {
            tokens: 5000,
            input_share: 0.6,
        };
        let usage = |input, cache_read, output| Usage {
            input,
            cache_read,
            output,
            ..Usage::default()
        };
        assert_eq!(
            expect(&asked(), &past(), Some(&declared), ONE_ANSWER),
            (usage(12_000, 0, 8000), Basis::Declared)
        );
        assert_eq!(
            expect(&asked(), &past(), None, ONE_ANSWER),
            (usage(6000, 1500, 3903), Basis::Measured(1))
        );
        assert_eq!(
            expect(&asked(), &Past::default(), None, ONE_ANSWER),
            (usage(9000, 0, 12_288), Basis::Assumed(95))
        );
        assert_eq!(past().cost_of(3), Some(NanoUsd(210)));
        assert_eq!(Past::default().cost_of(3), None);
    }
}
