//! Opens a project and one of its workspaces for reading.

use super::error::OpsError;
use super::find::{OnDisk, find_project};
use super::open_project::OpenProject;
use super::programs;
use super::request::Request;
use super::stored_values::{apply_agents, apply_unset, check_agents};
use super::values::{apply_setting, compute_values};
use crate::run::agents::project_agents::{Agents, Purpose, agents};
use crate::run::context::Pace;
use jiff::tz::TimeZone;
use milepost_core::base::redact::{Redactor, names_key};
use milepost_core::decl::{self, Declarations, Warning};
use milepost_core::model::agent::Provider;
use milepost_core::model::step::{Part, carries_key};
use milepost_core::plan::settings::Settings;
use milepost_store::check::schemas::Schemas;
use milepost_store::store::disk::Disk;
use milepost_store::store::files::Files;
use milepost_store::store::statcache::StatCache;
use milepost_store::store::up_to_date::Observations;
use milepost_store::store::workspace::Workspace;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The name of the default workspace, in the project's folder.
pub(crate) const DEFAULT_WORKSPACE: &str = "workspace";

impl OpenProject {
    /// Checks the schemas, which reading the declarations does not: a run with nothing to do needs none.
    ///
    /// # Errors
    /// When one is invalid.
    pub(crate) fn check_schemas(&self) -> Result<(), OpsError> {
        let checked = Schemas::default().check(&self.pipeline.stages);
        checked.map_err(|problems| OpsError::Declarations(Box::new(problems)))
    }

    /// Returns the agents as a plan needs them: it can compute requests, and sends none.
    ///
    /// # Errors
    /// When the prices are wrong, or a chosen agent is not declared.
    pub(crate) fn planned_agents(&self, request: &Request) -> Result<Agents, OpsError> {
        check_agents(self)?;
        self.agents(Purpose::Plan, request)
    }

    /// Returns the agents, with their keys from the environment.
    ///
    /// # Errors
    /// When the prices are wrong.
    pub(crate) fn agents(&self, purpose: Purpose, request: &Request) -> Result<Agents, OpsError> {
        let made = agents(purpose, &self.pipeline, &self.project, &request.environment);
        made.map_err(|error| OpsError::World(error.to_string()))
    }
}

/// Returns the folder of the requested workspace.
pub(crate) fn workspace_of(request: &Request, project: &Path) -> PathBuf {
    match &request.workspace {
        Some(folder) if folder.is_absolute() => folder.clone(),
        Some(folder) => request.folder.join(folder),
        None => project.join(DEFAULT_WORKSPACE),
    }
}

/// Opens a project and a workspace for reading. Nothing is written.
///
/// # Errors
/// When there is no project, its declarations are wrong, the workspace cannot be read, or an option is wrong.
pub fn open(request: &Request) -> Result<OpenProject, OpsError> {
    with_values(open_without_values(request)?, request)
}

/// Opens a project and a workspace to show what is recorded. Mistakes in the declarations are reported to [`Request::warn`], and
/// [`OpenProject::problems`] has them; of a stage with one, only name, number and file are known.
///
/// # Errors
/// When there is no project, the workspace cannot be read, or an option is wrong.
pub(crate) fn open_recorded(request: &Request) -> Result<OpenProject, OpsError> {
    with_values(open_declared(request, true)?, request)
}

fn with_values(mut opened: OpenProject, request: &Request) -> Result<OpenProject, OpsError> {
    compute_values(&mut opened, request)?;
    collect_keys(&mut opened, request);
    opened.settings.programs = programs::observe(&opened);
    Ok(opened)
}

/// Collects the keys that are removed from everything shown and stored.
pub(crate) fn collect_keys(opened: &mut OpenProject, request: &Request) {
    opened.redactor = Redactor::new(keys(opened, &request.environment));
}

/// Opens a project and a workspace with their options, without computing the values of parameters.
pub(crate) fn open_without_values(request: &Request) -> Result<OpenProject, OpsError> {
    open_declared(request, false)
}

