//! The fingerprint of a batch, gathered from the declaration, the settings and the files.

use super::details;
use super::expand::{Batch, Item};
use super::inputs::Resolved;
use super::settings::Settings;
use super::uses;
use super::world::World;
use crate::base::digest::Digest;
use crate::base::path::FilePath;
use crate::model::agent::{Agent, Provider};
use crate::model::fingerprint::{FactKind, Facts};
use crate::model::pipeline::{Asset, Pipeline};
use crate::model::stage::{InputSource, OVERRIDES, PathTemplate, Program, Stage, Templated};
use crate::model::step::{StepKind, TemplateChoice, TemplateFile, Text};
use serde_json::Value;
use std::collections::BTreeSet;

/// A fact's value is kept as it is up to this length, else as its digest.
const SHOWN: usize = 160;

/// What names of files of the project begin with.
const PROJECT: &str = "project:";

/// The facts that all batches of a stage share.
pub fn shared(stage: &Stage, pipeline: &Pipeline, settings: &Settings) -> Facts {
    let mut facts = Facts::default();
    for (part, value) in &stage.parts {
        let kind = match part.as_str() {
            // What a batch is for is a fact of its own.
            "each" => continue,
            "conserve" => FactKind::Conserve,
            "requires" | "checks" | "summary" | "verdict" => FactKind::Check,
            _ => FactKind::Step,
        };
        details::add_part(&mut facts, kind, part, value);
    }
    for step in &stage.steps {
        facts.add(
            FactKind::Version,
            step.kind.name(),
            step.kind.version().to_string(),
        );
        for name in uses::of(&step.kind).env {
            add_env(&mut facts, name, settings);
        }
        if let StepKind::Agent { agent, prompt, .. } = &step.kind {
            add_agent(&mut facts, agent, pipeline, settings);
            match settings.agent(pipeline, agent).map(|agent| &agent.provider) {
                // A table and a program are asked the questions alone.
                Some(Provider::Rules(_)) => {}
                Some(Provider::Jq(program)) => {
                    for name in program.jq.mentions().dotted() {
                        add_mention(&mut facts, name, pipeline, settings);
                    }
                }
                _ => {
                    if let TemplateChoice::One(prompt) = prompt {
                        add_template(&mut facts, prompt, pipeline, settings);
                    }
                }
            }
        }
    }
    for asset in made_by(stage) {
        facts.add(FactKind::File, asset.path.as_str(), asset.digest);
    }
    for workbook in stage
        .steps
        .iter()
        .filter_map(|step| uses::of(&step.kind).workbook)
    {
        let key = (FactKind::File, workbook.path.as_str());
        facts.add(key.0, key.1, workbook.digest);
        facts.add_detail(key, key, workbook.meaning());
    }
    for asset in judged_by(stage) {
        for file in std::iter::once(asset).chain(asset.refers.iter()) {
            facts.add(FactKind::Schema, file.path.as_str(), file.digest);
        }
    }
    for name in mentions(stage) {
        add_mention(&mut facts, &name, pipeline, settings);
    }
    let mut judged = Facts::default();
    for program in judging(stage) {
        if let Some(asset) = &program.asset {
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
    // What only these look at changes no output.
    for (key, value) in judged.iter() {
        if facts.get(key.kind, &key.name).is_none() {
            facts.add(FactKind::Check, key.to_string(), value.clone());
        }
    }
    facts
}

/// The names of a scope that a program that takes all of it depends on, beside what the stage itself declares.
const EVERYWHERE: [&str; 4] = ["params", "env", "workspace", "agents"];

/// Returns true if a program, template or workbook of the stage names the accepted modifications by hand, and nothing that the
/// stage declares has that name.
pub fn mentions_overrides(stage: &Stage) -> bool {
    let is_it = |name: &str| name.split('.').next() == Some(OVERRIDES);
    let is_own = || stage.declares(OVERRIDES);
    let mut judged = judging(stage).flat_map(|program| program.jq.mentions().dotted());
    let templates = stage.steps.iter().filter_map(|step| match &step.kind {
        StepKind::Render { template } => Some(template),
        StepKind::Agent { prompt, .. } => Some(prompt),
        _ => None,
    });
    let mut files = templates.flat_map(TemplateChoice::files);
    let named = mentions(stage).iter().any(|name| is_it(name))
        || judged.any(|name| is_it(name))
        || files.any(|file| file.template.names().iter().any(|name| is_it(name)));
    named && !is_own()
}

/// The programs that only judge a batch or what was made of it, or say something of it.
fn judging(stage: &Stage) -> impl Iterator<Item = &Program> {
    let checks = stage.requires.iter().chain(&stage.checks);
    let checks = checks.map(|check| &check.test);
    checks.chain(&stage.summary).chain(&stage.verdict)
}

/// The facts that are a batch's own: what it is for, and the files that it reads.
///
/// # Errors
/// When a file that it needs is not there or cannot be read.
pub fn own(
    stage: &Stage,
    batch: &Batch,
    inputs: &[Resolved],
    scope: &Value,
    world: &dyn World,
) -> Result<Facts, String> {
    let mut facts = Facts::default();
    for argument in stage.steps.iter().flat_map(|step| step.kind.arguments()) {
        add_argument(&mut facts, argument, scope, world)?;
    }
    for (name, item) in &batch.items {
        match item {
            Item::File(file) => add_file(&mut facts, file, false, world)?,
            Item::Value(value) => facts.add(FactKind::Item, name.as_str(), shown(value)),
        }
    }
    for input in inputs {
        let optional = stage.input(&input.name).is_some_and(|input| input.optional);
        for file in &input.files {
            add_file(&mut facts, file, optional, world).map_err(|why| {
                match input.name.as_str() {
                    "" => format!("`reads`: {why}"),
                    name => format!("input `{name}`: {why}"),
                }
            })?;
        }
    }
    Ok(facts)
}

/// A file of the project that a program's argument names: a script, a configuration. What is no file is not looked into.
fn add_argument(
    facts: &mut Facts,
    argument: &Text,
    scope: &Value,
    world: &dyn World,
) -> Result<(), String> {
    if !argument.source.starts_with(PROJECT) {
        return Ok(());
    }
    let rendered = argument.template.render(scope);
    let rendered = rendered.map_err(|error| error.to_string())?;
    if rendered == PROJECT {
        return Ok(());
    }
    let file: FilePath = rendered
        .parse()
        .map_err(|error| format!("`{rendered}`: {error}"))?;
    if !world.is_folder(&file) {
        add_file(facts, &file, false, world)?;
    }
    Ok(())
}

fn add_file(
    facts: &mut Facts,
    file: &FilePath,
    optional: bool,
    world: &dyn World,
) -> Result<(), String> {
    let name = file.text();
    // What a batch is for is often its input as well.
    let known = facts.get(FactKind::Input, &name);
    if known.is_some_and(|known| known.digest().is_some()) {
        return Ok(());
    }
    match world.digest(file)? {
        Some(digest) => facts.add(FactKind::Input, name, digest),
        None if optional => facts.add(FactKind::Input, name, "absent"),
        None => return Err(format!("`{file}` is not there")),
    }
    Ok(())
}

pub(super) fn shown(value: &Value) -> String {
    let text = value.to_string();
    if text.len() <= SHOWN {
        text
    } else {
        Digest::of(text).to_string()
    }
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

/// Adds to a batch's own facts the templates that it picks, but for what all batches share.
///
/// # Errors
/// When there is no such template.
pub fn add_picked(
    own: &mut Facts,
    stage: &Stage,
    scope: &Value,
    shared: &Facts,
    pipeline: &Pipeline,
    settings: &Settings,
) -> Result<(), String> {
    let mut picked = Facts::default();
    for step in &stage.steps {
        let uses = uses::of(&step.kind);
        let Some(template) = uses.template else {
            continue;
        };
        let is_read = uses.agent.is_none_or(|agent| {
            let agent = settings.agent(pipeline, agent).map(|agent| &agent.provider);
            !matches!(agent, Some(Provider::Rules(_) | Provider::Jq(_)))
        });
        // Which one it is must be right whoever is asked.
        if let TemplateChoice::Picked(_) = template {
            let file = template.of(scope);
            let file = file.map_err(|why| format!("`{}`: {why}", step.kind.template_key()))?;
            if is_read {
                add_template(&mut picked, file, pipeline, settings);
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

/// Files of the project that say how outputs are made. A prompt is one only for agents that read it: rules do not.
fn made_by(stage: &Stage) -> Vec<&Asset> {
    let mut found: Vec<&Asset> = programs(stage)
        .into_iter()
        .filter_map(|program| program.asset.as_ref())
        .collect();
    for step in &stage.steps {
        let uses = uses::of(&step.kind);
        if let (None, Some(TemplateChoice::One(template))) = (uses.agent, uses.template) {
            found.push(&template.asset);
            found.extend(&template.included);
        }
        // The reply is not kept: it cannot be judged again.
        let schema = uses.reply_schema.iter();
        found.extend(schema.flat_map(|asset| std::iter::once(*asset).chain(asset.refers.iter())));
    }
    found
}

fn judged_by(stage: &Stage) -> Vec<&Asset> {
    let outputs = stage
        .outputs
        .iter()
        .filter_map(|output| output.schema.as_ref());
    let inputs = stage
        .inputs
        .iter()
        .filter_map(|input| input.schema.as_ref());
    let answers = stage
        .steps
        .iter()
        .filter_map(|step| uses::of(&step.kind).answer_schema);
    outputs.chain(inputs).chain(answers).collect()
}

/// The programs that outputs depend on: all but those that only judge, those of `each`, whose items are facts themselves, and
/// the placeholder, whose batch runs again in any case.
fn programs(stage: &Stage) -> Vec<&Program> {
    let mut found: Vec<&Program> = Vec::new();
    for input in &stage.inputs {
        if let InputSource::From { select, .. } = &input.source {
            found.push(select);
        }
    }
    if let Some(refine) = &stage.refine {
        found.push(&refine.until);
        found.extend(&refine.score);
    }
    for step in &stage.steps {
        found.extend(&step.when);
        found.extend(uses::of(&step.kind).programs);
    }
    found
}

/// Every name, dotted, that the templates and programs of a stage mention.
fn mentions(stage: &Stage) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for program in programs(stage) {
        names.extend(program.jq.mentions().dotted().iter().cloned());
    }
    // A program that takes `.` whole sees every name there is.
    let refine = stage.refine.iter();
    let mut refine = refine.flat_map(|it| std::iter::once(&it.until).chain(&it.score));
    let whole = refine.any(|program| program.jq.takes_whole())
        || stage.steps.iter().any(|step| {
            let whole = uses::of(&step.kind).whole.into_iter();
            let mut programs = whole.chain(&step.when);
            programs.any(|program| program.jq.takes_whole())
        });
    if whole {
        names.extend(EVERYWHERE.map(str::to_owned));
    }
    if let Some(refine) = &stage.refine {
        add_templated(&mut names, &refine.max_iterations);
    }
    for input in &stage.inputs {
        match &input.source {
            InputSource::Path(path) | InputSource::From { file: path, .. } => {
                add_path(&mut names, path);
            }
        }
    }
    for path in &stage.reads {
        add_path(&mut names, path);
    }
    for path in stage
        .outputs
        .iter()
        .map(|output| &output.path)
        .chain(&stage.marker)
    {
        add_path(&mut names, path);
    }
    for step in &stage.steps {
        let uses = uses::of(&step.kind);
        for template in uses.templates {
            names.extend(template.names().iter().cloned());
        }
        // A new key changes no reply, and is nothing to keep, not even as a digest.
        let is_secret = |name: &str| name.split('.').next() == Some("env");
        let named = uses.headers.iter().flat_map(|template| template.names());
        names.extend(named.filter(|name| !is_secret(name)).cloned());
        if let (None, Some(TemplateChoice::One(template))) = (uses.agent, uses.template) {
            names.extend(template.template.names().iter().cloned());
        }
        if let Some(workbook) = uses.workbook {
            names.extend(words(&workbook.text));
        }
        names.extend(uses.says.iter().map(|name| (*name).to_owned()));
    }
    names
}

/// A workbook's programs are compiled by its step; what they mention is read off the text, which can only be too much.
fn words(text: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for root in [
        "params",
        "env",
        "workspace",
        "agents",
        "milepost",
        OVERRIDES,
    ] {
        for (at, _) in text.match_indices(root) {
            let rest = &text[at + root.len()..];
            let field: String = rest
                .strip_prefix('.')
                .map(|rest| {
                    rest.chars()
                        .take_while(|c| c.is_alphanumeric() || *c == '_')
                        .collect()
                })
                .unwrap_or_default();
            names.insert(if field.is_empty() {
                root.to_owned()
            } else {
                format!("{root}.{field}")
            });
        }
    }
    names
}

fn add_path(names: &mut BTreeSet<String>, path: &PathTemplate) {
    names.extend(path.template.names().iter().cloned());
}

fn add_templated<T>(names: &mut BTreeSet<String>, value: &Templated<T>) {
    if let Templated::Template(template) = value {
        names.extend(template.names().iter().cloned());
    }
}
