//! What a run asks of agents: which are ready, their calls, and what they would be asked.

pub mod calls;
pub mod dry_run;
pub mod estimate;
pub mod external;
pub mod ready;
