//! Tests of the scope.

use super::*;
use serde_json::{Value, json};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

struct Memory {
    path: PathBuf,
    text: Vec<u8>,
    opened: AtomicUsize,
}

impl Source for Memory {
    fn name(&self) -> String {
        self.path.display().to_string()
    }

    fn path(&self) -> &Path {
        &self.path
    }

    fn open(&self) -> io::Result<Box<dyn Read + Send>> {
        self.opened.fetch_add(1, Ordering::Relaxed);
        if self.text == b"gone" {
            return Err(io::Error::new(io::ErrorKind::NotFound, "no such file"));
        }
        Ok(Box::new(io::Cursor::new(self.text.clone())))
    }
}

fn memory(path: &str, text: impl AsRef<[u8]>) -> Arc<Memory> {
    Arc::new(Memory {
        path: path.into(),
        text: text.as_ref().to_vec(),
        opened: AtomicUsize::new(0),
    })
}

fn value(path: &str, text: impl AsRef<[u8]>) -> Result<Value, ScopeError> {
    let mut scope = Scope::new();
    scope.insert_file("x", memory(path, text), Format::of_path(path));
    scope.value("x")
}

fn selected(scope: &Scope, select: &str) -> Result<Vec<Value>, ScopeError> {
    let mut values = Vec::new();
    let count = scope.select(&Select::parse(select).unwrap(), &mut |value| {
        values.push(value);
        Ok::<(), ScopeError>(())
    })?;
    assert_eq!(count as usize, values.len());
    Ok(values)
}

#[test]
fn can_be_shared_between_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<Scope>();
}

#[test]
fn parses_by_format() {
    assert_eq!(
        value("a.json", "\u{feff}{\"b\": 1, \"a\": 2.0}")
            .unwrap()
            .to_string(),
        r#"{"b":1,"a":2.0}"#
    );
    assert_eq!(
        value("a.ndjson", "1\n\n{\"a\":2}\n").unwrap(),
        json!([1, {"a": 2}])
    );
    assert_eq!(
        value("a.CSV", "\u{feff}id, n\n\"x,y\",1\nz,\n").unwrap(),
        json!([{"id": "x,y", "n": "1"}, {"id": "z", "n": ""}])
    );
    assert_eq!(
        value("a.toml", "d = 2026-01-02\n[t]\nx = [1, 2.5]").unwrap(),
        json!({"d": "2026-01-02", "t": {"x": [1, 2.5]}})
    );
    assert_eq!(value("a.md", "x\n").unwrap(), json!("x\n"));
    assert_eq!(value("noending", "x").unwrap(), json!("x"));
}

#[test]
fn a_table_may_have_semicolons() {
    assert_eq!(
        value("a.csv", "\u{feff}a;b\r\n1,5;x\r\n").unwrap(),
        json!([{"a": "1,5", "b": "x"}])
    );
    assert_eq!(
        value("a.csv", "a,b;c\n1,2\n").unwrap(),
        json!([{"a": "1", "b;c": "2"}])
    );
}

#[test]
fn says_where_a_file_is_wrong() {
    let fails = |path: &str, text: &[u8]| value(path, text).unwrap_err().to_string();
    assert_eq!(
        fails("a.json", b"{\"a\":\n 1"),
        "a.json: line 2, column 2: the file ends too early: EOF while parsing an object"
    );
    assert_eq!(
        fails("a.ndjson", b"1\n\nx"),
        "a.ndjson: line 3, column 1: expected value"
    );
    assert_eq!(
        fails("a.csv", b"a,b\n1,2\n1\n"),
        "a.csv:3: expected 2 cells as in the header, found 1"
    );
    assert_eq!(
        fails("a.csv", b"a,a\n1,2\n"),
        "a.csv:1: the header has `a` twice"
    );
    assert_eq!(
        fails("a.csv", b"sep=;\na;b\n1;2\n"),
        "a.csv:1: expected a header, found a line that sets the separator for Excel: remove it"
    );
    assert!(
        fails("a.toml", b"a = 1\nb = ").starts_with("a.toml: line 2, column 5: "),
        "{}",
        fails("a.toml", b"a = 1\nb = ")
    );
    assert_eq!(
        fails("a.txt", b"a\n\xff"),
        "a.txt: line 2 is not UTF-8 text; a binary file is used by `paths`"
    );
    for name in ["a.txt", "a.json", "a.yaml"] {
        assert_eq!(
            fails(name, b"\xff\xfea\0"),
            format!("{name}: it is UTF-16 text: save it as UTF-8")
        );
    }
    assert_eq!(
        fails("a.png", b""),
        "`x` (a.png) is a binary file without a value; use `paths.x`"
    );
    assert_eq!(
        fails("a.json", b"gone"),
        "a.json: cannot be read: no such file"
    );
}

