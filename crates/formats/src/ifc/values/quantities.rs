//! Quantity sets in SI, and the volume, area and length picked from them.

use std::borrow::Cow;

use super::figures::Unread;
use super::ordered::OrderedMap;
use super::units::Units;
use crate::ifc::index::Model;
use crate::ifc::limits::NESTED;
use crate::ifc::schema::Role;
use crate::ifc::step;

/// Quantities by set and name; complex ones as `Complex.Sub`.
pub(crate) type Quantities<'a> = OrderedMap<'a, OrderedMap<'a, f64>>;

/// Volumes, the best first.
pub(crate) const VOLUMES: &[&str] = &["NetVolume", "GrossVolume", "Volume"];

/// Areas, the best first.
pub(crate) const AREAS: &[&str] = &[
    "NetSideArea",
    "NetArea",
    "NetFloorArea",
    "NetSurfaceArea",
    "Area",
    "GrossSideArea",
    "GrossArea",
    "GrossFloorArea",
    "GrossSurfaceArea",
    "TotalSurfaceArea",
    "OuterSurfaceArea",
];

/// Lengths, the best first.
pub(crate) const LENGTHS: &[&str] = &["Length", "NetLength", "GrossLength"];

/// Returns the first of `names` that any set has; of several sets, the first.
pub(crate) fn pick(quantities: &Quantities, names: &[&str]) -> Option<f64> {
    names
        .iter()
        .find_map(|name| quantities.iter().find_map(|(_, set)| set.get(name)))
        .copied()
}

/// Returns the quantities that `members` (as written) refers to, and those that cannot be read.
pub(crate) fn read<'a>(
    model: &Model<'a>,
    units: &mut Units,
    members: &[u8],
) -> (OrderedMap<'a, f64>, Unread) {
    let mut read = (OrderedMap::default(), Unread::default());
    collect(model, units, members, "", NESTED, &mut read);
    read
}

fn collect<'a>(
    model: &Model<'a>,
    units: &mut Units,
    members: &[u8],
    prefix: &str,
    deepest: usize,
    read: &mut (OrderedMap<'a, f64>, Unread),
) {
    for id in step::references(members) {
        match model.find(id) {
            Some((Role::Quantity(measure), text)) => {
                let [name, _, unit, value] = step::attributes(text);
                let name = step::string(name).unwrap_or_default();
                let mut own = || units.own_or(model, unit, measure);
                let Some(value) = model.number(id, value).and_then(|it| Some(it * own()?)) else {
                    if !step::is_unset(value) {
                        read.1.add(&name, id);
                    }
                    continue;
                };
                let name = if prefix.is_empty() {
                    name
                } else {
                    Cow::Owned(format!("{prefix}{name}"))
                };
                read.0.add(name, value);
            }
            Some((Role::ComplexQuantity, _)) if model.misfits.contains(&id) => {
                read.1.join(&Unread::lost(model, id));
            }
            Some((Role::ComplexQuantity, text)) if deepest > 0 => {
                let [name, _, members] = step::attributes(text);
                let prefix = format!("{prefix}{}.", step::string(name).unwrap_or_default());
                collect(model, units, members, &prefix, deepest - 1, read);
            }
            _ => {}
        }
    }
}
