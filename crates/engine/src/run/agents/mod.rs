//! What a run asks of agents: which are ready, their calls, and what they would be asked.

pub(crate) mod calls;
pub(crate) mod dry_run;
pub(crate) mod estimate;
pub(crate) mod external;
pub(crate) mod ready;
