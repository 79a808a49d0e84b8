//! The names that volumes, areas and dimensions have in quantity sets and property sets, and the best figure of each.

use super::ordered::OrderedMap;
use crate::ifc::index::Model;
use crate::ifc::schema::Role;
use crate::ifc::step;

/// The kind of an area, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum AreaName {
    NetSide,
    Net,
    /// Only that it is an area.
    Plain,
    GrossSide,
    Gross,
    Surface,
}

/// The kind of a figure by its name, the best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FigureName {
    NetVolume,
    GrossVolume,
    Volume,
    Area(AreaName),
    Length,
    Height,
    Width,
    Depth,
    CrossSection,
}

/// The most figures of one amount that are kept beside the best.
const OTHERS: usize = 8;

/// The most records that are looked through for the amounts of a definition that cannot be read.
const LOST: usize = 4096;

/// The most letters of a name that is looked up.
const LONGEST: usize = 24;

impl FigureName {
    /// Reads a name, without case, spaces, underscores and hyphens.
    pub(crate) fn of(name: &str) -> Option<Self> {
        let mut letters = [0_u8; LONGEST];
        let mut count = 0;
        for byte in name
            .bytes()
            .filter(|byte| !matches!(byte, b' ' | b'_' | b'-'))
        {
            *letters.get_mut(count)? = byte.to_ascii_lowercase();
            count += 1;
        }
        let name = std::str::from_utf8(&letters[..count]).ok()?;
        Some(match name {
            "netvolume" | "volumenet" | "nettovolumen" | "nettovolume" => Self::NetVolume,
            "grossvolume" | "gorssvolume" | "volumegross" | "bruttovolumen" | "brutovolume" => {
                Self::GrossVolume
            }
            "volume" | "volumen" => Self::Volume,
            "netsidearea" | "netsidearealeft" | "netsidearearight" => Self::Area(AreaName::NetSide),
            "grosssidearea" => Self::Area(AreaName::GrossSide),
            "netarea" | "netfloorarea" | "nettofläche" => Self::Area(AreaName::Net),
            "grossarea" | "grossfloorarea" | "bruttofläche" => Self::Area(AreaName::Gross),
            "area" | "fläche" | "oppervlakte" | "surface" | "superficie" | "área" => {
                Self::Area(AreaName::Plain)
            }
            "netsurfacearea" | "grosssurfacearea" | "totalsurfacearea" | "outersurfacearea"
            | "surfacearea" => Self::Area(AreaName::Surface),
            "length" | "netlength" | "grosslength" | "länge" | "lengte" | "longueur"
            | "longitud" | "lunghezza" => Self::Length,
            "height" | "höhe" | "hoogte" => Self::Height,
            "width" | "thickness" | "dicke" | "dikte" => Self::Width,
            "depth" => Self::Depth,
            "crosssectionarea" => Self::CrossSection,
            _ => return None,
        })
    }
}

/// A figure in SI.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Figure {
    pub(crate) value: f64,
    pub(crate) name: FigureName,
    /// The set and the property, `Dimensions.Volume`; empty for quantities.
    pub(crate) from: String,
}

/// Amounts of a set that cannot be read: their measure, and their source.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Unread(Vec<(&'static str, String)>);

impl Unread {
    /// Adds the value called `name` of the record `id`, if it measures an amount.
    pub(crate) fn add(&mut self, name: &str, id: u32) {
        let amount = match FigureName::of(name) {
            Some(FigureName::NetVolume | FigureName::GrossVolume | FigureName::Volume) => "volume",
            Some(FigureName::Area(_)) => "area",
            Some(FigureName::Length) => "length",
            _ => return,
        };
        if self.0.len() < OTHERS {
            self.0.push((amount, format!("`{name}` (#{id})")));
        }
    }

    /// Returns the amounts of a definition whose record does not fit its class.
    pub(crate) fn lost(model: &Model, definition: u32) -> Self {
        let (mut unread, mut open) = (Self::default(), vec![definition]);
        for _ in 0..LOST {
            let Some(id) = open.pop() else {
                break;
            };
            let Some((role, text)) = model.find(id) else {
                continue;
            };
            match role {
                Role::Quantity(_) | Role::SingleValue => {
                    let name = step::string(step::attribute(text, 0));
                    unread.add(&name.unwrap_or_default(), id);
                }
                Role::Type | Role::PropertySet | Role::QuantitySet | Role::ComplexQuantity => {
                    open.extend(step::all_references(text));
                }
                _ => {}
            }
        }
        unread
    }

