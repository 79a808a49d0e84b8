//! Runs a project over a list of workspaces, one after another.

mod list;
mod result;

pub(crate) use list::Outside;
pub use list::{WorkspaceEntry, WorkspaceList, entries};
pub use result::{AgentUsage, EntryError, EntryResult, Estimate, WorkspacesResult, worst_code};

use crate::ops::exit_code;
use crate::ops::plan::plan;
use crate::ops::project::error::OpsError;
use crate::ops::project::request::Request;
use crate::ops::run::run;
use crate::ops::run::{Observer, RunOptions, StageStatus, StopFlag, Stopwatch};
use crate::run::JqWorkers;
use milepost_core::base::redact::redact;
use milepost_core::model::pipeline::Manifest;
use milepost_store::store::checkpoint;
use milepost_store::store::layout::Layout;
use result::{STOPPED, StageSummary};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

impl WorkspaceList {
    /// Runs or, with `dry`, plans one workspace. An error is part of the result and does not affect the others.
    #[expect(clippy::too_many_arguments)]
    pub fn one(
        &self,
        entry: &WorkspaceEntry,
        request: &Request,
        options: &RunOptions,
        dry: bool,
        observer: &mut dyn Observer,
        stop: &StopFlag,
    ) -> EntryResult {
        let watch = Stopwatch::start();
        let mut own = request.clone();
        own.workspace = Some(entry.folder.clone());
        own.values.set = entry
            .set
            .iter()
            .chain(&request.values.set)
            .cloned()
            .collect();
        let mut ended = EntryResult {
            params: entry.params.clone(),
            workspace: entry.workspace.clone(),
            status: "planned",
            held: None,
            exit_code: exit_code::OK,
            error: None,
            reason: None,
            stages: BTreeMap::new(),
            estimate: None,
            usage: AgentUsage {
                cost_usd: Some(0.0),
                ..AgentUsage::default()
            },
            seconds: 0.0,
        };
        if stop.is_set() {
            ended.status = "interrupted";
            ended.exit_code = exit_code::INTERRUPTED;
            ended.reason = Some(STOPPED.to_owned());
            return ended;
        }
        let ran = if dry {
            Ok(())
        } else {
            run(&own, options, observer, stop).map(|report| ended.ran(&report))
        };
        let planned = ran.and_then(|()| {
            if dry || options.until_paid && !stop.is_set() {
                let plan = plan(&own, options)?;
                ended.planned(&plan);
                if dry {
                    ended.hindered(&plan);
                }
            }
            Ok(())
        });
        // A dry run that stops at `until_paid` has not failed.
        if options.until_paid && ended.status == StageStatus::Held.word() {
            ended.exit_code = exit_code::OK;
        }
        if let Err(error) = planned {
            ended.status = "error";
            ended.exit_code = match exit_code::of_error(&error) {
                exit_code::IN_USE => exit_code::IN_USE,
                _ => exit_code::FAILED,
            };
            let message = redact(&error.to_string()).into_owned();
            let code = "ERROR".to_owned();
            ended.error = Some(EntryError { code, message });
        }
        ended.stages = self.summaries(&Layout::new(&entry.folder));
        ended.seconds = watch.elapsed().as_secs_f64();
        ended
    }

    fn summaries(&self, layout: &Layout) -> BTreeMap<String, StageSummary> {
        let stages = self.pipeline.stages.iter();
        stages
            .filter_map(|stage| {
                let found = checkpoint::read(layout, stage.number).ok().flatten()?;
                let found = found.checkpoint;
                let status = serde_json::to_value(found.status).ok()?;
                let summary = StageSummary {
                    status: status.as_str().unwrap_or_default().to_owned(),
                    summary: found.summary,
                };
                (found.stage == stage.name).then(|| (stage.name.clone(), summary))
            })
            .collect()
    }

    /// Returns the result of the project's `summary` program for all results; without one, the results.
    ///
    /// # Errors
    /// When the program fails.
    pub fn summary(&self, batch: &WorkspacesResult) -> Result<Value, OpsError> {
        let world = |error: &dyn std::fmt::Display| OpsError::World(error.to_string());
        let value = serde_json::to_value(batch).map_err(|error| world(&error))?;
        let Manifest { summary, .. } = &self.pipeline.manifest;
        match summary {
            Some(program) => program
                .one(value, &Map::new(), &JqWorkers::default())
                .map_err(|error| world(&error)),
            None => Ok(value),
        }
    }

    /// Returns true if the project declares a `summary` program.
    pub fn has_summary(&self) -> bool {
        self.pipeline.manifest.summary.is_some()
    }
}
