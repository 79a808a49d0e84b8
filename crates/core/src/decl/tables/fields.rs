//! Checks a table of a declaration against the table of keys: unknown keys, wrong types, what is missing.

use crate::decl::keys::{KeySpec, Need, TableSpec};
use crate::decl::problem::{Report, SourceFile};
use crate::decl::tables::hints;
use crate::decl::tables::located_text::LocatedText;
use crate::decl::tables::tree::{self, TomlNode, Val};
use crate::decl::tables::value_types::wrong_type;
use std::ops::Range;

/// A table whose keys were checked: only keys that are known, in their place, and of the right type.
#[derive(Debug, Clone)]
pub(crate) struct Fields<'a> {
    file: &'a SourceFile,
    /// The place in the file.
    pub(crate) span: Range<usize>,
    /// The key that defines its kind.
    pub(crate) what: Option<&'static str>,
    entries: Vec<(&'static KeySpec, &'a tree::TomlKey, &'a TomlNode)>,
}

impl<'a> Fields<'a> {
    /// Returns the value behind a key.
    pub(crate) fn get(&self, name: &str) -> Option<&'a TomlNode> {
        self.entries
            .iter()
            .find(|(key, _, _)| key.name == name)
            .map(|(_, _, node)| *node)
    }

    /// Checks the table behind a key; `None` if there is none.
    pub(crate) fn table(
        &self,
        key: &str,
        spec: &'static TableSpec,
        report: &mut Report,
    ) -> Option<Self> {
        let node = self.get(key)?;
        let (span, table) = (node.span.clone(), node.table()?);
        Some(check(self.file, report, spec, spec.header, span, table))
    }

    /// Returns the string behind a key with its place.
    pub(crate) fn text(&self, name: &str) -> Option<(&'a str, Range<usize>)> {
        let node = self.get(name)?;
        node.text().map(|text| (text, node.span.clone()))
    }

    /// Returns the string behind a key with its place, as expressions are read.
    pub(crate) fn spot<'k>(&self, key: &'k str) -> Option<LocatedText<'k>>
    where
        'a: 'k,
    {
        let (text, span) = self.text(key)?;
        Some(LocatedText {
            file: self.file,
            key,
            text,
            span,
        })
    }

    /// Returns true if a key is there and true.
    pub(crate) fn is_true(&self, name: &str) -> bool {
        matches!(
            self.get(name).map(|node| &node.value),
            Some(Val::Bool(true))
        )
    }

    /// Returns the number behind a key.
    pub(crate) fn number(&self, key: &str) -> Option<f64> {
        match self.get(key)?.value {
            Val::Int(number) => Some(number as f64),
            Val::Float(number) => Some(number),
            _ => None,
        }
    }

    /// Returns the integer behind a key; `None` if it is negative.
    pub(crate) fn integer(&self, key: &str) -> Option<u64> {
        match self.get(key)?.value {
            Val::Int(number) => u64::try_from(number).ok(),
            _ => None,
        }
    }

    /// Returns the place of the key, or of the header without the key.
    pub(crate) fn key_span(&self, name: &str) -> Range<usize> {
        let found = self.entries.iter().find(|(key, _, _)| key.name == name);
        found.map_or_else(|| self.span.clone(), |(_, key, _)| key.span.clone())
    }
}

/// Checks a table.
pub(crate) fn check<'a>(
    file: &'a SourceFile,
    report: &mut Report,
    spec: &'static TableSpec,
    header: &str,
    span: Range<usize>,
    table: &'a tree::TomlTable,
) -> Fields<'a> {
    let mut fields = Fields {
        file,
        span,
        what: None,
        entries: Vec::new(),
    };
    let mut present: Vec<Present<'a>> = Vec::new();
    let mut meant: Vec<&'static str> = Vec::new();
    for (key, node) in &table.entries {
        if let Some(known) = spec.key(&key.name) {
            present.push((known, key));
            match wrong_type(known, node) {
                Some(wrong) => report.add(wrong.at(file, known, node)),
                None => fields.entries.push((known, key, node)),
            }
        } else {
            report.add(hints::unknown_key(file, spec, header, key, node));
            // It is read as what is meant, so that one slip is one mistake.
            if let Some(known) = hints::meant(&key.name, spec).and_then(|name| spec.key(name)) {
                meant.push(known.name);
                let is_there = table.entries.iter().any(|(key, _)| key.name == known.name);
                if !is_there {
                    present.push((known, key));
                }
                if !is_there && wrong_type(known, node).is_none() {
                    fields.entries.push((known, key, node));
                }
            }
        }
    }
    let is_known = check_what(file, report, spec, header, &mut fields, &present);
    if is_known {
        check_needs(file, report, spec, header, &fields, &present, &meant);
    }
    fields
}

