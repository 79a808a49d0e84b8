//! The figures that an element is counted by: stated quantities first, then properties, then the geometry; and whether they agree.

use std::fmt;

use serde::ser::{Serialize, Serializer};

use super::values::figures::{AreaName, Figure, FigureName, Figures};

/// What the geometry of an element measures, in metres; what it could not measure is none.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Measured {
    pub(super) volume: Option<f64>,
    /// The faces that look up, projected.
    pub(super) top_area: Option<f64>,
    /// The faces that look in the direction of the largest vertical area, projected.
    pub(super) main_side_area: Option<f64>,
    /// All vertical faces.
    pub(super) side_area: Option<f64>,
    pub(super) height: Option<f64>,
    /// Along the longest axis.
    pub(super) length: Option<f64>,
}

/// What the model says of an element's amounts.
pub(super) struct Claims<'e> {
    pub(super) ifc_type: &'e str,
    pub(super) quantities: &'e Figures,
    pub(super) properties: &'e Figures,
    /// Of all layers together, in metres.
    pub(super) thickness: Option<f64>,
}

/// Where a figure comes from.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Source {
    QuantitySet,
    /// The set and the property, `Dimensions.Volume`.
    Property(String),
    Geometry,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::QuantitySet => f.write_str("quantity set"),
            Self::Property(from) => write!(f, "property set: {from}"),
            Self::Geometry => f.write_str("geometry"),
        }
    }
}

impl Serialize for Source {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// What an area is of. Areas of different kinds are never added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub(super) enum AreaKind {
    #[serde(rename = "net side")]
    NetSide,
    #[serde(rename = "gross side")]
    GrossSide,
    #[serde(rename = "net footprint")]
    NetFootprint,
    #[serde(rename = "gross footprint")]
    GrossFootprint,
    #[serde(rename = "surface")]
    Surface,
    #[serde(rename = "not stated")]
    NotStated,
}

/// The figures to count.
#[derive(Debug, PartialEq, serde::Serialize)]
pub(super) struct Takeoff {
    pub(super) volume_m3: Option<f64>,
    volume_from: Option<Source>,
    area_m2: Option<f64>,
    area_kind: Option<AreaKind>,
    area_from: Option<Source>,
    length_m: Option<f64>,
    length_from: Option<Source>,
    height_m: Option<f64>,
    height_from: Option<Source>,
    pub(super) implausible: Vec<Implausible>,
}

/// Figures of one amount that do not agree.
#[derive(Debug, PartialEq, serde::Serialize)]
pub(super) struct Implausible {
    quantity: &'static str,
    stated: Option<f64>,
    property: Option<f64>,
    geometry: Option<f64>,
    /// The figure that is counted.
    taken: Option<Source>,
    reason: String,
}

/// What a class of elements is counted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// By the side: walls, doors, windows.
    Upright,
    /// Seen from above: slabs, footings.
    Flat,
    /// Seen from above, but stated along the slope.
    Roof,
    /// By the larger of both.
    Cover,
    /// By the length.
    Linear,
    Other,
}

impl Shape {
    fn of(ifc_type: &str) -> Self {
        let begins = |names: &[&str]| names.iter().any(|name| ifc_type.starts_with(name));
        if begins(&["IfcWall", "IfcDoor", "IfcWindow", "IfcCurtainWall"]) {
            Self::Upright
        } else if begins(&["IfcSlab", "IfcFooting"]) {
            Self::Flat
        } else if ifc_type == "IfcRoof" {
            Self::Roof
        } else if ifc_type == "IfcCovering" {
            Self::Cover
        } else if begins(&["IfcBeam", "IfcColumn", "IfcMember", "IfcPile", "IfcRailing"])
            || ifc_type.ends_with("Segment")
        {
            Self::Linear
        } else {
            Self::Other
        }
    }
}

/// How far two figures of one amount may be apart.
const FACTOR: f64 = 2.0;

/// How little of the box around it a solid may fill: a thin-walled tube fills about a hundredth.
const HOLLOW: f64 = 0.01;

