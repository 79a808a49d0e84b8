//! The figures that an element is counted by: stated quantities first, then properties, then the geometry; and whether they agree.

mod amount;

use amount::{
    AREA_UNITS, Amount, Bounds, FACTOR, FigureSource, Implausible, LENGTH_UNITS, SAME, VOLUME_UNITS,
};

use super::values::figures::{AreaName, Figure, FigureName, Figures};

/// Measures of the geometry of an element, in metres; `None` if they are unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Measured {
    pub(super) volume: Option<f64>,
    /// The faces that look up, projected.
    pub(super) top_area: Option<f64>,
    /// The faces that look in the direction of the largest vertical area, projected.
    pub(super) main_side_area: Option<f64>,
    /// All vertical faces.
    pub(super) side_area: Option<f64>,
    /// All faces.
    pub(super) surface: Option<f64>,
    pub(super) height: Option<f64>,
    /// Along the longest axis.
    pub(super) length: Option<f64>,
    /// Along the longer and the shorter of the axes that lie in the plan.
    pub(super) plan: Option<[f64; 2]>,
    /// The record because of which the geometry cannot be read.
    pub(super) lost: Option<u32>,
}

/// The stated amounts of an element.
pub(super) struct Claims<'e> {
    pub(super) ifc_type: &'e str,
    pub(super) quantities: &'e Figures,
    pub(super) properties: &'e Figures,
    /// Of all layers together, in metres.
    pub(super) thickness: Option<f64>,
}

/// The kind of an area. Areas of different kinds are never added.
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
    volume_from: Option<FigureSource>,
    area_m2: Option<f64>,
    area_kind: Option<AreaKind>,
    area_from: Option<FigureSource>,
    length_m: Option<f64>,
    length_from: Option<FigureSource>,
    height_m: Option<f64>,
    height_from: Option<FigureSource>,
    pub(super) implausible: Vec<Implausible>,
}

/// The unit by which a class of elements is counted.
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

/// How little of the box around it a solid may fill: a thin-walled tube fills about a hundredth.
const HOLLOW: f64 = 0.01;

/// An area that is this close to that of all faces is theirs.
const ALL: f64 = 0.01;

/// The share of a wall that openings may remove.
const OPEN: f64 = 0.1;

