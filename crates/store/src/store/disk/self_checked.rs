//! JSON files that contain a checksum of themselves, so that any other change than by Milepost shows.

use milepost_core::base::digest::Digest;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The content of a file with a checksum of itself.
pub(crate) trait SelfChecked: Serialize + DeserializeOwned + Clone {
    /// Returns the field for the checksum, which is left out of the file if it is `None`.
    fn checksum(&mut self) -> &mut Option<Digest>;
}

/// Whether a file is as Milepost wrote it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SelfCheck {
    Whole,
    /// An earlier version wrote it without a checksum.
    Unchecked,
    /// It was changed.
    Changed,
}

/// Returns the bytes of the file, with the checksum of the rest.
pub(crate) fn to_bytes(value: &impl SelfChecked) -> serde_json::Result<Vec<u8>> {
    let mut value = value.clone();
    *value.checksum() = None;
    *value.checksum() = Some(Digest::of(plain(&value)?));
    plain(&value)
}

fn plain(value: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec_pretty(value)?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// Returns the content of a file, and whether it is as it was written.
pub(crate) fn read<T: SelfChecked>(bytes: &[u8]) -> (Option<T>, SelfCheck) {
    let Ok(mut found) = serde_json::from_slice::<T>(bytes) else {
        return (None, SelfCheck::Changed);
    };
    let (written, check) = match found.checksum() {
        Some(_) => (to_bytes(&found), SelfCheck::Whole),
        None => (plain(&found), SelfCheck::Unchecked),
    };
    let is_written = written.is_ok_and(|written| written == bytes);
    let check = if is_written {
        check
    } else {
        SelfCheck::Changed
    };
    (Some(found), check)
}
