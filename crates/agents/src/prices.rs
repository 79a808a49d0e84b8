//! Prices of models: a dated built-in table, and the project's own table, which wins over it.

use milepost_core::model::money::NanoUsd;
use milepost_core::model::usage::Usage;
use serde::Deserialize;
use std::collections::BTreeMap;

/// The table that comes with the program.
const TABLE: &str = include_str!("prices.toml");

/// How a request is billed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Billing {
    /// As a call of its own.
    Direct,
    /// As part of a provider batch.
    Batch,
}

/// Prices of models.
#[derive(Debug, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(debug_assertions, schemars(title = "Prices of models"))]
struct PriceFile {
    /// The day on which the prices were read, as `2026-11-20`.
    date: String,
    /// The models.
    #[serde(default)]
    model: Vec<ModelPrice>,
}

/// One model. Prices are billionths of a dollar for a token: 1000 is a dollar for a million tokens.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct ModelPrice {
    /// Name, as in requests; a `*` at the end matches any suffix.
    name: String,
    /// Input tokens that are not read from a cache.
    input: u64,
    /// Input tokens read from a cache. Default: the price of `input`.
    cache_read: Option<u64>,
    /// Input tokens written to a cache. Default: the price of `input`.
    cache_write: Option<u64>,
    /// Output tokens, reasoning included.
    output: u64,
    /// Price of a provider batch, in percent of these prices. Default: 100.
    batch_percent: Option<u64>,
    /// Prices of a whole request whose input is larger.
    above: Option<Above>,
}

/// Prices of a long request.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct Above {
    /// The prices apply if the input has more tokens than this.
    tokens: u64,
    /// As in `model`.
    input: u64,
    /// As in `model`.
    cache_read: Option<u64>,
    /// As in `model`.
    cache_write: Option<u64>,
    /// As in `model`.
    output: u64,
}

/// A price file that is not valid.
#[derive(Debug, thiserror::Error)]
#[error("{file}: {message}")]
pub struct PriceError {
    pub(crate) file: String,
    /// The reason, with its position.
    pub(crate) message: String,
}

/// The prices of models.
#[derive(Debug, Clone)]
pub struct Prices {
    date: String,
    models: BTreeMap<String, ModelPrice>,
    /// Rows for the beginnings of names, from the longest on.
    beginnings: Vec<ModelPrice>,
}

impl Prices {
    /// Returns the built-in prices.
    ///
    /// # Errors
    /// Never fails, because a test reads the table.
    pub fn embedded() -> Result<Self, PriceError> {
        Self {
            date: String::new(),
            models: BTreeMap::new(),
            beginnings: Vec::new(),
        }
        .with("prices.toml", TABLE)
    }

    /// Adds the prices of a file, which win over those of the same model.
    ///
    /// # Errors
    /// Fails if the text is not a price file.
    pub fn with(mut self, file: &str, text: &str) -> Result<Self, PriceError> {
        let wrong = |message: String| PriceError {
            file: file.to_owned(),
            message,
        };
        let mut table: PriceFile =
            toml::from_str(text).map_err(|error| wrong(error.to_string().trim_end().to_owned()))?;
        if table.date.parse::<jiff::civil::Date>().is_err() {
            return Err(wrong(format!(
                "`date = \"{}\"`: expected a day such as \"2026-11-20\"",
                table.date
            )));
        }
        // The order of the rows of a file does not matter: its patterns come first, so that they remove none of its exact rows.
        table.model.sort_by_key(|row| !row.name.ends_with('*'));
        for row in table.model {
            match row.name.strip_suffix('*') {
                Some(beginning) => {
                    // A pattern replaces the rows before it whose exact names it covers, such as those of the built-in table.
                    self.models.retain(|name, _| !name.starts_with(beginning));
                    // The same pattern of an earlier file comes after it.
                    let name = beginning.to_owned();
                    self.beginnings.insert(0, ModelPrice { name, ..row });
                }
                None => drop(self.models.insert(row.name.clone(), row)),
            }
        }
        self.beginnings
            .sort_by_key(|row| std::cmp::Reverse(row.name.len()));
        self.date = self.date.max(table.date);
        Ok(self)
    }

    /// Returns the cost of a request; `None` if the price of the model is unknown.
    pub fn cost(&self, model: &str, usage: &Usage, mode: Billing) -> Option<NanoUsd> {
        let row = self.row(model)?;
        let rates = row.rates(usage.total_input());
        let parts = [
            (usage.input, rates.input),
            (usage.cache_read, rates.cache_read),
            (usage.cache_write, rates.cache_write),
            (usage.output, rates.output),
        ];
        Some(row.total(&parts, mode))
    }

