//! A stage as declared: batches, inputs, steps, outputs, checks and policy.

use super::outcome::{Outcome, OutcomeKind};
use super::pipeline::Asset;
use super::policy::Policy;
use super::step::Step;
use crate::base::duration::parse_duration;
use crate::base::glob::is_pattern;
use crate::base::path::{FilePath, PathError, RelPath, Root};
use crate::expr::jq::{Jq, JqError};
use crate::expr::scope::{Columns, Format, Reading};
use crate::expr::select::Select;
use crate::expr::template::Template;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

/// Declared work with inputs, outputs, checks and policy.
#[derive(Debug, Clone)]
pub struct Stage {
    /// Its identity: `classify` of `stages/3_classify.toml`.
    pub name: String,
    /// Its place: 3 of `stages/3_classify.toml`.
    pub number: u32,
    /// The file that declares it, in the project.
    pub file: RelPath,
    /// What it is for, in one line.
    pub description: Option<String>,
    /// Name of the progress file in the workspace.
    pub progress: RelPath,
    /// Empty file written after a batch's outputs.
    pub marker: Option<PathTemplate>,
    /// The project's services that must answer while its batches run.
    pub services: Vec<String>,
    /// Runs after a partial stage.
    pub allow_partial: bool,
    /// Of a batch: to its journal records and the checkpoint.
    pub summary: Option<Program>,
    /// False: the stage is complete, but the run ends with exit code 1.
    pub verdict: Option<Program>,
    /// What there is one batch for each of; empty: the stage has one batch.
    pub each: Vec<Each>,
    /// Named inputs.
    pub inputs: Vec<Input>,
    /// Files that programs read beside inputs and arguments: known by no name.
    pub reads: Vec<PathTemplate>,
    /// The steps, done in turn.
    pub steps: Vec<Step>,
    /// Named outputs.
    pub outputs: Vec<Output>,
    /// Repeats the steps until the result is what it shall be.
    pub refine: Option<Refine>,
    /// Keys that must be equal as multisets.
    pub conserve: Option<Conserve>,
    /// What must hold of parameters and inputs before a batch begins.
    pub requires: Vec<Check>,
    /// Tests of the outputs.
    pub checks: Vec<Check>,
    /// How many at once, and what to do on failure.
    pub policy: Policy,
    /// What agents use for a batch, as declared.
    pub estimate: Option<Estimate>,
    /// Names for outcomes: the stage's own, then the project's.
    pub errors: BTreeMap<String, String>,
    /// The declaration as canonical JSON by part (`step`, `outputs`, …): what a fingerprint takes of it.
    pub parts: BTreeMap<String, Value>,
}

/// What agents use for a batch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// Tokens, input and output of all its calls.
    pub tokens: u64,
    /// The share of them that is input, 0 to 1.
    pub input_share: f64,
}

impl Stage {
    /// The output of this name.
    pub fn output(&self, name: &str) -> Option<&Output> {
        self.outputs.iter().find(|output| output.name == name)
    }

    /// The input of this name.
    pub fn input(&self, name: &str) -> Option<&Input> {
        self.inputs.iter().find(|input| input.name == name)
    }

    /// An outcome under the name that the stage or the project declares for it.
    #[must_use]
    pub fn named(&self, mut outcome: Outcome) -> Outcome {
        if outcome.kind != OutcomeKind::Check
            && let Some(name) = self.errors.get(outcome.kind.name())
        {
            outcome.code.clone_from(name);
        }
        outcome
    }

    /// Whether the journal names each step that begins: where several act, each in a role of its own, or in rounds.
    pub fn tells_steps(&self) -> bool {
        let has_role = |step: &Step| step.role.is_some();
        self.refine.is_some() || self.steps.len() > 1 && self.steps.iter().any(has_role)
    }

    /// `stage_3_complete.json`.
    pub fn checkpoint_name(&self) -> String {
        format!("stage_{}_complete.json", self.number)
    }

    /// The names that jq programs of this stage see as `$name`, in the order that [`Jq`] was compiled with.
    pub fn scope_names(&self) -> Vec<String> {
        let mut names: Vec<String> = FIXED_NAMES.iter().map(|&name| name.to_owned()).collect();
        names.extend(self.each.iter().map(|each| each.name.clone()));
        names.extend(self.inputs.iter().map(|input| input.name.clone()));
        names.extend(self.outputs.iter().map(|output| output.name.clone()));
        for step in &self.steps {
            if !names.contains(&step.out) {
                names.push(step.out.clone());
            }
        }
        if self.refine.is_some() {
            names.extend(ROUND_NAMES.map(str::to_owned));
        }
        if !names.iter().any(|name| name == RUN) {
            names.push(RUN.to_owned());
        }
        if !names.iter().any(|name| name == OVERRIDES) {
            names.push(OVERRIDES.to_owned());
        }
        names
    }

    /// Returns true if an `each`, an input, an output or the `out` of a step has this name.
    pub fn declares(&self, name: &str) -> bool {
        self.each.iter().any(|each| each.name == name)
            || self.inputs.iter().any(|input| input.name == name)
            || self.outputs.iter().any(|output| output.name == name)
            || self.steps.iter().any(|step| step.out == name)
    }
}

/// The name of the accepted modifications by hand. A stage that declares a name like this has its own.
pub const OVERRIDES: &str = "overrides";

