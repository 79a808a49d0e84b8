//! The files of a project as declarations read them.

use crate::base::path::RelPath;

/// The file that makes a folder a project.
pub const PROJECT_FILE: &str = "milepost.toml";

/// The folder of the stages' files.
pub const STAGES: &str = "stages";

pub trait ProjectFiles {
    /// Returns the content of a file; `None` if there is no such file.
    fn read(&self, path: &RelPath) -> Option<Result<Vec<u8>, String>>;
    /// Returns the names in a folder, an empty list if there is no such folder. An empty text means the project's own folder.
    fn list(&self, folder: &str) -> Vec<String>;
}
