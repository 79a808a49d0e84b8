//! Everything that could change a batch's outputs, as data.
//!
//! A fingerprint is a list of facts. A fact's key is a kind and a name (`input intermediate/parsed_data.json`), its value a
//! digest or a short value. Facts of the *made* part change what is made; facts of the *judged* part only whether it is valid.
//! Never a fact: modification times, absolute paths, host, time, run, stage number, concurrency, retries, budgets.

mod facts;
mod key;
mod outside;

pub use facts::{FactValue, Facts};
pub use key::{FactKey, FactKind};
pub use outside::OUTSIDE;

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How one fact differs between what is recorded and what is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Change {
    /// The subject, such as `input intermediate/parsed_data.json`.
    #[cfg_attr(debug_assertions, schemars(with = "String"))]
    pub fact: FactKey,
    /// The recorded value; none if it was not recorded.
    pub old: Option<String>,
    /// The current value; none if it was removed.
    pub new: Option<String>,
    /// The fact that it is a part of, where only a part differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(debug_assertions, schemars(with = "Option<String>"))]
    pub of: Option<FactKey>,
}

/// Returns the differences between two fingerprints. Each consists of facts that many batches share and facts of one batch; no key
/// occurs twice.
///
/// If both have details of a fact, the details decide: a table of rules of which only a comment changed is the same. If one of them
/// has none, since an earlier version recorded it, the fact itself decides.
pub fn changes(old: [&Facts; 2], new: [&Facts; 2]) -> Vec<Change> {
    if old == new {
        return Vec::new();
    }
    let (mut old, new) = (Whole::of(old), Whole::of(new));
    let mut found = Vec::new();
    for (fact, (value, details)) in new.0 {
        match old.0.remove(&fact) {
            Some((old, mut before)) if !before.is_empty() && !details.is_empty() => {
                let mut details = details;
                // The same bytes under another name are the same.
                if old == value {
                    before.retain(|part, _| part.kind != FactKind::File);
                    details.retain(|part, _| part.kind != FactKind::File);
                }
                compare(before, details, Some(&fact), &mut found);
            }
            before => {
                let before = before.map(|(old, _)| (fact.clone(), old));
                let present = [(fact, value)].into();
                compare(before.into_iter().collect(), present, None, &mut found);
            }
        }
    }
    for (fact, (value, _)) in old.0 {
        compare([(fact, value)].into(), BTreeMap::new(), None, &mut found);
    }
    // A program that was not found, or that an earlier version did not record, is unknown: nothing shows that it changed.
    let is_known = |change: &Change| change.old.is_some() && change.new.is_some();
    found.retain(|change| change.fact.kind != FactKind::Program || is_known(change));
    found.sort_by(|a, b| a.fact.cmp(&b.fact));
    // A file that two facts hold is named once.
    found.dedup_by(|a, b| a.fact == b.fact);
    found
}

/// Facts, each with its details under the names that reasons call them by.
struct Whole(BTreeMap<FactKey, (FactValue, BTreeMap<FactKey, FactValue>)>);

impl Whole {
    fn of(facts: [&Facts; 2]) -> Self {
        let mut whole = Self(BTreeMap::new());
        let mut parts = Vec::new();
        for (key, value) in facts.into_iter().flat_map(Facts::iter) {
            match key.detailed() {
                Some((of, part)) => parts.push((of, part, value.clone())),
                None => {
                    whole
                        .0
                        .insert(key.clone(), (value.clone(), BTreeMap::new()));
                }
            }
        }
        for (of, part, value) in parts {
            if let Some((_, details)) = whole.0.get_mut(&of) {
                details.insert(part, value);
            }
        }
        whole
    }
}

/// Adds what differs between the facts of two maps.
fn compare(
    mut old: BTreeMap<FactKey, FactValue>,
    new: BTreeMap<FactKey, FactValue>,
    of: Option<&FactKey>,
    found: &mut Vec<Change>,
) {
    let of = || of.cloned();
    let text = |value: FactValue| value.to_string();
    for (fact, value) in new {
        let before = old.remove(&fact);
        if before.as_ref() != Some(&value) {
            let (old, new) = (before.map(text), Some(text(value)));
            let of = of();
            found.push(Change { fact, old, new, of });
        }
    }
    // Documents bore the workspace's day, and it was a fact; now they bear that of their run, which is none.
    let is_date = |fact: &FactKey| fact.kind == FactKind::Workspace && &*fact.name == "today";
    old.retain(|fact, _| !is_date(fact));
    found.extend(old.into_iter().map(|(fact, value)| Change {
        fact,
        old: Some(text(value)),
        new: None,
        of: of(),
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_counts_only_where_both_know_it() {
        let with = |value: &str| {
            let mut facts = Facts::default();
            facts.add(FactKind::Program, "tool", value);
            facts
        };
        let none = Facts::default();
        let compared = |old: &Facts, new: &Facts| changes([old, &none], [new, &none]).len();
        let (one, two) = (with("1"), with("2"));
        let found = [(&none, &one), (&one, &none), (&one, &one), (&one, &two)];
        assert_eq!(found.map(|(old, new)| compared(old, new)), [0, 0, 0, 1]);
    }
}
