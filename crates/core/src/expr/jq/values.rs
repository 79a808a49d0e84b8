//! JSON values to jaq's and back, without losing the order of keys, integers or the last digit.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::fmt;

use jaq_json::{Map as ValMap, Num, Val};
use serde::Serialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::direct::demand::Demand;
use crate::expr::json;

/// A JSON value as jaq's. Strings are moved, not copied.
pub(crate) fn to_val(value: Value) -> Val {
    match value {
        Value::Null => Val::Null,
        Value::Bool(flag) => Val::Bool(flag),
        Value::Number(number) => Val::Num(to_num(&number)),
        Value::String(text) => Val::utf8_str(text),
        Value::Array(items) => items.into_iter().map(to_val).collect(),
        Value::Object(map) => {
            let object: ValMap = map
                .into_iter()
                .map(|(key, value)| (Val::utf8_str(key), to_val(value)))
                .collect();
            Val::obj(object)
        }
    }
}

/// Returns what is needed of a JSON value; the rest is not copied.
pub(crate) fn part(value: &Value, demand: &Demand) -> Val {
    match value {
        Value::Null => Val::Null,
        Value::Bool(flag) => Val::Bool(*flag),
        Value::Number(number) => Val::Num(to_num(number)),
        Value::String(text) => Val::utf8_str(text.clone()),
        Value::Array(items) => {
            let inside = demand.items().into_iter();
            let needed = inside.flat_map(|inside| items.iter().map(|item| part(item, inside)));
            needed.collect()
        }
        Value::Object(map) => {
            let field = |(key, value): (&String, &Value)| {
                let needed = part(value, demand.field(key)?);
                Some((Val::utf8_str(key.clone()), needed))
            };
            Val::obj(map.iter().filter_map(field).collect())
        }
    }
}

/// Returns what is needed of the value of a JSON text; the rest is skipped.
///
/// # Errors
/// If the text is not JSON.
pub(crate) fn read(text: &str, demand: &Demand) -> Result<Val, serde_json::Error> {
    read_with(text, demand, false)
}

/// Like [`read`], but also checks the parts that are not needed, as [`json::parse`] does.
///
/// # Errors
/// If the text is not JSON, or [`json::parse`] refuses it.
pub(crate) fn read_checked(text: &str, demand: &Demand) -> Result<Val, serde_json::Error> {
    read_with(text, demand, true)
}

fn read_with(text: &str, demand: &Demand, checks: bool) -> Result<Val, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let rounded = Cell::new(false);
    let fields = Fields {
        demand,
        rounded: &rounded,
        checks,
    };
    let val = fields.deserialize(&mut deserializer)?;
    deserializer.end()?;
    json::check_integers(text, &rounded)?;
    Ok(val)
}

/// Builds values, of lists and objects what is needed.
#[derive(Clone, Copy)]
struct Fields<'a> {
    demand: &'a Demand,
    /// Set when a number may be a rounded integer.
    rounded: &'a Cell<bool>,
    /// Whether what is not needed is checked.
    checks: bool,
}

impl<'a> Fields<'a> {
    fn of(self, demand: &'a Demand) -> Self {
        Self { demand, ..self }
    }

    fn checked(self) -> Option<json::SkipChecked<'a>> {
        let rounded = self.rounded;
        self.checks.then_some(json::SkipChecked { rounded })
    }
}

