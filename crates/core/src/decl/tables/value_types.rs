//! What may stand behind a key, checked by its kind, and how to write it when something else stands there.

use crate::decl::keys::{Key, Kind};
use crate::decl::problem::{File, Problem};
use crate::decl::tables::hints;
use crate::decl::tables::tree::{Node, Val};
use crate::expr::place::nearest;

/// What was expected, and how to write it.
pub(crate) struct WrongType {
    expected: String,
    label: Option<&'static str>,
    help: Option<String>,
}

impl WrongType {
    fn new(kind: Kind) -> Self {
        Self {
            expected: expected(kind).to_owned(),
            label: None,
            help: None,
        }
    }

    fn help(self, help: String) -> Self {
        Self {
            help: Some(help),
            ..self
        }
    }

    fn label(self, label: &'static str) -> Self {
        Self {
            label: Some(label),
            ..self
        }
    }

    /// The mistake, at the value.
    pub(crate) fn at(self, file: &File, key: &Key, node: &Node) -> Problem {
        let label = self.label.map_or_else(
            || format!("this is {}", node.value.described()),
            str::to_owned,
        );
        file.problem(
            node.span.clone(),
            format!("`{}` wants {}", key.name, self.expected),
        )
        .label(label)
        .maybe_help(self.help)
    }
}

/// Whether a value can stand behind a key of this kind.
fn fits(kind: Kind, value: &Val) -> bool {
    match (kind, value) {
        (Kind::Any, _)
        | (Kind::Bool, Val::Bool(_))
        | (Kind::Values, Val::List(_))
        | (Kind::AnyNumber, Val::Int(_)) => true,
        (Kind::AnyNumber, Val::Float(number)) => number.is_finite(),
        (Kind::FileOrFalse, Val::Bool(value)) => !value,
        (Kind::True, Val::Bool(value)) => *value,
        (kind, Val::Table(table)) => match kind {
            Kind::Concurrency => table.entries.len() == 1,
            kind => is_table(kind),
        },
        (Kind::Choice(words), Val::Text(text)) => words.contains(&text.as_str()),
        (Kind::Count | Kind::Concurrency, Val::Text(text)) => text.contains("{{"),
        (kind, Val::Text(text)) => is_string(kind) && !text.trim().is_empty(),
        (Kind::Count | Kind::Integer | Kind::Concurrency, Val::Int(number)) => *number >= 1,
        (Kind::CountOrShare | Kind::Number, Val::Int(number)) => *number >= 0,
        (Kind::Number, Val::Float(number)) => number.is_finite() && *number >= 0.0,
        (Kind::CountOrShare, Val::Float(share)) => (0.0..=1.0).contains(share),
        (Kind::Command | Kind::Names, Val::List(items)) => {
            !items.is_empty() && items.iter().all(|item| item.text().is_some())
        }
        (Kind::OneOrMany(_) | Kind::Many(_), Val::List(items)) => {
            !items.is_empty() && items.iter().all(|item| item.table().is_some())
        }
        _ => false,
    }
}

fn is_table(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Table(_)
            | Kind::Named(_)
            | Kind::Strings
            | Kind::Columns
            | Kind::Free
            | Kind::Outcomes
            | Kind::Params
            | Kind::OneOrMany(_)
    )
}

fn is_string(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Text
            | Kind::Plain
            | Kind::Name
            | Kind::Path
            | Kind::Place
            | Kind::FileName
            | Kind::Folder
            | Kind::File
            | Kind::FileOrFalse
            | Kind::Jq
            | Kind::Select
            | Kind::Duration
            | Kind::Command
    )
}

/// What is wrong with a value behind a key, if something is.
pub(crate) fn wrong_type(key: &'static Key, node: &Node) -> Option<WrongType> {
    let (kind, name) = (key.kind, key.name);
    if fits(kind, &node.value) {
        return None;
    }
    let wrong = WrongType::new(kind);
    Some(match (kind, &node.value) {
        (kind, Val::Text(text)) if is_string(kind) && text.trim().is_empty() => {
            wrong.label("this is empty")
        }
        (Kind::Choice(words), Val::Text(text)) => {
            let near =
                nearest(text, words.iter().copied()).map(|near| format!("did you mean `{near}`?"));
            WrongType {
                expected: hints::or(words.iter().copied()),
                label: Some("unknown word"),
                help: near,
            }
        }
        (Kind::Duration, Val::Int(number)) => {
            wrong.help(format!("write the unit too: {name} = \"{number}s\""))
        }
        (
            Kind::Count | Kind::Integer | Kind::Concurrency | Kind::CountOrShare | Kind::Number,
            Val::Int(_),
        ) => wrong.label("this is too small"),
        (Kind::CountOrShare, Val::Float(_)) => wrong.label("this is no share"),
        (
            Kind::Count | Kind::Integer | Kind::Concurrency | Kind::CountOrShare | Kind::Number,
            Val::Text(text),
        ) if text.trim().parse::<f64>().is_ok() => {
            wrong.help(format!("write it without quotes: {name} = {}", text.trim()))
        }
        (Kind::True, Val::Bool(_)) => wrong.label("this is false").help(
            "of an agent that someone outside answers for, this is true; leave it out of any other"
                .to_owned(),
        ),
        (Kind::Bool | Kind::True, Val::Text(text)) if text == "true" || text == "false" => {
            wrong.help(format!("write it without quotes: {name} = {text}"))
        }
        (Kind::Command | Kind::Names, Val::List(items)) => {
            match items.iter().find(|item| item.text().is_none()) {
                Some(item) => {
                    let help = format!("put {} in it in quotes", item.value.described());
                    WrongType {
                        expected: "a list of strings".to_owned(),
                        label: None,
                        help: Some(help),
                    }
                }
                None => wrong.label("this is empty"),
            }
        }
        (Kind::Names, Val::Text(text)) => wrong.help(format!("write {name} = [\"{text}\"]")),
        (Kind::Many(_), Val::Table(_)) => wrong.help(format!(
            "write `[[{name}]]` with double brackets: there may be several"
        )),
        (Kind::Table(_), Val::List(_)) => {
            wrong.help(format!("write `[{name}]` with single brackets"))
        }
        (Kind::Named(_), Val::List(_)) => wrong.help(format!("write `[{name}.NAME]` for each")),
        _ => wrong,
    })
}

/// What stands behind a key of this kind, for messages.
fn expected(kind: Kind) -> &'static str {
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
        Kind::Number => "a number from 0 on",
        Kind::CountOrShare => "an integer from 0 on, or a share from 0.0 to 1.0",
        Kind::Bool => "true or false",
        Kind::True => "true",
        Kind::Concurrency => {
            "an integer from 1 on, or `{ NAME = N }` for values of one `each` name"
        }
        Kind::Command => "a list of strings, or one string for `sh -c`",
        Kind::Names => "a list of strings",
        Kind::Values => "a list",
        Kind::Any => "a value",
        Kind::AnyNumber => "a number",
        Kind::Table(_) => "a table",
        Kind::Named(_) | Kind::Strings | Kind::Free | Kind::Outcomes | Kind::Params => {
            "a table of names"
        }
        Kind::Columns => "a table of columns, such as `{ name = \"string\", price = \"number\" }`",
        Kind::OneOrMany(_) => "a table, or a list of tables",
        Kind::Many(_) => "a list of tables",
    }
}
