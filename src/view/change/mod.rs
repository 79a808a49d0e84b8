//! Results of commands that change a workspace or its project.

pub mod accept;
pub mod approve;
pub mod clean;
pub(crate) mod import_review;
pub(crate) mod params;
