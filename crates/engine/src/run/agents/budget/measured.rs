//! The measured use of calls with one prompt of one agent, from which the next call's reservation follows.

use crate::steps::agent::costs::CallCosts;
use milepost_agents::request::ADDED;
use milepost_core::model::call::{CallResponse, Estimated, SentCall};
use milepost_core::model::money::NanoUsd;

/// How many times the highest measured ratio is reserved.
const MARGIN: f64 = 1.5;

/// The highest use of answered calls with one prompt of one agent.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct MeasuredUsage {
    /// The highest ratio of the input tokens to the most that the request could have; `None` if no call reported its tokens. It is above
    /// 1 if the agent reads more than the request.
    input: Option<f64>,
    /// The most tokens of an answer.
    output: u64,
    /// The most that a call cost which cost more than it reserved.
    cost: NanoUsd,
}

impl MeasuredUsage {
    /// Adds an answered call, whose request could have at most `bound` input tokens.
    pub(super) fn add(&mut self, sent: &SentCall, bound: u64, response: &CallResponse) {
        if response.exceeds(sent) {
            self.cost = self.cost.max(response.cost.unwrap_or_default());
        }
        let is_reported = matches!(response.estimated, None | Some(Estimated::NoPrice));
        let input = response.usage.total_input();
        if is_reported && input > 0 {
            let ratio = |bound: u64| input as f64 / bound.max(1) as f64;
            // Of a short request the added tokens are the largest part, and of a long one the smallest.
            let ratio = match ratio(bound) {
                above if above > 1.0 => above,
                _ => ratio(bound.saturating_sub(ADDED)).min(1.0),
            };
            self.input = Some(self.input.map_or(ratio, |highest| highest.max(ratio)));
            self.output = self.output.max(response.usage.output);
        }
    }

    /// Sets what a call reserves whose request can have at most `bound` input tokens.
    pub(super) fn reserve(&self, sent: &mut SentCall, bound: u64, costs: &CallCosts) {
        sent.most_input = match self.input {
            Some(ratio) if ratio > 1.0 => scaled(bound, ratio * MARGIN),
            Some(ratio) => {
                let text = scaled(bound.saturating_sub(ADDED), ratio * MARGIN);
                (text + ADDED).min(bound)
            }
            None => bound,
        };
        sent.most_output = match sent.most_output {
            // The agent declares no limit.
            0 => 0,
            declared => declared.max(self.output),
        };
        let most = costs.most(sent.most_input, sent.most_output);
        sent.reserved = most.map(|most| most.max(self.cost));
    }
}

fn scaled(tokens: u64, factor: f64) -> u64 {
    (tokens as f64 * factor).ceil() as u64
}
