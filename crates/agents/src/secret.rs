//! A provider's key, which is sent in one header and appears nowhere else.

use milepost_core::base::redact::{HIDDEN, Redactor};
use std::fmt;

/// A provider's key. Its `Debug` output does not show it.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(String);

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

    /// Returns what removes the key from answers.
    pub(super) fn redactor(&self) -> Redactor {
        Redactor::new([self.0.clone()])
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
        assert_eq!(key.redactor().known_text(told), hidden);
        let short = Secret::new("dummy").redactor();
        assert_eq!(short.known_text("a dummy"), "a dummy");
        assert_eq!(format!("{:?}", Secret::default()), "none");
    }
}
