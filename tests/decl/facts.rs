//! What a batch depends on: whatever is changed in a declaration, or in a file that it names, is a fact with another value.

use super::Files;
use milepost::view::text::reason::change;
use milepost_core::model::fingerprint::{Facts, changes};
use milepost_core::plan::facts::shared;
use milepost_core::plan::settings::Settings;
use serde_json::{Map, Value, json};

const PROJECT: &str = r#"
name = "facts"

[params]
a = "1"
b = "1"

[env]
E = "x"
F = "x"

[agents.rules]
rules = "rules/table.toml"
[agents.jq]
jq = '{kind: "a"}'
[agents.model]
anthropic = "m1"
temperature = 0.5
base_url = "http://one"
[agents.tool]
cli = ["ask", "me"]
envelope = "json"
"#;

/// A stage with one step of each kind, and all that can be written for them.
const STAGE: &str = r#"
marker = "intermediate/{{ note.stem }}_{{ params.a }}.txt"

[each.note]
path = "inputs/notes/*.json"

[inputs]
model = "inputs/{{ params.a }}.ifc"
listed = { from = "inputs/list.json", select = ".one[]", base = "inputs" }
typed = { path = "inputs/typed.txt", format = "json" }
page = "inputs/page.md"
scan = "inputs/scan.pdf"

[refine]
until = ".computed.until != 1"
max_iterations = "{{ params.a }}"
score = ".computed.score"
otherwise = "best"

[[step]]
command = ["run", "{{ params.a }}", "{{ note.path }}"]
env = ["E"]
stdin = "page"
reads = ["project:tools/*.py"]
when = '$params.a == "when"'
out = "commanded"

[[step]]
command = 'run {{ params.a }} script'
out = "scripted"

[[step]]
agent = "rules"
prompt = "prompts/ask.md"
schema = "schemas/answer.schema.json"
result = '{result: .kind}'
questions = true
out = "ruled"

[[step]]
agent = "model"
prompt = "prompts/one.md"
answer = "tap-yaml"
attach = ["scan"]
defaults = { tone = "plain" }
result = '{one: .kind}'
out = "asked"

[[step]]
agent = "jq"
prompt = "prompts/one.md"
result = '.'
out = "programmed"

[[step]]
agent = "tool"
prompt = "prompts/{{ note.stem }}.md"
result = '.'
out = "tooled"

[[step]]
http = "http://localhost/{{ params.a }}"
method = "PUT"
headers = { x-name = "{{ params.a }}" }
body = '{sent: .computed}'
schema = "schemas/reply.schema.json"
out = "called"

[[step]]
jq = '{computed: 1}'
out = "computed"

[[step]]
jq = 'reduce inputs as $line (0; . + 1)'
stream = ".ruled[]"
out = "streamed"

[[step]]
render = "templates/page.md"
out = "rendered"

[[step]]
xlsx = "templates/book.xlsx.toml"
out = "book"

[[step]]
ifc = "model"
out = "parsed"

[[step]]
pdf = "page"
out = "document"

[[step]]
pdf_text = "scan"
engines = ["builtin"]
out = "text"

[[step]]
copy = "page"
out = "copied"

[[step]]
wait = "outbox/{{ params.a }}.pdf"
marker = "outbox/{{ params.a }}.ok"
out = "awaited"

[[step]]
split = ".parsed.elements"
question = '{question: .name}'
size = "{{ params.a }}"
max_elements = 7
out = "batches"

[[step]]
merge = ".ruled[]"
key = ".key"
order = ".parsed.elements[].key"
corrections = "listed"
shared_key = "kind"
out = "merged"

[outputs]
computed = { path = "outputs/{{ note.stem }}_{{ params.a }}.json", schema = false, stream = ".records" }
batches = { path = "outputs/{{ note.stem }}/batch_*.json", schema = false }
book = { path = "outputs/{{ note.stem }}.xlsx", schema = false }
"#;

fn files() -> Files {
    Files::of([
        ("milepost.toml", PROJECT),
        ("stages/1_all.toml", STAGE),
        (
            "rules/table.toml",
            "# A table.\n[[rule]]\nname = \"one\"\nanswer = { kind = \"a\" }\n",
        ),
        ("prompts/ask.md", "Ask {{ questions | tojson }}"),
        (
            "prompts/one.md",
            "One {{ params.b }} {% include \"prompts/head.md\" %}",
        ),
        ("prompts/head.md", "Head"),
        ("templates/page.md", "Page"),
        (
            "templates/book.xlsx.toml",
            "# A book.\n[[sheet]]\nname = \"One\"\nrows = \"[1]\"\n",
        ),
        ("schemas/answer.schema.json", "{}"),
        ("schemas/reply.schema.json", "{}"),
        ("tools/help.py", ""),
    ])
}

