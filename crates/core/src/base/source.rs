//! Where a step reads from and writes to.

use std::io::{self, Read, Write};
use std::path::Path;

/// A file that a step reads.
pub trait Source: Send + Sync {
    /// Returns the name that people know it by: its path in the workspace, or `project:` and its path in the project.
    fn name(&self) -> String;
    /// Where it lies, absolute: for commands and for readers that map files.
    fn path(&self) -> &Path;
    /// Opens it.
    ///
    /// # Errors
    /// The error of the file system.
    fn open(&self) -> io::Result<Box<dyn Read + Send>>;
}

/// A file that a step writes. Its content counts only after `finish`.
pub trait Sink: Write + Send {
    /// Where it is being written, absolute.
    fn path(&self) -> &Path;
    /// Ends the file: what is in memory is handed to the file system.
    ///
    /// # Errors
    /// The error of the file system.
    fn finish(self: Box<Self>) -> io::Result<()>;
}
