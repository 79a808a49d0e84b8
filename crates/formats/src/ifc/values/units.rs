//! Units: what one of the file's units is in SI (metre, square metre, cubic metre, kilogram, second).

use std::collections::HashMap;

use crate::ifc::index::Model;
use crate::ifc::schema::{Measure, Role};
use crate::ifc::step;

/// How deep conversion units may be nested. Real ones are two deep; a ring of them would never end.
const DEEPEST: usize = 16;

/// The scales of the project's units, and of the units that single values name.
pub(crate) struct Units {
    project: HashMap<String, f64>,
    /// Own units of quantities are few and shared by many.
    own: HashMap<u32, f64>,
}

/// Names of length units, in metres.
const NAMES: &[(&str, f64)] = &[
    ("mm", 0.001),
    ("cm", 0.01),
    ("dm", 0.1),
    ("in", 0.0254),
    ("ft", 0.3048),
];

/// The most own units that are remembered.
const REMEMBERED: usize = 4096;

impl Units {
    /// Reads the units of the first project: of several units of one kind, the first.
    pub(crate) fn read(model: &Model) -> Self {
        let mut project = HashMap::new();
        let assignment = model
            .projects
            .first()
            .and_then(|&entry| step::reference(step::attribute(model.text(entry), 8)));
        if let Some((Role::UnitAssignment, text)) = assignment.and_then(|id| model.find(id)) {
            for unit in step::references(step::attribute(text, 0)) {
                let Some((Role::SiUnit | Role::ConversionUnit | Role::OtherUnit, text)) =
                    model.find(unit)
                else {
                    continue;
                };
                if let Some(kind) = step::enumeration(step::attribute(text, 1)) {
                    project
                        .entry(kind.to_ascii_uppercase())
                        .or_insert_with(|| scale(model, unit, DEEPEST));
                }
            }
        }
        Self {
            project,
            own: HashMap::new(),
        }
    }

    /// Returns true if the project says what its lengths are in.
    pub(crate) fn has_length(&self) -> bool {
        self.project.contains_key("LENGTHUNIT")
    }

    /// Returns the project's length unit in metres.
    pub(crate) fn length(&self) -> f64 {
        self.of(Measure::Length)
    }

    /// Returns the project's unit for `measure`, in SI. Where it sets none, areas and volumes follow its length unit, and others are in SI.
    pub(crate) fn of(&self, measure: Measure) -> f64 {
        self.set(measure).unwrap_or_else(|| match measure {
            Measure::Area => self.length().powi(2),
            Measure::Volume => self.length().powi(3),
            _ => 1.0,
        })
    }

    /// Returns the name of the unit that follows from the length unit, if the project sets none for `measure` and it is not the SI unit.
    pub(crate) fn derived(&self, measure: Measure) -> Option<String> {
        let length = self.length();
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

    /// Returns the unit that the project sets for `measure`, in SI.
    fn set(&self, measure: Measure) -> Option<f64> {
        let kind = match measure {
            Measure::Length => "LENGTHUNIT",
            Measure::Area => "AREAUNIT",
            Measure::Volume => "VOLUMEUNIT",
            Measure::Weight => "MASSUNIT",
            Measure::Time => "TIMEUNIT",
            Measure::Count => return None,
        };
        self.project.get(kind).copied()
    }

    /// Returns the unit that a value names itself (`unit`, as written), else the project's for `measure`.
    pub(crate) fn own_or(&mut self, model: &Model, unit: &[u8], measure: Measure) -> f64 {
        let Some(id) = step::reference(unit).filter(|&id| model.index.get(id).is_some()) else {
            return self.of(measure);
        };
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

/// Returns the factor of unit `id` to SI units. Derived, monetary and other units that measure nothing read here count as 1.
fn scale(model: &Model, id: u32, deepest: usize) -> f64 {
    match model.find(id) {
        Some((Role::SiUnit, text)) => {
            let [_, _, prefix, name] = step::attributes(text);
            let power = match step::enumeration(name) {
                Some("SQUARE_METRE") => 2,
                Some("CUBIC_METRE") => 3,
                // The SI unit of mass is the kilogram, which the standard writes KILO.GRAM.
                Some("GRAM") => return prefixed(prefix) / 1000.0,
                _ => 1,
            };
            prefixed(prefix).powi(power)
        }
        Some((Role::ConversionUnit, text)) if deepest > 0 => {
            let Some(id) = step::reference(step::attribute(text, 3)) else {
                return 1.0;
            };
            let Some((Role::MeasureWithUnit, factor)) = model.find(id) else {
                return 1.0;
            };
            let [value, unit] = step::attributes(factor);
            let inner = step::reference(unit).map_or(1.0, |unit| scale(model, unit, deepest - 1));
            model.number(id, value).unwrap_or(1.0) * inner
        }
        _ => 1.0,
    }
}

/// The prefixes of ISO 80000 as IfcSIPrefix names them.
fn prefixed(prefix: &[u8]) -> f64 {
    match step::enumeration(prefix) {
        Some("EXA") => 1e18,
        Some("PETA") => 1e15,
        Some("TERA") => 1e12,
        Some("GIGA") => 1e9,
        Some("MEGA") => 1e6,
        Some("KILO") => 1e3,
        Some("HECTO") => 1e2,
        Some("DECA") => 1e1,
        Some("DECI") => 1e-1,
        Some("CENTI") => 1e-2,
        Some("MILLI") => 1e-3,
        Some("MICRO") => 1e-6,
        Some("NANO") => 1e-9,
        Some("PICO") => 1e-12,
        Some("FEMTO") => 1e-15,
        Some("ATTO") => 1e-18,
        _ => 1.0,
    }
}
