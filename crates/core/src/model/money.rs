//! Money, in whole billionths of a dollar: sums of many small prices stay exact.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::iter::Sum;
use std::ops::Add;
use std::str::FromStr;

/// An amount in billionths of a US dollar. Adding stops at the largest amount instead of wrapping.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct NanoUsd(pub u64);

const DOLLAR: u64 = 1_000_000_000;

/// The decimals with which an amount is shown.
const DECIMALS: u32 = 4;

/// A text that is not an amount of money.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("`{0}` is not an amount: write dollars, such as \"5\", \"0.25\" or \"$12.50\"")]
pub struct NotAnAmount(pub String);

impl NanoUsd {
    pub const ZERO: Self = Self(0);

    /// Converts dollars, rounded to the nearest billionth; `None` if the number is negative, not finite, or too large.
    pub fn from_dollars(dollars: f64) -> Option<Self> {
        let nano = (dollars * DOLLAR as f64).round();
        (dollars >= 0.0 && nano < u64::MAX as f64).then_some(Self(nano as u64))
    }

    /// Subtracts an amount, down to zero.
    #[must_use]
    pub fn less(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// Returns amounts as text, with as many decimals as it takes to tell different amounts apart.
    pub fn apart<const N: usize>(amounts: [Self; N]) -> [String; N] {
        let differ = |texts: &[String; N]| {
            let differs = |a: usize, b: usize| amounts[a] == amounts[b] || texts[a] != texts[b];
            (0..N).all(|a| (0..a).all(|b| differs(a, b)))
        };
        let mut texts = (DECIMALS..=9).map(|decimals| amounts.map(|it| it.with_decimals(decimals)));
        texts
            .find(differ)
            .unwrap_or_else(|| amounts.map(|it| it.with_decimals(9)))
    }

    /// Returns dollars with this many decimals. An amount that would round to zero gets as many as it needs.
    fn with_decimals(self, decimals: u32) -> String {
        let unit = 10_u64.pow(9 - decimals);
        if self.0 != 0 && self.0 < unit / 2 {
            let digits = format!("{:09}", self.0);
            return format!("$0.{}", digits.trim_end_matches('0'));
        }
        let rounded = self.0.saturating_add(unit / 2) / unit;
        let dollar = DOLLAR / unit;
        let (whole, part) = (rounded / dollar, rounded % dollar);
        format!("${whole}.{part:0width$}", width = decimals as usize)
    }

    /// Returns the amount in dollars with as many decimals as it needs, such as `2.5`.
    pub fn plain(self) -> String {
        let text = format!("{}.{:09}", self.0 / DOLLAR, self.0 % DOLLAR);
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    }

    /// Returns the amount in dollars, for charts and exports. Add up amounts as integers instead.
    pub fn dollars(self) -> f64 {
        self.0 as f64 / DOLLAR as f64
    }
}

impl Add for NanoUsd {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sum for NanoUsd {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::ZERO, Add::add)
    }
}

impl FromStr for NanoUsd {
    type Err = NotAnAmount;

    fn from_str(text: &str) -> Result<Self, NotAnAmount> {
        let wrong = || NotAnAmount(text.to_owned());
        let number = text.trim().trim_start_matches('$');
        let (whole, part) = number.split_once('.').unwrap_or((number, ""));
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if (whole.is_empty() && part.is_empty())
            || !digits(whole)
            || !digits(part)
            || part.len() > 9
        {
            return Err(wrong());
        }
        let whole: u64 = if whole.is_empty() { "0" } else { whole }
            .parse()
            .map_err(|_| wrong())?;
        let part: u64 = format!("{part:0<9}").parse().map_err(|_| wrong())?;
        let whole = whole.checked_mul(DOLLAR).ok_or_else(wrong)?;
        whole.checked_add(part).map(Self).ok_or_else(wrong)
    }
}

impl fmt::Display for NanoUsd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.with_decimals(DECIMALS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_shown_in_dollars() {
        let shown = |nano: u64| NanoUsd(nano).to_string();
        assert_eq!(shown(0), "$0.0000");
        assert_eq!(shown(12_300_000), "$0.0123");
        assert_eq!(shown(12_349_999), "$0.0123");
        assert_eq!(shown(12_350_000), "$0.0124");
        assert_eq!(shown(49_999), "$0.000049999");
        assert_eq!(shown(250), "$0.00000025");
        assert_eq!(shown(1_234_567_890_123), "$1234.5679");
    }

    #[test]
    fn different_amounts_have_different_texts() {
        let shown = |nano: [u64; 3]| NanoUsd::apart(nano.map(NanoUsd));
        assert_eq!(
            shown([20_000_000, 30_000_000, 20_000_000]),
            ["$0.0200", "$0.0300", "$0.0200"]
        );
        assert_eq!(
            shown([20_049_000, 20_012_000, DOLLAR]),
            ["$0.02005", "$0.02001", "$1.00000"]
        );
        assert_eq!(
            shown([DOLLAR, DOLLAR + 1, 0]),
            ["$1.000000000", "$1.000000001", "$0.000000000"]
        );
    }

    #[test]
    fn is_read_exactly() {
        let read = |text: &str| text.parse::<NanoUsd>();
        assert_eq!(read("5"), Ok(NanoUsd(5 * DOLLAR)));
        assert_eq!(read("$12.50"), Ok(NanoUsd(12_500_000_000)));
        assert_eq!(read(".000000001"), Ok(NanoUsd(1)));
        for wrong in [
            "",
            ".",
            "-1",
            "1e3",
            "0.0000000001",
            "five",
            "99999999999999",
        ] {
            assert_eq!(read(wrong), Err(NotAnAmount(wrong.to_owned())));
        }
        assert_eq!(NanoUsd::from_dollars(0.00411), Some(NanoUsd(4_110_000)));
        for no_amount in [f64::NAN, f64::INFINITY, -0.01, 1e30] {
            assert_eq!(NanoUsd::from_dollars(no_amount), None, "{no_amount}");
        }
    }

    #[test]
    fn sums_do_not_wrap() {
        let sum: NanoUsd = [NanoUsd(u64::MAX), NanoUsd(1)].into_iter().sum();
        assert_eq!(sum, NanoUsd(u64::MAX));
        assert_eq!(NanoUsd(1).less(NanoUsd(2)), NanoUsd::ZERO);
    }
}
