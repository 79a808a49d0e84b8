//! Plans a project between runs, for `watch`, unless another run is in progress.

use crate::ops::plan::{Plan, PlanDetails, plan_of};
use crate::ops::project::error::OpsError;
use crate::ops::project::find::find_project;
use crate::ops::project::lock::lock_and_read;
use crate::ops::project::open::{open, workspace_of};
use crate::ops::project::open_project::OpenProject;
use crate::ops::project::request::Request;
use crate::ops::project::snapshot::{Runner, runner};
use crate::ops::run::RunOptions;
use milepost_core::base::glob::{Glob, is_pattern};
use milepost_core::base::path::{FilePath, RelPath, Root};
use milepost_core::decl::STAGES;
use milepost_core::model::stage::{PathTemplate, Stage};
use milepost_core::plan::lineage;
use milepost_store::store::files::real_path;
use milepost_store::store::journal::Cursor;
use milepost_store::store::layout::Layout;
use std::collections::BTreeSet;
use std::path::PathBuf;

pub use milepost_store::store::journal::Position;
pub use milepost_store::store::layout::{MANIFESTS, OWN};

/// The two folders that a run depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunFolders {
    /// The project's folder.
    pub project: PathBuf,
    /// The path of the workspace, which may not exist yet.
    pub workspace: PathBuf,
}

impl RunFolders {
    /// Returns both paths without links.
    #[must_use]
    pub fn real(&self) -> Self {
        Self {
            project: real_path(&self.project),
            workspace: real_path(&self.workspace),
        }
    }
}

/// The plan for `watch`.
#[derive(Debug)]
pub enum WatchPlan {
    /// The plan of a run, and the folders that it reads from.
    Plan(Box<Plan>, Sources),
    /// Another process runs in the workspace.
    Busy(Box<Runner>),
}

/// The folders of inputs and declarations. If one of them were missing, a run would retire everything built from it.
pub type Sources = BTreeSet<PathBuf>;

/// Finds the folders of a request.
///
/// # Errors
/// When there is no project.
pub fn run_folders(request: &Request) -> Result<RunFolders, OpsError> {
    let project = find_project(&request.folder)?;
    let workspace = workspace_of(request, &project);
    Ok(RunFolders { project, workspace })
}

/// Returns the end of the journal of the workspace; `None` if it cannot be read.
pub fn journal_end(roots: &RunFolders) -> Option<Position> {
    let cursor = Cursor::at_end(&Layout::new(&roots.workspace));
    cursor.ok().map(|cursor| cursor.position())
}

/// Plans a run, unless another process runs in the workspace. Recovers first if a killed run left files half published; nothing else is
/// written.
///
/// # Errors
/// When the project was moved, its declarations are wrong, or the workspace cannot be read.
pub fn plan_for_watch(
    request: &Request,
    roots: &RunFolders,
    options: &RunOptions,
) -> Result<WatchPlan, OpsError> {
    // If the project's file is missing, `find_project` may find another project above.
    let project = find_project(&request.folder).ok();
    if project.as_ref() != Some(&roots.project) {
        return Err(OpsError::NoProject(roots.project.display().to_string()));
    }
    if let Some(runner) = runner(&Layout::new(&roots.workspace)) {
        return Ok(WatchPlan::Busy(Box::new(runner)));
    }
    let mut opened = open(request)?;
    let sources = sources(&opened);
    let mut plan = plan_of(&mut opened, request, options, PlanDetails::default())?;
    if plan.half_published > 0 {
        match recover_on_disk(request) {
            Err(OpsError::Lock(_)) => {}
            recovered => recovered?,
        }
        plan = plan_of(
            &mut open(request)?,
            request,
            options,
            PlanDetails::default(),
        )?;
    }
    Ok(WatchPlan::Plan(Box::new(plan), sources))
}

/// Puts the files in place that a killed run published. A watch may wait for a person before its next run.
fn recover_on_disk(request: &Request) -> Result<(), OpsError> {
    let mut opened = open(request)?;
    let locked = lock_and_read(&mut opened, &request.command)?;
    let (lock, mut recorder, _) = locked.recover(&opened, &request.command)?;
    if recorder.has_begun() {
        recorder.end_without_stages("recovered", "recovered")?;
        recorder.flush()?;
    }
    drop(lock);
    Ok(())
}

/// Returns the existing folders with declarations, and with inputs that no stage writes.
fn sources(opened: &OpenProject) -> Sources {
    let stages = opened.pipeline.stages.iter();
    let read = stages.flat_map(|stage| {
        let paths = lineage::reads(stage).into_iter();
        paths.filter_map(|path| folder_of(opened, stage, path))
    });
    let declared = [opened.project.join(STAGES)];
    let all = declared.into_iter().chain(read);
    all.filter(|folder| folder.is_dir()).collect()
}

/// Returns the folder that contains the files of a path or pattern; `None` if a stage writes them.
fn folder_of(opened: &OpenProject, stage: &Stage, path: &PathTemplate) -> Option<PathBuf> {
    let pattern = path.pattern();
    if path.root == Root::Workspace
        && !lineage::writers(&opened.pipeline, stage, &pattern).is_empty()
    {
        return None;
    }
    let folder = if is_pattern(&pattern) {
        Glob::parse(&pattern).ok()?.folder()?
    } else {
        RelPath::parse(&pattern).ok()?.parent()?
    };
    let root = path.root;
    let file = FilePath { root, path: folder };
    Some(opened.files.folder(root).join(file.path.as_str()))
}
