//! The names that the scope of a stage has beside those that it declares.

/// The name of the accepted modifications by hand. A stage can declare the same name for itself.
pub const OVERRIDES: &str = "overrides";

/// The names that a program depends on if it takes the whole scope, besides those that the stage declares.
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

/// The name of the time at which an attempt began: `date`, `time` and `timestamp`. It differs in each run, so it is not a fact, and
/// a program that takes the whole scope does not see it. A stage can declare the same name for itself.
pub const RUN: &str = "run";

/// The names that a stage with `[refine]` has in its scope.
pub const ROUND_NAMES: [&str; 2] = ["iteration", "previous"];