impl<'de> DeserializeSeed<'de> for Fields<'_> {
    type Value = Val;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Val, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Fields<'_> {
    type Value = Val;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Val, E> {
        Ok(Val::Null)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Val, E> {
        Ok(Val::Bool(flag))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Val, E> {
        Ok(Val::Num(Num::from_integral(number)))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Val, E> {
        Ok(Val::Num(Num::from_integral(number)))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Val, E> {
        json::note_rounding(number, self.rounded);
        Ok(Val::Num(Num::Float(number)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Val, E> {
        Ok(Val::utf8_str(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Val, A::Error> {
        let Some(demand) = self.demand.items() else {
            match self.checked() {
                Some(checked) => while items.next_element_seed(checked)?.is_some() {},
                None => while items.next_element::<IgnoredAny>()?.is_some() {},
            }
            return Ok(std::iter::empty::<Val>().collect());
        };
        let inside = self.of(demand);
        std::iter::from_fn(|| items.next_element_seed(inside).transpose()).collect()
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Val, A::Error> {
        let mut object = ValMap::default();
        let mut skipped = BTreeSet::new();
        while let Some(key) = entries.next_key_seed(json::Key)? {
            let Some(demand) = self.demand.field(&key) else {
                match self.checked() {
                    Some(checked) => {
                        json::add_key(&mut skipped, key)?;
                        entries.next_value_seed(checked)?;
                    }
                    None => _ = entries.next_value::<IgnoredAny>()?,
                }
                continue;
            };
            let key = Val::utf8_str(key.into_owned());
            if object.contains_key(&key) {
                let key = key.to_string();
                return Err(A::Error::custom(json::twice(key.trim_matches('"'))));
            }
            object.insert(key, entries.next_value_seed(self.of(demand))?);
        }
        if self.checks {
            // A list of many files holds as many objects.
            object.shrink_to_fit();
        }
        Ok(Val::obj(object))
    }
}

fn to_num(number: &Number) -> Num {
    if let Some(integer) = number.as_i64() {
        Num::from_integral(integer)
    } else if let Some(integer) = number.as_u64() {
        Num::from_integral(integer)
    } else {
        Num::Float(number.as_f64().unwrap_or(f64::NAN))
    }
}

/// A jaq value as JSON.
///
/// # Errors
/// Values that JSON cannot hold: NaN, infinity, bytes that are not text, keys that are not strings.
pub(crate) fn to_value(val: Val) -> Result<Value, String> {
    Ok(match val {
        Val::Null => Value::Null,
        Val::Bool(flag) => Value::Bool(flag),
        Val::Num(number) => to_number(&number)?,
        Val::TStr(bytes) | Val::BStr(bytes) => Value::String(to_text(*bytes)?),
        Val::Arr(items) => {
            let mut list = Vec::with_capacity(items.len());
            match std::rc::Rc::try_unwrap(items) {
                Ok(items) => {
                    for item in items {
                        list.push(to_value(item)?);
                    }
                }
                Err(items) => {
                    for item in items.iter() {
                        list.push(to_value(item.clone())?);
                    }
                }
            }
            Value::Array(list)
        }
        Val::Obj(object) => {
            let mut map = Map::with_capacity(object.len());
            let mut put = |key: Val, value: Val| match key {
                Val::TStr(bytes) | Val::BStr(bytes) => {
                    map.insert(to_text(*bytes)?, to_value(value)?);
                    Ok(())
                }
                other => Err(format!("the key {other} of an object is not a string")),
            };
            match std::rc::Rc::try_unwrap(object) {
                Ok(object) => object
                    .into_iter()
                    .try_for_each(|(key, value)| put(key, value))?,
                Err(object) => object
                    .iter()
                    .try_for_each(|(key, value)| put(key.clone(), value.clone()))?,
            }
            Value::Object(map)
        }
    })
}

/// Writes a jaq value as JSON: the text of what [`to_value`] returns.
///
/// # Errors
/// The errors of [`to_value`].
pub(crate) fn write(val: &Val, out: &mut Vec<u8>) -> Result<(), String> {
    match val {
        Val::Null => out.extend_from_slice(b"null"),
        Val::Bool(true) => out.extend_from_slice(b"true"),
        Val::Bool(false) => out.extend_from_slice(b"false"),
        Val::Num(number) => put(out, &to_number(number)?)?,
        Val::TStr(bytes) | Val::BStr(bytes) => put(out, text(bytes)?)?,
        Val::Arr(items) => {
            out.push(b'[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                write(item, out)?;
            }
            out.push(b']');
        }
        // Two keys of different types may have the same text.
        Val::Obj(object) if !object.keys().all(|key| matches!(key, Val::TStr(_))) => {
            put(out, &to_value(val.clone())?)?;
        }
        Val::Obj(object) => {
            out.push(b'{');
            for (at, (key, item)) in object.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                write(key, out)?;
                out.push(b':');
                write(item, out)?;
            }
            out.push(b'}');
        }
    }
    Ok(())
}

fn put(out: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) -> Result<(), String> {
    serde_json::to_writer(out, value).map_err(|error| error.to_string())
}

fn text(bytes: &[u8]) -> Result<&str, String> {
    std::str::from_utf8(bytes).map_err(|_| NOT_TEXT.to_owned())
}

const NOT_TEXT: &str = "a string contains bytes that are not UTF-8";

fn to_text(bytes: impl Into<Vec<u8>>) -> Result<String, String> {
    String::from_utf8(bytes.into()).map_err(|_| NOT_TEXT.to_owned())
}

fn to_number(number: &Num) -> Result<Value, String> {
    let float = |float: f64| {
        Number::from_f64(float)
            .map(Value::Number)
            .ok_or_else(|| format!("{number} is not a number that JSON has"))
    };
    match number {
        Num::Int(integer) => Ok(Value::from(*integer)),
        Num::Float(value) => float(*value),
        // As written in the program.
        Num::Dec(_) => match serde_json::from_str(&number.to_string()) {
            Ok(value @ Value::Number(_)) => Ok(value),
            _ => Err(format!("{number} is too large a number for JSON")),
        },
        // Readers of JSON round a longer integer, so that two could become one.
        Num::BigInt(_) => {
            let digits = number.to_string();
            digits.parse::<u64>().map(Value::from).map_err(|_| {
                let digits: String = digits.chars().take(60).collect();
                format!(
                    "the integer {digits} needs more than 64 bits: make it a string with `tostring`"
                )
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::jq::direct::demand::{NOTHING, WHOLE};
    use proptest::prelude::*;

    #[test]
    fn keeps_what_serde_json_holds() {
        let text = r#"{"z":1,"a":[18446744073709551615,-9223372036854775808,1.0,1e20,0.1],"m":{"k":"ä\n"},"n":null,"t":true}"#;
        let value: Value = serde_json::from_str(text).unwrap();
        let back = to_value(to_val(value.clone())).unwrap();
        assert_eq!(back, value);
        assert_eq!(back.to_string(), value.to_string());
    }

    #[test]
    fn skips_what_is_not_needed() {
        let text = r#"{"a":{"x":1,"y":[2]},"x":3,"b":"\u00e4"}"#;
        let demand = Demand::of_fields(["a", "b"].map(str::to_owned));
        let val = read(text, &demand).unwrap();
        assert_eq!(
            to_value(val).unwrap().to_string(),
            r#"{"a":{"x":1,"y":[2]},"b":"ä"}"#
        );
        assert!(read("{} x", &WHOLE).is_err() && read("{\"a\":", &demand).is_err());
    }

    #[test]
    fn refuses_what_json_has_not() {
        assert!(to_value(Val::from(f64::NAN)).is_err());
        assert!(to_value(Val::utf8_str(vec![0xff])).is_err());
        let odd: ValMap = [(Val::from(1usize), Val::Null)].into_iter().collect();
        assert!(to_value(Val::obj(odd)).is_err());
    }

    proptest! {
        #[test]
        fn takes_what_the_reader_of_values_takes(value in crate::expr::sample::json(), cut in any::<prop::sample::Index>(), put in prop::sample::select(vec!["", ",", "0", "\"", "{\"c\":1,\"c\":2}", "99999999999999999999", "1e999", "\"\\ud800\""])) {
            let mut text = value.to_string();
            let at = cut.index(text.len());
            if text.is_char_boundary(at) {
                text.replace_range(at..at, put);
            }
            let whole = json::parse(&text).ok();
            for demand in [&WHOLE, &NOTHING, &Demand::of_fields(["a", "b"].map(str::to_owned))] {
                let read = read_checked(&text, demand).ok();
                prop_assert_eq!(read, whole.as_ref().map(|value| part(value, demand)), "{}", text);
            }
        }

        #[test]
        fn copies_the_part_that_it_reads(value in crate::expr::sample::json()) {
            for demand in [&WHOLE, &Demand::default(), &Demand::of_fields(["a", "b"].map(str::to_owned))] {
                let read = read(&value.to_string(), demand).unwrap();
                prop_assert_eq!(part(&value, demand), read);
            }
        }

        #[test]
        fn reads_what_is_written(value in crate::expr::sample::json()) {
            let val = read(&value.to_string(), &WHOLE).unwrap();
            let mut written = Vec::new();
            write(&val, &mut written).unwrap();
            prop_assert_eq!(String::from_utf8(written).unwrap(), value.to_string());
            prop_assert_eq!(to_value(val).unwrap().to_string(), value.to_string());
        }

        #[test]
        fn there_and_back(value in crate::expr::sample::json()) {
            prop_assert_eq!(to_value(to_val(value.clone())).unwrap().to_string(), value.to_string());
        }
    }
}
