//! Programs that read parts of files return what they return with all of them.

use crate::base::source::Source;
use crate::expr::jq::{Evaluation, Evaluator, Jq, JqError};
use crate::expr::sample::project_files;
use crate::expr::scope::{Format, Scope, ScopeEntry};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

struct Text(&'static str, String);

impl Source for Text {
    fn name(&self) -> String {
        self.0.to_owned()
    }

    fn path(&self) -> &Path {
        Path::new(self.0)
    }

    fn open(&self) -> io::Result<Box<dyn Read + Send>> {
        Ok(Box::new(io::Cursor::new(self.1.clone())))
    }
}

/// Runs programs as a worker does.
struct Here;

impl Evaluator for Here {
    fn evaluate(&self, of: Evaluation<'_>) -> Result<Vec<Result<Vec<Value>, String>>, JqError> {
        let parsed = |text: &String| serde_json::from_str(text).unwrap();
        let vars: Vec<Value> = of.vars.iter().map(parsed).collect();
        let mut bound = of.jq.bind(&vars)?;
        let mut run = |input| bound.values_of_text(of.set, input, of.only);
        let found = of
            .inputs
            .iter()
            .map(|input| run(input).map_err(|error| error.message));
        Ok(found.collect())
    }
}

/// Numbers by the generator of Marsaglia, the same in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % most as u64) as usize
    }

    fn one_of<T: Clone>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())].clone()
    }

    fn value(&mut self, keys: &[String], depth: usize) -> Value {
        match self.below(if depth == 0 { 5 } else { 12 }) {
            0 => Value::Null,
            1 => json!(self.below(2) == 0),
            2 => json!(self.below(4)),
            3 => json!(0.5),
            4 => json!(self.one_of(keys)),
            5..=7 => (0..self.below(4))
                .map(|_| self.value(keys, depth - 1))
                .collect(),
            _ => {
                let entries = (0..self.below(4)).map(|_| {
                    let key = self.one_of(keys);
                    (key, self.value(keys, depth - 1))
                });
                Value::Object(entries.collect::<Map<_, _>>())
            }
        }
    }

    /// The text of a value; one in eight is no JSON, or none that is taken.
    fn text(&mut self, keys: &[String]) -> String {
        let text = self.value(keys, 4).to_string();
        let wrong = [
            "[1,]",
            "{\"a\":1,\"a\":2}",
            "123456789012345678901",
            "\"\\ud800\"",
            "1e999",
            "{\"z\":[{\"b\":1,\"b\":1}]}",
        ];
        match self.below(24) {
            0 => text[..text.len() / 2].replace(char::is_alphabetic, "?"),
            1 => text.replacen("null", self.one_of(&wrong), 1),
            2 => format!(
                "{{\"unread\":{},{}",
                self.one_of(&wrong),
                &json!({ self.one_of(keys): 1 }).to_string()[1..]
            ),
            3 => format!("\u{feff}{text}"),
            _ => text,
        }
    }

    fn file(&mut self, keys: &[String]) -> (Arc<dyn Source>, crate::expr::scope::Reading) {
        let text = self.text(keys);
        match self.below(8) {
            0 => (Arc::new(Text("a.ndjson", text)), Format::Ndjson.into()),
            1 => (Arc::new(Text("a.txt", text)), Format::Text.into()),
            2 => (Arc::new(Text("a.bin", text)), Format::Binary.into()),
            _ => (Arc::new(Text("a.json", text)), Format::Json.into()),
        }
    }

    fn scope(&mut self, names: &BTreeSet<String>, keys: &[String]) -> Scope {
        let mut scope = Scope::new();
        for name in names {
            match self.below(8) {
                0 => scope.absent(name),
                1 => scope.insert_value(name, self.value(keys, 4)),
                2 => {
                    scope.insert_value(name, json!({"path": "x"}));
                    let (file, reading) = self.file(keys);
                    let member = self.one_of(keys);
                    scope.insert_file(&format!("{name}.{member}"), file, reading);
                }
                3..=5 => {
                    let (file, reading) = self.file(keys);
                    scope.insert_file(name, file, reading);
                }
                _ => {
                    let files = (0..self.below(4)).map(|_| self.file(keys));
                    scope.insert_files(name, files.collect());
                }
            }
        }
        scope
    }
}

