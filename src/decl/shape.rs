//! Checks a table of a declaration against the table of keys: unknown keys, wrong types, what is missing.

use super::hints;
use super::keys::{Key, Kind, Need, Table};
use super::problem::{File, Report};
use super::tree::{self, Node, Val};
use std::ops::Range;

/// A table whose keys were checked: only keys that are known, in their place, and of the right type.
#[derive(Debug, Clone)]
pub struct Fields<'a> {
    /// Where it stands.
    pub span: Range<usize>,
    /// The key that says what it is.
    pub what: Option<&'static str>,
    entries: Vec<(&'static Key, &'a tree::Key, &'a Node)>,
}

impl<'a> Fields<'a> {
    /// The value behind a key.
    pub fn get(&self, name: &str) -> Option<&'a Node> {
        self.entries
            .iter()
            .find(|(key, _, _)| key.name == name)
            .map(|(_, _, node)| *node)
    }

    /// The string behind a key, and where it stands.
    pub fn text(&self, name: &str) -> Option<(&'a str, Range<usize>)> {
        let node = self.get(name)?;
        node.text().map(|text| (text, node.span.clone()))
    }

    /// Whether a key is there and true.
    pub fn is_true(&self, name: &str) -> bool {
        matches!(
            self.get(name).map(|node| &node.value),
            Some(Val::Bool(true))
        )
    }

    /// Where the key itself stands, else the header.
    pub fn key_span(&self, name: &str) -> Range<usize> {
        let found = self.entries.iter().find(|(key, _, _)| key.name == name);
        found.map_or_else(|| self.span.clone(), |(_, key, _)| key.span.clone())
    }
}

/// Checks a table.
pub fn check<'a>(
    file: &File,
    report: &mut Report,
    spec: &'static Table,
    header: &str,
    span: Range<usize>,
    table: &'a tree::Table,
) -> Fields<'a> {
    let mut fields = Fields {
        span: span.clone(),
        what: None,
        entries: Vec::new(),
    };
    let mut is_later = false;
    let mut present: Vec<(&'static Key, &tree::Key)> = Vec::new();
    for (key, node) in &table.entries {
        if let Some(known) = spec.key(&key.name) {
            present.push((known, key));
            match wrong_type(known, node) {
                None => fields.entries.push((known, key, node)),
                Some(problem) => report.add(problem.at(file, known, node)),
            }
        } else if spec.later.contains(&key.name.as_str()) {
            // one word about a thing that this version has not is enough
            if !is_later {
                report.add(hints::later_key(file, spec, key));
            }
            is_later = true;
        } else if !is_later || spec.what != "agent" {
            report.add(hints::unknown_key(file, spec, header, key, node));
        }
    }
    let whats: Vec<_> = present
        .iter()
        .filter(|(key, _)| key.need == Need::What)
        .collect();
    match whats.as_slice() {
        [] if is_later || spec.whats().next().is_none() => {}
        [] => report.add(
            file.problem(
                span.clone(),
                format!("{} does not say what it is", shown(header, spec)),
            )
            .label(format!("one of {} is missing", hints::or(spec.whats()))),
        ),
        [(one, _)] => fields.what = Some(one.name),
        [(one, first), (two, second), ..] => {
            report.add(
                file.problem(
                    second.span.clone(),
                    format!(
                        "{} is two things: `{}` and `{}`",
                        shown(header, spec),
                        one.name,
                        two.name
                    ),
                )
                .label("exactly one of them may stand here")
                .also(file, first.span.clone(), "the other")
                .maybe_help((spec.what == "step").then(|| {
                    "write `[[step]]` for each step of a stage that has several".to_owned()
                })),
            )
        }
    }
    let missing = |message: String| {
        if header.is_empty() {
            file.whole_problem(message)
        } else {
            file.problem(span.clone(), message)
        }
    };
    let Some(what) = fields
        .what
        .or_else(|| spec.whats().next().is_none().then_some(""))
    else {
        return fields;
    };
    let what_span = present
        .iter()
        .find(|(key, _)| key.name == what)
        .map(|(_, key)| key.span.clone());
    for key in spec.keys {
        let there = present.iter().find(|(known, _)| known.name == key.name);
        match (key.need, there) {
            (Need::Required, None) => report.add(
                missing(format!("{} needs `{}`", shown(header, spec), key.name))
                    .label(format!("`{}` is missing", key.name))
                    .help(format!("{}: {}", key.name, key.doc)),
            ),
            (Need::RequiredBeside(beside), None) if beside == what => report.add(
                file.problem(
                    what_span.clone().unwrap_or_else(|| span.clone()),
                    format!("`{what}` needs `{}`", key.name),
                )
                .label(format!(
                    "`{}` is missing in {}",
                    key.name,
                    shown(header, spec)
                ))
                .help(format!("{}: {}", key.name, key.doc)),
            ),
            (Need::RequiredBeside(beside), Some((_, at))) if beside != what => {
                report.add(hints::misplaced(file, key, at, &[beside], what));
            }
            (Need::Beside(beside), Some((_, at))) if !beside.contains(&what) => {
                report.add(hints::misplaced(file, key, at, beside, what));
            }
            _ => {}
        }
    }
    fields
}

