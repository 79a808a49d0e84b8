//! Values and agents stored in a workspace: reads them from `--set`, `--unset` and `--agent`, stores them, and compares them with the
//! declarations.

use crate::ops::project::error::OpsError;
use crate::ops::project::open_project::OpenProject;
use crate::ops::project::request::Request;
use crate::ops::project::values::default;
use crate::run::record::quarantined::{Content, KeptFile, Removal};
use jiff::civil::Date;
use milepost_core::expr::place::nearest;
use milepost_core::model::choice::StoredNote;
use milepost_core::plan::selection::did_you_mean;
use milepost_store::store::disk::parent;
use milepost_store::store::quarantine;
use milepost_store::store::workspace::Changes;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The word that removes a chosen agent; no agent has this name.
pub(crate) const DEFAULT: &str = "default";

/// The name under which `--set` changes `workspace.today`, if no parameter has it.
pub(crate) const TODAY: &str = "today";

/// Applies one `--unset NAME`.
///
/// # Errors
/// When the parameter is neither declared nor stored, or `--set` gives it a value.
pub(crate) fn apply_unset(opened: &mut OpenProject, name: &str) -> Result<(), OpsError> {
    let usage = |message| Err(OpsError::Usage(message));
    if name == TODAY && opened.pipeline.param(name).is_none() {
        opened.workspace.identity.today = opened.workspace.identity.first_day();
        return Ok(());
    }
    let identity = &opened.workspace.identity;
    if opened.pipeline.param(name).is_none() && !identity.params.contains_key(name) {
        let declared = opened.pipeline.params.iter();
        let mut known: BTreeSet<&str> = declared.map(|param| param.name.as_str()).collect();
        known.extend(identity.params.keys().map(String::as_str));
        let near = did_you_mean(nearest(name, known.iter().copied()));
        return usage(format!(
            "`--unset {name}`: there is no parameter `{name}`{near}"
        ));
    }
    if opened.set.contains_key(name) {
        return usage(format!(
            "`--set {name}=…` and `--unset {name}` contradict each other: remove one of them"
        ));
    }
    opened.unset.insert(name.to_owned());
    Ok(())
}

/// Applies all `--agent [NAME=]OTHER`. The last one for a name counts.
///
/// # Errors
/// When an agent is not declared.
pub(crate) fn apply_agents(opened: &mut OpenProject, request: &Request) -> Result<(), OpsError> {
    let known: Vec<&str> = opened.pipeline.agents.keys().map(String::as_str).collect();
    let stored = &opened.workspace.identity.agents;
    let mut chosen = BTreeMap::new();
    for flag in &request.values.agents {
        let (name, other) = match flag.split_once('=') {
            Some((name, other)) => (Some(name), other),
            None => (None, flag.as_str()),
        };
        if known.is_empty() && (other != DEFAULT || stored.is_empty()) {
            let message = format!("`--agent {flag}`: this project declares no agents");
            return Err(OpsError::Usage(message));
        }
        let is_known = |name: &str| known.contains(&name);
        // A choice for an agent that is no longer declared can be removed.
        let is_removed = |name: &str| other == DEFAULT && stored.contains_key(name);
        let missing = name
            .filter(|name| !is_known(name) && !is_removed(name))
            .or((other != DEFAULT && !is_known(other)).then_some(other));
        if let Some(missing) = missing {
            return Err(OpsError::Usage(format!(
                "`--agent {flag}`: there is no agent `{missing}`; this project has {}{}",
                known.join(", "),
                did_you_mean(nearest(missing, known.iter().copied().chain([DEFAULT])))
            )));
        }
        let names: Vec<String> = match name {
            Some(name) => vec![name.to_owned()],
            None if other == DEFAULT => stored.keys().chain(chosen.keys()).cloned().collect(),
            None => named_agents(opened).into_iter().collect(),
        };
        for name in names {
            let other = (other != DEFAULT && other != name).then(|| other.to_owned());
            chosen.insert(name, other);
        }
    }
    opened.agents = chosen;
    Ok(())
}

/// Returns the agents that stages name; all that are declared if no stage names one.
pub(crate) fn named_agents(opened: &OpenProject) -> BTreeSet<String> {
    let steps = opened.pipeline.stages.iter().flat_map(|stage| &stage.steps);
    let named: BTreeSet<String> = steps
        .filter_map(|step| Some(step.kind.agent()?.agent.clone()))
        .collect();
    if named.is_empty() {
        opened.pipeline.agents.keys().cloned().collect()
    } else {
        named
    }
}

/// Checks that every agent that the workspace has chosen is declared.
///
/// # Errors
/// When one is not; the message says how to reset the choice.
pub(crate) fn check_agents(opened: &OpenProject) -> Result<(), OpsError> {
    let declared = &opened.pipeline.agents;
    for (name, other) in &opened.settings.agents {
        if !declared.contains_key(name) || declared.contains_key(other) {
            continue;
        }
        let stored = opened.workspace.identity.agents.get(name);
        let when = stored.map_or_else(String::new, |chosen| {
            format!(" on {} by {}", day(chosen.at), chosen.by)
        });
        let reset = format!("{name}={DEFAULT}");
        let reset = opened.invocation.line(&["params", "--agent", &reset]);
        return Err(OpsError::Usage(format!(
            "`{other}` was chosen to answer for `{name}` in this workspace{when}, but milepost.toml declares no agent `{other}`\n\
             help: declare [agents.{other}], or let `{name}` answer itself with `{reset}`"
        )));
    }
    Ok(())
}

