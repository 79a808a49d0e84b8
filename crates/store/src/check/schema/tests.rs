//! Tests of schemas.

use super::*;
use proptest::prelude::*;
use serde_json::json;

#[path = "../../../../core/src/expr/sample.rs"]
mod sample;

fn schema(value: Value) -> Schema {
    Schema::compile("schemas/x.schema.json", &value.to_string(), &|_| None).unwrap()
}

fn messages(schema_value: Value, value: Value) -> Vec<String> {
    schema(schema_value)
        .violations(&value, "", 20)
        .iter()
        .map(ToString::to_string)
        .collect()
}

#[test]
fn can_be_shared_between_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<Schema>();
}

#[test]
fn speaks_to_people() {
    let one = |schema: Value, value: Value| messages(schema, value).join(" | ");
    let elements = json!({"properties": {"elements": {"items": {"required": ["global_id"], "not": {"required": ["guid"]}}}}});
    assert_eq!(
        one(
            elements.clone(),
            json!({"elements": [{"global_id": 1}, {}]})
        ),
        "/elements/1: Missing global_id in element"
    );
    assert_eq!(
        one(elements, json!({"elements": [{"global_id": 1, "guid": 2}]})),
        "/elements/0: guid is not allowed here"
    );
    assert_eq!(
        one(json!({"required": ["a"]}), json!({})),
        "Missing a in object"
    );
    assert_eq!(
        one(json!({"properties": {"guid": false}}), json!({"guid": 1})),
        "/guid: guid is not allowed here"
    );
    assert_eq!(
        one(
            json!({"properties": {}, "additionalProperties": false}),
            json!({"b": 1, "a": 2})
        ),
        "b, a are not allowed here"
    );
    assert_eq!(
        one(json!({"enum": ["a", 1]}), json!("x")),
        "\"x\" is not one of \"a\", 1"
    );
    let many: Vec<usize> = (0..30).collect();
    assert!(one(json!({"enum": many}), json!("x")).ends_with("10, 11 and 18 more"));
    assert_eq!(
        one(json!({"type": "integer"}), json!(1.5)),
        "1.5 is a number with a fraction, a whole number was expected"
    );
    assert_eq!(
        one(json!({"type": ["string", "null"]}), json!({})),
        "an object, null or a string was expected"
    );
    assert_eq!(
        one(json!({"type": "object"}), json!(null)),
        "null, an object was expected"
    );
    assert_eq!(one(json!({"maximum": 1}), json!(1.5)), "1.5 is more than 1");
    assert_eq!(
        one(json!({"minItems": 2}), json!([1])),
        "there are 1 items, at least 2 are needed"
    );
    assert_eq!(
        one(json!({"pattern": "^a"}), json!("b")),
        "\"b\" does not match ^a"
    );
    let number = |pattern: &str| one(json!({"pattern": pattern}), json!("12,5"));
    assert_eq!(
        number(r"^[0-9]+(\.[0-9]+)?$"),
        r#""12,5" does not match ^[0-9]+(\.[0-9]+)?$: write 12.5"#
    );
    assert_eq!(number("^a"), r#""12,5" does not match ^a"#);
    assert_eq!(
        one(json!({"format": "date"}), json!("2026-02-30")),
        "\"2026-02-30\" is not a date"
    );
    assert_eq!(one(json!({"const": 1}), json!(2)), "2 is not 1");
    let forms = json!({"anyOf": [{"type": "null"}, {"type": "object", "required": ["category"]}]});
    assert_eq!(
        one(forms, json!({})),
        "it matches none of the 2 allowed schemas; of the nearest, Missing category in object"
    );
}

#[test]
fn keeps_to_its_limit_and_place() {
    let schema = schema(json!({"items": {"required": ["id"]}}));
    let violations = schema.violations(&json!([{}, {}, {}]), "/answers/3", 2);
    assert_eq!(violations.len(), 2);
    assert_eq!(
        violations[1],
        Violation {
            pointer: "/answers/3/1".into(),
            keyword: "required".into(),
            message: "Missing id in element".into(),
            value_excerpt: "{}".into()
        }
    );
    assert!(schema.is_valid(&json!([])) && schema.violations(&json!([]), "", 1).is_empty());
}

#[test]
fn follows_references_in_the_project() {
    let files = |path: &str| {
        match path {
        "schemas/record.schema.json" => Some(r##"{"$id": "https://example.org/record", "properties": {"m": {"$ref": "parts/m.json#/$defs/m"}, "r": {"$ref": "#"}}}"##.to_owned()),
        "schemas/parts/m.json" => Some(r#"{"$defs": {"m": {"type": "string"}}}"#.to_owned()),
        _ => None,
    }
    };
    let compile = |text: &str| Schema::compile("schemas/x y.schema.json", text, &files);
    let schema =
        compile(r#"{"$id": "https://example.org/x", "items": {"$ref": "record.schema.json"}}"#)
            .unwrap();
    assert_eq!(
        schema.resources.documents.keys().collect::<Vec<_>>(),
        [
            "schemas/parts/m.json",
            "schemas/record.schema.json",
            "schemas/x y.schema.json"
        ]
    );
    let violations = schema.violations(&json!([{"m": "a", "r": {"m": 1}}]), "", 9);
    assert_eq!(
        violations[0].to_string(),
        "/0/r/m: 1 is a number, a string was expected"
    );
    let error = |text: &str| compile(text).err().unwrap().to_string();
    assert_eq!(
        error(r#"{"items": {"$ref": "nope.json#/x"}}"#),
        "schemas/x y.schema.json: `$ref` to `nope.json#/x`: there is no schema schemas/nope.json"
    );
    assert!(
        error(r#"{"$ref": "https://example.org/other"}"#)
            .ends_with("copy it into the project and refer to the file")
    );
    assert!(compile(r#"{"items": [{"$ref": "record.schema.json"}, {"$ref": "https://example.org/record#/properties/m"}]}"#).is_err());
    let by_id = compile(r#"{"prefixItems": [{"$ref": "record.schema.json"}, {"$ref": "https://example.org/record#/properties/m"}]}"#).unwrap();
    assert_eq!(
        by_id.violations(&json!([{}, 1]), "", 9)[0].to_string(),
        "/1: 1 is a number, a string was expected"
    );
    assert!(compile(r#"{"$schema": "https://json-schema.org/draft/2020-12/schema", "$defs": {"s": {"$ref": "https://json-schema.org/draft/2020-12/schema"}}}"#).is_ok());
}

#[test]
fn says_why_a_text_is_no_schema() {
    let error = |text: &str| {
        Schema::compile("s.json", text, &|_| None)
            .err()
            .unwrap()
            .to_string()
    };
    assert_eq!(
        error("{\n \"type\" 1}"),
        "s.json, line 2, column 9: expected `:`"
    );
    assert_eq!(
        error(r#"{"properties": {"a": {"type": "strin"}}}"#)
            .split(':')
            .next()
            .unwrap(),
        "s.json, at /properties/a/type"
    );
    assert_eq!(
        error(r##"{"$ref": "#/$defs/no"}"##),
        "s.json: Pointer '/$defs/no' does not exist"
    );
}

fn streamed(schema_value: Value, stream: &str, text: &str) -> Vec<String> {
    let select = Select::parse(stream).unwrap();
    let found = schema(schema_value)
        .validate_stream(text.as_bytes(), Some(&select), 20)
        .unwrap();
    found.violations.iter().map(ToString::to_string).collect()
}

fn model() -> Value {
    json!({
        "type": "object",
        "required": ["elements", "count"],
        "additionalProperties": false,
        "properties": {
            "count": {"type": "integer"},
            "elements": {"$ref": "#/$defs/elements"}
        },
        "$defs": {
            "elements": {"type": "array", "minItems": 2, "maxItems": 3, "items": {"$ref": "#/$defs/element"}},
            "element": {"type": "object", "required": ["global_id"], "not": {"required": ["guid"]}}
        }
    })
}

#[test]
fn validates_items_one_by_one_and_the_rest() {
    let run = |text: &str| streamed(model(), ".elements", text);
    assert_eq!(
        run(r#"{"elements": [{"global_id": 1}, {"global_id": 2}], "count": 2}"#),
        [] as [&str; 0]
    );
    assert_eq!(
        run(r#"{"elements": [{"global_id": 1}, {"guid": 2}, 5], "count": "2", "odd": 1}"#),
        [
            "/count: \"2\" is a string, a whole number was expected",
            "odd is not allowed here",
            "/elements/1: Missing global_id in element",
            "/elements/1: guid is not allowed here",
            "/elements/2: 5 is a number, an object was expected",
            "/elements/2: 5, an object was expected",
        ]
    );
    assert_eq!(
        run(r#"{"elements": [{"global_id": 1}], "count": 1}"#),
        ["/elements: there are 1 items, at least 2 are needed"]
    );
    assert_eq!(
        run(
            r#"{"elements": [{"global_id": 1}, {"global_id": 1}, {"global_id": 1}, {"global_id": 1}], "count": 1}"#
        ),
        ["/elements: there are 4 items, at most 3 are needed"]
    );
    assert_eq!(run(r#"{"count": 1}"#), ["Missing elements in object"]);
    assert_eq!(
        run(r#"{"elements": null, "count": 1}"#),
        ["/elements: null, a list was expected"]
    );
    assert_eq!(run("[]"), ["a list, an object was expected"]);
}

#[test]
fn counts_what_it_does_not_list() {
    let items: Vec<Value> = (0..50)
        .map(|n| {
            if n % 2 == 0 {
                json!({})
            } else {
                json!({"id": n})
            }
        })
        .collect();
    let schema = schema(json!({"type": "array", "items": {"required": ["id"]}}));
    let select = Select::parse(".[]").unwrap();
    let found = schema
        .validate_stream(json!(items).to_string().as_bytes(), Some(&select), 3)
        .unwrap();
    assert_eq!(
        (found.items, found.invalid_items, found.violations.len()),
        (50, 25, 3)
    );
    assert_eq!(found.violations[2].pointer, "/4");
}

#[test]
fn says_where_a_file_is_cut() {
    let run = |text: &str| streamed(model(), ".elements", text);
    assert_eq!(
        run("{\"elements\": [{\"global_id\": 1},\n {\"glo"),
        ["line 2, column 6: the file ends too early: EOF while parsing a string"]
    );
    assert_eq!(
        run("{} x"),
        ["line 1, column 4: not JSON: trailing characters"]
    );
    assert!(run(r#"{"count": 1, "count": 2}"#)[0].contains("duplicate key `count`"));
    let found = schema(json!({}))
        .validate_stream("{".as_bytes(), None, 9)
        .unwrap();
    assert_eq!(found.violations[0].keyword, "json");
}

#[test]
fn refuses_to_stream_what_needs_the_whole_list() {
    let reason = |value: Value, stream: &str| {
        let streamed = schema(value).streamed(&Select::parse(stream).unwrap());
        let error = streamed.err().unwrap();
        error
            .to_string()
            .split("as a stream: ")
            .nth(1)
            .unwrap()
            .to_owned()
    };
    assert_eq!(
        reason(json!({"properties": {"e": {"uniqueItems": true}}}), ".e"),
        "`uniqueItems` of the list needs all of it"
    );
    assert_eq!(
        reason(
            json!({"properties": {"e": {}}, "anyOf": [{"properties": {"e": {"minItems": 1}}}]}),
            ".e"
        ),
        "`anyOf` also applies to `e`"
    );
    assert_eq!(
        reason(json!({}), ".e"),
        "the schema has no `properties` with `e`"
    );
    assert!(reason(json!({}), ".a[].b").starts_with("only one list is read item by item"));
    schema(json!({"properties": {"e": {}}, "allOf": [{"required": ["e"]}]}))
        .streamed(&Select::parse(".e").unwrap())
        .unwrap();
}

proptest! {
    #[test]
    fn a_stream_finds_what_the_whole_finds(items in prop::collection::vec(sample::json(), 0..6), count in sample::json()) {
        let schema = schema(json!({
            "properties": {
                "a": {"properties": {"list": {"type": "array", "minItems": 1, "maxItems": 4, "items": {
                    "anyOf": [{"type": ["object", "null"]}, {"type": "array", "items": {"type": "number"}}], "not": {"required": ["b"]}
                }}}},
                "count": {"type": ["number", "object"]}
            }
        }));
        let text = json!({"a": {"list": items}, "count": count}).to_string();
        let select = Select::parse(".a.list").unwrap();
        let streamed = schema.validate_stream(text.as_bytes(), Some(&select), 1000).unwrap();
        let whole = schema.validate_stream(text.as_bytes(), None, 1000).unwrap();
        let places = |found: &Validated| {
            let mut places: Vec<_> = found.violations.iter().map(|v| (v.pointer.clone(), v.keyword.clone())).collect();
            places.sort();
            places
        };
        prop_assert_eq!(places(&streamed), places(&whole));
        prop_assert_eq!(streamed.items as usize, items.len());
    }
}

#[test]
fn compiles_the_schemas_of_every_project() {
    let mut faults = Vec::new();
    let mut streamed = 0;
    for (project, name) in sample::project_files("schemas") {
        let read = |path: &str| std::fs::read_to_string(project.join(path)).ok();
        match Schema::compile(&name, &read(&name).unwrap(), &read) {
            Err(error) => faults.push(error.to_string()),
            Ok(schema) if name == "schemas/parsed.schema.json" => {
                streamed += 1;
                let elements = schema.streamed(&Select::parse(".elements").unwrap());
                faults.extend(elements.err().map(|error| error.to_string()));
            }
            Ok(_) => {}
        }
    }
    assert_eq!((faults, streamed), (Vec::<String>::new(), 1));
}

#[test]
fn alternatives_with_the_same_tree_are_explained_within_limits() {
    let node = |kind: &str| json!({"properties": {"kind": {"const": kind}, "inner": {"$ref": "#/$defs/node"}}});
    let schema_text = json!({
        "$defs": {"node": {"anyOf": [node("a"), node("b")]}},
        "properties": {"first": {"type": "integer"}, "tree": {"$ref": "#/$defs/node"}}
    });
    let schema = schema(schema_text);
    let tree = |depth: usize, end: &str| {
        (0..depth).fold(json!({"kind": end}), |tree, _| json!({"inner": tree}))
    };
    let found = |value: Value, base: &str| -> Vec<String> {
        let found = schema.violations(&value, base, 9);
        found.iter().map(ToString::to_string).collect()
    };
    let near = "it matches none of the 2 allowed schemas; of the nearest, /tree/inner";
    assert_eq!(
        found(json!({"tree": tree(1, "c")}), ""),
        [format!(
            "/tree: {near}: it matches none of the 2 allowed schemas; of the nearest, /tree/inner/kind: \"c\" is not \"a\""
        )]
    );
    let deep = "it matches no allowed schema, and is nested too deeply to find the nearest";
    assert_eq!(
        found(json!({"tree": tree(110, "c")}), "/items/7"),
        [format!("/items/7/tree: {deep}")]
    );
    assert_eq!(
        found(json!({"first": "x", "tree": tree(110, "c")}), ""),
        ["/first: \"x\" is a string, a whole number was expected"]
    );
    assert!(schema.is_valid(&json!({"tree": tree(110, "b")})));
}
