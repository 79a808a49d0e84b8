//! The values of a run: of `--set` and `--agent`, stored in the workspace, or declared.

use crate::ops::project::client_path::client_path;
use crate::ops::project::error::OpsError;
use crate::ops::project::numeric_params;
use crate::ops::project::open_project::OpenProject;
use crate::ops::project::request::Request;
use jiff::tz::TimeZone;
use milepost_core::base::path::{FilePath, RelPath, Root};
use milepost_core::base::reserved::{OWN, reserved};
use milepost_core::expr::place::nearest;
use milepost_core::expr::template::Template;
use milepost_core::model::agent::Provider;
use milepost_core::model::outcome::OutcomeKind;
use milepost_core::model::param::{Param, shown_setting};
use milepost_core::plan::selection::did_you_mean;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Applies one `--set NAME=VALUE`.
pub(crate) fn apply_setting(
    opened: &mut OpenProject,
    request: &Request,
    setting: &str,
) -> Result<(), OpsError> {
    let (name, text) = name_and_value(setting)?;
    let Some(param) = opened.pipeline.param(name) else {
        if name == "today" {
            return set_today(opened, text);
        }
        return Err(unknown(name, &opened.pipeline.params));
    };
    let value = match &param.file {
        Some(file) => {
            let folder = file.path.parent();
            let (place, import) = file_setting(
                opened,
                request,
                name,
                (folder.as_ref(), file.base.as_deref()),
                text,
            )?;
            if let Some(import) = import {
                opened.imports.insert(place.clone(), import);
            }
            json!(place.as_str())
        }
        None => value_of(param, setting, text)?,
    };
    opened.set.insert(name.to_owned(), value);
    Ok(())
}

/// Splits `NAME=VALUE`.
pub(crate) fn name_and_value(setting: &str) -> Result<(&str, &str), OpsError> {
    let wrong = || OpsError::Usage(format!("`--set {setting}`: write `--set NAME=VALUE`"));
    setting.split_once('=').ok_or_else(wrong)
}

/// Returns the value of a parameter that is not a file, from its text in a setting.
pub(crate) fn value_of(param: &Param, setting: &str, text: &str) -> Result<Value, OpsError> {
    let parsed = param.parse(text);
    parsed.map_err(|expected| OpsError::Usage(format!("--set {setting}: {expected}")))
}

/// Returns the error of a setting whose parameter is not declared.
pub(crate) fn unknown(name: &str, params: &[Param]) -> OpsError {
    let known: Vec<&str> = params.iter().map(|param| param.name.as_str()).collect();
    let near = did_you_mean(nearest(name, known.iter().copied()));
    let known = match known.as_slice() {
        [] => "this project declares none".to_owned(),
        known => format!("this project has {}", known.join(", ")),
    };
    OpsError::Usage(format!(
        "`--set {name}`: there is no parameter `{name}`; {known}{near}"
    ))
}

/// Sets `workspace.today`, if no parameter `today` is declared.
fn set_today(opened: &mut OpenProject, text: &str) -> Result<(), OpsError> {
    let date = text.parse().map_err(|_| {
        OpsError::Usage(format!(
            "--set today={text}: expected a date such as 2026-11-21"
        ))
    })?;
    opened.workspace.identity.today = date;
    opened.warnings.push(
        "`--set today` is deprecated in a project without a parameter `today`: it sets `workspace.today` only. Declare `today = { type = \"date\", default = \"today\" }` in `[params]` and mention `params.today`; for the dates in files, set SOURCE_DATE_EPOCH".to_owned(),
    );
    Ok(())
}

