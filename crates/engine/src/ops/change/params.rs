//! Shows the parameters and agents of a workspace, and changes them without a run.

use crate::ops::project::error::OpsError;
use crate::ops::project::lock::lock;
use crate::ops::project::open::{collect_keys, open_without_values};
use crate::ops::project::open_project::OpenProject;
use crate::ops::project::request::Request;
use crate::ops::project::stored_values::{
    TODAY, check_agents, declared, keep, named_agents, notes,
};
use crate::ops::project::values::compute_values;
use crate::run::record::quarantined::KeptFile;
use jiff::Timestamp;
use milepost_core::model::choice::StoredNote;
use milepost_core::plan::options::Values;
use milepost_core::plan::options::flags::Flags as _;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The parameters and agents of a workspace.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Params {
    /// The project's name.
    pub project: String,
    /// The path of the workspace.
    pub workspace: String,
    /// The parameters in the order of `milepost.toml`, then `workspace.today` if it was set, then stored values that no declaration uses.
    pub params: Vec<ParamLine>,
    /// The agents that stages ask, and those that are replaced.
    pub agents: Vec<AgentLine>,
    /// The other declared agents.
    pub other_agents: Vec<String>,
    /// Files that `--set` replaced, which are in quarantine.
    pub quarantined: Vec<KeptFile>,
    /// Warnings and notes about stored values and agents.
    pub notes: Vec<StoredNote>,
    /// Why a run would refuse these values.
    pub problem: Option<String>,
}

/// Where a value or an agent comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// `milepost.toml` declares it.
    Declared,
    /// It was set for the workspace.
    Set,
    /// It was set for the workspace, and nothing declares it.
    Unused,
    /// `SOURCE_DATE_EPOCH` in the environment.
    Environment,
}

/// A parameter and its value.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct ParamLine {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: Value,
    /// Its default; `None` for a parameter that is not declared.
    pub default: Option<Value>,
    /// Where the value comes from.
    pub source: Source,
    /// When it was set for the workspace, in UTC; `None` if that is not known.
    #[cfg_attr(debug_assertions, schemars(with = "Option<String>"))]
    pub at: Option<Timestamp>,
    /// The user who set it.
    pub by: Option<String>,
    /// The parameter's description.
    pub description: Option<String>,
}

/// An agent, and the one that answers in its place.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct AgentLine {
    /// The name that stages ask.
    pub name: String,
    /// The agent that answers.
    pub agent: String,
    /// The provider and model of that agent; `None` if it is not declared.
    pub answers: Option<String>,
    /// Where the choice comes from.
    pub source: Source,
    /// When it was chosen for the workspace, in UTC.
    #[cfg_attr(debug_assertions, schemars(with = "Option<String>"))]
    pub at: Option<Timestamp>,
    /// The user who chose it.
    pub by: Option<String>,
}

/// Applies the options of the request to the workspace, if there are any, and returns the resulting parameters and agents. Without
/// options nothing is written.
///
/// # Errors
/// When the declarations or an option are wrong, another process has locked the workspace, or the disk fails.
pub fn params(request: &Request) -> Result<Params, OpsError> {
    let mut opened = open_without_values(request)?;
    let settled = compute_values(&mut opened, request).and_then(|()| check_agents(&opened));
    let is_changed = request.values.first().is_some();
    let mut not_set = Vec::new();
    let mut quarantined = Vec::new();
    let mut settled = settled;
    collect_keys(&mut opened, request);
    if is_changed {
        // A stored value may be wrong for another reason: it can be removed alone.
        let only_removes =
            request.values.set.is_empty() && opened.agents.values().all(Option::is_none);
        if !only_removes {
            settled?;
        }
        let is_note = |note: &StoredNote| matches!(note, StoredNote::NotSet { .. });
        not_set = notes(&opened).into_iter().filter(is_note).collect();
        let today = opened.workspace.identity.today;
        let lock = lock(&mut opened, &request.command)?;
        quarantined = keep(&mut opened, request, &lock.run_id, Some(today))?;
        drop(lock);
        let plain = Request {
            values: Values::default(),
            ..request.clone()
        };
        opened = open_without_values(&plain)?;
        settled = compute_values(&mut opened, &plain).and_then(|()| check_agents(&opened));
        collect_keys(&mut opened, request);
    }
    not_set.extend(notes(&opened));
    let agents = agents(&opened);
    let named = agents.iter().flat_map(|line| [&line.name, &line.agent]);
    let named: BTreeSet<&String> = named.collect();
    let others = opened.pipeline.agents.keys();
    let others = others.filter(|name| !named.contains(name));
    Ok(Params {
        project: opened.pipeline.name.clone(),
        workspace: opened.workspace.layout.root().display().to_string(),
        params: lines(&opened, request),
        other_agents: others.cloned().collect(),
        agents,
        quarantined,
        notes: not_set,
        problem: settled.err().map(|error| error.to_string()),
    })
}

fn lines(opened: &OpenProject, request: &Request) -> Vec<ParamLine> {
    let identity = &opened.workspace.identity;
    let line = |name: &String, source: Source, default: Option<Value>| {
        let param = opened.pipeline.param(name);
        let used = opened.settings.params.get(name);
        let stored = used.or(identity.params.get(name));
        let set = identity.params_set.get(name);
        ParamLine {
            name: name.clone(),
            value: stored.or(default.as_ref()).cloned().unwrap_or_default(),
            default,
            source,
            at: set.map(|set| set.at),
            by: set.map(|set| set.by.clone()),
            description: param.and_then(|param| param.description.clone()),
        }
    };
    let mut all: Vec<ParamLine> = opened
        .pipeline
        .params
        .iter()
        .map(|param| {
            let is_set = identity.params.contains_key(&param.name);
            let source = if is_set {
                Source::Set
            } else {
                Source::Declared
            };
            line(&param.name, source, Some(declared(opened, &param.name)))
        })
        .collect();
    let first = identity.first_day();
    if opened.pipeline.param(TODAY).is_none() && identity.today != first {
        let is_epoch = request.epoch.is_some();
        all.push(ParamLine {
            name: TODAY.to_owned(),
            value: json!(identity.today),
            default: Some(json!(first)),
            source: if is_epoch {
                Source::Environment
            } else {
                Source::Set
            },
            at: None,
            by: None,
            description: None,
        });
    }
    let unused = identity.params.keys();
    let unused = unused.filter(|name| opened.pipeline.param(name).is_none());
    all.extend(unused.map(|name| line(name, Source::Unused, None)));
    all
}

/// Returns the agents that stages ask, and those that are replaced.
pub(crate) fn agents(opened: &OpenProject) -> Vec<AgentLine> {
    let stored = &opened.workspace.identity.agents;
    let mut names = named_agents(opened);
    names.extend(stored.keys().cloned());
    names.extend(opened.settings.agents.keys().cloned());
    let line = |name: String| {
        let agent = opened.settings.agents.get(&name).unwrap_or(&name);
        let declared = opened.pipeline.agents.get(agent);
        let chosen = stored
            .get(&name)
            .filter(|chosen| chosen.agent == *agent && !opened.agents.contains_key(&name));
        AgentLine {
            agent: agent.clone(),
            answers: declared.map(|it| opened.redactor.text(&it.label()).into_owned()),
            source: match chosen {
                _ if !opened.pipeline.agents.contains_key(&name) => Source::Unused,
                None if *agent == name => Source::Declared,
                _ => Source::Set,
            },
            at: chosen.map(|chosen| chosen.at),
            by: chosen.map(|chosen| chosen.by.clone()),
            name,
        }
    };
    names.into_iter().map(line).collect()
}
