//! Checks values by the kinds of their keys, and explains how to write them.

use crate::decl::keys::{KeySpec, ValueKind};
use crate::decl::problem::{Problem, SourceFile};
use crate::decl::tables::hints;
use crate::decl::tables::tree::{TomlNode, Val};
use crate::expr::place::nearest;

/// The expected value, and how to write it.
pub(crate) struct WrongType {
    expected: String,
    label: Option<&'static str>,
    help: Option<String>,
}

impl WrongType {
    fn new(kind: ValueKind) -> Self {
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

    /// Returns the mistake, at the value.
    pub(crate) fn at(self, file: &SourceFile, key: &KeySpec, node: &TomlNode) -> Problem {
        let label = self.label.map_or_else(
            || format!("this is {}", node.value.described()),
            str::to_owned,
        );
        file.problem(
            node.span.clone(),
            format!("`{}` must be {}", key.name, self.expected),
        )
        .label(label)
        .maybe_help(self.help)
    }
}

/// Returns true if a value has the type of a key of this kind.
fn fits(kind: ValueKind, value: &Val) -> bool {
    match (kind, value) {
        (ValueKind::Any, _)
        | (ValueKind::Bool, Val::Bool(_))
        | (ValueKind::Values, Val::List(_))
        | (ValueKind::AnyNumber, Val::Int(_) | Val::Float(_)) => true,
        (ValueKind::FileOrFalse, Val::Bool(value)) => !value,
        (ValueKind::True, Val::Bool(value)) => *value,
        (kind, Val::Table(table)) => match kind {
            ValueKind::Concurrency => table.entries.len() == 1,
            ValueKind::Items => match table.entries.as_slice() {
                [(_, program)] => program.text().is_some_and(|text| !text.trim().is_empty()),
                _ => false,
            },
            kind => is_table(kind),
        },
        (ValueKind::Choice(words), Val::Text(text)) => words.contains(&text.as_str()),
        (ValueKind::Count | ValueKind::Concurrency, Val::Text(text)) => text.contains("{{"),
        (kind, Val::Text(text)) => is_string(kind) && !text.trim().is_empty(),
        (ValueKind::Count | ValueKind::Integer | ValueKind::Concurrency, Val::Int(number)) => {
            *number >= 1
        }
        (ValueKind::CountOrShare | ValueKind::Number, Val::Int(number)) => *number >= 0,
        (ValueKind::Number, Val::Float(number)) => *number >= 0.0,
        (ValueKind::CountOrShare, Val::Float(share)) => (0.0..=1.0).contains(share),
        (ValueKind::Command | ValueKind::Names, Val::List(items)) => {
            !items.is_empty() && items.iter().all(|item| item.text().is_some())
        }
        (ValueKind::OneOrMany(_) | ValueKind::Many(_), Val::List(items)) => {
            !items.is_empty() && items.iter().all(|item| item.table().is_some())
        }
        _ => false,
    }
}

fn is_table(kind: ValueKind) -> bool {
    matches!(
        kind,
        ValueKind::Table(_)
            | ValueKind::Named(_)
            | ValueKind::Strings
            | ValueKind::Columns
            | ValueKind::Free
            | ValueKind::Outcomes
            | ValueKind::Params
            | ValueKind::OneOrMany(_)
    )
}

fn is_string(kind: ValueKind) -> bool {
    matches!(
        kind,
        ValueKind::Text
            | ValueKind::Plain
            | ValueKind::Name
            | ValueKind::Path
            | ValueKind::Place
            | ValueKind::FileName
            | ValueKind::Folder
            | ValueKind::File
            | ValueKind::FileOrFalse
            | ValueKind::Jq
            | ValueKind::Select
            | ValueKind::Duration
            | ValueKind::Size
            | ValueKind::Command
    )
}

/// Returns the mistake of a value, if there is one.
pub(crate) fn wrong_type(key: &'static KeySpec, node: &TomlNode) -> Option<WrongType> {
    let (kind, name) = (key.kind, key.name);
    if fits(kind, &node.value) {
        return None;
    }
    let wrong = WrongType::new(kind);
    Some(match (kind, &node.value) {
        (kind, Val::Text(text)) if is_string(kind) && text.trim().is_empty() => {
            wrong.label("this is empty")
        }
        (ValueKind::Choice(words), Val::Text(text)) => {
            let near =
                nearest(text, words.iter().copied()).map(|near| format!("did you mean `{near}`?"));
            WrongType {
                expected: hints::or(words.iter().copied()),
                label: Some("unknown word"),
                help: near,
            }
        }
        (ValueKind::Size, Val::Int(number)) => {
            wrong.help(format!("write the unit too: {name} = \"{number} MiB\""))
        }
        (ValueKind::Duration, Val::Int(number)) => {
            wrong.help(format!("write the unit too: {name} = \"{number}s\""))
        }
        (
            ValueKind::Count
            | ValueKind::Integer
            | ValueKind::Concurrency
            | ValueKind::CountOrShare
            | ValueKind::Number,
            Val::Int(_),
        ) => wrong.label("this is too small"),
        (ValueKind::CountOrShare, Val::Float(_)) => wrong.label("this is not a share"),
        (
            ValueKind::Count
            | ValueKind::Integer
            | ValueKind::Concurrency
            | ValueKind::CountOrShare
            | ValueKind::Number,
            Val::Text(text),
        ) if text.trim().parse::<f64>().is_ok() => {
            wrong.help(format!("write it without quotes: {name} = {}", text.trim()))
        }
        (ValueKind::True, Val::Bool(_)) => wrong.label("this is false").help(
            "`external = true` declares an external agent; leave it out for any other agent"
                .to_owned(),
        ),
        (ValueKind::Bool | ValueKind::True, Val::Text(text))
            if text == "true" || text == "false" =>
        {
            wrong.help(format!("write it without quotes: {name} = {text}"))
        }
        (ValueKind::Command | ValueKind::Names, Val::List(items)) => {
            match items.iter().find(|item| item.text().is_none()) {
                Some(item) => {
                    let help = format!("write {} in this list in quotes", item.value.described());
                    WrongType {
                        expected: "a list of strings".to_owned(),
                        label: None,
                        help: Some(help),
                    }
                }
                None => wrong.label("this is empty"),
            }
        }
        (ValueKind::Names, Val::Text(text)) => wrong.help(format!("write {name} = [\"{text}\"]")),
        (ValueKind::Many(_), Val::Table(_)) => wrong.help(format!(
            "write `[[{name}]]` with double brackets: there may be several"
        )),
        (ValueKind::Table(_), Val::List(_)) => {
            wrong.help(format!("write `[{name}]` with single brackets"))
        }
        (ValueKind::Named(_), Val::List(_)) => {
            wrong.help(format!("write `[{name}.NAME]` for each"))
        }
        _ => wrong,
    })
}

/// Returns the noun for a kind of value, for messages.
fn expected(kind: ValueKind) -> &'static str {
    match kind {
        ValueKind::Text | ValueKind::Plain => "a string",
        ValueKind::Choice(_) => "one of its words",
        ValueKind::Name => "a name",
        ValueKind::Path => "a path",
        ValueKind::Place => "a path in the workspace",
        ValueKind::FileName => "the name of a file",
        ValueKind::Folder => "a folder",
        ValueKind::File => "a file of the project",
        ValueKind::FileOrFalse => "a file of the project, or false",
        ValueKind::Jq => "a jq program, or a file that ends in `.jq`",
        ValueKind::Select => "a plain path of names, such as \".parsed.elements[]\"",
        ValueKind::Duration => "a duration with a unit, such as \"60s\" or \"10m\"",
        ValueKind::Size => "a size with a unit, such as \"512 MiB\" or \"2 GiB\"",
        ValueKind::Count => "an integer of at least 1, or a template",
        ValueKind::Integer => "an integer of at least 1",
        ValueKind::Number => "a number of at least 0",
        ValueKind::CountOrShare => "an integer of at least 0, or a share from 0.0 to 1.0",
        ValueKind::Bool => "true or false",
        ValueKind::True => "true",
        ValueKind::Concurrency => {
            "an integer of at least 1, or `{ NAME = N }` for values of one `each` name"
        }
        ValueKind::Items => {
            "a table of one name and a jq program, such as `{ item = \".list[]\" }`"
        }
        ValueKind::Command => "a list of strings, or one string for `sh -c`",
        ValueKind::Names => "a list of strings",
        ValueKind::Values => "a list",
        ValueKind::Any => "a value",
        ValueKind::AnyNumber => "a number",
        ValueKind::Table(_) => "a table",
        ValueKind::Named(_)
        | ValueKind::Strings
        | ValueKind::Free
        | ValueKind::Outcomes
        | ValueKind::Params => "a table of names",
        ValueKind::Columns => {
            "a table of columns, such as `{ name = \"string\", price = \"number\" }`"
        }
        ValueKind::OneOrMany(_) => "a table, or a list of tables",
        ValueKind::Many(_) => "a list of tables",
    }
}
