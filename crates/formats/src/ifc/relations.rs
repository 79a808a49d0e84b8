//! Who is in what, made of what, described by what: pairs of names, sorted.

use super::index::{Model, NamedRecords, RecordEntry};
use super::limits::PAIRS;
use super::schema::{Relation, Role};
use super::step;
use super::stop::{Interrupt, Stop};
use std::collections::HashSet;

/// Pairs by their first name; those of one name in the order of their relations' names.
#[derive(Default)]
pub(super) struct Pairs(Vec<(u32, u32)>);

impl Pairs {
    fn build(mut pairs: Vec<(u32, u32)>) -> Self {
        if !pairs.is_sorted_by_key(|pair| pair.0) {
            pairs.sort_by_key(|pair| pair.0);
        }
        pairs.shrink_to_fit();
        Self(pairs)
    }

    /// All that `id` is related to.
    pub(super) fn of(&self, id: u32) -> impl Iterator<Item = u32> {
        let start = self.0.partition_point(|pair| pair.0 < id);
        self.0[start..]
            .iter()
            .take_while(move |pair| pair.0 == id)
            .map(|pair| pair.1)
    }

    /// Returns the first that `id` is related to.
    pub(super) fn first(&self, id: u32) -> Option<u32> {
        self.of(id).next()
    }
}

/// The relations of a model, each from the part to what the part belongs to.
pub(super) struct Relations {
    pub(super) contained: Pairs,
    /// Aggregates before nests.
    pub(super) parents: Pairs,
    /// The wholes of `parents`, once for each part that is an element, sorted.
    wholes: Vec<u32>,
    /// Hosts of features: of openings before those of projections.
    pub(super) hosts: Pairs,
    /// The features of hosts.
    features: Pairs,
    /// The openings that elements fill.
    pub(super) filled: Pairs,
    pub(super) materials: Pairs,
    pub(super) types: Pairs,
    pub(super) properties: Pairs,
    pub(super) classifications: Pairs,
    /// The definitions that elements have by relations that do not fit their class, and such relations that their openings depend on.
    pub(super) lost: Pairs,
}

/// References to records that are not in the file, or are of no class that could be meant.
#[derive(Default)]
pub(super) struct Broken {
    pub(super) count: usize,
    /// The first such record, and the missing record that it refers to.
    pub(super) first: Option<(RecordEntry, u32)>,
    /// The records with something else where references are expected.
    pub(super) others: NamedRecords,
}

impl Broken {
    pub(super) fn add(&mut self, from: RecordEntry, to: u32) {
        self.count += 1;
        self.first.get_or_insert((from, to));
    }

    /// Adds a record if one of these values has something else than references.
    pub(super) fn check(&mut self, from: RecordEntry, values: &[&[u8]]) {
        if values.iter().any(|value| step::has_others(value)) {
            self.others.add(from);
        }
    }
}

