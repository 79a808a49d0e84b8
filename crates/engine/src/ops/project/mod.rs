//! Finds, opens and locks a project and its workspace.

pub(crate) mod client_path;
pub(crate) mod error;
pub(crate) mod find;
pub mod half_published;
pub mod lock;
pub(crate) mod lost_manifests;
mod numeric_params;
pub(crate) mod open;
pub(crate) mod open_project;
pub(crate) mod programs;
pub(crate) mod request;
pub mod snapshot;
pub(crate) mod stored_values;
pub(crate) mod values;

pub use error::OpsError;
pub(crate) use find::find_project;
pub use find::{PROJECT_FILE, declarations, stage_names};
pub use open::{append_file, open};
pub use open_project::{OpenProject, state};
pub use request::Request;
