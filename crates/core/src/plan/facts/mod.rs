//! The fingerprint of a batch, gathered from the declaration, the settings and the files.

mod details;
mod programs;

use crate::base::digest::Digest;
use crate::base::glob::escaped;
use crate::base::path::{FilePath, PathError};
use crate::expr::select::Select;
use crate::model::agent::{Agent, Provider};
use crate::model::fingerprint::{FactKind, FactValue, Facts};
use crate::model::pipeline::{Asset, Pipeline};
use crate::model::stage::{EVERYWHERE, ExpressionError, InputSource, OVERRIDES, Program, Stage};
use crate::model::step::{Part, Step, StepKind, TemplateChoice, TemplateFile, Text, project_path};
use crate::plan::batches::expand::{Batch, BatchItem};
use crate::plan::batches::inputs::{Missed, Resolved};
use crate::plan::batches::world::World;
use crate::plan::options::settings::Settings;
use details::shown;
pub use programs::{NamedProgram, programs};
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Returns the facts that all batches of a stage share.
pub fn shared(stage: &Stage, pipeline: &Pipeline, settings: &Settings) -> Facts {
    let mut facts = Facts::default();
    for (part, value) in &stage.parts {
        let kind = match part.as_str() {
            // Each batch records its own item as a fact.
            "each" => continue,
            "conserve" => FactKind::Conserve,
            "requires" | "checks" | "summary" | "verdict" => FactKind::Check,
            _ => FactKind::Step,
        };
        details::add_part(&mut facts, kind, part, value);
    }
    for step in &stage.steps {
        add_step(&mut facts, step, pipeline, settings);
    }
    for program in expressions(stage) {
        add_program_file(&mut facts, program);
    }
    for program in programs(stage, pipeline, settings) {
        if let Some(value) = settings.programs.get(&program.name) {
            facts.add(FactKind::Program, program.name, value.clone());
        }
    }
    let outputs = stage.outputs.iter().map(|output| &output.schema);
    let inputs = stage.inputs.iter().map(|input| &input.schema);
    for asset in outputs.chain(inputs).flatten() {
        add_files(&mut facts, FactKind::Schema, asset);
    }
    for name in mentions(stage) {
        add_mention(&mut facts, &name, pipeline, settings);
    }
    let mut judged = Facts::default();
    for program in validating(stage) {
        for asset in program.files() {
            facts.add(FactKind::Check, asset.path.as_str(), asset.digest);
        }
        for name in program.jq.mentions().dotted() {
            add_mention(&mut judged, name, pipeline, settings);
        }
        if program.jq.takes_whole() {
            for name in EVERYWHERE {
                add_mention(&mut judged, name, pipeline, settings);
            }
        }
    }
    let conserved = stage.conserve.iter();
    let conserved = conserved.flat_map(|conserve| [&conserve.input, &conserve.output]);
    for name in conserved.filter_map(Select::name) {
        add_mention(&mut judged, &name, pipeline, settings);
    }
    // Values that only validation reads change no output, so they count as checks.
    for (key, value) in judged.iter() {
        if facts.get(key.kind, &key.name).is_none() {
            facts.add(FactKind::Check, key.to_string(), value.clone());
        }
    }
    facts
}

/// Returns true if a program, template or workbook of the stage names the accepted modifications by hand, and nothing that the
/// stage declares has that name.
pub fn mentions_overrides(stage: &Stage) -> bool {
    let is_it = |name: &str| name.split('.').next() == Some(OVERRIDES);
    let is_own = || stage.declares(OVERRIDES);
    let mut judged = validating(stage).flat_map(|program| program.jq.mentions().dotted());
    let parts = stage.steps.iter().flat_map(|step| step.kind.parts());
    let mut files = parts.flat_map(|(_, part)| part.template_files());
    let mut parts = stage.steps.iter().flat_map(|step| step.kind.parts());
    let named = mentions(stage).iter().any(|name| is_it(name))
        || parts.any(|(_, part)| part.names().iter().any(|name| is_it(name)))
        || judged.any(|name| is_it(name))
        || files.any(|file| file.template.names().iter().any(|name| is_it(name)));
    named && !is_own()
}

/// Returns the programs that only judge a batch or what was made of it, or say something of it.
fn validating(stage: &Stage) -> impl Iterator<Item = &Program> {
    let checks = stage.requires.iter().chain(&stage.checks);
    let checks = checks.map(|check| &check.test);
    checks.chain(&stage.summary).chain(&stage.verdict)
}

