//! Conservation: the keys that went in are those that came out and those named as failed, compared as multisets in bounded memory.
//!
//! Keys are counted by 12 bytes of their SHA-256. A million keys take about 65 MB, and the probability that two of them collide is
//! below 10⁻¹⁶. The keys are read a second time, for their names, only if something differs.

use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasherDefault, Hasher};

use serde_json::Value;

use milepost_core::base::digest::Digest;
use milepost_core::base::in_order::in_order;
use milepost_core::expr::place::excerpt;

/// How many keys of each kind are named.
const NAMED: usize = 20;

/// A source of keys: calls the function with each key. It may be called twice.
pub(crate) type Keys<'a, E> =
    dyn Fn(&mut dyn FnMut(&Value) -> Result<(), E>) -> Result<(), E> + Sync + 'a;

/// The result of a comparison of keys.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Conservation {
    /// The number of keys that went in.
    pub went_in: u64,
    /// The number of keys that came out.
    pub came_out: u64,
    /// Keys that went in, did not come out, and are named as failed.
    pub(crate) failed: u64,
    /// Keys that went in and did not come out.
    pub lost: Unequal,
    /// Keys that came out and never went in.
    pub invented: Unequal,
    /// Keys that came out more often than they went in.
    pub doubled: Unequal,
}

/// Keys of one kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Unequal {
    /// How many, each as often as it is too few or too many.
    pub(crate) total: u64,
    /// The first of them.
    pub first: Vec<String>,
}

impl Conservation {
    /// Returns true if nothing was lost, invented or duplicated.
    pub fn holds(&self) -> bool {
        self.lost.total == 0 && self.invented.total == 0 && self.doubled.total == 0
    }

    /// Returns a sentence that says what is wrong; empty if nothing is.
    pub fn message(&self) -> String {
        [
            ("lost", &self.lost),
            ("invented", &self.invented),
            ("doubled", &self.doubled),
        ]
        .into_iter()
        .filter(|(_, unequal)| unequal.total > 0)
        .map(|(word, unequal)| {
            let shown = unequal
                .first
                .iter()
                .take(5)
                .map(|key| excerpt(key, 60))
                .collect::<Vec<_>>();
            let more = if unequal.total > shown.len() as u64 {
                ", …"
            } else {
                ""
            };
            format!("{} {word}: {}{more}", unequal.total, shown.join(", "))
        })
        .collect::<Vec<_>>()
        .join("; ")
    }
}

/// Compares the keys that went in with those that came out. `failed` are the keys named as failed, as [`name`] writes them. They may
/// be missing, but not invented or duplicated. With several threads both sources are read at once.
///
/// # Errors
/// Fails with the error of a source of keys.
pub fn conserve<E: Send>(
    went_in: &Keys<'_, E>,
    came_out: &Keys<'_, E>,
    failed: &BTreeSet<String>,
    threads: usize,
) -> Result<Conservation, E> {
    let mut result = Conservation::default();
    let mut counts = Counts::default();
    let mut is_first = true;
    in_order(
        threads.min(2),
        &|| {
            Box::new(|keys: &Keys<'_, E>| {
                let mut prints = Vec::new();
                keys(&mut |key| {
                    prints.push(print(key));
                    Ok(())
                })?;
                Ok(prints)
            })
        },
        |each| [went_in, came_out].into_iter().try_for_each(each),
        &mut |prints: Result<Vec<Print>, E>| {
            let prints = prints?;
            let total = prints.len() as u64;
            if std::mem::take(&mut is_first) {
                result.went_in = total;
                for print in prints {
                    let count = counts.entry(print).or_default();
                    *count = count.saturating_add(ONE) | SEEN;
                }
            } else {
                result.came_out = total;
                for print in prints {
                    let count = counts.entry(print).or_default();
                    *count = count.saturating_sub(ONE);
                }
            }
            Ok(())
        },
    )?;
    counts.retain(|_, count| *count >> 1 != 0);
    for key in failed {
        let missing = counts.get(&print_text(key)).map_or(0, |count| *count >> 1);
        if missing > 0 {
            result.failed += u64::from(missing.unsigned_abs());
            counts.remove(&print_text(key));
        }
    }
    for count in counts.values() {
        let of = match count >> 1 {
            1.. => &mut result.lost,
            _ if count & SEEN != 0 => &mut result.doubled,
            _ => &mut result.invented,
        };
        of.total += u64::from((count >> 1).unsigned_abs());
    }
    if result.lost.total > 0 {
        let mut named = BTreeSet::new();
        went_in(&mut |key| {
            let is_lost = counts.get(&print(key)).is_some_and(|count| count >> 1 > 0);
            add(&mut result.lost, &mut named, key, is_lost);
            Ok(())
        })?;
    }
    if result.invented.total + result.doubled.total > 0 {
        let (mut invented, mut doubled) = (BTreeSet::new(), BTreeSet::new());
        came_out(&mut |key| {
            let count = counts
                .get(&print(key))
                .copied()
                .filter(|count| count >> 1 < 0);
            add(
                &mut result.doubled,
                &mut doubled,
                key,
                count.is_some_and(|count| count & SEEN != 0),
            );
            add(
                &mut result.invented,
                &mut invented,
                key,
                count.is_some_and(|count| count & SEEN == 0),
            );
            Ok(())
        })?;
    }
    Ok(result)
}

