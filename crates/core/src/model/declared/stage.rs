//! A stage as declared: batches, inputs, steps, outputs, checks and policy.

use super::asset::Asset;
pub use super::expression::{ExpressionError, PathTemplate, Program, Templated};
pub use super::names::{EVERYWHERE, FIXED_NAMES, OVERRIDES, ROUND_NAMES, RUN};
use super::policy::Policy;
use super::step::Step;
use crate::base::path::{FilePath, RelPath};
use crate::expr::scope::{Columns, Format, Reading};
use crate::expr::select::Select;
use crate::expr::template::Template;
use crate::model::outcome::{Outcome, OutcomeKind};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

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
    pub(crate) allow_partial: bool,
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
    pub(crate) tokens: u64,
    /// The share of them that is input, 0 to 1.
    pub(crate) input_share: f64,
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
    pub(crate) fn declares(&self, name: &str) -> bool {
        self.each.iter().any(|each| each.name == name)
            || self.inputs.iter().any(|input| input.name == name)
            || self.outputs.iter().any(|output| output.name == name)
            || self.steps.iter().any(|step| step.out == name)
    }
}

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

/// One `[each.NAME]`.
#[derive(Debug, Clone)]
pub struct Each {
    /// Its name in the scope.
    pub name: String,
    /// Where the items come from.
    pub source: EachSource,
    /// What an item is known by; by default the value itself, for files their stem.
    pub(crate) key: Option<Program>,
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
    pub(crate) format: Option<Format>,
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
