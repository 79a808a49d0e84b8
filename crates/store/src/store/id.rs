//! Ids of workspaces and runs: ULIDs, which sort by time of creation.

use jiff::Timestamp;
use std::io;
use ulid::Ulid;

/// Returns random bytes of the system.
///
/// # Errors
/// Fails if the system returns none.
pub fn random_bytes<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    fill(&mut bytes).map_err(|cause| {
        let message = format!(
            "the system provides no random numbers ({cause}): allow the system call `getrandom`, or make /dev/urandom readable"
        );
        io::Error::new(cause.kind(), message)
    })?;
    Ok(bytes)
}

/// Fills a buffer by the system call, which needs no device. Systems without it have the device.
fn fill(bytes: &mut [u8]) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        use rustix::io::{Errno, retry_on_intr};
        use rustix::rand::{GetRandomFlags, getrandom};
        match retry_on_intr(|| getrandom(&mut *bytes, GetRandomFlags::empty())) {
            Ok(read) if read == bytes.len() => return Ok(()),
            Ok(_) | Err(Errno::NOSYS | Errno::PERM) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let mut device = crate::store::read::open_stream("/dev/urandom")?;
    io::Read::read_exact(&mut device, bytes)
}

/// Creates an id of 26 characters for this time (<https://github.com/ulid/spec>).
///
/// # Errors
/// Fails if the system returns no random bytes.
pub fn new_id(now: Timestamp) -> io::Result<String> {
    let bytes = random_bytes()?;
    let millis = u64::try_from(now.as_millisecond()).unwrap_or_default();
    Ok(Ulid::from_parts(millis, u128::from_le_bytes(bytes)).to_string())
}

/// Returns the time at which an id was made; `None` for a text that is not an id.
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
