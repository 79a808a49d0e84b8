//! One element after another: its place, body, opening, properties, type and material.

use std::collections::BTreeMap;
use std::io;

use super::building::{Bond, Part};
use super::catalogue::{Figures, Holder, Kind};
use super::properties;
use super::records::{CHUNK, Level, Model};
use super::revision::Change;
use super::shape::{Measures, Shape};
use super::step_file::{Choice, Id, Maybe, Real, Text};

/// An element that others hang on.
pub(super) struct Host {
    pub(super) id: Id,
    pub(super) place: Id,
    pub(super) thickness: f64,
    pub(super) parts: Vec<Id>,
}

/// One element with what the revisions made of it.
pub(super) struct Element {
    pub(super) slot: usize,
    pub(super) part: Part,
    pub(super) number: usize,
    pub(super) changes: Vec<Change>,
    pub(super) new: bool,
}

impl Model<'_> {
    /// The elements of a house: those that others hang on before those that hang, else shuffled in revisions.
    pub(super) fn elements(&self, house: usize) -> Vec<Element> {
        let mut plan = self
            .layout
            .plan(house)
            .into_iter()
            .map(Some)
            .collect::<Vec<_>>();
        let before = self.layout.before(house);
        let mut elements = Vec::new();
        for (place, slot) in self.layout.slots(house).iter().enumerate() {
            let key = (house, *slot);
            if let Some(part) = plan[*slot].take()
                && !self.revisions.dropped.contains(&key)
            {
                elements.push(Element {
                    slot: *slot,
                    part,
                    number: 310_000 + before + place,
                    changes: self
                        .revisions
                        .changed
                        .get(&key)
                        .cloned()
                        .unwrap_or_default(),
                    new: false,
                });
            }
        }
        let first_new = 310_000 + self.layout.before(self.layout.houses);
        for (slot, order, part) in self.revisions.added.get(&house).into_iter().flatten() {
            elements.push(Element {
                slot: *slot,
                part: part.clone(),
                number: first_new + order,
                changes: Vec::new(),
                new: true,
            });
        }
        if self.revision > 0 {
            elements.sort_by_key(|element| {
                // A roof window fills a part of the roof, so parts come before what fills.
                let hangs = match element.part.bond {
                    Bond::Storey | Bond::Room(_) => 0,
                    Bond::PartOf(_) => 1,
                    Bond::Fills(..) => 2,
                };
                (hangs, self.chance("element order", element.number))
            });
        }
        elements
    }

    pub(super) fn element(
        &mut self,
        house: usize,
        element: Element,
        levels: &mut [Level],
        hosts: &mut BTreeMap<usize, Host>,
        classification: Id,
    ) -> io::Result<()> {
        let catalogue = self.catalogue;
        let Element {
            slot,
            mut part,
            number,
            changes,
            new,
        } = element;
        let kind = catalogue.kind(part.kind)?;
        let mut made_of = kind.made_of.clone();
        let mut name = kind.name.clone();
        for change in &changes {
            match (change, &mut made_of) {
                (Change::Name, _) => name.push_str(" EI30"),
                (Change::Size, _) => part.shape = part.shape.longer(1.1),
                (Change::Storey, _) if part.level + 1 < levels.len() => part.level += 1,
                (Change::Storey, _) => part.level -= 1,
                (Change::Material, Some((construction, _))) => {
                    construction.clone_from(&catalogue.construction(construction)?.alternative);
                }
                (Change::Material, None) => {}
            }
        }
        let replaced = changes.contains(&Change::Material);
        let layers = match &made_of {
            Some((key, _)) => catalogue.construction(key)?.thickness(),
            None => None,
        };
        part.shape = part.shape.layered(layers.or(kind.thickness));

        let level = &levels[part.level];
        let (place, fill) = match part.bond {
            Bond::Storey | Bond::Room(_) => {
                let place =
                    self.geometry
                        .place(&mut self.step, Some(level.place), part.at, part.turned)?;
                (place, None)
            }
            Bond::PartOf(assembly) => {
                let within = hosts.get(&assembly).map(|host| host.place);
                let place = self
                    .geometry
                    .place(&mut self.step, within, part.at, part.turned)?;
                (place, None)
            }
            Bond::Fills(host, ahead, up) => {
                let Some(host) = hosts.get(&host) else {
                    return Err(io::Error::other(format!(
                        "slot {slot}: its host {host} does not stand"
                    )));
                };
                let (id, place, thickness) = (host.id, host.place, host.thickness);
                let opening =
                    self.opening((house, slot), id, place, thickness, [ahead, up], &part)?;
                (opening.1, Some(opening.0))
            }
        };
        let shape = self.geometry.shape(&mut self.step, &part.shape)?;
        let topic = if new { "new element" } else { "element" };
        let guid = self.guid(topic, &[house as u64, slot as u64]);
        let id = self.occurrence(kind, &guid, &name, number, place, shape, &part.shape)?;
        self.counts.elements += 1;

        if let Some(opening) = fill {
            self.relate("IFCRELFILLSELEMENT", opening, &[id])?;
        }
        let mut holes = self.layout.openings(house, slot);
        if let Some([x, y, length, width]) = part.hole {
            let hole = Shape::Box(length, width, 1_000.0);
            let at = [x, y + width / 2.0 - depth_of(&part.shape) / 2.0, -500.0];
            let body = self.geometry.shape(&mut self.step, &hole)?;
            let within = self
                .geometry
                .place(&mut self.step, Some(place), at, false)?;
            self.void((house, slot), id, within, body)?;
            holes += length * width;
        }
        let measures = part.shape.measures(holes);
        match part.bond {
            Bond::PartOf(assembly) => {
                if let Some(host) = hosts.get_mut(&assembly) {
                    host.parts.push(id);
                }
            }
            Bond::Room(room) => levels[part.level].rooms[room].push(id),
            Bond::Storey | Bond::Fills(..) => levels[part.level].contained.push(id),
        }
        hosts.insert(
            slot,
            Host {
                id,
                place,
                thickness: measures.thickness * 1e3,
                parts: Vec::new(),
            },
        );
        self.describe(house, slot, id, number, kind, &measures)?;
        self.definitions.type_of(&mut self.step, part.kind, id)?;
        if let Some((construction, holder)) = made_of
            && (holder != Holder::Type || replaced || kind.type_name.is_empty())
        {
            let holder = if holder == Holder::Type {
                Holder::Occurrence
            } else {
                holder
            };
            let material = self
                .definitions
                .on_element(&mut self.step, &construction, holder)?;
            let waiting = self.materials.entry(material).or_default();
            waiting.push(id);
            if waiting.len() == CHUNK {
                let elements = std::mem::take(waiting);
                self.associate_material(material, &elements)?;
            }
        }
        self.classify(id, &kind.cost_group, classification)
    }

    #[expect(clippy::too_many_arguments, reason = "the attributes of the record")]
    pub(super) fn occurrence(
        &mut self,
        kind: &Kind,
        guid: &str,
        name: &str,
        number: usize,
        place: Id,
        shape: Option<Id>,
        body: &Shape,
    ) -> io::Result<Id> {
        let (history, shape) = (self.history, Maybe(shape));
        let class = kind.class.to_uppercase();
        let object_type = if kind.type_name.is_empty() {
            &kind.name
        } else {
            &kind.type_name
        };
        let numbered = format!("{name}:{number}");
        let (name, object_type) = (Text(&numbered), Text(object_type));
        let predefined = Choice(&kind.predefined);
        let tail = match (kind.class.as_str(), body) {
            ("Door" | "Window", Shape::Box(width, _, height)) => {
                format!("{},{},{predefined},$,$", Real(*height), Real(*width))
            }
            ("StairFlight", _) => format!("9,9,166.666667,270.,{predefined}"),
            ("ReinforcingMesh", _) => format!("'B500B',$,$,9.5,7.,$,$,150.,250.,{predefined}"),
            _ => predefined.to_string(),
        };
        self.step.record(format_args!(
            "IFC{class}('{guid}',{history},{name},$,{object_type},{place},{shape},'{number}',{tail})"
        ))
    }

    /// Property sets and quantities of an element.
    pub(super) fn describe(
        &mut self,
        house: usize,
        slot: usize,
        id: Id,
        number: usize,
        kind: &Kind,
        measures: &Measures,
    ) -> io::Result<()> {
        let (history, key) = (self.history, [house as u64, slot as u64]);
        let mut sets = Vec::new();
        if !properties::on_type(kind) {
            let guid = self.guid("common set", &key);
            sets.extend(properties::common(&mut self.step, history, &guid, kind)?);
        }
        if kind.figures != Figures::None {
            let guid = self.guid("figures", &key);
            sets.extend(properties::figures(
                &mut self.step,
                history,
                &guid,
                kind,
                measures,
            )?);
        }
        if number.is_multiple_of(3) {
            let guid = self.guid("project set", &key);
            sets.push(properties::project(&mut self.step, history, &guid, number)?);
        }
        for (place, set) in sets.into_iter().enumerate() {
            let guid = self.guid("described", &[key[0], key[1], place as u64]);
            self.step.record(format_args!(
                "IFCRELDEFINESBYPROPERTIES('{guid}',{history},$,$,({id}),{set})"
            ))?;
        }
        Ok(())
    }

    /// Writes the opening for a door or window, a little deeper than its host, and gives it with its place.
    pub(super) fn opening(
        &mut self,
        key: (usize, usize),
        host: Id,
        within: Id,
        thickness: f64,
        at: [f64; 2],
        part: &Part,
    ) -> io::Result<(Id, Id)> {
        let Shape::Box(width, _, height) = part.shape else {
            return Err(io::Error::other(format!(
                "{} fills an opening, but is no box",
                part.kind
            )));
        };
        let place = if part.kind == "skylight" {
            let at = [at[0], at[1], at[1] * 0.7 + thickness / 2.0];
            self.geometry.place_on_slope(&mut self.step, within, at)?
        } else {
            let at = [at[0], 0.0, at[1]];
            self.geometry
                .place(&mut self.step, Some(within), at, false)?
        };
        let hole = Shape::Box(width, thickness + 200.0, height);
        let body = self.geometry.shape(&mut self.step, &hole)?;
        let id = self.void(key, host, place, body)?;
        Ok((id, place))
    }

    pub(super) fn void(
        &mut self,
        (house, slot): (usize, usize),
        host: Id,
        place: Id,
        body: Option<Id>,
    ) -> io::Result<Id> {
        let (guid, history) = (
            self.guid("opening", &[house as u64, slot as u64]),
            self.history,
        );
        let (name, body) = (Text("Öffnung"), Maybe(body));
        let id = self.step.record(format_args!(
            "IFCOPENINGELEMENT('{guid}',{history},{name},$,$,{place},{body},$,.OPENING.)"
        ))?;
        self.relate("IFCRELVOIDSELEMENT", host, &[id])?;
        self.counts.openings += 1;
        Ok(id)
    }
}

/// Width of a box, from one side to the other.
fn depth_of(shape: &Shape) -> f64 {
    match shape {
        Shape::Box(_, width, _) => *width,
        _ => 0.0,
    }
}
