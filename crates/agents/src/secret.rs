//! A provider's key, which is sent in one header and appears nowhere else.

use std::fmt;

/// A provider's key. Its `Debug` output does not show it.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(String);

/// What stands where a key stood.
const HIDDEN: &str = "[key]";

/// Shorter ones are not looked for in answers: they would be found in words.
const SHORTEST: usize = 8;

impl Secret {
    /// Creates a key from text, without the white space around it.
    pub fn new(key: &str) -> Self {
        Self(key.trim().to_owned())
    }

    /// Returns true if there is no key, as for a local server.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the key, for the header.
    pub(super) fn expose(&self) -> &str {
        &self.0
    }

    /// Replaces the key in a text by `[key]`. Keys shorter than 8 bytes are not searched for.
    pub fn hide(&self, text: &str) -> String {
        if self.0.len() < SHORTEST {
            return text.to_owned();
        }
        text.replace(&self.0, HIDDEN)
    }

    /// Replaces the key in bytes, as [`Secret::hide`] does in a text.
    pub fn hide_in(&self, bytes: Vec<u8>) -> Vec<u8> {
        let key = self.0.as_bytes();
        if key.len() < SHORTEST || !bytes.windows(key.len()).any(|part| part == key) {
            return bytes;
        }
        let mut hidden = Vec::with_capacity(bytes.len());
        let mut rest = &bytes[..];
        while let Some((&first, after)) = rest.split_first() {
            if rest.starts_with(key) {
                hidden.extend_from_slice(HIDDEN.as_bytes());
                rest = &rest[key.len()..];
            } else {
                hidden.push(first);
                rest = after;
            }
        }
        hidden
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_empty() { "none" } else { HIDDEN })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_never_shown() {
        let key = Secret::new(" sk-ant-0123456789\n");
        assert_eq!(format!("{key:?}"), "[key]");
        let told = "Incorrect key sk-ant-0123456789, twice sk-ant-0123456789.";
        let hidden = "Incorrect key [key], twice [key].";
        assert_eq!(key.hide(told), hidden);
        assert_eq!(key.hide_in(told.into()), hidden.as_bytes());
        assert_eq!(Secret::new("dummy").hide("a dummy"), "a dummy");
        assert_eq!(format!("{:?}", Secret::default()), "none");
    }
}