fn facts(files: &Files) -> Facts {
    let (pipeline, _) = files
        .load()
        .unwrap_or_else(|problems| panic!("{}", problems.render(false)));
    let Value::Object(params) = json!({"a": "1", "b": "1"}) else {
        unreachable!()
    };
    let settings = Settings {
        programs: std::collections::BTreeMap::new(),
        params,
        env: [
            ("E".to_owned(), "x".to_owned()),
            ("F".to_owned(), "x".to_owned()),
        ]
        .into(),
        workspace: Map::new(),
        agents: [].into(),
        version: "1".to_owned(),
        overrides: Vec::new(),
    };
    shared(&pipeline.stages[0], &pipeline, &settings)
}

/// What a change says, of the parts that outputs are made from.
fn told(before: &Facts, files: &Files) -> Vec<String> {
    let none = Facts::default();
    let after = facts(files);
    let found = changes([before, &none], [&after, &none]);
    let made = found
        .iter()
        .filter(|change| !change.fact.kind.only_validates());
    made.map(change).collect()
}

fn edited(file: &str, from: &str, to: &str) -> Files {
    let files = files();
    let text = String::from_utf8(files.0[file].clone()).unwrap();
    assert!(text.contains(from), "{file} has no {from}");
    files.with(file, &text.replacen(from, to, 1))
}

#[test]
fn every_expression_of_every_step_is_one() {
    let before = facts(&files());
    assert_eq!(told(&before, &files()), Vec::<String>::new());
    let mut unseen = Vec::new();
    let stage = [
        (
            "{{ note.stem }}_{{ params.a }}.txt",
            "{{ note.stem }}_{{ params.b }}.txt",
        ),
        ("{{ params.a }}.ifc", "{{ params.b }}.ifc"),
        (".one[]", ".two[]"),
        ("base = \"inputs\"", "base = \"inputs/x\""),
        ("format = \"json\"", "format = \"ndjson\""),
        ("until != 1", "until != 2"),
        (
            "max_iterations = \"{{ params.a }}\"",
            "max_iterations = \"{{ params.b }}\"",
        ),
        ("max_iterations = \"{{ params.a }}\"", "max_iterations = 4"),
        ("computed.score", "computed.other"),
        ("otherwise = \"best\"", "otherwise = \"fail\""),
        (
            "\"{{ params.a }}\", \"{{ note",
            "\"{{ params.b }}\", \"{{ note",
        ),
        ("env = [\"E\"]", "env = [\"F\"]"),
        ("stdin = \"page\"", "stdin = \"scan\""),
        ("tools/*.py", "tools/**/*.py"),
        ("== \"when\"", "== \"then\""),
        ("run {{ params.a }} script", "run {{ params.b }} script"),
        ("agent = \"rules\"", "agent = \"jq\""),
        ("{result: .kind}", "{result: .other}"),
        ("prompt = \"prompts/ask.md\"", "prompt = \"prompts/one.md\""),
        ("answer = \"tap-yaml\"\n", ""),
        ("attach = [\"scan\"]", "attach = [\"page\"]"),
        ("tone = \"plain\"", "tone = \"warm\""),
        ("prompts/{{ note.stem }}.md", "prompts/{{ params.b }}.md"),
        (
            "http://localhost/{{ params.a }}",
            "http://localhost/{{ params.b }}",
        ),
        ("\"PUT\"", "\"POST\""),
        ("x-name = \"{{ params.a }}\"", "x-name = \"{{ params.b }}\""),
        ("{sent: .computed}", "{sent: .commanded}"),
        ("{computed: 1}", "{computed: 2}"),
        ("(0; . + 1)", "(0; . + 2)"),
        ("stream = \".ruled[]\"", "stream = \".asked[]\""),
        ("ifc = \"model\"", "ifc = \"scan\""),
        ("pdf = \"page\"", "pdf = \"rendered\""),
        ("pdf_text = \"scan\"", "pdf_text = \"page\""),
        (
            "engines = [\"builtin\"]",
            "engines = [\"builtin\", \"pdftotext\"]",
        ),
        ("copy = \"page\"", "copy = \"scan\""),
        ("outbox/{{ params.a }}.pdf", "outbox/{{ params.b }}.pdf"),
        ("outbox/{{ params.a }}.ok", "outbox/{{ params.b }}.ok"),
        ("split = \".parsed.elements\"", "split = \".parsed.others\""),
        ("{question: .name}", "{question: .kind}"),
        ("size = \"{{ params.a }}\"", "size = \"{{ params.b }}\""),
        ("max_elements = 7", "max_elements = 8"),
        ("merge = \".ruled[]\"", "merge = \".asked[]\""),
        ("key = \".key\"", "key = \".id\""),
        (
            "order = \".parsed.elements[].key\"",
            "order = \".parsed.elements[].id\"",
        ),
        ("corrections = \"listed\"", "corrections = \"typed\""),
        ("shared_key = \"kind\"", "shared_key = \"name\""),
        ("_{{ params.a }}.json", "_{{ params.b }}.json"),
        ("stream = \".records\"", "stream = \".others\""),
    ];
    let project = [
        ("{kind: \"a\"}", "{kind: \"b\"}"),
        ("anthropic = \"m1\"", "anthropic = \"m2\""),
        ("temperature = 0.5", "temperature = 0.6"),
        ("[\"ask\", \"me\"]", "[\"ask\", \"you\"]"),
        ("envelope = \"json\"", "envelope = \"text\""),
    ];
    let files = [
        ("rules/table.toml", "kind = \"a\"", "kind = \"b\""),
        ("prompts/one.md", "One", "Two"),
        ("prompts/head.md", "Head", "Feet"),
        ("templates/page.md", "Page", "Leaf"),
        ("templates/book.xlsx.toml", "One", "Two"),
        ("schemas/reply.schema.json", "{}", "{\"type\": \"object\"}"),
    ];
    let all = stage
        .iter()
        .map(|(from, to)| ("stages/1_all.toml", *from, *to));
    let all = all.chain(
        project
            .iter()
            .map(|(from, to)| ("milepost.toml", *from, *to)),
    );
    for (file, from, to) in all.chain(files) {
        if told(&before, &edited(file, from, to)).is_empty() {
            unseen.push(format!("{file}: {from} → {to}"));
        }
    }
    assert_eq!(unseen, Vec::<String>::new());
}

