//! Reads `milepost.toml`: name, parameters, environment, agents, services, names for outcomes.

mod agent;
pub(crate) mod executor;
mod manifest;
mod params;
pub(crate) mod services;

use crate::base::duration::parse_duration;
use crate::decl::keys::{self, LIMITS, PROJECT};
use crate::decl::problem::{Report, SourceFile};
use crate::decl::tables::fields::{self, Fields};
use crate::decl::tables::hints;
use crate::decl::tables::tree::{self, TomlNode};
use crate::decl::values::names::{ProjectNames, check_name};
use crate::decl::values::reader::ValueReader;
use crate::expr::place::nearest;
use crate::model::agent::Agent;
use crate::model::executor::Executors;
use crate::model::money::NanoUsd;
use crate::model::param::ParamType;
use crate::model::pipeline::{Limits, Manifest, Param, Service};
use agent::agent;
use params::param;
use std::collections::BTreeMap;

/// The declarations of `milepost.toml`, without those that have mistakes.
#[derive(Debug, Default)]
pub(crate) struct Project {
    pub(crate) name: String,
    /// Parameters, in the order of the file.
    pub(crate) params: Vec<Param>,
    /// Environment variables and their defaults.
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) agents: BTreeMap<String, Agent>,
    /// The limits of a workspace.
    pub(crate) limits: Limits,
    pub(crate) services: BTreeMap<String, Service>,
    /// True if the umask decides who can read prompts and answers.
    pub(crate) is_shared: bool,
    /// Names for outcomes.
    pub(crate) errors: BTreeMap<String, String>,
    /// Where batches can run besides this machine.
    pub(crate) executors: Executors,
    /// How workspace lists are read.
    pub(crate) manifest: Manifest,
    /// All names that are declared, also those whose values are wrong.
    pub(crate) names: ProjectNames,
}

impl Project {
    /// A project of which no name is known.
    pub(crate) fn unknown() -> Self {
        let mut project = Self::default();
        project.names.is_unknown = true;
        project
    }
}

/// Reads the file.
pub(crate) fn read(reader: &mut ValueReader<'_>, file: &SourceFile) -> Project {
    let Some(mut tree) = tree::parse(file, &mut reader.report) else {
        return Project::unknown();
    };
    let mut project = Project::default();
    renamed(
        file,
        &mut reader.report,
        &mut tree,
        "manifest",
        "workspaces",
    );
    let top = fields::check(file, &mut reader.report, &PROJECT, "", 0..0, &tree);
    project.name = top
        .text("name")
        .map_or_else(String::new, |(name, _)| name.to_owned());
    if let Some(env) = top.get("env").and_then(TomlNode::table) {
        for (key, node) in &env.entries {
            project.names.env.push(key.name.clone());
            match node.text() {
                Some(text) => {
                    project.env.insert(key.name.clone(), text.to_owned());
                }
                None => reader.report.add(
                    file.problem(
                        node.span.clone(),
                        format!("the default of `{}` must be a string", key.name),
                    )
                    .label(format!("this is {}", node.value.described()))
                    .help("values of the environment are strings: write it in quotes"),
                ),
            }
        }
    }
    if let Some(params) = top.get("params").and_then(TomlNode::table) {
        for (key, node) in &params.entries {
            project.names.params.push(key.name.clone());
            if check_name(file, &mut reader.report, key)
                && let Some(param) = param(reader, file, key, node)
            {
                if param.file.is_some() {
                    project.names.files.push(key.name.clone());
                }
                if !param.has_template() && param.kind != ParamType::Date {
                    let default = param.default.clone();
                    project.names.defaults.insert(key.name.clone(), default);
                }
                project.params.push(param);
            }
        }
    }
    if let Some(agents) = top.get("agents").and_then(TomlNode::table) {
        for (key, node) in &agents.entries {
            project.names.agents.push(key.name.clone());
            if key.name == "default" {
                let problem = file.problem(key.span.clone(), "an agent cannot be named `default`");
                let problem = problem.label("`--agent NAME=default` resets the choice of an agent");
                reader
                    .report
                    .add(problem.help("give the agent another name"));
            } else if check_name(file, &mut reader.report, key)
                && let Some(agent) = agent(reader, file, &project.names, key, node)
            {
                project.agents.insert(key.name.clone(), agent);
            }
        }
    }
    project.limits = limits(file, &mut reader.report, &top);
    project.services = services::read(reader, file, &top, &mut project.names);
    project.executors = executor::read(reader, &top);
    project.manifest = manifest::read(reader, &top);
    project.is_shared = top
        .text("permissions")
        .is_some_and(|(word, _)| word == "umask");
    project.errors = errors(file, &mut reader.report, &top);
    project
}

/// Reads a table under its old name as the new one, with a warning.
fn renamed(
    file: &SourceFile,
    report: &mut Report,
    top: &mut tree::TomlTable,
    old: &str,
    new: &str,
) {
    if top.get(new).is_some() {
        return;
    }
    if let Some((key, _)) = top.entries.iter_mut().find(|(key, _)| key.name == old) {
        let problem = file.problem(key.span.clone(), format!("`[{old}]` is now `[{new}]`"));
        report.warn(problem.help("rename it: the next version removes the old name"));
        new.clone_into(&mut key.name);
    }
}

fn limits(file: &SourceFile, report: &mut Report, top: &Fields<'_>) -> Limits {
    let Some(fields) = top.table("limits", &LIMITS, report) else {
        return Limits::default();
    };
    Limits {
        usd: fields.number("usd").and_then(NanoUsd::from_dollars),
        tokens: fields.integer("tokens"),
        calls: fields.integer("calls"),
        time: fields.text("time").and_then(|(text, span)| {
            let read = parse_duration(text);
            let read = read.map_err(|error| report.add(file.problem(span, error.to_string())));
            read.ok()
        }),
    }
}

/// Names for outcomes, of `[errors]`.
pub(crate) fn errors(
    file: &SourceFile,
    report: &mut Report,
    top: &Fields<'_>,
) -> BTreeMap<String, String> {
    let mut errors = BTreeMap::new();
    let Some(table) = top.get("errors").and_then(TomlNode::table) else {
        return errors;
    };
    for (key, node) in &table.entries {
        let name = key.name.as_str();
        if !keys::OUTCOMES.contains(&name) {
            let help = match nearest(name, keys::OUTCOMES.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None if keys::STAGE.key(name).is_some() => {
                    format!(
                        "if `{name}` is meant as the key of the stage, move it to the top of the file, above `[errors]`"
                    )
                }
                None => format!("outcomes are {}", hints::or(keys::OUTCOMES.iter().copied())),
            };
            report.add(
                file.problem(key.span.clone(), format!("`{name}` is not an outcome"))
                    .label("unknown outcome")
                    .help(help),
            );
        } else if let Some(text) = node.text() {
            errors.insert(name.to_owned(), text.to_owned());
        } else {
            let problem = file.problem(
                node.span.clone(),
                format!("the name for `{name}` must be a string"),
            );
            report.add(problem.label(format!("this is {}", node.value.described())));
        }
    }
    errors
}