impl Relations {
    /// Reads the relations `entries`, which are sorted by name, and counts references to missing records.
    pub(super) fn read(
        model: &Model,
        entries: &[RecordEntry],
        broken: &mut Broken,
        interrupt: &Interrupt,
    ) -> Result<Self, Stop> {
        let mut all: [Vec<(u32, u32)>; 10] = Default::default();
        let mut lost = Vec::new();
        let (mut related, mut relating) = (Vec::new(), Vec::new());
        let mut product = 0_usize;
        for &entry in entries {
            interrupt.step()?;
            let Role::Relation(relation) = model.class(entry).role else {
                continue;
            };
            let [_, _, _, _, fourth, fifth] = step::attributes(model.text(entry));
            let (parts, wholes) = match relation {
                Relation::Aggregates
                | Relation::Nests
                | Relation::Voids
                | Relation::Projects
                | Relation::Fills => (fifth, fourth),
                _ => (fourth, fifth),
            };
            // Materials and classifications may refer to records of classes that are not kept.
            let kept = !matches!(relation, Relation::Material | Relation::Classification);
            let mut pairs = &mut all[relation as usize];
            broken.check(entry, &[fourth, fifth]);
            collect(&mut relating, step::references(wholes));
            collect(&mut related, step::references(parts));
            let is_fit = !model.misfits.contains(&entry.id);
            if !is_fit {
                collect(&mut related, step::all_references(model.text(entry)));
                let others = related.extract_if(.., |id| model.role(*id) != Some(Role::Element));
                relating = others.filter(|id| model.role(*id).is_some()).collect();
                pairs = &mut lost;
                match relation {
                    Relation::Properties | Relation::Type => {}
                    Relation::Contains
                    | Relation::Fills
                    | Relation::Material
                    | Relation::Classification => continue,
                    _ => relating = vec![entry.id],
                }
            }
            let pairs_more = related
                .len()
                .saturating_mul(relating.len().saturating_sub(1));
            product = product.saturating_add(pairs_more);
            if product > PAIRS {
                return Err(Stop::Limit(format!(
                    "{} relates {} records to {} others, and all relations together more than {PAIRS} pairs",
                    model.named(entry),
                    related.len(),
                    relating.len(),
                )));
            }
            for &whole in &relating {
                if is_fit && model.index.get(whole).is_none() {
                    broken.add(entry, whole);
                }
            }
            for &part in &related {
                interrupt.step()?;
                if is_fit && kept && model.index.get(part).is_none() {
                    broken.add(entry, part);
                }
                pairs.extend(relating.iter().map(|&whole| (part, whole)));
            }
        }
        let mut take = |relation: Relation| std::mem::take(&mut all[relation as usize]);
        let mut both = |first, second| {
            let mut pairs = take(first);
            pairs.append(&mut take(second));
            Pairs::build(pairs)
        };
        let (parents, hosts) = (
            both(Relation::Aggregates, Relation::Nests),
            both(Relation::Voids, Relation::Projects),
        );
        let mut wholes: Vec<u32> = parents
            .0
            .iter()
            .filter(|pair| model.role(pair.0) == Some(Role::Element))
            .map(|pair| pair.1)
            .collect();
        wholes.sort_unstable();
        let features = hosts.0.iter().map(|&(feature, host)| (host, feature));
        let features = Pairs::build(features.collect());
        Ok(Self {
            features,
            contained: Pairs::build(take(Relation::Contains)),
            parents,
            wholes,
            hosts,
            filled: Pairs::build(take(Relation::Fills)),
            materials: Pairs::build(take(Relation::Material)),
            types: Pairs::build(take(Relation::Type)),
            properties: Pairs::build(take(Relation::Properties)),
            classifications: Pairs::build(take(Relation::Classification)),
            lost: Pairs::build(lost),
        })
    }

    /// Returns all sources of values of the element `id`: its definitions, its type, its materials or those of its type, and its
    /// classifications.
    pub(super) fn definitions(&self, id: u32) -> impl Iterator<Item = u32> {
        let kind = self.types.first(id);
        let owner = self.materials.first(id).map(|_| id).or(kind);
        let materials = owner.into_iter().flat_map(|owner| self.materials.of(owner));
        let classified = kind.into_iter().chain([id]);
        let classifications = classified.flat_map(|of| self.classifications.of(of));
        let own = self.properties.of(id).chain(kind);
        own.chain(materials).chain(classifications)
    }

    /// The openings and other features of the element `id`.
    pub(super) fn features(&self, id: u32) -> impl Iterator<Item = u32> {
        self.features.of(id)
    }

    /// How many wholes, containers, hosts and openings the element `id` is related to.
    pub(super) fn places(&self, id: u32) -> usize {
        let all = [&self.contained, &self.parents, &self.hosts, &self.filled];
        all.iter().map(|pairs| pairs.of(id).count()).sum()
    }

    /// How many elements are aggregated or nested into `id`, not counting parts of parts.
    pub(super) fn parts(&self, id: u32) -> usize {
        let start = self.wholes.partition_point(|&whole| whole < id);
        self.wholes[start..].partition_point(|&whole| whole == id)
    }
}

/// Puts the references of a list into `ids`, each once: lists of relations are sets.
fn collect(ids: &mut Vec<u32>, list: impl Iterator<Item = u32>) {
    ids.clear();
    ids.extend(list);
    if !ids.is_sorted_by(|one, other| one < other) {
        let mut seen = HashSet::with_capacity(ids.len());
        ids.retain(|id| seen.insert(*id));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_keep_the_order_of_their_relations() {
        let pairs = Pairs::build(vec![(5, 30), (2, 9), (5, 10), (2, 8)]);
        assert_eq!(pairs.of(5).collect::<Vec<_>>(), [30, 10]);
        assert_eq!(pairs.first(2), Some(9));
        assert_eq!(pairs.first(3), None);
    }
}
