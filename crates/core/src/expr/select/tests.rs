//! Tests of plain paths.

use super::*;
use crate::expr::jq::Jq;
use proptest::prelude::*;
use serde_json::json;
use std::convert::Infallible;

fn read(select: &str, text: &str) -> Result<Vec<Value>, ReadError<Infallible>> {
    let mut values = Vec::new();
    Select::parse(select)
        .unwrap()
        .read(text.as_bytes(), &mut |value| {
            values.push(value);
            Ok(())
        })?;
    Ok(values)
}

fn fails(select: &str, text: &str) -> String {
    read(select, text).unwrap_err().to_string()
}

#[test]
fn reads_paths() {
    let steps = |text: &str| Select::parse(text).unwrap().0;
    let field = |name: &str| PathStep::Field(name.to_owned());
    assert_eq!(steps("."), []);
    assert_eq!(steps(".[]"), [PathStep::Each]);
    assert_eq!(
        steps(".a.b[].c"),
        [field("a"), field("b"), PathStep::Each, field("c")]
    );
    assert_eq!(
        steps(".a[][]"),
        [field("a"), PathStep::Each, PathStep::Each]
    );
    assert_eq!(
        steps(".\"odd \\\"key\"[]"),
        [field("odd \"key"), PathStep::Each]
    );
    assert_eq!(
        steps(".[\"odd\"].a[\"b\"].[]"),
        [field("odd"), field("a"), field("b"), PathStep::Each]
    );
    for text in [".", ".[]", ".a.b[].c", ".a[][]", ".\"odd key\"[]", ".[].a"] {
        assert_eq!(Select::parse(text).unwrap().to_string(), text);
    }
    let select = Select::parse(".batch.data[].id").unwrap();
    assert_eq!(
        (select.first(), select.rest().to_string()),
        ("batch", ".data[].id".to_owned())
    );
    assert_eq!(Select::parse(".a[]").unwrap().list().to_string(), ".a");
    assert_eq!(Select::parse(".a").unwrap().items().to_string(), ".a[]");
}

#[test]
fn refuses_what_is_no_plain_path() {
    let wrong = |text: &str| Select::parse(text).unwrap_err().to_string();
    assert_eq!(
        wrong("a.b"),
        "`a.b`, line 1, column 1: a plain path begins with a dot (write `.a.b`)"
    );
    assert_eq!(
        wrong("$a"),
        "`$a`, line 1, column 1: a plain path begins with a dot (write `.a`)"
    );
    assert!(
        wrong(".a[0]")
            .contains("column 3: this is not a step of a plain path (a plain path has `[]`")
    );
    for text in [
        "", ".a | .b", ".a?", "..", ".a.", ".a b", ".a-b", ".\"a", ".[\"a\"", ".1", ".a\"b\"",
        ".[].[\"a",
    ] {
        assert!(Select::parse(text).is_err(), "{text}");
    }
}

#[test]
fn streams_values() {
    let text = r#"{"x": [1, {"y": 2}], "elements": [{"id": "a", "n": null}, null, {"n": 1.0, "id": "b"}], "z": {}}"#;
    assert_eq!(
        read(".elements[].id", text).unwrap(),
        [json!("a"), json!("b")]
    );
    assert_eq!(read(".elements[]", text).unwrap().len(), 3);
    assert_eq!(read(".x", text).unwrap(), [json!([1, {"y": 2}])]);
    assert_eq!(read(".", "[1]").unwrap(), [json!([1])]);
    assert_eq!(
        read(".[]", "{\"a\": 1, \"b\": 2}").unwrap(),
        [json!(1), json!(2)]
    );
    assert_eq!(read(".a[].b", "{\"a\": null}").unwrap(), [] as [Value; 0]);
}

