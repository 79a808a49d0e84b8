//! Running batches: workers, attempts, and their files in scratch.

pub(crate) mod attempt;
pub(crate) mod attempt_log;
pub(crate) mod dispatch;
pub(crate) mod events;
pub(crate) mod in_memory;
pub(crate) mod iterations;
pub(crate) mod live;
pub(crate) mod outcomes;
pub(crate) mod output_dir;
pub(crate) mod placeholder;
pub(crate) mod set_aside;
pub(crate) mod stage_context;
pub(crate) mod turn;
pub(crate) mod workers;
