//! A stage as declared: batches, inputs, steps, outputs, checks and policy.

use super::asset::Asset;
use super::executor::{ExecutorName, Resources};
pub use super::expression::{ExpressionError, PathTemplate, Program, Templated};
pub use super::names::{EVERYWHERE, FIXED_NAMES, OVERRIDES, ROUND_NAMES, RUN};
use super::policy::{Concurrency, Policy};
use super::step::{Part, Step, StepKind};
use crate::base::path::{FilePath, RelPath};
use crate::expr::name::is_name;
use crate::expr::scope::{Columns, Format, Reading};
use crate::expr::select::Select;
use crate::expr::template::Template;
use crate::model::outcome::{Outcome, OutcomeKind};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Debug, Clone)]
pub struct Stage {
    /// The name: `classify` in `stages/3_classify.toml`.
    pub name: String,
    /// The number: 3 in `stages/3_classify.toml`.
    pub number: u32,
    /// The file that declares it, in the project.
    pub file: RelPath,
    /// False if the declaration has a mistake: nothing but name, number and file is known.
    pub is_read: bool,
    /// The description in one line.
    pub description: Option<String>,
    /// Name of the progress file in the workspace.
    pub progress: RelPath,
    /// Empty file written after a batch's outputs.
    pub marker: Option<PathTemplate>,
    /// The project's services that must answer while its batches run.
    pub services: Vec<String>,
    /// Runs after a partial stage.
    pub(crate) allow_partial: bool,
    /// The program whose result goes to the journal and the checkpoint.
    pub summary: Option<Program>,
    /// The program that judges a batch; if it returns false, the run ends with exit code 1.
    pub verdict: Option<Program>,
    /// The items that get a batch each; empty: the stage has one batch.
    pub each: Vec<Each>,
    pub inputs: Vec<Input>,
    /// Files that programs read besides inputs and arguments. They have no name in the scope.
    pub reads: Vec<PathTemplate>,
    /// The steps, in order.
    pub steps: Vec<Step>,
    pub outputs: Vec<Output>,
    /// The loop over the steps.
    pub refine: Option<Refine>,
    /// The keys that outputs must contain as often as inputs.
    pub conserve: Option<Conserve>,
    /// The preconditions on parameters and inputs.
    pub requires: Vec<Check>,
    /// Tests of the outputs.
    pub checks: Vec<Check>,
    /// Concurrency, time limit and failures.
    pub policy: Policy,
    /// Where its batches run; `None`: where `run --executor` says, or on this machine. Never part of a fingerprint.
    pub executor: Option<ExecutorName>,
    /// The resources of a job that runs its batches. Never part of a fingerprint.
    pub resources: Resources,
    /// The role of the person who approves the batches before they run; `None` if they need no approval.
    pub approve: Option<String>,
    /// The declared estimate for a batch.
    pub estimate: Option<Estimate>,
    /// Names for outcomes: the stage's own, then the project's.
    pub errors: BTreeMap<String, String>,
    /// The declaration as canonical JSON by part (`step`, `outputs`, …), for the fingerprint.
    pub parts: BTreeMap<String, Value>,
}

/// The estimate for a batch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// Tokens, input and output of all its calls.
    pub(crate) tokens: u64,
    /// The share of them that is input, 0 to 1.
    pub(crate) input_share: f64,
}

impl Stage {
    /// Returns the schemas that its files, answers and replies are validated by.
    pub fn schemas(&self) -> impl Iterator<Item = &Asset> {
        let parts = self.steps.iter().flat_map(|step| step.kind.parts());
        let of_steps = parts.filter_map(|(_, part)| match part {
            Part::AnswerSchema(schema) | Part::ReplySchema(schema) => Some(schema),
            _ => None,
        });
        let inputs = self.inputs.iter().filter_map(|input| input.schema.as_ref());
        let outputs = self
            .outputs
            .iter()
            .filter_map(|output| output.schema.as_ref());
        inputs.chain(outputs).chain(of_steps)
    }