/// Why a batch has no fingerprint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FactsError {
    /// A file does not exist.
    #[error("`{0}` does not exist")]
    NoSuchFile(FilePath),
    /// A file cannot be read.
    #[error("{0}")]
    Unreadable(String),
    /// The name of a file is not a path.
    #[error("`{name}`: {error}")]
    Path {
        /// The name as rendered.
        name: String,
        error: PathError,
    },
    /// An expression has no usable value.
    #[error(transparent)]
    Expression(#[from] ExpressionError),
    /// The error concerns an input or a key.
    #[error("{of}: {error}")]
    Of {
        /// The input or key.
        of: String,
        error: Box<FactsError>,
    },
}

impl From<FactsError> for Missed {
    fn from(error: FactsError) -> Self {
        error.to_string().into()
    }
}

/// Returns the facts of one batch: its items, and the files that it reads.
///
/// # Errors
/// If a file that it needs does not exist or cannot be read.
pub fn own(
    stage: &Stage,
    batch: &Batch,
    inputs: &[Resolved],
    scope: &Value,
    world: &dyn World,
) -> Result<Facts, FactsError> {
    let files: usize = inputs.iter().map(|input| input.files.len()).sum();
    let mut facts = Facts::with_room(files + batch.items.len());
    let parts = stage.steps.iter().flat_map(|step| step.kind.parts());
    for (_, part) in parts {
        if let Part::Argument(argument) = part {
            add_argument(&mut facts, argument, scope, world)?;
        }
    }
    for (name, item) in &batch.items {
        match item {
            BatchItem::File(file) => add_file(&mut facts, file, false, world)?,
            BatchItem::Value(value) => facts.add(FactKind::Item, name.as_str(), shown(value)),
        }
    }
    for input in inputs {
        let optional = stage.input(&input.name).is_some_and(|input| input.optional);
        for file in &input.files {
            add_file(&mut facts, file, optional, world).map_err(|error| FactsError::Of {
                of: match input.name.as_str() {
                    "" => "`reads`".to_owned(),
                    name => format!("input `{name}`"),
                },
                error: Box::new(error),
            })?;
        }
    }
    Ok(facts)
}

/// Adds the files that the program of a batch named in its depfile when it ran last, as they are now.
///
/// # Errors
/// If one cannot be read.
pub fn add_dependencies(
    facts: &mut Facts,
    stage: &Stage,
    recorded: &Facts,
    world: &dyn World,
) -> Result<(), FactsError> {
    if !stage.has_depfile() {
        return Ok(());
    }
    let kind = FactKind::Dependency;
    for (key, _) in recorded.iter().filter(|(key, _)| key.kind == kind) {
        let name = key.name.to_string();
        let file = key.name.parse();
        let file = file.map_err(|error| FactsError::Path { name, error })?;
        let digest = world.digest(&file).map_err(FactsError::Unreadable)?;
        let value = digest.map_or_else(|| "absent".into(), FactValue::from);
        facts.add(kind, Arc::clone(&key.name), value);
    }
    Ok(())
}

/// Adds the file of the project that an argument of a program names, or all files below the folder that it names.
fn add_argument(
    facts: &mut Facts,
    argument: &Text,
    scope: &Value,
    world: &dyn World,
) -> Result<(), FactsError> {
    if project_path(&argument.source).is_none() {
        return Ok(());
    }
    let rendered = argument.template.render(scope);
    let rendered = rendered.map_err(ExpressionError::from)?;
    let file = match argument.project_file(&rendered) {
        Some(Ok((_, Some(file)))) => file,
        None | Some(Ok((_, None))) => return Ok(()),
        Some(Err(error)) => {
            let name = rendered.clone();
            return Err(FactsError::Path { name, error });
        }
    };
    if !world.is_folder(&file).map_err(FactsError::Unreadable)? {
        return add_file(facts, &file, false, world);
    }
    let pattern = format!("{}/**", escaped(file.path.as_str()));
    let found = world.matches(file.root, &pattern);
    for path in found.map_err(FactsError::Unreadable)?.files {
        // Python writes `__pycache__` beside the modules that it imports.
        if !path.as_str().split('/').any(|part| part == "__pycache__") {
            let root = file.root;
            add_file(facts, &FilePath { root, path }, false, world)?;
        }
    }
    Ok(())
}

fn add_file(
    facts: &mut Facts,
    file: &FilePath,
    optional: bool,
    world: &dyn World,
) -> Result<(), FactsError> {
    let name = file.text();
    // The item of a batch is often one of its inputs too.
    let known = facts.get(FactKind::Input, &name);
    if known.is_some_and(|known| known.digest().is_some()) {
        return Ok(());
    }
    match world.digest(file).map_err(FactsError::Unreadable)? {
        Some(digest) => facts.add(FactKind::Input, name, digest),
        None if optional => facts.add(FactKind::Input, name, "absent"),
        None => return Err(FactsError::NoSuchFile(file.clone())),
    }
    Ok(())
}

