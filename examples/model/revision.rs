//! What differs in the R-th issue of a model: some elements changed, some dropped, some new.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::building::{Bond, Part};
use super::catalogue::{Catalogue, Figures};
use super::layout::{Key, Layout, Options};
use super::shape::Shape;
use super::step_file::draw;

/// Changes are made in turn.
const TURNS: [Change; 4] = [Change::Name, Change::Material, Change::Size, Change::Storey];

/// What a revision adds, in turn: kind and body.
pub const NEW: [(&str, Shape); 4] = [
    ("new_wall", Shape::Box(2400.0, 150.0, 2750.0)),
    ("bracket", Shape::Box(200.0, 120.0, 100.0)),
    ("new_panel", Shape::Box(1800.0, 50.0, 2000.0)),
    ("desk", Shape::Box(1600.0, 800.0, 740.0)),
];

/// What was changed at an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Its name says something more.
    Name,
    /// It is made of something else.
    Material,
    /// It is a tenth longer.
    Size,
    /// It stands one storey higher or lower.
    Storey,
}

/// Everything that the issues up to this one have done to the first.
#[derive(Debug, Default)]
pub struct Revisions {
    /// Elements that stand no longer.
    pub dropped: BTreeSet<Key>,
    /// Changes by element; later ones last.
    pub changed: BTreeMap<Key, Vec<Change>>,
    /// New elements by house, with their slot (beyond those of the plan) and their number among all new ones.
    pub added: BTreeMap<usize, Vec<(usize, usize, Part)>>,
    /// New elements in all.
    pub new: usize,
}

impl Revisions {
    /// Works out what each issue does: 2 % changed, 0.5 % dropped and as many new, at least one of each.
    pub fn of(options: &Options, layout: &Layout, catalogue: &Catalogue) -> Self {
        let mut all = Self::default();
        for revision in 1..=options.revision {
            let number = u64::from(revision);
            let mut free = Vec::new();
            let mut rest = Vec::new();
            for key in layout.keys().filter(|key| !all.dropped.contains(key)) {
                let chance = draw(
                    options.seed,
                    "revise",
                    &[number, key.0 as u64, key.1 as u64],
                );
                if layout.is_free(key.1) {
                    free.push((chance, key));
                } else {
                    rest.push((chance, key));
                }
            }
            free.sort_unstable();
            let share = (options.elements / 200).max(1).min(free.len());
            for (_, key) in free.drain(..share) {
                all.dropped.insert(key);
                all.changed.remove(&key);
            }
            free.append(&mut rest);
            free.sort_unstable();
            let mut waiting: VecDeque<Key> = free.into_iter().map(|(_, key)| key).collect();
            let plan = layout.plan(0);
            for turn in 0..(options.elements / 50).max(1) {
                let wanted = TURNS[turn % TURNS.len()];
                let fits =
                    |key: &Key| possible(wanted, &plan[key.1], layout.is_free(key.1), catalogue);
                let fitting = waiting.iter().position(fits);
                let change = if fitting.is_some() {
                    wanted
                } else {
                    Change::Name
                };
                if let Some(key) = waiting.remove(fitting.unwrap_or(0)) {
                    all.changed.entry(key).or_default().push(change);
                }
            }
            for _ in 0..share {
                all.add(options.seed, layout);
            }
        }
        all
    }

    /// One more element somewhere in a house.
    fn add(&mut self, seed: u64, layout: &Layout) {
        let chance = |topic: &str, below: usize| {
            (draw(seed, topic, &[self.new as u64]) % below as u64) as usize
        };
        let house = chance("new house", layout.houses);
        let (kind, shape) = NEW[self.new % NEW.len()].clone();
        let part = Part {
            rank: 4,
            kind,
            level: 1 + chance("new storey", layout.upper + 1),
            at: [
                5_000.0 + chance("new x", 4_000) as f64,
                1_000.0 + chance("new y", 2_500) as f64,
                0.0,
            ],
            turned: false,
            shape,
            bond: Bond::Storey,
            hole: None,
        };
        let slot = 100_000 + self.new;
        let entry = (slot, self.new, part);
        self.added.entry(house).or_default().push(entry);
        self.new += 1;
    }
}

/// Whether a reader of the model would see that change at this part.
fn possible(change: Change, part: &Part, free: bool, catalogue: &Catalogue) -> bool {
    let Ok(kind) = catalogue.kind(part.kind) else {
        return false;
    };
    match change {
        Change::Name => true,
        Change::Material => kind.made_of.is_some(),
        Change::Size => {
            let own = matches!(part.bond, Bond::Storey | Bond::Room(_));
            own && part.shape != Shape::Assembly && kind.figures != Figures::None
        }
        Change::Storey => free,
    }
}