/// A key that is there, and its entry in the table of keys.
type Present<'a> = (&'static KeySpec, &'a tree::TomlKey);

/// Checks that a table has exactly one key that defines its kind. Returns false otherwise.
fn check_what(
    file: &SourceFile,
    report: &mut Report,
    spec: &'static TableSpec,
    header: &str,
    fields: &mut Fields<'_>,
    present: &[Present<'_>],
) -> bool {
    let whats: Vec<_> = present
        .iter()
        .filter(|(key, _)| key.need == Need::What)
        .collect();
    match whats.as_slice() {
        [] if spec.whats().next().is_none() => return true,
        [] => {
            let several = if spec.whats().count() > 1 {
                "one of "
            } else {
                ""
            };
            let message = format!("{} has no kind", shown(header, spec));
            let label = format!("{several}{} is missing", hints::or(spec.whats()));
            report.add(file.problem(fields.span.clone(), message).label(label));
        }
        [(one, _)] => fields.what = Some(one.name),
        [(one, first), (two, second), ..] => {
            let message = format!(
                "{} has two kinds: `{}` and `{}`",
                shown(header, spec),
                one.name,
                two.name
            );
            let problem = file
                .problem(second.span.clone(), message)
                .label("exactly one of them is allowed here");
            let help = "write `[[step]]` for each step of a stage that has several";
            report.add(
                problem
                    .also(file, first.span.clone(), "the other")
                    .maybe_help((spec.what == "step").then(|| help.to_owned())),
            );
        }
    }
    fields.what.is_some()
}

/// Checks that required keys exist, and that keys are beside the keys that they belong to.
#[expect(clippy::too_many_arguments)]
fn check_needs(
    file: &SourceFile,
    report: &mut Report,
    spec: &'static TableSpec,
    header: &str,
    fields: &Fields<'_>,
    present: &[Present<'_>],
    meant: &[&str],
) {
    let what = fields.what.unwrap_or_default();
    for key in spec.keys {
        let there = present.iter().find(|(known, _)| known.name == key.name);
        let help = format!("`{}`: {}", key.name, key.doc);
        match (key.need, there) {
            (Need::Required, None) if !meant.contains(&key.name) => {
                let message = format!("{} needs `{}`", shown(header, spec), key.name);
                let problem = if header.is_empty() {
                    file.whole_problem(message)
                } else {
                    file.problem(fields.span.clone(), message)
                };
                report.add(
                    problem
                        .label(format!("`{}` is missing", key.name))
                        .help(help),
                );
            }
            (Need::RequiredBeside(beside), None)
                if beside == what && !meant.contains(&key.name) =>
            {
                let problem = file.problem(
                    fields.key_span(what),
                    format!("`{what}` needs `{}`", key.name),
                );
                let label = format!("`{}` is missing in {}", key.name, shown(header, spec));
                report.add(problem.label(label).help(help));
            }
            (Need::RequiredBeside(beside), Some((_, at))) if beside != what => {
                report.add(hints::misplaced(file, key, at, &[beside], what));
            }
            (Need::Beside(beside), Some((_, at))) if !beside.contains(&what) => {
                report.add(hints::misplaced(file, key, at, beside, what));
            }
            _ => {}
        }
    }
}

/// Returns a header for a message; the top of a file has none.
fn shown(header: &str, spec: &TableSpec) -> String {
    if header.is_empty() {
        format!("the {}", spec.what)
    } else {
        format!("`{header}`")
    }
}
