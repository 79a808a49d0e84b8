//! What planning asks of the disk, behind a trait, so that planning itself touches none.

use crate::base::digest::Digest;
use crate::base::path::{FilePath, RelPath, Root};
use crate::expr::scope::Reading;
use serde_json::Value;

/// Answers questions about files.
pub trait World {
    /// The content of a file.
    ///
    /// # Errors
    /// When it cannot be read or parsed; the text names it.
    fn content(&self, file: &FilePath, reading: &Reading) -> Result<Value, String>;

    /// The files on the disk that match a pattern, in natural order.
    ///
    /// # Errors
    /// When the pattern is wrong or a folder cannot be read.
    fn matches(&self, root: Root, pattern: &str) -> Result<Vec<RelPath>, String>;

    /// Whether a folder lies there.
    fn is_folder(&self, file: &FilePath) -> bool;

    /// The digest of a file; none when it is not there.
    ///
    /// # Errors
    /// When it is there and cannot be read, or leaves its folder.
    fn digest(&self, file: &FilePath) -> Result<Option<Digest>, String>;
}