/// Returns the path in the workspace for a file that `--set` names, and its present path if it must be copied.
fn file_setting(
    opened: &OpenProject,
    request: &Request,
    name: &str,
    (folder, base): (Option<&RelPath>, Option<&str>),
    text: &str,
) -> Result<(RelPath, Option<PathBuf>), OpsError> {
    let wrong = |why: String| OpsError::Usage(format!("`--set {name}={text}`: {why}"));
    if let Ok(path) = RelPath::parse(text)
        && opened
            .files
            .exists(&FilePath::workspace(path.clone()))
            .unwrap_or(false)
    {
        if let Some(owner) = reserved(Root::Workspace, &path) {
            return Err(wrong(format!("it is {owner}, which stages do not read")));
        }
        return Ok((path, None));
    }
    let root = match base {
        Some(base) => opened
            .project
            .join(base.strip_prefix("project:").unwrap_or(base)),
        None if request.confined => confined(opened, text)?,
        None => request.folder.clone(),
    };
    if request.confined && base.is_some() {
        RelPath::parse(text).map_err(|error| OpsError::Outside(error.to_string()))?;
    }
    let from = root.join(text).canonicalize().map_err(|error| {
        let inside = opened.workspace.layout.root().join(text);
        let link = [inside, root.join(text)]
            .iter()
            .find_map(|path| path.read_link().ok());
        wrong(match (error.kind(), link) {
            (std::io::ErrorKind::NotFound, Some(target)) => format!(
                "it is a symbolic link to `{}`, which does not exist",
                target.display()
            ),
            (std::io::ErrorKind::NotFound, None) => format!(
                "there is no such file, neither in the workspace nor in `{}`",
                root.display()
            ),
            _ => error.to_string(),
        })
    })?;
    if base.is_some()
        && !from.starts_with(
            root.canonicalize()
                .map_err(|error| wrong(error.to_string()))?,
        )
    {
        let code = opened.pipeline.errors.get(OutcomeKind::Path.name());
        let code = code.map_or(String::new(), |code| format!("{code}: "));
        return Err(wrong(format!("{code}it is outside `{}`", root.display())));
    }
    if !from.is_file() {
        return Err(wrong("expected a file".to_owned()));
    }
    if from.components().any(|part| part.as_os_str() == OWN) {
        return Err(wrong(format!(
            "it is in `{OWN}`, Milepost's own folder, which stages do not read"
        )));
    }
    let file_name = from
        .file_name()
        .and_then(|name| name.to_str())
        .ok_or_else(|| wrong("its name is not UTF-8".to_owned()))?;
    let below = |name: &str| {
        let place = match folder {
            Some(folder) => folder.join(name),
            None => RelPath::parse(name),
        };
        place.map_err(|error| wrong(error.to_string()))
    };
    let place = below(file_name)?;
    if has_other(opened, name, &place) {
        return Ok((below(&format!("{name}/{file_name}"))?, Some(from)));
    }
    Ok((place, Some(from)))
}

/// Returns true if a path is the file of another parameter: its value, or its default.
fn has_other(opened: &OpenProject, name: &str, place: &RelPath) -> bool {
    let lower = place.as_str().to_lowercase();
    let mut others = opened
        .pipeline
        .params
        .iter()
        .filter(|other| other.name != name);
    others.any(|other| {
        let Some(file) = &other.file else {
            return false;
        };
        let stored = &opened.workspace.identity.params;
        let stored = stored
            .get(&other.name)
            .filter(|_| !opened.unset.contains(&other.name));
        let value = opened
            .set
            .get(&other.name)
            .or(stored)
            .and_then(Value::as_str);
        let is_it = |path: &str| path.to_lowercase() == lower;
        is_it(file.path.as_str()) || value.is_some_and(is_it)
    })
}

/// Returns the folder, project or workspace, that contains a file named by a program.
fn confined(opened: &OpenProject, text: &str) -> Result<PathBuf, OpsError> {
    let file = client_path(opened, text)?;
    if Path::new(text).is_absolute() {
        return Ok(opened.files.folder(file.root).to_owned());
    }
    // A file that is not in the workspace may be in the project.
    let file = FilePath::project(file.path);
    let found = opened.files.resolve(&file);
    found.map_err(|error| OpsError::Outside(error.to_string()))?;
    Ok(opened.files.folder(Root::Project).to_owned())
}

/// Checks that the values of all variables that the project uses can be read.
///
/// # Errors
/// If one is not UTF-8: the default would silently replace it.
fn check_utf8(opened: &OpenProject, request: &Request) -> Result<(), OpsError> {
    let agents = opened.pipeline.agents.values();
    let keys = agents.filter_map(|agent| agent.key_variable());
    let declared = opened.pipeline.env.keys().map(String::as_str);
    let mut used = declared.chain(keys).chain(["PATH", "HOME"]);
    match used.find(|name| request.not_utf8.contains(*name)) {
        Some(name) => Err(OpsError::Usage(format!(
            "the environment variable `{name}`: expected UTF-8, found other bytes: set it to a value in UTF-8, or unset it"
        ))),
        None => Ok(()),
    }
}

