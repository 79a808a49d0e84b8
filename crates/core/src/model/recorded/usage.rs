//! The tokens that a call used, counted in the same way for all providers.

use serde::{Deserialize, Serialize};
use std::iter::Sum;
use std::ops::{Add, Sub};

/// Tokens of one call, or of many. The three kinds of input do not overlap: their sum is the whole input.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Usage {
    /// Input that was neither read from nor written to a cache.
    pub input: u64,
    /// Input read from a cache.
    pub cache_read: u64,
    /// Input written to a cache.
    pub cache_write: u64,
    /// The whole output, including reasoning.
    pub output: u64,
    /// The part of the output that is reasoning, which the answer does not show.
    pub reasoning: u64,
}

impl Usage {
    /// No tokens.
    pub const NONE: Self = Self {
        input: 0,
        cache_read: 0,
        cache_write: 0,
        output: 0,
        reasoning: 0,
    };

    /// Returns the input tokens of all kinds.
    pub fn total_input(&self) -> u64 {
        self.input
            .saturating_add(self.cache_read)
            .saturating_add(self.cache_write)
    }

    /// Returns the tokens of input and output.
    pub fn total(&self) -> u64 {
        self.total_input().saturating_add(self.output)
    }

    /// Converts counts whose input includes cached tokens, as OpenAI and Gemini report them.
    pub fn of_whole_input(input: u64, cache_read: u64, cache_write: u64, output: u64) -> Self {
        Self {
            input: input.saturating_sub(cache_read).saturating_sub(cache_write),
            cache_read,
            cache_write,
            output,
            reasoning: 0,
        }
    }
}

impl Add for Usage {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            input: self.input.saturating_add(other.input),
            cache_read: self.cache_read.saturating_add(other.cache_read),
            cache_write: self.cache_write.saturating_add(other.cache_write),
            output: self.output.saturating_add(other.output),
            reasoning: self.reasoning.saturating_add(other.reasoning),
        }
    }
}

impl Sub for Usage {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self {
            input: self.input.saturating_sub(other.input),
            cache_read: self.cache_read.saturating_sub(other.cache_read),
            cache_write: self.cache_write.saturating_sub(other.cache_write),
            output: self.output.saturating_sub(other.output),
            reasoning: self.reasoning.saturating_sub(other.reasoning),
        }
    }
}

impl Sum for Usage {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), Add::add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_input_is_the_sum_of_its_kinds() {
        let usage = Usage::of_whole_input(1000, 600, 100, 50);
        let expected = Usage {
            input: 300,
            cache_read: 600,
            cache_write: 100,
            output: 50,
            reasoning: 0,
        };
        assert_eq!(usage, expected);
        assert_eq!((usage.total_input(), usage.total()), (1000, 1050));
        let twice: Usage = [usage, usage].into_iter().sum();
        assert_eq!(twice.total(), 2100);
    }
}
