//! The systems under `examples/`, each run whole as a new user would.

mod prompt_tests;
