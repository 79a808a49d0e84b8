//! Which names of the scope an expression mentions: they decide what is loaded and what is fingerprinted.

use std::collections::BTreeSet;

/// The dotted names that an expression mentions, such as `params.model`; `params` alone means all of it. It may have more names
/// than a run uses, never fewer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mentions(BTreeSet<String>);

impl Mentions {
    /// Adds a dotted name.
    pub(crate) fn add(&mut self, dotted: impl Into<String>) {
        self.0.insert(dotted.into());
    }

    /// Adds everything that another expression mentions.
    pub fn extend(&mut self, other: &Mentions) {
        self.0.extend(other.0.iter().cloned());
    }

    /// Returns the dotted names.
    pub fn dotted(&self) -> &BTreeSet<String> {
        &self.0
    }

    /// Returns the top-level names.
    pub(crate) fn roots(&self) -> BTreeSet<String> {
        self.0
            .iter()
            .map(|dotted| first(dotted).to_owned())
            .collect()
    }

    /// Returns true if anything at or below the top-level name is mentioned.
    pub fn has(&self, name: &str) -> bool {
        self.0.iter().any(|dotted| first(dotted) == name)
    }

    /// Returns the members of `name` that are mentioned; `None` means all.
    pub fn keys_of(&self, name: &str) -> Option<BTreeSet<&str>> {
        let mut keys = BTreeSet::new();
        for dotted in self.0.iter().filter(|dotted| first(dotted) == name) {
            let rest = dotted[name.len()..].strip_prefix('.')?;
            keys.insert(first(rest));
        }
        Some(keys)
    }
}

impl<S: Into<String>> FromIterator<S> for Mentions {
    fn from_iter<T: IntoIterator<Item = S>>(dotted: T) -> Self {
        Self(dotted.into_iter().map(Into::into).collect())
    }
}

fn first(dotted: &str) -> &str {
    dotted.split('.').next().unwrap_or(dotted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_which_keys_of_an_object_are_mentioned() {
        let mentions: Mentions = ["params.model", "params.size.x", "env"]
            .into_iter()
            .collect();
        assert_eq!(mentions.keys_of("params"), Some(["model", "size"].into()));
        assert_eq!(mentions.keys_of("env"), None);
        assert_eq!(mentions.keys_of("paths"), Some(BTreeSet::new()));
        assert!(mentions.has("params") && !mentions.has("paths"));
    }
}
