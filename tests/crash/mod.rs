//! Durability: killed anywhere, a run leaves a workspace that resumes to the same bytes, and nothing that it says is untrue.

mod agents;
mod by_hand;
mod changes;
mod corrections;
mod every;
mod forced;
mod glance;
mod journal;
mod kill;
mod machine;
mod power;
mod project;
mod rounds;
pub mod sweep;
mod untrue;
