//! Property sets: single values as written, and the volumes, areas and lengths that authoring tools put there.

use std::borrow::Cow;

use serde::ser::{Serialize, Serializer};

use super::figures::{FigureName, Figures};
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

/// Sets whose plain numbers are amounts too. Elsewhere only values typed as volumes, areas or lengths are taken.
const SETS: &[&str] = &[
    "dimension",
    "dimensions",
    "psetrevitdimensions",
    "abmessungen",
    "afmetingen",
    "allplanattributes",
    "cotes",
    "cotas",
    "teklaquantity",
    "teklaquantities",
    "basequantities",
];

/// Returns true if a set is one of [`SETS`], without case, spaces and underscores.
fn has_plain_amounts(set: &str) -> bool {
    let letters = || {
        set.bytes()
            .filter(|byte| !matches!(byte, b' ' | b'_' | b'-'))
    };
    SETS.iter().any(|known| {
        letters()
            .map(|byte| byte.to_ascii_lowercase())
            .eq(known.bytes())
    })
}

/// The single values among the properties that `members` (as written) refers to, and the amounts that they state.
pub(crate) fn read<'a>(
    model: &Model<'a>,
    units: &mut Units,
    set: &str,
    members: &[u8],
) -> (OrderedMap<'a, Value<'a>>, Figures) {
    let mut values = OrderedMap::default();
    let mut figures = Figures::default();
    for id in step::references(members) {
        let Some((Role::SingleValue, text)) = model.find(id) else {
            continue;
        };
        let [name, _, nominal, unit] = step::attributes(text);
        let Some(name) = step::string(name) else {
            continue;
        };
        if model.misfits.contains(&id) || is_dropped(nominal) {
            figures.unread.add(&name, id);
            values.add(name, Value::None);
            continue;
        }
        if let Some((typed, number)) = amount(nominal)
            && let Some(figure) = FigureName::of(&name)
            && let Some(measure) = measure_of(figure)
            && typed.map_or_else(|| has_plain_amounts(set), |typed| typed == measure)
        {
            match units.own_or(model, unit, measure) {
                Some(factor) => {
                    figures.offer(figure, number * factor, || format!("{set}.{name}"));
                }
                None => figures.unread.add(&name, id),
            }
        }
        values.add(name, value(nominal));
    }
    (values, figures)
}

/// Returns the measure that a single value (as written) is typed as, if it has no unit of its own.
pub(crate) fn measured(text: &[u8]) -> Option<Measure> {
    let [_, _, nominal, unit] = step::attributes(text);
    let (measure, _) = amount(nominal).filter(|_| step::reference(unit).is_none())?;
    measure
}

/// Returns the amount that a property of this name measures; `None` if such properties are not counted.
fn measure_of(name: FigureName) -> Option<Measure> {
    match name {
        FigureName::NetVolume | FigureName::GrossVolume | FigureName::Volume => {
            Some(Measure::Volume)
        }
        FigureName::Area(_) => Some(Measure::Area),
        FigureName::Length => Some(Measure::Length),
        FigureName::Height | FigureName::Width | FigureName::Depth | FigureName::CrossSection => {
            None
        }
    }
}

/// The types of amounts, with what they measure; plain numbers measure nothing.
const AMOUNTS: &[(&str, Option<Measure>)] = &[
    ("IFCVOLUMEMEASURE", Some(Measure::Volume)),
    ("IFCAREAMEASURE", Some(Measure::Area)),
    ("IFCLENGTHMEASURE", Some(Measure::Length)),
    ("IFCPOSITIVELENGTHMEASURE", Some(Measure::Length)),
    ("IFCREAL", None),
    ("IFCINTEGER", None),
    ("IFCNUMERICMEASURE", None),
    ("IFCPOSITIVEINTEGER", None),
];

/// Returns the number of a measure with its kind, or a plain number.
fn amount(nominal: &[u8]) -> Option<(Option<Measure>, f64)> {
    let (measure, inner) = step::typed(nominal)?;
    let mut amounts = AMOUNTS.iter();
    let is = |name: &str| measure.eq_ignore_ascii_case(name.as_bytes());
    let (_, measure) = *amounts.find(|(name, _)| is(name))?;
    Some((measure, step::number(inner)?))
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

/// Returns true if a nominal value is set and cannot be read, or an item of a list.
pub(crate) fn is_dropped(nominal: &[u8]) -> bool {
    let inner = step::typed(nominal).map_or(nominal, |(_, inner)| inner);
    is_dropped_at(inner, DEEPEST)
}

fn is_dropped_at(value: &[u8], deepest: usize) -> bool {
    match value.first() {
        Some(b'(') if deepest > 0 => {
            step::items(value).any(|item| is_dropped_at(item, deepest - 1))
        }
        _ => !step::is_unset(value) && plain(value, deepest) == Value::None,
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
