//! Quantity sets in SI, and the volume, area and length picked from them.

use std::borrow::Cow;

use super::index::Model;
use super::named::Named;
use super::schema::Role;
use super::step;
use super::units::Units;

/// Quantities by set and name; complex ones as `Complex.Sub`.
pub(super) type Quantities<'a> = Named<'a, Named<'a, f64>>;

/// Volumes, the best first.
pub(super) const VOLUMES: &[&str] = &["NetVolume", "GrossVolume", "Volume"];

/// Areas, the best first.
pub(super) const AREAS: &[&str] = &[
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
pub(super) const LENGTHS: &[&str] = &["Length", "NetLength", "GrossLength"];

/// How deep complex quantities may be nested.
const DEEPEST: usize = 8;

/// The first of `names` that any set has; of several sets, the first.
pub(super) fn pick(quantities: &Quantities, names: &[&str]) -> Option<f64> {
    names
        .iter()
        .find_map(|name| quantities.iter().find_map(|(_, set)| set.get(name)))
        .copied()
}

/// The quantities that `members` (as written) refers to.
pub(super) fn read<'a>(model: &Model<'a>, units: &mut Units, members: &[u8]) -> Named<'a, f64> {
    let mut values = Named::default();
    collect(model, units, members, "", DEEPEST, &mut values);
    values
}

fn collect<'a>(
    model: &Model<'a>,
    units: &mut Units,
    members: &[u8],
    prefix: &str,
    deepest: usize,
    values: &mut Named<'a, f64>,
) {
    for id in step::references(members) {
        match model.find(id) {
            Some((Role::Quantity(measure), text)) => {
                let [name, _, unit, value] = step::attributes(text);
                let Some(value) = step::number(value) else {
                    continue;
                };
                let name = step::string(name).unwrap_or_default();
                let name = if prefix.is_empty() {
                    name
                } else {
                    Cow::Owned(format!("{prefix}{name}"))
                };
                values.add(name, value * units.own_or(model, unit, measure));
            }
            Some((Role::ComplexQuantity, text)) if deepest > 0 => {
                let [name, _, members] = step::attributes(text);
                let prefix = format!("{prefix}{}.", step::string(name).unwrap_or_default());
                collect(model, units, members, &prefix, deepest - 1, values);
            }
            _ => {}
        }
    }
}