fn add_env(facts: &mut Facts, name: &str, settings: &Settings) {
    // A value may be a secret: only its digest is kept.
    let value = settings
        .env
        .get(name)
        .map_or("unset".to_owned(), |value| Digest::of(value).to_string());
    facts.add(FactKind::Env, name, value);
}

fn add_agent(facts: &mut Facts, name: &str, pipeline: &Pipeline, settings: &Settings) {
    let agent = settings.agent(pipeline, name);
    let value = agent.map_or("unknown".to_owned(), |agent| agent.digest().to_string());
    facts.add(FactKind::Agent, name, value);
    if let Some(agent) = agent {
        details::add_agent(facts, name, agent);
    }
}

/// A template that is read: its text, and the names in it.
fn add_template(facts: &mut Facts, file: &TemplateFile, pipeline: &Pipeline, settings: &Settings) {
    for asset in std::iter::once(&file.asset).chain(&file.included) {
        facts.add(FactKind::File, asset.path.as_str(), asset.digest);
    }
    for name in file.template.names() {
        add_mention(facts, name, pipeline, settings);
    }
}

/// Adds the templates that a batch picks to its own facts, except facts that all batches share.
///
/// # Errors
/// If there is no such template.
pub fn add_picked(
    own: &mut Facts,
    stage: &Stage,
    scope: &Value,
    shared: &Facts,
    pipeline: &Pipeline,
    settings: &Settings,
) -> Result<(), FactsError> {
    let mut picked = Facts::default();
    for step in &stage.steps {
        let is_read = reads_prompt(step, pipeline, settings);
        for (key, part) in step.kind.parts() {
            // The choice must be valid even if the agent does not read the prompt.
            if let Part::Template(template @ TemplateChoice::Picked(_)) = part {
                let file = template.of(scope).map_err(|error| FactsError::Of {
                    of: format!("`{key}`"),
                    error: Box::new(error.into()),
                })?;
                if is_read {
                    add_template(&mut picked, file, pipeline, settings);
                }
            }
        }
    }
    for (key, value) in picked.iter() {
        if shared.get(key.kind, &key.name).is_none() {
            own.add(key.kind, key.name.clone(), value.clone());
        }
    }
    Ok(())
}

/// An agent that is mentioned: what scopes show of it, its digest among that.
fn add_named_agent(facts: &mut Facts, name: &str, pipeline: &Pipeline, settings: &Settings) {
    let agent = settings.agent(pipeline, name);
    let value = agent.map_or("unknown".to_owned(), Agent::describe_by_bytes);
    facts.add(FactKind::Agent, name, value);
    if let Some(agent) = agent {
        details::add_agent(facts, name, agent);
    }
}

fn add_mention(facts: &mut Facts, name: &str, pipeline: &Pipeline, settings: &Settings) {
    let (root, field) = name
        .split_once('.')
        .map_or((name, None), |(root, rest)| (root, rest.split('.').next()));
    match (root, field) {
        ("params", Some(param)) => {
            facts.add(
                FactKind::Param,
                param,
                settings.params.get(param).map_or("unset".to_owned(), shown),
            );
        }
        ("params", None) => {
            for (param, value) in &settings.params {
                facts.add(FactKind::Param, param.as_str(), shown(value));
            }
        }
        ("env", Some(variable)) => add_env(facts, variable, settings),
        ("env", None) => {
            for variable in settings.env.keys() {
                add_env(facts, variable, settings);
            }
        }
        ("workspace", Some(field)) => {
            facts.add(
                FactKind::Workspace,
                field,
                settings
                    .workspace
                    .get(field)
                    .map_or("unset".to_owned(), shown),
            );
        }
        ("workspace", None) => {
            let mut all = settings.workspace.clone();
            // It never changes, and earlier versions did not show it.
            all.shift_remove("created");
            facts.add(FactKind::Workspace, "all", shown(&Value::Object(all)));
        }
        ("agents", Some(agent)) => add_named_agent(facts, agent, pipeline, settings),
        ("agents", None) => {
            for agent in pipeline.agents.keys() {
                add_named_agent(facts, agent, pipeline, settings);
            }
        }
        (OVERRIDES, _) if !settings.overrides.is_empty() => {
            let value = serde_json::json!(settings.overrides);
            facts.add(FactKind::Workspace, OVERRIDES, shown(&value));
        }
        ("milepost", _) => facts.add(FactKind::Version, "milepost", settings.version.as_str()),
        _ => {}
    }
}