/// A header as it stands in a message; the top of a file has none.
fn shown(header: &str, spec: &Table) -> String {
    if header.is_empty() {
        format!("the {}", spec.what)
    } else {
        format!("`{header}`")
    }
}

/// What was expected, and how to write it.
pub struct WrongType {
    expected: String,
    help: Option<String>,
}

impl WrongType {
    fn at(self, file: &File, key: &Key, node: &Node) -> super::problem::Problem {
        file.problem(
            node.span.clone(),
            format!("`{}` wants {}", key.name, self.expected),
        )
        .label(format!("this is {}", node.value.described()))
        .maybe_help(self.help)
    }
}

fn wrong_type(key: &'static Key, node: &Node) -> Option<WrongType> {
    let wrong = |expected: &str, help: Option<String>| {
        Some(WrongType {
            expected: expected.to_owned(),
            help,
        })
    };
    let name = key.name;
    match (key.kind, &node.value) {
        (Kind::Duration, Val::Text(_))
        | (Kind::Bool, Val::Bool(_))
        | (Kind::FileOrFalse, Val::Text(_) | Val::Bool(false))
        | (Kind::Command, Val::Text(_))
        | (Kind::Values, Val::List(_))
        | (
            Kind::Table(_) | Kind::Named(_) | Kind::Strings | Kind::Outcomes | Kind::Params,
            Val::Table(_),
        )
        | (Kind::OneOrMany(_), Val::Table(_))
        | (Kind::Param, _) => None,
        (
            Kind::Text
            | Kind::Plain
            | Kind::Name
            | Kind::Path
            | Kind::Place
            | Kind::FileName
            | Kind::Folder
            | Kind::File
            | Kind::Jq
            | Kind::Select,
            Val::Text(text),
        ) => text.trim().is_empty().then(|| WrongType {
            expected: format!("{}, and this is empty", expected(key.kind)),
            help: None,
        }),
        (Kind::Choice(words), Val::Text(text)) => {
            if words.contains(&text.as_str()) {
                return None;
            }
            let near = crate::expr::place::nearest(text, words.iter().copied());
            let later = hints::is_later_word(name, text);
            wrong(
                &hints::or(words.iter().copied()),
                if later {
                    Some(format!("`{text}` is not in this version of Milepost"))
                } else {
                    near.map(|near| format!("did you mean `{near}`?"))
                },
            )
        }
        (Kind::Duration, Val::Int(number)) => wrong(
            expected(key.kind),
            Some(format!("write the unit too: {name} = \"{number}s\"")),
        ),
        (Kind::Count | Kind::Concurrency, Val::Text(text)) if text.contains("{{") => None,
        (Kind::Count | Kind::Integer | Kind::Concurrency, Val::Int(number)) if *number >= 1 => None,
        (Kind::Count | Kind::Integer | Kind::Concurrency | Kind::CountOrShare, Val::Text(text))
            if text.trim().parse::<f64>().is_ok() =>
        {
            wrong(
                expected(key.kind),
                Some(format!("write it without quotes: {name} = {}", text.trim())),
            )
        }
        (Kind::CountOrShare, Val::Int(number)) if *number >= 0 => None,
        (Kind::CountOrShare, Val::Float(share)) if (0.0..=1.0).contains(share) => None,
        (Kind::Concurrency, Val::Table(table)) if table.entries.len() == 1 => None,
        (Kind::Bool, Val::Text(text)) if text == "true" || text == "false" => wrong(
            expected(key.kind),
            Some(format!("write it without quotes: {name} = {text}")),
        ),
        (Kind::Command | Kind::Names, Val::List(items)) => {
            let other = items.iter().find(|item| item.text().is_none());
            if items.is_empty() {
                return wrong("at least one string", None);
            }
            other.and_then(|item| {
                wrong(
                    "a list of strings",
                    Some(format!("put {} in it in quotes", item.value.described())),
                )
            })
        }
        (Kind::Names, Val::Text(text)) => wrong(
            expected(key.kind),
            Some(format!("write {name} = [\"{text}\"]")),
        ),
        (Kind::OneOrMany(_) | Kind::Many(_), Val::List(items))
            if items.iter().all(|item| item.table().is_some()) =>
        {
            None
        }
        (Kind::Many(_), Val::Table(_)) => wrong(
            expected(key.kind),
            Some(format!(
                "write `[[{name}]]` with double brackets: there may be several"
            )),
        ),
        (Kind::Table(_), Val::List(_)) => wrong(
            "one table",
            Some(format!("write `[{name}]` with single brackets")),
        ),
        (Kind::Named(table), Val::List(_)) => wrong(
            "a table of names",
            Some(format!(
                "write `[{name}]` with a line for each {}, or `[{name}.NAME]`",
                table.what
            )),
        ),
        (kind, _) => wrong(expected(kind), None),
    }
}

