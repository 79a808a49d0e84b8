//! Commands that change a workspace, or make a project, without a run.

pub mod accept;
pub mod clean;
pub mod gc;
pub mod init;
pub mod params;
pub(crate) mod templates;
mod used;