/// Adds what the outputs of a step depend on besides the text of its declaration and the batch's inputs.
fn add_step(facts: &mut Facts, step: &Step, pipeline: &Pipeline, settings: &Settings) {
    let version = StepKind::VERSION.to_string();
    facts.add(FactKind::Version, step.kind.name(), version);
    for (_, part) in step.kind.parts() {
        if let Part::Template(_) = part
            && !reads_prompt(step, pipeline, settings)
        {
            continue;
        }
        for name in part.names() {
            add_mention(facts, &name, pipeline, settings);
        }
        match part {
            Part::Literal
            | Part::Reads(_)
            | Part::Mention(_)
            | Part::Select(_)
            | Part::Text(_)
            | Part::Argument(_)
            | Part::Header(_, _)
            | Part::Count(_)
            | Part::Geometry(_)
            | Part::Awaited(_)
            | Part::AwaitedMarker(_)
            | Part::Template(TemplateChoice::Picked(_)) => {}
            Part::Agent(name) => add_asked_agent(facts, name, pipeline, settings),
            Part::Env(names) => names.iter().for_each(|name| add_env(facts, name, settings)),
            Part::Program(program) | Part::ScopeProgram(program) | Part::RecordKey(program) => {
                add_program_file(facts, program);
            }
            Part::Template(TemplateChoice::One(file)) => {
                add_template(facts, file, pipeline, settings);
            }
            Part::Workbook(workbook) => {
                let key = (FactKind::File, workbook.path.as_str());
                facts.add(key.0, key.1, workbook.digest);
                facts.add_detail(key, key, workbook.meaning());
            }
            Part::AnswerSchema(asset) => add_files(facts, FactKind::Schema, asset),
            Part::ReplySchema(asset) => add_files(facts, FactKind::File, asset),
        }
    }
}

/// Returns true if the step uses its prompt: a table of rules and a jq program get only the questions.
fn reads_prompt(step: &Step, pipeline: &Pipeline, settings: &Settings) -> bool {
    let asked = step.kind.agent();
    let asked = asked.and_then(|asked| settings.agent(pipeline, &asked.agent));
    !asked.is_some_and(|agent| matches!(agent.provider, Provider::Rules(_) | Provider::Jq(_)))
}

/// Adds the agent that a step asks, and what its program mentions.
fn add_asked_agent(facts: &mut Facts, name: &str, pipeline: &Pipeline, settings: &Settings) {
    add_agent(facts, name, pipeline, settings);
    let agent = settings.agent(pipeline, name);
    if let Some(Provider::Jq(program)) = agent.map(|agent| &agent.provider) {
        for name in program.jq.mentions().dotted() {
            add_mention(facts, name, pipeline, settings);
        }
    }
}

fn add_program_file(facts: &mut Facts, program: &Program) {
    for asset in program.files() {
        facts.add(FactKind::File, asset.path.as_str(), asset.digest);
    }
}

/// Adds a file and those that it refers to.
fn add_files(facts: &mut Facts, kind: FactKind, asset: &Asset) {
    for file in std::iter::once(asset).chain(asset.refers.iter()) {
        facts.add(kind, file.path.as_str(), file.digest);
    }
}

/// Returns the programs of the stage itself and of `when` that outputs depend on: all but those that only judge, those of
/// `each`, whose items are facts themselves, and the placeholder, whose batch runs again in any case.
fn expressions(stage: &Stage) -> impl Iterator<Item = &Program> {
    let inputs = stage.inputs.iter().filter_map(|input| match &input.source {
        InputSource::From { select, .. } => Some(select),
        InputSource::Path(_) => None,
    });
    inputs.chain(scope_programs(stage))
}

/// Those among them that read the whole scope.
fn scope_programs(stage: &Stage) -> impl Iterator<Item = &Program> {
    let refine = stage.refine.iter();
    let refine = refine.flat_map(|it| std::iter::once(&it.until).chain(&it.score));
    refine.chain(stage.steps.iter().filter_map(|step| step.when.as_ref()))
}

/// Returns every name, dotted, that the stage's own templates and programs mention.
fn mentions(stage: &Stage) -> BTreeSet<String> {
    let mut names: BTreeSet<String> = expressions(stage).flat_map(Program::names).collect();
    names.extend(scope_programs(stage).flat_map(Program::scope_names));
    names.extend(stage.refine.iter().flat_map(|it| it.max_iterations.names()));
    let inputs = stage.inputs.iter().map(|input| match &input.source {
        InputSource::Path(path) | InputSource::From { file: path, .. } => path,
    });
    let outputs = stage.outputs.iter().map(|output| &output.path);
    let paths = inputs
        .chain(&stage.reads)
        .chain(outputs)
        .chain(&stage.marker);
    names.extend(paths.flat_map(|path| path.template.names().iter().cloned()));
    names
}
