//! The value of a foreign JSON text: an object names a key once, and an integer keeps its digits.

use crate::base::size::show_size;
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Error, Map, Number, Value};
use std::cell::Cell;
use std::fmt;

/// Integers up to here have 64 bits. `serde_json` reads a longer one as the nearest floating-point number.
const LONG: f64 = 9_223_372_036_854_775_808.0;

/// The most memory that one value may take, in bytes. Some bytes of text can take forty times as many in memory.
pub(crate) const LARGEST: usize = 4 << 30;

/// The memory of a value in a list, and of an entry of an object without the text of its key, in bytes.
const ITEM: usize = size_of::<Value>();
const ENTRY: usize = ITEM + size_of::<String>() + 2 * size_of::<usize>();

/// How much of a key or number a message quotes, in characters.
const QUOTED: usize = 60;

/// Returns the value of a JSON text.
///
/// # Errors
/// If the text is not JSON, an object has a key twice, an integer needs more than 64 bits, or the value needs too much memory.
pub fn parse(text: &str) -> Result<Value, Error> {
    parse_within(text, LARGEST)
}

fn parse_within(text: &str, memory: usize) -> Result<Value, Error> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let (rounded, left) = (Cell::new(false), Cell::new(memory));
    let exact = Exact {
        rounded: &rounded,
        left: &left,
    };
    let value = exact.deserialize(&mut deserializer)?;
    deserializer.end()?;
    check_integers(text, &rounded)?;
    Ok(value)
}

/// Returns the text that equal values share: keys in order, and whole numbers without a fraction.
pub fn canonical(value: &Value) -> String {
    let mut value = value.clone();
    value.sort_all_objects();
    make_whole(&mut value);
    value.to_string()
}

fn make_whole(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(make_whole),
        Value::Object(map) => map.values_mut().for_each(make_whole),
        Value::Number(number) if number.is_f64() => {
            let whole = number
                .as_f64()
                .filter(|it| it.fract() == 0.0 && it.abs() < LONG);
            if let Some(whole) = whole {
                *value = Value::from(whole as i64);
            }
        }
        _ => {}
    }
}

/// Returns the memory that a value takes, in bytes.
pub(crate) fn memory_of(value: &Value) -> usize {
    let inside = match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(memory_of).sum(),
        Value::Object(map) => {
            let entries = map.iter();
            entries
                .map(|(key, value)| ENTRY - ITEM + key.len() + memory_of(value))
                .sum()
        }
        _ => 0,
    };
    ITEM + inside
}

/// Returns the message of a value that needs more than [`LARGEST`].
pub(crate) fn too_large() -> String {
    format!(
        "it takes more than {} of memory as one value: select from it by a plain path, use `stream`, or split the file",
        show_size(LARGEST as u64)
    )
}

/// Returns the value of a JSON text in bytes.
///
/// # Errors
/// The errors of [`parse`]; if the bytes are not UTF-8.
pub fn parse_bytes(bytes: &[u8]) -> Result<Value, Error> {
    match std::str::from_utf8(bytes) {
        Ok(text) => parse(text),
        // It names the place.
        Err(_) => serde_json::from_slice(bytes),
    }
}

/// Returns what is wrong with the first of some JSON texts that names a key twice in an object or is too large. Reading ends where
/// they are not JSON.
pub(crate) fn repeated_key(texts: &str) -> Option<Error> {
    let mut deserializer = serde_json::Deserializer::from_str(texts);
    let (rounded, left) = (Cell::new(false), Cell::new(LARGEST));
    let exact = Exact {
        rounded: &rounded,
        left: &left,
    };
    loop {
        match exact.deserialize(&mut deserializer) {
            Ok(_) if deserializer.end().is_ok() => return None,
            Ok(_) => {}
            Err(error) => return error.is_data().then_some(error),
        }
    }
}

/// Builds values.
#[derive(Clone, Copy)]
struct Exact<'a> {
    /// Set when a number may be a rounded integer.
    rounded: &'a Cell<bool>,
    /// The memory that is left, in bytes.
    left: &'a Cell<usize>,
}

