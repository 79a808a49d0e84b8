//! The totals of two revisions by group: how many records were added, removed and changed, and the sums of their quantities.
//!
//! A part of an assembly is left out of the sum of a quantity that its assembly carries, or one that this is a part of.

use super::compared::{Compared, is_near};
use milepost_core::base::digest::Digest;
use serde::Serialize;
use std::collections::HashMap;

/// The most distinct names of quantities.
const QUANTITIES: usize = 64;

/// The most assemblies above a part. More are a circle.
const LEVELS: usize = 16;

/// The totals of two revisions.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Totals {
    /// The number of earlier records.
    pub before: u64,
    /// The number of records.
    pub after: u64,
    /// Records that only the new revision has.
    pub added: u64,
    /// Records that only the earlier revision has.
    pub removed: u64,
    /// Records that differ.
    pub changed: u64,
    /// Records that are equal.
    pub unchanged: u64,
    /// The groups by name.
    pub groups: Vec<GroupChange>,
}

/// The totals of a group. `after` is `before` with `added` and `moved_in`, without `removed` and `moved_out`.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct GroupChange {
    /// The name.
    pub group: String,
    /// The number of earlier records.
    pub before: u64,
    /// The number of records.
    pub after: u64,
    /// Records that only the new revision has.
    pub added: u64,
    /// Records that only the earlier revision has.
    pub removed: u64,
    /// Records that differ and were in the same group.
    pub changed: u64,
    /// Records that came from another group.
    pub moved_in: u64,
    /// Records that are in another group now.
    pub moved_out: u64,
    /// Records that are equal.
    pub unchanged: u64,
    /// The sums of the quantities that any record of the group has.
    pub quantities: Vec<QuantityChange>,
}

/// The sums of a quantity.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct QuantityChange {
    /// The name.
    pub quantity: String,
    /// The sum of the earlier records; null if none has the quantity.
    pub before: Option<f64>,
    /// The sum of the records; null if none has the quantity.
    pub after: Option<f64>,
    /// The difference; null if there are records on both sides, and those of one side do not have the quantity.
    pub difference: Option<f64>,
}

/// A side of the comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RevisionSide {
    Old,
    New,
}

/// A record that may be an assembly: the set of its quantities, and its own assembly.
#[derive(Default)]
struct Carrier {
    quantities: u64,
    assembly: Option<u64>,
}

/// A part whose quantities wait until all assemblies are known.
struct Part {
    assembly: u64,
    group: u32,
    quantities: Vec<(u8, f64)>,
}

/// The sums of one side.
#[derive(Default)]
struct Sums {
    carriers: HashMap<u64, Carrier>,
    parts: Vec<Part>,
    /// By group and quantity.
    by_group: HashMap<(u32, u8), f64>,
}

/// Collects totals.
#[derive(Default)]
pub(super) struct Tally {
    groups: Vec<GroupChange>,
    group_numbers: HashMap<String, u32>,
    quantities: Vec<String>,
    sides: [Sums; 2],
}

/// Returns a short digest of a key.
pub(super) fn short(text: &str) -> u64 {
    let digest = Digest::of(text);
    let mut first = [0; 8];
    first.copy_from_slice(&digest.bytes()[..8]);
    u64::from_le_bytes(first)
}

impl Tally {
    /// Adds a record of a side, and returns the number of its group.
    ///
    /// # Errors
    /// When there are too many distinct quantities.
    pub(super) fn add(&mut self, side: RevisionSide, record: &Compared) -> Result<u32, String> {
        let group = self.number_of(&record.group);
        let of_group = &mut self.groups[group as usize];
        match side {
            RevisionSide::Old => of_group.before += 1,
            RevisionSide::New => of_group.after += 1,
        }
        let mut quantities = Vec::new();
        for (name, value) in record.known() {
            quantities.push((self.quantity(name)?, value));
        }
        let assembly = record.assembly().map(|key| short(&key));
        let sums = &mut self.sides[side as usize];
        let carrier = sums.carriers.entry(short(&record.key())).or_default();
        for (quantity, _) in &quantities {
            carrier.quantities |= 1 << quantity;
        }
        carrier.assembly = carrier.assembly.or(assembly);
        match assembly {
            Some(assembly) if !quantities.is_empty() => sums.parts.push(Part {
                assembly,
                group,
                quantities,
            }),
            _ => sums.add(group, &quantities, 0),
        }
        Ok(group)
    }

