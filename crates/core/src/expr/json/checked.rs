//! JSON that is read without being kept, and refused for what the reader of values refuses.

use super::value::{note_rounding, twice};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::borrow::Cow;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::fmt;

/// Reads a value and keeps nothing.
#[derive(Clone, Copy)]
pub(crate) struct SkipChecked<'a> {
    /// Set when a number may be a rounded integer.
    pub(crate) rounded: &'a Cell<bool>,
}

impl<'de> DeserializeSeed<'de> for SkipChecked<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for SkipChecked<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, number: f64) -> Result<(), E> {
        note_rounding(number, self.rounded);
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while items.next_element_seed(self)?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        let mut keys = BTreeSet::new();
        while let Some(key) = entries.next_key_seed(Key)? {
            add_key(&mut keys, key)?;
            entries.next_value_seed(self)?;
        }
        Ok(())
    }
}

/// Adds a key of an object to those before it.
///
/// # Errors
/// If it is among them.
pub(crate) fn add_key<'de, E: Error>(
    keys: &mut BTreeSet<Cow<'de, str>>,
    key: Cow<'de, str>,
) -> Result<(), E> {
    match keys.replace(key) {
        None => Ok(()),
        Some(key) => Err(E::custom(twice(&key))),
    }
}

/// Reads a key of an object.
pub(crate) struct Key;

impl<'de> DeserializeSeed<'de> for Key {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Key {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_borrowed_str<E>(self, key: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(key))
    }

    fn visit_str<E>(self, key: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(key.to_owned()))
    }
}
