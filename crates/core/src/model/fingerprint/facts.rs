//! A set of facts. A large workspace holds many of them, so the representation is compact.

use super::key::{FactKey, FactKind};
use crate::base::digest::{Digest, Hasher};
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::io::Write as _;
use std::sync::Arc;

/// The value of a fact: a digest or a short text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FactValue(Repr);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Repr {
    /// Written as a digest is: `sha256:` and 64 digits.
    Digest(Digest),
    Text(Box<str>),
}

impl FactValue {
    /// Returns the digest, if the value is one.
    pub fn digest(&self) -> Option<Digest> {
        match self.0 {
            Repr::Digest(digest) => Some(digest),
            Repr::Text(_) => None,
        }
    }

    /// Returns true if the value is this text.
    pub fn is(&self, text: &str) -> bool {
        match &self.0 {
            Repr::Digest(digest) => digest.to_string() == text,
            Repr::Text(said) => **said == *text,
        }
    }
}

impl From<Digest> for FactValue {
    fn from(digest: Digest) -> Self {
        Self(Repr::Digest(digest))
    }
}

impl From<&str> for FactValue {
    fn from(text: &str) -> Self {
        // Only what a digest is written as: its text is to come out as it went in.
        match text.parse::<Digest>() {
            Ok(digest) if !text.bytes().any(|byte| byte.is_ascii_uppercase()) => digest.into(),
            _ => Self(Repr::Text(text.into())),
        }
    }
}

impl From<String> for FactValue {
    fn from(text: String) -> Self {
        text.as_str().into()
    }
}

impl fmt::Display for FactValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Repr::Digest(digest) => digest.fmt(f),
            Repr::Text(text) => f.write_str(text),
        }
    }
}

impl Serialize for FactValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Repr::Digest(digest) => digest.serialize(serializer),
            Repr::Text(text) => serializer.serialize_str(text),
        }
    }
}

impl<'de> Deserialize<'de> for FactValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FactVisitor;
        impl Visitor<'_> for FactVisitor {
            type Value = FactValue;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<FactValue, E> {
                Ok(text.into())
            }
        }
        deserializer.deserialize_str(FactVisitor)
    }
}

/// Facts by key, in the order of their keys.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Facts(Vec<(FactKey, FactValue)>);

impl Facts {
    /// Returns no facts, with room for so many.
    pub(crate) fn with_room(count: usize) -> Self {
        Self(Vec::with_capacity(count))
    }

    /// Adds a fact, and replaces one with the same key.
    pub fn add(&mut self, kind: FactKind, name: impl Into<Arc<str>>, value: impl Into<FactValue>) {
        let name = name.into();
        self.put(FactKey { kind, name }, value.into());
    }

    /// Replaces all facts of a kind.
    #[must_use]
    pub fn with_all(&self, kind: FactKind, facts: Facts) -> Self {
        let mut found = self.clone();
        found.0.retain(|(key, _)| key.kind != kind);
        for (key, value) in facts.0 {
            found.put(key, value);
        }
        found
    }

    /// Adds a detail of a fact: reasons name it `part`, with its value.
    pub(crate) fn add_detail(
        &mut self,
        (kind, name): (FactKind, &str),
        part: (FactKind, &str),
        value: impl Into<FactValue>,
    ) {
        let name = name.into();
        let key = FactKey { kind, name }.detail(part.0, part.1);
        self.put(key, value.into());
    }

    /// Replaces each detail that holds a key for a service by its digest.
    pub fn hide_keys(&mut self, has_key: &dyn Fn(&str) -> bool) {
        for (fact, value) in &mut self.0 {
            if fact.kind == FactKind::Detail
                && let Repr::Text(text) = &value.0
                && has_key(text)
            {
                *value = Digest::of(text.as_bytes()).into();
            }
        }
    }

