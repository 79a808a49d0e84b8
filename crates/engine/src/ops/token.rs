//! Random tokens.

use crate::ops::project::error::OpsError;
use milepost_store::store::id::random_bytes;

/// The random bytes of a token.
const BYTES: usize = 32;

/// Returns a random token of 64 hexadecimal digits.
///
/// # Errors
/// When the system has no random numbers.
pub fn random_token() -> Result<String, OpsError> {
    let bytes = random_bytes::<BYTES>();
    let bytes = bytes.map_err(|error| OpsError::World(format!("no random numbers: {error}")))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
