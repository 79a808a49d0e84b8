//! Pages that are generated below a marker: commands from their help, keys from the published schemas.

use super::session::Session;
use super::{is_blessed, read, write};
use crate::support::required::require;
use serde_json::{Map, Value};
use std::fmt::Write as _;

const MARKER: &str = "<!-- generated from here on: BLESS=1 cargo test --test all pages -->\n";

/// Compares what is below the marker with what is generated.
#[track_caller]
fn hold(path: &str, generated: &str) {
    let page = read(path);
    let (head, below) = page.split_once(MARKER).expect("no marker");
    let generated = format!("\n{}\n", generated.trim());
    if is_blessed() {
        write(path, &format!("{head}{MARKER}{generated}"));
    } else {
        assert!(
            below == generated,
            "{path} is out of date: BLESS=1 cargo test --test all pages"
        );
    }
}

#[test]
fn commands_are_those_of_the_program() {
    let mut session = require!(Session::new());
    let mut help = |command: &str| session.run(&format!("milepost help {command}")).text;
    let top = help("");
    let list = top.split_once("Commands:\n").unwrap().1;
    let list = list.split_once("\n\n").unwrap().0;
    let names = list
        .lines()
        .filter_map(|line| line.strip_prefix("  ").filter(|it| !it.starts_with(' ')))
        .map(|line| line.split(' ').next().unwrap());
    let mut text = format!("## milepost\n\n```text\n{}\n```\n", top.trim_end());
    for name in names {
        // The options of every command are shown once, above.
        let own: Vec<String> = help(name)
            .split("\n\n")
            .filter(|part| !part.starts_with("Options of every command:"))
            .map(str::to_owned)
            .collect();
        let own = own.join("\n\n");
        write!(
            text,
            "\n## milepost {name}\n\n```text\n{}\n```\n",
            own.trim_end()
        )
        .unwrap();
    }
    hold("docs/reference/commands.md", &text);
}

#[test]
fn keys_are_those_of_the_schemas() {
    let mut text = String::new();
    for (name, title) in [
        ("project", "`milepost.toml`"),
        ("stage", "`stages/N_name.toml`"),
        ("rules", "A table of rules"),
        ("workbook", "A workbook"),
        ("prices", "`prices.toml`"),
    ] {
        let schema = schema(name);
        write!(text, "\n## {title}\n\n{}\n", string(&schema, "description")).unwrap();
        tables(&schema, &schema, "", &mut text);
    }
    text.push_str("\n## JSON that Milepost writes\n\n| what | schema |\n|---|---|\n");
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas/milepost");
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    for name in names {
        let name = name.trim_end_matches(".schema.json");
        let title = string(&schema(name), "title");
        if ["project", "stage", "rules", "workbook", "prices"].contains(&name) {
            continue;
        }
        writeln!(
            text,
            "| {title} | [{name}](../../schemas/milepost/{name}.schema.json) |"
        )
        .unwrap();
    }
    hold("docs/reference/keys.md", &text);
}

