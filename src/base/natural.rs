//! Natural order: `batch_2` stands before `batch_10`.

#![allow(
    clippy::many_single_char_names,
    reason = "two texts, compared character by character"
)]

use std::cmp::Ordering;

/// Compares two texts, runs of digits by their value, everything else by character.
/// Texts that differ only in leading zeros are told apart by plain order, so that the order is total.
pub fn natural(a: &str, b: &str) -> Ordering {
    let (mut x, mut y) = (a, b);
    loop {
        let (Some(c), Some(d)) = (x.chars().next(), y.chars().next()) else {
            return x.len().cmp(&y.len()).then_with(|| a.cmp(b));
        };
        let order = if c.is_ascii_digit() && d.is_ascii_digit() {
            let (m, n) = (digits(&mut x), digits(&mut y));
            m.len().cmp(&n.len()).then_with(|| m.cmp(n))
        } else {
            x = &x[c.len_utf8()..];
            y = &y[d.len_utf8()..];
            c.cmp(&d)
        };
        if order != Ordering::Equal {
            return order;
        }
    }
}

/// Takes the leading run of digits off `text`, without its leading zeros.
fn digits<'a>(text: &mut &'a str) -> &'a str {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (run, rest) = text.split_at(end);
    *text = rest;
    run.trim_start_matches('0')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_as_people_do() {
        let mut names = vec!["batch_10", "batch_2", "batch_1", "a", "batch_02", "batch_"];
        names.sort_by(|a, b| natural(a, b));
        assert_eq!(
            names,
            ["a", "batch_", "batch_1", "batch_02", "batch_2", "batch_10"]
        );
    }
}