    pub(crate) fn join(&mut self, other: &Self) {
        let left = OTHERS.saturating_sub(self.0.len());
        self.0.extend(other.0.iter().take(left).cloned());
    }

    /// Returns the places of an amount.
    pub(crate) fn of(&self, amount: &str) -> impl Iterator<Item = &str> {
        let all = self.0.iter().filter(move |(of, _)| *of == amount);
        all.map(|(_, place)| place.as_str())
    }
}

/// The figures that an element's sets state: of each amount the best.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Figures {
    pub(crate) volume: Option<Figure>,
    pub(crate) area: Option<Figure>,
    /// The figures that are not the best.
    pub(crate) volumes: Vec<f64>,
    pub(crate) areas: Vec<f64>,
    pub(crate) length: Option<Figure>,
    pub(crate) height: Option<f64>,
    pub(crate) width: Option<f64>,
    pub(crate) depth: Option<f64>,
    pub(crate) cross_section: Option<f64>,
    pub(crate) unread: Unread,
}

impl Figures {
    /// The figures of quantity sets: of several sets, the first.
    pub(crate) fn of_quantities(quantities: &OrderedMap<OrderedMap<f64>>, unread: Unread) -> Self {
        let mut figures = Self {
            unread,
            ..Self::default()
        };
        for (_, set) in quantities.iter() {
            for (name, &value) in set.iter() {
                if let Some(name) = FigureName::of(name) {
                    figures.offer(name, value, String::new);
                }
            }
        }
        figures
    }

    /// Adds a figure, unless there is one that is as good.
    pub(crate) fn offer(&mut self, name: FigureName, value: f64, from: impl FnOnce() -> String) {
        let (slot, others) = match name {
            FigureName::NetVolume | FigureName::GrossVolume | FigureName::Volume => {
                (&mut self.volume, Some(&mut self.volumes))
            }
            FigureName::Area(_) => (&mut self.area, Some(&mut self.areas)),
            FigureName::Length => (&mut self.length, None),
            FigureName::Height
            | FigureName::Width
            | FigureName::Depth
            | FigureName::CrossSection => {
                let dimension = match name {
                    FigureName::Height => &mut self.height,
                    FigureName::Width => &mut self.width,
                    FigureName::Depth => &mut self.depth,
                    _ => &mut self.cross_section,
                };
                dimension.get_or_insert(value);
                return;
            }
        };
        let is_better = slot.as_ref().is_none_or(|there| name < there.name);
        let other = if is_better {
            let best = Figure {
                value,
                name,
                from: from(),
            };
            slot.replace(best).map(|it| it.value)
        } else {
            Some(value)
        };
        if let Some(others) = others.filter(|it| it.len() < OTHERS) {
            others.extend(other);
        }
    }

    /// Adds the figures of a later set.
    pub(crate) fn join(&mut self, other: Self) {
        for figure in [other.volume, other.area, other.length]
            .into_iter()
            .flatten()
        {
            self.offer(figure.name, figure.value, || figure.from);
        }
        self.unread.join(&other.unread);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_tools_and_countries() {
        for (name, expected) in [
            ("NetVolume", Some(FigureName::NetVolume)),
            ("Netto-Volumen", Some(FigureName::NetVolume)),
            (
                "Gross side area",
                Some(FigureName::Area(AreaName::GrossSide)),
            ),
            ("GrossSideArea", Some(FigureName::Area(AreaName::GrossSide))),
            (
                "Net surface area",
                Some(FigureName::Area(AreaName::Surface)),
            ),
            ("Oppervlakte", Some(FigureName::Area(AreaName::Plain))),
            ("Länge", Some(FigureName::Length)),
            ("GrossFootprintArea", None),
            ("Höhenangabe zum Projekt-Nullpunkt", None),
        ] {
            assert_eq!(FigureName::of(name), expected, "{name}");
        }
    }

    #[test]
    fn of_several_figures_the_best_stays() {
        let mut figures = Figures::default();
        for (name, value) in [
            ("GrossVolume", 5.0),
            ("NetVolume", 4.0),
            ("Volume", 6.0),
            ("NetVolume", 3.0),
        ] {
            figures.offer(FigureName::of(name).unwrap(), value, || name.to_owned());
        }
        let volume = figures.volume.unwrap();
        assert_eq!((volume.value, volume.from.as_str()), (4.0, "NetVolume"));
    }
}
