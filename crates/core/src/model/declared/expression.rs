//! Expressions of declarations: jq programs, templates, paths and numbers that may be templates.

use super::asset::Asset;
use super::names::EVERYWHERE;
use crate::base::duration::{DurationError, parse_duration};
use crate::base::glob::is_pattern;
use crate::base::path::{FilePath, PathError, RelPath, Root};
use crate::base::reserved::reserved;
use crate::expr::jq::{Evaluator, Jq, JqError, Limited};
use crate::expr::place::listed;
use crate::expr::template::{Template, TemplateError};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

/// A jq program, inline or in a file of its own.
#[derive(Clone)]
pub struct Program {
    /// The file, if the program is not inline.
    pub asset: Option<Asset>,
    /// The files that it includes.
    pub included: Arc<[Asset]>,
    /// The text, with that of the included files.
    pub source: Arc<str>,
    /// The variables that it was compiled with, in order: the names of the stage's scope, and those given besides.
    pub vars: Arc<[String]>,
    /// The compiled form.
    pub jq: Arc<Jq>,
}

impl Program {
    /// Returns the values of its variables, in order; null for names that the scope lacks.
    pub fn values(&self, scope: &Map<String, Value>) -> Vec<Value> {
        self.vars
            .iter()
            .map(|name| scope.get(name).cloned().unwrap_or(Value::Null))
            .collect()
    }

    /// Returns all outputs.
    ///
    /// # Errors
    /// If the program fails, or a limit of the evaluator ends it.
    pub fn all(
        &self,
        input: Value,
        scope: &Map<String, Value>,
        evaluator: &dyn Evaluator,
    ) -> Result<Vec<Value>, JqError> {
        self.limited(scope, evaluator)?.all(&input)
    }

    /// Returns the only output.
    ///
    /// # Errors
    /// The errors of [`Program::all`], and if the program has no output or several.
    pub fn one(
        &self,
        input: Value,
        scope: &Map<String, Value>,
        evaluator: &dyn Evaluator,
    ) -> Result<Value, JqError> {
        self.limited(scope, evaluator)?.one(&input)
    }

    /// Returns the program with the values of its variables, for many inputs.
    ///
    /// # Errors
    /// The errors of [`Jq::limited`].
    pub fn limited<'a>(
        &'a self,
        scope: &Map<String, Value>,
        evaluator: &'a dyn Evaluator,
    ) -> Result<Limited<'a>, JqError> {
        let values = self
            .vars
            .iter()
            .map(|name| scope.get(name).unwrap_or(&Value::Null));
        self.jq.limited(&values.collect::<Vec<_>>(), evaluator)
    }
}

impl Program {
    /// Returns its file, if it is not inline, and those that it includes.
    pub fn files(&self) -> impl Iterator<Item = &Asset> {
        self.asset.iter().chain(self.included.iter())
    }

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
    /// The compiled form.
    pub template: Arc<Template>,
    /// True if it is the value of a parameter that is not a file, which may be a pattern.
    pub(crate) is_param: bool,
}

impl fmt::Debug for PathTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.shown())
    }
}

impl PathTemplate {
    /// Returns the path as declared.
    pub fn shown(&self) -> String {
        match self.root {
            Root::Workspace => self.text.clone(),
            Root::Project => format!("project:{}", self.text),
        }
    }

    /// Returns a pattern that matches every rendered path: each `{{ }}` becomes `*`.
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

    /// Returns true if the path is a single `{{ }}`, whose value is a whole path and not one component.
    pub fn is_whole(&self) -> bool {
        self.text.starts_with("{{") && self.text.find("}}") == Some(self.text.len().wrapping_sub(2))
    }

    /// Returns true if the text around the `{{ }}` is a pattern.
    pub fn is_pattern(&self) -> bool {
        self.around().any(is_pattern)
    }

    /// Returns true if it is a pattern, or may be one by the value of a parameter.
    pub fn may_be_pattern(&self) -> bool {
        self.is_param || self.is_pattern()
    }

    /// Returns true if the text around the `{{ }}` has a `*`: for an output, any number of files.
    pub(crate) fn is_starred(&self) -> bool {
        self.around().any(|text| text.contains('*'))
    }

    /// Returns the pieces of the text between the `{{ }}`.
    fn around(&self) -> impl Iterator<Item = &str> {
        let pieces = self.text.split("{{").enumerate();
        pieces.map(|(at, piece)| match piece.split_once("}}") {
            Some((_, text)) if at > 0 => text,
            _ if at > 0 => "",
            _ => piece,
        })
    }

    /// Parses a rendered path.
    ///
    /// # Errors
    /// The errors of [`RelPath::parse`].
    pub fn place(&self, rendered: &str) -> Result<FilePath, PathError> {
        match self.root {
            Root::Project => RelPath::parse(rendered).map(FilePath::project),
            Root::Workspace => FilePath::from_str(rendered),
        }
    }
}

/// Why an expression of a declaration has no usable value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExpressionError {
    /// The template cannot be rendered.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// The rendered text is not a duration.
    #[error(transparent)]
    Duration(#[from] DurationError),
    /// The rendered value is not a whole number of at least 1.
    #[error("`{name}` returned {value}, expected a whole number of at least 1")]
    Count {
        /// The file and key of the template.
        name: String,
        /// The rendered value.
        value: Value,
    },
    /// The rendered value is not a word of [`Geometry`](super::step::Geometry).
    #[error("`{name}` returned {value}, expected \"off\", \"missing\" or \"all\"")]
    Geometry {
        /// The file and key of the template.
        name: String,
        /// The rendered value.
        value: Value,
    },
    /// The rendered text is not a path, or a path outside of its folder.
    #[error("`{declared}`: {error}")]
    Path { declared: String, error: PathError },
    /// The project has no such template.
    #[error("`{declared}` renders to `{path}`, which the project does not have; available: {}", listed(.known.iter().map(RelPath::as_str)))]
    NoSuchFile {
        /// The path as declared.
        declared: String,
        /// The rendered path.
        path: RelPath,
        /// The templates that match the declared path.
        known: Vec<RelPath>,
    },
    /// The file is not a template for the stage; the text says why.
    #[error("{0}")]
    NoTemplate(String),
}

