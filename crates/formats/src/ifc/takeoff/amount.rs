//! The stated figures for one amount of an element, and the one that counts.

use std::fmt;

use serde::ser::{Serialize, Serializer};

/// Where a figure comes from.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::ifc) enum FigureSource {
    QuantitySet,
    /// The set and the property, `Dimensions.Volume`.
    Property(String),
    Geometry,
}

impl fmt::Display for FigureSource {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::QuantitySet => f.write_str("quantity set"),
            Self::Property(from) => write!(f, "property set: {from}"),
            Self::Geometry => f.write_str("geometry"),
        }
    }
}

impl Serialize for FigureSource {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// How far two figures of one amount may be apart.
pub(super) const FACTOR: f64 = 2.0;

/// Figures below this (m, m², m³) are not judged: they are rounded.
const SMALL: f64 = 0.01;

/// Two areas that are this close are of the same faces.
pub(super) const SAME: f64 = 0.1;

/// Figures of one amount that do not agree.
#[derive(Debug, PartialEq, serde::Serialize)]
pub(in crate::ifc) struct Implausible {
    quantity: &'static str,
    stated: Option<f64>,
    property: Option<f64>,
    geometry: Option<f64>,
    /// The figure that is counted.
    taken: Option<FigureSource>,
    reason: String,
}

impl Implausible {
    /// A stated amount that cannot be read; `taken` is counted instead.
    pub(super) fn unread(
        quantity: &'static str,
        place: &str,
        taken: Option<&(f64, FigureSource)>,
    ) -> Self {
        let taken = taken.map(|(_, from)| from.clone());
        let end = match &taken {
            Some(from) => format!("the value of the {from} is used"),
            None => "no value is used".to_owned(),
        };
        Self {
            quantity,
            stated: None,
            property: None,
            geometry: None,
            taken,
            reason: format!("{place} cannot be read; {end}"),
        }
    }
}

/// Plausible bounds for the figures of one amount.
pub(super) struct Bounds {
    least: f64,
    most: f64,
    /// Who says what, as a clause of a sentence.
    says: String,
}

impl Bounds {
    /// The bounds `least` and `most`, with their description `shown`.
    pub(super) fn new(least: f64, most: f64, who: &str, figure: f64, unit: &str) -> Option<Self> {
        (most > 0.0).then(|| Self {
            least,
            most,
            says: format!("{who} {} {unit}", shown(figure)),
        })
    }

    pub(super) fn agrees(&self, figure: f64) -> bool {
        (figure >= self.least && figure <= self.most)
            || ((0.0..SMALL).contains(&figure) && self.least < SMALL)
    }
}

/// The stated figures for one amount of an element.
pub(super) struct Amount {
    pub(super) quantity: &'static str,
    pub(super) unit: &'static str,
    pub(super) stated: Option<f64>,
    pub(super) property: Option<(f64, String)>,
    pub(super) geometry: Option<f64>,
    /// The geometry agrees with the element's own dimensions, or with another stated figure.
    pub(super) confirmed: bool,
    /// Units that tools confuse with that of the amount, and how many times larger its figures are.
    pub(super) confused: &'static [(&'static str, f64)],
    pub(super) bounds: Option<Bounds>,
}

pub(super) const VOLUME_UNITS: &[(&str, f64)] = &[
    ("mm³", 1e9),
    ("cm³", 1e6),
    ("litres", 1e3),
    ("ft³", 35.3147),
];
pub(super) const AREA_UNITS: &[(&str, f64)] = &[("mm²", 1e6), ("cm²", 1e4), ("ft²", 10.7639)];
pub(super) const LENGTH_UNITS: &[(&str, f64)] = &[("mm", 1e3), ("cm", 1e2), ("ft", 3.28084)];

impl Amount {
    /// Returns the figure to count. Figures that do not agree are added to `implausible`.
    pub(super) fn settle(
        mut self,
        implausible: &mut Vec<Implausible>,
    ) -> Option<(f64, FigureSource)> {
        // Tools write zero for amounts that they did not measure.
        let other = self.property.as_ref().map(|it| it.0).or(self.geometry);
        self.stated = self.stated.filter(|it| *it != 0.0 || other.is_none());
        let other = self.stated.or(self.geometry);
        self.property = self.property.filter(|it| it.0 != 0.0 || other.is_none());

        let wrong = |figure: f64| {
            figure < 0.0
                || self
                    .bounds
                    .as_ref()
                    .is_some_and(|bounds| !bounds.agrees(figure))
        };
        let mut figures: Vec<(f64, FigureSource)> = Vec::new();
        figures.extend(self.stated.map(|it| (it, FigureSource::QuantitySet)));
        let property = self.property.clone();
        figures.extend(property.map(|(it, from)| (it, FigureSource::Property(from))));
        let all = figures.iter().map(|(figure, _)| *figure);
        let at_odds = matches!(figures[..], [(one, _), (other, _)] if apart(one, other));
        if !at_odds && !all.clone().any(wrong) {
            let first = figures.into_iter().next();
            return first.or_else(|| Some((self.geometry?, FigureSource::Geometry)));
        }
        let right = figures.iter().find(|(figure, _)| !wrong(*figure));
        // A figure that is right in another unit confirms the geometry as well.
        let unit = self
            .geometry
            .filter(|_| !self.confirmed)
            .and_then(|geometry| {
                let first = figures.first()?.0;
                let mut units = self.confused.iter();
                units.find(|(_, times)| (first / times - geometry).abs() <= SAME * geometry)
            });
        let geometry = self.geometry.filter(|_| self.confirmed || unit.is_some());
        let taken = match (&self.bounds, right, geometry) {
            (Some(_), Some(right), _) => Some(right.clone()),
            (_, _, Some(geometry)) => Some((geometry, FigureSource::Geometry)),
            _ => None,
        };
        let said = figures
            .iter()
            .map(|(figure, from)| format!("the {from} says {} {}", shown(*figure), self.unit));
        let says: Vec<String> = said.chain(self.bounds.map(|bounds| bounds.says)).collect();
        let taken_from = taken.as_ref().map(|(_, from)| from.clone());
        let end = match (&taken_from, unit) {
            (Some(from), Some((unit, _))) => {
                format!("the first value is in {unit}; the value of the {from} is used")
            }
            (Some(from), None) => format!("the value of the {from} is used"),
            (None, _) => "no value is used".to_owned(),
        };
        implausible.push(Implausible {
            quantity: self.quantity,
            stated: self.stated,
            property: self.property.map(|(figure, _)| figure),
            geometry: self.geometry,
            taken: taken_from,
            reason: format!("{}; {end}", says.join(", ")),
        });
        taken
    }
}

/// Returns true if two figures of one amount cannot both be right.
fn apart(one: f64, other: f64) -> bool {
    let (least, most) = (one.min(other), one.max(other));
    most > SMALL && least * FACTOR < most
}

/// A figure as people read it.
pub(super) fn shown(figure: f64) -> String {
    let decimals = match figure.abs() {
        large if large >= 1000.0 => 0,
        large if large >= 1.0 => 2,
        _ => 4,
    };
    let text = format!("{figure:.decimals$}");
    let whole = text.find('.').unwrap_or(text.len());
    let mut out = String::new();
    for (at, letter) in text.char_indices() {
        let digits = at > 0 && text.as_bytes()[at - 1].is_ascii_digit();
        if digits && at < whole && (whole - at) % 3 == 0 {
            out.push(',');
        }
        out.push(letter);
    }
    out
}
