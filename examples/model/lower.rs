//! What stands below the flats: the foundation, the basement, the ground floor with its offices.

use super::building::{Plan, WALL};
use super::shape::{Section, Shape};

impl Plan {
    /// What carries the house.
    pub(super) fn foundation(&mut self) {
        let (w, d) = (self.w, self.d);
        self.flat(0, "raft", 0, [0.0, 0.0, -300.0], [w, d, 0.0]);
        self.flat(
            2,
            "blinding",
            0,
            [-100.0, -100.0, -350.0],
            [w + 200.0, d + 200.0, 50.0],
        );
        self.flat(2, "perimeter", 0, [0.0, 0.0, -470.0], [w, d, 120.0]);
        self.flat(
            3,
            "mesh",
            0,
            [100.0, 100.0, -100.0],
            [w - 200.0, d - 200.0, 14.0],
        );
        for y in [0.0, d - 800.0] {
            self.flat(1, "strip_wide", 0, [0.0, y, -850.0], [w, 800.0, 500.0]);
        }
        for y in [3600.0, 4800.0] {
            self.flat(2, "strip_narrow", 0, [0.0, y, -850.0], [w, 600.0, 500.0]);
        }
        for x in [2250.0, 6750.0, 10750.0] {
            self.flat(1, "pad", 0, [x, 1600.0, -850.0], [1500.0, 1500.0, 500.0]);
        }
        self.bar(
            2,
            "strip_narrow",
            0,
            [0.0, 2350.0, -650.0],
            Section::Rectangle(400.0, 600.0),
            w,
        );
        self.flat(
            2,
            "lift_pit",
            0,
            [9000.0, 6700.0, -1500.0],
            [1900.0, 1900.0, 1150.0],
        );
    }

    /// Cellars and the plant room.
    pub(super) fn basement(&mut self) {
        let (w, d) = (self.w, self.d);
        let [front, back, ..] = self.shell(0, "outer_ug", "outer_ug");
        let [left, right, _] = self.core(0, "core_ug", "core_ug");
        let inner = [
            self.wall(1, "inner_ug", 0, [400.0, 4600.0], 5300.0),
            self.wall(2, "inner_ug", 0, [8900.0, 4600.0], w - 9300.0),
        ];
        self.cross(2, "boundary", 0, [4200.0, 400.0], 4100.0);
        for x in [10300.0, 12000.0] {
            self.cross(1, "lattice", 0, [x, 400.0], 4000.0);
        }
        for x in [3000.0, 7500.0] {
            self.post(
                1,
                "column_ug",
                0,
                [x, 2350.0, 0.0],
                Section::Rectangle(300.0, 300.0),
                WALL,
            );
        }
        self.bar(
            2,
            "beam_eg",
            0,
            [400.0, 2350.0, 2550.0],
            Section::Rectangle(300.0, 400.0),
            6900.0,
        );
        self.fill(1, "fire_door", left, [600.0, 0.0], [900.0, 2100.0]);
        self.fill(2, "fire_door", right, [600.0, 0.0], [900.0, 2100.0]);
        self.fill(2, "fire_door", inner[1], [1500.0, 0.0], [900.0, 2000.0]);
        self.fill(2, "window_ug", front, [1500.0, 1800.0], [800.0, 600.0]);
        self.fill(3, "window_ug", back, [1500.0, 1800.0], [800.0, 600.0]);
        self.stair(0, "stair", "flight", "rail_steel");
        self.flat(
            2,
            "screed_ug",
            0,
            [400.0, 400.0, 0.0],
            [w - 800.0, 4100.0, 0.0],
        );
        for x in [1500.0, 4500.0] {
            self.flat(
                2,
                "light_well",
                0,
                [x, -700.0, 1500.0],
                [1000.0, 600.0, 1200.0],
            );
        }
        self.flat(
            2,
            "light_well",
            0,
            [500.0, d - 1500.0, -400.0],
            [800.0, 800.0, 700.0],
        );
        let pipe = Section::Circle;
        for (rank, y) in [(2, 5000.0), (4, 5600.0), (4, 6200.0)] {
            self.bar(
                rank,
                "soil_pipe",
                0,
                [600.0, y, 2400.0],
                pipe(110.0),
                4800.0,
            );
            self.bar(
                4,
                "water_pipe",
                0,
                [600.0, y + 150.0, 2500.0],
                pipe(28.0),
                4600.0,
            );
        }
        self.bar(
            3,
            "soil_pipe_iron",
            0,
            [600.0, 5300.0, -700.0],
            pipe(160.0),
            w,
        );
        for y in [6800.0, 6950.0] {
            self.bar(3, "heating_pipe", 0, [600.0, y, 2450.0], pipe(48.0), 4500.0);
        }
        for x in [5300.0, 5500.0] {
            self.post(4, "pipe_bend", 0, [x, 5000.0, 2300.0], pipe(110.0), 200.0);
        }
        self.flat(
            3,
            "heat_pump",
            0,
            [600.0, 7500.0, 0.0],
            [900.0, 750.0, 1400.0],
        );
        self.post(3, "tank", 0, [2300.0, 7900.0, 0.0], pipe(900.0), 1850.0);
        self.flat(
            3,
            "board",
            0,
            [4500.0, 500.0, 300.0],
            [1200.0, 250.0, 1800.0],
        );
        for y in [1200.0, 3600.0] {
            self.bar(
                4,
                "cable_tray",
                0,
                [600.0, y, 2600.0],
                Section::Rectangle(200.0, 60.0),
                9000.0,
            );
        }
        for x in [2000.0, 8500.0] {
            self.flat(4, "light", 0, [x, 1800.0, 2650.0], [1500.0, 120.0, 80.0]);
        }
        self.flat(
            4,
            "void_hint",
            0,
            [5000.0, 4500.0, 2300.0],
            [200.0, 200.0, 200.0],
        );
    }