fn day(at: jiff::Timestamp) -> Date {
    at.to_zoned(jiff::tz::TimeZone::UTC).date()
}

/// Returns warnings and notes about stored values and agents that are in effect.
pub(crate) fn notes(opened: &OpenProject) -> Vec<StoredNote> {
    let identity = &opened.workspace.identity;
    let mut notes = Vec::new();
    for (name, value) in &identity.params {
        if opened.set.contains_key(name) || opened.unset.contains(name) {
            continue;
        }
        let Some(param) = opened.pipeline.param(name) else {
            let (name, value) = (name.clone(), value.clone());
            notes.push(StoredNote::UnusedParam { name, value });
            continue;
        };
        let Some(set) = identity.params_set.get(name) else {
            continue;
        };
        let now = declared(opened, name);
        if set.default != param.default && now != *value {
            notes.push(StoredNote::HidesDefault {
                name: name.clone(),
                value: value.clone(),
                default: now,
                at: set.at,
                by: set.by.clone(),
            });
        }
    }
    for (name, chosen) in &identity.agents {
        if !opened.pipeline.agents.contains_key(name) && !opened.agents.contains_key(name) {
            notes.push(StoredNote::UnusedAgent {
                name: name.clone(),
                agent: chosen.agent.clone(),
            });
        }
    }
    for name in &opened.unset {
        if !identity.params.contains_key(name) {
            let (name, value) = (name.clone(), declared(opened, name));
            notes.push(StoredNote::NotSet { name, value });
        }
    }
    notes
}

/// Returns the default of a parameter, with its template rendered for this workspace.
pub(crate) fn declared(opened: &OpenProject, name: &str) -> Value {
    let Some(param) = opened.pipeline.param(name) else {
        return Value::Null;
    };
    let scope = json!({ "workspace": opened.settings.workspace });
    default(param, &scope).unwrap_or_else(|_| param.default.clone())
}

/// Stores the options in a locked workspace: copies the files that `--set` names, then writes values and agents. Returns the
/// files that were replaced.
///
/// # Errors
/// When the disk fails.
pub(crate) fn keep(
    opened: &mut OpenProject,
    request: &Request,
    run_id: &str,
    today: Option<Date>,
) -> Result<Vec<KeptFile>, OpsError> {
    let replaced = import(opened, run_id)?;
    let default = |name: &String| {
        let param = opened.pipeline.param(name);
        param.map_or(Value::Null, |param| param.default.clone())
    };
    let set = opened.set.iter();
    let set = set.map(|(name, value)| (name.clone(), (value.clone(), default(name))));
    let user = ["USER", "LOGNAME"];
    let user = user.iter().find_map(|name| request.environment.get(*name));
    let changes = Changes {
        set: set.collect(),
        unset: opened.unset.clone(),
        agents: opened.agents.clone(),
        by: user.cloned().unwrap_or_else(|| "unknown".to_owned()),
        at: opened.clock.now(),
        today,
    };
    opened.workspace.update(&opened.disk, &changes)?;
    Ok(replaced)
}

/// Copies files that `--set` names into the workspace. Files in their place go to quarantine, because a person may have edited them,
/// and no record lists an earlier import. Returns the files in quarantine.
fn import(opened: &OpenProject, run_id: &str) -> Result<Vec<KeptFile>, OpsError> {
    let mut replaced = Vec::new();
    let (disk, layout) = (&opened.disk, &opened.workspace.layout);
    for (place, from) in &opened.imports {
        let to = opened.workspace.layout.at(place);
        // If the same file is there already, it keeps its times.
        let digest = |path| opened.cache.digest_of(path).ok();
        if to.is_file() && digest(&to).is_some_and(|there| digest(from) == Some(there)) {
            continue;
        }
        disk.create_dir_all(parent(&to))?;
        // In the folder of the inputs, a half-written file would match a stage's pattern after a crash.
        let beside = opened.workspace.layout.own().join(".import.tmp");
        disk.copy_file(from, &beside)?;
        disk.sync_file(&beside)?;
        if to.symlink_metadata().is_ok() {
            let sequence = quarantine::next_sequence(layout, run_id);
            let folder = quarantine::folder(run_id, sequence, "replaced");
            let why = format!("{place}: replaced by {} (`--set`)\n", from.display());
            quarantine::write_reason(disk, layout, &folder, &why)?;
            let aside = folder.with(place);
            quarantine::keep(disk, layout, place, &aside)?;
            let files = (place, &aside);
            let kept = KeptFile::new(("", ""), files, Removal::Replaced, Content::Untracked);
            replaced.push(kept);
        }
        disk.rename(&beside, &to)?;
        disk.sync_dir(parent(&to))?;
    }
    Ok(replaced)
}
