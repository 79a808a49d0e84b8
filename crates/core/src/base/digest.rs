//! SHA-256 digests, written as `sha256:` and 64 hexadecimal digits.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::Digest as _;
use std::fmt;
use std::io::{self, Write};
use std::str::FromStr;

/// The SHA-256 of some bytes (FIPS 180-4).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

/// A text that is not a digest.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not a digest: expected `sha256:` and 64 hexadecimal digits")]
pub struct NotADigest(String);

impl Digest {
    /// Returns the digest of bytes.
    pub fn of(bytes: impl AsRef<[u8]>) -> Self {
        Self(sha2::Sha256::digest(bytes).into())
    }

    /// Returns the 64 hexadecimal digits, as `sha256sum` prints them.
    pub fn hex(&self) -> String {
        self.digits().as_str().to_owned()
    }

    fn digits(&self) -> Digits {
        let mut digits = [0; 64];
        for (pair, byte) in digits.chunks_exact_mut(2).zip(self.0) {
            pair[0] = HEX[usize::from(byte >> 4)];
            pair[1] = HEX[usize::from(byte & 15)];
        }
        Digits(digits)
    }

    /// Returns the first twelve hexadecimal digits: enough for people to tell two digests apart.
    pub fn short(&self) -> String {
        self.hex()[..12].to_owned()
    }

    /// Creates a digest from its 32 bytes.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Returns the 32 bytes.
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Reads the 64 hexadecimal digits that `sha256sum` prints.
    ///
    /// # Errors
    /// If the text has another length or other characters.
    pub fn from_hex(hex: &str) -> Result<Self, NotADigest> {
        let wrong = || NotADigest(hex.chars().take(80).collect());
        let digits = hex.as_bytes();
        if digits.len() != 64 {
            return Err(wrong());
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let (high, low) = (DIGIT[usize::from(pair[0])], DIGIT[usize::from(pair[1])]);
            if high > 15 || low > 15 {
                return Err(wrong());
            }
            *byte = high << 4 | low;
        }
        Ok(Self(bytes))
    }
}

/// 64 hexadecimal digits.
struct Digits([u8; 64]);

impl Digits {
    fn as_str(&self) -> &str {
        // They are ASCII.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

const HEX: &[u8; 16] = b"0123456789abcdef";

/// The value of each byte as a hexadecimal digit; 255 if it is none.
const DIGIT: [u8; 256] = {
    let mut worth = [255; 256];
    let mut digit = 0;
    while digit < 16 {
        worth[HEX[digit] as usize] = digit as u8;
        worth[HEX[digit].to_ascii_uppercase() as usize] = digit as u8;
        digit += 1;
    }
    worth
};

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sha256:")?;
        f.write_str(self.digits().as_str())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}…", self.short())
    }
}

impl FromStr for Digest {
    type Err = NotADigest;

    fn from_str(text: &str) -> Result<Self, NotADigest> {
        let hex = text
            .strip_prefix("sha256:")
            .ok_or_else(|| NotADigest(text.chars().take(80).collect()))?;
        Self::from_hex(hex)
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        crate::base::parsed::parsed(deserializer)
    }
}

#[cfg(debug_assertions)]
impl schemars::JsonSchema for Digest {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Digest".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "pattern": "^sha256:[0-9a-f]{64}$" })
    }
}

/// Computes the digest of bytes that arrive in parts.
#[derive(Clone, Default)]
pub struct Hasher(sha2::Sha256);

impl Hasher {
    /// Creates an empty hasher.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds bytes.
    pub fn update(&mut self, bytes: impl AsRef<[u8]>) {
        self.0.update(bytes);
    }

    /// Returns the digest of all bytes added.
    pub fn finish(self) -> Digest {
        Digest(self.0.finalize().into())
    }
}

impl Write for Hasher {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_what_sha256sum_prints() {
        let digest = Digest::of("abc");
        assert_eq!(
            digest.to_string(),
            "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        assert_eq!(digest.to_string().parse::<Digest>().unwrap(), digest);
        let mut hasher = Hasher::new();
        hasher.update("a");
        hasher.update("bc");
        assert_eq!(hasher.finish(), digest);
    }

    #[test]
    fn refuses_other_texts() {
        for text in [
            "",
            "sha256:",
            "md5:00",
            "sha256:zz7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        ] {
            assert!(text.parse::<Digest>().is_err(), "{text}");
        }
    }
}