    /// Returns a stage whose declaration cannot be read, for commands that show what is recorded.
    pub(crate) fn unread(name: &str, number: u32, file: &str) -> Self {
        let path = |name: &str| RelPath::of_parts(name.split('/'));
        Self {
            name: name.to_owned(),
            number,
            file: path(file),
            is_read: false,
            description: None,
            progress: path(&format!("{name}_progress.json")),
            marker: None,
            services: Vec::new(),
            allow_partial: false,
            summary: None,
            verdict: None,
            each: Vec::new(),
            inputs: Vec::new(),
            reads: Vec::new(),
            steps: Vec::new(),
            outputs: Vec::new(),
            refine: None,
            conserve: None,
            requires: Vec::new(),
            checks: Vec::new(),
            policy: Policy::default(),
            executor: None,
            resources: Resources::default(),
            approve: None,
            estimate: None,
            errors: BTreeMap::new(),
            parts: BTreeMap::new(),
        }
    }

    /// Returns the output of this name.
    pub fn output(&self, name: &str) -> Option<&Output> {
        self.outputs.iter().find(|output| output.name == name)
    }

    /// Returns true if a path is that of the file of an `each`.
    pub fn is_item(&self, path: &PathTemplate) -> bool {
        let names = path.template.names();
        let mut each = self.each.iter();
        each.any(|each| names.iter().eq([&format!("{}.path", each.name)]))
    }

    /// Returns true if earlier files of an output stay when a batch is rerun: its path names the run.
    pub fn keeps_former(&self, name: &str) -> bool {
        self.output(name)
            .is_some_and(|output| self.names_run(&output.path))
    }

    /// Returns true if the program of a step lists the files that it read.
    pub fn has_depfile(&self) -> bool {
        let mut steps = self.steps.iter();
        steps.any(|step| matches!(&step.kind, StepKind::Command(it) if it.depfile.is_some()))
    }

    /// Returns true if a path names the run.
    pub fn names_run(&self, path: &PathTemplate) -> bool {
        let mut names = path.template.names().iter();
        !self.declares(RUN) && names.any(|name| name.split('.').next() == Some(RUN))
    }

    /// Returns why its batches run on the machine of the runner under every executor; `None` if they can run elsewhere.
    pub fn stays_local(&self) -> Option<&'static str> {
        let asks = |step: &Step| step.kind.agent().is_some();
        if self.steps.iter().any(asks) {
            Some("its agent steps share the budget and the rate limits of the run")
        } else if self.refine.is_some() {
            Some("it keeps the iterations of `[refine]` in the workspace")
        } else if !self.services.is_empty() {
            Some("its services run on the machine of the runner")
        } else if matches!(self.policy.concurrency, Some(Concurrency::Values(..))) {
            Some("its `concurrency` counts the values of an `each`")
        } else {
            None
        }
    }

    /// Returns the input of this name.
    pub fn input(&self, name: &str) -> Option<&Input> {
        self.inputs.iter().find(|input| input.name == name)
    }

    /// Gives an outcome the code that the stage or the project declares.
    #[must_use]
    pub fn named(&self, mut outcome: Outcome) -> Outcome {
        let kind = outcome.kind.name();
        let of_step = |step: &Step| step.errors.get(kind) == Some(&outcome.code);
        if outcome.kind != OutcomeKind::Check
            && !self.steps.iter().any(of_step)
            && let Some(name) = self.errors.get(kind)
        {
            outcome.code.clone_from(name);
        }
        outcome
    }

    /// Returns true if the journal records when each step begins and ends: with several roles, with `[refine]`, or if a step has a
    /// `summary`.
    pub fn tells_steps(&self) -> bool {
        let has_role = |step: &Step| step.role.is_some();
        self.refine.is_some()
            || self.steps.len() > 1 && self.steps.iter().any(has_role)
            || self.steps.iter().any(|step| step.summary.is_some())
    }

    /// Returns who acts in the stage's records: the role of its last step that has one, else the stage.
    pub fn actor(&self) -> &str {
        let mut roles = self
            .steps
            .iter()
            .rev()
            .filter_map(|step| step.role.as_deref());
        roles.next().unwrap_or(&self.name)
    }

    /// Returns the name of the checkpoint, such as `stage_3_complete.json`.
    pub fn checkpoint_name(&self) -> String {
        format!("stage_{}_complete.json", self.number)
    }

    /// Returns the names that jq programs of this stage see as `$name`, in the order that [`Jq`] was compiled with.
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

