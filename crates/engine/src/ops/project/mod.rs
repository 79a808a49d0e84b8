//! Finds and opens a project and its workspace: declarations, values, the lock, and what earlier runs recorded.

pub(crate) mod choices;
pub(crate) mod client_path;
mod counts;
pub(crate) mod error;
pub(crate) mod find;
pub mod hold;
pub(crate) mod open;
pub(crate) mod opened;
pub mod present;
pub(crate) mod request;
pub(crate) mod values;

pub use error::OpsError;
pub(crate) use find::find_project;
pub use find::{PROJECT_FILE, declarations, stage_names};
pub use open::{append_file, open};
pub use opened::{Opened, state};
pub use request::Request;
