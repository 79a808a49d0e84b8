//! Names that some file systems take for one, because they differ only in letter case or Unicode normalization.

use serde::Serialize;
use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
use unicode_normalization::UnicodeNormalization as _;

/// Two names that some file systems take for one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Collision {
    /// One name.
    pub a: String,
    /// The other.
    pub b: String,
    /// The difference between the names.
    pub by: Distinction,
}

/// The difference between two names that collide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Distinction {
    /// Letter case, such as `A` and `a`.
    Case,
    /// Unicode normalization: the names look the same, such as `ü` in one code point and in two.
    Normalization,
}

/// Returns the pairs of different names that some file systems take for one, in order. A name may be listed several times.
pub fn collisions<'a>(names: &[&'a str]) -> Vec<Collision> {
    // No two of such names collide, and most workspaces have no others.
    if names.iter().all(|name| is_folded(name)) {
        return Vec::new();
    }
    let mut seen: HashMap<Cow<'a, str>, &'a str> = HashMap::with_capacity(names.len());
    let mut pairs = BTreeSet::new();
    for &name in names {
        let first = *seen.entry(folded(name)).or_insert(name);
        if first != name {
            let by = if first.nfc().eq(name.nfc()) {
                Distinction::Normalization
            } else {
                Distinction::Case
            };
            let (a, b) = (first.min(name).to_owned(), first.max(name).to_owned());
            pairs.insert(Collision { a, b, by });
        }
    }
    pairs.into_iter().collect()
}

/// Returns true if no other such name collides with this one, as none has capital letters or letters beyond ASCII.
pub fn is_folded(name: &str) -> bool {
    name.bytes()
        .all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase())
}

/// Returns a number that is the same for names that collide. Rarely, others have the same too.
pub fn collision_hash(name: &str) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(folded(name))
}

/// Returns the name as file systems compare it that ignore letter case and normalization.
fn folded(name: &str) -> Cow<'_, str> {
    if is_folded(name) {
        return name.into();
    }
    if name.is_ascii() {
        return name.to_ascii_lowercase().into();
    }
    // The way over upper case unites letters with several lower cases, such as `σ` and `ς`.
    let upper = name.nfd().flat_map(char::to_uppercase);
    let lower: String = upper.flat_map(char::to_lowercase).nfd().collect();
    lower.into()
}

#[cfg(test)]
mod tests {
    use super::Distinction::{Case, Normalization};
    use super::*;

    #[test]
    fn pairs_are_found_once() {
        let names = [
            "in/a.json",
            "in/A.json",
            "in/b.json",
            "in/\u{fc}.json",
            "in/u\u{308}.json",
            "in/U\u{308}.json",
            "in/A.json",
            "in/\u{212a}",
            "in/k",
            "in/stra\u{df}e",
            "in/STRASSE",
            "in/\u{3a3}",
            "in/\u{3c2}",
            "in/\u{ac00}",
            "in/\u{1100}\u{1161}",
        ];
        let found = collisions(&names);
        let found: Vec<(&str, &str, Distinction)> = found
            .iter()
            .map(|pair| (&*pair.a, &*pair.b, pair.by))
            .collect();
        let expected = [
            ("in/A.json", "in/a.json", Case),
            ("in/STRASSE", "in/stra\u{df}e", Case),
            ("in/U\u{308}.json", "in/\u{fc}.json", Case),
            ("in/k", "in/\u{212a}", Case),
            ("in/u\u{308}.json", "in/\u{fc}.json", Normalization),
            ("in/\u{3a3}", "in/\u{3c2}", Case),
            ("in/\u{1100}\u{1161}", "in/\u{ac00}", Normalization),
        ];
        assert_eq!(found, expected);
        assert_eq!(collisions(&["a", "b", "a"]), []);
        assert_eq!(collisions(&["A", "b", "A"]), []);
    }
}
