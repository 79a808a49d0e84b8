//! Text that is JSON, and text that is none, read in small pieces.

use super::*;
use proptest::prelude::*;
use serde::de::IgnoredAny;

/// Gives a few bytes at a time, so that every place is the end of a buffer once.
struct Slowly<'a>(&'a [u8], usize);

impl Read for Slowly<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.1.min(self.0.len()).min(buffer.len());
        buffer[..n].copy_from_slice(&self.0[..n]);
        self.0 = &self.0[n..];
        Ok(n)
    }
}

/// Returns the error of a text: place and message.
fn ours(text: &[u8], step: usize) -> Option<String> {
    let mut json = Json::new(Slowly(text, step));
    match json.skip().and_then(|()| json.end()).err()? {
        Fault::Text {
            line,
            column,
            message,
            ..
        } => Some(format!("{message} at line {line} column {column}")),
        Fault::Io(error) => Some(error.to_string()),
    }
}

fn theirs(text: &[u8]) -> Option<String> {
    let read = serde_json::from_slice::<IgnoredAny>(text).err()?;
    Some(read.to_string())
}

#[test]
fn says_what_serde_json_says() {
    for text in [
        "",
        " ",
        "[",
        "[1",
        "[1,",
        "[1 2]",
        "{",
        "{\"a\"",
        "{\"a\" 1}",
        "{\"a\":",
        "{\"a\":1",
        "{\"a\":1 \"b\"}",
        "{1:2}",
        "{\"a\":1,2}",
        "tru",
        "trux",
        "nul",
        "01",
        "-",
        "-x",
        "1.",
        "1.x",
        "1e",
        "1e+",
        "1e+x",
        "\"",
        "\"a",
        "\"\\",
        "\"\\x\"",
        "\"\\u12",
    ] {
        for step in [1, 2, 100] {
            assert_eq!(
                ours(text.as_bytes(), step),
                theirs(text.as_bytes()),
                "{text:?}"
            );
        }
    }
}

#[test]
fn refuses_what_serde_json_refuses() {
    for text in [
        "\"a\nb\"",
        "x",
        "]",
        "[]]",
        "{} 1",
        "\n\n [\n1,\n 2 3]",
        "[1,\n",
        "1 ",
        "\"ä\"",
        "[true,false,null,-0.5e-3,{}]",
    ] {
        for step in [1, 2, 100] {
            let (ours, theirs) = (ours(text.as_bytes(), step), theirs(text.as_bytes()));
            assert_eq!(ours.is_none(), theirs.is_none(), "{text:?}");
        }
    }
}

#[test]
fn gives_texts_and_their_places() {
    let text = "{\"a\": [1,\n {\"\\u0062\": \"ä\"}], \"k\\\"\": null}";
    let mut json = Json::new(Slowly(text.as_bytes(), 1));
    assert!(json.peek().unwrap() == Some(b'{') && json.enter(b'{').unwrap());
    assert_eq!(json.key(str::to_owned).unwrap(), "a");
    let taken = json.value(|text, start| Ok::<_, TakeError<()>>((text.to_owned(), start)));
    let whole = "[1,\n {\"\\u0062\": \"ä\"}]".to_owned();
    assert_eq!(taken.unwrap(), Ok((whole, 6)));
    assert!(json.next(b'{').unwrap());
    assert_eq!(json.key(str::to_owned).unwrap(), "k\"");
    let wrong =
        json.value(|text, _| serde_json::from_str::<u8>(text).map_err(TakeError::<()>::Text));
    let Err(Fault::Text { line, column, .. }) = wrong else {
        panic!("null is no number");
    };
    assert_eq!((line, column), (2, 31));
}

#[test]
fn keeps_little_of_a_long_text() {
    let item = format!("[{}1],", "0,".repeat(20_000));
    let text = format!("[{}1]", item.repeat(50));
    let mut json = Json::new(text.as_bytes());
    json.skip().unwrap();
    json.end().unwrap();
    assert!(json.buffer.capacity() <= 4 * CHUNK);
}

proptest! {
    #[test]
    fn takes_what_serde_json_takes(value in crate::expr::sample::json(), cut in any::<prop::sample::Index>(), byte in any::<Option<u8>>(), step in 1_usize..9) {
        let mut text = value.to_string().into_bytes();
        prop_assert_eq!(ours(&text, step), None);
        let at = cut.index(text.len());
        match byte {
            Some(byte) => text[at] = byte,
            None => text.truncate(at),
        }
        prop_assert_eq!(ours(&text, step).is_none(), theirs(&text).is_none());
    }
}

#[test]
fn equal_values_have_one_canonical_text() {
    for (value, text) in [
        (
            "{\"b\":[1.0,{\"d\":1,\"c\":2.50}],\"a\":-0.0}",
            "{\"a\":0,\"b\":[1,{\"c\":2.5,\"d\":1}]}",
        ),
        ("1e3", "1000"),
        ("9007199254740993", "9007199254740993"),
        ("18446744073709551615", "18446744073709551615"),
        ("1e300", "1e+300"),
        ("1e18", "1000000000000000000"),
        ("\"1.0\"", "\"1.0\""),
    ] {
        let value = super::parse(value).unwrap();
        assert_eq!(super::canonical(&value), text);
    }
}