type Outputs = Result<Vec<Value>, String>;

/// Returns the outputs of a program whose files are parsed as a whole.
fn with_all_values(scope: &Scope, jq: &Jq) -> Outputs {
    let said = |error: &dyn std::fmt::Display| error.to_string();
    let input = scope.input_of(jq).map_err(|error| said(&error))?;
    let vars = scope.vars_of(jq).map_err(|error| said(&error))?;
    let limited = jq.limited(&vars, &Here).map_err(|error| said(&error))?;
    limited.all(&input).map_err(|error| said(&error))
}

fn with_parts(scope: &Scope, jq: &Jq) -> Outputs {
    let found = scope.all(jq, &Here).map_err(|error| error.to_string())?;
    found.map_err(|error| error.to_string())
}

/// Returns the names behind each `$`.
fn variables(source: &str) -> BTreeSet<String> {
    let names = source.split('$').skip(1).map(|rest| {
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        rest[..end.unwrap_or(rest.len())].to_owned()
    });
    names
        .filter(|name| crate::expr::name::is_name(name))
        .collect()
}

/// Every text of the declarations, filters and templates of the projects here that is a program.
fn programs_of_projects() -> Vec<String> {
    fn texts(value: &toml::Value, found: &mut Vec<String>) {
        match value {
            toml::Value::String(text) => found.push(text.clone()),
            toml::Value::Array(items) => items.iter().for_each(|item| texts(item, found)),
            toml::Value::Table(table) => table.values().for_each(|item| texts(item, found)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    for folder in ["stages", "filters", "templates"] {
        for (project, file) in project_files(folder) {
            let Ok(text) = std::fs::read_to_string(project.join(&file)) else {
                continue;
            };
            match text.parse::<toml::Table>() {
                Ok(declared) => texts(&declared.into(), &mut found),
                Err(_) => found.push(text),
            }
        }
    }
    found
}

/// Programs that use parts in ways of their own.
const PARTS: &[&str] = &[
    "{count: ($results | length), sum: ([$results[].value] | add)}",
    "$results | length",
    ".results | length",
    ".results[] | length",
    "[$results[] | length, type]",
    "[$results[].a | length?]",
    "$results[0].a.b",
    "$results[-1]",
    "$results[1:][].a",
    "$results.a",
    "$results.a?",
    "[$results[]?.a.b?]",
    "$results | map(.a) | add",
    "$results | map(select(.a == 1)) | length",
    "[$results[] | select(.a) | .b]",
    "[$results[] | {a, b}] | group_by(.a)",
    "reduce $results[] as $r (0; . + $r.a)",
    "$results | to_entries",
    "$results | keys",
    "$results | has(0)",
    "[$results[] | has(\"a\")]",
    "$results | tojson",
    "$results[].a |= 1",
    ".results[0].a = 1",
    "[$results | ..]",
    "[$results[] | .a // .b // \"c\"]",
    "if .results | length > 1 then .results[0].a else $results[0].b end",
    ". as $all | $all.results[].a",
    ". as {$results} | $results[].a",
    ".results as [$first] | $first.a",
    "$results | first(.[].a)",
    "$results | any(.[]; .a)",
    "$results | length as $n | .[$n - 1].a",
    "def f: length; def g($x): $x | f; [f, g($results), (.results | f)]",
    "try $results[].a catch \"x\"",
    "[$results[] | try .a catch .]",
    "$results[].a | error",
    "$results | not",
    "-$results",
    "1",
    "$__loc__",
    "[limit(2; $results[].a)]",
    "$results | sort_by(.a) | .[0].b",
    "$results | min_by(.a), unique_by(.b)",
    "[.results, $results] | map(length)",
    ".a, .b, .results",
    "keys",
    ".[]",
    ".[].a",
    "length",
    "$results[.results | length]",
    "$results[\"a\", 0]?",
    "[$results[].a.b.c?] | length",
    "input",
    "[inputs]",
    "$results.path, $results.a",
];

#[test]
fn a_program_that_reads_parts_returns_what_it_returns_with_all() {
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let own = PARTS.iter().map(|&source| source.to_owned());
    let alike = crate::expr::jq::PROGRAMS
        .iter()
        .map(|&source| source.to_owned());
    let (mut programs, mut in_parts, mut differing) = (0, 0, Vec::new());
    for source in own.chain(alike).chain(programs_of_projects()) {
        let vars = variables(&source);
        let names: Vec<&str> = vars.iter().map(String::as_str).collect();
        let Ok(jq) = Jq::compile("p", &source, &names) else {
            continue;
        };
        programs += 1;
        let all = jq.with_all_demands();
        let names: BTreeSet<String> = jq.roots().roots().into_iter().chain(vars.clone()).collect();
        let mut keys: Vec<String> = jq.names().iter().cloned().collect();
        keys.extend(["a", "b", "value", "unread"].map(str::to_owned));
        let rounds = if PARTS.contains(&source.as_str()) {
            60
        } else {
            8
        };
        for _ in 0..rounds {
            let scope = random.scope(&names, &keys);
            let parts = with_parts(&scope, &jq);
            // Nothing was parsed as a whole: the rest of the files was not kept.
            let is_part = |entry: &ScopeEntry| match entry {
                ScopeEntry::Files(files) => files.iter().all(|file| file.parsed.get().is_none()),
                _ => false,
            };
            in_parts +=
                usize::from(parts.is_ok() && scope.entries.iter().any(|(_, entry)| is_part(entry)));
            if parts != with_all_values(&scope, &jq) {
                differing.push((source.clone(), parts.clone()));
            }
            // jaq with all values: another message may show more of a variable.
            let truth = with_all_values(&scope, &all);
            if parts.is_ok() != truth.is_ok() || parts.is_ok() && parts != truth {
                differing.push((source.clone(), truth));
            }
        }
    }
    assert_eq!(differing, []);
    assert!(programs > 400 && in_parts > 300, "{programs} {in_parts}");
}

#[test]
fn the_first_file_that_cannot_be_read_is_reported_though_no_part_of_it_is_used() {
    let scope = |results: &[&str]| {
        let mut scope = Scope::new();
        let file = |text: &&str| -> (Arc<dyn Source>, _) {
            (
                Arc::new(Text("a.json", (*text).to_owned())),
                Format::Json.into(),
            )
        };
        scope.insert_files("results", results.iter().map(file).collect());
        scope
    };
    let jq = Jq::compile("p", "[$results[].value] | add", &["results"]).unwrap();
    let run = |results: &[&str]| with_parts(&scope(results), &jq);
    assert_eq!(
        run(&["{\"value\":1,\"x\":{}}", "{\"value\":2}"]),
        Ok(vec![json!(3)])
    );
    for (text, message) in [
        (
            "{\"value\":1,",
            "a.json: line 1, column 11: the file ends too early: EOF while parsing a value",
        ),
        (
            "{\"value\":1,\"x\":{\"y\":1,\"y\":2}}",
            "a.json: line 1, column 25: duplicate key `y`",
        ),
        (
            "{\"x\":1,\"x\":2}",
            "a.json: line 1, column 10: duplicate key `x`",
        ),
        (
            "{\"x\":123456789012345678901}",
            "a.json: line 1, column 6: the integer 123456789012345678901 needs more than 64 bits: write it as a string",
        ),
        (
            "{\"x\":\"\\ud800\"}",
            "a.json: line 1, column 13: unexpected end of hex escape",
        ),
    ] {
        assert_eq!(run(&["{\"value\":1}", text, "x"]), Err(message.to_owned()));
    }
}