#[test]
fn gives_the_text_as_it_stands() {
    let mut texts = Vec::new();
    let select = Select::parse(".a[]").unwrap();
    let document = r#"{"a":[ {"b" : 1.10} ,123456789012345678901234567890]}"#;
    let count = select.read_text::<Infallible>(document.as_bytes(), &mut |text, start| {
        assert!(document[start as usize..].starts_with(text));
        texts.push(text.to_owned());
        Ok(())
    });
    assert_eq!(count, Ok(2));
    assert_eq!(texts, ["{\"b\" : 1.10}", "123456789012345678901234567890"]);
}

#[test]
fn says_where_a_document_does_not_fit() {
    assert_eq!(
        fails(".elements[].id", r#"{"elements": [{"id": 1}, 17]}"#),
        "/elements/1 is a number, expected an object"
    );
    assert_eq!(
        fails(".elements[]", r#"{"elements": "x"}"#),
        "/elements is a string, expected a list"
    );
    assert_eq!(
        fails(".a.b", "[]"),
        "the document is a list, expected an object"
    );
    assert_eq!(
        fails(".a[].b", r#"{"a": [{"b": 1}, {"c": 2}]}"#),
        "/a/1 has no `b`"
    );
    assert_eq!(fails(".\"x/y\".b", r#"{"x/y": {}}"#), "/x~1y has no `b`");
    assert_eq!(
        fails(".a", r#"{"a": 1, "a": 2}"#),
        "the document has `a` twice"
    );
    assert_eq!(
        fails(".a[]", "{\"a\": [1,\n 2"),
        "line 2, column 2: the file ends too early: EOF while parsing a list"
    );
    assert!(fails(".a[]", "{\"a\": [1]} x").starts_with("line 1, column 12: trailing characters"));
    assert!(fails(".a", "{\"b\": 01}").starts_with("line 1, column 8: "));
}

#[test]
fn passes_on_what_is_done_with_a_value() {
    let select = Select::parse(".[]").unwrap();
    let mut seen = 0;
    let stopped = select.read("[1, 2, 3]".as_bytes(), &mut |value| {
        seen += 1;
        if value == json!(2) {
            Err("enough")
        } else {
            Ok(())
        }
    });
    assert_eq!((stopped, seen), (Err(ReadError::Each("enough")), 2));
    let stopped = select.select_value(&json!([1, 2]), &mut |_| Err("enough"));
    assert_eq!(stopped, Err(ReadError::Each("enough")));
}

fn paths() -> impl Strategy<Value = String> {
    let step = prop_oneof![
        Just("[]"),
        Just(".a"),
        Just(".b"),
        Just(".c"),
        Just(".\"odd key\""),
        Just(".[\"a\"]")
    ];
    prop::collection::vec(step, 1..4).prop_map(|steps| {
        let path = steps.concat();
        if path.starts_with('[') {
            format!(".{path}")
        } else {
            path
        }
    })
}

proptest! {
    #[test]
    fn means_what_jq_means(value in crate::expr::sample::json(), path in paths()) {
        let streamed = read(&path, &value.to_string());
        let mut walked = Vec::new();
        let selected: Result<u64, ReadError<Infallible>> = Select::parse(&path).unwrap().select_value(&value, &mut |value| {
            walked.push(value.clone());
            Ok(())
        });
        match (&streamed, &selected) {
            (Ok(values), Ok(count)) => {
                prop_assert_eq!(values, &walked);
                prop_assert_eq!(*count as usize, walked.len());
            }
            (Err(streamed), Err(selected)) => prop_assert_eq!(streamed, selected),
            _ => prop_assert!(false, "{:?} {:?}", streamed, selected),
        }
        // jq gives null for what is missing and for fields of null, and raises for `null | .[]`.
        let theirs = Jq::compile("p", &path, &[]).unwrap().all(value, &[]);
        if let (Ok(ours), Ok(theirs)) = (&streamed, &theirs) {
            let without = |values: &[Value]| values.iter().filter(|value| !value.is_null()).cloned().collect::<Vec<_>>();
            prop_assert_eq!(without(ours), without(theirs));
            prop_assert!(ours.len() <= theirs.len());
        }
        if let Err(ReadError::Select(SelectError::Shape { .. })) = &streamed {
            prop_assert!(theirs.is_err());
        }
    }
}