    /// Offices behind a glass front.
    pub(super) fn ground(&mut self) {
        let (w, d) = (self.w, self.d);
        let slab = self.flat(0, "slab_eg", 1, [0.0, 0.0, -250.0], [w, d, 0.0]);
        self.parts[slab].hole = Some([6000.0, 5200.0, 2600.0, 3800.0]);
        let curtain = self.put(0, "curtain", 1, [0.0, 100.0, 0.0], Shape::Assembly);
        let from = self.parts.len();
        let field = w / 4.0;
        for x in [0.0, field, 2.0 * field, 3.0 * field, w - 50.0] {
            let section = Section::Rectangle(50.0, 150.0);
            self.post(3, "mullion", 1, [x + 25.0, 0.0, 0.0], section, WALL);
        }
        for z in [25.0, WALL - 25.0] {
            self.bar(
                3,
                "mullion",
                1,
                [0.0, 0.0, z],
                Section::Rectangle(100.0, 50.0),
                w,
            );
        }
        for (rank, kind, x) in [
            (1, "pane", 0.0),
            (3, "pane", field),
            (3, "pane", 2.0 * field),
            (3, "spandrel", 3.0 * field),
        ] {
            let size = [field - 50.0, 40.0, WALL - 100.0];
            self.flat(rank, kind, 1, [x + 50.0, -20.0, 50.0], size);
        }
        self.belongs(curtain, from);
        let back = self.wall(0, "outer_eg", 1, [0.0, d - 200.0], w);
        let side = self.cross(0, "outer_eg", 1, [200.0, 400.0], d - 800.0);
        self.cross(0, "outer_eg", 1, [w - 200.0, 400.0], d - 800.0);
        self.fill(1, "front_door", side, [1200.0, 0.0], [1800.0, 2300.0]);
        self.fill(1, "window_c", back, [1500.0, 900.0], [1500.0, 1400.0]);
        self.fill(3, "window_c", back, [11000.0, 900.0], [1500.0, 1400.0]);
        self.fill(2, "window_bath", back, [4200.0, 1500.0], [600.0, 800.0]);

        let [left, _, lift] = self.core(1, "core", "core_shaft");
        let inner = self.wall(1, "inner_brick", 1, [400.0, 4600.0], 5300.0);
        self.wall(2, "inner_brick", 1, [8900.0, 4600.0], w - 9300.0);
        let office = self.cross(1, "partition_en", 1, [9500.0, 400.0], 4100.0);
        self.cross(1, "glass_wall", 1, [4500.0, 400.0], 4100.0);
        self.cross(2, "partition_en", 1, [2900.0, 4700.0], d - 5100.0);
        self.fill(2, "room_door_b", office, [500.0, 0.0], [915.0, 2134.0]);
        self.fill(2, "glass_door", inner, [1000.0, 0.0], [1000.0, 2135.0]);
        self.fill(3, "flat_door", left, [600.0, 0.0], [1010.0, 2135.0]);
        self.fill(3, "fire_door", lift, [400.0, 0.0], [900.0, 2000.0]);
        for x in [3000.0, 7500.0, 11500.0] {
            self.post(
                1,
                "column_eg",
                1,
                [x, 2350.0, 0.0],
                Section::Circle(300.0),
                WALL,
            );
        }
        self.bar(
            1,
            "beam_eg",
            1,
            [400.0, 2350.0, 2550.0],
            Section::Rectangle(300.0, 400.0),
            w - 800.0,
        );
        self.bar(
            2,
            "beam_steel",
            1,
            [4500.0, 4500.0, 2600.0],
            Section::I(150.0, 300.0, 7.1, 10.7),
            4300.0,
        );
        self.stair(1, "stair", "flight", "rail_steel");
        self.canopy();

        self.flat(2, "stone", 1, [6000.0, 400.0, 0.0], [3400.0, 4100.0, 30.0]);
        self.flat(
            2,
            "raised_floor",
            1,
            [9600.0, 400.0, 0.0],
            [w - 10000.0, 4100.0, 0.0],
        );
        self.flat(2, "carpet", 1, [400.0, 400.0, 0.0], [4000.0, 4100.0, 8.0]);
        self.flat(
            3,
            "linoleum",
            1,
            [400.0, 4700.0, 0.0],
            [2400.0, 4600.0, 2.5],
        );
        self.flat(
            2,
            "ceiling_metal",
            1,
            [400.0, 400.0, 2600.0],
            [w - 800.0, 4100.0, 20.0],
        );
        let duct = Section::Rectangle(400.0, 200.0);
        self.bar(2, "duct", 1, [600.0, 3900.0, 2680.0], duct.clone(), 8000.0);
        self.bar(4, "duct", 1, [600.0, 1500.0, 2680.0], duct, 6000.0);
        for x in [2000.0, 5000.0] {
            self.post(
                4,
                "air_terminal",
                1,
                [x, 1500.0, 2580.0],
                Section::Circle(125.0),
                40.0,
            );
        }
        for x in [1500.0, 7000.0, 10500.0] {
            self.flat(
                4,
                "light_office",
                1,
                [x, 2300.0, 2590.0],
                [1200.0, 600.0, 60.0],
            );
        }
        self.flat(
            3,
            "smoke",
            1,
            [7000.0, 4000.0, 2580.0],
            [120.0, 120.0, 50.0],
        );
        self.flat(
            3,
            "smoke",
            1,
            [5950.0, 4900.0, 900.0],
            [160.0, 160.0, 500.0],
        );
        self.flat(
            3,
            "lift",
            1,
            [9200.0, 6900.0, 0.0],
            [1500.0, 1600.0, 2300.0],
        );
        self.flat(
            3,
            "outlet",
            1,
            [-250.0, 3800.0, 900.0],
            [200.0, 900.0, 700.0],
        );
        for (rank, x) in [(2, 1000.0), (4, 2800.0)] {
            self.furnish(rank, "desk", 1, 0, [x, 800.0], [1600.0, 800.0, 740.0]);
            self.furnish(
                rank,
                "chair",
                1,
                0,
                [x + 500.0, 1700.0],
                [600.0, 600.0, 1100.0],
            );
        }
        self.furnish(3, "desk", 1, 1, [10000.0, 600.0], [1000.0, 400.0, 1850.0]);
        self.flat(4, "outlet", 1, [9550.0, 1000.0, 300.0], [150.0, 40.0, 80.0]);
    }