/// Names that every scope has.
pub const FIXED_NAMES: [&str; 7] = [
    "params",
    "env",
    "workspace",
    "paths",
    "digests",
    "agents",
    "milepost",
];

/// The name of the moment at which an attempt began: `date`, `time` and `timestamp`. It differs at each run, so it is no fact: a
/// program that takes the scope whole does not see it. A stage that declares the name itself sees its own.
pub const RUN: &str = "run";

/// Names that the scope of a stage has whose steps are repeated.
pub const ROUND_NAMES: [&str; 2] = ["iteration", "previous"];

/// `[refine]`: the steps in turn, again and again.
#[derive(Debug, Clone)]
pub struct Refine {
    /// True after a round ends the loop.
    pub until: Program,
    /// At most so many rounds.
    pub max_iterations: Templated<u64>,
    /// When no round was right, the one with the highest score stands; else the batch fails.
    pub best: bool,
    /// How good a round is.
    pub score: Option<Program>,
    /// What to say when the loop fails; it sees `best`.
    pub message: Option<Arc<Template>>,
}

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

/// One `[each.NAME]`.
#[derive(Debug, Clone)]
pub struct Each {
    /// Its name in the scope.
    pub name: String,
    /// Where the items come from.
    pub source: EachSource,
    /// What an item is known by; by default the value itself, for files their stem.
    pub key: Option<Program>,
}

/// Where the items of an `each` come from.
#[derive(Debug, Clone)]
pub enum EachSource {
    /// A batch per file.
    Path(PathTemplate),
    /// A batch per value that jq gives from a file.
    From {
        /// The file.
        file: PathTemplate,
        /// Run over its content.
        select: Program,
        /// The columns that the table must have.
        columns: Option<Arc<Columns>>,
    },
    /// A batch per value.
    Values(Vec<Value>),
    /// A batch per number from 1 on.
    Count(Templated<u64>),
}

/// One input.
#[derive(Debug, Clone)]
pub struct Input {
    /// Its name in the scope.
    pub name: String,
    /// Where it comes from.
    pub source: InputSource,
    /// What its content must be.
    pub schema: Option<Asset>,
    /// Absent is allowed, and null in the scope.
    pub optional: bool,
    /// How its content is read.
    pub format: Option<Format>,
    /// The columns that the table must have.
    pub columns: Option<Arc<Columns>>,
}

impl Input {
    /// Returns how one of its files is read. What has columns is a table, whatever it is called.
    pub fn reading(&self, file: &FilePath) -> Reading {
        let by_name = || match &self.columns {
            Some(_) => Format::Csv,
            None => Format::of_path(file.path.as_str()),
        };
        Reading {
            format: self.format.unwrap_or_else(by_name),
            columns: self.columns.clone(),
        }
    }
}

/// Where an input comes from.
#[derive(Debug, Clone)]
pub enum InputSource {
    /// A file; a glob is a list.
    Path(PathTemplate),
    /// Files that a file names, confined to a folder.
    From {
        /// The file that names them.
        file: PathTemplate,
        /// Gives the names.
        select: Program,
        /// The folder that confines them.
        base: FilePath,
        /// Whether that folder is the whole project or workspace (then `base.path` is not used).
        whole: bool,
    },
}

/// One output.
#[derive(Debug, Clone)]
pub struct Output {
    /// Its name in the scope.
    pub name: String,
    /// Its path; with `*`: any number of files.
    pub path: PathTemplate,
    /// What its content must be.
    pub schema: Option<Asset>,
    /// The array that is validated item by item.
    pub stream: Option<Select>,
    /// How its content is read back and written.
    pub format: Format,
    /// The columns that the table must have.
    pub columns: Option<Arc<Columns>>,
    /// Whether there is one of each round of `[refine]`: its path holds a `*` where the round stands.
    pub per_round: bool,
}

impl Output {
    /// Returns how its content is read back.
    pub fn reading(&self) -> Reading {
        Reading {
            format: self.format,
            columns: self.columns.clone(),
        }
    }

    /// Whether it may be any number of files.
    pub fn is_many(&self) -> bool {
        self.path.text.contains('*')
    }
}

/// Keys that must come out as often as they went in.
#[derive(Debug, Clone)]
pub struct Conserve {
    /// The keys that go in.
    pub input: Select,
    /// The keys that come out.
    pub output: Select,
}

/// One `[[check]]` or `[[require]]`.
#[derive(Debug, Clone)]
pub struct Check {
    /// Must give true.
    pub test: Program,
    /// The name of the error when it does not.
    pub error: String,
    /// What to say then; by default the test's text.
    pub message: Option<Arc<Template>>,
}

impl Check {
    /// Returns true if the test mentions nothing that an earlier stage may still change.
    pub fn needs_no_input(&self, stage: &Stage) -> bool {
        let is_fixed =
            |each: &&Each| matches!(each.source, EachSource::Values(_) | EachSource::Count(_));
        let items = stage.each.iter().filter(|each| !is_fixed(each));
        let items = items.map(|each| each.name.as_str());
        let inputs = stage.inputs.iter().map(|input| input.name.as_str());
        let read: Vec<&str> = items.chain(inputs).collect();
        let is_read = |name: &String| read.iter().any(|read| name.split('.').next() == Some(read));
        !self.test.jq.takes_whole() && !self.test.jq.roots().dotted().iter().any(is_read)
    }
}
