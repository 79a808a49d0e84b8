//! Agents of a run: which are available, their calls, and estimates.

pub(crate) mod budget;
pub(crate) mod dry_run;
pub(crate) mod estimate;
pub(crate) mod external;
pub(crate) mod project_agents;