/// `[refine]`: repeats the steps.
#[derive(Debug, Clone)]
pub struct Refine {
    /// Ends the loop when it returns true.
    pub until: Program,
    /// Maximum number of iterations.
    pub max_iterations: Templated<u64>,
    /// If no iteration satisfies `until`: true keeps the one with the highest score, false fails the batch.
    pub best: bool,
    /// The score of an iteration.
    pub score: Option<Program>,
    /// The message if the loop fails; it sees `best`.
    pub message: Option<Arc<Template>>,
}

/// One `[each.NAME]`.
#[derive(Debug, Clone)]
pub struct Each {
    /// The name in the scope.
    pub name: String,
    /// The source of the items.
    pub source: EachSource,
    /// The key of an item; by default the value itself, or the stem of a file.
    pub(crate) key: Option<Program>,
}

impl Each {
    /// Returns the expression of what distinguishes its items, as far as the declaration tells.
    pub fn distinguishing(&self) -> String {
        let name = &self.name;
        match (&self.source, &self.key) {
            (EachSource::Path(_), _) => format!("{name}.stem"),
            (_, Some(key)) => match key.source.trim().strip_prefix('.') {
                Some(field) if is_name(field) => format!("{name}.{field}"),
                _ => name.clone(),
            },
            (_, None) => name.clone(),
        }
    }
}

/// The source of the items of an `each`.
#[derive(Debug, Clone)]
pub enum EachSource {
    /// A batch per file.
    Path(PathTemplate),
    /// A batch per value that jq returns from a file.
    From {
        file: PathTemplate,
        /// The program over its content.
        select: Program,
        /// The columns that the table must have.
        columns: Option<Arc<Columns>>,
    },
    /// A batch per value.
    Values(Vec<Value>),
    /// A batch per number from 1 on.
    Count(Templated<u64>),
}

#[derive(Debug, Clone)]
pub struct Input {
    /// The name in the scope.
    pub name: String,
    pub source: InputSource,
    /// The schema of its content.
    pub schema: Option<Asset>,
    /// True if it may be missing; it is null in the scope then.
    pub optional: bool,
    /// True if a pattern also matches what earlier runs wrote and Milepost no longer tracks.
    pub earlier: bool,
    /// The format of its content.
    pub(crate) format: Option<Format>,
    /// The columns that the table must have.
    pub columns: Option<Arc<Columns>>,
}

impl Input {
    /// Returns how one of its files is read. A file with columns is a table, even if its name has another ending.
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

#[derive(Debug, Clone)]
pub enum InputSource {
    /// A file; a glob is a list.
    Path(PathTemplate),
    /// Files that a file names, confined to a folder.
    From {
        /// The file that names them.
        file: PathTemplate,
        /// The program that returns the names.
        select: Program,
        /// The folder that confines them.
        base: FilePath,
        /// True if that folder is the whole project or workspace (`base.path` is unused then).
        whole: bool,
    },
}

#[derive(Debug, Clone)]
pub struct Output {
    /// The name in the scope.
    pub name: String,
    /// The path; with `*`, any number of files.
    pub path: PathTemplate,
    /// The schema of its content.
    pub schema: Option<Asset>,
    /// The array that is validated item by item.
    pub stream: Option<Select>,
    /// The format of its content.
    pub format: Format,
    /// The columns that the table must have.
    pub columns: Option<Arc<Columns>>,
    /// The fewest files of an output with `*`; `None` warns if there are none.
    pub min: Option<u64>,
    /// True if each iteration of `[refine]` writes one: its path has a `*` for the iteration.
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

    /// Returns true if it may be any number of files.
    pub fn is_many(&self) -> bool {
        self.path.is_starred()
    }
}

/// The keys that outputs must contain as often as inputs.
#[derive(Debug, Clone)]
pub struct Conserve {
    /// The keys in the inputs.
    pub input: Select,
    /// The keys in the outputs.
    pub output: Select,
}

/// One `[[check]]` or `[[require]]`.
#[derive(Debug, Clone)]
pub struct Check {
    /// The test; it must return true.
    pub test: Program,
    /// The code of the error.
    pub error: String,
    /// The message; by default the text of the test.
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
