//! Just enough reading of STEP text to check what the generator wrote: one record a line, no comments.

use std::collections::{BTreeMap, BTreeSet};

/// The records of a model by number.
pub struct Model {
    pub records: BTreeMap<u64, String>,
}

/// An element as its record says it.
#[derive(Clone, Debug, PartialEq)]
pub struct Element {
    pub id: u64,
    pub class: String,
    pub name: String,
    pub object_type: String,
    pub predefined: String,
}

impl Element {
    /// The number at the end of its name.
    pub fn number(&self) -> u64 {
        self.name.rsplit(':').next().unwrap().parse().unwrap()
    }

    /// Its name without the number.
    pub fn bare_name(&self) -> String {
        let end = |c: char| c.is_ascii_digit() || matches!(c, ':' | ' ' | '_' | '-');
        self.name.trim_end_matches(end).to_owned()
    }
}

impl Model {
    pub fn read(bytes: &[u8]) -> Self {
        let text = std::str::from_utf8(bytes).unwrap();
        assert!(text.is_ascii(), "what is not ASCII must be escaped");
        assert!(text.starts_with("ISO-10303-21;\nHEADER;\n"));
        assert!(text.ends_with("ENDSEC;\nEND-ISO-10303-21;\n"));
        let mut records = BTreeMap::new();
        for line in text.lines().filter(|line| line.starts_with('#')) {
            let (id, body) = line[1..].split_once('=').unwrap();
            let body = body.strip_suffix(';').unwrap().to_owned();
            let before = records.insert(id.parse().unwrap(), body);
            assert_eq!(before, None, "#{id} stands twice");
        }
        Self { records }
    }

    /// Records of a class, with their attributes.
    pub fn of<'a>(&'a self, class: &'a str) -> impl Iterator<Item = (u64, Vec<String>)> + 'a {
        self.records.iter().filter_map(move |(id, record)| {
            let rest = record.strip_prefix(class)?.strip_prefix('(')?;
            Some((*id, attributes(rest.strip_suffix(')')?)))
        })
    }

    /// Take-off elements by GlobalId: what has a place and a tag, but openings and what is not there.
    pub fn elements(&self) -> BTreeMap<String, Element> {
        let mut found = BTreeMap::new();
        for (id, record) in &self.records {
            let (class, rest) = record.split_once('(').unwrap();
            let attributes = attributes(rest.strip_suffix(')').unwrap());
            let tagged = attributes.len() > 8 && attributes[7].starts_with('\'');
            let placed = attributes
                .get(5)
                .is_some_and(|place| place.starts_with('#'));
            if tagged && placed && !matches!(class, "IFCSPACE" | "IFCVIRTUALELEMENT") {
                let element = Element {
                    id: *id,
                    class: class.to_owned(),
                    name: decoded(&attributes[2]),
                    object_type: decoded(&attributes[4]),
                    predefined: attributes
                        .iter()
                        .filter(|a| a.starts_with('.'))
                        .cloned()
                        .collect(),
                };
                found.insert(decoded(&attributes[0]), element);
            }
        }
        found
    }

    /// GlobalIds of everything that has one.
    pub fn global_ids(&self) -> Vec<String> {
        let of_root = |record: &&String| {
            let (_, rest) = record.split_once('(').unwrap();
            rest.len() > 24 && rest.starts_with('\'') && rest[23..].starts_with("',#")
        };
        self.records
            .values()
            .filter(of_root)
            .map(|record| record.split('\'').nth(1).unwrap().to_owned())
            .collect()
    }

    /// Numbers that a relation holds, from each of the many (attribute `many`) to the one (attribute `one`).
    pub fn relation(&self, class: &str, many: usize, one: usize) -> BTreeMap<u64, Vec<u64>> {
        let mut found: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        for (_, attributes) in self.of(class) {
            let target = references(&attributes[one])[0];
            for id in references(&attributes[many]) {
                found.entry(id).or_default().push(target);
            }
        }
        found
    }

    /// Quantities of an element: name and value as the file has them.
    pub fn quantities(&self, element: u64) -> Vec<(String, f64)> {
        let sets = self.relation("IFCRELDEFINESBYPROPERTIES", 4, 5);
        let mut found = Vec::new();
        for set in &sets[&element] {
            if let Some(rest) = self.records[set].strip_prefix("IFCELEMENTQUANTITY(") {
                for quantity in references(&attributes(rest.strip_suffix(')').unwrap())[5]) {
                    let (_, rest) = self.records[&quantity].split_once('(').unwrap();
                    let attributes = attributes(rest);
                    found.push((decoded(&attributes[0]), attributes[3].parse().unwrap()));
                }
            }
        }
        found
    }

    /// What a classifier would be asked: class, predefined type, names, materials.
    pub fn questions(&self) -> BTreeSet<String> {
        let materials = self.relation("IFCRELASSOCIATESMATERIAL", 4, 5);
        self.elements()
            .into_values()
            .map(|element| {
                let made_of = materials.get(&element.id);
                format!(
                    "{} {} {} {} {made_of:?}",
                    element.class,
                    element.predefined,
                    element.object_type,
                    element.bare_name()
                )
            })
            .collect()
    }
}

/// Numbers of the records that a text refers to, outside its strings.
pub fn references(text: &str) -> Vec<u64> {
    let mut found = Vec::new();
    for outside in text.split('\'').step_by(2) {
        for after in outside.split('#').skip(1) {
            let end = after
                .find(|c: char| !c.is_ascii_digit())
                .unwrap_or(after.len());
            found.push(after[..end].parse().unwrap());
        }
    }
    found
}

/// The attributes of a record, separated at the commas of its own level.
fn attributes(text: &str) -> Vec<String> {
    let (mut depth, mut quoted) = (0, false);
    let mut found = vec![String::new()];
    for c in text.chars() {
        match c {
            '\'' => quoted = !quoted,
            '(' if !quoted => depth += 1,
            ')' if !quoted => depth -= 1,
            ',' if !quoted && depth == 0 => {
                found.push(String::new());
                continue;
            }
            _ => {}
        }
        found.last_mut().unwrap().push(c);
    }
    found
}

/// The text of a STEP string.
fn decoded(literal: &str) -> String {
    let inner = literal.trim_matches('\'').replace("''", "'");
    let mut parts = inner.split("\\X2\\");
    let mut text = parts.next().unwrap().to_owned();
    for part in parts {
        let (hex, rest) = part.split_once("\\X0\\").unwrap();
        let units: Vec<u16> = (0..hex.len())
            .step_by(4)
            .map(|at| u16::from_str_radix(&hex[at..at + 4], 16).unwrap())
            .collect();
        text.push_str(&String::from_utf16(&units).unwrap());
        text.push_str(rest);
    }
    text.replace("\\\\", "\\")
}