/// Opens a project and a workspace; mistakes in declarations are an error unless `is_recorded`.
fn open_declared(request: &Request, is_recorded: bool) -> Result<OpenProject, OpsError> {
    let project = find_project(&request.folder)?;
    let on_disk = OnDisk::new(&project);
    let wrong = |problems| OpsError::Declarations(Box::new(problems));
    let Declarations {
        mut pipeline,
        warnings,
        problems,
    } = decl::load_readable(&on_disk);
    match (&problems, &request.warn) {
        (Some(problems), _) if !is_recorded => return Err(wrong(problems.clone())),
        (Some(problems), Some(warn)) => warn(problems),
        _ => {}
    }
    if let (true, Some(folder)) = (pipeline.name.is_empty(), project.file_name()) {
        pipeline.name = folder.to_string_lossy().into_owned();
    }
    let (advice, warnings): (Vec<Warning>, Vec<Warning>) =
        warnings.into_iter().partition(|warning| warning.is_advice);
    let declared = on_disk.digest();
    let pipeline_is_shared = pipeline.is_shared;
    let workspace = Workspace::open(&workspace_of(request, &project), request.now())?;
    let progress = pipeline.stages.iter().map(|stage| stage.progress.clone());
    let files = Files::new(&project, workspace.layout.root())
        .with_redirects(workspace.layout.redirects())
        .without_progress(progress);
    let cache = StatCache::with_clock(&workspace.layout.stat_cache(), Box::new(request.ahead));
    let mut opened = OpenProject {
        invocation: request.invocation.clone(),
        folder: request.folder.clone(),
        project,
        warnings: warnings.iter().map(ToString::to_string).collect(),
        problems,
        advice: advice.iter().map(ToString::to_string).collect(),
        settings: Settings {
            version: request.version.clone(),
            ..Settings::default()
        },
        pipeline,
        files,
        workspace,
        cache,
        observations: Observations::off(),
        reported: request.reported.clone(),
        is_locked: false,
        redactor: Redactor::default(),
        declared,
        imports: BTreeMap::new(),
        set: BTreeMap::new(),
        unset: BTreeSet::new(),
        agents: BTreeMap::new(),
        disk: if pipeline_is_shared {
            request.disk.open_to_umask()
        } else {
            request.disk.clone()
        },
        clock: Arc::clone(&request.clock),
        epoch: request.epoch,
        environment: program_environment(&request.environment),
        own_environment: request.environment.clone(),
        program: request.program.clone(),
        pace: Pace::from_setting(request.environment.get("MILEPOST_PACE").map(String::as_str)),
    };
    if let Some(epoch) = request.epoch {
        opened.workspace.identity.today = epoch.to_zoned(TimeZone::UTC).date();
    }
    for setting in &request.values.set {
        apply_setting(&mut opened, request, setting)?;
    }
    for name in &request.values.unset {
        apply_unset(&mut opened, name)?;
    }
    apply_agents(&mut opened, request)?;
    Ok(opened)
}

/// Returns the variables that every program of a step gets, besides the declared ones. The locale is fixed, because it changes how
/// programs sort and count.
fn program_environment(all: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let names = ["PATH", "HOME"].map(str::to_owned).into_iter();
    let passed = names.filter_map(|name| all.get(&name).cloned().map(|value| (name, value)));
    let locale = ("LANG".to_owned(), "C.UTF-8".to_owned());
    passed.chain([locale]).collect()
}

/// Returns the keys: those of agents, those in headers that come from the environment, and the values of variables whose names end
/// like one of a key.
fn keys(opened: &OpenProject, environment: &BTreeMap<String, String>) -> BTreeSet<String> {
    let env = &opened.settings.env;
    let of_agents = opened.pipeline.agents.values();
    let of_agents = of_agents.filter_map(|agent| match &agent.provider {
        Provider::Api(api) => environment.get(&api.key_env),
        _ => None,
    });
    let steps = opened.pipeline.stages.iter().flat_map(|stage| &stage.steps);
    let parts = steps.flat_map(|step| step.kind.parts());
    let names = parts.flat_map(|(_, part)| match part {
        Part::Header(name, text) if carries_key(name) => text.template.names().iter().collect(),
        _ => Vec::new(),
    });
    let of_headers =
        names.filter_map(|name| env.get(name.strip_prefix("env.")?.split('.').next()?));
    let named = env.iter().filter(|(name, _)| names_key(name));
    let named = named.map(|(_, value)| value);
    of_agents.chain(of_headers).chain(named).cloned().collect()
}

/// Opens a file outside the workspace for appending, such as a debug log.
///
/// # Errors
/// When it cannot be opened.
pub fn append_file(path: &Path) -> Result<impl std::io::Write + Send + 'static, OpsError> {
    Ok(Disk::real().open_stream(path)?)
}
