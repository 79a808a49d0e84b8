//! The systems under `examples/`, each run whole as a new user would.

mod announced;
mod claude;
mod diagrams;
mod grading;
mod params;
mod prompt_tests;
mod study_plan;