#[test]
fn a_reason_names_what_changed_with_its_values() {
    let before = facts(&files());
    for (file, from, to, reasons) in [
        (
            "rules/table.toml",
            "kind = \"a\"",
            "kind = \"b\"",
            &["rules/table.toml changed"][..],
        ),
        (
            "templates/book.xlsx.toml",
            "One",
            "Two",
            &["templates/book.xlsx.toml changed"],
        ),
        (
            "milepost.toml",
            "\"m1\"",
            "\"m2\"",
            &["agent model.model changed: m1 → m2"],
        ),
        (
            "milepost.toml",
            "0.5",
            "0.25",
            &["agent model.temperature changed: 0.5 → 0.25"],
        ),
        (
            "stages/1_all.toml",
            "script'",
            "text'",
            &["2.command changed: run {{ params.a }} script → run {{ params.a }} text"],
        ),
        (
            "stages/1_all.toml",
            "max_elements = 7",
            "max_elements = 8",
            &["17.max_elements changed: 7 → 8"],
        ),
        (
            "stages/1_all.toml",
            "until != 1",
            "until != 2",
            &["refine.until changed: .computed.until != 1 → .computed.until != 2"],
        ),
        // A comment, and the layout, change nothing.
        ("rules/table.toml", "# A table.\n", "# Another.\n\n", &[]),
        ("templates/book.xlsx.toml", "# A book.\n", "", &[]),
        (
            "templates/book.xlsx.toml",
            "name = \"One\"",
            "name   =   'One'   # first",
            &[],
        ),
    ] {
        assert_eq!(
            told(&before, &edited(file, from, to)),
            reasons,
            "{file}: {from} → {to}"
        );
    }
}

#[test]
fn facts_without_details_are_compared_as_they_were_recorded() {
    let present = facts(&files());
    let mut recorded = Facts::default();
    for (key, value) in present.iter().filter(|(key, _)| key.detailed().is_none()) {
        recorded.add(key.kind, key.name.clone(), value.clone());
    }
    assert!(recorded.iter().count() < present.iter().count());
    assert_eq!(told(&recorded, &files()), Vec::<String>::new());
    assert_eq!(recorded.id(), present.coarse_id());
    let templated = edited(
        "stages/1_all.toml",
        "max_iterations = \"{{ params.a }}\"",
        "max_iterations = \"{{ params.b }}\"",
    );
    let reasons = told(&recorded, &templated);
    assert!(
        matches!(reasons.as_slice(), [reason] if reason.starts_with("declaration of refine ")),
        "{reasons:?}"
    );
    let reasons = told(
        &recorded,
        &edited("rules/table.toml", "# A table.", "# Another."),
    );
    assert!(
        matches!(reasons.as_slice(), [reason] if reason.starts_with("agent rules changed (")),
        "{reasons:?}"
    );
}

#[test]
fn a_variable_that_is_not_declared_is_refused_at_its_place() {
    assert_eq!(
        edited(
            "stages/1_all.toml",
            "env = [\"E\"]",
            "env = [\"E\", \"TOKEN\"]"
        )
        .wrong(),
        "error: there is no environment variable `TOKEN`
  --> stages/1_all.toml:22:13
   |
22 | env = [\"E\", \"TOKEN\"]
   |             ^^^^^^^ not declared in milepost.toml
   |
   = help: declare it in milepost.toml, with a default: [env] and below it TOKEN = \"\"
"
    );
}

#[test]
fn a_pattern_of_reads_that_matches_nothing_is_refused_at_its_place() {
    assert_eq!(
        edited(
            "stages/1_all.toml",
            "project:tools/*.py",
            "project:tools/**/*.pl"
        )
        .wrong(),
        "error: no file of the project matches `tools/**/*.pl`
  --> stages/1_all.toml:24:10
   |
24 | reads = [\"project:tools/**/*.pl\"]
   |          ^^^^^^^^^^^^^^^^^^^^^^^ matches nothing
   |
   = help: name existing files; `**` as a part of a path matches any folders
"
    );
}
