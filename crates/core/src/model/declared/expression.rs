//! Expressions of declarations: jq programs, templates, paths and numbers that may be templates.

use super::asset::Asset;
use super::names::EVERYWHERE;
use crate::base::duration::parse_duration;
use crate::base::glob::is_pattern;
use crate::base::path::{FilePath, PathError, RelPath, Root};
use crate::expr::jq::{Jq, JqError};
use crate::expr::place::listed;
use crate::expr::template::Template;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

/// A jq program, inline or in a file of its own.
#[derive(Clone)]
pub struct Program {
    /// The file, when it stands in one.
    pub asset: Option<Asset>,
    /// The text.
    pub source: Arc<str>,
    /// The variables that it was compiled with, in order: the stage's scope and those named beside it.
    pub vars: Arc<[String]>,
    /// Compiled.
    pub jq: Arc<Jq>,
}

impl Program {
    /// The values of its variables, in order: what a scope lacks is null.
    pub fn values(&self, scope: &Map<String, Value>) -> Vec<Value> {
        self.vars
            .iter()
            .map(|name| scope.get(name).cloned().unwrap_or(Value::Null))
            .collect()
    }

    /// All values that it gives.
    ///
    /// # Errors
    /// What jq says, with the program's name.
    pub fn all(&self, input: Value, scope: &Map<String, Value>) -> Result<Vec<Value>, JqError> {
        self.jq.all(input, &self.values(scope))
    }

    /// The one value that it gives.
    ///
    /// # Errors
    /// What jq says, or that it gave none or several.
    pub fn one(&self, input: Value, scope: &Map<String, Value>) -> Result<Value, JqError> {
        self.jq.one(input, &self.values(scope))
    }
}

impl Program {
    /// Returns the dotted names that it mentions.
    pub(crate) fn names(&self) -> BTreeSet<String> {
        self.jq.mentions().dotted().clone()
    }

    /// Returns the names that it mentions where `.` is the whole scope: all that there are if it takes `.` as it is.
    pub(crate) fn scope_names(&self) -> BTreeSet<String> {
        let mut names = self.names();
        if self.jq.takes_whole() {
            names.extend(EVERYWHERE.map(str::to_owned));
        }
        names
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.asset {
            Some(asset) => write!(f, "{asset:?}"),
            None => write!(f, "{:?}", &*self.source),
        }
    }
}

/// A path that may hold `{{ }}` and, for globs and outputs, `*`.
#[derive(Clone)]
pub struct PathTemplate {
    /// The folder that it is relative to.
    pub root: Root,
    /// The text without the prefix `project:`.
    pub text: String,
    /// Compiled.
    pub template: Arc<Template>,
}

impl fmt::Debug for PathTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.shown())
    }
}

impl PathTemplate {
    /// As written in the declaration.
    pub fn shown(&self) -> String {
        match self.root {
            Root::Workspace => self.text.clone(),
            Root::Project => format!("project:{}", self.text),
        }
    }

    /// A pattern that every path this can become matches: each `{{ }}` is taken as `*`.
    pub fn pattern(&self) -> String {
        let mut pattern = String::new();
        let mut rest = self.text.as_str();
        while let Some(start) = rest.find("{{") {
            pattern.push_str(&rest[..start]);
            if !pattern.ends_with('*') {
                pattern.push('*');
            }
            rest = rest[start..]
                .find("}}")
                .map_or("", |end| rest[start + end + 2..].trim_start_matches('*'));
        }
        pattern.push_str(rest);
        pattern
    }

    /// Whether it is wholly one `{{ }}`: then what it gives is a path, not one component of a path.
    pub fn is_whole(&self) -> bool {
        self.text.starts_with("{{") && self.text.find("}}") == Some(self.text.len().wrapping_sub(2))
    }

    /// Whether what stands around the `{{ }}` is a pattern.
    pub fn is_pattern(&self) -> bool {
        let mut rest = self.text.as_str();
        while let Some(start) = rest.find("{{") {
            if is_pattern(&rest[..start]) {
                return true;
            }
            rest = rest[start..]
                .find("}}")
                .map_or("", |end| &rest[start + end + 2..]);
        }
        is_pattern(rest)
    }

    /// The path that a rendered text names.
    ///
    /// # Errors
    /// As [`RelPath::parse`].
    pub fn place(&self, rendered: &str) -> Result<FilePath, PathError> {
        match self.root {
            Root::Project => RelPath::parse(rendered).map(FilePath::project),
            Root::Workspace => FilePath::from_str(rendered),
        }
    }
}