    /// Returns the most that a request can cost: all input at its highest price, and the maximum output. `None` if the price of the
    /// model is unknown.
    pub fn max_cost(
        &self,
        model: &str,
        input: u64,
        max_tokens: u64,
        mode: Billing,
    ) -> Option<NanoUsd> {
        let row = self.row(model)?;
        let rates = row.rates(input);
        let dearest = rates.input.max(rates.cache_write).max(rates.cache_read);
        Some(row.total(&[(input, dearest), (max_tokens, rates.output)], mode))
    }

    /// Returns the row of a model, also under a dated name (`-20251001`, `-2025-08-07`, `-latest`) and with a tool's `[1m]`.
    fn row(&self, model: &str) -> Option<&ModelPrice> {
        let name = model.split('[').next().unwrap_or(model);
        let undated = undated(name);
        let mut patterns = self.beginnings.iter();
        let pattern = patterns.find(|row| name.starts_with(&row.name));
        let longer = pattern.filter(|row| row.name.len() > undated.len());
        let exact = |name: &str| self.models.get(name);
        let versioned = exact(model).or_else(|| exact(name)).or(longer);
        versioned.or_else(|| exact(undated)).or(pattern)
    }
}

/// The prices of one request, with defaults filled in.
struct Rates {
    input: u64,
    cache_read: u64,
    cache_write: u64,
    output: u64,
}

impl ModelPrice {
    fn rates(&self, total_input: u64) -> Rates {
        let (input, cache_read, cache_write, output) = match &self.above {
            Some(above) if total_input > above.tokens => (
                above.input,
                above.cache_read,
                above.cache_write,
                above.output,
            ),
            _ => (self.input, self.cache_read, self.cache_write, self.output),
        };
        Rates {
            input,
            cache_read: cache_read.unwrap_or(input),
            cache_write: cache_write.unwrap_or(input),
            output,
        }
    }

    /// Returns the sum, rounded up: a budget is not crossed by a fraction.
    fn total(&self, parts: &[(u64, u64)], mode: Billing) -> NanoUsd {
        let sum: u128 = parts
            .iter()
            .map(|(tokens, rate)| u128::from(*tokens) * u128::from(*rate))
            .sum();
        let percent = match mode {
            Billing::Direct => 100,
            Billing::Batch => u128::from(self.batch_percent.unwrap_or(100)),
        };
        let cost = sum.saturating_mul(percent).div_ceil(100);
        NanoUsd(u64::try_from(cost).unwrap_or(u64::MAX))
    }
}

/// A model's name without the date of its version.
fn undated(name: &str) -> &str {
    let name = name.strip_suffix("-latest").unwrap_or(name);
    let shape = name.replace(|c: char| c.is_ascii_digit(), "#");
    let mut dates = ["-########", "-####-##-##"].into_iter();
    let date = dates.find(|date| shape.ends_with(date));
    &name[..name.len() - date.map_or(0, str::len)]
}

