//! The face of the library: a project with a workspace, and what can be done with it.

use super::inspect::status::{Status, status};
use super::plan::{Plan, plan};
use super::project::{OpsError, Request, find_project};
use super::run::{Observer, Report, RunOptions, Silent, StopFlag, run};
use super::why::{Why, why};
use milepost_core::plan::options::Values;
use milepost_core::plan::options::flags::Flags as _;
use std::path::{Path, PathBuf};

/// A project and one of its workspaces. Each call reads the declarations and the workspace again.
#[derive(Clone)]
pub struct Project {
    request: Request,
}

impl Project {
    /// Opens the project at `folder` or above it, with its default workspace. Pass `std::env::vars()` as the environment: agents read
    /// their keys from it, and declarations the variables they name.
    ///
    /// # Errors
    /// When neither the folder nor one above it contains `milepost.toml`.
    pub fn open(
        folder: &Path,
        environment: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, OpsError> {
        find_project(folder)?;
        let environment = environment.into_iter().collect();
        let request = Request::new(folder.to_owned(), environment);
        Ok(Self { request })
    }

    /// Selects another workspace. The first run creates it.
    #[must_use]
    pub fn workspace(mut self, folder: impl Into<PathBuf>) -> Self {
        self.request.workspace = Some(folder.into());
        self
    }

    /// Adds values that replace declared ones. A run stores them in the workspace.
    #[must_use]
    pub fn values(mut self, values: Values) -> Self {
        self.request.values.merge(&values);
        self
    }

    /// Returns what a run would do, and why. Nothing is written.
    ///
    /// # Errors
    /// When the declarations are wrong, or the workspace cannot be read.
    pub fn plan(&self, options: &RunOptions) -> Result<Plan, OpsError> {
        plan(&self.request, options)
    }

    /// Runs every selected stage that is out of date. Failed batches are listed in the report and are not an error.
    ///
    /// # Errors
    /// When the declarations are wrong, another process runs in the workspace, or the disk fails.
    pub fn run(&self, options: &RunOptions) -> Result<Report, OpsError> {
        self.run_observed(options, &mut Silent, &StopFlag::new())
    }

    /// Runs like [`Project::run`], reports progress to `observer`, and stops soon after `stop` is set.
    ///
    /// # Errors
    /// The errors of [`Project::run`].
    pub fn run_observed(
        &self,
        options: &RunOptions,
        observer: &mut dyn Observer,
        stop: &StopFlag,
    ) -> Result<Report, OpsError> {
        run(&self.request, options, observer, stop)
    }

    /// Returns the status of each stage, also while a run is in progress.
    ///
    /// # Errors
    /// When the declarations are wrong, or the workspace cannot be read.
    pub fn status(&self) -> Result<Status, OpsError> {
        status(&self.request)
    }

    /// Explains why a stage, a batch (`STAGE/BATCH`) or a file is in its present state.
    ///
    /// # Errors
    /// When `what` names no stage, batch or file, the declarations are wrong, or the workspace cannot be read.
    pub fn why(&self, what: &str) -> Result<Why, OpsError> {
        why(&self.request, what)
    }
}
