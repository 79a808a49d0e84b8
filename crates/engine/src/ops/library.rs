//! A project as a value: the shortest way to the operations for a program that uses Milepost as a library.

use super::inspect::status::{Status, status};
use super::plan::{Plan, plan};
use super::project::{OpsError, Request, find_project};
use super::run::{Observer, Report, RunOptions, Silent, StopFlag, run};
use super::why::{Why, why};
use milepost_core::plan::options::Values;
use std::path::{Path, PathBuf};

/// A project and one of its workspaces. Every call reads the declarations and the workspace anew.
#[derive(Clone)]
pub struct Project {
    request: Request,
}

impl Project {
    /// Opens the project in a folder or above it, with the workspace `workspace` and the environment of this process.
    ///
    /// # Errors
    /// When no `milepost.toml` is there.
    pub fn open(
        folder: &Path,
        environment: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, OpsError> {
        find_project(folder)?;
        let environment = environment.into_iter().collect();
        let request = Request::new(folder.to_owned(), environment);
        Ok(Self { request })
    }

    /// Uses another workspace; it is created by the first run.
    #[must_use]
    pub fn workspace(mut self, folder: impl Into<PathBuf>) -> Self {
        self.request.workspace = Some(folder.into());
        self
    }

    /// Replaces declared values. A run stores them in the workspace.
    #[must_use]
    pub fn values(mut self, values: Values) -> Self {
        self.request.values.extend(values);
        self
    }

    /// Returns what a run would do, and why. Nothing is written.
    ///
    /// # Errors
    /// When the declarations are wrong, or the workspace cannot be read.
    pub fn plan(&self, options: &RunOptions) -> Result<Plan, OpsError> {
        plan(&self.request, options)
    }

    /// Runs every selected stage that is out of date. A failed batch is part of the report, and no error.
    ///
    /// # Errors
    /// When the declarations are wrong, another process runs in the workspace, or the disk fails.
    pub fn run(&self, options: &RunOptions) -> Result<Report, OpsError> {
        self.run_observed(options, &mut Silent, &StopFlag::new())
    }

    /// Runs, reports progress to `observer`, and ends soon after `stop` is set.
    ///
    /// # Errors
    /// As [`Project::run`].
    pub fn run_observed(
        &self,
        options: &RunOptions,
        observer: &mut dyn Observer,
        stop: &StopFlag,
    ) -> Result<Report, OpsError> {
        run(&self.request, options, observer, stop)
    }

    /// Returns the state of each stage. A run in progress is not disturbed.
    ///
    /// # Errors
    /// When the declarations are wrong, or the workspace cannot be read.
    pub fn status(&self) -> Result<Status, OpsError> {
        status(&self.request)
    }

    /// Explains a stage, a batch (`STAGE/BATCH`) or a file of the workspace.
    ///
    /// # Errors
    /// When there is no such stage, batch or file.
    pub fn why(&self, what: &str) -> Result<Why, OpsError> {
        why(&self.request, what)
    }
}