    /// A small flat roof before the door, with posts, parapets and consoles.
    fn canopy(&mut self) {
        self.flat(
            1,
            "canopy",
            1,
            [-2600.0, 800.0, 2500.0],
            [2400.0, 4000.0, 0.0],
        );
        for y in [1000.0, 4600.0] {
            let section = Section::I(160.0, 152.0, 6.0, 9.0);
            self.post(1, "column_steel", 1, [-2400.0, y, 0.0], section, 2500.0);
        }
        for (rank, y) in [(1, 800.0), (3, 4650.0)] {
            self.flat(
                rank,
                "attic",
                1,
                [-2600.0, y, 2860.0],
                [2400.0, 150.0, 350.0],
            );
        }
        self.flat(
            1,
            "bracket",
            1,
            [-200.0, 1000.0, 2400.0],
            [200.0, 120.0, 100.0],
        );
        self.flat(
            4,
            "bracket",
            1,
            [-200.0, 4400.0, 2400.0],
            [200.0, 120.0, 100.0],
        );
        self.flat(
            3,
            "console_s355",
            1,
            [-200.0, 2700.0, 2400.0],
            [200.0, 160.0, 100.0],
        );
        let ramp = self.put(3, "ramp", 1, [-2600.0, 5000.0, -300.0], Shape::Assembly);
        let from = self.parts.len();
        let wedge = Section::Polygon(vec![[0.0, 0.0], [4000.0, 0.0], [0.0, 280.0]]);
        self.put(3, "ramp_flight", 1, [0.0; 3], Shape::Bar(wedge, 1500.0));
        self.belongs(ramp, from);
    }
}
