//! The trait through which planning reads files, so that planning itself is pure.

use crate::base::digest::Digest;
use crate::base::path::{FilePath, RelPath, Root};
use crate::expr::jq::Evaluator;
use crate::expr::scope::Reading;
use crate::model::stage::Stage;
use serde_json::Value;

/// The files that match a pattern.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Matches {
    /// The files, in natural order.
    pub files: Vec<RelPath>,
    /// The matches that cannot be used, in natural order.
    pub refused: Vec<RefusedFile>,
}

/// A match that cannot be used, such as one whose name is not UTF-8.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedFile {
    /// The path. A name that records cannot hold is escaped with backslashes, which valid paths never contain.
    pub name: String,
    /// The reason, with what to do.
    pub why: String,
}

/// Reads files for planning.
pub trait World {
    /// Returns the content of a file.
    ///
    /// # Errors
    /// If it cannot be read or parsed; the text names the file.
    fn content(&self, file: &FilePath, reading: &Reading) -> Result<Value, String>;

    /// Returns the files on the disk that match a pattern.
    ///
    /// # Errors
    /// If the pattern is wrong or a folder cannot be read.
    fn matches(&self, root: Root, pattern: &str) -> Result<Matches, String>;

    /// Returns true if there is a folder at this path.
    ///
    /// # Errors
    /// If the workspace is in it: its outputs would be its inputs.
    fn is_folder(&self, file: &FilePath) -> Result<bool, String>;

    /// Returns the digest of a file; `None` if it does not exist.
    ///
    /// # Errors
    /// If it exists and cannot be read, or leaves its folder.
    fn digest(&self, file: &FilePath) -> Result<Option<Digest>, String>;

    /// Returns the evaluator of the programs that select batches and inputs of a stage.
    fn evaluator(&self, stage: &Stage) -> Box<dyn Evaluator>;
}
