//! Small maps that keep their order: of values with one name the first stays.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::ser::{Serialize, Serializer};

/// Below this many names a search through all of them is faster than hashing.
const FEW: usize = 24;

/// Values by name, in the order in which they came.
#[derive(Debug, Clone)]
pub(crate) struct OrderedMap<'a, T> {
    items: Vec<(Cow<'a, str>, T)>,
    /// The places of all names, once there are many.
    names: HashMap<Cow<'a, str>, usize>,
}

impl<T> Default for OrderedMap<'_, T> {
    fn default() -> Self {
        Self {
            items: Vec::new(),
            names: HashMap::new(),
        }
    }
}

impl<'a, T> OrderedMap<'a, T> {
    /// Adds a value, unless there is one with this name.
    pub(crate) fn add(&mut self, name: Cow<'a, str>, value: T) {
        if self.position(&name).is_none() {
            self.push(name, value);
        }
    }

    fn position(&self, name: &str) -> Option<usize> {
        if self.names.is_empty() {
            self.items.iter().position(|(other, _)| other == name)
        } else {
            self.names.get(name).copied()
        }
    }

    fn push(&mut self, name: Cow<'a, str>, value: T) {
        if self.items.len() == FEW {
            let places = self.items.iter().enumerate();
            self.names = places.map(|(at, (name, _))| (name.clone(), at)).collect();
        }
        if self.items.len() >= FEW {
            self.names.insert(name.clone(), self.items.len());
        }
        self.items.push((name, value));
    }

    pub(crate) fn get(&self, name: &str) -> Option<&T> {
        self.position(name).map(|at| &self.items[at].1)
    }

    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &T)> {
        self.items
            .iter()
            .map(|(name, value)| (name.as_ref(), value))
    }
}

impl<'a, T: Clone> OrderedMap<'a, OrderedMap<'a, T>> {
    /// Adds the values of a set to the set of this name; those that are there stay.
    pub(crate) fn merge(&mut self, name: Cow<'a, str>, values: OrderedMap<'a, T>) {
        match self.position(&name) {
            Some(at) => {
                for (name, value) in values.items {
                    self.items[at].1.add(name, value);
                }
            }
            None => self.push(name, values),
        }
    }
}

impl OrderedMap<'_, ()> {
    pub(crate) fn into_names(self) -> Vec<String> {
        self.items
            .into_iter()
            .map(|(name, ())| name.into_owned())
            .collect()
    }
}

impl<T: Serialize> Serialize for OrderedMap<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_a_name_stays_among_few_and_among_many() {
        let mut named = OrderedMap::default();
        for n in 0..100 {
            named.add(Cow::Owned(format!("n{}", n % 60)), n);
        }
        let all: Vec<_> = named
            .iter()
            .map(|(name, &n)| (name.to_owned(), n))
            .collect();
        let expected: Vec<_> = (0..60).map(|n| (format!("n{n}"), n)).collect();
        assert_eq!(all, expected);
        assert_eq!(named.get("n59"), Some(&59));
    }

    #[test]
    fn sets_of_one_name_become_one() {
        let set = |items: &[(&'static str, i32)]| {
            let mut set = OrderedMap::default();
            for &(name, value) in items {
                set.add(Cow::Borrowed(name), value);
            }
            set
        };
        let mut sets = OrderedMap::default();
        sets.merge(Cow::Borrowed("A"), set(&[("x", 1)]));
        sets.merge(Cow::Borrowed("A"), set(&[("x", 2), ("y", 3)]));
        assert_eq!(
            serde_json::to_string(&sets).unwrap(),
            r#"{"A":{"x":1,"y":3}}"#
        );
    }
}
