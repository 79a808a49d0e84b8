//! Batches that run: workers, attempts, and the files that an attempt makes in scratch.

pub mod attempt;
pub mod dispatch;
pub mod in_memory;
pub mod iterations;
pub mod outcomes;
pub mod output_dir;
pub mod placeholder;
pub mod printed;
pub mod set_aside;
pub mod stage_context;
pub mod workers;
