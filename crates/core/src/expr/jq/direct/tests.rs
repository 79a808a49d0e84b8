//! Programs that are run directly give what jaq gives.

use crate::expr::jq::Jq;
use proptest::prelude::*;
use serde_json::{Value, json};

/// Returns the program as jaq runs it and as it is run directly, if it can be.
fn both(source: &str) -> Option<[Jq; 2]> {
    let direct = Jq::compile("p", source, &["params", "element"]).unwrap();
    direct.direct.as_ref()?;
    let jaq = Jq {
        direct: None,
        ..direct.clone()
    };
    Some([jaq, direct])
}

/// Returns the outputs of a program, then its error.
fn outcome(jq: &Jq, input: &Value) -> (Vec<Value>, Option<String>) {
    let values = [json!({"x": 0.5}), input.clone()];
    let mut records = vec![Ok(json!(1)), Ok(json!({"a": 2})), Ok(input.clone())].into_iter();
    let mut given = Vec::new();
    let ran = jq
        .bind(&values)
        .unwrap()
        .each(input.clone(), &mut records, &mut |value| {
            given.push(value);
            Ok(())
        });
    (given, ran.err().map(|error| error.message))
}

pub(crate) const PROGRAMS: &[&str] = &[
    ".",
    ".a",
    ".a.b",
    ".a?",
    ".[]",
    ".[]?",
    ".[0]",
    ".[-1]",
    ".[1:]",
    ".[:2]?",
    ".a[]?.b",
    ".[\"a\", \"b\"]",
    "[.[]?]",
    "{a, b: .c}",
    "{(\"x\", \"y\"): (1, 2)}",
    "{a: 1, a: 2}",
    "{\"\\(.a)\": 1}",
    "{$params}",
    ".a // .b",
    "(.a, .b) // 3",
    ".a // empty // 1",
    ".[]? // \"none\"",
    "empty // 1",
    "1, 2 | . + 1",
    "(1, 2) + (10, 20)",
    "(1, 2) < (1, 3)",
    "[(true, false) or (true, false)]",
    "[(true, null) and (1, false)]",
    ".a == null",
    ".a != .b",
    ".a < 1",
    "-.a",
    "-(1, 2)",
    ".a + .b",
    ".a - 1",
    ".a * 2",
    ".a / 0",
    "1 % 0",
    "if .a then 1 else 2 end",
    "if .a then 1 end",
    "if (true, false) then 1 elif .b then 2 else 3 end",
    ". as $x | [$x, .a?]",
    "(1, 2) as $x | (3, 4) as $y | [$x, $y]",
    ".a as $a | .b as $a | $a",
    "def f: 1; f",
    "def f(g): g | g; f(. + 1)",
    "def f($x; g): $x + g; f((1, 2); (10, 20))",
    "def f: def g: 3; g; f + f",
    "def f(g): def h: g; [h]; f(.a?)",
    "def f(x): 2 as $y | x; 1 as $y | f($y)",
    "def a: 1; def b: a; def a: 2; b",
    "try error(\"x\")",
    "[.[]? | try (if . == 1 then error(\"x\") else . end)]",
    "(try (1, error(\"x\"))) | error(\"y\")",
    "try (1, error(\"x\"), 3)",
    "[.[]?, 1][0]?",
    "first(1, 2, error(\"x\"))",
    "[first(empty)]",
    "first(.[]?)",
    "any(.[]?; . == 1)",
    "all(.[]?; . != null)",
    "[.[]?] | any, all",
    "isempty(.[]?)",
    "[limit(2; .[]?)]",
    "reduce .[]? as $x (0; . + 1)",
    "reduce (1, 2) as $x (0, 10; . + $x)",
    "reduce (1, 2) as $x (0; ., 5 | . + $x)",
    "reduce (1, 2) as $x (0; empty)",
    "reduce (1, error(\"x\")) as $x (0; . + $x)",
    "reduce inputs as $x ([]; . + [$x])",
    "[inputs]",
    "first(inputs)",
    "input",
    "reduce inputs as $e ({n: 0}; .n += 1 | .last = $e | .by[$e | type] |= (. // 0 | . + 1))",
    ".a = 1",
    ".a.b = 2",
    ".a += 1",
    ".a.b |= 3",
    ".[0] |= 5",
    ".[\"x\"] //= 4",
    ".a |= empty",
    ".a[] |= 1",
    "(.a, .b) = 1",
    ". = 1",
    ".a -= .b",
    ".a |= (.b? // 1)",
    "{} | .a.b.c |= 1 | .a.d += 2",
    "[1] | .[5] = 1",
    "null | .a += 1",
    "1 | .a = 1",
    "{a: {b: 1}} | .a as $k | .a.b = 2 | [., $k]",
    ".a as $x | .a |= 1 | [$x, .a]",
    "select(.a? == 1)",
    "map(.)?",
    "[.[]? | objects, strings, numbers, booleans, nulls, arrays, scalars, iterables, values]",
    "[.[]?] | join(\", \")",
    "[\"a\"] | join(1)",
    "[\"a\", 1, null] | join(\"-\", null)",
    "type",
    "[.[]? | type]",
    "not",
    "true, false, null",
    "[.[]? | not]",
    "to_entries?",
    "to_entries",
    "with_entries(.value |= 1)?",
    "tostring",
    "\"a\\(.a?)b\\(1, 2)c\"",
    "\"\"",
    "@json \"x\\(.)\"",
    "tojson",
    "[.[]? | tojson]",
    "length",
    "[.[]? | length]",
    "test(\"a\")",
    "[.[]? | strings | test(\"A\"; \"i\", \"\")]",
    "[.[]? | strings | sub(\"[a-c]\"; \"x\"), gsub(\"(?<k>[a-c])\"; \"<\\(.k)>\")]",
    "\"aXbX\" | sub(\"X\"; \"1\", \"2\")",
    "\"aXbX\" | gsub(\"X\"; \"1\", \"2\")",
    "\"ab\" | [match(\"(?<x>a)|(?<y>b)\"; \"g\")]",
    "\"ab\" | capture(\"(?<x>a)(?<y>z)?\")",
    "\"a1b22\" | [scan(\"[0-9]+\")]",
    "\"a,b\" | split(\",\")",
    "\"a,b\" | [splits(\",\")]",
    "sort?",
    "[.[]?] | sort",
    "[.[]?] | sort_by(type, .)",
    "[{a: 2}, {a: 1}, {a: 1, b: 0}] | sort_by(.a)",
    "1 | sort_by(.)",
    "[.] | sort_by(.a)",
    "[.[]?] | min, max",
    "[[1, \"a\"], [1, \"b\"]] | min, max",
    "1 | min",
    "[1.0, 1] | min, max",
    "unique?",
    "group_by(type)?",
    "keys?",
    "add?",
    "[.[]?] | add",
    "$params.x, $element",
    "$element.a?",
    "$params | .y = $element",
    "1.0, 1e3, 100000000000000000000",
    "1 | round, floor",
    "1.5 | round",
    "\"ab\" | startswith(\"a\"), endswith(\"a\")",
    "1 | startswith(\"a\")",
    "[1, 2] | .[0] as $x | map(. + $x)",
    "fromjson?",
    "\"[1]\" | fromjson",
    "isstring, isarray, isobject, isnumber, isboolean",
    "def f: if . > 3 then . else . + 1 | f end; 0 | f",
    "[recurse(if . == 1 then 2 else empty end)]",
    "ltrimstr(\"a\")",
    "[.[]? | ascii_downcase?]",
    "has(\"a\")?",
    "del(.a)?",
    "[paths]",
    "..",
    "path(.a?)",
    "getpath([\"a\"])?",
    "[range(3)]",
    "[range(0; 4; 2)]",
    "error",
    "error(null)",
    "error({a: 1})",
    "{a: error(\"x\")}",
    "[1, error(\"x\")]",
    "(1, error(\"x\")) | [.]",
    ".[\"a\"]?",
    ".a.b.c?",
    ".a[.b]?",
    ".[.a?]?",
    "(.a?).b?",
    "{a: 1}.a",
    "[1, 2][1]",
    "(.a?, 1)[0]?",
    "\"abc\"[1:]",
    "\"abc\" | .[:1]",
    ".a[1:][0]?",
];

