//! Errors in a template: the place, and the names that exist.

use std::error::Error as _;

use minijinja::{Error, ErrorKind};
use serde_json::Value;

use super::limits;
use super::source::TemplateSource;
use crate::expr::place::{Place, excerpt, listed, nearest};

/// Why a template could not be read, or not be rendered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateError {
    /// The template: its file, or the key that declares it. An included template is named itself.
    pub(crate) template: String,
    /// Where in that template.
    pub(crate) place: Option<Place>,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

impl std::error::Error for TemplateError {}

impl std::fmt::Display for TemplateError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.template)?;
        if let Some(place) = &self.place {
            write!(f, ", {place}")?;
        }
        write!(f, ": {}", self.message)?;
        if let Some(hint) = &self.hint {
            write!(f, " ({hint})")?;
        }
        Ok(())
    }
}

impl TemplateError {
    /// A fault at a place in a text.
    pub(super) fn at(
        template: &str,
        source: &str,
        part: &str,
        message: String,
        hint: Option<&str>,
    ) -> Self {
        Self {
            template: template.to_owned(),
            place: Place::of_slice(source, part),
            message,
            hint: hint.map(str::to_owned),
        }
    }

    /// Returns the message of the engine, with the names of the scope if one is missing.
    pub(super) fn of<'a>(
        error: &Error,
        template: &str,
        source_of: &dyn Fn(&str) -> Option<&'a TemplateSource>,
        scope: &Value,
    ) -> Self {
        // The innermost error is the cause; those around it say only by which includes it was reached.
        let mut error = error;
        while let Some(inner) = error
            .source()
            .and_then(|source| source.downcast_ref::<Error>())
        {
            error = inner;
        }
        let template = error.name().unwrap_or(template).to_owned();
        let source = source_of(&template);
        let place = source.and_then(|source| match (error.range(), error.line()) {
            (Some(range), _) => Some(Place::of(&source.text, source.checked.in_source(range))),
            (None, Some(line)) => {
                let source = source.text.as_str();
                let start = source
                    .split_inclusive('\n')
                    .take(line - 1)
                    .map(str::len)
                    .sum();
                Some(Place::of(source, start..start))
            }
            _ => None,
        });
        let said = error.detail().unwrap_or_default();
        let missing = said
            .split_once("` is undefined")
            .and_then(|(before, _)| before.rsplit_once('`'))
            .map(|(_, name)| name);
        let (message, hint) = match (missing, error.kind()) {
            (Some(missing), _) => (
                format!("`{missing}` is not defined"),
                names_instead(missing, scope),
            ),
            (None, ErrorKind::UndefinedError) => ("a value is not defined".to_owned(), None),
            (None, kind) => {
                let message = if let Some(reason) = limits::reason(kind) {
                    reason
                } else if said.is_empty() {
                    kind.to_string()
                } else {
                    format!("{kind}: {said}")
                };
                let at = place.as_ref().zip(source);
                let hint = at.and_then(|(place, source)| syntax_hint(kind, &source.text, place));
                (excerpt(&message, 300), hint)
            }
        };
        Self {
            template,
            place,
            message,
            hint,
        }
    }
}

/// Returns the names that exist in the place of `missing`.
fn names_instead(missing: &str, scope: &Value) -> Option<String> {
    let mut at = scope;
    let mut path = String::new();
    for name in missing.split('.') {
        match at.get(name) {
            Some(inner) => {
                at = inner;
                path = if path.is_empty() {
                    name.to_owned()
                } else {
                    format!("{path}.{name}")
                };
            }
            // A name that the template itself defines, as in a loop: the scope does not have its fields.
            None if path.is_empty() && missing.contains('.') => return None,
            None => {
                let owner = if path.is_empty() {
                    "there are".to_owned()
                } else {
                    format!("`{path}` has")
                };
                return match at {
                    Value::Object(map) if !map.is_empty() => {
                        let keys = || map.keys().map(String::as_str);
                        Some(match nearest(name, keys()) {
                            Some(near) => {
                                format!("did you mean `{near}`? {owner} {}", listed(keys()))
                            }
                            None => format!("{owner} {}", listed(keys())),
                        })
                    }
                    Value::Object(_) => Some(format!("{owner} no names")),
                    Value::Null => Some(format!("`{path}` is null")),
                    _ => Some(format!("`{path}` is not an object")),
                };
            }
        }
    }
    None
}

fn syntax_hint(kind: ErrorKind, source: &str, place: &Place) -> Option<String> {
    if kind != ErrorKind::SyntaxError {
        return None;
    }
    let line = source.lines().nth(place.line - 1)?;
    let inside = line
        .split("{{")
        .skip(1)
        .filter_map(|rest| rest.split("}}").next());
    for expression in inside {
        let expression = expression.trim();
        if let Some(at) = expression.find('$') {
            let name: String = expression[at + 1..]
                .chars()
                .take_while(|char| char.is_alphanumeric() || matches!(char, '_' | '.'))
                .collect();
            return Some(format!(
                "a template writes names without `$`: {{{{ {name} }}}}"
            ));
        }
        if let Some(name) = expression.strip_prefix('.') {
            return Some(format!(
                "a template writes names without a dot before them: {{{{ {name} }}}}"
            ));
        }
    }
    None
}
