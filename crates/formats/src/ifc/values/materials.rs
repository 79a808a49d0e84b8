//! Materials of elements: names in the order of layers, profiles, constituents and lists.

use std::borrow::Cow;
use std::collections::HashMap;
use std::rc::Rc;

use serde::Serialize;

use super::ordered::OrderedMap;
use crate::ifc::index::Model;
use crate::ifc::limits::NESTED;
use crate::ifc::relations::Relations;
use crate::ifc::schema::Role;
use crate::ifc::step;

/// One layer of a layer set.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Layer {
    pub(crate) material: Option<String>,
    pub(crate) thickness_m: Option<f64>,
}

/// One part of a constituent set, such as the frame of a window.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Constituent {
    pub(crate) name: Option<String>,
    pub(crate) material: Option<String>,
    pub(crate) category: Option<String>,
    /// Of the element's volume.
    pub(crate) fraction: Option<f64>,
}

/// The materials of an element, by one association or by all.
#[derive(Debug, Default)]
pub(crate) struct MadeOf {
    /// Material names, without doubles.
    pub(crate) names: Vec<String>,
    pub(crate) layers: Vec<Layer>,
    pub(crate) constituents: Vec<Constituent>,
}

/// The most names and layers of associations that are remembered; a model has few, and many elements share each.
const REMEMBERED: usize = 1 << 20;

/// The materials of a model's elements.
pub(crate) struct Materials {
    known: HashMap<u32, Rc<MadeOf>>,
    /// How many names and layers they have.
    remembered: usize,
    metre: Option<f64>,
}

impl Materials {
    /// `metre`: the project's length unit in metres.
    pub(crate) fn new(metre: Option<f64>) -> Self {
        Self {
            known: HashMap::new(),
            remembered: 0,
            metre,
        }
    }

    /// All that the element `id` is associated with; if it is associated with nothing, what its type object is.
    pub(crate) fn of(
        &mut self,
        model: &Model,
        relations: &Relations,
        id: u32,
        kind: Option<u32>,
    ) -> MadeOf {
        let own = relations.materials.first(id).map(|_| id);
        let Some(owner) = own.or(kind) else {
            return MadeOf::default();
        };
        let (mut names, mut all) = (OrderedMap::default(), MadeOf::default());
        for material in relations.materials.of(owner) {
            let made = self.made(model, material);
            for name in &made.names {
                names.add(Cow::Owned(name.clone()), ());
            }
            all.layers.extend(made.layers.iter().cloned());
            all.constituents.extend(made.constituents.iter().cloned());
        }
        all.names = names.into_names();
        all
    }

    fn made(&mut self, model: &Model, id: u32) -> Rc<MadeOf> {
        if let Some(made) = self.known.get(&id) {
            return Rc::clone(made);
        }
        let mut made = MadeOf::default();
        self.collect(model, id, NESTED, &mut made);
        let count = 1 + made.names.len() + made.layers.len() + made.constituents.len();
        let made = Rc::new(made);
        if self.remembered + count > REMEMBERED {
            self.known.clear();
            self.remembered = 0;
        }
        self.remembered += count;
        self.known.insert(id, Rc::clone(&made));
        made
    }

    fn collect(&self, model: &Model, id: u32, deepest: usize, made: &mut MadeOf) {
        let Some((role, text)) = model.find(id) else {
            return;
        };
        let members = match role {
            Role::Material => {
                made.names
                    .extend(step::string(step::attribute(text, 0)).map(String::from));
                return;
            }
            Role::Layer => {
                let [material, thickness] = step::attributes(text);
                let name = name(model, material);
                made.names.extend(name.clone());
                let thickness_m = model.number(id, thickness).zip(self.metre);
                let thickness_m = thickness_m.map(|(it, metre)| it * metre);
                made.layers.push(Layer {
                    material: name,
                    thickness_m,
                });
                return;
            }
            Role::Profile => {
                made.names.extend(name(model, step::attribute(text, 2)));
                return;
            }
            Role::Constituent => {
                let [part, _, material, fraction, category] = step::attributes(text);
                let material = name(model, material);
                made.names.extend(material.clone());
                made.constituents.push(Constituent {
                    name: step::string(part).map(String::from),
                    material,
                    category: step::string(category).map(String::from),
                    fraction: model.number(id, fraction),
                });
                return;
            }
            Role::LayerSet | Role::MaterialList | Role::MaterialUsage => step::attribute(text, 0),
            Role::MemberSet => step::attribute(text, 2),
            _ => return,
        };
        if deepest > 0 {
            for member in step::references(members) {
                self.collect(model, member, deepest - 1, made);
            }
        }
    }
}

/// Returns the name of the material that `value` refers to.
fn name(model: &Model, value: &[u8]) -> Option<String> {
    match step::reference(value).and_then(|id| model.find(id)) {
        Some((Role::Material, text)) => step::string(step::attribute(text, 0)).map(String::from),
        _ => None,
    }
}