fn sample() -> (Scope, Arc<Memory>, Arc<Memory>) {
    let (data, parsed) = (
        memory(
            "b/batch_1.json",
            r#"{"elements": [{"id": "a"}, {"id": "b"}]}"#,
        ),
        memory("parsed.json", r#"{"model": {"n": 2}, "elements": [1, 2]}"#),
    );
    let mut scope = Scope::new();
    scope.insert_value("params", json!({"model": "m.ifc", "size": 3}));
    scope.insert_value("batch", json!({"path": "b/batch_1.json", "number": 1}));
    scope.insert_file("batch.data", data.clone(), Format::Json);
    scope.insert_file("model", memory("m.ifc", "ISO"), Format::of_path("m.ifc"));
    scope.insert_file("parsed", parsed.clone(), Format::Json);
    scope.insert_files(
        "all",
        vec![
            (memory("1.json", "[{\"k\": 1}]"), Format::Json.into()),
            (
                memory("2.ndjson", "{\"k\": 2}\n{\"k\": 3}"),
                Format::Ndjson.into(),
            ),
            (memory("3.csv", "k\n4\n"), Format::Csv.into()),
        ],
    );
    scope.absent("maybe");
    (scope, data, parsed)
}

fn opened(source: &Memory) -> usize {
    source.opened.load(Ordering::Relaxed)
}

#[test]
fn loads_what_is_mentioned_once() {
    let (scope, data, parsed) = sample();
    assert_eq!(
        scope.names(),
        ["params", "batch", "model", "parsed", "all", "maybe"]
    );
    let names = |names: &[&str]| {
        names
            .iter()
            .map(|&name| name.to_owned())
            .collect::<BTreeSet<_>>()
    };
    let value = scope
        .value_for(&names(&["batch.number", "params.size", "maybe", "nope"]))
        .unwrap();
    assert_eq!(
        value,
        json!({"params": {"model": "m.ifc", "size": 3}, "batch": {"path": "b/batch_1.json", "number": 1}, "maybe": null})
    );
    assert_eq!((opened(&data), opened(&parsed)), (0, 0));
    for _ in 0..2 {
        let value = scope
            .value_for(&names(&["batch", "parsed", "model"]))
            .unwrap();
        assert_eq!(value["batch"]["data"]["elements"][1], json!({"id": "b"}));
        assert_eq!(value["parsed"]["model"]["n"], json!(2));
        assert_eq!(value.get("model"), None);
    }
    assert_eq!((opened(&data), opened(&parsed)), (1, 1));
    assert_eq!(
        scope.clone().value("all").unwrap(),
        json!([[{"k": 1}], [{"k": 2}, {"k": 3}], [{"k": "4"}]])
    );
}

#[test]
fn gives_programs_and_templates_what_they_use() {
    let (scope, data, parsed) = sample();
    let names = scope.names();
    let jq = |source: &str| Jq::compile("p", source, &names).unwrap();
    // A field called as an input, of something else, does not load the input.
    let program = jq(".parsed.model | {n, model: $params.model, b: $batch.number}");
    let input = scope.input_of(&program).unwrap();
    let vars = scope.vars_of(&program).unwrap();
    assert_eq!(
        input.as_object().unwrap().keys().collect::<Vec<_>>(),
        ["params", "batch", "parsed"]
    );
    assert_eq!(
        program.one(input, &vars).unwrap(),
        json!({"n": 2, "model": "m.ifc", "b": 1})
    );
    // Once, for its field of the input, which does not load the whole. The variable of that name is not used.
    assert_eq!((opened(&data), opened(&parsed)), (0, 1));
    // A program may bind a variable of its own that is called like a file without a value: that is no error.
    assert_eq!(scope.input_of(&jq(".model")).unwrap(), json!({}));
    assert_eq!(
        scope.vars_of(&jq("$model")).unwrap(),
        vec![Value::Null; names.len()]
    );
    let whole = scope.input_of(&jq("keys")).unwrap();
    assert_eq!(whole.as_object().unwrap().len(), 5);
    let template =
        Template::compile("t", "{{ batch.data.elements | length }} {{ params.size }}").unwrap();
    assert_eq!(
        template
            .render(&scope.context_of(&template).unwrap())
            .unwrap(),
        "2 3"
    );
    let template = Template::compile("t", "{{ prams }}").unwrap();
    let error = template
        .render(&scope.context_of(&template).unwrap())
        .unwrap_err()
        .to_string();
    assert!(
        error.ends_with("there are `params`, `batch`, `model`, `parsed`, `all`, `maybe`)"),
        "{error}"
    );
}

#[test]
fn selects_without_loading() {
    let (scope, data, parsed) = sample();
    assert_eq!(
        selected(&scope, ".batch.data.elements[].id").unwrap(),
        [json!("a"), json!("b")]
    );
    assert_eq!(selected(&scope, ".batch.number").unwrap(), [json!(1)]);
    assert_eq!(
        selected(&scope, ".parsed.elements[]").unwrap(),
        [json!(1), json!(2)]
    );
    assert_eq!(
        selected(&scope, ".all[][].k").unwrap(),
        [json!(1), json!(2), json!(3), json!("4")]
    );
    assert_eq!(selected(&scope, ".all").unwrap().len(), 1);
    assert_eq!(selected(&scope, ".maybe[].x").unwrap(), [] as [Value; 0]);
    assert_eq!(selected(&scope, ".params.size").unwrap(), [json!(3)]);
    assert_eq!((opened(&data), opened(&parsed)), (1, 1));
    assert!(scope.entries.iter().all(|(_, entry)| match entry {
        ScopeEntry::File(file) => file.parsed.get().is_none(),
        _ => true,
    }));
}

#[test]
fn says_what_does_not_fit() {
    let (scope, ..) = sample();
    let fails = |select: &str| selected(&scope, select).unwrap_err().to_string();
    assert_eq!(
        fails(".parsed.elements[].id"),
        "parsed.json: /elements/0 is a number, expected an object"
    );
    assert_eq!(fails(".all[][].x"), "1.json: /0 has no `x`");
    assert_eq!(fails(".params.nope"), "params: the document has no `nope`");
    assert_eq!(
        fails(".parse.x"),
        "`parse` is not a name of this stage; it has `params`, `batch`, `model`, `parsed`, `all`, `maybe`; did you mean `parsed`?"
    );
    let mut scope = Scope::new();
    scope.insert_file(
        "rows",
        memory("r.ndjson", "{\"k\": 1}\n{\"j\": 2}"),
        Format::Ndjson,
    );
    assert_eq!(
        selected(&scope, ".rows[].k").unwrap_err().to_string(),
        "r.ndjson: record 2: the document has no `k`"
    );
}

/// A header of a megabyte in each of 200,000 records, or of 300,000 names: minutes and all memory.
#[test]
fn a_table_cannot_grow_by_the_names_of_its_columns() {
    let long = format!("{}\n{}", "k".repeat(1 << 20), "x\n".repeat(200_000));
    let why = value("a.csv", long).unwrap_err().to_string();
    assert!(
        why.starts_with("a.csv:")
            && why.ends_with("have 1048576 bytes, and each row repeats them: shorten them"),
        "{why}"
    );
    let names: Vec<String> = (0..300_000).map(|number| format!("c{number}")).collect();
    assert_eq!(value("a.csv", names.join(",")), Ok(json!([])));
}