#[test]
fn states_are_those_of_the_schemas() {
    let (status, run) = (schema("status"), schema("run"));
    let (plan, progress) = (schema("plan"), schema("progress"));
    let mut text = String::new();
    for (title, about, schema, among) in [
        (
            "A stage on every screen",
            "Command line, pages, graph and report show these words. In JSON, `state` of a stage has them with `_` for each blank.",
            &status,
            ["up_to_date", "out_of_date", "waiting"],
        ),
        (
            "A stage in JSON: `status` of `status --json`",
            "These words are older than those on the screens. They tell what is recorded, not what a run would do.",
            &status,
            ["complete", "held", "altered"],
        ),
        (
            "A stage in JSON: `status` of `run --json`",
            "",
            &run,
            ["held", "blocked", "altered"],
        ),
        (
            "A stage that blocks another",
            "",
            &run,
            ["incomplete", "outdated", "unjudged"],
        ),
        (
            "The progress file",
            "",
            &progress,
            ["in_progress", "complete", "held"],
        ),
        (
            "Reasons to run a batch",
            "`plan` and `why` name them, with old and new values.",
            &plan,
            ["never_made", "changed", "forced"],
        ),
        (
            "Outcomes of a failed attempt",
            "`[errors]` gives an outcome a name of your own: in `milepost.toml` for all stages, in a stage for it, and as `errors` of a step (`[step.errors]`) for that\n\
             step alone. Without one, its code is the word in capitals.",
            &run,
            ["timeout", "conserve", "refine"],
        ),
    ] {
        write!(text, "\n## {title}\n\n").unwrap();
        if !about.is_empty() {
            write!(text, "{about}\n\n").unwrap();
        }
        text.push_str("| word | meaning |\n|---|---|\n");
        for (mut word, meaning) in words(schema, among) {
            if among[0] == "up_to_date" {
                word = word.replace('_', " ");
            }
            writeln!(text, "| `{word}` | {} |", cell(&meaning)).unwrap();
        }
    }
    hold("docs/reference/states.md", &text);
}

/// Returns the words, each with its meaning, of the type of a schema that has all of some words.
#[track_caller]
fn words(schema: &Value, among: [&str; 3]) -> Vec<(String, String)> {
    for (_, kind) in schema["$defs"].as_object().unwrap() {
        let words: Vec<(String, String)> = kind["oneOf"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|form| {
                let tag = form["properties"]["reason"]["const"].as_str();
                let word = tag.or(form["const"].as_str()).unwrap_or_default();
                (word.to_owned(), string(form, "description"))
            })
            .collect();
        if among
            .iter()
            .all(|it| words.iter().any(|(word, _)| word == it))
        {
            return words;
        }
    }
    panic!("no type with the words {among:?}");
}

fn schema(name: &str) -> Value {
    serde_json::from_str(&read(&format!("schemas/milepost/{name}.schema.json"))).unwrap()
}

fn string(of: &Value, key: &str) -> String {
    of[key].as_str().unwrap_or_default().to_owned()
}

/// Writes a table of the keys of a schema, then those of the tables inside it.
fn tables(root: &Value, schema: &Value, header: &str, text: &mut String) {
    let Some(keys) = schema["properties"].as_object() else {
        return;
    };
    if keys.values().all(|value| value["description"].is_null()) {
        let names: Vec<String> = keys.keys().map(|key| format!("`{key}`")).collect();
        write!(
            text,
            "\n### `{header}`\n\nEach key is a string: {}.\n",
            names.join(", ")
        )
        .unwrap();
        return;
    }
    if !header.is_empty() {
        write!(text, "\n### `{header}`\n").unwrap();
    }
    text.push_str("\n| key | value | meaning |\n|---|---|---|\n");
    for (key, value) in keys {
        let about = format!("{}{}", need(schema, key), string(value, "description"));
        writeln!(
            text,
            "| `{key}` | {} | {} |",
            cell(&kind(root, value)),
            cell(&about)
        )
        .unwrap();
    }
    for (key, value) in keys {
        for (inner, open, close) in inner(root, value) {
            let name = header.trim_matches(['[', ']']);
            let dot = if name.is_empty() { "" } else { "." };
            tables(root, inner, &format!("{open}{name}{dot}{key}{close}"), text);
        }
    }
}

/// Returns the tables that may stand behind a key, each with the brackets of its header.
fn inner<'a>(root: &'a Value, value: &'a Value) -> Vec<(&'a Value, &'static str, &'static str)> {
    let mut found = Vec::new();
    for branch in branches(root, value) {
        let named = resolved(root, &branch["additionalProperties"]);
        let items = resolved(root, &branch["items"]);
        if branch["properties"].is_object() {
            found.push((branch, "[", "]"));
        } else if items["properties"].is_object() {
            found.push((items, "[[", "]]"));
        }
        for table in branches(root, named) {
            if table["properties"].is_object() {
                found.push((table, "[", ".NAME]"));
            }
        }
    }
    // `[step]` and `[[step]]` have the same keys.
    found.dedup_by(|later, earlier| later.0["properties"] == earlier.0["properties"]);
    found
}

