//! Materials, constructions and type objects: each written when the first element needs it.

use std::collections::BTreeMap;
use std::io;

use super::catalogue::{Catalogue, Construction, Form, Holder, Kind};
use super::geometry;
use super::properties;
use super::shape::Section;
use super::step_file::{Choice, Id, Maybe, Real, Refs, StepFile, Text, global_id};

/// What is written already.
pub struct Definitions<'a> {
    catalogue: &'a Catalogue,
    seed: u64,
    history: Id,
    materials: BTreeMap<String, Id>,
    constructions: BTreeMap<String, Id>,
    usages: BTreeMap<String, Id>,
    /// Type object and its elements, by key of the kind. A type may have one such relation only, so they wait for the end.
    types: BTreeMap<&'static str, (Id, Vec<Id>)>,
}

impl<'a> Definitions<'a> {
    /// Nothing is written yet.
    pub fn new(catalogue: &'a Catalogue, seed: u64, history: Id) -> Self {
        Self {
            catalogue,
            seed,
            history,
            materials: BTreeMap::new(),
            constructions: BTreeMap::new(),
            usages: BTreeMap::new(),
            types: BTreeMap::new(),
        }
    }

    /// Says that an element is of its kind's type, if that has one.
    pub fn type_of(
        &mut self,
        step: &mut StepFile<'_>,
        key: &'static str,
        element: Id,
    ) -> io::Result<()> {
        let kind = self.catalogue.kind(key)?;
        if kind.type_name.is_empty() {
            return Ok(());
        }
        if !self.types.contains_key(key) {
            let id = self.write_type(step, key, kind)?;
            self.types.insert(key, (id, Vec::new()));
        }
        if let Some((_, members)) = self.types.get_mut(key) {
            members.push(element);
        }
        Ok(())
    }

    /// The record that an element is associated with when that construction hangs on it.
    pub fn on_element(
        &mut self,
        step: &mut StepFile<'_>,
        key: &str,
        holder: Holder,
    ) -> io::Result<Id> {
        let set = self.construction(step, key)?;
        if holder != Holder::Usage {
            return Ok(set);
        }
        if let Some(id) = self.usages.get(key) {
            return Ok(*id);
        }
        let id = match self.catalogue.construction(key)?.form {
            Form::Layers(_) => step.record(format_args!(
                "IFCMATERIALLAYERSETUSAGE({set},.AXIS2.,.POSITIVE.,0.,$)"
            ))?,
            Form::Profile(..) => {
                step.record(format_args!("IFCMATERIALPROFILESETUSAGE({set},5,$)"))?
            }
            _ => set,
        };
        self.usages.insert(key.to_owned(), id);
        Ok(id)
    }

    /// Writes which elements are of which type.
    pub fn end(self, step: &mut StepFile<'_>) -> io::Result<()> {
        for (number, (id, members)) in self.types.values().enumerate() {
            let guid = global_id(self.seed, "typed", &[number as u64]);
            let (history, members) = (self.history, Refs(members));
            step.record(format_args!(
                "IFCRELDEFINESBYTYPE('{guid}',{history},$,$,{members},{id})"
            ))?;
        }
        Ok(())
    }