impl Claims<'_> {
    /// Returns the plausible range of a volume: by the geometry, else by the element's own dimensions.
    fn volume_bounds(&self, measured: &Measured) -> Option<Bounds> {
        let gross = [self.quantities, self.properties]
            .iter()
            .any(|it| matches!(&it.volume, Some(it) if it.name == FigureName::GrossVolume));
        match measured.volume {
            Some(volume) => {
                let more = if gross { FACTOR / OPEN } else { FACTOR };
                Bounds::new(
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

    /// Returns the volume that the element's own dimensions allow.
    fn dimensions(&self) -> Option<Bounds> {
        let bounds = |least: f64, volume: f64, who: &str| {
            Bounds::new(least, volume * FACTOR, who, volume, "m³")
        };
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
            return bounds(least, volume, "area and thickness give");
        }
        let length = stated.length.as_ref().map(|it| it.value);
        if let (Some(section), Some(length)) = (stated.cross_section, length) {
            let volume = section * length;
            return bounds(volume * OPEN, volume, "section and length give");
        }
        let volume = length? * stated.width? * stated.height.or(stated.depth)?;
        bounds(volume * HOLLOW, volume, "length, width and height give")
    }

    /// Returns the area to count, and its kind.
    fn area(
        &self,
        measured: &Measured,
        implausible: &mut Vec<Implausible>,
    ) -> Option<(AreaKind, (f64, FigureSource))> {
        let shape = Shape::of(self.ifc_type);
        // Panes and leaves behind one another are seen once.
        let box_side = measured
            .height
            .zip(measured.plan)
            .map(|(it, [length, _])| it * length);
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
        // The area of all faces, if that is much more than the area of the side.
        let all_faces = |area: f64| measured.surface.filter(|all| *all > area * FACTOR);
        let kind_of = |figure: &Figure| match (self.kind(shape, figure), seen) {
            (AreaKind::NotStated, Some((kind, area))) => {
                let is_of = |it: f64| same(figure.value, it);
                // An area of unknown faces counts only if the geometry tells them, or tells nothing.
                (is_of(area) || half.is_some_and(is_of)).then_some(kind)
            }
            (AreaKind::Surface, Some(_)) => None,
            // Some tools state the area of all faces as that of the side.
            (AreaKind::NetSide | AreaKind::GrossSide, Some((_, area)))
                if all_faces(area).is_some_and(|all| (figure.value - all).abs() <= ALL * all) =>
            {
                None
            }
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
        let seen = seen.map(|it| it.1);
        let bounds = self.area_bounds(kind, seen, half, measured);
        let surface = measured.surface.filter(|_| kind == AreaKind::Surface);
        let amount = Amount {
            quantity: "area",
            unit: "m²",
            stated: stated.map(|it| it.1),
            property: property.filter(|it| it.0 == kind).map(|it| (it.1, it.2)),
            geometry: surface.or(seen),
            confirmed: seen.is_some_and(|area| {
                confirms(self.quantities.area.as_ref(), &self.quantities.areas, area)
            }),
            confused: AREA_UNITS,
            bounds,
        };
        let (area, from) = amount.settle(implausible)?;
        Some((kind, (area, from)))
    }

    /// Returns the plausible range of an area: by the visible area of the element, else by all faces. `half` is half of all sides
    /// of an upright element.
    fn area_bounds(
        &self,
        kind: AreaKind,
        seen: Option<f64>,
        half: Option<f64>,
        measured: &Measured,
    ) -> Option<Bounds> {
        if kind == AreaKind::NotStated && seen.is_none() {
            let all = measured.surface?;
            let most = all * (1.0 + SAME);
            return Bounds::new(0.0, most, "all faces of the geometry have", all, "m²");
        }
        let surface = measured.surface.filter(|_| kind == AreaKind::Surface);
        let area = surface.or(seen)?;
        let is_gross = matches!(kind, AreaKind::GrossSide | AreaKind::GrossFootprint);
        let more = if is_gross { FACTOR / OPEN } else { FACTOR };
        // The sides of several leaves are more than the side of the wall, which is its volume over its width.
        let is_wall = self.ifc_type.starts_with("IfcWall");
        let width = self.quantities.width.or(self.thickness);
        let one_leaf = measured.volume.zip(width.filter(|it| is_wall && *it > 0.0));
        let one_leaf = one_leaf.map_or(area, |(volume, width)| volume / width);
        let (least, most) = (area.min(one_leaf), area.max(half.unwrap_or_default()));
        Bounds::new(least / FACTOR, most * more, "the geometry says", area, "m²")
    }

    /// Returns the length by the geometry, and the plausible range of a length.
    fn length(&self, measured: &Measured) -> (Option<f64>, Option<Bounds>) {
        let around = |least: f64, most: f64| {
            Bounds::new(
                least / FACTOR,
                most * FACTOR,
                "the geometry says",
                most,
                "m",
            )
        };
        // A wall may be higher than it is long, and thicker.
        if self.ifc_type.starts_with("IfcWall") {
            let bounds = measured.plan.and_then(|[most, least]| around(least, most));
            return (measured.plan.map(|it| it[0]), bounds);
        }
        // A bent element, such as most railings, is longer than its bounding box.
        let straight = Shape::of(self.ifc_type) == Shape::Linear && self.ifc_type != "IfcRailing";
        let length = measured.length.filter(|_| straight);
        let bounds =
            length.and_then(|length| around(length.min(measured.height.unwrap_or(length)), length));
        (length, bounds)
    }

    /// Returns the kind of a stated area.
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
            // Nothing is cut out of them; but the property is of all their faces.
            (AreaName::Plain, Shape::Upright) if opening && figure.from.is_empty() => {
                AreaKind::NetSide
            }
            _ => AreaKind::NotStated,
        }
    }
}

/// Returns true if one of the other stated figures is that of the geometry, and the best is more: no net figure is more than the gross one.
fn confirms(best: Option<&Figure>, others: &[f64], measured: f64) -> bool {
    let best = best.map_or(0.0, |it| it.value);
    others.iter().any(|it| *it < best && same(*it, measured))
}

/// Returns true if two figures are of the same amount.
fn same(one: f64, other: f64) -> bool {
    (one - other).abs() <= SAME * other
}

/// Returns the figures to count of an element.
pub(super) fn of(claims: &Claims, measured: Option<&Measured>) -> Takeoff {
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
        confirmed: measured.volume.is_some_and(|volume| {
            confirms(
                claims.quantities.volume.as_ref(),
                &claims.quantities.volumes,
                volume,
            )
        }) || own
            .zip(measured.volume)
            .is_some_and(|(own, volume)| own.agrees(volume)),
        confused: VOLUME_UNITS,
        bounds: claims.volume_bounds(&measured),
    };
    let volume = volume.settle(&mut implausible);
    let area = claims.area(&measured, &mut implausible);
    let (length, bounds) = claims.length(&measured);
    let length = Amount {
        quantity: "length",
        unit: "m",
        stated: value(&claims.quantities.length),
        property: property(&claims.properties.length),
        geometry: length,
        confirmed: false,
        confused: LENGTH_UNITS,
        bounds,
    };
    let length = length.settle(&mut implausible);
    for (quantity, taken) in [
        ("volume", volume.as_ref()),
        ("area", area.as_ref().map(|(_, area)| area)),
        ("length", length.as_ref()),
    ] {
        let stated = [claims.quantities, claims.properties].into_iter();
        let places = stated.flat_map(|stated| stated.unread.of(quantity));
        implausible.extend(places.map(|place| Implausible::unread(quantity, place, taken)));
    }
    if let Some(id) = measured.lost {
        let place = format!("the geometry (#{id})");
        implausible.push(Implausible::unread("volume", &place, volume.as_ref()));
    }
    let stated = claims.quantities.height.filter(|it| *it > 0.0);
    let height = stated.map(|it| (it, FigureSource::QuantitySet));
    let height = height.or_else(|| Some((measured.height?, FigureSource::Geometry)));
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
mod tests;
