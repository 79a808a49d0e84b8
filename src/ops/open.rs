//! Opens a project and one of its workspaces, for reading.

use crate::base::clock::Clock;
use crate::base::digest::{Digest, Hasher};
use crate::base::glob::is_pattern;
use crate::base::path::{FilePath, RelPath};
use crate::decl::{self, Problems, ProjectFiles, Warning};
use crate::expr::place::nearest;
use crate::expr::template::{Template, is_template};
use crate::model::pipeline::{Param, Pipeline};
use crate::model::state::State;
use crate::plan::machine::apply;
use crate::plan::selection::did_you_mean;
use crate::plan::settings::Settings;
use crate::run::context::Context;
use crate::store::checkpoint;
use crate::store::clock::{Ahead, SystemClock};
use crate::store::disk::Disk;
use crate::store::files::{FileError, Files};
use crate::store::glance::Asked;
use crate::store::journal;
use crate::store::layout::Layout;
use crate::store::manifest;
use crate::store::statcache::StatCache;
use crate::store::workspace::Workspace;
use jiff::civil::Date;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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
    /// `--set NAME=VALUE`.
    pub set: Vec<String>,
    /// `--agent NAME=OTHER`.
    pub agents: Vec<String>,
    /// The environment of this process.
    pub environment: BTreeMap<String, String>,
    /// The day for workspaces that are made, from `SOURCE_DATE_EPOCH`.
    pub today: Option<Date>,
    /// The one writer.
    pub disk: Disk,
    /// The time of day.
    pub clock: Arc<dyn Clock>,
    /// The time that the ages of files are told by.
    pub ahead: Ahead,
    /// The version of Milepost.
    pub version: String,
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
            set: Vec::new(),
            agents: Vec::new(),
            today: None,
            disk: Disk::from_setting(stop_at),
            clock: Arc::new(SystemClock),
            ahead: Ahead::from_setting(environment.get("MILEPOST_AHEAD").map(String::as_str)),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            environment,
        }
    }
}

/// A file outside the workspace that is written whole while the program goes on, such as a debug log.
///
/// # Errors
/// When it cannot be made.
pub fn create_file(path: &Path) -> Result<impl std::io::Write + Send + 'static, OpsError> {
    Ok(Disk::real().create(path)?)
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
    /// The workspace.
    #[error(transparent)]
    Workspace(#[from] crate::store::workspace::WorkspaceError),
    /// The journal.
    #[error(transparent)]
    Journal(#[from] crate::store::journal::JournalError),
    /// A manifest.
    #[error(transparent)]
    Manifest(#[from] crate::store::manifest::ManifestError),
    /// Another run has the workspace.
    #[error(transparent)]
    Lock(#[from] crate::store::lock::LockError),
    /// The disk.
    #[error(transparent)]
    Disk(#[from] crate::store::disk::DiskError),
    /// A run could not go on.
    #[error(transparent)]
    Run(#[from] crate::run::engine::RunError),
    /// Outputs that cannot be accepted, with why.
    #[error("nothing was accepted:\n  {}", .0.join("\n  "))]
    NotAccepted(Vec<String>),
    /// A file that could not be looked at.
    #[error("{0}")]
    World(String),
}

/// A project and a workspace, open for reading.
pub struct Opened {
    /// The project's folder.
    pub project: PathBuf,
    /// The declarations.
    pub pipeline: Pipeline,
    /// What is allowed and perhaps not meant.
    pub warnings: Vec<Warning>,
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
    /// The digest of the declarations as they were read.
    pub declared: Digest,
    /// Files from outside that `--set` names, by where they go.
    pub imports: BTreeMap<RelPath, PathBuf>,
    /// Parameters that `--set` gives.
    pub set: BTreeMap<String, Value>,
    /// The one writer.
    pub disk: Disk,
    /// The time of day.
    pub clock: Arc<dyn Clock>,
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
            cache: &self.cache,
            asked: &self.asked,
            imports: &self.imports,
        }
    }
}

/// The project's files, for the declarations' reader.
pub struct OnDisk {
    root: PathBuf,
    files: Files,
    read: Mutex<Hasher>,
}

impl OnDisk {
    /// The files of the project in a folder.
    pub fn new(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            files: Files::new(root, root),
            read: Mutex::default(),
        }
    }

    /// The digest of everything that was read and listed, in order.
    pub fn digest(&self) -> Digest {
        self.read().clone().finish()
    }

    fn read(&self) -> MutexGuard<'_, Hasher> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ProjectFiles for OnDisk {
    fn read(&self, path: &RelPath) -> Option<Result<Vec<u8>, String>> {
        let source = match self.files.source(&FilePath::project(path.clone())) {
            Ok(source) => source,
            Err(error) => {
                self.read().update(format!("read {path} {error}\n"));
                return match error {
                    FileError::Missing { .. } => None,
                    error => Some(Err(error.to_string())),
                };
            }
        };
        let found = std::fs::read(source.path()).map_err(|error| error.to_string());
        let said = match &found {
            Ok(bytes) => format!("read {path} {}\n", Digest::of(bytes)),
            Err(error) => format!("read {path} {error}\n"),
        };
        self.read().update(said);
        Some(found)
    }

    fn list(&self, folder: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.root.join(folder));
        let names = entries
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok());
        let mut names: Vec<String> = names.filter(|name| !name.starts_with('.')).collect();
        names.sort();
        self.read()
            .update(format!("list {folder} {}\n", json!(names)));
        names
    }
}

