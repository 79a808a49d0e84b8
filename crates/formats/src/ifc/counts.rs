//! Counts the values of a model before anything is read or written, to refuse one that expands to too many.

use super::index::{Model, RecordEntry};
use super::limits::{ELEMENT_VALUES, NESTED, SHARING, VALUES};
use super::relations::Relations;
use super::review::Members;
use super::schema::{Relation, Role};
use super::step;
use super::stop::{Interrupt, Stop};
use std::collections::HashMap;

/// How deep definitions are counted: quantities of a set of a type.
const COUNTED: usize = NESTED + 2;

/// Counts the values of definitions without expanding them.
struct Weights<'m, 'a> {
    model: &'m Model<'a>,
    members: &'m Members,
    /// The counts of nested definitions by name and the depth that is left, and of types.
    known: HashMap<(u32, usize), u64>,
}

impl Weights<'_, '_> {
    /// Returns the number of values that a definition adds to an element, including itself.
    fn of(&mut self, id: u32, deepest: usize) -> u64 {
        let Some(entry) = self.model.index.get(id) else {
            return 1;
        };
        let (at, deepest) = match self.model.class(entry).role {
            Role::PropertySet => return 1 + self.members.count(id),
            Role::QuantitySet if !self.members.are_nested => return 1 + self.members.count(id),
            Role::Type | Role::QuantitySet if deepest > 0 => (5, deepest - 1),
            Role::ComplexQuantity | Role::MemberSet if deepest > 0 => (2, deepest - 1),
            Role::LayerSet | Role::MaterialList | Role::MaterialUsage if deepest > 0 => {
                (0, deepest - 1)
            }
            _ => return 1,
        };
        if let Some(known) = self.known.get(&(id, deepest)) {
            return *known;
        }
        // A definition that holds itself comes here again with less depth.
        let members = step::references(step::attribute(self.model.text(entry), at));
        let inside = members.fold(1, |sum: u64, member| {
            sum.saturating_add(self.of(member, deepest))
        });
        self.known.insert((id, deepest), inside);
        inside
    }
}

/// Checks how many values each element has, and all together, before they are read.
///
/// `relations_by_name` are the records of `relations`, to name one of them.
pub(super) fn check(
    model: &Model,
    relations: &Relations,
    relations_by_name: &[RecordEntry],
    members: &Members,
    interrupt: &Interrupt,
) -> Result<(), Stop> {
    let mut weights = Weights {
        model,
        members,
        known: HashMap::new(),
    };
    let most = VALUES.saturating_add(SHARING.saturating_mul(model.index.iter().len() as u64));
    let mut all = 0_u64;
    for entry in model.elements.iter().chain(&model.openings) {
        interrupt.step()?;
        let count = relations.definitions(entry.id).fold(0, |sum: u64, id| {
            sum.saturating_add(weights.of(id, COUNTED))
        });
        let places = relations.places(entry.id) as u64;
        all = all.saturating_add(count);
        let (who, limit) = if count.saturating_add(places) > ELEMENT_VALUES {
            (model.named(*entry), ELEMENT_VALUES)
        } else if all > most {
            ("the model".to_owned(), most)
        } else {
            continue;
        };
        let one = (limit == ELEMENT_VALUES).then_some(entry.id);
        let by = heaviest(&mut weights, relations_by_name, one);
        return Err(Stop::Limit(format!(
            "{who} has more than {limit} values{by}"
        )));
    }
    Ok(())
}

/// Names the relation that adds most values to elements, or to the element `one`.
fn heaviest(weights: &mut Weights, relations: &[RecordEntry], one: Option<u32>) -> String {
    let model = weights.model;
    let mut heaviest: Option<(u64, u64, u64, RecordEntry)> = None;
    for entry in relations {
        let role = model.class(*entry).role;
        if !matches!(
            role,
            Role::Relation(Relation::Properties | Relation::Type | Relation::Material)
        ) {
            continue;
        }
        let [_, _, _, _, parts, wholes] = step::attributes(model.text(*entry));
        let parts = step::references(parts).filter(|part| one.is_none_or(|one| one == *part));
        let parts = parts.count() as u64;
        let values = step::references(wholes).fold(0, |sum: u64, id| {
            sum.saturating_add(weights.of(id, COUNTED))
        });
        let all = parts.saturating_mul(values);
        if heaviest.is_none_or(|(most, ..)| all > most) {
            heaviest = Some((all, parts, values, *entry));
        }
    }
    heaviest.map_or_else(String::new, |(_, parts, values, entry)| {
        let relation = model.named(entry);
        format!("; {relation} gives {values} values to {parts} of its elements")
    })
}