    fn write_type(&mut self, step: &mut StepFile<'_>, key: &str, kind: &Kind) -> io::Result<Id> {
        let (history, seed) = (self.history, self.seed);
        let mut own = None;
        if properties::on_type(kind) {
            own = properties::common(
                step,
                history,
                &global_id(seed, &format!("type set {key}"), &[]),
                kind,
            )?;
        }
        let sets = Maybe(own.map(|id| format!("({id})")));
        let guid = global_id(seed, &format!("type {key}"), &[]);
        let (class, name) = (kind.class.to_uppercase(), Text(&kind.type_name));
        let predefined = if kind.predefined.is_empty() {
            "NOTDEFINED"
        } else {
            &kind.predefined
        };
        let predefined = Choice(predefined);
        let tail = match kind.class.as_str() {
            "Door" => format!("{predefined},.SINGLE_SWING_LEFT.,$,$"),
            "Window" => format!("{predefined},.SINGLE_PANEL.,$,$"),
            "Furniture" => format!(".NOTDEFINED.,{predefined}"),
            _ => predefined.to_string(),
        };
        let class = if class == "WALLSTANDARDCASE" {
            "WALL"
        } else {
            &class
        };
        let id = step.record(format_args!(
            "IFC{class}TYPE('{guid}',{history},{name},$,$,{sets},$,$,$,{tail})"
        ))?;
        if let Some((construction, Holder::Type | Holder::Usage)) = &kind.made_of {
            let set = self.construction(step, construction)?;
            let guid = global_id(seed, &format!("type material {key}"), &[]);
            step.record(format_args!(
                "IFCRELASSOCIATESMATERIAL('{guid}',{history},$,$,({id}),{set})"
            ))?;
        }
        Ok(id)
    }

    fn construction(&mut self, step: &mut StepFile<'_>, key: &str) -> io::Result<Id> {
        if let Some(id) = self.constructions.get(key) {
            return Ok(*id);
        }
        let catalogue = self.catalogue;
        let id = self.write_construction(step, catalogue.construction(key)?)?;
        self.constructions.insert(key.to_owned(), id);
        Ok(id)
    }

    fn write_construction(
        &mut self,
        step: &mut StepFile<'_>,
        construction: &Construction,
    ) -> io::Result<Id> {
        let name = Text(&construction.name);
        let mut parts = Vec::new();
        match &construction.form {
            Form::Single => self.material(step, &construction.name),
            Form::Layers(layers) => {
                for (thickness, material) in layers {
                    let material = match material {
                        Some(material) => Some(self.material(step, material)?),
                        None => None,
                    };
                    let (material, thickness) = (Maybe(material), Real(*thickness));
                    parts.push(step.record(format_args!(
                        "IFCMATERIALLAYER({material},{thickness},$,$,$,$,$)"
                    ))?);
                }
                let layers = Refs(&parts);
                step.record(format_args!("IFCMATERIALLAYERSET({layers},{name},$)"))
            }
            Form::Profile(shape, sizes, material) => {
                let section = match (shape.as_str(), sizes.as_slice()) {
                    ("circle", [diameter]) => Section::Circle(*diameter),
                    ("rectangle", [width, height]) => Section::Rectangle(*width, *height),
                    ("i", [width, height, web, flange]) => {
                        Section::I(*width, *height, *web, *flange)
                    }
                    _ => {
                        return Err(io::Error::other(format!(
                            "{shape:?} with {sizes:?} is no profile"
                        )));
                    }
                };
                let section = geometry::section(step, &section)?;
                let material = self.material(step, material)?;
                let profile = step.record(format_args!(
                    "IFCMATERIALPROFILE({name},$,{material},{section},$,$)"
                ))?;
                step.record(format_args!(
                    "IFCMATERIALPROFILESET({name},$,({profile}),$)"
                ))
            }
            Form::Constituents(constituents) => {
                for (role, material) in constituents {
                    let (role, material) = (Text(role), self.material(step, material)?);
                    parts.push(step.record(format_args!(
                        "IFCMATERIALCONSTITUENT({role},$,{material},$,$)"
                    ))?);
                }
                let parts = Refs(&parts);
                step.record(format_args!("IFCMATERIALCONSTITUENTSET({name},$,{parts})"))
            }
            Form::List(materials) => {
                for material in materials {
                    parts.push(self.material(step, material)?);
                }
                let parts = Refs(&parts);
                step.record(format_args!("IFCMATERIALLIST({parts})"))
            }
        }
    }

    fn material(&mut self, step: &mut StepFile<'_>, name: &str) -> io::Result<Id> {
        if let Some(id) = self.materials.get(name) {
            return Ok(*id);
        }
        let id = step.record(format_args!("IFCMATERIAL({},$,$)", Text(name)))?;
        self.materials.insert(name.to_owned(), id);
        Ok(id)
    }
}
