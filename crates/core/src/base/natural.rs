//! Natural order: `batch_2` comes before `batch_10`.

#![allow(
    clippy::many_single_char_names,
    reason = "two texts, compared character by character"
)]

use std::cmp::Ordering;

/// Compares two texts: runs of digits by value, everything else by character. Plain order decides between texts that differ
/// only in leading zeros.
pub fn natural(a: &str, b: &str) -> Ordering {
    // Skips the common beginning: names of one folder share a long one.
    let begin = differ_at(a, b);
    let (mut x, mut y) = (&a[begin..], &b[begin..]);
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

/// Returns the first difference, moved back to the start of its digit run or character.
fn differ_at(a: &str, b: &str) -> usize {
    let (a_bytes, b_bytes) = (a.as_bytes(), b.as_bytes());
    let mut pairs = a_bytes.iter().zip(b_bytes);
    let shorter = a.len().min(b.len());
    let mut at = pairs.position(|(x, y)| x != y).unwrap_or(shorter);
    while !(a.is_char_boundary(at) && b.is_char_boundary(at)) {
        at -= 1;
    }
    while at > 0 && a_bytes[at - 1].is_ascii_digit() {
        at -= 1;
    }
    at
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

    #[test]
    fn a_common_begin_changes_nothing() {
        let names = [
            "",
            "1",
            "01",
            "10",
            "1a",
            "a1",
            "a01b",
            "a1b",
            "a1c",
            "a10b",
            "a9b",
            "é1",
            "é10",
            "è2",
            "x\u{10ffff}9",
            "x\u{ffff}10",
        ];
        for a in names {
            for b in names {
                let order = natural(a, b);
                assert_eq!(order, natural(b, a).reverse(), "{a} {b}");
                for begin in ["7", "n", "nö", "n7"] {
                    // A digit before makes another number of it.
                    if begin.ends_with('7')
                        && (a.starts_with(|c: char| c.is_ascii_digit())
                            || b.starts_with(|c: char| c.is_ascii_digit()))
                    {
                        continue;
                    }
                    let both = natural(&format!("{begin}{a}"), &format!("{begin}{b}"));
                    assert_eq!(both, order, "{begin} before {a} and {b}");
                }
            }
        }
    }
}
