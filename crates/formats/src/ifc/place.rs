//! Where an element is: its storey, the first spatial structure that holds it, the assembly that it is part of.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::index::Model;
use super::limits::STEPS_UP;
use super::relations::Relations;
use super::schema::Role;
use super::step;
use super::stop::Stop;

/// A part of the spatial structure.
#[derive(Debug, PartialEq)]
pub(super) struct Spatial {
    pub(super) id: u32,
    pub(super) name: Option<String>,
    pub(super) ifc_type: String,
    /// Of storeys only.
    pub(super) elevation_m: Option<f64>,
}

/// Where something is.
#[derive(Debug, Clone, Default)]
pub(super) struct Location {
    /// The first part of the spatial structure on the way up.
    pub(super) container: Option<Rc<Spatial>>,
    /// The first storey on the way up.
    pub(super) storey: Option<Rc<Spatial>>,
}

/// The most places and spatial parts that are remembered.
const REMEMBERED: usize = 65_536;

/// The way up from elements, remembered for all that is above them.
pub(super) struct Places {
    known: HashMap<u32, Location>,
    spatial: HashMap<u32, Rc<Spatial>>,
    metre: Option<f64>,
}

impl Places {
    /// `metre`: the project's length unit in metres.
    pub(super) fn new(metre: Option<f64>) -> Self {
        Self {
            known: HashMap::new(),
            spatial: HashMap::new(),
            metre,
        }
    }

    /// Where the element `id` is: containment first, then the whole that it is part of, the host of an opening, the
    /// opening that it fills. A ring of such relations ends the way.
    pub(super) fn of(
        &mut self,
        model: &Model,
        relations: &Relations,
        id: u32,
    ) -> Result<Location, Stop> {
        let mut way = Vec::new();
        let mut seen = HashSet::new();
        let mut place = Location::default();
        let mut ring = false;
        let mut next = up(model, relations, id);
        while let Some(id) = next {
            if let Some(known) = self.known.get(&id) {
                place = known.clone();
                break;
            }
            if way.len() > 8 && seen.is_empty() {
                seen.extend(way.iter().copied());
            }
            ring = if seen.is_empty() {
                way.contains(&id)
            } else {
                !seen.insert(id)
            };
            if ring {
                break;
            }
            way.push(id);
            if way.len() > STEPS_UP {
                return Err(Stop::Limit(format!(
                    "#{id} is more than {STEPS_UP} relations above one of its parts"
                )));
            }
            if model.role(id) == Some(Role::Storey) {
                break;
            }
            next = up(model, relations, id);
        }
        for &id in way.iter().rev() {
            let role = model.role(id);
            if matches!(role, Some(Role::Storey | Role::Spatial)) {
                let spatial = self.spatial(model, id);
                if role == Some(Role::Storey) {
                    place.storey = Some(Rc::clone(&spatial));
                }
                place.container = Some(spatial);
            }
            // In a ring the way of each is another than the rest of this one's.
            if !ring {
                if self.known.len() >= REMEMBERED {
                    self.known.clear();
                }
                self.known.insert(id, place.clone());
            }
        }
        Ok(place)
    }

    fn spatial(&mut self, model: &Model, id: u32) -> Rc<Spatial> {
        if let Some(known) = self.spatial.get(&id) {
            return Rc::clone(known);
        }
        let (mut name, mut ifc_type, mut elevation_m) = (None, String::new(), None);
        if let Some(entry) = model.index.get(id) {
            let class = model.class(entry);
            let text = model.text(entry);
            ifc_type.clone_from(&class.name);
            name = step::string(step::attribute(text, 2)).map(String::from);
            if class.role == Role::Storey {
                let elevation = model.number(id, step::attribute(text, 9)).zip(self.metre);
                elevation_m = elevation.map(|(elevation, metre)| elevation * metre);
            }
        }
        let spatial = Rc::new(Spatial {
            id,
            name,
            ifc_type,
            elevation_m,
        });
        if self.spatial.len() >= REMEMBERED {
            self.spatial.clear();
        }
        self.spatial.insert(id, Rc::clone(&spatial));
        spatial
    }
}

/// One step up.
fn up(model: &Model, relations: &Relations, id: u32) -> Option<u32> {
    [
        &relations.contained,
        &relations.parents,
        &relations.hosts,
        &relations.filled,
    ]
    .iter()
    .find_map(|pairs| pairs.first(id).filter(|&up| model.index.get(up).is_some()))
}

/// Returns the GlobalId of the element that `id` is aggregated or nested into. A spatial structure is not an assembly.
pub(super) fn part_of<'a>(
    model: &Model<'a>,
    relations: &Relations,
    id: u32,
) -> Option<std::borrow::Cow<'a, str>> {
    let whole = relations
        .parents
        .of(id)
        .find_map(|whole| match model.find(whole) {
            Some((Role::Element | Role::Opening, text)) => Some(text),
            _ => None,
        })?;
    step::string(step::attribute(whole, 0))
}
