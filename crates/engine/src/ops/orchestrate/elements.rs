//! Counts the elements of a file, so that a client need not read them.

use milepost_core::expr::select::{PathStep, Select};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read};

/// Elements by type.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub(crate) struct Summary {
    /// The number of elements by their `ifc_type`.
    pub(crate) by_type: BTreeMap<String, u64>,
}

/// The part of an element that is read.
#[derive(Deserialize)]
struct TypedElement {
    ifc_type: Option<String>,
}

impl Summary {
    /// Counts an element, given as JSON text.
    pub(super) fn count(&mut self, element: &str) {
        let kind = serde_json::from_str::<TypedElement>(element);
        if let Some(kind) = kind.ok().and_then(|kind| kind.ifc_type) {
            *self.by_type.entry(kind).or_default() += 1;
        }
    }
}

/// Counts the elements of a JSON list, or of an object with the list `elements`; `None` for anything else.
pub(super) fn elements(reader: impl Read) -> Option<(u64, Summary)> {
    let mut reader = BufReader::with_capacity(1 << 16, reader);
    let mut summary = Summary::default();
    let select = select(first(&mut reader)?);
    let counted = select.read_text::<()>(reader, &mut |text, _| {
        summary.count(text);
        Ok(())
    });
    Some((counted.ok()?, summary))
}

/// Selects the elements of a document that starts with this byte.
fn select(first: u8) -> Select {
    let field = (first != b'[').then(|| PathStep::Field("elements".to_owned()));
    Select::of(field.into_iter().chain([PathStep::Each]))
}

/// Returns the first byte that is not a blank, without consuming it.
pub(super) fn first(reader: &mut BufReader<impl Read>) -> Option<u8> {
    loop {
        let seen = reader.fill_buf().ok()?;
        let blanks = seen
            .iter()
            .take_while(|byte| byte.is_ascii_whitespace())
            .count();
        if let Some(&byte) = seen.get(blanks) {
            return Some(byte);
        }
        if seen.is_empty() {
            return None;
        }
        reader.consume(blanks);
    }
}

/// Returns what is wrong with a document as JSON.
pub(super) fn not_json(reader: impl Read) -> Option<String> {
    let reader = BufReader::with_capacity(1 << 16, reader);
    let mut read = serde_json::Deserializer::from_reader(reader);
    let value = serde::de::IgnoredAny::deserialize(&mut read);
    let ended = value.and_then(|_| read.end());
    ended.err().map(|error| format!("is not JSON: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_of_a_list_and_of_an_object_are_counted() {
        let list = r#" [{"ifc_type": "IfcWall"}, {"ifc_type": "IfcWall"}, {"name": 1}, 7] "#;
        let by_type = BTreeMap::from([("IfcWall".to_owned(), 2)]);
        let summary = Summary { by_type };
        assert_eq!(elements(list.as_bytes()), Some((4, summary.clone())));
        let whole = format!("{{\"model\": {{}}, \"elements\": {list}, \"count\": 4}}");
        assert_eq!(elements(whole.as_bytes()), Some((4, summary)));
        assert_eq!(elements(b"[]".as_slice()), Some((0, Summary::default())));
        for other in ["", "  ", "{}", "7", "[1, ", "{\"elements\": 1}"] {
            assert_eq!(elements(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn what_is_not_json_is_told_with_its_place() {
        assert_eq!(not_json(b"{\"a\": [1]}".as_slice()), None);
        assert_eq!(
            not_json(b"{\"a\": [1}".as_slice()).unwrap(),
            "is not JSON: expected `,` or `]` at line 1 column 9"
        );
        assert_eq!(
            not_json(b"{} {}".as_slice()).unwrap(),
            "is not JSON: trailing characters at line 1 column 4"
        );
    }
}