    /// Returns the group of this number.
    pub(super) fn group(&mut self, number: u32) -> &mut GroupChange {
        &mut self.groups[number as usize]
    }

    fn number_of(&mut self, group: &str) -> u32 {
        if let Some(&number) = self.group_numbers.get(group) {
            return number;
        }
        let number = self.groups.len() as u32;
        self.groups.push(GroupChange {
            group: group.to_owned(),
            ..GroupChange::default()
        });
        self.group_numbers.insert(group.to_owned(), number);
        number
    }

    fn quantity(&mut self, name: &str) -> Result<u8, String> {
        if let Some(number) = self.quantities.iter().position(|known| known == name) {
            return Ok(number as u8);
        }
        if self.quantities.len() == QUANTITIES {
            return Err(format!(
                "`compare`: too many quantities: `{name}` exceeds the maximum of {QUANTITIES} distinct names"
            ));
        }
        self.quantities.push(name.to_owned());
        Ok(self.quantities.len() as u8 - 1)
    }

    /// Returns the totals.
    pub(super) fn totals(mut self, tolerance: f64) -> Totals {
        for sums in &mut self.sides {
            sums.settle();
        }
        let mut totals = Totals::default();
        let mut by_name: Vec<usize> = (0..self.quantities.len()).collect();
        by_name.sort_by(|&a, &b| self.quantities[a].cmp(&self.quantities[b]));
        for (number, mut group) in self.groups.into_iter().enumerate() {
            for &quantity in &by_name {
                let of = |side: RevisionSide| {
                    let place = (number as u32, quantity as u8);
                    self.sides[side as usize].by_group.get(&place).copied()
                };
                let (before, after) = (of(RevisionSide::Old), of(RevisionSide::New));
                if before.is_none() && after.is_none() {
                    continue;
                }
                let or_none = |sum: Option<f64>, count: u64| sum.or((count == 0).then_some(0.0));
                let both = or_none(before, group.before).zip(or_none(after, group.after));
                group.quantities.push(QuantityChange {
                    quantity: self.quantities[quantity].clone(),
                    before: before.map(exact),
                    after: after.map(exact),
                    difference: both.map(|(before, after)| {
                        if is_near(before, after, tolerance) {
                            0.0
                        } else {
                            exact(after - before)
                        }
                    }),
                });
            }
            totals.before += group.before;
            totals.after += group.after;
            totals.added += group.added;
            totals.removed += group.removed;
            totals.changed += group.changed + group.moved_in;
            totals.unchanged += group.unchanged;
            totals.groups.push(group);
        }
        totals.groups.sort_by(|a, b| a.group.cmp(&b.group));
        totals
    }
}

impl Sums {
    /// Adds quantities that are not in the set of left out ones.
    fn add(&mut self, group: u32, quantities: &[(u8, f64)], left_out: u64) {
        for &(quantity, value) in quantities {
            if left_out & (1 << quantity) == 0 {
                *self.by_group.entry((group, quantity)).or_default() += value;
            }
        }
    }

    /// Adds the parts.
    fn settle(&mut self) {
        for part in std::mem::take(&mut self.parts) {
            let mut carried = 0;
            let mut above = Some(part.assembly);
            for _ in 0..LEVELS {
                let Some(carrier) = above.and_then(|key| self.carriers.get(&key)) else {
                    break;
                };
                carried |= carrier.quantities;
                above = carrier.assembly;
            }
            self.add(part.group, &part.quantities, carried);
        }
    }
}

/// Rounds to 6 decimals, so that the order of a sum does not show.
fn exact(sum: f64) -> f64 {
    (sum * 1e6).round() / 1e6
}