fn resolved<'a>(root: &'a Value, value: &'a Value) -> &'a Value {
    let pointer = value["$ref"]
        .as_str()
        .and_then(|path| path.strip_prefix('#'));
    pointer.map_or(value, |pointer| root.pointer(pointer).unwrap())
}

/// Returns the forms that a value may have.
fn branches<'a>(root: &'a Value, value: &'a Value) -> Vec<&'a Value> {
    let value = resolved(root, value);
    let forms = value["anyOf"].as_array().or(value["oneOf"].as_array());
    let is_choice = |forms: &&Vec<Value>| forms.iter().all(|form| form["required"].is_null());
    match forms
        .filter(|_| value["properties"].is_null())
        .filter(|it| is_choice(it) || value["type"].is_null())
    {
        Some(forms) => forms.iter().flat_map(|form| branches(root, form)).collect(),
        None => vec![value],
    }
}

/// Returns what a key needs beside it.
fn need(table: &Value, key: &str) -> &'static str {
    let names = |list: &Value| {
        list.as_array()
            .is_some_and(|it| it.iter().any(|it| it == key))
    };
    let is_one = table["oneOf"]
        .as_array()
        .is_some_and(|forms| forms.iter().any(|form| names(&form["required"])));
    if names(&table["required"]) {
        "**Required.** "
    } else if is_one {
        "**One of these.** "
    } else {
        ""
    }
}

/// Returns a value's form in words.
fn kind(root: &Value, value: &Value) -> String {
    let mut forms: Vec<String> = Vec::new();
    for branch in branches(root, value) {
        let form = form(root, branch);
        if !form.is_empty() && !forms.contains(&form) {
            forms.push(form);
        }
    }
    forms.join(" or ")
}

fn form(root: &Value, value: &Value) -> String {
    if let Some(only) = value.get("const") {
        let text = only.to_string();
        return format!("`{}`", text.trim_matches('"'));
    }
    if let Some(words) = value["enum"].as_array() {
        let words: Vec<String> = words
            .iter()
            .filter_map(Value::as_str)
            .map(|it| format!("`{it}`"))
            .collect();
        return words.join(", ");
    }
    let types = match &value["type"] {
        Value::Array(types) => types
            .iter()
            .filter_map(Value::as_str)
            .find(|it| *it != "null"),
        other => other.as_str(),
    };
    match types {
        Some("string") => match value["pattern"].as_str() {
            Some(pattern) if pattern.contains("(ms|s|m") => "duration".to_owned(),
            Some(r"\{\{") => "template".to_owned(),
            _ => "string".to_owned(),
        },
        Some(number @ ("integer" | "number")) => bounded(number, value.as_object().unwrap()),
        Some("array") => {
            let items = kind(root, &value["items"]);
            match items.as_str() {
                "" | "any" => "list".to_owned(),
                "string" | "table" => format!("list of {items}s"),
                _ => format!("list of {items}"),
            }
        }
        Some("object") if value["additionalProperties"]["type"] == "string" => {
            "table of strings".to_owned()
        }
        Some("object") => "table".to_owned(),
        Some("null") => String::new(),
        Some(other) => other.to_owned(),
        None => "any".to_owned(),
    }
}

fn bounded(number: &str, value: &Map<String, Value>) -> String {
    match (value.get("minimum"), value.get("maximum")) {
        (Some(least), Some(most)) => format!("{number} from {least} to {most}"),
        (Some(least), None) => format!("{number} ≥ {least}"),
        _ => number.to_owned(),
    }
}

/// Returns a text that can be a cell of a table.
fn cell(text: &str) -> String {
    text.replace('\n', " ").replace('|', "\\|")
}