impl Exact<'_> {
    fn take<E: serde::de::Error>(self, memory: usize) -> Result<(), E> {
        let left = self.left.get().checked_sub(memory);
        self.left.set(left.ok_or_else(|| E::custom(too_large()))?);
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Exact<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Exact<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any valid JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Value, E> {
        Ok(Value::Bool(flag))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(Value::Number(number.into()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(Value::Number(number.into()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
        note_rounding(number, self.rounded);
        Ok(Number::from_f64(number).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Value, E> {
        self.take(text.len())?;
        Ok(Value::String(text.to_owned()))
    }

    fn visit_string<E: serde::de::Error>(self, text: String) -> Result<Value, E> {
        self.take(text.len())?;
        Ok(Value::String(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            self.take(ITEM)?;
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            if map.contains_key(&key) {
                return Err(A::Error::custom(twice(&key)));
            }
            self.take(ENTRY + key.len())?;
            map.insert(key, entries.next_value_seed(self)?);
        }
        Ok(Value::Object(map))
    }
}

/// Sets the flag if a number may be a rounded integer.
pub(crate) fn note_rounding(number: f64, rounded: &Cell<bool>) {
    if number.abs() >= LONG {
        rounded.set(true);
    }
}

/// Returns what is wrong with a key that an object has twice.
pub(crate) fn twice(key: &str) -> String {
    format!("duplicate key `{}`", quoted(key))
}

/// Checks that a JSON text has no integer of more than 64 bits, if the flag says that it may have one.
///
/// # Errors
/// If it has one.
pub(crate) fn check_integers(text: &str, rounded: &Cell<bool>) -> Result<(), Error> {
    let found = rounded.get().then(|| long_integer(text)).flatten();
    let Some(at) = found else {
        return Ok(());
    };
    let digits = &text[at..];
    let digits = &digits[..end_of_number(digits)];
    let before = &text[..at];
    let line = before.matches('\n').count() + 1;
    let column = at - before.rfind('\n').map_or(0, |feed| feed + 1) + 1;
    Err(Error::custom(format!(
        "the integer {} needs more than 64 bits: write it as a string at line {line} column {column}",
        quoted(digits)
    )))
}

/// Returns the place of the first integer of more than 64 bits in a JSON text.
fn long_integer(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let (mut at, mut in_string) = (0, false);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' if in_string => at += 1,
            b'"' => in_string = !in_string,
            b'-' | b'0'..=b'9' if !in_string => {
                let number = &text[at..];
                let number = &number[..end_of_number(number)];
                let is_integer = !number.contains(['.', 'e', 'E']);
                if is_integer && number.parse::<i64>().is_err() && number.parse::<u64>().is_err() {
                    return Some(at);
                }
                at += number.len();
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    None
}

fn end_of_number(text: &str) -> usize {
    let is_part =
        |byte: u8| byte.is_ascii_digit() || matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E');
    text.bytes()
        .position(|byte| !is_part(byte))
        .unwrap_or(text.len())
}

fn quoted(text: &str) -> String {
    match text.char_indices().nth(QUOTED) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn message(text: &str) -> String {
        parse(text).unwrap_err().to_string()
    }

    #[test]
    fn finds_a_key_that_stands_twice() {
        let found = |texts: &str| repeated_key(texts).map(|error| error.to_string());
        let error = found("{\"a\": 1, \"\\u0061\": 1}").unwrap();
        assert!(error.starts_with("duplicate key `a`"), "{error}");
        assert!(found("1 [{}] {\"a\": [], \"a\": 2} 3").is_some());
        for texts in [
            "",
            " ",
            "1 2",
            "{\"a\": {\"a\": 1}} {\"a\": 2}",
            "nan",
            "{\"a\": 1",
            "]",
        ] {
            assert_eq!(found(texts), None, "{texts}");
        }
    }

    #[test]
    fn refuses_a_key_that_stands_twice() {
        assert_eq!(
            message(r#"{"a": 1, "b": [{"c": 1, "\u0063": 2}]}"#),
            "duplicate key `c` at line 1 column 32"
        );
        let long = "k".repeat(1000);
        let expected = format!("duplicate key `{}…`", "k".repeat(60));
        assert!(message(&format!(r#"{{"{long}": 1, "{long}": 1}}"#)).starts_with(&expected));
        assert!(parse(r#"[{"a": 1}, {"a": 2}]"#).is_ok());
    }

    #[test]
    fn refuses_an_integer_that_would_lose_its_digits() {
        assert_eq!(
            message("{\"a\": \"12345678901234567890123\",\n \"id\": 12345678901234567890123}"),
            "the integer 12345678901234567890123 needs more than 64 bits: write it as a string at line 2 column 8"
        );
        for text in [
            "18446744073709551616",
            "[-9223372036854775809]",
            "100000000000000000000",
        ] {
            assert!(message(text).contains("needs more than 64 bits"), "{text}");
        }
        for text in [
            "18446744073709551615",
            "-9223372036854775808",
            "1e20",
            "[\"\\\"123456789012345678901234\", 1.0e300]",
            "123456789012345678901234.5",
        ] {
            assert_eq!(
                parse(text).unwrap(),
                serde_json::from_str::<Value>(text).unwrap()
            );
        }
    }

    #[test]
    fn refuses_a_value_that_needs_too_much_memory() {
        for text in [
            format!("[{}0]", "0,".repeat(1000)),
            format!("[{}0]", "{\"\":0},".repeat(1000)),
            format!("{{\"{}\": 1}}", "k".repeat(20_000)),
            format!("[\"{}\"]", "\\n".repeat(20_000)),
        ] {
            let value = parse(&text).unwrap();
            let memory = memory_of(&value);
            assert!(memory > 19_000, "{memory}");
            assert_eq!(parse_within(&text, memory).unwrap(), value);
            let refused = parse_within(&text, memory - 100).unwrap_err().to_string();
            assert!(
                refused.starts_with("it takes more than 4 GiB of memory as one value: "),
                "{refused}"
            );
        }
    }

    #[test]
    fn reports_what_is_not_utf_8() {
        assert!(parse_bytes(b"\"\xff\"").is_err());
        assert_eq!(parse_bytes(b"[1]").unwrap(), serde_json::json!([1]));
    }

    proptest! {
        #[test]
        fn reads_as_serde_json_does(value in crate::expr::sample::json()) {
            let text = value.to_string();
            prop_assert_eq!(parse(&text).unwrap().to_string(), text);
        }
    }
}
