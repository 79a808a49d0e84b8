//! Names that some file systems take for one, because they differ only in letter case or Unicode normalization.

use serde::Serialize;
use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, HashSet};
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

/// A path with two owners, or one that is a folder of another.
#[derive(Debug, PartialEq, Eq)]
pub struct SharedPath<'a> {
    pub path: &'a str,
    /// Two of its owners; the second one has a path in it, if `inside` is not empty.
    pub owners: [&'a str; 2],
    pub inside: Option<&'a str>,
}

/// Owners with their paths, which can be gone through several times. An owner may have a path twice.
pub type Owned<'a, 'b> = &'b dyn Fn(&mut dyn FnMut(&'a str, &'a str));

/// Checks that every path has one owner, and that none is a folder of another. Returns the pairs of different paths that some file
/// systems take for one. Keeps only a number of each path in memory.
///
/// # Errors
/// The first path that has two owners, or another path in it.
pub fn check_owned<'a>(owned: Owned<'a, '_>) -> Result<Vec<Collision>, SharedPath<'a>> {
    let mut hashes = Vec::new();
    owned(&mut |_, path| hashes.push(collision_hash(path)));
    hashes.sort_unstable();
    let mut repeated: HashSet<u64> = hashes
        .windows(2)
        .filter(|pair| pair[0] == pair[1])
        .map(|pair| pair[0])
        .collect();
    let (mut folder, mut nested) = ("", Vec::new());
    owned(&mut |owner, path| {
        let above = path.rsplit_once('/').map_or("", |(above, _)| above);
        if above == folder {
            return;
        }
        folder = above;
        let both = folders(path).map(|above| (above, collision_hash(above)));
        for (above, hash) in both.filter(|(_, hash)| hashes.binary_search(hash).is_ok()) {
            repeated.insert(hash);
            nested.push((above, path, owner));
        }
    });
    if repeated.is_empty() {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    owned(&mut |owner, path| {
        if repeated.contains(&collision_hash(path)) {
            found.push((path, owner));
        }
    });
    found.sort_unstable();
    found.dedup();
    let shared = found.windows(2).find(|pair| pair[0].0 == pair[1].0);
    if let Some([(path, first), (_, second)]) = shared {
        return Err(SharedPath {
            path,
            owners: [first, second],
            inside: None,
        });
    }
    for (above, inside, second) in nested {
        if let Some((path, first)) = found.iter().find(|(path, _)| *path == above) {
            return Err(SharedPath {
                path,
                owners: [first, second],
                inside: Some(inside),
            });
        }
    }
    let paths: Vec<&str> = found.into_iter().map(|(path, _)| path).collect();
    Ok(collisions(&paths))
}

/// Returns the folders of a path, the nearest first.
fn folders(path: &str) -> impl Iterator<Item = &str> {
    let above = |path: &str| path.rfind('/');
    std::iter::successors(above(path), move |end| above(&path[..*end])).map(|end| &path[..end])
}

/// Returns true if no other such name collides with this one, as none has capital letters or letters beyond ASCII.
pub fn is_folded(name: &str) -> bool {
    name.bytes()
        .all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase())
}

/// Returns a number that is equal for names that collide. Other names may share it.
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

    #[test]
    fn a_path_has_one_owner() {
        let check = |owned: &[(&'static str, &'static str)]| {
            let owned = owned.to_vec();
            let found =
                check_owned(&|emit| owned.iter().for_each(|(owner, path)| emit(owner, path)));
            found.map_err(|shared| (shared.path, shared.owners, shared.inside))
        };
        assert_eq!(check(&[("1", "a"), ("2", "b"), ("1", "a")]), Ok(Vec::new()));
        assert_eq!(
            check(&[("3", "a"), ("2", "b"), ("1", "a")]),
            Err(("a", ["1", "3"], None))
        );
        assert_eq!(
            check(&[("1", "x/a/b/c"), ("2", "x/a/b/d"), ("3", "x/a")]),
            Err(("x/a", ["3", "1"], Some("x/a/b/c")))
        );
        assert_eq!(
            check(&[("1", "x/a/b"), ("2", "x/ab"), ("3", "a")]),
            Ok(vec![])
        );
        let pair = Collision {
            a: "A".to_owned(),
            b: "a".to_owned(),
            by: Case,
        };
        assert_eq!(check(&[("1", "a"), ("2", "A"), ("3", "b")]), Ok(vec![pair]));
    }
}
