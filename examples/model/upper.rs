//! What stands above the ground floor: two sorts of storeys with flats, in turn, and the roof.

use super::building::{Plan, WALL};
use super::shape::{Section, Shape};

/// Kinds of a storey with flats.
struct Storey {
    slab: &'static str,
    outer: &'static str,
    side: &'static str,
    core: &'static str,
    inner: &'static str,
    partition: &'static str,
    /// Kind and side in mm.
    column: (&'static str, f64),
    /// Kind, width and height in mm.
    beam: (&'static str, f64, f64),
    window: &'static str,
    small_window: &'static str,
    door: &'static str,
    floor: &'static str,
    heater: &'static str,
    rail: &'static str,
}

const SOLID: Storey = Storey {
    slab: "slab_og",
    outer: "outer_og",
    side: "gable_og",
    core: "core",
    inner: "inner_ks",
    partition: "partition",
    column: ("column_og", 300.0),
    beam: ("beam_eg", 300.0, 400.0),
    window: "window_a",
    small_window: "window_b",
    door: "room_door",
    floor: "parquet",
    heater: "radiator",
    rail: "rail_balcony",
};

const TIMBER: Storey = Storey {
    slab: "slab_top",
    outer: "outer_timber",
    side: "outer_timber",
    core: "core",
    inner: "inner_clt",
    partition: "partition",
    column: ("column_timber", 160.0),
    beam: ("beam_timber", 120.0, 240.0),
    window: "window_timber",
    small_window: "window_b",
    door: "room_door_b",
    floor: "linoleum",
    heater: "floor_heating",
    rail: "rail_glass",
};

impl Plan {
    /// A storey with two flats.
    pub(super) fn flats(&mut self, level: usize) {
        let is = if level.is_multiple_of(2) {
            SOLID
        } else {
            TIMBER
        };
        let (w, d) = (self.w, self.d);
        let slab = self.flat(0, is.slab, level, [0.0, 0.0, -250.0], [w, d, 0.0]);
        self.parts[slab].hole = Some([6000.0, 5200.0, 2600.0, 3800.0]);
        let [front, back, ..] = self.shell(level, is.outer, is.side);
        for (rank, x) in [(1, 1200.0), (1, 6400.0), (3, 9300.0)] {
            self.fill(rank, is.window, front, [x, 900.0], [1200.0, 1400.0]);
        }
        for (rank, x) in [(1, 1500.0), (3, 12000.0)] {
            self.fill(rank, is.small_window, back, [x, 900.0], [900.0, 1400.0]);
        }
        self.fill(2, "window_bath", back, [4200.0, 1500.0], [600.0, 800.0]);
        self.fill(2, "balcony_door", front, [3600.0, 0.0], [1000.0, 2200.0]);
        self.walls(level, &is);
        self.stair(level, "stair", "flight", "rail_steel");
        self.flat(
            1,
            "balcony",
            level,
            [3000.0, -1500.0, -200.0],
            [3000.0, 1500.0, 180.0],
        );
        self.bar(
            2,
            is.rail,
            level,
            [3000.0, -1450.0, 1000.0],
            Section::Rectangle(50.0, 50.0),
            3000.0,
        );
        self.finishes(level, &is);
        self.services(level, &is);
        self.furniture(level);
    }

    fn walls(&mut self, level: usize, is: &Storey) {
        let (w, d) = (self.w, self.d);
        let [left, ..] = self.core(level, is.core, "core_shaft");
        let inner = self.wall(1, is.inner, level, [400.0, 4600.0], 5300.0);
        self.wall(2, is.inner, level, [8900.0, 4600.0], w - 9300.0);
        self.cross(2, "party", level, [7300.0, 400.0], 4100.0);
        let room = self.cross(1, is.partition, level, [3000.0, 400.0], 4100.0);
        self.cross(2, is.partition, level, [10500.0, 400.0], 4100.0);
        let wet = self.cross(2, "partition_wet", level, [2900.0, 4700.0], d - 5100.0);
        self.wall(3, "service_wall", level, [3000.0, d - 700.0], 1800.0);
        self.fill(2, "flat_door", left, [600.0, 0.0], [1010.0, 2135.0]);
        self.fill(2, is.door, room, [500.0, 0.0], [885.0, 2135.0]);
        self.fill(3, is.door, inner, [1500.0, 0.0], [885.0, 2135.0]);
        self.fill(3, "bath_door", wet, [1000.0, 0.0], [760.0, 2135.0]);
        let (column, side) = is.column;
        for x in [4500.0, 11500.0] {
            let section = Section::Rectangle(side, side);
            self.post(2, column, level, [x, 2350.0, 0.0], section, WALL);
        }
        let (beam, width, height) = is.beam;
        let at = [400.0, 2350.0, WALL - height / 2.0];
        self.bar(
            2,
            beam,
            level,
            at,
            Section::Rectangle(width, height),
            6800.0,
        );
    }

    fn finishes(&mut self, level: usize, is: &Storey) {
        let (w, d) = (self.w, self.d);
        self.flat(
            2,
            is.floor,
            level,
            [400.0, 400.0, 0.0],
            [6800.0, 4100.0, 0.0],
        );
        self.flat(
            3,
            is.floor,
            level,
            [7400.0, 400.0, 0.0],
            [w - 7800.0, 4100.0, 0.0],
        );
        self.flat(
            3,
            "tiles",
            level,
            [3000.0, 4700.0, 0.0],
            [2700.0, d - 5100.0, 10.0],
        );
        self.flat(
            3,
            "wall_tiles",
            level,
            [3000.0, d - 710.0, 0.0],
            [1800.0, 0.0, 2100.0],
        );
        self.flat(
            3,
            "ceiling",
            level,
            [3000.0, 4700.0, 2500.0],
            [2700.0, d - 5100.0, 0.0],
        );
        if level.is_multiple_of(2) {
            self.bar(
                3,
                "plinth",
                level,
                [400.0, 420.0, 0.0],
                Section::Rectangle(15.0, 60.0),
                6800.0,
            );
            self.bar(
                3,
                "lintel",
                level,
                [3100.0, 200.0, 2200.0],
                Section::Rectangle(115.0, 71.0),
                1500.0,
            );
            self.flat(
                4,
                "window_sill",
                level,
                [1200.0, -80.0, 900.0],
                [1200.0, 60.0, 1400.0],
            );
            self.flat(
                3,
                "window_sill",
                level,
                [1200.0, -100.0, 870.0],
                [1200.0, 200.0, 30.0],
            );
        } else {
            self.flat(2, "cladding", level, [0.0, -60.0, 0.0], [w, 27.0, 850.0]);
            self.flat(
                3,
                "topping",
                level,
                [6000.0, 9000.0, 0.0],
                [2600.0, 400.0, 70.0],
            );
            self.bar(
                2,
                "sill_timber",
                level,
                [0.0, 200.0, 0.0],
                Section::Rectangle(180.0, 60.0),
                w,
            );
            self.flat(
                3,
                "unnamed_box",
                level,
                [11000.0, 8000.0, 0.0],
                [600.0, 600.0, 600.0],
            );
        }
    }

    fn services(&mut self, level: usize, is: &Storey) {
        let d = self.d;
        let pipe = Section::Circle;
        self.post(
            3,
            "soil_stack",
            level,
            [3200.0, d - 550.0, 0.0],
            pipe(110.0),
            3000.0,
        );
        self.post(
            3,
            "riser_pipe",
            level,
            [3500.0, d - 550.0, 0.0],
            pipe(32.0),
            3000.0,
        );
        self.post(
            4,
            "riser_pipe",
            level,
            [3600.0, d - 550.0, 0.0],
            pipe(32.0),
            3000.0,
        );
        self.bar(
            3,
            "duct_round",
            level,
            [600.0, 5200.0, 2600.0],
            pipe(160.0),
            2300.0,
        );
        self.bar(
            4,
            "duct_flex",
            level,
            [3000.0, 5200.0, 2600.0],
            pipe(125.0),
            1500.0,
        );
        self.post(
            4,
            "air_terminal",
            level,
            [4000.0, 5400.0, 2480.0],
            pipe(125.0),
            40.0,
        );
        self.flat(
            4,
            "air_terminal",
            level,
            [2950.0, 5600.0, 300.0],
            [40.0, 400.0, 100.0],
        );
        self.flat(
            3,
            is.heater,
            level,
            [1300.0, 430.0, 150.0],
            [1000.0, 100.0, 600.0],
        );
        self.flat(
            4,
            is.heater,
            level,
            [9400.0, 430.0, 150.0],
            [1000.0, 100.0, 600.0],
        );
        self.flat(
            4,
            "radiator",
            level,
            [2950.0, 7000.0, 900.0],
            [100.0, 600.0, 1200.0],
        );
        self.flat(
            3,
            "wc",
            level,
            [3300.0, d - 1250.0, 400.0],
            [360.0, 540.0, 350.0],
        );
        self.flat(
            4,
            "basin",
            level,
            [4200.0, d - 1200.0, 600.0],
            [600.0, 480.0, 200.0],
        );
        self.flat(
            4,
            "shower",
            level,
            [4800.0, 5000.0, 0.0],
            [900.0, 900.0, 560.0],
        );
        for (rank, x) in [(3, 1700.0), (4, 9000.0)] {
            self.post(rank, "light", level, [x, 2300.0, 2650.0], pipe(300.0), 80.0);
        }
        self.flat(
            4,
            "smoke",
            level,
            [3500.0, 2300.0, 2700.0],
            [120.0, 120.0, 50.0],
        );
        self.flat(
            4,
            "outlet",
            level,
            [3060.0, 1000.0, 300.0],
            [40.0, 150.0, 80.0],
        );
    }

    fn furniture(&mut self, level: usize) {
        self.furnish(3, "sofa", level, 0, [800.0, 900.0], [2000.0, 1800.0, 550.0]);
        self.furnish(
            4,
            "chair",
            level,
            0,
            [4000.0, 1200.0],
            [1800.0, 900.0, 750.0],
        );
        self.furnish(
            4,
            "kitchen",
            level,
            1,
            [7500.0, 600.0],
            [3000.0, 600.0, 900.0],
        );
        self.flat(
            4,
            "basin",
            level,
            [8000.0, 650.0, 900.0],
            [800.0, 500.0, 180.0],
        );
        if level.is_multiple_of(2) {
            self.furnish(
                4,
                "chair",
                level,
                1,
                [11000.0, 600.0],
                [2400.0, 600.0, 2400.0],
            );
        } else {
            let door = self.wall(3, "partition", level, [11000.0, 2500.0], 2400.0);
            self.fill(4, "sliding_door", door, [500.0, 0.0], [1200.0, 2135.0]);
        }
    }

    /// A pitched roof of 35° with its ridge along x.
    pub(super) fn roof(&mut self, level: usize) {
        let (w, d) = (self.w, self.d);
        let half = d / 2.0;
        let rise = half * 0.7;
        let slab = self.flat(0, "slab_precast", level, [0.0, 0.0, -250.0], [w, d, 200.0]);
        self.parts[slab].hole = Some([6000.0, 5200.0, 2600.0, 3800.0]);
        let roof = self.put(0, "roof", level, [0.0, 0.0, 0.0], Shape::Assembly);
        let from = self.parts.len();
        let t = 240.0;
        let slope = |foot: f64, lift: f64, thick: f64| {
            let thick = thick * 1.22; // measured upright on a slope of 35°
            let corners = [[foot, lift], [half, rise + lift]];
            let above = corners.map(|corner| [corner[0], corner[1] + thick]);
            Section::Polygon(vec![corners[0], corners[1], above[1], above[0]])
        };
        let front = self.put(
            0,
            "roof_slab",
            level,
            [0.0; 3],
            Shape::Slope(slope(0.0, 0.0, t), w, t),
        );
        self.put(
            0,
            "roof_slab",
            level,
            [0.0; 3],
            Shape::Slope(slope(d, 0.0, t), w, t),
        );
        self.belongs(roof, from);
        for x in [0.0, w - 300.0] {
            let gable = Section::Polygon(vec![[0.0, 0.0], [d, 0.0], [half, rise]]);
            self.put(
                1,
                "gable_dg",
                level,
                [x, 0.0, 0.0],
                Shape::Bar(gable, 300.0),
            );
        }
        for (rank, x) in [(2, 900.0), (3, 3600.0), (3, 6300.0), (4, 9000.0)] {
            for foot in [0.0, d] {
                let section = slope(foot, -200.0, 200.0);
                self.put(
                    rank,
                    "rafter",
                    level,
                    [x, 0.0, 0.0],
                    Shape::Bar(section, 100.0),
                );
            }
        }
        self.bar(
            2,
            "purlin",
            level,
            [0.0, half, rise - 480.0],
            Section::Rectangle(160.0, 280.0),
            w,
        );
        for x in [900.0, 3600.0] {
            let at = self.flat(
                3,
                "collar",
                level,
                [x, 2500.0, 1500.0],
                [d - 5000.0, 120.0, 180.0],
            );
            self.parts[at].turned = true;
        }
        for y in [150.0, d - 150.0] {
            self.bar(
                1,
                "wall_plate",
                level,
                [0.0, y, 0.0],
                Section::Rectangle(140.0, 140.0),
                w,
            );
            self.bar(
                3,
                "gutter",
                level,
                [0.0, if y < half { -170.0 } else { d + 170.0 }, -150.0],
                Section::Circle(170.0),
                w,
            );
        }
        for (rank, foot) in [(2, 0.0), (3, d)] {
            let tiles = Shape::Slope(slope(foot, 310.0, 30.0), w, 30.0);
            self.put(rank, "roof_tiles", level, [0.0; 3], tiles);
            let insulation = Shape::Slope(slope(foot, -180.0, 160.0), w, 160.0);
            self.put(3, "roof_insulation", level, [0.0; 3], insulation);
        }
        self.put(
            3,
            "membrane",
            level,
            [0.0; 3],
            Shape::Slope(slope(0.0, 300.0, 1.0), w, 1.0),
        );
        for x in [100.0, w - 100.0] {
            self.post(
                4,
                "downpipe",
                level,
                [x, -170.0, -6000.0],
                Section::Circle(100.0),
                5900.0,
            );
        }
        for x in [2500.0, 7000.0] {
            self.fill(3, "skylight", front, [x, 1200.0], [780.0, 1180.0]);
        }
        for x in [1000.0, 2800.0, 4600.0] {
            self.flat(
                4,
                "solar",
                level,
                [x, d - 3000.0, 3000.0],
                [1720.0, 1130.0, 35.0],
            );
        }
        self.flat(
            3,
            "chimney",
            level,
            [10000.0, half + 400.0, 0.0],
            [600.0, 600.0, rise + 900.0],
        );
        self.bar(
            4,
            "snow_guard",
            level,
            [0.0, 300.0, 600.0],
            Section::Rectangle(30.0, 200.0),
            w,
        );
        self.flat(
            3,
            "sheet",
            level,
            [900.0, half, rise - 700.0],
            [10.0, 200.0, 300.0],
        );
        self.flat(
            3,
            "element",
            level,
            [12000.0, 3000.0, 0.0],
            [500.0, 500.0, 500.0],
        );
    }
}
