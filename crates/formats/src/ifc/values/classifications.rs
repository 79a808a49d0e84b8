//! Codes of classification systems that a model's author gave to elements.

use super::ordered::OrderedMap;
use crate::ifc::index::Model;
use crate::ifc::relations::Relations;
use crate::ifc::schema::Role;
use crate::ifc::step;

/// The codes of the element `id`; if it has none, those of its type object. A reference without a code gives its name.
pub(crate) fn of(model: &Model, relations: &Relations, id: u32, kind: Option<u32>) -> Vec<String> {
    let codes = given(model, relations, id);
    if codes.is_empty() {
        kind.map(|kind| given(model, relations, kind))
            .unwrap_or_default()
    } else {
        codes
    }
}

fn given(model: &Model, relations: &Relations, id: u32) -> Vec<String> {
    let mut codes = OrderedMap::default();
    for reference in relations.classifications.of(id) {
        let Some((Role::ClassificationReference, text)) = model.find(reference) else {
            continue;
        };
        // Called ItemReference in IFC2X3 and Identification from IFC4 on, at the same place.
        let [_, code, name] = step::attributes(text);
        let code = step::string(code)
            .filter(|code| !code.is_empty())
            .or_else(|| step::string(name));
        if let Some(code) = code.filter(|code| !code.is_empty()) {
            codes.add(code, ());
        }
    }
    codes.into_names()
}
