//! The systems under `examples/`, each run whole as a new user would.

mod diagrams;
mod grading;
mod prompt_tests;
mod study_plan;