/// What stands behind a key of this kind, for messages.
pub fn expected(kind: Kind) -> &'static str {
    match kind {
        Kind::Text | Kind::Plain => "a string",
        Kind::Choice(_) => "one of its words",
        Kind::Name => "a name",
        Kind::Path => "a path",
        Kind::Place => "a path in the workspace",
        Kind::FileName => "the name of a file",
        Kind::Folder => "a folder",
        Kind::File => "a file of the project",
        Kind::FileOrFalse => "a file of the project, or false",
        Kind::Jq => "a jq program, or a file that ends in `.jq`",
        Kind::Select => "a plain path of names, such as \".parsed.elements[]\"",
        Kind::Duration => "a duration with a unit, such as \"60s\" or \"10m\"",
        Kind::Count => "an integer from 1 on, or a template",
        Kind::Integer => "an integer from 1 on",
        Kind::CountOrShare => "an integer from 0 on, or a share from 0.0 to 1.0",
        Kind::Bool => "true or false",
        Kind::Concurrency => {
            "an integer from 1 on, or `{ NAME = N }` for values of one `each` name"
        }
        Kind::Command => "a list of strings, or one string for `sh -c`",
        Kind::Names => "a list of strings",
        Kind::Values => "a list",
        Kind::Param => "a value",
        Kind::Table(_) => "a table",
        Kind::Named(_) | Kind::Strings | Kind::Outcomes | Kind::Params => "a table of names",
        Kind::OneOrMany(_) => "a table, or a list of tables",
        Kind::Many(_) => "a list of tables",
    }
}
