//! The costs of an agent's calls: at most before a call, and as measured after it.

use milepost_agents::prices::{Billing, Prices};
use milepost_core::model::agent::{Agent, Provider};
use milepost_core::model::call::{Estimated, SentCall};
use milepost_core::model::money::NanoUsd;
use milepost_core::model::usage::Usage;

/// How many times what a request allows is plausible. Servers that ignore `max_tokens` stay below it.
const PLAUSIBLE: u64 = 100;

/// The highest plausible cost of a call of a command-line agent. Only the agent knows what it spent, so its limit says little.
const LARGEST_COST: NanoUsd = NanoUsd(1_000_000_000_000);

/// The most bytes of an answer that one token can plausibly make.
const BYTES_PER_TOKEN: u64 = 20;

/// The usage that an agent reports of a call.
#[derive(Clone, Copy)]
pub(crate) struct ReportedUsage {
    pub(crate) usage: Usage,
    pub(crate) cost: Option<NanoUsd>,
    /// True if the report covers the whole call: the call did not break off, and an answer has output.
    pub(crate) is_whole: bool,
    /// The size of the answer in bytes.
    pub(crate) text: u64,
}

/// The costs of an agent's calls.
pub(crate) struct CallCosts {
    charged: Charged,
    batched: bool,
    /// The declared limit of one call.
    limit: Option<NanoUsd>,
}

/// How calls are charged.
enum Charged {
    Free,
    /// By tokens, at the price of the model.
    Tokens {
        model: String,
        prices: Prices,
    },
    /// As the command line reports.
    Reported,
}

impl CallCosts {
    pub(crate) fn new(agent: &Agent, prices: Prices) -> Self {
        let charged = match &agent.provider {
            Provider::Rules(_) | Provider::Jq(_) | Provider::Replay(_) | Provider::External => {
                Charged::Free
            }
            Provider::Api(api) => Charged::Tokens {
                model: api.model.clone(),
                prices,
            },
            Provider::Cli(_) => Charged::Reported,
        };
        Self {
            charged,
            batched: agent.is_batched(),
            limit: agent.limits.max_usd_per_call,
        }
    }

    /// Returns the most that a call with at most these many tokens of input and output can cost; `None` if unknown.
    pub(crate) fn most(&self, input: u64, output: u64) -> Option<NanoUsd> {
        match &self.charged {
            Charged::Free => Some(NanoUsd::ZERO),
            Charged::Tokens { model, prices } => prices
                .max_cost(model, input, output, mode(self.batched))
                .or(self.limit),
            Charged::Reported => self.limit,
        }
    }

    /// Returns the model by whose price its calls are charged.
    pub(crate) fn model(&self) -> Option<&str> {
        match &self.charged {
            Charged::Tokens { model, .. } => Some(model),
            Charged::Free | Charged::Reported => None,
        }
    }

    /// Returns what a call is charged, and why it is the reserved amount if the report cannot be used. A report above the
    /// reservation is charged.
    pub(crate) fn charge(
        &self,
        sent: &SentCall,
        report: &ReportedUsage,
    ) -> (Option<NanoUsd>, Option<Estimated>) {
        let ReportedUsage { usage, cost, .. } = report;
        let allowed = sent.most_tokens();
        let most = sent.reserved;
        let exceeds = |cost: NanoUsd| most.is_some_and(|most| cost.0 / PLAUSIBLE > most.0);
        let is_too_little = usage.output < report.text / BYTES_PER_TOKEN;
        let estimated = match (&self.charged, *cost) {
            (Charged::Free, _) => None,
            (_, Some(cost))
                if cost > LARGEST_COST && most != Some(NanoUsd::ZERO) && exceeds(cost) =>
            {
                Some(Estimated::ImplausibleUsage)
            }
            (_, Some(cost)) if report.is_whole || cost == NanoUsd::ZERO => None,
            (Charged::Tokens { .. }, None) if usage.total() / PLAUSIBLE > allowed => {
                Some(Estimated::ImplausibleUsage)
            }
            (Charged::Tokens { .. }, None) if report.is_whole && is_too_little => {
                Some(Estimated::ImplausibleUsage)
            }
            (_, None) if report.is_whole && usage.total_input() > 0 => None,
            _ => Some(Estimated::NoUsage),
        };
        if estimated == Some(Estimated::ImplausibleUsage) {
            return (most, estimated);
        }
        let measured = self.of_call(&sent.model, sent.batched, usage, *cost);
        match (measured, estimated) {
            // An interrupted call costs at least what it reported.
            (measured, Some(why)) => (measured.max(most), Some(why)),
            (None, None) => (most, most.map(|_| Estimated::NoPrice)),
            (Some(measured), None) => (Some(measured), None),
        }
    }

    /// Returns the cost of a call of a model; `None` if unknown. A model that runs elsewhere than at its provider has no price
    /// unless one is declared.
    pub(crate) fn of_call(
        &self,
        model: &str,
        batched: bool,
        usage: &Usage,
        reported: Option<NanoUsd>,
    ) -> Option<NanoUsd> {
        if reported.is_some() {
            return reported;
        }
        match &self.charged {
            Charged::Free => Some(NanoUsd::ZERO),
            // No request uses no tokens: the server reported none. Without them only a model whose price is zero has a cost.
            Charged::Tokens { prices, .. } if usage.total() == 0 => {
                let most = prices.max_cost(model, 1, 1, mode(batched));
                most.filter(|&most| most == NanoUsd::ZERO)
            }
            Charged::Tokens { prices, .. } => prices.cost(model, usage, mode(batched)),
            Charged::Reported => None,
        }
    }
}

fn mode(batched: bool) -> Billing {
    if batched {
        Billing::Batch
    } else {
        Billing::Direct
    }
}
