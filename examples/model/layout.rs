//! How many houses a model of a given size has, and which parts of them stand there.

use std::collections::BTreeSet;

use super::building::{self, Bond, Part};
use super::shape::Shape;
use super::step_file::draw;

/// A house has at most so many storeys above the ground floor.
const UPPER: usize = 6;

/// What to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Take-off elements in the model; openings, rooms and storeys come on top.
    pub elements: usize,
    /// 0 is the first issue of the model; the same building is revised in every further one.
    pub revision: u32,
    /// Another seed is another building with other GlobalIds.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            elements: 300,
            revision: 0,
            seed: 1,
        }
    }
}

/// An element of the model: house and slot, which never change.
pub type Key = (usize, usize);

/// The houses of a model. All have the same slots; the last ones may have one part less.
pub struct Layout {
    /// How many houses there are.
    pub houses: usize,
    /// Storeys above the ground floor.
    pub upper: usize,
    seed: u64,
    /// Slots of a house with the larger number of parts, and of one with a part less.
    slots: [Vec<usize>; 2],
    /// Houses with the larger number.
    larger: usize,
    free: BTreeSet<usize>,
    /// Doors and windows: slot, slot of their host, area in mm².
    fillers: Vec<(usize, usize, f64)>,
}

impl Layout {
    /// Spreads the elements evenly over as few houses as can hold them.
    pub fn new(options: &Options) -> Self {
        let full = plan(options.seed, 0, UPPER).len();
        let houses = options.elements.div_ceil(full).max(1);
        let (few, larger) = (options.elements / houses, options.elements % houses);
        let many = few + usize::from(larger > 0);
        let upper = (0..UPPER)
            .find(|upper| plan(options.seed, 0, *upper).len() >= many)
            .unwrap_or(UPPER);
        let parts = plan(options.seed, 0, upper);
        Self {
            houses,
            upper,
            seed: options.seed,
            slots: [first(&parts, many), first(&parts, few)],
            larger: if larger == 0 { houses } else { larger },
            free: free(&parts),
            fillers: fillers(&parts),
        }
    }

    /// Area in mm² of the openings that doors and windows need in that part.
    pub fn openings(&self, house: usize, host: usize) -> f64 {
        let slots = self.slots(house);
        self.fillers
            .iter()
            .filter(|filler| filler.1 == host && slots.binary_search(&filler.0).is_ok())
            .map(|filler| filler.2)
            .sum()
    }

    /// The whole plan of a house, of which only `slots` stand.
    pub fn plan(&self, house: usize) -> Vec<Part> {
        plan(self.seed, house, self.upper)
    }

    /// The slots of a house that stand, in order.
    pub fn slots(&self, house: usize) -> &[usize] {
        &self.slots[usize::from(house >= self.larger)]
    }

    /// How many elements stand in the houses before this one.
    pub fn before(&self, house: usize) -> usize {
        let [many, few] = [self.slots[0].len(), self.slots[1].len()];
        house.min(self.larger) * many + house.saturating_sub(self.larger) * few
    }

    /// Whether an element can be taken away or moved without anything else noticing.
    pub fn is_free(&self, slot: usize) -> bool {
        self.free.contains(&slot)
    }

    /// Every element of the first issue.
    pub fn keys(&self) -> impl Iterator<Item = Key> + '_ {
        (0..self.houses).flat_map(|house| self.slots(house).iter().map(move |slot| (house, *slot)))
    }
}

/// A house whose width and depth differ a little from its neighbours'.
fn plan(seed: u64, house: usize, upper: usize) -> Vec<Part> {
    let wider = draw(seed, "width", &[house as u64]) % 4;
    let deeper = draw(seed, "depth", &[house as u64]) % 4;
    building::house(
        upper,
        13_500.0 + 500.0 * wider as f64,
        9_600.0 + 200.0 * deeper as f64,
    )
}

/// The slots of the lowest ranks, in order.
fn first(parts: &[Part], number: usize) -> Vec<usize> {
    let mut slots: Vec<usize> = (0..parts.len()).collect();
    slots.sort_by_key(|slot| (parts[*slot].rank, *slot));
    slots.truncate(number);
    slots.sort_unstable();
    slots
}

fn free(parts: &[Part]) -> BTreeSet<usize> {
    let needed: BTreeSet<usize> = parts
        .iter()
        .filter_map(|part| match part.bond {
            Bond::Fills(host, ..) => Some(host),
            Bond::PartOf(assembly) => Some(assembly),
            Bond::Storey | Bond::Room(_) => None,
        })
        .collect();
    (0..parts.len())
        .filter(|slot| {
            let part = &parts[*slot];
            part.rank > 0
                && part.shape != Shape::Assembly
                && matches!(part.bond, Bond::Storey | Bond::Room(_))
                && !needed.contains(slot)
        })
        .collect()
}

fn fillers(parts: &[Part]) -> Vec<(usize, usize, f64)> {
    let each = parts.iter().enumerate();
    each.filter_map(|(slot, part)| match (part.bond, &part.shape) {
        (Bond::Fills(host, ..), Shape::Box(width, _, height)) => Some((slot, host, width * height)),
        _ => None,
    })
    .collect()
}
