//! Runs: looks at what there is, dispatches what must be done, and commits what was made.

pub mod agents;
pub mod aside;
pub mod attempt;
pub mod begin;
pub mod calls;
pub mod commit;
pub mod context;
pub mod dispatch;
pub mod ending;
pub mod engine;
pub mod finish;
pub mod foresee;
pub mod gate;
mod happened;
pub mod in_memory;
pub mod keeper;
mod later;
pub mod notice;
pub mod outs;
pub mod outside;
pub mod placeholder;
pub mod printed;
pub mod recover;
pub mod rehearse;
pub mod rejudge;
pub mod report;
pub mod retire;
pub mod rounds;
pub mod scopes;
pub mod services;
pub mod stop;
pub mod survey;
pub mod validate;
pub mod workers;
pub mod world;

pub use crate::steps::forms::forms;
