//! The targets of `$ref` in a JSON Schema, and chains of references that are too long or form a circle.

use crate::expr::pointer::below;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Keys whose values are documents, not schemas.
const DATA: [&str; 5] = ["enum", "const", "examples", "example", "default"];

/// Keys whose values have schemas under names of their own.
const NAMED: [&str; 6] = [
    "properties",
    "patternProperties",
    "dependentSchemas",
    "$defs",
    "definitions",
    "dependencies",
];

/// Keys whose schemas, or lists of schemas, apply to the same value as the schema around them.
const IN_PLACE: [&str; 7] = ["allOf", "anyOf", "oneOf", "not", "if", "then", "else"];

/// The target of a reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A place in the same file.
    Here,
    /// A file of the project, by its path.
    File(String),
    /// The schema of schemas, which needs no file.
    Meta,
    /// A URL; it must be the `$id` of a schema in the project.
    Address(String),
    /// A path outside of the project.
    Outside,
}

/// Returns the target of a reference in the schema at `path`.
pub fn target(path: &str, reference: &str) -> Target {
    let file = reference.split('#').next().unwrap_or_default();
    if file.is_empty() {
        return Target::Here;
    }
    if file.contains("json-schema.org/") {
        return Target::Meta;
    }
    if file.contains("://") || file.starts_with("urn:") {
        return Target::Address(file.to_owned());
    }
    if file.starts_with('/') {
        return Target::Outside;
    }
    let mut parts: Vec<&str> = path.split('/').collect();
    parts.pop();
    let file = percent_decoded(file);
    for part in file.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                if parts.pop().is_none() {
                    return Target::Outside;
                }
            }
            part => parts.push(part),
        }
    }
    Target::File(parts.join("/"))
}

/// Returns the JSON pointer after the `#` of a reference; `None` for an anchor, which is a name.
pub(crate) fn pointer(reference: &str) -> Option<String> {
    let pointer = percent_decoded(reference.split_once('#').map_or("", |(_, pointer)| pointer));
    (pointer.is_empty() || pointer.starts_with('/')).then_some(pointer)
}

/// Returns the references of a schema, each once, in order.
pub fn references(schema: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let mut known = BTreeSet::new();
    walk(schema, "", &mut |_, reference| {
        if known.insert(reference.to_owned()) {
            found.push(reference.to_owned());
        }
    });
    found
}

/// Calls `each` with the pointer of every schema that has a reference, and the reference.
fn walk(schema: &Value, at: &str, each: &mut dyn FnMut(&str, &str)) {
    match schema {
        Value::Object(map) => {
            for (key, inner) in map {
                let here = || below(at, key);
                match (key.as_str(), inner) {
                    ("$ref" | "$dynamicRef", Value::String(reference)) => each(at, reference),
                    (key, Value::Object(named)) if NAMED.contains(&key) => {
                        for (name, schema) in named {
                            walk(schema, &below(&here(), name), each);
                        }
                    }
                    (key, _) if DATA.contains(&key) => {}
                    (_, inner) => walk(inner, &here(), each),
                }
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                walk(item, &format!("{at}/{index}"), each);
            }
        }
        _ => {}
    }
}

/// Why validation by a reference would never end, or overflow the stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ChainFault {
    /// It leads back to its own schema for the same value.
    #[error("leads back to itself")]
    Circle,
    /// It leads to a schema that leads to another, and so on, for the same value.
    #[error("leads through more than {LONGEST} schemas for the same value")]
    Long,
}

/// The most schemas that a reference leads through for one value. Each takes a part of the stack.
const LONGEST: usize = 1000;

/// Finds a reference with a [`ChainFault`]. Returns the path of the document, the reference, and the fault.
pub fn faulty_chain(documents: &BTreeMap<String, &Value>) -> Option<(String, String, ChainFault)> {
    let mut known = BTreeMap::new();
    for (path, document) in documents {
        let mut starts = Vec::new();
        walk(document, "", &mut |at, reference| {
            starts.push((at.to_owned(), reference.to_owned()));
        });
        for (at, reference) in starts {
            let mut open = BTreeSet::new();
            if let Err(fault) = length(documents, (path.clone(), at), &mut open, &mut known) {
                return Some((path.clone(), reference, fault));
            }
        }
    }
    None
}

/// Returns the number of schemas in the longest chain that begins at a place.
fn length(
    documents: &BTreeMap<String, &Value>,
    place: (String, String),
    open: &mut BTreeSet<(String, String)>,
    known: &mut BTreeMap<(String, String), usize>,
) -> Result<usize, ChainFault> {
    if let Some(&known) = known.get(&place) {
        return Ok(known);
    }
    if open.len() == LONGEST {
        return Err(ChainFault::Long);
    }
    if !open.insert(place.clone()) {
        return Err(ChainFault::Circle);
    }
    let (path, at) = &place;
    let schema = documents
        .get(path)
        .and_then(|document| document.pointer(at));
    let mut longest = 0;
    for next in schema.map_or_else(Vec::new, |schema| in_place(path, at, schema)) {
        longest = longest.max(length(documents, next, open, known)?);
    }
    open.remove(&place);
    if longest == LONGEST {
        return Err(ChainFault::Long);
    }
    known.insert(place, longest + 1);
    Ok(longest + 1)
}

