//! JSON values to jaq's and back, without losing the order of keys, integers or the last digit.

use std::cell::Cell;
use std::fmt;

use jaq_json::{Map as ValMap, Num, Val};
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

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

/// Returns the value of a JSON text. Of an object only the fields that `wanted` names are read, and the others skipped.
///
/// # Errors
/// If the text is no JSON.
pub(crate) fn read(text: &str, wanted: &dyn Fn(&str) -> bool) -> Result<Val, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let rounded = Cell::new(false);
    let fields = Fields {
        wanted: Some(wanted),
        rounded: &rounded,
    };
    let val = fields.deserialize(&mut deserializer)?;
    deserializer.end()?;
    json::check_integers(text, &rounded)?;
    Ok(val)
}

/// Builds values. Of an object only the wanted fields are built; without a filter all.
struct Fields<'a> {
    wanted: Option<&'a dyn Fn(&str) -> bool>,
    /// Set when a number may be a rounded integer.
    rounded: &'a Cell<bool>,
}

impl<'a> Fields<'a> {
    fn inside(&self) -> Fields<'a> {
        Fields {
            wanted: None,
            rounded: self.rounded,
        }
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
        std::iter::from_fn(|| items.next_element_seed(self.inside()).transpose()).collect()
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Val, A::Error> {
        let mut object = ValMap::default();
        let is_wanted = |key: &str| self.wanted.is_none_or(|wanted| wanted(key));
        while let Some(key) = entries.next_key_seed(WantedKey(&is_wanted))? {
            let Some(key) = key else {
                entries.next_value::<IgnoredAny>()?;
                continue;
            };
            if object.contains_key(&key) {
                let key = key.to_string();
                return Err(A::Error::custom(json::twice(key.trim_matches('"'))));
            }
            object.insert(key, entries.next_value_seed(self.inside())?);
        }
        Ok(Val::obj(object))
    }
}

/// A key, if it is wanted.
struct WantedKey<'a>(&'a dyn Fn(&str) -> bool);

impl<'de> DeserializeSeed<'de> for WantedKey<'_> {
    type Value = Option<Val>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<Val>, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for WantedKey<'_> {
    type Value = Option<Val>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<Option<Val>, E> {
        Ok((self.0)(key).then(|| Val::utf8_str(key.to_owned())))
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
/// What JSON cannot hold: NaN, infinity, bytes that are no text, keys that are no strings.
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

fn to_text(bytes: impl Into<Vec<u8>>) -> Result<String, String> {
    String::from_utf8(bytes.into())
        .map_err(|_| "a string holds bytes that are not UTF-8".to_owned())
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
    fn skips_fields_that_nobody_wants() {
        let text = r#"{"a":{"x":1,"y":[2]},"x":3,"b":"\u00e4"}"#;
        let val = read(text, &|key| key != "x").unwrap();
        assert_eq!(
            to_value(val).unwrap().to_string(),
            r#"{"a":{"x":1,"y":[2]},"b":"ä"}"#
        );
        assert!(read("{} x", &|_| true).is_err() && read("{\"a\":", &|_| false).is_err());
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
        fn reads_what_is_written(value in crate::expr::sample::json()) {
            let val = read(&value.to_string(), &|_| true).unwrap();
            prop_assert_eq!(to_value(val).unwrap().to_string(), value.to_string());
        }

        #[test]
        fn there_and_back(value in crate::expr::sample::json()) {
            prop_assert_eq!(to_value(to_val(value.clone())).unwrap().to_string(), value.to_string());
        }
    }
}
