//! One element, as it is written to `parsed_data.json`.

use std::borrow::Cow;
use std::collections::HashMap;
use std::rc::Rc;

use serde::Serialize;

use super::geometry::{self, Measured, Mesher};
use super::index::{Model, RecordEntry};
use super::place::{self, Location, Places};
use super::relations::Relations;
use super::schema::{NO_ATTRIBUTE, Role};
use super::step;
use super::stop::Stop;
use super::takeoff::{self, Claims, Takeoff};
use super::values::classifications::{self, Reference};
use super::values::figures::{Figure, Figures, Unread};
use super::values::materials::{Constituent, Layer, Materials};
use super::values::ordered::OrderedMap;
use super::values::properties::{self, Properties};
use super::values::quantities::{self, AREAS, LENGTHS, Quantities, VOLUMES};
use super::values::units::Units;

/// An element of a model. Lengths, areas, volumes and quantities are in SI; properties as the file has them.
#[derive(Debug, Serialize)]
pub(super) struct Element<'a> {
    pub(super) global_id: Cow<'a, str>,
    pub(super) ifc_type: &'a str,
    predefined_type: Option<&'a str>,
    name: Option<Cow<'a, str>>,
    object_type: Option<Cow<'a, str>>,
    type_name: Option<Cow<'a, str>>,
    tag: Option<Cow<'a, str>>,
    pub(super) storey: Option<String>,
    storey_elevation_m: Option<f64>,
    container: Option<Container>,
    part_of: Option<Cow<'a, str>>,
    parts: usize,
    pub(super) materials: Vec<String>,
    layers: Vec<Layer>,
    pub(super) volume_m3: Option<f64>,
    net_volume_m3: Option<f64>,
    gross_volume_m3: Option<f64>,
    area_m2: Option<f64>,
    length_m: Option<f64>,
    pub(super) property_volume_m3: Option<f64>,
    property_volume_from: Option<String>,
    property_area_m2: Option<f64>,
    property_area_from: Option<String>,
    property_length_m: Option<f64>,
    property_length_from: Option<String>,
    constituents: Vec<Constituent>,
    classifications: Vec<String>,
    classification_references: Vec<Reference<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) geometry: Option<geometry::Figures>,
    pub(super) takeoff: Takeoff,
    quantities: Quantities<'a>,
    properties: Properties<'a>,
}

#[derive(Debug, Serialize)]
struct Container {
    name: Option<String>,
    ifc_type: String,
}

/// A property or quantity set.
#[derive(Clone)]
enum DefinitionSet<'a> {
    Quantities(Cow<'a, str>, OrderedMap<'a, f64>, Unread),
    Properties(
        Cow<'a, str>,
        OrderedMap<'a, properties::Value<'a>>,
        Box<Figures>,
    ),
    /// The amounts of a definition that does not fit its class.
    Lost(Unread),
}

/// The most values of type objects that are remembered.
const REMEMBERED: usize = 1 << 20;

/// Makes elements of their records.
pub(super) struct ElementReader<'m, 'a> {
    model: &'m Model<'a>,
    relations: &'m Relations,
    units: Units,
    places: Places,
    materials: Materials,
    types: HashMap<u32, Rc<Vec<DefinitionSet<'a>>>>,
    /// How many values they have.
    remembered: usize,
    mesher: Option<Mesher<'m, 'a>>,
    measured: Measured,
}

impl<'m, 'a> ElementReader<'m, 'a> {
    /// `mesher` measures the elements that `measured` tells.
    pub(super) fn new(
        model: &'m Model<'a>,
        relations: &'m Relations,
        units: Units,
        mesher: Option<Mesher<'m, 'a>>,
        measured: Measured,
    ) -> Self {
        let metre = units.length();
        Self {
            model,
            relations,
            units,
            places: Places::new(metre),
            materials: Materials::new(metre),
            types: HashMap::new(),
            remembered: 0,
            mesher,
            measured,
        }
    }