/// A number or duration that may be a template.
#[derive(Clone)]
pub enum Templated<T> {
    /// As written.
    Fixed(T),
    /// Known when the scope is.
    Template(Arc<Template>),
}

impl<T: fmt::Debug> fmt::Debug for Templated<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Templated::Fixed(value) => value.fmt(f),
            Templated::Template(_) => f.write_str("{{ … }}"),
        }
    }
}

impl<T> Templated<T> {
    /// Returns the dotted names that a template mentions.
    pub(crate) fn names(&self) -> BTreeSet<String> {
        match self {
            Templated::Fixed(_) => BTreeSet::new(),
            Templated::Template(template) => template.names().clone(),
        }
    }
}

impl Templated<u64> {
    /// The number in a scope, from 1 on.
    ///
    /// # Errors
    /// When the template fails or gives something else.
    pub fn number(&self, scope: &Map<String, Value>) -> Result<u64, String> {
        match self {
            Templated::Fixed(number) => Ok(*number),
            Templated::Template(template) => {
                let value = template
                    .render_value(&Value::Object(scope.clone()))
                    .map_err(|error| error.to_string())?;
                let number = value
                    .as_u64()
                    .or_else(|| value.as_str().and_then(|text| text.parse().ok()));
                number.filter(|number| *number > 0).ok_or_else(|| {
                    format!(
                        "`{}` gave {value}: a whole number from 1 on was expected",
                        template.name()
                    )
                })
            }
        }
    }
}

impl Templated<Duration> {
    /// The duration in a scope.
    ///
    /// # Errors
    /// When the template fails or gives something else.
    pub fn duration(&self, scope: &Map<String, Value>) -> Result<Duration, String> {
        match self {
            Templated::Fixed(duration) => Ok(*duration),
            Templated::Template(template) => {
                let text = template
                    .render(&Value::Object(scope.clone()))
                    .map_err(|error| error.to_string())?;
                parse_duration(&text).map_err(|error| error.to_string())
            }
        }
    }
}

/// A template with the file it stands in, if it stands in one.
#[derive(Clone)]
pub struct TemplateFile {
    /// The file.
    pub asset: Asset,
    /// The files that it includes.
    pub included: Vec<Asset>,
    /// Compiled.
    pub template: Arc<Template>,
}

impl fmt::Debug for TemplateFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.asset.fmt(f)
    }
}

/// The template of a step.
#[derive(Debug, Clone)]
pub enum TemplateChoice {
    /// The same for all batches.
    One(TemplateFile),
    /// The one that a path gives for a batch.
    Picked(Picked),
}

impl TemplateChoice {
    /// Returns every file that it may be.
    pub(crate) fn files(&self) -> Vec<&TemplateFile> {
        match self {
            Self::One(file) => vec![file],
            Self::Picked(picked) => picked.files.values().flatten().collect(),
        }
    }

    /// The template of a batch, whose names that are known before it runs are `scope`.
    ///
    /// # Errors
    /// When the path cannot be rendered, no file of the project is there, or that one is no template for this stage.
    pub fn of(&self, scope: &Value) -> Result<&TemplateFile, String> {
        match self {
            Self::One(file) => Ok(file),
            Self::Picked(picked) => picked.of(scope),
        }
    }
}

/// A template that each batch picks among files of the project.
#[derive(Clone)]
pub struct Picked {
    /// Gives the file's path.
    pub(crate) path: PathTemplate,
    /// The files that it can give, as they were read; the text says why one is no template for this stage.
    pub(crate) files: BTreeMap<RelPath, Result<TemplateFile, String>>,
}

impl Picked {
    fn of(&self, scope: &Value) -> Result<&TemplateFile, String> {
        let rendered = self.path.template.render_path(scope);
        let rendered = rendered.map_err(|error| error.to_string())?;
        let path =
            RelPath::parse(&rendered).map_err(|error| format!("`{}`: {error}", self.path.text))?;
        match self.files.get(&path) {
            Some(Ok(file)) => Ok(file),
            Some(Err(why)) => Err(why.clone()),
            None => {
                let right = self.files.iter().filter(|(_, file)| file.is_ok());
                let right = right.map(|(path, _)| path.as_str());
                Err(format!(
                    "`{}` gives `{path}`, which the project has not: there is {}",
                    self.path.text,
                    listed(right)
                ))
            }
        }
    }
}

impl fmt::Debug for Picked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.text.fmt(f)
    }
}

/// A string of a declaration that may hold `{{ }}`.
#[derive(Clone)]
pub struct Text {
    /// As written.
    pub source: String,
    /// Compiled.
    pub template: Arc<Template>,
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.source.fmt(f)
    }
}