/// Computes the values: defaults, then stored values, then `--set`.
pub(crate) fn compute_values(opened: &mut OpenProject, request: &Request) -> Result<(), OpsError> {
    let identity = &opened.workspace.identity;
    let today = request.now().to_zoned(TimeZone::UTC).date();
    let workspace: Map<String, Value> = [
        ("name", identity.name.clone()),
        ("slug", identity.slug.clone()),
        ("today", identity.today.to_string()),
        ("created", identity.created_text()),
        ("session_id", identity.session_id.clone()),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), json!(value)))
    .collect();
    let scope = json!({ "workspace": workspace });
    for param in &opened.pipeline.params {
        let set = opened.set.get(&param.name);
        let is_kept = !opened.unset.contains(&param.name);
        let kept = identity.params.get(&param.name).filter(|_| is_kept);
        let value = match (set, kept) {
            (Some(value), _) => value.clone(),
            (None, Some(value)) => stored(param, value)?,
            (None, None) => default(param, &scope)?,
        };
        let value = param.evaluated(value, today);
        opened.settings.params.insert(param.name.clone(), value);
    }
    check_utf8(opened, request)?;
    for (name, default) in &opened.pipeline.env {
        let value = request.environment.get(name).unwrap_or(default).clone();
        opened.settings.env.insert(name.clone(), value);
    }
    opened.settings.agents = answering(opened);
    opened.settings.workspace = workspace;
    addresses(opened)?;
    numeric_params::check(opened)
}

/// Returns the agents that replace others: options override stored choices.
pub(crate) fn answering(opened: &OpenProject) -> BTreeMap<String, String> {
    let stored = opened.workspace.identity.agents.iter();
    let stored = stored.map(|(name, chosen)| (name.clone(), Some(chosen.agent.clone())));
    let mut all: BTreeMap<String, Option<String>> = stored.collect();
    all.extend(opened.agents.clone());
    all.into_iter()
        .filter_map(|(name, other)| Some((name, other?)))
        .collect()
}

/// Renders the addresses of agents.
fn addresses(opened: &mut OpenProject) -> Result<(), OpsError> {
    let scope = Value::Object(opened.settings.scope(&opened.pipeline));
    for agent in opened.pipeline.agents.values_mut() {
        let Provider::Api(api) = &mut agent.provider else {
            continue;
        };
        if let Some(address) = &api.address {
            let given = address.template.render_url(&scope).map_err(|error| {
                OpsError::Usage(format!("`base_url` of agent `{}`: {error}", agent.name))
            })?;
            let given = given.trim();
            let is_url = given.starts_with("http://") || given.starts_with("https://");
            if !given.is_empty() && !is_url {
                return Err(OpsError::Usage(format!(
                    "`base_url` of agent `{}` is `{given}`: expected a URL such as https://api.example.org",
                    agent.name
                )));
            }
            api.base_url = (!given.is_empty()).then(|| given.to_owned());
        }
    }
    Ok(())
}

/// Returns a stored value, if the parameter still accepts it.
fn stored(param: &Param, value: &Value) -> Result<Value, OpsError> {
    let checked = param.check(value);
    checked.map(|()| value.clone()).map_err(|expected| {
        OpsError::Usage(format!(
            "this workspace stores {}, which the parameter no longer accepts: {expected}\nhelp: set another value with `--set {1}=VALUE`, or use the default with `--unset {1}`",
            shown_setting(&param.name, value),
            param.name
        ))
    })
}

/// Returns the declared default. A template is rendered, and the result checked.
///
/// # Errors
/// When the template fails, or the parameter does not accept its result.
pub(crate) fn default(param: &Param, scope: &Value) -> Result<Value, OpsError> {
    match &param.default {
        Value::String(text) if param.has_template() => {
            let template = Template::compile(&param.name, text)
                .map_err(|error| OpsError::Usage(error.to_string()))?;
            let value = template
                .render_value(scope)
                .map_err(|error| OpsError::Usage(error.to_string()))?;
            match param.check(&value) {
                Err(expected) if value.is_string() => Err(OpsError::Usage(format!(
                    "the default of parameter `{}` is {value} here: {expected}",
                    param.name
                ))),
                _ => Ok(value),
            }
        }
        other => Ok(other.clone()),
    }
}
