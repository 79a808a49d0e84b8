//! Compares the records of a workspace with those of an earlier revision, as its step `diff` declares it.

use crate::ops::project::error::OpsError;
use crate::ops::project::open_project::OpenProject;
use crate::run::{ChangeKind, Comparer, JqWorkers, RecordChange, Records, Totals, compare_records};
use milepost_core::expr::select::{PathStep, Select};
use milepost_core::model::outcome::Outcome;
use milepost_core::model::stage::{InputSource, Output, Stage};
use milepost_core::model::state::{StageState, State};
use milepost_core::model::step::{DiffStep, StepKind};
use milepost_core::plan::paths;
use milepost_store::store::layout::Layout;
use milepost_store::store::workspace::Workspace;
use serde::Serialize;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The changes between two revisions.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Revision {
    /// The stage whose step `diff` declares what is compared.
    pub stage: String,
    /// The totals.
    pub totals: Totals,
    /// The first records that differ: of each kind as many as `--limit` allows.
    pub changes: Vec<RecordChange>,
}

/// A stage with a step `diff`, and the output that has the records.
pub(super) struct DeclaredDiff<'a> {
    stage: &'a Stage,
    step: &'a DiffStep,
    output: &'a Output,
}

/// Returns the step `diff` of a project whose records are an output of its stage.
pub(super) fn declared(opened: &OpenProject) -> Option<DeclaredDiff<'_>> {
    opened.pipeline.stages.iter().find_map(|stage| {
        stage.steps.iter().find_map(|step| match &step.kind {
            StepKind::Diff(step) => Some(DeclaredDiff {
                stage,
                step,
                output: stage.output(step.records.first())?,
            }),
            _ => None,
        })
    })
}

impl DeclaredDiff<'_> {
    /// Returns the file of the earlier records that the stage reads, if it is there.
    ///
    /// # Errors
    /// When its path cannot be rendered.
    pub(super) fn baseline(&self, opened: &OpenProject) -> Result<Option<PathBuf>, OpsError> {
        let name = self.step.baseline.first();
        let input = self.stage.inputs.iter().find(|input| input.name == name);
        let Some(InputSource::Path(path)) = input.map(|input| &input.source) else {
            return Ok(None);
        };
        let scope = Value::Object(opened.settings.scope(&opened.pipeline));
        let file = paths::render(path, &scope)
            .map_err(|error| OpsError::Usage(format!("stage `{}`: {error}", self.stage.name)))?;
        let path = opened.files.resolve(&file).ok();
        Ok(path.filter(|path| path.is_file()))
    }

    /// Compares the records of the workspace with those of another workspace.
    ///
    /// # Errors
    /// When records cannot be read, or the program of the step fails.
    pub(super) fn with_workspace(
        &self,
        opened: &OpenProject,
        (old, state): (&Workspace, &State),
        (new, limit): (&State, usize),
    ) -> Result<Revision, OpsError> {
        let old = Records::in_files(self.files(&old.layout, state)?, self.rest());
        self.with_records(opened, &old, new, limit)
    }

    /// Compares the records of the workspace with those of a file.
    ///
    /// # Errors
    /// The errors of [`DeclaredDiff::with_workspace`].
    pub(super) fn with_file(
        &self,
        opened: &OpenProject,
        file: &Path,
        (new, limit): (&State, usize),
    ) -> Result<Revision, OpsError> {
        let old = Records::in_files(vec![file.to_owned()], self.step.baseline.rest());
        self.with_records(opened, &old, new, limit)
    }

    fn with_records(
        &self,
        opened: &OpenProject,
        old: &Records,
        new: &State,
        limit: usize,
    ) -> Result<Revision, OpsError> {
        let new = Records::in_files(self.files(&opened.workspace.layout, new)?, self.rest());
        let scope = opened.settings.scope(&opened.pipeline);
        let evaluator = JqWorkers::default();
        let place = |error: &dyn std::fmt::Display| {
            OpsError::World(format!(
                "step `diff` of stage `{}`: {error}",
                self.stage.name
            ))
        };
        let comparer =
            Comparer::new(self.step, &scope, &evaluator, 1).map_err(|error| place(&error))?;
        let mut changes: Vec<RecordChange> = Vec::new();
        let mut counts = [0_usize; 3];
        let totals = compare_records(&comparer, old, &new, &mut |change| {
            let count = &mut counts[change.change as usize];
            *count += 1;
            if *count <= limit {
                changes.push(change);
            }
            Ok::<(), Outcome>(())
        });
        Ok(Revision {
            stage: self.stage.name.clone(),
            totals: totals.map_err(|outcome| place(&outcome.message))?,
            changes,
        })
    }

    /// Returns the recorded files of the output.
    fn files(&self, layout: &Layout, state: &State) -> Result<Vec<PathBuf>, OpsError> {
        let made = state.stages.get(&self.stage.name);
        let made = made.into_iter().flat_map(StageState::outputs);
        let files = made.filter(|(_, made)| made.name == self.output.name);
        let files: Vec<PathBuf> = files.map(|(_, made)| layout.at(&made.path)).collect();
        if files.is_empty() {
            return Err(OpsError::Usage(format!(
                "`{}` has no records to compare: stage `{}` has not written `{}` yet",
                layout.root().display(),
                self.stage.name,
                self.output.name
            )));
        }
        Ok(files)
    }

    /// Returns the path of the records in a file of the output.
    fn rest(&self) -> Select {
        let rest = self.step.records.rest();
        if self.output.is_many() && rest.steps().first() == Some(&PathStep::Each) {
            rest.rest()
        } else {
            rest
        }
    }
}

impl Revision {
    /// Returns the number of records of a kind that differ.
    pub fn count(&self, kind: ChangeKind) -> u64 {
        match kind {
            ChangeKind::Added => self.totals.added,
            ChangeKind::Removed => self.totals.removed,
            ChangeKind::Changed => self.totals.changed,
        }
    }
}
