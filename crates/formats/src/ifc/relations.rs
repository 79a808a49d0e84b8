//! Who is in what, made of what, described by what: pairs of names, sorted.

use super::index::{Model, RecordEntry};
use super::schema::{Relation, Role};
use super::step;

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

    /// The first that `id` is related to.
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
    /// The openings that elements fill.
    pub(super) filled: Pairs,
    pub(super) materials: Pairs,
    pub(super) types: Pairs,
    pub(super) properties: Pairs,
    pub(super) classifications: Pairs,
}

/// A reference to a record that is not in the file, or is of no class that could be meant.
#[derive(Debug, Default)]
pub(super) struct Broken {
    pub(super) count: usize,
    /// The first record that refers, and what it refers to.
    pub(super) first: Option<(RecordEntry, u32)>,
}

impl Broken {
    pub(super) fn add(&mut self, from: RecordEntry, to: u32) {
        self.count += 1;
        self.first.get_or_insert((from, to));
    }
}

impl Relations {
    /// Reads the relations `entries`, which are sorted by name, and counts what they refer to and is not there.
    pub(super) fn read(model: &Model, entries: Vec<RecordEntry>, broken: &mut Broken) -> Self {
        let mut all: [Vec<(u32, u32)>; 10] = Default::default();
        let mut relating = Vec::new();
        for entry in entries {
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
            // What materials and classifications are given to may be of classes that are not kept.
            let kept = !matches!(relation, Relation::Material | Relation::Classification);
            let pairs = &mut all[relation as usize];
            relating.clear();
            relating.extend(step::references(wholes));
            for &whole in &relating {
                if model.index.get(whole).is_none() {
                    broken.add(entry, whole);
                }
            }
            for part in step::references(parts) {
                if kept && model.index.get(part).is_none() {
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
        Self {
            contained: Pairs::build(take(Relation::Contains)),
            parents,
            wholes,
            hosts,
            filled: Pairs::build(take(Relation::Fills)),
            materials: Pairs::build(take(Relation::Material)),
            types: Pairs::build(take(Relation::Type)),
            properties: Pairs::build(take(Relation::Properties)),
            classifications: Pairs::build(take(Relation::Classification)),
        }
    }

    /// How many elements are aggregated or nested into `id`, not counting parts of parts.
    pub(super) fn parts(&self, id: u32) -> usize {
        let start = self.wholes.partition_point(|&whole| whole < id);
        self.wholes[start..].partition_point(|&whole| whole == id)
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