/// Returns the schemas that look at the same value as this one.
fn in_place(path: &str, at: &str, schema: &Value) -> Vec<(String, String)> {
    let mut found = Vec::new();
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str)
        && let Some(pointer) = pointer(reference)
    {
        match target(path, reference) {
            Target::Here => found.push((path.to_owned(), pointer)),
            Target::File(file) => found.push((file, pointer)),
            _ => {}
        }
    }
    for key in IN_PLACE {
        match schema.get(key) {
            Some(Value::Array(schemas)) => {
                let places = (0..schemas.len()).map(|index| format!("{at}/{key}/{index}"));
                found.extend(places.map(|at| (path.to_owned(), at)));
            }
            Some(Value::Object(_)) => found.push((path.to_owned(), format!("{at}/{key}"))),
            _ => {}
        }
    }
    if let Some(Value::Object(named)) = schema.get("dependentSchemas") {
        for name in named.keys() {
            let at = below(&format!("{at}/dependentSchemas"), name);
            found.push((path.to_owned(), at));
        }
    }
    found
}

/// Decodes percent-encoded characters such as `%20` (RFC 3986).
pub fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        let hex = tail.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        let byte = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok());
        if let Some(byte) = byte.filter(|_| *first == b'%') {
            bytes.push(byte);
            rest = &tail[2..];
        } else {
            bytes.push(*first);
            rest = tail;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::{ChainFault, LONGEST, Target, faulty_chain, references, target};
    use serde_json::{Value, json};
    use std::collections::BTreeMap;

    #[test]
    fn references_lead_to_files_addresses_and_out_of_the_project() {
        let of = |reference| target("schemas/a/b.json", reference);
        let file = |path: &str| Target::File(path.to_owned());
        assert_eq!(of("#/$defs/x"), Target::Here);
        assert_eq!(of("c.json#/$defs/x"), file("schemas/a/c.json"));
        assert_eq!(of("../my%20defs.json"), file("schemas/my defs.json"));
        assert_eq!(of("../../x.json"), file("x.json"));
        assert_eq!(of("../../../x.json"), Target::Outside);
        assert_eq!(of("/etc/x.json"), Target::Outside);
        assert_eq!(
            of("https://example.com/x.json#/a"),
            Target::Address("https://example.com/x.json".to_owned())
        );
        assert_eq!(
            of("https://json-schema.org/draft/2020-12/schema"),
            Target::Meta
        );
    }

    #[test]
    fn a_property_may_be_called_enum_and_data_are_no_references() {
        let schema = json!({
            "properties": { "enum": {"$ref": "a.json"}, "$ref": {"$ref": "b.json"} },
            "enum": [{"$ref": "no.json"}],
            "allOf": [{"$ref": "a.json"}, {"default": {"$ref": "no.json"}}],
        });
        assert_eq!(references(&schema), ["a.json", "b.json"]);
    }

    fn fault_of(documents: &[(&str, Value)]) -> Option<String> {
        let documents: BTreeMap<String, &Value> = documents
            .iter()
            .map(|(path, document)| ((*path).to_owned(), document))
            .collect();
        faulty_chain(&documents)
            .map(|(path, reference, fault)| format!("{path} {reference} {fault}"))
    }

    #[test]
    fn a_tree_refers_to_itself_and_a_circle_goes_nowhere() {
        let tree = json!({"properties": {"parts": {"items": {"$ref": "#"}}}});
        assert_eq!(fault_of(&[("a", tree)]), None);
        let list = json!({"properties": {"next": {"$ref": "b#/$defs/next"}}});
        let next = json!({"$defs": {"next": {"anyOf": [{"$ref": "a"}, {"type": "null"}]}}});
        assert_eq!(fault_of(&[("a", list), ("b", next)]), None);
        assert_eq!(
            fault_of(&[("a", json!({"$ref": "#"}))]),
            Some("a # leads back to itself".to_owned())
        );
        let a = json!({"allOf": [{"$ref": "b"}]});
        let b = json!({"$defs": {"x": {}}, "$ref": "a"});
        assert_eq!(
            fault_of(&[("a", a), ("b", b)]),
            Some("a b leads back to itself".to_owned())
        );
    }

    #[test]
    fn a_chain_of_references_has_an_end() {
        let chain = |links: usize, link: &dyn Fn(usize) -> Value| {
            let mut named = json!({});
            for number in 0..links {
                named[format!("{number}")] = link(number + 1);
            }
            named[format!("{links}")] = json!({"type": "string"});
            json!({"$ref": "#/$defs/0", "$defs": named})
        };
        let to = |number: usize| json!({"$ref": format!("#/$defs/{number}")});
        let long = Some(format!("a #/$defs/0 {}", ChainFault::Long));
        assert_eq!(fault_of(&[("a", chain(LONGEST - 2, &to))]), None);
        assert_eq!(fault_of(&[("a", chain(LONGEST - 1, &to))]), long);
        // Each link is two schemas.
        let all = |number: usize| json!({"allOf": [{}, to(number)]});
        assert_eq!(fault_of(&[("a", chain(LONGEST / 2 - 1, &all))]), None);
        assert_eq!(fault_of(&[("a", chain(LONGEST / 2, &all))]), long);
        let parts = |number: usize| json!({"items": to(number)});
        assert_eq!(fault_of(&[("a", chain(5 * LONGEST, &parts))]), None);
    }
}