#[test]
fn runs_directly_as_jaq_does() {
    let inputs = [
        json!(null),
        json!(1),
        json!("abc"),
        json!([]),
        json!({}),
        json!([1, "abc", null, true, {"a": 1}, [2]]),
        json!({"a": 1, "b": "x"}),
        json!({"a": {"b": {"c": 3}}, "b": null}),
        json!({"a": [{"b": 1}, {"b": [2]}], "b": 0}),
    ];
    let mut direct = 0;
    for source in PROGRAMS {
        let Some([jaq, ours]) = both(source) else {
            continue;
        };
        direct += 1;
        for input in &inputs {
            assert_eq!(
                outcome(&ours, input),
                outcome(&jaq, input),
                "{source} of {input}"
            );
        }
    }
    assert!(direct > PROGRAMS.len() * 3 / 4, "{direct}");
}

#[test]
fn the_cells_of_the_workbook_run_directly() {
    let path = format!(
        "{}/../../templates/report.xlsx.toml",
        env!("CARGO_MANIFEST_DIR")
    );
    let declared: toml::Value = toml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let sheets = declared["sheet"].as_array().unwrap();
    let elements = sheets
        .iter()
        .find(|sheet| sheet["name"].as_str() == Some("Elements"));
    let columns = elements.unwrap()["columns"].as_array().unwrap();
    assert!(columns.len() > 30);
    for column in columns {
        let cell = column[1].as_str().unwrap();
        let jq = Jq::compile(cell, cell, &["labels", "params", "report"]).unwrap();
        assert!(jq.is_bounded(), "{cell}");
    }
}

#[test]
fn the_filters_of_the_project_run_directly() {
    for name in ["question", "record", "report", "plans"] {
        let path = format!("{}/../../filters/{name}.jq", env!("CARGO_MANIFEST_DIR"));
        let source = std::fs::read_to_string(path).unwrap();
        let jq = Jq::compile(
            name,
            &source,
            &["element", "question", "params", "parsed", "corrections"],
        )
        .unwrap();
        assert!(jq.direct.is_some(), "{name}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn of_any_value_it_runs_directly_as_jaq_does(value in crate::expr::sample::json(), at in any::<prop::sample::Index>()) {
        let source = PROGRAMS[at.index(PROGRAMS.len())];
        if let Some([jaq, ours]) = both(source) {
            prop_assert_eq!(outcome(&ours, &value), outcome(&jaq, &value), "{} of {}", source, value);
        }
    }
}

#[test]
fn a_reduce_over_many_holds_no_stack() {
    let work = || {
        for body in [
            "([$x] | .[0]) as $y | . + $y",
            "reduce (., $x) as $y (0; . + $y)",
        ] {
            let source = format!("reduce range(100000) as $x (0; {body})");
            let jq = Jq::compile("many", &source, &[]).unwrap();
            assert!(jq.direct.is_some(), "{body}");
            assert_eq!(jq.one(json!(null), &[]).unwrap(), json!(4_999_950_000_i64));
        }
    };
    let thread = std::thread::Builder::new().stack_size(512 << 10);
    thread.spawn(work).unwrap().join().unwrap();
}
