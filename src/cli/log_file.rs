//! `--log-file`: what the program does, for whoever looks for a defect.

use crate::ops::open::{OpsError, create_file};
use std::path::Path;
use std::sync::Mutex;
use tracing_subscriber::fmt;

/// Writes a debug log to a file from here on.
///
/// # Errors
/// When the file cannot be made.
pub fn begin(file: &Path) -> Result<(), OpsError> {
    let writer = create_file(file)?;
    let log = fmt()
        .with_writer(Mutex::new(writer))
        .with_ansi(false)
        .with_max_level(tracing::Level::DEBUG)
        .finish();
    tracing::subscriber::set_global_default(log).map_err(|error| OpsError::Usage(error.to_string()))
}