/// How much of a wall openings may take away.
const OPEN: f64 = 0.1;

/// Figures below this (m, m², m³) are not judged: they are rounded.
const SMALL: f64 = 0.01;

/// Two areas that are this close are of the same faces.
const SAME: f64 = 0.1;

/// What the figures of one amount are judged by: the smallest and the largest that may be.
struct Judge {
    least: f64,
    most: f64,
    /// Who says what, as a clause of a sentence.
    says: String,
}

impl Judge {
    /// What lies between `least` and `most`, of which `shown` is said.
    fn new(least: f64, most: f64, who: &str, figure: f64, unit: &str) -> Option<Self> {
        (most > 0.0).then(|| Self {
            least,
            most,
            says: format!("{who} {} {unit}", shown(figure)),
        })
    }

    fn agrees(&self, figure: f64) -> bool {
        (figure >= self.least && figure <= self.most)
            || ((0.0..SMALL).contains(&figure) && self.least < SMALL)
    }
}

/// What is said of one amount of an element.
struct Amount {
    quantity: &'static str,
    unit: &'static str,
    stated: Option<f64>,
    property: Option<(f64, String)>,
    geometry: Option<f64>,
    /// The geometry agrees with the element's own dimensions.
    confirmed: bool,
    /// Units that tools confuse with that of the amount, and how many times larger its figures are.
    confused: &'static [(&'static str, f64)],
    judge: Option<Judge>,
}

const VOLUME_UNITS: &[(&str, f64)] = &[
    ("mm³", 1e9),
    ("cm³", 1e6),
    ("litres", 1e3),
    ("ft³", 35.3147),
];
const AREA_UNITS: &[(&str, f64)] = &[("mm²", 1e6), ("cm²", 1e4), ("ft²", 10.7639)];
const LENGTH_UNITS: &[(&str, f64)] = &[("mm", 1e3), ("cm", 1e2), ("ft", 3.28084)];