    fn put(&mut self, key: FactKey, value: FactValue) {
        if self.0.last().is_none_or(|(last, _)| *last < key) {
            self.0.push((key, value));
            return;
        }
        match self.0.binary_search_by(|(other, _)| other.cmp(&key)) {
            Ok(at) => self.0[at].1 = value,
            Err(at) => self.0.insert(at, (key, value)),
        }
    }

    /// Returns the value of a fact.
    pub fn get(&self, kind: FactKind, name: &str) -> Option<&FactValue> {
        let sought = (kind, name);
        let found = self
            .0
            .binary_search_by(|(key, _)| (key.kind, &*key.name).cmp(&sought));
        found.ok().map(|at| &self.0[at].1)
    }

    /// Returns the facts in order.
    pub fn iter(&self) -> impl Iterator<Item = (&FactKey, &FactValue)> {
        self.0.iter().map(|(key, value)| (key, value))
    }

    /// Returns the digest of the facts without their details, as earlier versions recorded it.
    pub fn coarse_id(&self) -> String {
        self.id_without(FactKind::Detail)
    }

    /// Returns the digest of all facts but those of a kind.
    pub fn id_without(&self, kind: FactKind) -> String {
        Self::id_of(self.iter().filter(|(key, _)| key.kind != kind))
    }

    /// Returns the short digest of all facts, which names a set of facts that many batches share.
    pub fn id(&self) -> String {
        Self::id_of(self.iter())
    }

    fn id_of<'a>(facts: impl Iterator<Item = (&'a FactKey, &'a FactValue)>) -> String {
        let mut hasher = Hasher::new();
        for (key, value) in facts {
            // A hasher takes everything.
            let _ = writeln!(hasher, "{key}\n{value}");
        }
        // 128 bits: two sets with one digest are out of reach.
        hasher.finish().hex()[..32].to_owned()
    }
}

impl Serialize for Facts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de> Deserialize<'de> for Facts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Map;
        impl<'de> Visitor<'de> for Map {
            type Value = Facts;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of facts")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Facts, M::Error> {
                // A batch that reads one file has one: no room for more is taken.
                let mut facts = Facts(Vec::with_capacity(map.size_hint().unwrap_or(1)));
                while let Some((key, value)) = map.next_entry()? {
                    facts.put(key, value);
                }
                facts.0.shrink_to_fit();
                Ok(facts)
            }
        }
        deserializer.deserialize_map(Map)
    }
}

#[cfg(debug_assertions)]
impl schemars::JsonSchema for Facts {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Facts".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let names = generator.subschema_for::<FactKey>();
        schemars::json_schema!({
            "type": "object",
            "propertyNames": names,
            "additionalProperties": { "type": "string" }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn come_out_as_they_went_in() {
        let text = format!(
            r#"{{"step prompt":"{}","input b":"sha256:{}","input a":"absent","input c":"SHA256:1"}}"#,
            "x".repeat(20),
            "Ab".repeat(32)
        );
        let facts: Facts = serde_json::from_str(&text).unwrap();
        let names: Vec<_> = facts.iter().map(|(key, _)| key.to_string()).collect();
        assert_eq!(names, ["step prompt", "input a", "input b", "input c"]);
        let back: serde_json::Value = serde_json::to_value(&facts).unwrap();
        assert_eq!(
            back,
            serde_json::from_str::<serde_json::Value>(&text).unwrap()
        );
        assert!(facts.get(FactKind::Input, "a").unwrap().is("absent"));
        assert_eq!(facts.get(FactKind::Input, "d"), None);
    }

    #[test]
    fn the_last_word_counts() {
        let mut facts = Facts::default();
        for (name, value) in [("b", "1"), ("a", "2"), ("b", "3")] {
            facts.add(FactKind::Param, name, value);
        }
        let all: Vec<_> = facts
            .iter()
            .map(|(key, value)| (key.to_string(), value.to_string()))
            .collect();
        let expected = [("param a", "2"), ("param b", "3")];
        assert_eq!(all, expected.map(|(a, b)| (a.to_owned(), b.to_owned())));
    }
}
