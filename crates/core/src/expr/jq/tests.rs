//! Tests of jq programs.

use super::*;
use crate::expr::sample::project_files;
use serde_json::json;

fn run(source: &str, input: Value) -> Vec<Value> {
    Jq::compile("p", source, &[])
        .unwrap()
        .all(input, &[])
        .unwrap()
}

fn fails(source: &str) -> String {
    Jq::compile("p.jq", source, &["params", "element"])
        .unwrap_err()
        .to_string()
}

#[test]
fn can_be_shared_between_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<Jq>();
}

#[test]
fn runs_with_variables() {
    let jq = Jq::compile("p", "{a: .x, b: $n, c: $m.k}", &["n", "m"]).unwrap();
    let value = jq
        .one(json!({"x": 1.0}), &[json!(2), json!({"k": [3]})])
        .unwrap();
    assert_eq!(value.to_string(), r#"{"a":1.0,"b":2,"c":[3]}"#);
    assert_eq!(
        jq.one(json!({}), &[json!(1)]).unwrap_err().to_string(),
        "p: it needs values for `n`, `m`, not 1"
    );
}

#[test]
fn a_program_cannot_call_itself() {
    assert_eq!(
        fails("1, milepost_program"),
        "p.jq, line 1, column 1: `milepost_program` is a name of Milepost's own"
    );
}

#[test]
fn keeps_order_and_numbers() {
    let value = json!({"z": 1, "a": {"y": 18_446_744_073_709_551_615_u64, "b": 0.1}});
    assert_eq!(run(".", value.clone())[0].to_string(), value.to_string());
    assert_eq!(
        run(".x = 1 | del(.z)", json!({"z": 1, "b": 2, "a": 3}))[0].to_string(),
        r#"{"b":2,"a":3,"x":1}"#
    );
    assert_eq!(
        run("del(.[0, 2], .[-1:])", json!([1, 2, 3, 4, 5])),
        [json!([2, 4])]
    );
    assert_eq!(
        run(
            "del(.a.b, .c[1].d, .nope.x)",
            json!({"a": {"b": 1, "e": 2}, "c": [0, {"d": 1, "f": 2}]})
        ),
        [json!({"a": {"e": 2}, "c": [0, {"f": 2}]})]
    );
    assert_eq!(
        run("1.10, 3, 1e3", json!(null)),
        [json!(1.1), json!(3), json!(1000.0)]
    );
}

#[test]
fn joins_null_as_an_empty_text() {
    let joined = run(r#"join(";")"#, json!(["a", null, 1, true]));
    assert_eq!(joined, [json!("a;;1;true")]);
    assert_eq!(run("join(1, 2)", json!([])), [json!(""), json!("")]);
}

#[test]
fn reads_records_one_by_one() {
    use std::cell::Cell;
    let jq = Jq::compile("p", "reduce inputs as $e (0; . + $e.n)", &[]).unwrap();
    let given = Cell::new(0u64);
    let mut inputs = (0..10_000u64).map(|n| {
        given.set(given.get() + 1);
        Ok(json!({"n": n}))
    });
    assert_eq!(
        jq.stream(Value::Null, &[], &mut inputs).unwrap(),
        [json!(49_995_000)]
    );
    assert_eq!(given.get(), 10_000);
    let first = Jq::compile("p", "first(inputs), input", &[]).unwrap();
    let mut inputs = (1..5).map(|n| Ok(json!(n)));
    assert_eq!(
        first.stream(Value::Null, &[], &mut inputs).unwrap(),
        [json!(1), json!(2)]
    );
    assert_eq!(inputs.next(), Some(Ok(json!(3))));
    let mut broken = [Err("x.json: cut".to_owned())].into_iter();
    assert_eq!(
        jq.stream(Value::Null, &[], &mut broken)
            .unwrap_err()
            .message,
        "x.json: cut"
    );
}

#[test]
fn one_means_one() {
    let one = |source: &str| {
        Jq::compile("p", source, &[])
            .unwrap()
            .one(json!([1, 2]), &[])
    };
    assert_eq!(one(".[0]").unwrap(), json!(1));
    assert!(
        one("empty")
            .unwrap_err()
            .message
            .starts_with("it returned no value")
    );
    assert!(
        one(".[]")
            .unwrap_err()
            .message
            .starts_with("it returned more than one value")
    );
}

#[test]
fn writes_rows() {
    assert_eq!(
        run("@csv", json!(["a\"b", 1, 1.5, null, true, ""])),
        [json!("\"a\"\"b\",1,1.5,,true,\"\"")]
    );
    assert_eq!(run("@tsv", json!(["a\tb", 1, null])), [json!("a\\tb\t1\t")]);
    assert_eq!(
        run("INDEX(.k), IN(.[]; 1), toarray", json!([{"k": "x"}]))[0],
        json!({"x": {"k": "x"}})
    );
}

#[test]
fn a_text_that_a_spreadsheet_would_run_gets_an_apostrophe() {
    let cells = json!([
        "=1+1", "+x", "-x", "@x", "\t=x", "\r=x", "-1.5", "+2", "x=1", "", -1, null, true
    ]);
    let safe = json!([
        "'=1+1", "'+x", "'-x", "'@x", "'\t=x", "'\r=x", "-1.5", "+2", "x=1", "", -1, null, true
    ]);
    assert_eq!(run("map(escape_formula)", cells), [safe]);
}

#[test]
fn says_what_a_program_raises() {
    let error = |source: &str, input: Value| {
        Jq::compile("filters/x.jq", source, &[])
            .unwrap()
            .all(input, &[])
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        error("error(\"no walls\")", json!(1)),
        "filters/x.jq: no walls"
    );
    assert_eq!(
        error(".a", json!([1])),
        "filters/x.jq: cannot index [1] with \"a\""
    );
    assert_eq!(
        error("0/0", json!(1)),
        "filters/x.jq: NaN is not a number that JSON has"
    );
    let long = error(".a", json!(["x".repeat(10_000)]));
    assert!(long.len() < 300 && long.ends_with("with \"a\""), "{long}");
}

#[test]
fn says_where_and_what_was_expected() {
    assert_eq!(
        fails("{a: 1"),
        "p.jq, line 1, column 1: this `{` is never closed (close it with `}`)"
    );
    assert_eq!(
        fails("if .a\n  then 1 2"),
        "p.jq, line 2, column 10: unexpected `2`: expected an else or end"
    );
    assert_eq!(fails(""), "p.jq, line 1, column 1: the program is empty");
    let error = Jq::compile("p", ".a | nope", &[]).unwrap_err();
    assert_eq!(error.place.unwrap().range, 5..9);
}

#[test]
fn hints_at_names() {
    assert_eq!(
        fails("$model.x"),
        "p.jq, line 1, column 1: `$model` is not a name of this stage; it has: $params, $element"
    );
    assert!(fails("$parms").ends_with("(did you mean `$params`?)"));
    assert_eq!(
        fails("params.x"),
        "p.jq, line 1, column 1: there is no filter `params` (write `$params` or `.params`)"
    );
    assert_eq!(
        fails("lenght"),
        "p.jq, line 1, column 1: there is no filter `lenght` (did you mean `length`?)"
    );
    assert_eq!(
        fails("test(\"a\"; \"b\"; \"c\")"),
        "p.jq, line 1, column 1: there is no filter `test` with 3 arguments (it takes 1 or 2 arguments, with `;` between them)"
    );
}

#[test]
fn hints_at_templates_and_toml() {
    assert!(fails("{{ params.x }}").ends_with("(jq does not use {{ }}; write $params.x)"));
    assert!(fails("[{{x}}, 1").ends_with("(jq does not use {{ }}; write $params.x)"));
    assert!(
        fails("map(\\\"a\\\")").contains("write the program in single quotes without backslashes")
    );
    assert!(fails("test(\"\\d\")").contains("a backslash is written twice"));
    assert!(fails(".a && .b").ends_with("(in jq, write `and`)"));
    assert!(fails(".a || .b").ends_with("(in jq, write `or`)"));
}

#[test]
fn refuses_what_is_not_pure() {
    for name in [
        "now",
        "env",
        "$ENV.HOME",
        "halt",
        "halt_error",
        "halt_error(1)",
        "localtime",
        "debug",
        "debug(1)",
        "stderr",
        "input_filename",
        "strflocaltime(\"%Y\")",
    ] {
        assert!(
            fails(name).contains("is not available ("),
            "{name}: {}",
            fails(name)
        );
    }
    for source in [
        "include \"x\"; .",
        "import \"x\" as x; .",
        "import \"x\" as $x; .",
        "def f: 1; include \"x\"; .",
    ] {
        assert!(
            fails(source).contains("(write `include \"name\";` before everything else"),
            "{}",
            fails(source)
        );
    }
    assert_eq!(run("def now: 1; now", Value::Null), [json!(1)]);
}

#[test]
fn refuses_regular_expressions_that_the_engine_has_not() {
    for regex in [
        "a(?=b)",
        "a(?!b)",
        "(?<=a)b",
        "(?<!a)b",
        "(a)\\\\1",
        "(?<x>a)\\\\k<x>",
    ] {
        let message = fails(&format!("test(\"{regex}\")"));
        assert!(message.contains("no look-around"), "{regex}: {message}");
    }
    assert!(
        fails("sub(\"[a\"; \"\")").contains("cannot be used"),
        "{}",
        fails("sub(\"[a\"; \"\")")
    );
    for regex in ["(?:a)", "(?<name>a)", "\\\\(?=", "[(?=]", "\\\\d+", "[]a]"] {
        let source = format!("[match(\"{regex}\")]");
        Jq::compile("p", &source, &[]).unwrap();
    }
}

#[test]
fn matches_as_jq_does() {
    let input = || Value::from("Tür 12, Ähre");
    let cases = [
        (r#"test("^tÜR"; "i")"#, json!([true])),
        (r#"test("x*"), test("x*"; "n")"#, json!([true, false])),
        (r#"[test("[0-9]", "q")]"#, json!([[true, false]])),
        (
            r#"[match("\\w+"; "g") | [.offset, .length, .string]]"#,
            json!([[[0, 3, "Tür"], [4, 2, "12"], [8, 4, "Ähre"]]]),
        ),
        (
            r#"capture("(?<word>\\p{L}+) (?<n>\\d+)(?<no>x)?")"#,
            json!([{"word": "Tür", "n": "12"}]),
        ),
        (
            r#"[match("(?:(1)|(2))+").captures[].offset]"#,
            json!([[4, 5]]),
        ),
        (
            r#"gsub("(?<l>[rh])"; "<\(.l)>")"#,
            json!(["Tü<r> 12, Ä<h><r>e"]),
        ),
        (r#"sub("([:_# -]*[0-9]+)+"; "")"#, json!(["Tür, Ähre"])),
        (r#"split(", *"; null // "")"#, json!([["Tür 12", "Ähre"]])),
        (r#"[scan("[a-zü]+")]"#, json!([["ür", "hre"]])),
    ];
    for (source, expected) in cases {
        assert_eq!(json!(run(source, input())), expected, "{source}");
    }
    for (regex, flags, message) in [
        ("[a", "", "invalid regex: unclosed character class"),
        ("a", "k", "invalid regex flag: k"),
    ] {
        let error = Jq::compile("p", ". as [$r, $f] | \"a\" | test($r; $f)", &[])
            .unwrap()
            .one(json!([regex, flags]), &[])
            .unwrap_err();
        assert!(error.to_string().contains(message), "{error}");
    }
}

#[test]
fn knows_names_and_mentions() {
    let jq = Jq::compile(
        "p",
        r#"def f: .deep; .a.b[].c | {d, e: $params.x, "g": .["h"]} | .i["j"]?."k" | [$env, $params.y.z] | getpath(["l"]) as {m: $n} | f | .["o", "p"]"#,
        &["params", "env"],
    )
    .unwrap();
    let names: Vec<&str> = jq.names().iter().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "a", "b", "c", "d", "deep", "env", "h", "i", "j", "k", "l", "m", "n", "o", "p",
            "params", "x", "y", "z"
        ]
    );
    let dotted: Vec<&str> = jq.mentions().dotted().iter().map(String::as_str).collect();
    assert_eq!(
        dotted,
        [
            "a.b",
            "d",
            "deep",
            "env",
            "h",
            "i.j.k",
            "l",
            "m",
            "o",
            "p",
            "params.x",
            "params.y.z"
        ]
    );
}

#[test]
fn knows_which_fields_are_its_own_inputs() {
    let roots = |source: &str| {
        let jq = Jq::compile("p", source, &["params"]).unwrap();
        jq.roots().dotted().iter().cloned().collect::<Vec<_>>()
    };
    assert_eq!(
        roots(".parsed.model.warnings | .model"),
        ["parsed.model.warnings"]
    );
    assert_eq!(
        roots("$params.model, .a[].model, (.b | {model}), {c}"),
        ["a", "b", "c", "params.model"]
    );
    assert_eq!(roots("def f: .d; f | [.e]"), ["d"]);
    assert_eq!(
        roots("reduce .a[] as $x (.b; .c + $x.d)"),
        ["a", "b", "x.d"]
    );
    assert_eq!(roots("all(.a[]; .b) | .c"), ["a"]);
}

#[test]
fn knows_whether_the_whole_input_is_taken() {
    let whole = |source: &str| Jq::compile("p", source, &["params"]).unwrap().takes_whole();
    for source in [
        ".",
        ".[]",
        "to_entries",
        "{a: .}",
        ".a = 1",
        "if .a then .b end",
        ".[$params.x]",
        "..",
        ". as $x | $x.a",
        "keys",
        "def f: .; f",
        "def f: . == 1; {a: f}",
        "def g: def f: .; f; [g]",
        "def g: def f: .; .a | f; def f: .; g, f",
        "def f(g): .a | g; f(.)",
        ". + {}",
        "\"\\(.)\"",
    ] {
        assert!(whole(source), "{source}");
    }
    for source in [
        ".a",
        ".a | .",
        ".a.b[] | to_entries",
        "$params | .",
        "{a, b: .c}",
        "all(.a[]; . > 1)",
        "reduce inputs as $e (0; . + 1)",
        "if .a then .b else .c end",
        "[.a[] | select(.x) | {y}]",
        ". | .a",
        "def f: .x; .a | f",
        "def f: . == null; def g: f; .a | g",
        "def f: .x; f",
        "\"\\(.a)\"",
        ". as {a: $x} | $x",
        "reduce .a[] as $x ({}; .[$x] = 1)",
        "try .a catch .",
        "first(.a[])",
        "any(.a[]; .b == 1) | not",
    ] {
        assert!(!whole(source), "{source}");
    }
}

/// Returns the text of a filter with that of the files that it includes.
fn with_included(path: &std::path::Path) -> String {
    let source = std::fs::read_to_string(path).unwrap();
    let found = includes(&source);
    let body = found.last().map_or(0, |last| last.statement.end);
    let file = |include: &include::Include| path.with_file_name(format!("{}.jq", include.name));
    let texts = found.iter().map(|include| with_included(&file(include)));
    texts.collect::<Vec<_>>().join("\n") + "\n" + &source[body..]
}

#[test]
fn compiles_the_filters_of_every_project() {
    let mut faults = Vec::new();
    for (project, path) in project_files("filters") {
        let source = with_included(&project.join(&path));
        if check_definitions(&path, &source).is_ok() {
            continue;
        }
        let is_part = |c: &char| c.is_alphanumeric() || *c == '_';
        let names = source.split('$').skip(1);
        let names = names.map(|rest| rest.chars().take_while(is_part).collect());
        let vars: BTreeSet<String> = names.collect();
        let vars: Vec<&str> = vars.iter().map(String::as_str).collect();
        if let Err(error) = Jq::compile(&path, &source, &vars) {
            faults.push(format!("{}: {error}", project.display()));
        }
    }
    assert_eq!(faults, Vec::<String>::new());
}
