//! Opens a project and one of its workspaces, for reading.

use super::choices::{check_agents, take_agents, take_unset};
use super::project::{OnDisk, find_project};
use super::values::{settle, take_setting};
use crate::run::agents::{Agents, Purpose, agents};
use crate::run::context::{Context, Pace};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use milepost_core::base::clock::Clock;
use milepost_core::base::digest::Digest;
use milepost_core::base::path::RelPath;
use milepost_core::base::redact::Redactor;
use milepost_core::decl::{self, Problems};
use milepost_core::model::agent::Provider;
use milepost_core::model::pipeline::Pipeline;
use milepost_core::model::state::State;
use milepost_core::model::step::{Part, carries_key};
use milepost_core::plan::machine::apply;
use milepost_core::plan::options::Values;
use milepost_core::plan::settings::Settings;
use milepost_store::store::checkpoint;
use milepost_store::store::clock::{Ahead, SystemClock};
use milepost_store::store::disk::Disk;
use milepost_store::store::files::Files;
use milepost_store::store::glance::Asked;
use milepost_store::store::journal;
use milepost_store::store::layout::Layout;
use milepost_store::store::manifest;
use milepost_store::store::statcache::StatCache;
use milepost_store::store::workspace::Workspace;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The file that makes a folder a project.
pub const PROJECT_FILE: &str = decl::PROJECT_FILE;

/// The workspace of a project when none is named.
pub const DEFAULT_WORKSPACE: &str = "workspace";

/// Which project and workspace, and what is set for them.
#[derive(Clone)]
pub struct Request {
    /// Where to look for the project: here, then in the folders above.
    pub folder: PathBuf,
    /// The workspace; by default `workspace` in the project.
    pub workspace: Option<PathBuf>,
    /// Values that replace declared ones.
    pub values: Values,
    /// What the user called, for the journal and the lock.
    pub command: String,
    /// The environment of this process.
    pub environment: BTreeMap<String, String>,
    /// The moment of `SOURCE_DATE_EPOCH`: files bear it in the place of the time of day.
    pub epoch: Option<Timestamp>,
    /// The one writer.
    pub disk: Disk,
    /// The time of day.
    pub clock: Arc<dyn Clock>,
    /// The time that the ages of files are told by.
    pub ahead: Ahead,
    /// The version of Milepost.
    pub version: String,
    /// Whether files that `set` names must lie in the project or the workspace: whoever asks is a program.
    pub confined: bool,
}

impl Request {
    /// The project at or above a folder, on this machine's disk and by its clock. In debug builds the variable
    /// `MILEPOST_STOP_AT` ends the process at that change of the disk, for crash tests, and `MILEPOST_AHEAD` makes files so many
    /// seconds older than they are, for tests of what is only done with files that were left alone.
    pub fn new(folder: PathBuf, environment: BTreeMap<String, String>) -> Self {
        let stop_at = environment.get("MILEPOST_STOP_AT").map(String::as_str);
        Self {
            folder,
            workspace: None,
            values: Values::default(),
            command: "milepost".to_owned(),
            epoch: None,
            disk: Disk::from_setting(stop_at),
            clock: Arc::new(SystemClock),
            ahead: Ahead::from_setting(environment.get("MILEPOST_AHEAD").map(String::as_str)),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            confined: false,
            environment,
        }
    }

    /// Returns the moment that files bear: that of `SOURCE_DATE_EPOCH`, else the time of day.
    pub fn now(&self) -> Timestamp {
        self.epoch.unwrap_or_else(|| self.clock.now())
    }
}

/// Opens a file outside the workspace that is written while the program runs, such as a debug log. What is in it stays.
///
/// # Errors
/// When it cannot be opened.
pub fn append_file(path: &Path) -> Result<impl std::io::Write + Send + 'static, OpsError> {
    Ok(Disk::real().open_append(path)?)
}

