//! Classifications by the author of a model: codes with their systems and titles.

use std::borrow::Cow;

use serde::Serialize;

use super::ordered::OrderedMap;
use super::properties::{Properties, Value};
use crate::ifc::index::Model;
use crate::ifc::limits::NESTED;
use crate::ifc::relations::Relations;
use crate::ifc::schema::Role;
use crate::ifc::step;

/// A class of a classification system.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Reference<'a> {
    system: Option<Cow<'a, str>>,
    code: Option<Cow<'a, str>>,
    title: Option<Cow<'a, str>>,
}

impl Reference<'_> {
    /// Returns the code; if there is none, the title.
    fn key(&self) -> Option<&str> {
        self.code.as_deref().or(self.title.as_deref())
    }
}

/// Properties of Revit that hold a code and its title, in its languages, and the system.
const PROPERTIES: &[(&str, &str, &str)] = &[
    ("Assembly Code", "Assembly Description", "Uniformat"),
    (
        "Code d'assemblage",
        "Description de l'assemblage",
        "Uniformat",
    ),
    (
        "Baugruppenkennzeichen",
        "Baugruppenbeschreibung",
        "Uniformat",
    ),
    ("Código de montaje", "Descripción de montaje", "Uniformat"),
    ("Codice assieme", "Descrizione assieme", "Uniformat"),
    ("OmniClass Number", "OmniClass Title", "OmniClass"),
    ("Numéro OmniClass", "Titre OmniClass", "OmniClass"),
    ("OmniClass-Nummer", "OmniClass-Titel", "OmniClass"),
];

/// Returns the classes of the element `id`; if it has none, those of its type object.
pub(crate) fn of<'a>(
    model: &Model<'a>,
    relations: &Relations,
    id: u32,
    kind: Option<u32>,
) -> Vec<Reference<'a>> {
    let own = given(model, relations, id);
    match kind {
        Some(kind) if own.is_empty() => given(model, relations, kind),
        _ => own,
    }
}

/// Returns the codes of `references`, each once; the title for a reference without a code.
pub(crate) fn codes(references: &[Reference]) -> Vec<String> {
    let mut codes = OrderedMap::default();
    for code in references.iter().filter_map(Reference::key) {
        codes.add(Cow::Borrowed(code), ());
    }
    codes.into_names()
}

/// Adds the classes that properties state and no relation does.
pub(crate) fn add_properties<'a>(references: &mut Vec<Reference<'a>>, properties: &Properties<'a>) {
    for &(code, title, system) in PROPERTIES {
        let text = |name: &str| {
            properties.iter().find_map(|(_, set)| match set.get(name) {
                Some(Value::Text(text)) if !text.trim().is_empty() => Some(text.clone()),
                _ => None,
            })
        };
        // Unclassified families have a placeholder.
        let code = text(code).filter(|code| code.bytes().any(|byte| byte.is_ascii_digit()));
        if code.is_some() && references.iter().all(|other| other.code != code) {
            references.push(Reference {
                system: Some(Cow::Borrowed(system)),
                code,
                title: text(title),
            });
        }
    }
}

fn given<'a>(model: &Model<'a>, relations: &Relations, id: u32) -> Vec<Reference<'a>> {
    let mut references = Vec::new();
    for reference in relations.classifications.of(id) {
        let Some((Role::ClassificationReference, text)) = model.find(reference) else {
            continue;
        };
        // Called ItemReference in IFC2X3 and Identification from IFC4 on, at the same place.
        let [_, code, title, source] = step::attributes(text);
        let told = |value| step::string(value).filter(|text| !text.is_empty());
        let reference = Reference {
            system: system(model, source),
            code: told(code),
            title: told(title),
        };
        if reference.key().is_some() && !references.contains(&reference) {
            references.push(reference);
        }
    }
    references
}

/// Returns the name of the system that `source`, as written, belongs to: from IFC4 on, there may be classes between.
fn system<'a>(model: &Model<'a>, source: &[u8]) -> Option<Cow<'a, str>> {
    let mut next = step::reference(source);
    for _ in 0..NESTED {
        let (role, text) = model.find(next?)?;
        let [_, _, _, fourth] = step::attributes(text);
        match role {
            Role::Classification => {
                return step::string(fourth).filter(|name| !name.trim().is_empty());
            }
            Role::ClassificationReference => next = step::reference(fourth),
            _ => return None,
        }
    }
    None
}
