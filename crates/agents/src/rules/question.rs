//! One question of an element, read from JSON.

use serde_json::Value;

use super::codes::ClassReference;
use super::material::ElementPart;

/// The values of a question, borrowed. Missing keys are empty.
#[derive(Debug, Default)]
pub(super) struct ElementQuestion<'a> {
    pub(super) ifc_type: &'a str,
    pub(super) predefined_type: Option<&'a str>,
    pub(super) object_type: Option<&'a str>,
    pub(super) type_name: Option<&'a str>,
    pub(super) name: Option<&'a str>,
    pub(super) load_bearing: Option<bool>,
    pub(super) external: Option<bool>,
    pub(super) below_ground: Option<bool>,
    pub(super) materials: Vec<&'a str>,
    pub(super) layers: Vec<(Option<&'a str>, f64)>,
    /// Parts with a material, such as frame and glazing.
    pub(super) parts: Vec<ElementPart<'a>>,
    /// Name and value of a property that names the material.
    pub(super) material_property: Option<(&'a str, &'a str)>,
    pub(super) classifications: Vec<ClassReference<'a>>,
}

impl<'a> ElementQuestion<'a> {
    pub(super) fn of(value: &'a Value) -> ElementQuestion<'a> {
        let text = |key: &str| {
            value
                .get(key)
                .and_then(Value::as_str)
                .filter(|s| !s.is_empty())
        };
        let flag = |key: &str| value.get(key).and_then(Value::as_bool);
        let list = |key: &str| {
            value
                .get(key)
                .and_then(Value::as_array)
                .map_or(&[][..], Vec::as_slice)
        };
        let property = value.get("material_property");
        let part = |key: &str| property.and_then(|p| p.get(key)).and_then(Value::as_str);
        ElementQuestion {
            ifc_type: text("ifc_type").unwrap_or_default(),
            predefined_type: text("predefined_type"),
            object_type: text("object_type"),
            type_name: text("type_name"),
            name: text("name"),
            load_bearing: flag("load_bearing"),
            external: flag("external"),
            below_ground: flag("below_ground"),
            // A material may have an empty name, which names nothing.
            materials: list("materials")
                .iter()
                .filter_map(Value::as_str)
                .filter(|name| !name.trim().is_empty())
                .collect(),
            layers: list("layers")
                .iter()
                .map(|l| {
                    (
                        l.get("material")
                            .and_then(Value::as_str)
                            .filter(|name| !name.trim().is_empty()),
                        l.get("thickness_m").and_then(Value::as_f64).unwrap_or(0.0),
                    )
                })
                .collect(),
            parts: list("constituents")
                .iter()
                .filter_map(ElementPart::of)
                .collect(),
            material_property: part("property").zip(part("value")),
            classifications: list("classifications")
                .iter()
                .filter_map(ClassReference::of)
                .collect(),
        }
    }

    /// Returns the thickness of all layers together in metres, if the model states any.
    pub(super) fn thickness(&self) -> Option<f64> {
        let total: f64 = self.layers.iter().map(|(_, thickness)| thickness).sum();
        (total > 0.0).then_some(total)
    }

    /// Returns the names of all its materials.
    pub(super) fn material_names(&self) -> impl Iterator<Item = &'a str> {
        let layers = self.layers.iter().filter_map(|(name, _)| *name);
        let parts = self.parts.iter().map(|part| part.material);
        self.materials.iter().copied().chain(layers).chain(parts)
    }
}
