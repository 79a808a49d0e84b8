//! Things that a batch may depend on, and that are not facts.

/// The things outside the fingerprint: Milepost does not notice when they change. The reference of the language has the same list.
pub const OUTSIDE: [&str; 8] = [
    "files that a program opens by itself: name them as arguments, in `reads` or in a `depfile`",
    "programs that a program starts, libraries and packages that it loads, and the shell of a command that is one string",
    "programs whose name depends on the batch or that are not found, and those of which a record of an earlier version has no fact",
    "the values of `PATH` and `HOME`, and the mode of files",
    "time, network, random numbers, and limits of the system",
    "services, and values that a header of `http` takes from `env`",
    "the program of a `cli` agent outside the project, and the model behind a name",
    "programs on the nodes of a cluster: Milepost compares those of the machine of the run",
];
