//! The names that the scope of a stage has beside those that it declares.

/// The name of the accepted modifications by hand. A stage that declares a name like this has its own.
pub const OVERRIDES: &str = "overrides";

/// The names of a scope that a program that takes all of it depends on, beside what the stage itself declares.
pub const EVERYWHERE: [&str; 4] = ["params", "env", "workspace", "agents"];

/// Names that every scope has.
pub const FIXED_NAMES: [&str; 7] = [
    "params",
    "env",
    "workspace",
    "paths",
    "digests",
    "agents",
    "milepost",
];

/// The name of the moment at which an attempt began: `date`, `time` and `timestamp`. It differs at each run, so it is no fact: a
/// program that takes the scope whole does not see it. A stage that declares the name itself sees its own.
pub const RUN: &str = "run";

/// Names that the scope of a stage has whose steps are repeated.
pub const ROUND_NAMES: [&str; 2] = ["iteration", "previous"];
