//! What stands in one house, storey by storey: a basement, a ground floor with offices, flats above, a roof.
//!
//! Lengths are millimetres; the house's corner is the origin, x runs along the street, y into the depth.

use super::shape::{Section, Shape};

/// Height from floor to floor.
pub const STOREY: f64 = 3000.0;
/// Height of a wall between two slabs.
pub(super) const WALL: f64 = 2750.0;

/// How an element hangs together with the others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bond {
    /// It stands in its storey.
    Storey,
    /// It stands in the storey's room of that number (0 or 1).
    Room(usize),
    /// It fills an opening of that wall or slab, that far ahead and that far up.
    Fills(usize, f64, f64),
    /// It is a part of that assembly.
    PartOf(usize),
}

/// One element of the house. Its slot (its place in the list) stays the same for all revisions.
#[derive(Clone, Debug)]
pub struct Part {
    /// The lower, the sooner it stands in a small model.
    pub rank: u8,
    /// Key in `kinds.csv`.
    pub kind: &'static str,
    /// Storey, from the basement (0) upwards.
    pub level: usize,
    /// Place above the storey's floor.
    pub at: [f64; 3],
    /// Ahead is y, not x.
    pub turned: bool,
    /// Its body.
    pub shape: Shape,
    /// What it belongs to.
    pub bond: Bond,
    /// A hole in a slab: x, y, length, width, from the slab's place.
    pub hole: Option<[f64; 4]>,
}

/// Name of a level of a house with that many upper storeys.
pub fn level_name(level: usize, upper: usize) -> String {
    match level {
        0 => "UG".to_owned(),
        1 => "EG".to_owned(),
        _ if level == upper + 2 => "Dachgeschoß".to_owned(),
        _ => format!("{}. Obergeschoß", level - 1),
    }
}

/// Everything in a house with so many upper storeys, of that width and depth.
pub fn house(upper: usize, width: f64, depth: f64) -> Vec<Part> {
    let mut plan = Plan {
        parts: Vec::new(),
        w: width,
        d: depth,
    };
    plan.foundation();
    plan.basement();
    plan.ground();
    for level in 2..2 + upper {
        plan.flats(level);
    }
    plan.roof(upper + 2);
    plan.parts
}

pub(super) struct Plan {
    pub(super) parts: Vec<Part>,
    pub(super) w: f64,
    pub(super) d: f64,
}

impl Plan {
    pub(super) fn put(
        &mut self,
        rank: u8,
        kind: &'static str,
        level: usize,
        at: [f64; 3],
        shape: Shape,
    ) -> usize {
        self.parts.push(Part {
            rank,
            kind,
            level,
            at,
            turned: false,
            shape,
            bond: Bond::Storey,
            hole: None,
        });
        self.parts.len() - 1
    }

    /// A wall along x, as thick as its layers (or 200).
    pub(super) fn wall(
        &mut self,
        rank: u8,
        kind: &'static str,
        level: usize,
        at: [f64; 2],
        length: f64,
    ) -> usize {
        let shape = Shape::Box(length, 0.0, WALL);
        self.put(rank, kind, level, [at[0], at[1], 0.0], shape)
    }

    /// A wall along y.
    pub(super) fn cross(
        &mut self,
        rank: u8,
        kind: &'static str,
        level: usize,
        at: [f64; 2],
        length: f64,
    ) -> usize {
        let wall = self.wall(rank, kind, level, at, length);
        self.parts[wall].turned = true;
        wall
    }

    /// A flat body: length and width, as thick as its layers where the height is 0. `at` is its corner.
    pub(super) fn flat(
        &mut self,
        rank: u8,
        kind: &'static str,
        level: usize,
        at: [f64; 3],
        size: [f64; 3],
    ) -> usize {
        let [length, width, height] = size;
        let at = [at[0], at[1] + width / 2.0, at[2]];
        self.put(rank, kind, level, at, Shape::Box(length, width, height))
    }

    pub(super) fn post(
        &mut self,
        rank: u8,
        kind: &'static str,
        level: usize,
        at: [f64; 3],
        section: Section,
        height: f64,
    ) {
        self.put(rank, kind, level, at, Shape::Post(section, height));
    }

