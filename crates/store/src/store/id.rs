//! Ids of workspaces and runs: ULIDs, which sort by time of creation.

use crate::store::read;
use jiff::Timestamp;
use std::io::Read as _;
use ulid::Ulid;

/// Returns random bytes of the system.
///
/// # Errors
/// Fails if the system returns none.
pub fn random_bytes<const N: usize>() -> std::io::Result<[u8; N]> {
    let mut bytes = [0; N];
    read::open_stream("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Creates an id of 26 characters for this time (<https://github.com/ulid/spec>).
///
/// # Errors
/// Fails if the system returns no random bytes.
pub fn new_id(now: Timestamp) -> std::io::Result<String> {
    let bytes = random_bytes()?;
    let millis = u64::try_from(now.as_millisecond()).unwrap_or_default();
    Ok(Ulid::from_parts(millis, u128::from_le_bytes(bytes)).to_string())
}

/// Returns the time at which an id was made; `None` for a text that is no id.
pub fn made_at(id: &str) -> Option<Timestamp> {
    let id = Ulid::from_string(id).ok()?;
    let millis = i64::try_from(id.timestamp_ms()).ok()?;
    Timestamp::from_millisecond(millis).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_when_it_was_made() {
        let now: Timestamp = "2026-11-21T10:00:00.123Z".parse().unwrap();
        let (one, two) = (new_id(now).unwrap(), new_id(now).unwrap());
        assert_ne!(one, two);
        assert_eq!((one.len(), made_at(&one)), (26, Some(now)));
        assert_eq!(made_at("RUN"), None);
    }
}
