//! Property sets: single values as written, and the volume that authoring tools put there.

use std::borrow::Cow;

use serde::ser::{Serialize, Serializer};

use super::ordered::OrderedMap;
use super::units::Units;
use crate::ifc::index::Model;
use crate::ifc::schema::{Measure, Role};
use crate::ifc::step::{self, Number};

/// A property's value, in the unit of the file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value<'a> {
    Text(Cow<'a, str>),
    Real(f64),
    Integer(i64),
    Flag(bool),
    List(Vec<Value<'a>>),
    None,
}

impl Serialize for Value<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => serializer.serialize_str(text),
            Self::Real(number) => serializer.serialize_f64(*number),
            Self::Integer(number) => serializer.serialize_i64(*number),
            Self::Flag(flag) => serializer.serialize_bool(*flag),
            Self::List(values) => serializer.collect_seq(values),
            Self::None => serializer.serialize_none(),
        }
    }
}

/// Property values by set and name.
pub(crate) type Properties<'a> = OrderedMap<'a, OrderedMap<'a, Value<'a>>>;

/// A volume that a property set states.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Stated {
    /// In cubic metres.
    pub(crate) volume: f64,
    /// The set and the property, `Dimensions.Volume`.
    pub(crate) from: String,
    rank: usize,
}

impl Stated {
    /// The better of two: a net volume before a gross one before one that does not say; else the first.
    pub(crate) fn better(first: Option<Self>, second: Option<Self>) -> Option<Self> {
        match (first, second) {
            (Some(first), Some(second)) if second.rank < first.rank => Some(second),
            (first, second) => first.or(second),
        }
    }
}

/// What volumes are called, the best first; compared without case, spaces and underscores.
const VOLUMES: &[&str] = &[
    "netvolume",
    "volumenet",
    "nettovolumen",
    "nettovolume",
    "grossvolume",
    "volumegross",
    "bruttovolumen",
    "brutovolume",
    "volume",
    "volumen",
];

/// Sets whose plain numbers are volumes too. Elsewhere only values typed as volumes are taken: a tank's `Volume` is what it
/// holds.
const SETS: &[&str] = &[
    "dimensions",
    "psetrevitdimensions",
    "teklaquantity",
    "teklaquantities",
    "basequantities",
];

/// Whether `name`, without case, spaces and underscores, is the `at`th of `names`.
fn position(name: &str, names: &[&str]) -> Option<usize> {
    let letters = || {
        name.bytes()
            .filter(|byte| !matches!(byte, b' ' | b'_' | b'-'))
    };
    names.iter().position(|known| {
        letters()
            .map(|byte| byte.to_ascii_lowercase())
            .eq(known.bytes())
    })
}

/// The single values among the properties that `members` (as written) refers to, and the volume that they state.
pub(crate) fn read<'a>(
    model: &Model<'a>,
    units: &mut Units,
    set: &str,
    members: &[u8],
) -> (OrderedMap<'a, Value<'a>>, Option<Stated>) {
    let mut values = OrderedMap::default();
    let mut stated = None;
    for id in step::references(members) {
        let Some((Role::SingleValue, text)) = model.find(id) else {
            continue;
        };
        let [name, _, nominal, unit] = step::attributes(text);
        let Some(name) = step::string(name) else {
            continue;
        };
        if let Some(rank) = position(&name, VOLUMES)
            && let Some(number) = volume(set, nominal)
        {
            let volume = number * units.own_or(model, unit, Measure::Volume);
            stated = Stated::better(
                stated,
                Some(Stated {
                    volume,
                    from: format!("{set}.{name}"),
                    rank,
                }),
            );
        }
        values.add(name, value(nominal));
    }
    (values, stated)
}

/// The number of a volume, in the unit of the file: a volume measure, or in some sets any plain number.
fn volume(set: &str, nominal: &[u8]) -> Option<f64> {
    let (measure, inner) = step::typed(nominal)?;
    let is = |name: &str| measure.eq_ignore_ascii_case(name.as_bytes());
    let plain =
        is("IFCREAL") || is("IFCINTEGER") || is("IFCNUMERICMEASURE") || is("IFCPOSITIVEINTEGER");
    (is("IFCVOLUMEMEASURE") || plain && position(set, SETS).is_some())
        .then(|| step::number(inner))
        .flatten()
}

/// How deep lists may be nested.
const DEEPEST: usize = 4;

/// A nominal value as JSON: `IFCBOOLEAN(.T.)` is true, an unknown logical `"UNKNOWN"`, what is not set null.
fn value(nominal: &[u8]) -> Value<'_> {
    step::typed(nominal).map_or_else(
        || plain(nominal, DEEPEST),
        |(_, inner)| plain(inner, DEEPEST),
    )
}

fn plain(value: &[u8], deepest: usize) -> Value<'_> {
    match value.first() {
        Some(b'\'') => step::string(value).map_or(Value::None, Value::Text),
        Some(b'.') if value.get(1).is_some_and(u8::is_ascii_alphabetic) => {
            match step::enumeration(value) {
                Some("T") => Value::Flag(true),
                Some("F") => Value::Flag(false),
                Some("U" | "X") => Value::Text(Cow::Borrowed("UNKNOWN")),
                Some(name) => Value::Text(Cow::Borrowed(name)),
                None => Value::None,
            }
        }
        Some(b'"') => binary(value),
        Some(b'(') if deepest > 0 => Value::List(
            step::items(value)
                .map(|item| plain(item, deepest - 1))
                .collect(),
        ),
        _ => match step::literal(value) {
            Some(Number::Integer(number)) => Value::Integer(number),
            Some(Number::Real(number)) => Value::Real(number),
            None => Value::None,
        },
    }
}

/// A binary as its bits: `"0FF"` is `11111111`; the first digit says how many bits at the front do not count.
fn binary(value: &[u8]) -> Value<'_> {
    let digits = value
        .strip_prefix(b"\"")
        .and_then(|rest| rest.strip_suffix(b"\""))
        .unwrap_or_default();
    let Some((skipped, digits)) = digits.split_first() else {
        return Value::None;
    };
    let nibbles = digits
        .iter()
        .filter_map(|&digit| char::from(digit).to_digit(16));
    let bits: String = nibbles
        .flat_map(|nibble| [8, 4, 2, 1].map(|bit| if nibble & bit == 0 { '0' } else { '1' }))
        .collect();
    let skipped = usize::from(skipped.saturating_sub(b'0'));
    Value::Text(Cow::Owned(
        bits.get(skipped..).unwrap_or_default().to_owned(),
    ))
}