    pub(super) fn bar(
        &mut self,
        rank: u8,
        kind: &'static str,
        level: usize,
        at: [f64; 3],
        section: Section,
        length: f64,
    ) {
        self.put(rank, kind, level, at, Shape::Bar(section, length));
    }

    /// A door or window of that width and height in an opening of the host.
    pub(super) fn fill(
        &mut self,
        rank: u8,
        kind: &'static str,
        host: usize,
        place: [f64; 2],
        size: [f64; 2],
    ) {
        let level = self.parts[host].level;
        let shape = Shape::Box(size[0], 80.0, size[1]);
        let slot = self.put(rank, kind, level, [0.0; 3], shape);
        self.parts[slot].bond = Bond::Fills(host, place[0], place[1]);
    }

    pub(super) fn furnish(
        &mut self,
        rank: u8,
        kind: &'static str,
        level: usize,
        room: usize,
        at: [f64; 2],
        size: [f64; 3],
    ) {
        let slot = self.flat(rank, kind, level, [at[0], at[1], 0.0], size);
        self.parts[slot].bond = Bond::Room(room);
    }

    /// Makes everything from that slot on a part of the assembly.
    pub(super) fn belongs(&mut self, assembly: usize, from: usize) {
        for part in &mut self.parts[from..] {
            part.bond = Bond::PartOf(assembly);
        }
    }

    /// Front, back, left and right wall.
    pub(super) fn shell(
        &mut self,
        level: usize,
        kind: &'static str,
        side: &'static str,
    ) -> [usize; 4] {
        let (w, d) = (self.w, self.d);
        let front = self.wall(0, kind, level, [0.0, 200.0], w);
        self.sides(level, kind, side, front, d)
    }

    fn sides(
        &mut self,
        level: usize,
        kind: &'static str,
        side: &'static str,
        front: usize,
        d: f64,
    ) -> [usize; 4] {
        let back = self.wall(0, kind, level, [0.0, d - 200.0], self.w);
        let left = self.cross(0, side, level, [200.0, 400.0], d - 800.0);
        let right = self.cross(0, side, level, [self.w - 200.0, 400.0], d - 800.0);
        [front, back, left, right]
    }

    /// The stair between the core walls: two flights, a landing, a rail.
    pub(super) fn stair(
        &mut self,
        level: usize,
        stair: &'static str,
        flight: &'static str,
        rail: &'static str,
    ) {
        let assembly = self.put(2, stair, level, [6000.0, 5200.0, 0.0], Shape::Assembly);
        let from = self.parts.len();
        let up = Shape::Bar(steps(1.0), 1200.0);
        let back = Shape::Bar(steps(-1.0), 1200.0);
        self.put(2, flight, level, [0.0; 3], up);
        self.put(3, flight, level, [1400.0, 2430.0, 1500.0], back);
        self.flat(
            3,
            "landing",
            level,
            [0.0, 2430.0, 1300.0],
            [2600.0, 1400.0, 200.0],
        );
        self.bar(
            3,
            rail,
            level,
            [1300.0, 1200.0, 1900.0],
            Section::Circle(42.0),
            2430.0,
        );
        self.belongs(assembly, from);
    }

    /// The two walls beside the stair and the walls of the lift.
    pub(super) fn core(
        &mut self,
        level: usize,
        wall: &'static str,
        shaft: &'static str,
    ) -> [usize; 3] {
        let left = self.cross(1, wall, level, [5800.0, 4700.0], self.d - 5100.0);
        let right = self.cross(1, wall, level, [8800.0, 4700.0], self.d - 5100.0);
        let lift = self.wall(2, shaft, level, [9000.0, 6600.0], 1900.0);
        [left, right, lift]
    }
}

/// Nine steps of a flight as an elevation: runs along y, rises 1,500; `way` is the direction of y.
fn steps(way: f64) -> Section {
    let (tread, rise) = (270.0, 1500.0 / 9.0);
    let mut corners = vec![[0.0, 0.0]];
    for step in 0..9 {
        let (run, top) = (f64::from(step) * tread, f64::from(step + 1) * rise);
        corners.push([way * run, top]);
        corners.push([way * (run + tread), top]);
    }
    corners.push([way * 9.0 * tread, 1500.0 - 250.0]);
    corners.push([way * 2.0 * tread, 0.0]);
    Section::Polygon(corners)
}