/// Returns the JSON Schema of a file of prices.
#[cfg(debug_assertions)]
pub fn prices_schema() -> serde_json::Value {
    use schemars::transform::{RecursiveTransform, Transform as _};

    let mut schema = schemars::schema_for!(PriceFile);
    // `uint64` is not a format of JSON Schema.
    let mut without = RecursiveTransform(|schema: &mut schemars::Schema| {
        schema.remove("format");
    });
    without.transform(&mut schema);
    schema.insert("$id".to_owned(), "prices.schema.json".into());
    schema.to_value()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(prices: &Prices, model: &str, usage: Usage, mode: Billing) -> Option<u64> {
        prices.cost(model, &usage, mode).map(|cost| cost.0)
    }

    #[test]
    fn the_table_is_read_and_gives_known_costs() {
        let prices = Prices::embedded().unwrap();
        assert_eq!(prices.date, "2026-11-20");
        let usage = Usage {
            input: 1_200,
            output: 34,
            ..Usage::default()
        };
        // Claude Code reports $0.00411 for such a call.
        for model in [
            "claude-sonnet-4-5",
            "claude-sonnet-4-5-20250929",
            "claude-sonnet-4-5[1m]",
        ] {
            assert_eq!(
                cost(&prices, model, usage, Billing::Direct),
                Some(4_110_000)
            );
        }
        assert_eq!(
            cost(&prices, "claude-sonnet-4-5", usage, Billing::Batch),
            Some(2_055_000)
        );
        assert_eq!(
            cost(&prices, "claude-sonnet-9", usage, Billing::Direct),
            None
        );
        assert_eq!(
            cost(&prices, "gpt-5-2025-08-07", usage, Billing::Direct),
            Some(1_840_000)
        );
        let cached = Usage {
            cache_read: 1_000,
            cache_write: 100,
            ..usage
        };
        assert_eq!(
            cost(&prices, "claude-haiku-4-5", cached, Billing::Direct),
            Some(1_200_000 + 100_000 + 125_000 + 170_000)
        );
        // Half of an odd amount is rounded up.
        let one = Usage {
            cache_read: 1,
            ..Usage::default()
        };
        assert_eq!(cost(&prices, "gpt-5-nano", one, Billing::Batch), Some(3));
    }

    #[test]
    fn long_requests_cost_more() {
        let prices = Prices::embedded().unwrap();
        let at = |input| {
            cost(
                &prices,
                "claude-haiku-5-5",
                Usage {
                    input,
                    output: 10,
                    ..Usage::default()
                },
                Billing::Direct,
            )
        };
        assert_eq!(at(100_000), Some(10_005_000));
        assert_eq!(at(100_001), Some(50_000_500 + 25_000));
        assert_eq!(
            prices.max_cost("claude-haiku-5-5", 1_000, 100, Billing::Direct),
            Some(NanoUsd(125_000 + 50_000))
        );
        assert_eq!(prices.max_cost("unknown", 1, 1, Billing::Direct), None);
    }

    #[test]
    fn a_file_of_ones_own_wins() {
        let own = "date = \"2026-12-01\"\n\
            [[model]]\nname = \"gpt-5\"\ninput = 7\noutput = 9\n\
            [[model]]\nname = \"llama*\"\ninput = 0\noutput = 0\n\
            [[model]]\nname = \"claude-opus-*\"\ninput = 1\noutput = 1\n\
            [[model]]\nname = \"gpt-5*\"\ninput = 3\noutput = 3\n";
        let prices = Prices::embedded()
            .unwrap()
            .with("prices.toml", own)
            .unwrap();
        let usage = Usage {
            input: 10,
            cache_read: 10,
            output: 10,
            ..Usage::default()
        };
        assert_eq!(prices.date, "2026-12-01");
        assert_eq!(
            cost(&prices, "gpt-5", usage, Billing::Batch),
            Some(70 + 70 + 90)
        );
        assert_eq!(
            cost(&prices, "llama3.1:8b", usage, Billing::Direct),
            Some(0)
        );
        assert_eq!(
            cost(&prices, "claude-opus-4-8", usage, Billing::Direct),
            Some(30)
        );
        // The price of a name wins over that of a pattern, in whichever order a file has them.
        assert_eq!(cost(&prices, "gpt-5-x", usage, Billing::Direct), Some(90));
        let again = "date = \"2026-12-02\"\n[[model]]\nname = \"gpt-5*\"\ninput = 5\noutput = 5\n";
        let prices = prices.with("again.toml", again).unwrap();
        assert_eq!(cost(&prices, "gpt-5-x", usage, Billing::Direct), Some(150));
        // A pattern that matches a part of the date wins over the name without it.
        let dated = "date = \"2026-12-03\"\n[[model]]\nname = \"o3-2025*\"\ninput = 8\noutput = 8\n\
            [[model]]\nname = \"o3\"\ninput = 9\noutput = 9\n\
            [[model]]\nname = \"o3[1m]\"\ninput = 7\noutput = 7\n";
        let prices = prices.with("dated.toml", dated).unwrap();
        let of = |model| cost(&prices, model, usage, Billing::Direct);
        assert_eq!(of("o3-2025-04-16"), Some(240));
        assert_eq!(of("o3-2024-04-16"), Some(270));
        assert_eq!((of("o3[1m]"), of("o3[2m]")), (Some(210), Some(270)));
        assert_eq!(of("o3-20240416"), Some(270));
        assert_eq!(of("o3-latest"), Some(270));
        let wrong = |text: &str| {
            Prices::embedded()
                .unwrap()
                .with("own.toml", text)
                .unwrap_err()
                .to_string()
        };
        assert!(
            wrong("date = \"soon\"").starts_with("own.toml: `date = \"soon\"`: expected a day")
        );
        let float =
            wrong("date = \"2026-12-01\"\n[[model]]\nname = \"x\"\ninput = 0.5\noutput = 1\n");
        assert!(
            float.starts_with("own.toml: TOML parse error at line 4, column 9"),
            "{float}"
        );
    }
}
