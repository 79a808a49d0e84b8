//! Commands that change a workspace or create a project without a run.

pub mod accept;
pub mod approve;
pub(crate) mod calls_in_use;
pub mod clean;
mod corrections;
pub mod gc;
pub mod import_review;
pub mod init;
pub mod man;
pub mod params;
pub mod review;
pub(crate) mod templates;