impl Amount {
    /// The figure to count. Figures that do not agree are added to `implausible`.
    fn settle(mut self, implausible: &mut Vec<Implausible>) -> Option<(f64, Source)> {
        // Tools write zero for what they did not measure.
        let other = self.property.as_ref().map(|it| it.0).or(self.geometry);
        self.stated = self.stated.filter(|it| *it != 0.0 || other.is_none());
        let other = self.stated.or(self.geometry);
        self.property = self.property.filter(|it| it.0 != 0.0 || other.is_none());

        let wrong = |figure: f64| {
            figure < 0.0
                || self
                    .judge
                    .as_ref()
                    .is_some_and(|judge| !judge.agrees(figure))
        };
        let mut figures: Vec<(f64, Source)> = Vec::new();
        figures.extend(self.stated.map(|it| (it, Source::QuantitySet)));
        let property = self.property.clone();
        figures.extend(property.map(|(it, from)| (it, Source::Property(from))));
        let all = figures.iter().map(|(figure, _)| *figure);
        let at_odds = matches!(figures[..], [(one, _), (other, _)] if apart(one, other));
        if !at_odds && !all.clone().any(wrong) {
            let first = figures.into_iter().next();
            return first.or_else(|| Some((self.geometry?, Source::Geometry)));
        }
        let right = figures.iter().find(|(figure, _)| !wrong(*figure));
        // A figure that is right in another unit confirms the geometry as well.
        let unit = self.geometry.and_then(|geometry| {
            let first = figures.first()?.0;
            let mut units = self.confused.iter();
            units.find(|(_, times)| (first / times - geometry).abs() <= SAME * geometry)
        });
        let geometry = self.geometry.filter(|_| self.confirmed || unit.is_some());
        let taken = match (&self.judge, right, geometry) {
            (Some(_), Some(right), _) => Some(right.clone()),
            (_, _, Some(geometry)) => Some((geometry, Source::Geometry)),
            _ => None,
        };
        let said = figures
            .iter()
            .map(|(figure, from)| format!("the {from} says {} {}", shown(*figure), self.unit));
        let says: Vec<String> = said.chain(self.judge.map(|judge| judge.says)).collect();
        let taken_from = taken.as_ref().map(|(_, from)| from.clone());
        let end = match (&taken_from, unit) {
            (Some(from), Some((unit, _))) => format!("the first is in {unit}, the {from} counts"),
            (Some(from), None) => format!("the {from} counts"),
            (None, _) => "none counts".to_owned(),
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

/// Whether two figures of one amount cannot both be right.
fn apart(one: f64, other: f64) -> bool {
    let (least, most) = (one.min(other), one.max(other));
    most > SMALL && least * FACTOR < most
}

/// A figure as people read it.
fn shown(figure: f64) -> String {
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

impl Claims<'_> {
    /// What judges a volume: the geometry, else the element's own dimensions.
    fn volume_judge(&self, measured: &Measured) -> Option<Judge> {
        let gross = [self.quantities, self.properties]
            .iter()
            .any(|it| matches!(&it.volume, Some(it) if it.name == FigureName::GrossVolume));
        match measured.volume {
            Some(volume) => {
                let more = if gross { FACTOR / OPEN } else { FACTOR };
                Judge::new(
                    volume / FACTOR,
                    volume * more,
                    "the geometry says",
                    volume,
                    "m³",
                )
            }
            None => self.dimensions(),
        }
    }

    /// The volume that the element's own dimensions allow.
    fn dimensions(&self) -> Option<Judge> {
        let stated = self.quantities;
        let plane = matches!(Shape::of(self.ifc_type), Shape::Upright | Shape::Flat)
            && (self.ifc_type.starts_with("IfcWall") || self.ifc_type.starts_with("IfcSlab"));
        let thickness = if self.ifc_type.starts_with("IfcWall") {
            stated.width.or(self.thickness)
        } else {
            self.thickness.or(stated.depth).or(stated.width)
        };
        let area = stated
            .area
            .as_ref()
            .or(self.properties.area.as_ref())
            .filter(|_| plane);
        let area = area.filter(|it| it.name != FigureName::Area(AreaName::Surface));
        if let (Some(area), Some(thickness)) = (area, thickness.filter(|_| plane)) {
            let volume = area.value * thickness;
            let net = matches!(
                area.name,
                FigureName::Area(AreaName::Net | AreaName::NetSide)
            );
            let least = volume * if net { 1.0 / FACTOR } else { OPEN };
            return Judge::new(
                least,
                volume * FACTOR,
                "area and thickness give",
                volume,
                "m³",
            );
        }
        let length = stated.length.as_ref().map(|it| it.value);
        if let (Some(section), Some(length)) = (stated.cross_section, length) {
            let volume = section * length;
            let least = volume * OPEN;
            return Judge::new(
                least,
                volume * FACTOR,
                "section and length give",
                volume,
                "m³",
            );
        }
        let volume = length? * stated.width? * stated.height.or(stated.depth)?;
        let least = volume * HOLLOW;
        Judge::new(
            least,
            volume * FACTOR,
            "length, width and height give",
            volume,
            "m³",
        )
    }

    /// The area to count, and what it is of.
    fn area(
        &self,
        measured: &Measured,
        implausible: &mut Vec<Implausible>,
    ) -> Option<(AreaKind, (f64, Source))> {
        let shape = Shape::of(self.ifc_type);
        // Panes behind one another are seen once.
        let box_side = measured
            .height
            .zip(measured.length)
            .map(|(it, length)| it * length);
        let side = measured.main_side_area.zip(box_side);
        let side = side.map(|(it, most)| (AreaKind::NetSide, it.min(most)));
        let top = measured.top_area.map(|it| (AreaKind::NetFootprint, it));
        let seen = match shape {
            Shape::Upright => side,
            Shape::Flat | Shape::Roof => top,
            Shape::Cover => match (side, top) {
                (Some(side), Some(top)) if top.1 >= side.1 => Some(top),
                (side, top) => side.or(top),
            },
            Shape::Linear | Shape::Other => None,
        };
        let seen = seen.filter(|it| it.1 > 0.0);
        // Of a curved wall, the faces that look to one side are less than one face.
        let half = measured.side_area.map(|it| it / 2.0);
        let half = half.filter(|_| matches!(seen, Some((AreaKind::NetSide, _))));
        let kind_of = |figure: &Figure| match (self.kind(shape, figure), seen) {
            (AreaKind::NotStated, Some((kind, area))) => {
                let same = |it: f64| (figure.value - it).abs() <= SAME * it;
                // An area of unknown faces counts only if the geometry tells them, or tells nothing.
                (same(area) || half.is_some_and(same)).then_some(kind)
            }
            (AreaKind::Surface, Some(_)) => None,
            (kind, _) => Some(kind),
        };
        let known = |figure: &Option<Figure>| {
            let figure = figure.as_ref()?;
            Some((kind_of(figure)?, figure.value, figure.from.clone()))
        };
        let stated = known(&self.quantities.area);
        let property = known(&self.properties.area);
        let kind = stated.as_ref().or(property.as_ref()).map(|it| it.0);
        let kind = kind.or(seen.map(|it| it.0))?;
        let judge = seen.and_then(|(_, area)| {
            let gross = matches!(kind, AreaKind::GrossSide | AreaKind::GrossFootprint);
            let most =
                area.max(half.unwrap_or_default()) * if gross { FACTOR / OPEN } else { FACTOR };
            Judge::new(area / FACTOR, most, "the geometry says", area, "m²")
        });
        let amount = Amount {
            quantity: "area",
            unit: "m²",
            stated: stated.map(|it| it.1),
            property: property.filter(|it| it.0 == kind).map(|it| (it.1, it.2)),
            geometry: seen.map(|it| it.1),
            confirmed: false,
            confused: AREA_UNITS,
            judge,
        };
        let (area, from) = amount.settle(implausible)?;
        Some((kind, (area, from)))
    }

    /// What a stated area is of.
    fn kind(&self, shape: Shape, figure: &Figure) -> AreaKind {
        let FigureName::Area(name) = figure.name else {
            return AreaKind::NotStated;
        };
        let opening =
            self.ifc_type.starts_with("IfcDoor") || self.ifc_type.starts_with("IfcWindow");
        match (name, shape) {
            (AreaName::NetSide, _) | (AreaName::Net, Shape::Upright) => AreaKind::NetSide,
            (AreaName::GrossSide, _) | (AreaName::Gross, Shape::Upright) => AreaKind::GrossSide,
            (AreaName::Surface, _) => AreaKind::Surface,
            (AreaName::Net, Shape::Flat) => AreaKind::NetFootprint,
            (AreaName::Gross, Shape::Flat) => AreaKind::GrossFootprint,
            // Nothing is cut out of them.
            (AreaName::Plain, Shape::Upright) if opening => AreaKind::NetSide,
            _ => AreaKind::NotStated,
        }
    }
}

/// The figures to count of an element.
pub(super) fn of(claims: &Claims, measured: Option<&Measured>) -> Takeoff {
    let shape = Shape::of(claims.ifc_type);
    let measured = measured.copied().unwrap_or_default();
    let property = |figure: &Option<Figure>| figure.as_ref().map(|it| (it.value, it.from.clone()));
    let value = |figure: &Option<Figure>| figure.as_ref().map(|it| it.value);
    let mut implausible = Vec::new();
    let own = claims.dimensions();
    let volume = Amount {
        quantity: "volume",
        unit: "m³",
        stated: value(&claims.quantities.volume),
        property: property(&claims.properties.volume),
        geometry: measured.volume,
        confirmed: own
            .zip(measured.volume)
            .is_some_and(|(own, volume)| own.agrees(volume)),
        confused: VOLUME_UNITS,
        judge: claims.volume_judge(&measured),
    };
    let volume = volume.settle(&mut implausible);
    let area = claims.area(&measured, &mut implausible);
    // What is bent is longer than its box.
    let straight = shape == Shape::Linear || claims.ifc_type.starts_with("IfcWall");
    let length = measured.length.filter(|_| straight);
    let judge = length.and_then(|length| {
        let least = length.min(measured.height.unwrap_or(length));
        Judge::new(
            least / FACTOR,
            length * FACTOR,
            "the geometry says",
            length,
            "m",
        )
    });
    let length = Amount {
        quantity: "length",
        unit: "m",
        stated: value(&claims.quantities.length),
        property: property(&claims.properties.length),
        geometry: length,
        confirmed: false,
        confused: LENGTH_UNITS,
        judge,
    };
    let length = length.settle(&mut implausible);
    let stated = claims.quantities.height.filter(|it| *it > 0.0);
    let height = stated.map(|it| (it, Source::QuantitySet));
    let height = height.or_else(|| Some((measured.height?, Source::Geometry)));
    let (volume_m3, volume_from) = volume.unzip();
    let (length_m, length_from) = length.unzip();
    let (height_m, height_from) = height.unzip();
    let (area_kind, area) = area.unzip();
    let (area_m2, area_from) = area.unzip();
    Takeoff {
        volume_m3,
        volume_from,
        area_m2,
        area_kind,
        area_from,
        length_m,
        length_from,
        height_m,
        height_from,
        implausible,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// Figures of names and values in `set`.
    fn figures(set: &str, figures: &[(&str, f64)]) -> Figures {
        let mut all = Figures::default();
        for (name, value) in figures {
            let from = || {
                if set.is_empty() {
                    String::new()
                } else {
                    format!("{set}.{name}")
                }
            };
            all.offer(FigureName::of(name).unwrap(), *value, from);
        }
        all
    }

    fn counted(
        ifc_type: &str,
        quantities: &[(&str, f64)],
        properties: &[(&str, f64)],
        measured: Option<Measured>,
    ) -> Value {
        let claims = Claims {
            ifc_type,
            quantities: &figures("", quantities),
            properties: &figures("Dimensions", properties),
            thickness: Some(0.2),
        };
        serde_json::to_value(of(&claims, measured.as_ref())).unwrap()
    }

    /// A wall of 5 m by 3 m by 0.2 m.
    const WALL: Measured = Measured {
        volume: Some(3.0),
        top_area: Some(1.0),
        main_side_area: Some(15.0),
        side_area: Some(31.2),
        height: Some(3.0),
        length: Some(5.0),
    };

    /// A slab of 10 m by 4 m by 0.2 m.
    const SLAB: Measured = Measured {
        volume: Some(8.0),
        top_area: Some(40.0),
        main_side_area: Some(2.0),
        side_area: Some(5.6),
        height: Some(0.2),
        length: Some(10.0),
    };

    #[test]
    fn stated_quantities_count_before_properties_before_the_geometry() {
        let quantities = [
            ("NetVolume", 2.9),
            ("GrossSideArea", 16.0),
            ("Length", 5.1),
            ("Height", 3.1),
        ];
        let properties = [("Volume", 2.8), ("Area", 15.0), ("Length", 5.0)];
        assert_eq!(
            counted("IfcWall", &quantities, &properties, Some(WALL)),
            json!({
                "volume_m3": 2.9, "volume_from": "quantity set",
                "area_m2": 16.0, "area_kind": "gross side", "area_from": "quantity set",
                "length_m": 5.1, "length_from": "quantity set", "height_m": 3.1, "height_from": "quantity set",
                "implausible": []
            })
        );
        assert_eq!(
            counted("IfcWall", &[], &properties, Some(WALL)),
            json!({
                "volume_m3": 2.8, "volume_from": "property set: Dimensions.Volume",
                "area_m2": 15.0, "area_kind": "net side", "area_from": "property set: Dimensions.Area",
                "length_m": 5.0, "length_from": "property set: Dimensions.Length",
                "height_m": 3.0, "height_from": "geometry", "implausible": []
            })
        );
        assert_eq!(
            counted("IfcWall", &[], &[], Some(WALL)),
            json!({
                "volume_m3": 3.0, "volume_from": "geometry",
                "area_m2": 15.0, "area_kind": "net side", "area_from": "geometry",
                "length_m": 5.0, "length_from": "geometry", "height_m": 3.0, "height_from": "geometry",
                "implausible": []
            })
        );
        assert_eq!(
            counted("IfcWall", &[], &[], None),
            json!({
                "volume_m3": null, "volume_from": null, "area_m2": null, "area_kind": null, "area_from": null,
                "length_m": null, "length_from": null, "height_m": null, "height_from": null, "implausible": []
            })
        );
    }

    #[test]
    fn an_area_is_of_one_kind() {
        let area = |ifc_type: &str, quantities: &[(&str, f64)], measured: Option<Measured>| {
            let counted = counted(ifc_type, quantities, &[], measured);
            let from = counted["area_from"].as_str().unwrap_or("none").to_owned();
            let kind = counted["area_kind"].as_str().unwrap_or("none").to_owned();
            (counted["area_m2"].as_f64().unwrap_or(-1.0), kind, from)
        };
        let is = |area: f64, kind: &str, from: &str| (area, kind.to_owned(), from.to_owned());
        for (ifc_type, name, kind) in [
            ("IfcWallStandardCase", "NetSideArea", "net side"),
            ("IfcWall", "Area", "not stated"),
            ("IfcSlab", "NetArea", "net footprint"),
            ("IfcSlab", "GrossArea", "gross footprint"),
            ("IfcSlab", "Area", "not stated"),
            ("IfcRoof", "NetArea", "not stated"),
            ("IfcDoor", "Area", "net side"),
            ("IfcBeam", "OuterSurfaceArea", "surface"),
            ("IfcPlate", "NetArea", "not stated"),
        ] {
            assert_eq!(
                area(ifc_type, &[(name, 2.0)], None),
                is(2.0, kind, "quantity set"),
                "{ifc_type} {name}"
            );
        }
        // The geometry tells what a plain area is of; if it is of other faces, those of the geometry count.
        assert_eq!(
            area("IfcWall", &[("Area", 14.8)], Some(WALL)),
            is(14.8, "net side", "quantity set")
        );
        assert_eq!(
            area("IfcWall", &[("Area", 1.0)], Some(WALL)),
            is(15.0, "net side", "geometry")
        );
        assert_eq!(
            area("IfcWall", &[("TotalSurfaceArea", 33.2)], Some(WALL)),
            is(15.0, "net side", "geometry")
        );
        assert_eq!(
            area("IfcSlab", &[], Some(SLAB)),
            is(40.0, "net footprint", "geometry")
        );
        assert_eq!(
            area("IfcCovering", &[], Some(SLAB)),
            is(40.0, "net footprint", "geometry")
        );
        assert_eq!(
            area("IfcCovering", &[], Some(WALL)),
            is(15.0, "net side", "geometry")
        );
        assert_eq!(area("IfcBeam", &[], Some(SLAB)), is(-1.0, "none", "none"));
        assert_eq!(
            counted("IfcSlab", &[], &[], Some(SLAB))["length_m"],
            Value::Null
        );
    }

    #[test]
    fn of_figures_that_are_apart_the_one_that_the_geometry_confirms_counts() {
        let volume = |quantities: &[(&str, f64)], properties: &[(&str, f64)], measured| {
            let counted = counted("IfcSlab", quantities, properties, measured);
            (
                counted["volume_m3"].clone(),
                counted["volume_from"].clone(),
                counted["implausible"].clone(),
            )
        };
        let litres = [("NetVolume", 8000.0)];
        let right = [("Volume", 8.1)];
        assert_eq!(
            volume(&litres, &right, Some(SLAB)),
            (
                json!(8.1),
                json!("property set: Dimensions.Volume"),
                json!([{
                    "quantity": "volume", "stated": 8000.0, "property": 8.1, "geometry": 8.0,
                    "taken": "property set: Dimensions.Volume",
                    "reason": "the quantity set says 8,000 m³, the property set: Dimensions.Volume says 8.10 m³, \
                               the geometry says 8.00 m³; the property set: Dimensions.Volume counts"
                }])
            )
        );
        let (none, from, why) = volume(&litres, &right, None);
        assert_eq!((none, from), (Value::Null, Value::Null));
        assert_eq!(why[0]["taken"], Value::Null);
        let (none, _, why) = volume(&[("NetVolume", 700.0)], &[], Some(SLAB));
        assert_eq!((none, &why[0]["geometry"]), (Value::Null, &json!(8.0)));
        let (taken, from, why) = volume(&[("NetVolume", 8.1e9)], &[], Some(SLAB));
        assert_eq!((taken, from), (json!(8.0), json!("geometry")));
        assert_eq!(
            why[0]["reason"],
            "the quantity set says 8,100,000,000 m³, the geometry says 8.00 m³; the first is in mm³, the geometry counts"
        );
        // Within a factor of 2, and where openings are not taken off, nothing is wrong.
        assert_eq!(volume(&[("NetVolume", 15.0)], &[], Some(SLAB)).2, json!([]));
        assert_eq!(
            volume(&[("GrossVolume", 30.0)], &[], Some(SLAB)).2,
            json!([])
        );
        // Zero is what tools write for what they did not measure.
        assert_eq!(volume(&[("NetVolume", 0.0)], &[], Some(SLAB)).0, json!(8.0));
        assert_eq!(volume(&[("NetVolume", 0.0)], &right, None).0, json!(8.1));
        assert_eq!(volume(&[("NetVolume", 0.0)], &[], None).0, json!(0.0));
        assert_eq!(volume(&[("NetVolume", -8.0)], &[], None).0, Value::Null);
        // Small figures are rounded.
        assert_eq!(
            volume(&[("NetVolume", 0.001)], &[("Volume", 0.009)], None).0,
            json!(0.001)
        );
    }

    #[test]
    fn dimensions_judge_where_no_geometry_does() {
        let volume = |ifc_type: &str, quantities: &[(&str, f64)], properties: &[(&str, f64)]| {
            let counted = counted(ifc_type, quantities, properties, None);
            (
                counted["volume_m3"].clone(),
                counted["implausible"][0]["reason"].clone(),
            )
        };
        assert_eq!(
            volume("IfcSlab", &[("NetVolume", 8000.0), ("NetArea", 40.0)], &[]),
            (
                Value::Null,
                json!(
                    "the quantity set says 8,000 m³, area and thickness give 8.00 m³; none counts"
                )
            )
        );
        assert_eq!(
            volume(
                "IfcSlab",
                &[("NetVolume", 8000.0), ("NetArea", 40.0)],
                &[("Volume", 8.0)]
            )
            .0,
            json!(8.0)
        );
        assert_eq!(
            volume("IfcWall", &[("NetVolume", 2.0), ("NetSideArea", 15.0)], &[]).0,
            json!(2.0)
        );
        let beam = [("Length", 6.0), ("Width", 0.2), ("Height", 0.4)];
        let with = |volume: f64| [&beam[..], &[("NetVolume", volume)]].concat();
        assert_eq!(
            volume("IfcBeam", &with(0.03), &[]).0,
            json!(0.03),
            "a hollow section"
        );
        assert_eq!(volume("IfcBeam", &with(480.0), &[]).0, Value::Null);
        let section = [
            ("Length", 6.0),
            ("CrossSectionArea", 0.08),
            ("NetVolume", 480.0),
        ];
        assert_eq!(volume("IfcColumn", &section, &[]).0, Value::Null);
        // Where the dimensions and the geometry agree, the geometry counts.
        let slab = [("NetVolume", 8000.0), ("NetArea", 40.0)];
        let counted = counted("IfcSlab", &slab, &[], Some(SLAB));
        assert_eq!(
            (&counted["volume_m3"], &counted["implausible"][0]["taken"]),
            (&json!(8.0), &json!("geometry"))
        );
    }

    #[test]
    fn figures_are_shown_as_people_read_them() {
        for (figure, text) in [
            (168_172_000_161.0, "168,172,000,161"),
            (1234.5, "1,234"),
            (999.994, "999.99"),
            (0.0123, "0.0123"),
            (-1500.0, "-1,500"),
        ] {
            assert_eq!(shown(figure), text);
        }
    }
}
