//! One part of a declared step: its keys, taken apart once for the fingerprint and everything else that reads a declaration.

use super::geometry::Geometry;
use crate::expr::select::Select;
use crate::expr::template::Template;
use crate::model::declared::asset::Asset;
use crate::model::declared::expression::{
    PathTemplate, Program, TemplateChoice, TemplateFile, Templated, Text,
};
use crate::model::declared::names::{EVERYWHERE, OVERRIDES};
use std::collections::BTreeSet;

/// The value of one key of a step. Its text is in the fingerprint in any case, with the declaration; the variant says what
/// else outputs depend on.
#[derive(Debug, Clone, Copy)]
pub enum Part<'a> {
    /// A word, a number or a table without expressions, or a key that is not there.
    Literal,
    /// The name of an input or an earlier `out` that the step reads.
    Reads(&'a str),
    /// The name of the agent that the step asks.
    Agent(&'a str),
    /// Environment variables by name.
    Env(&'a [String]),
    /// A name whose value is in the output in any case.
    Mention(&'static str),
    /// A jq program that reads one value: a record or an answer.
    Program(&'a Program),
    /// A jq program that reads the whole scope.
    ScopeProgram(&'a Program),
    /// The jq program that tells records of the output apart.
    RecordKey(&'a Program),
    /// A plain path over the scope.
    Select(&'a Select),
    /// A template in the declaration.
    Text(&'a Text),
    /// An argument of a program: `project:` before it names a file that the batch depends on.
    Argument(&'a Text),
    /// The value of an HTTP header. Environment variables in it are keys, and never recorded.
    Header(&'a str, &'a Text),
    /// A number that may be a template.
    Count(&'a Templated<u64>),
    /// A word that may be a template.
    Geometry(&'a Templated<Geometry>),
    /// A file that another process writes.
    Awaited(&'a PathTemplate),
    /// A file that says that the awaited one is complete.
    AwaitedMarker(&'a PathTemplate),
    /// A prompt, or the template of a text.
    Template(&'a TemplateChoice),
    /// The form of a workbook.
    Workbook(&'a Asset),
    /// The schema of an agent's answer. Answers are kept and can be checked again.
    AnswerSchema(&'a Asset),
    /// The schema of a reply, which is not kept: another schema means another call.
    ReplySchema(&'a Asset),
}

impl<'a> Part<'a> {
    /// Returns the part of a key that may be left out.
    pub(super) fn optional<T>(value: Option<&'a T>, part: fn(&'a T) -> Self) -> Self {
        value.map_or(Part::Literal, part)
    }

    /// Returns the templates that it may be.
    pub(crate) fn template_files(self) -> Vec<&'a TemplateFile> {
        match self {
            Part::Template(choice) => choice.files(),
            _ => Vec::new(),
        }
    }

    /// Returns the names of the scope that its expressions mention, dotted, but not those of a template that each batch picks.
    pub(crate) fn names(self) -> BTreeSet<String> {
        let of_template = |template: &Template| template.names().clone();
        match self {
            Part::Literal
            | Part::Reads(_)
            | Part::Agent(_)
            | Part::Env(_)
            | Part::AnswerSchema(_)
            | Part::ReplySchema(_)
            | Part::Template(TemplateChoice::Picked(_)) => BTreeSet::new(),
            Part::Mention(name) => [name.to_owned()].into(),
            Part::Program(program) | Part::RecordKey(program) => program.names(),
            Part::ScopeProgram(program) => program.scope_names(),
            Part::Select(select) => select.name().into_iter().collect(),
            Part::Text(text) | Part::Argument(text) => of_template(&text.template),
            // A new key changes no reply, and is nothing to keep, not even as a digest.
            Part::Header(_, text) => {
                let is_secret = |name: &String| name.split('.').next() == Some("env");
                let names = text.template.names().iter();
                names.filter(|name| !is_secret(name)).cloned().collect()
            }
            Part::Count(count) => count.names(),
            Part::Geometry(geometry) => geometry.names(),
            Part::Awaited(path) | Part::AwaitedMarker(path) => of_template(&path.template),
            Part::Template(TemplateChoice::One(file)) => of_template(&file.template),
            Part::Workbook(asset) => workbook_names(&asset.text),
        }
    }
}

/// Returns the names that a workbook may mention. Its programs are compiled by its step, so the names are read off the text, which
/// can only be too many.
fn workbook_names(text: &str) -> BTreeSet<String> {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let mut names = BTreeSet::new();
    for root in EVERYWHERE.into_iter().chain(["milepost", OVERRIDES]) {
        for (at, _) in text.match_indices(root) {
            let rest = text[at + root.len()..]
                .strip_prefix('.')
                .unwrap_or_default();
            let field: String = rest.chars().take_while(|c| is_name(*c)).collect();
            names.insert(if field.is_empty() {
                root.to_owned()
            } else {
                format!("{root}.{field}")
            });
        }
    }
    names
}
