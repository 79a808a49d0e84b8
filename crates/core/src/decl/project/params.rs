//! Reads one entry of `[params]`: a bare default, a declared parameter, or a file.

use crate::decl::keys::{PARAM, PARAM_FILE};
use crate::decl::problem::{Problem, SourceFile};
use crate::decl::tables::fields::{self, Fields};
use crate::decl::tables::located_text::LocatedText;
use crate::decl::tables::tree::{TomlKey, TomlNode, TomlTable, Val};
use crate::decl::values::names::{ProjectNames, Sees, StageNames};
use crate::decl::values::reader::ValueReader;
use crate::model::param::{Allowed, Param, ParamFile, ParamType};
use regex::Regex;
use serde_json::{Number, Value};

/// Reads the entry.
pub(crate) fn param(
    reader: &mut ValueReader<'_>,
    file: &SourceFile,
    key: &TomlKey,
    node: &TomlNode,
) -> Option<Param> {
    let has =
        |table: &TomlTable, names: [&str; 2]| names.iter().any(|name| table.get(name).is_some());
    match node.table() {
        Some(table) if has(table, ["file", "base"]) => of_file(reader, file, key, node, table),
        Some(table) if has(table, ["type", "default"]) => declared(reader, file, key, node, table),
        _ => {
            check_template(reader, file, &key.name, node)?;
            let default = node.to_json();
            Some(Param {
                name: key.name.clone(),
                kind: ParamType::of_value(&default),
                default,
                file: None,
                allowed: Allowed::default(),
                description: None,
            })
        }
    }
}

fn of_file(
    reader: &mut ValueReader<'_>,
    file: &SourceFile,
    key: &TomlKey,
    node: &TomlNode,
    table: &TomlTable,
) -> Option<Param> {
    let header = format!("params.{}", key.name);
    let span = node.span.clone();
    let fields = fields::check(file, &mut reader.report, &PARAM_FILE, &header, span, table);
    let (text, span) = fields.text("file")?;
    let path = reader.rel_path(file, text, span)?;
    let base = match fields.text("base") {
        Some((text, span)) => {
            let inner = text.strip_prefix("project:").unwrap_or(text);
            if !inner.is_empty() && inner != "." {
                reader.rel_path(file, inner, span)?;
            }
            Some(text.to_owned())
        }
        None => None,
    };
    Some(Param {
        name: key.name.clone(),
        default: path.as_str().into(),
        file: Some(ParamFile { path, base }),
        kind: ParamType::String,
        allowed: Allowed::default(),
        description: description(&fields),
    })
}

fn declared(
    reader: &mut ValueReader<'_>,
    file: &SourceFile,
    key: &TomlKey,
    node: &TomlNode,
    table: &TomlTable,
) -> Option<Param> {
    let header = format!("params.{}", key.name);
    let span = node.span.clone();
    let before = reader.report.count();
    let fields = fields::check(file, &mut reader.report, &PARAM, &header, span, table);
    let default = fields.get("default")?;
    if reader.report.count() > before {
        return None;
    }
    let word = fields.text("type").map(|(word, _)| word);
    let value = default.to_json();
    let kind = word
        .and_then(ParamType::of_word)
        .unwrap_or_else(|| ParamType::of_value(&value));
    let allowed = allowed(file, &fields, kind);
    let allowed = allowed
        .map_err(|problem| reader.report.add(*problem))
        .ok()?;
    check_template(reader, file, &key.name, default)?;
    let param = Param {
        name: key.name.clone(),
        default: value,
        file: None,
        kind,
        allowed,
        description: description(&fields),
    };
    let is_template = kind == ParamType::String && param.has_template();
    if !is_template && let Err(error) = param.check(&param.default) {
        let message = format!("`{}` does not accept its own default", param.name);
        let problem = file.problem(default.span.clone(), message);
        reader.report.add(problem.label(error.to_string()));
        return None;
    }
    Some(param)
}

fn description(fields: &Fields<'_>) -> Option<String> {
    let found = fields.text("description");
    found.map(|(text, _)| text.to_owned())
}

/// A default that is a template sees the workspace alone.
fn check_template(
    reader: &mut ValueReader<'_>,
    file: &SourceFile,
    name: &str,
    node: &TomlNode,
) -> Option<()> {
    if let Val::Text(text) = &node.value
        && text.contains("{{")
    {
        let names = ProjectNames::default();
        let spot = LocatedText {
            file,
            key: name,
            text,
            span: node.span.clone(),
        };
        reader.template(&spot, &StageNames::of_project(&names), Sees::Start)?;
    }
    Some(())
}

/// Returns the values that a parameter of this type takes.
fn allowed(
    file: &SourceFile,
    fields: &Fields<'_>,
    kind: ParamType,
) -> Result<Allowed, Box<Problem>> {
    for (key, fits, help) in [
        (
            "min",
            kind.is_number(),
            "`min` and `max` are for `integer` and `number`",
        ),
        (
            "max",
            kind.is_number(),
            "`min` and `max` are for `integer` and `number`",
        ),
        (
            "enum",
            kind.is_number() || kind.has_text(),
            "`enum` is for `string`, `integer`, `number` and the items of a `list`",
        ),
        (
            "pattern",
            kind.has_text(),
            "`pattern` is for `string` and the items of a `list`",
        ),
    ] {
        if fields.get(key).is_some() && !fits {
            let message = format!("a parameter of type `{}` takes no `{key}`", kind.word());
            let problem = file.problem(fields.key_span(key), message);
            return Err(Box::new(problem.help(help)));
        }
    }
    let number = |key: &str| fields.get(key).and_then(|node| number(&node.to_json()));
    let (min, max) = (number("min"), number("max"));
    if let (Some(least), Some(most)) = (&min, &max)
        && least.as_f64() > most.as_f64()
    {
        let message = format!("no number is from {least} to {most}");
        let problem = file.problem(fields.key_span("max"), message);
        return Err(Box::new(problem.label("`max` is less than `min`")));
    }
    let mut one_of = Vec::new();
    for node in fields
        .get("enum")
        .and_then(TomlNode::list)
        .unwrap_or_default()
    {
        let value = node.to_json();
        if kind != ParamType::List && !kind.is_of(&value) {
            let message = format!("every value of `enum` must be of type `{}`", kind.word());
            let problem = file.problem(node.span.clone(), message);
            return Err(Box::new(
                problem.label(format!("this is {}", node.value.described())),
            ));
        }
        one_of.push(value);
    }
    let pattern = match fields.text("pattern") {
        None => None,
        Some((text, span)) => match Regex::new(text) {
            Ok(pattern) => Some(pattern),
            Err(error) => {
                let why = error.to_string();
                let why = why.lines().last().unwrap_or_default();
                let why = why.trim_start_matches("error: ");
                let problem = file.problem(
                    span,
                    format!("`pattern` is not a valid regular expression: {why}"),
                );
                return Err(Box::new(problem.help(
                    "write it in single quotes, '…': in double quotes TOML interprets backslashes",
                )));
            }
        },
    };
    Ok(Allowed {
        min,
        max,
        one_of,
        pattern,
    })
}

fn number(value: &Value) -> Option<Number> {
    match value {
        Value::Number(number) => Some(number.clone()),
        _ => None,
    }
}