impl From<ExpressionError> for String {
    fn from(error: ExpressionError) -> Self {
        error.to_string()
    }
}

/// A number, a duration or a word that may be a template.
#[derive(Clone)]
pub enum Templated<T> {
    /// A declared value.
    Fixed(T),
    /// A template, rendered in a scope.
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
    /// Returns the number in a scope, at least 1.
    ///
    /// # Errors
    /// If the template fails or renders anything but a whole number of at least 1.
    pub fn number(&self, scope: &Map<String, Value>) -> Result<u64, ExpressionError> {
        match self {
            Templated::Fixed(number) => Ok(*number),
            Templated::Template(template) => {
                let value = template.render_value(&Value::Object(scope.clone()))?;
                let number = value
                    .as_u64()
                    .or_else(|| value.as_str().and_then(|text| text.parse().ok()));
                let number = number.filter(|number| *number > 0);
                number.ok_or_else(|| ExpressionError::Count {
                    name: template.name().to_owned(),
                    value,
                })
            }
        }
    }
}

impl Templated<Duration> {
    /// Returns the duration in a scope.
    ///
    /// # Errors
    /// If the template fails or renders no duration.
    pub fn duration(&self, scope: &Map<String, Value>) -> Result<Duration, ExpressionError> {
        match self {
            Templated::Fixed(duration) => Ok(*duration),
            Templated::Template(template) => {
                let text = template.render(&Value::Object(scope.clone()))?;
                Ok(parse_duration(&text)?)
            }
        }
    }
}

#[derive(Clone)]
pub struct TemplateFile {
    pub asset: Asset,
    /// The files that it includes.
    pub included: Vec<Asset>,
    /// The compiled form.
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
    /// The file that a rendered path names, for each batch.
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

    /// Returns the template of a batch. `scope` has the names that are known before the batch runs.
    ///
    /// # Errors
    /// If the path cannot be rendered, the file does not exist, or it is not a template for this stage.
    pub fn of(&self, scope: &Value) -> Result<&TemplateFile, ExpressionError> {
        match self {
            Self::One(file) => Ok(file),
            Self::Picked(picked) => picked.of(scope),
        }
    }
}

/// A template that each batch picks among files of the project.
#[derive(Clone)]
pub struct Picked {
    /// The path of the file.
    pub(crate) path: PathTemplate,
    /// The files that match the path; the text says why one is not a template for this stage.
    pub(crate) files: BTreeMap<RelPath, Result<TemplateFile, String>>,
}

impl Picked {
    fn of(&self, scope: &Value) -> Result<&TemplateFile, ExpressionError> {
        let rendered = self.path.template.render_path(scope)?;
        let declared = || self.path.text.clone();
        let path = RelPath::parse(&rendered).map_err(|error| ExpressionError::Path {
            declared: declared(),
            error,
        })?;
        match self.files.get(&path) {
            Some(Ok(file)) => Ok(file),
            Some(Err(why)) => Err(ExpressionError::NoTemplate(why.clone())),
            None => {
                let templates = self.files.iter().filter(|(_, file)| file.is_ok());
                Err(ExpressionError::NoSuchFile {
                    declared: declared(),
                    path,
                    known: templates.map(|(path, _)| path.clone()).collect(),
                })
            }
        }
    }
}

impl fmt::Debug for Picked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.text.fmt(f)
    }
}

/// The prefix of paths of files of the project.
const PROJECT: &str = "project:";

/// Splits an argument at `project:`, such as `-Iproject:include` into `-I` and the path `include`, which ends with the argument.
/// `None` if the argument names no file of the project.
pub fn project_path(argument: &str) -> Option<(&str, &str)> {
    let (before, path) = argument.split_once(PROJECT)?;
    let is_plain = !before.contains(|c: char| c == '{' || c.is_whitespace());
    let is_flag = before.strip_prefix('-').is_some_and(|flag| flag.len() == 1);
    let begins = is_flag || !before.ends_with(char::is_alphanumeric);
    (is_plain && begins).then_some((before, path))
}

/// The text before `project:` in an argument, and the file.
type NamedFile<'a> = (&'a str, Option<FilePath>);

impl Text {
    /// Returns the text before `project:` in the rendered argument, and the file or folder of the project that it names: `None` for the
    /// folder of the project. Only the declaration says that an argument names one: a value that looks so is a text.
    ///
    /// # Errors
    /// If the path leaves the project or is one of Milepost's own.
    pub fn project_file<'a>(&self, rendered: &'a str) -> Option<Result<NamedFile<'a>, PathError>> {
        let (declared, _) = project_path(&self.source)?;
        let (before, path) = rendered.split_once(PROJECT)?;
        let file = || {
            if path.is_empty() {
                return Ok((before, None));
            }
            let file = FilePath::project(RelPath::parse(path)?);
            match reserved(file.root, &file.path) {
                Some(owner) => Err(PathError::Reserved(file.to_string(), owner)),
                None => Ok((before, Some(file))),
            }
        };
        (before == declared).then(file)
    }
}

/// A string of a declaration that may hold `{{ }}`.
#[derive(Clone)]
pub struct Text {
    /// The text as declared.
    pub source: String,
    /// The compiled form.
    pub template: Arc<Template>,
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.source.fmt(f)
    }
}