/// Returns a key as messages name it: a string itself, anything else as JSON.
pub fn name(key: &Value) -> String {
    key.as_str().map_or_else(|| key.to_string(), str::to_owned)
}

fn add(unequal: &mut Unequal, named: &mut BTreeSet<String>, key: &Value, is_one: bool) {
    if is_one && unequal.first.len() < NAMED && named.insert(name(key)) {
        unequal.first.push(name(key));
    }
}

/// How often a key went in more than it came out, doubled, and whether it went in at all, in the lowest bit. One number for
/// both keeps the table small.
type Counts = HashMap<Print, i32, BuildHasherDefault<FirstBytes>>;
type Print = [u32; 3];
const ONE: i32 = 2;
const SEEN: i32 = 1;

fn print(key: &Value) -> Print {
    match key {
        Value::String(text) => print_text(text),
        other => print_text(&other.to_string()),
    }
}

fn print_text(text: &str) -> Print {
    let digest = Digest::of(text);
    let mut print = [0; 3];
    for (part, bytes) in print.iter_mut().zip(digest.bytes().chunks_exact(4)) {
        *part = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    }
    print
}

/// A digest is its own hash.
#[derive(Default)]
struct FirstBytes(u64);

impl Hasher for FirstBytes {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes.iter().take(8) {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u32(&mut self, part: u32) {
        self.0 = self.0.rotate_left(32) ^ u64::from(part);
    }

    fn write_usize(&mut self, _: usize) {}

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use milepost_core::expr::scope::{Scope, ScopeError};
    use milepost_core::expr::select::Select;
    use proptest::prelude::*;
    use serde_json::json;
    use std::convert::Infallible;

    fn run(went_in: &[Value], came_out: &[Value], failed: &[&str]) -> Conservation {
        let failed = failed.iter().map(|&key| key.to_owned()).collect();
        let result: Result<_, Infallible> = conserve(
            &|each| went_in.iter().try_for_each(&mut *each),
            &|each| came_out.iter().try_for_each(&mut *each),
            &failed,
            2,
        );
        result.unwrap()
    }

    fn keys(text: &str) -> Vec<Value> {
        text.chars().map(|key| json!(key.to_string())).collect()
    }

    #[test]
    fn holds_as_multisets() {
        let found = run(&keys("aabc"), &keys("caba"), &[]);
        assert!(found.holds() && found.message().is_empty());
        assert_eq!((found.went_in, found.came_out), (4, 4));
    }

