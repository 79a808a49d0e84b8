//! What planning reads from the disk, behind a trait that keeps planning pure.

use crate::base::digest::Digest;
use crate::base::path::{FilePath, RelPath, Root};
use crate::expr::scope::Reading;
use serde_json::Value;

/// Reads files for planning.
pub trait World {
    /// Returns the content of a file.
    ///
    /// # Errors
    /// If it cannot be read or parsed; the text names the file.
    fn content(&self, file: &FilePath, reading: &Reading) -> Result<Value, String>;

    /// Returns the files on the disk that match a pattern, in natural order.
    ///
    /// # Errors
    /// If the pattern is wrong or a folder cannot be read.
    fn matches(&self, root: Root, pattern: &str) -> Result<Vec<RelPath>, String>;

    /// Returns true if there is a folder at this path.
    fn is_folder(&self, file: &FilePath) -> bool;

    /// Returns the digest of a file; `None` if it does not exist.
    ///
    /// # Errors
    /// If it exists and cannot be read, or leaves its folder.
    fn digest(&self, file: &FilePath) -> Result<Option<Digest>, String>;
}
