//! Which names of the scope an expression mentions: they decide what is loaded and what is fingerprinted.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// Dotted names that an expression mentions, such as `params.model`; `params` alone means all of it.
/// More than what is used at run time may be among them, never less.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mentions(BTreeSet<String>);

impl Mentions {
    /// Adds a dotted name.
    pub fn add(&mut self, dotted: impl Into<String>) {
        self.0.insert(dotted.into());
    }

    /// Adds everything that another expression mentions.
    pub fn extend(&mut self, other: &Mentions) {
        self.0.extend(other.0.iter().cloned());
    }

    /// The dotted names.
    pub fn dotted(&self) -> &BTreeSet<String> {
        &self.0
    }

    /// The top-level names.
    pub fn roots(&self) -> BTreeSet<String> {
        self.0
            .iter()
            .map(|dotted| first(dotted).to_owned())
            .collect()
    }

    /// Whether anything at or below the top-level name is mentioned.
    pub fn has(&self, name: &str) -> bool {
        self.0.iter().any(|dotted| first(dotted) == name)
    }

    /// What is mentioned of the object called `name`: `None` means all of it.
    pub fn keys_of(&self, name: &str) -> Option<BTreeSet<&str>> {
        let mut keys = BTreeSet::new();
        for dotted in self.0.iter().filter(|dotted| first(dotted) == name) {
            let rest = dotted[name.len()..].strip_prefix('.')?;
            keys.insert(first(rest));
        }
        Some(keys)
    }

    /// The part of the object `value`, called `name` in the scope, that is mentioned: what of `params` or `env` a
    /// fingerprint holds.
    pub fn part_of(&self, name: &str, value: &Value) -> Value {
        match (self.keys_of(name), value) {
            (Some(keys), Value::Object(map)) => Value::Object(
                map.iter()
                    .filter(|(key, _)| keys.contains(key.as_str()))
                    .map(|(key, value)| (key.clone(), value.clone()))
                    .collect::<Map<_, _>>(),
            ),
            _ => value.clone(),
        }
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
    use serde_json::json;

    #[test]
    fn knows_which_keys_of_an_object_are_mentioned() {
        let mentions: Mentions = ["params.model", "params.size.x", "env"]
            .into_iter()
            .collect();
        assert_eq!(mentions.keys_of("params"), Some(["model", "size"].into()));
        assert_eq!(mentions.keys_of("env"), None);
        assert_eq!(mentions.keys_of("paths"), Some(BTreeSet::new()));
        let value = json!({"model": 1, "other": 2});
        assert_eq!(mentions.part_of("params", &value), json!({"model": 1}));
        assert_eq!(mentions.part_of("env", &value), value);
        assert!(mentions.has("params") && !mentions.has("paths"));
    }
}