    pub(super) fn element(&mut self, entry: RecordEntry) -> Result<Element<'m>, Stop>
    where
        'a: 'm,
    {
        let (model, relations) = (self.model, self.relations);
        let class = model.class(entry);
        let text = model.text(entry);
        let [global_id, _, name, _, object_type, _, _, tag] = step::attributes(text);
        let predefined_type = match class.predefined_type {
            NO_ATTRIBUTE => None,
            at => step::enumeration(step::attribute(text, usize::from(at))),
        };
        let kind = relations
            .types
            .first(entry.id)
            .filter(|&kind| model.role(kind) == Some(Role::Type));
        let type_text = kind.and_then(|kind| model.find(kind)).map(|(_, text)| text);
        let Location { container, storey } = self.places.of(model, relations, entry.id)?;
        let made = self.materials.of(model, relations, entry.id, kind);

        let (mut quantities, mut properties) = (Quantities::default(), Properties::default());
        let (mut stated, mut unread) = (Figures::default(), Unread::default());
        let own = relations.properties.of(entry.id);
        let mut sets: Vec<_> = own.filter_map(|id| self.set(id)).collect();
        let lost = relations.lost.of(entry.id);
        sets.extend(lost.map(|id| DefinitionSet::Lost(Unread::lost(model, id))));
        let shared = kind.map(|kind| self.shared(kind));
        sets.extend(shared.iter().flat_map(|sets| sets.iter().cloned()));
        for set in sets {
            match set {
                DefinitionSet::Quantities(name, values, not_read) => {
                    quantities.merge(name, values);
                    unread.join(&not_read);
                }
                DefinitionSet::Properties(name, values, figures) => {
                    properties.merge(name, values);
                    stated.join(*figures);
                }
                DefinitionSet::Lost(not_read) => unread.join(&not_read),
            }
        }
        let pick = |names: &[&str]| quantities::pick(&quantities, names);
        let mut references = classifications::of(model, relations, entry.id, kind);
        let codes = classifications::codes(&references);
        classifications::add_properties(&mut references, &properties);
        let figures = Figures::of_quantities(&quantities, unread);
        let claims = Claims {
            ifc_type: &class.name,
            quantities: &figures,
            properties: &stated,
            thickness: thickness(&made.layers),
        };
        let mut takeoff = takeoff::of(&claims, None);
        let is_measured = class.role == Role::Element
            && match self.measured {
                Measured::None => false,
                Measured::Missing => takeoff.volume_m3.is_none() || !takeoff.implausible.is_empty(),
                Measured::All => true,
            };
        let at = storey.as_ref().map(|it| (it.id, it.elevation_m));
        let mesher = self.mesher.as_mut().filter(|_| is_measured);
        let geometry = mesher.map(|mesher| mesher.figures(entry, at));
        if let Some(geometry) = &geometry {
            takeoff = takeoff::of(&claims, Some(&geometry.amounts()));
        }
        let (property_volume_m3, property_volume_from) = pair(stated.volume);
        let (property_area_m2, property_area_from) = pair(stated.area);
        let (property_length_m, property_length_from) = pair(stated.length);
        Ok(Element {
            global_id: step::string(global_id).unwrap_or_default(),
            ifc_type: &class.name,
            predefined_type,
            name: step::string(name),
            object_type: step::string(object_type),
            type_name: type_text.and_then(|text| step::string(step::attribute(text, 2))),
            tag: step::string(tag),
            storey: storey.as_ref().and_then(|storey| storey.name.clone()),
            storey_elevation_m: storey.and_then(|storey| storey.elevation_m),
            container: container.map(|spatial| Container {
                name: spatial.name.clone(),
                ifc_type: spatial.ifc_type.clone(),
            }),
            part_of: place::part_of(model, relations, entry.id),
            parts: relations.parts(entry.id),
            materials: made.names,
            layers: made.layers,
            volume_m3: pick(VOLUMES),
            net_volume_m3: pick(&["NetVolume"]),
            gross_volume_m3: pick(&["GrossVolume"]),
            area_m2: pick(AREAS),
            length_m: pick(LENGTHS),
            property_volume_m3,
            property_volume_from,
            property_area_m2,
            property_area_from,
            property_length_m,
            property_length_from,
            constituents: made.constituents,
            classifications: codes,
            classification_references: references,
            geometry,
            takeoff,
            quantities,
            properties,
        })
    }

    /// Reads a definition; none if it is no set of single values or quantities.
    fn set(&mut self, definition: u32) -> Option<DefinitionSet<'a>> {
        let (role, text) = self.model.find(definition)?;
        if self.model.misfits.contains(&definition) {
            let unread = Unread::lost(self.model, definition);
            return Some(DefinitionSet::Lost(unread));
        }
        let [_, _, name, _, fourth, fifth] = step::attributes(text);
        let name = step::string(name).unwrap_or_default();
        match role {
            Role::QuantitySet => {
                let (values, unread) = quantities::read(self.model, &mut self.units, fifth);
                Some(DefinitionSet::Quantities(name, values, unread))
            }
            Role::PropertySet => {
                let (values, figures) =
                    properties::read(self.model, &mut self.units, &name, fourth);
                Some(DefinitionSet::Properties(name, values, Box::new(figures)))
            }
            _ => None,
        }
    }

    /// Returns the sets of the type object `kind`. The amounts of its properties do not count.
    fn shared(&mut self, kind: u32) -> Rc<Vec<DefinitionSet<'a>>> {
        if let Some(known) = self.types.get(&kind) {
            return Rc::clone(known);
        }
        let mut sets = Vec::new();
        if self.model.misfits.contains(&kind) {
            sets.push(DefinitionSet::Lost(Unread::lost(self.model, kind)));
        } else if let Some((_, text)) = self.model.find(kind) {
            let definitions = step::references(step::attribute(text, 5));
            sets.extend(definitions.filter_map(|id| self.set(id)));
        }
        let mut count = 1 + sets.len();
        for set in &mut sets {
            match set {
                DefinitionSet::Quantities(_, values, _) => count += values.len(),
                DefinitionSet::Properties(_, values, figures) => {
                    **figures = Figures::default();
                    count += values.len();
                }
                DefinitionSet::Lost(_) => {}
            }
        }
        if self.remembered + count > REMEMBERED {
            self.types.clear();
            self.remembered = 0;
        }
        self.remembered += count;
        let sets = Rc::new(sets);
        self.types.insert(kind, Rc::clone(&sets));
        sets
    }
}

/// Returns the value of a figure, and its source.
fn pair(figure: Option<Figure>) -> (Option<f64>, Option<String>) {
    figure.map(|figure| (figure.value, figure.from)).unzip()
}

/// Returns the thickness of all layers together, where each has one.
fn thickness(layers: &[Layer]) -> Option<f64> {
    let all: Option<f64> = layers.iter().map(|layer| layer.thickness_m).sum();
    all.filter(|all| *all > 0.0)
}
