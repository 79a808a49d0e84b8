//! Commands that change a workspace or create a project without a run.

pub mod accept;
mod calls_in_use;
pub mod clean;
pub mod gc;
pub mod import_review;
pub mod init;
pub mod params;
pub(crate) mod templates;
