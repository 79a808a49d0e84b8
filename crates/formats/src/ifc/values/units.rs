//! Units: what one of the file's units is in SI (metre, square metre, cubic metre, kilogram, second).

use std::collections::HashMap;

use crate::ifc::index::Model;
use crate::ifc::schema::{Measure, Role};
use crate::ifc::step;

/// How deep conversion units may be nested. Real ones are two deep; a ring of them would never end.
const DEEPEST: usize = 16;

/// The scales of the project's units, and of the units that single values name.
pub(crate) struct Units {
    /// Those that cannot be read are none.
    project: HashMap<String, Option<f64>>,
    /// Own units of quantities are few and shared by many.
    own: HashMap<u32, Option<f64>>,
    /// The first record that cannot be read of those that geometry depends on.
    pub(crate) unread: Option<u32>,
}

/// Names of length units, in metres.
const NAMES: &[(&str, f64)] = &[
    ("mm", 0.001),
    ("cm", 0.01),
    ("dm", 0.1),
    ("in", 0.0254),
    ("ft", 0.3048),
];

const LENGTH: &str = "LENGTHUNIT";
const AREA: &str = "AREAUNIT";
const VOLUME: &str = "VOLUMEUNIT";
const MASS: &str = "MASSUNIT";
const TIME: &str = "TIMEUNIT";
const ANGLE: &str = "PLANEANGLEUNIT";

/// The most own units that are remembered.
const REMEMBERED: usize = 4096;

impl Units {
    /// Reads the units of the first project: of several units of one kind, the first.
    pub(crate) fn read(model: &Model) -> Self {
        let mut units = Self {
            project: HashMap::new(),
            own: HashMap::new(),
            unread: None,
        };
        let project = model.projects.first().map(|entry| entry.id);
        let assigned = |id| step::reference(step::attribute(model.find(id)?.1, 8));
        let assignment = project.and_then(assigned);
        let unread = [project, assignment].into_iter().flatten();
        let mut unread = unread.filter(|id| model.misfits.contains(id));
        if let Some(id) = unread.next() {
            for kind in [LENGTH, AREA, VOLUME, MASS, TIME] {
                units.add(kind, id, None);
            }
        } else if let Some((Role::UnitAssignment, text)) = assignment.and_then(|id| model.find(id))
        {
            for id in step::references(step::attribute(text, 0)) {
                if let Some((Role::SiUnit | Role::ConversionUnit | Role::OtherUnit, text)) =
                    model.find(id)
                    && let Some(kind) = step::enumeration(step::attribute(text, 1))
                {
                    units.add(kind, id, scale(model, id, DEEPEST));
                }
            }
        }
        units
    }

    fn add(&mut self, kind: &str, id: u32, factor: Option<f64>) {
        let kind = kind.to_ascii_uppercase();
        if self.project.contains_key(&kind) {
            return;
        }
        if factor.is_none() && matches!(kind.as_str(), LENGTH | ANGLE) {
            self.unread.get_or_insert(id);
        }
        self.project.insert(kind, factor);
    }

    /// Returns true if the project says what its lengths are in.
    pub(crate) fn has_length(&self) -> bool {
        self.project.contains_key(LENGTH)
    }

    /// Returns the project's length unit in metres; none if it cannot be read.
    pub(crate) fn length(&self) -> Option<f64> {
        self.of(Measure::Length)
    }

    /// Returns the project's unit for `measure`, in SI; none if it cannot be read. Where it sets none, areas and volumes follow its length
    /// unit, and others are in SI.
    fn of(&self, measure: Measure) -> Option<f64> {
        match (self.set(measure), measure) {
            (Some(set), _) => *set,
            (None, Measure::Area) => Some(self.length()?.powi(2)),
            (None, Measure::Volume) => Some(self.length()?.powi(3)),
            _ => Some(1.0),
        }
    }

    /// Returns the name of the unit that follows from the length unit, if the project sets none for `measure` and it is not the SI unit.
    pub(crate) fn derived(&self, measure: Measure) -> Option<String> {
        let length = self.length()?;
        let is = |metres: f64| (metres - length).abs() < 1e-9;
        if self.set(measure).is_some() || is(1.0) {
            return None;
        }
        let named = NAMES.iter().find(|(_, metres)| is(*metres));
        let name = named.map_or_else(|| format!("({length} m)"), |(name, _)| (*name).to_owned());
        match measure {
            Measure::Area => Some(name + "²"),
            Measure::Volume => Some(name + "³"),
            _ => None,
        }
    }

    /// Returns the unit that the project sets for `measure`, in SI, if it can be read; `None` if it sets none.
    fn set(&self, measure: Measure) -> Option<&Option<f64>> {
        let kind = match measure {
            Measure::Length => LENGTH,
            Measure::Area => AREA,
            Measure::Volume => VOLUME,
            Measure::Weight => MASS,
            Measure::Time => TIME,
            Measure::Count => return None,
        };
        self.project.get(kind)
    }

    /// Returns the unit that a value names itself (`unit`, as written), else the project's for `measure`; none if it cannot be read.
    pub(crate) fn own_or(&mut self, model: &Model, unit: &[u8], measure: Measure) -> Option<f64> {
        if unit.is_empty() || step::is_unset(unit) {
            return self.of(measure);
        }
        let id = step::reference(unit)?;
        if let Some(&known) = self.own.get(&id) {
            return known;
        }
        let value = scale(model, id, DEEPEST);
        if self.own.len() < REMEMBERED {
            self.own.insert(id, value);
        }
        value
    }
}

/// Returns the factor of unit `id` to SI units; none if it cannot be read. Derived, monetary and other units that measure nothing
/// read here count as 1.
fn scale(model: &Model, id: u32, deepest: usize) -> Option<f64> {
    match model.find(id)? {
        (Role::OtherUnit, _) => Some(1.0),
        _ if model.misfits.contains(&id) => None,
        (Role::SiUnit, text) => si_factor(text),
        (Role::ConversionUnit, text) if deepest > 0 => {
            let id = step::reference(step::attribute(text, 3))?;
            let (Role::MeasureWithUnit, factor) = model.find(id)? else {
                return None;
            };
            let [value, unit] = step::attributes(factor);
            let value = model.number(id, value).filter(|it| *it > 0.0)?;
            Some(value * scale(model, step::reference(unit)?, deepest - 1)?)
        }
        _ => None,
    }
}

/// Returns the factor of the SI unit that starts `text`.
pub(crate) fn si_factor(text: &[u8]) -> Option<f64> {
    let [_, _, prefix, name] = step::attributes(text);
    step::si_factor(prefix, name)
}