/// The folder with `milepost.toml`: this one or one above.
///
/// # Errors
/// When there is none.
pub fn find_project(folder: &Path) -> Result<PathBuf, OpsError> {
    let shown = folder.display();
    let from = folder.canonicalize().map_err(|error| {
        OpsError::Usage(match error.kind() {
            std::io::ErrorKind::NotFound => format!("there is no folder `{shown}`"),
            _ => format!("`{shown}` cannot be opened: {error}"),
        })
    })?;
    let found = from
        .ancestors()
        .find(|folder| folder.join(PROJECT_FILE).is_file());
    found
        .map(Path::to_owned)
        .ok_or_else(|| OpsError::NoProject(folder.display().to_string()))
}

/// Reads the declarations of the project in a folder.
///
/// # Errors
/// Everything that is wrong with them.
pub fn declarations(project: &Path) -> Result<(Pipeline, Vec<Warning>), OpsError> {
    decl::load(&OnDisk::new(project)).map_err(|problems| OpsError::Declarations(Box::new(problems)))
}

/// Opens a project and a workspace. Nothing is written.
///
/// # Errors
/// When there is no project, its declarations are wrong, the workspace cannot be read, or a flag says something impossible.
pub fn open(request: &Request) -> Result<Opened, OpsError> {
    let project = find_project(&request.folder)?;
    let on_disk = OnDisk::new(&project);
    let (pipeline, warnings) =
        decl::load(&on_disk).map_err(|problems| OpsError::Declarations(Box::new(problems)))?;
    let declared = on_disk.digest();
    let folder = match &request.workspace {
        Some(folder) if folder.is_absolute() => folder.clone(),
        Some(folder) => request.folder.join(folder),
        None => project.join(DEFAULT_WORKSPACE),
    };
    let workspace = Workspace::open(&folder, request.clock.now(), request.today)?;
    let files = Files::new(&project, workspace.layout.root());
    let cache = StatCache::with_clock(&workspace.layout.stat_cache(), Box::new(request.ahead));
    let mut opened = Opened {
        project,
        warnings,
        settings: Settings {
            params: Map::new(),
            env: BTreeMap::new(),
            workspace: Map::new(),
            agents: BTreeMap::new(),
            version: request.version.clone(),
        },
        pipeline,
        files,
        workspace,
        cache,
        asked: Asked::off(),
        declared,
        imports: BTreeMap::new(),
        set: BTreeMap::new(),
        disk: request.disk.clone(),
        clock: Arc::clone(&request.clock),
    };
    if let Some(today) = request.today {
        opened.workspace.identity.today = today;
    }
    for setting in &request.set {
        take_setting(&mut opened, request, setting)?;
    }
    settle(&mut opened, request)?;
    Ok(opened)
}

/// One `--set NAME=VALUE`.
fn take_setting(opened: &mut Opened, request: &Request, setting: &str) -> Result<(), OpsError> {
    let (name, text) = setting
        .split_once('=')
        .ok_or_else(|| OpsError::Usage(format!("`--set {setting}`: write `--set NAME=VALUE`")))?;
    if name == "today" {
        let date: Date = text.parse().map_err(|_| {
            OpsError::Usage(format!(
                "`--set today={text}`: write a date such as 2026-11-21"
            ))
        })?;
        opened.workspace.identity.today = date;
        return Ok(());
    }
    let Some(param) = opened.pipeline.param(name) else {
        let params = opened.pipeline.params.iter();
        let known: Vec<&str> = params.map(|param| param.name.as_str()).collect();
        let near = did_you_mean(nearest(name, known.iter().copied()));
        let known = match known.as_slice() {
            [] => "this project declares none".to_owned(),
            known => format!("this project has {}", known.join(", ")),
        };
        return Err(OpsError::Usage(format!(
            "`--set {name}`: there is no parameter `{name}`; {known}{near}"
        )));
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
        None => typed(param, text)?,
    };
    opened.set.insert(name.to_owned(), value);
    Ok(())
}