/// Why something could not be done. A failed step is no error but part of a report.
#[derive(Debug, thiserror::Error)]
pub enum OpsError {
    /// There is no project.
    #[error(
        "no `milepost.toml` in `{0}` or above: go to a project, name one with `-C DIR`, or make one with `milepost init`"
    )]
    NoProject(String),
    /// The declarations are wrong. They are shown with their places.
    #[error("the declarations are wrong")]
    Declarations(Box<Problems>),
    /// A flag says something that cannot be.
    #[error("{0}")]
    Usage(String),
    /// A path that a client names leaves project and workspace.
    #[error("{0}")]
    Outside(String),
    /// The workspace.
    #[error(transparent)]
    Workspace(#[from] milepost_store::store::workspace::WorkspaceError),
    /// The journal.
    #[error(transparent)]
    Journal(#[from] milepost_store::store::journal::JournalError),
    /// A manifest.
    #[error(transparent)]
    Manifest(#[from] milepost_store::store::manifest::ManifestError),
    /// Another run has the workspace.
    #[error(transparent)]
    Lock(#[from] milepost_store::store::lock::LockError),
    /// A lease.
    #[error(transparent)]
    Lease(#[from] milepost_store::store::leases::LeaseError),
    /// The disk.
    #[error(transparent)]
    Disk(#[from] milepost_store::store::disk::DiskError),
    /// A run could not go on.
    #[error(transparent)]
    Run(#[from] crate::run::engine::RunError),
    /// Outputs that cannot be accepted, with why.
    #[error("nothing was accepted:\n  {}", .0.join("\n  "))]
    NotAccepted(Vec<String>),
    /// Accepted content that could not be stored.
    #[error(transparent)]
    NotStored(#[from] milepost_store::store::accepted::AcceptedError),
    /// A file that could not be looked at.
    #[error("{0}")]
    World(String),
}

/// A project and a workspace, open for reading.
pub struct Opened {
    /// The folder in which the program was called.
    pub folder: PathBuf,
    /// The project's folder.
    pub project: PathBuf,
    /// The declarations.
    pub pipeline: Pipeline,
    /// What is allowed and perhaps not meant.
    pub warnings: Vec<String>,
    /// The values that a run would go by.
    pub settings: Settings,
    /// Reading, confined.
    pub files: Files,
    /// The workspace.
    pub workspace: Workspace,
    /// Digests of files that have not changed.
    pub cache: StatCache,
    /// Notes of what is asked of the disk.
    pub asked: Asked,
    /// Takes keys out of what is shown and kept.
    pub redactor: Redactor,
    /// The digest of the declarations as they were read.
    pub declared: Digest,
    /// Files from outside that `--set` names, by where they go.
    pub imports: BTreeMap<RelPath, PathBuf>,
    /// Parameters that `--set` gives.
    pub set: BTreeMap<String, Value>,
    /// Parameters that `--unset` names.
    pub unset: BTreeSet<String>,
    /// Agents that `--agent` names: who answers in their place, or `None` for they themselves.
    pub agents: BTreeMap<String, Option<String>>,
    /// The one writer.
    pub disk: Disk,
    /// The time of day.
    pub clock: Arc<dyn Clock>,
    /// The moment of `SOURCE_DATE_EPOCH`.
    pub epoch: Option<Timestamp>,
    /// The variables that every program gets.
    pub environment: BTreeMap<String, String>,
    /// When provider batches are submitted and polled.
    pub pace: Pace,
}

impl Opened {
    /// What a run and a plan work with.
    pub fn context(&self) -> Context<'_> {
        Context {
            pipeline: &self.pipeline,
            settings: &self.settings,
            files: &self.files,
            layout: &self.workspace.layout,
            disk: &self.disk,
            clock: &*self.clock,
            epoch: self.epoch,
            cache: &self.cache,
            asked: &self.asked,
            redactor: &self.redactor,
            environment: &self.environment,
            pace: self.pace,
            imports: &self.imports,
        }
    }

    /// The agents as a plan knows them: what they would be asked can be told, and nobody is asked.
    ///
    /// # Errors
    /// When the prices are wrong, or the workspace has chosen an agent that is not declared.
    pub fn planned_agents(&self, request: &Request) -> Result<Agents, OpsError> {
        check_agents(self)?;
        let made = agents(
            Purpose::Plan,
            &self.pipeline,
            &self.project,
            &request.environment,
        );
        made.map_err(OpsError::World)
    }
}

/// The folder of the workspace that is asked for.
pub(super) fn workspace_of(request: &Request, project: &Path) -> PathBuf {
    match &request.workspace {
        Some(folder) if folder.is_absolute() => folder.clone(),
        Some(folder) => request.folder.join(folder),
        None => project.join(DEFAULT_WORKSPACE),
    }
}

/// Opens a project and a workspace. Nothing is written.
///
/// # Errors
/// When there is no project, its declarations are wrong, the workspace cannot be read, or a flag says something impossible.
pub fn open(request: &Request) -> Result<Opened, OpsError> {
    let mut opened = open_unsettled(request)?;
    settle(&mut opened, request)?;
    know_keys(&mut opened, request);
    Ok(opened)
}

/// Learns the keys that are taken out of what is shown and kept.
pub(super) fn know_keys(opened: &mut Opened, request: &Request) {
    opened.redactor = Redactor::new(keys(opened, &request.environment));
}

/// Opens a project and a workspace, and takes the flags, without the values that a run would go by.
pub(super) fn open_unsettled(request: &Request) -> Result<Opened, OpsError> {
    let project = find_project(&request.folder)?;
    let on_disk = OnDisk::new(&project);
    let (pipeline, warnings) =
        decl::load(&on_disk).map_err(|problems| OpsError::Declarations(Box::new(problems)))?;
    let declared = on_disk.digest();
    let workspace = Workspace::open(&workspace_of(request, &project), request.now())?;
    let files = Files::new(&project, workspace.layout.root());
    let cache = StatCache::with_clock(&workspace.layout.stat_cache(), Box::new(request.ahead));
    let mut opened = Opened {
        folder: request.folder.clone(),
        project,
        warnings: warnings.iter().map(ToString::to_string).collect(),
        settings: Settings {
            params: Map::new(),
            env: BTreeMap::new(),
            workspace: Map::new(),
            agents: BTreeMap::new(),
            version: request.version.clone(),
            overrides: Vec::new(),
        },
        pipeline,
        files,
        workspace,
        cache,
        asked: Asked::off(),
        redactor: Redactor::default(),
        declared,
        imports: BTreeMap::new(),
        set: BTreeMap::new(),
        unset: BTreeSet::new(),
        agents: BTreeMap::new(),
        disk: request.disk.clone(),
        clock: Arc::clone(&request.clock),
        epoch: request.epoch,
        environment: program_environment(&request.environment),
        pace: Pace::from_setting(request.environment.get("MILEPOST_PACE").map(String::as_str)),
    };
    if let Some(epoch) = request.epoch {
        opened.workspace.identity.today = epoch.to_zoned(TimeZone::UTC).date();
    }
    for setting in &request.values.set {
        take_setting(&mut opened, request, setting)?;
    }
    for name in &request.values.unset {
        take_unset(&mut opened, name)?;
    }
    take_agents(&mut opened, request)?;
    Ok(opened)
}

/// Returns the variables that every program of a step gets, besides those that it declares.
fn program_environment(all: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    ["PATH", "HOME", "LANG"]
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), all.get(*name)?.clone())))
        .collect()
}

/// The keys that declarations name: those of agents, those that headers take from the environment, and variables whose names say
/// that they are one.
fn keys(opened: &Opened, environment: &BTreeMap<String, String>) -> BTreeSet<String> {
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
    let is_key = |name: &str| {
        let endings = ["API_KEY", "TOKEN", "SECRET", "PASSWORD"];
        endings.iter().any(|ending| name.ends_with(ending))
    };
    let named = env.iter().filter(|(name, _)| is_key(name));
    let named = named.map(|(_, value)| value);
    of_agents.chain(of_headers).chain(named).cloned().collect()
}

/// What is known of a workspace: its manifests, and the journal after them. Nothing is written.
///
/// # Errors
/// When a manifest or the journal is damaged.
pub fn state(layout: &Layout) -> Result<State, OpsError> {
    let (records, _) = journal::read_last_segment(layout)?;
    replay(layout, &records)
}

/// The manifests with these records of the journal's last segment after them.
///
/// # Errors
/// When a manifest is damaged, or the records cannot follow.
pub fn replay(
    layout: &Layout,
    records: &[milepost_core::model::event::Record],
) -> Result<State, OpsError> {
    let mut state = State {
        stages: manifest::read_all(layout)?,
        ..State::default()
    };
    // Whether a stage is complete is kept in its checkpoint only. One that cannot be read vouches for nothing.
    for (name, stage) in &mut state.stages {
        let found = checkpoint::read(layout, stage.number).ok().flatten();
        stage.status = found
            .filter(|found| found.checkpoint.stage == *name)
            .map(|found| found.checkpoint.status);
    }
    for record in records {
        apply(&mut state, &record.run_id, &record.event)
            .map_err(crate::run::engine::RunError::from)?;
    }
    Ok(state)
}