    #[test]
    fn names_what_is_wrong() {
        let found = run(&keys("aabcd"), &keys("axbbx"), &["d"]);
        assert_eq!(found.failed, 1);
        assert_eq!(
            found.lost,
            Unequal {
                total: 2,
                first: vec!["a".into(), "c".into()]
            }
        );
        assert_eq!(
            found.invented,
            Unequal {
                total: 2,
                first: vec!["x".into()]
            }
        );
        assert_eq!(
            found.doubled,
            Unequal {
                total: 1,
                first: vec!["b".into()]
            }
        );
        assert_eq!(
            found.message(),
            "2 lost: a, c; 2 invented: x, …; 1 doubled: b"
        );
        assert!(!found.holds());
    }

    #[test]
    fn a_failed_key_may_be_missing_only() {
        assert!(run(&keys("ab"), &keys("a"), &["b", "z"]).holds());
        assert!(run(&keys("ab"), &keys("ab"), &["b"]).holds());
        assert_eq!(run(&keys("a"), &keys("abb"), &["b"]).invented.total, 2);
        assert_eq!(
            run(&[json!(1), json!(null)], &[json!(1)], &["null"]).failed,
            1
        );
    }

    #[test]
    fn names_the_first_only() {
        let many: Vec<Value> = (0..1000).map(|n| json!(format!("k{n}"))).collect();
        let found = run(&many, &[], &[]);
        assert_eq!((found.lost.total, found.lost.first.len()), (1000, NAMED));
        assert_eq!(found.message(), "1000 lost: k0, k1, k2, k3, k4, …");
    }

    /// Compares the keys at two plain paths over a scope.
    fn of_scope(
        scope: &Scope,
        went_in: &Select,
        came_out: &Select,
        failed: &BTreeSet<String>,
    ) -> Result<Conservation, ScopeError> {
        let read = |select: &Select, each: &mut dyn FnMut(&Value) -> Result<(), ScopeError>| {
            scope.select(select, &mut |key| each(&key)).map(|_| ())
        };
        conserve(
            &|each| read(went_in, each),
            &|each| read(came_out, each),
            failed,
            1,
        )
    }

    #[test]
    fn reads_a_scope() {
        let mut scope = Scope::new();
        scope.insert_value("batch", json!({"elements": [{"id": "a"}, {"id": "b"}]}));
        scope.insert_value("out", json!([{"id": "b"}]));
        let path = |text: &str| Select::parse(text).unwrap();
        let none = BTreeSet::new();
        let found = of_scope(
            &scope,
            &path(".batch.elements[].id"),
            &path(".out[].id"),
            &none,
        )
        .unwrap();
        assert_eq!(found.message(), "1 lost: a");
        let error = of_scope(
            &scope,
            &path(".batch.elements[].id"),
            &path(".out[].x"),
            &none,
        )
        .unwrap_err();
        assert_eq!(error.to_string(), "out: /0 has no `x`");
    }

    #[test]
    fn an_entry_is_small() {
        assert_eq!(size_of::<(Print, i32)>(), 16);
    }

    proptest! {
        #[test]
        fn agrees_with_counting(went_in in "[a-e]{0,12}", came_out in "[a-f]{0,12}", failed in "[a-f]{0,2}") {
            let failed: Vec<String> = failed.chars().map(|key| key.to_string()).collect();
            let failed: Vec<&str> = failed.iter().map(String::as_str).collect();
            let found = run(&keys(&went_in), &keys(&came_out), &failed);
            let (mut lost, mut invented, mut doubled) = (0, 0, 0);
            for key in 'a'..='f' {
                let count = |text: &str| text.matches(key).count() as u64;
                let (before, after) = (count(&went_in), count(&came_out));
                let is_failed = failed.contains(&key.to_string().as_str());
                lost += if is_failed { 0 } else { before.saturating_sub(after) };
                *(if before == 0 { &mut invented } else { &mut doubled }) += after.saturating_sub(before);
            }
            prop_assert_eq!((found.lost.total, found.invented.total, found.doubled.total), (lost, invented, doubled));
        }
    }
}