/// Where a file that `--set` names goes in the workspace, and where it is when it has to be copied there.
fn file_setting(
    opened: &Opened,
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
        if is_pattern(path.as_str()) {
            return Err(wrong(
                "`*`, `?`, `[` and `{` make a path a pattern for many files: rename the file"
                    .to_owned(),
            ));
        }
        return Ok((path, None));
    }
    let root = match base {
        Some(base) => opened
            .project
            .join(base.strip_prefix("project:").unwrap_or(base)),
        None => request.folder.clone(),
    };
    let from = root.join(text).canonicalize().map_err(|error| {
        let inside = opened.workspace.layout.root().join(text);
        let link = [inside, root.join(text)]
            .iter()
            .find_map(|path| path.read_link().ok());
        wrong(match (error.kind(), link) {
            (std::io::ErrorKind::NotFound, Some(target)) => format!(
                "it is a symbolic link to `{}`, where nothing is",
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
        return Err(wrong(format!("it lies outside `{}`", root.display())));
    }
    if !from.is_file() {
        return Err(wrong("a file was expected".to_owned()));
    }
    let name = from
        .file_name()
        .and_then(|name| name.to_str())
        .ok_or_else(|| wrong("its name is no UTF-8".to_owned()))?;
    // In a path these signs make a pattern for many files.
    let name = name.replace(['*', '?', '[', ']', '{', '}'], "_");
    let place = match folder {
        Some(folder) => folder.join(&name),
        None => RelPath::parse(&name),
    };
    Ok((place.map_err(|error| wrong(error.to_string()))?, Some(from)))
}

/// A value of the same type as the parameter's default.
fn typed(param: &Param, text: &str) -> Result<Value, OpsError> {
    let wrong = |kind: &str| {
        OpsError::Usage(format!(
            "`--set {}={text}`: {kind} was expected, as its default is",
            param.name
        ))
    };
    match &param.default {
        Value::Bool(_) => text
            .parse()
            .map(Value::Bool)
            .map_err(|_| wrong("true or false")),
        Value::Number(default) => match serde_json::from_str(text) {
            Ok(Value::Number(number)) if number.is_i64() || number.is_u64() || default.is_f64() => {
                Ok(Value::Number(number))
            }
            _ => Err(wrong(if default.is_f64() {
                "a number"
            } else {
                "a whole number"
            })),
        },
        Value::Array(_) => match serde_json::from_str(text) {
            Ok(list @ Value::Array(_)) => Ok(list),
            _ => Ok(text.split(',').map(|part| json!(part.trim())).collect()),
        },
        Value::Object(_) => match serde_json::from_str(text) {
            Ok(object @ Value::Object(_)) => Ok(object),
            _ => Err(wrong("a JSON object")),
        },
        _ => Ok(json!(text)),
    }
}

/// The values of a run: defaults, then what the workspace keeps, then what is set.
fn settle(opened: &mut Opened, request: &Request) -> Result<(), OpsError> {
    let identity = &opened.workspace.identity;
    let workspace: Map<String, Value> = [
        ("name", identity.name.clone()),
        ("slug", identity.slug.clone()),
        ("today", identity.today.to_string()),
        ("session_id", identity.session_id.clone()),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), json!(value)))
    .collect();
    let scope = json!({ "workspace": workspace });
    for param in &opened.pipeline.params {
        let kept = opened
            .set
            .get(&param.name)
            .or_else(|| identity.params.get(&param.name));
        let value = match kept {
            Some(value) => value.clone(),
            None => default(param, &scope)?,
        };
        opened.settings.params.insert(param.name.clone(), value);
    }
    for (name, default) in &opened.pipeline.env {
        let value = request.environment.get(name).unwrap_or(default).clone();
        opened.settings.env.insert(name.clone(), value);
    }
    for agent in &request.agents {
        if opened.pipeline.agents.is_empty() {
            let message = format!("`--agent {agent}`: this project declares no agents");
            return Err(OpsError::Usage(message));
        }
        let (name, other) = match agent.split_once('=') {
            Some((name, other)) => (Some(name), other),
            None => (None, agent.as_str()),
        };
        for name in name.into_iter().chain(
            name.is_none()
                .then_some(())
                .into_iter()
                .flat_map(|()| opened.pipeline.agents.keys().map(String::as_str)),
        ) {
            if let Some(missing) = [name, other]
                .into_iter()
                .find(|name| !opened.pipeline.agents.contains_key(*name))
            {
                let known: Vec<&str> = opened.pipeline.agents.keys().map(String::as_str).collect();
                let message = format!(
                    "`--agent {agent}`: there is no agent `{missing}`; this project has {}{}",
                    known.join(", "),
                    did_you_mean(nearest(missing, known.iter().copied()))
                );
                return Err(OpsError::Usage(message));
            }
            opened
                .settings
                .agents
                .insert(name.to_owned(), other.to_owned());
        }
    }
    opened.settings.workspace = workspace;
    Ok(())
}

fn default(param: &Param, scope: &Value) -> Result<Value, OpsError> {
    match &param.default {
        Value::String(text) if is_template(text) => {
            let template = Template::compile(&param.name, text)
                .map_err(|error| OpsError::Usage(error.to_string()))?;
            template
                .render_value(scope)
                .map_err(|error| OpsError::Usage(error.to_string()))
        }
        other => Ok(other.clone()),
    }
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
pub fn replay(layout: &Layout, records: &[crate::model::event::Record]) -> Result<State, OpsError> {
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
