//! The schedulers, and the one that runs the batches of a stage, as declared and chosen.

mod command;
mod program;
mod refusal;
mod slurm;

use crate::run::batch::events::{AtOnce, Order};
use crate::run::context::Context;
use crate::run::remote::{Executor, Remote};
use milepost_core::base::path::Root;
use milepost_core::model::agent::Agent;
use milepost_core::model::executor::{ExecutorName, Executors, JobSettings};
use milepost_core::model::stage::Stage;
use milepost_core::plan::options::RunOptions;
use program::SchedulerCommands;

/// Creates a scheduler from its commands, the declared executors and the settings of its jobs; `None` if it is not declared.
type Create = for<'a> fn(
    SchedulerCommands<'a>,
    &'a Executors,
    &'a JobSettings,
) -> Option<Box<dyn Executor + 'a>>;

/// The schedulers by their names: a line for each file.
const SCHEDULERS: &[(&str, Create)] = &[("slurm", slurm::create), ("command", command::create)];

pub(crate) struct Scheduler<'a> {
    name: ExecutorName,
    executor: Box<dyn Executor + 'a>,
    settings: &'a JobSettings,
    program: String,
}

impl<'a> Scheduler<'a> {
    /// Returns the scheduler of this name; `None` if batches run here, or it is not declared.
    pub(crate) fn new(ctx: &Context<'a>, name: ExecutorName) -> Option<Self> {
        let executors = &ctx.pipeline.executors;
        let settings = executors.settings(name)?;
        let commands = SchedulerCommands {
            environment: ctx.own_environment,
            declared: &ctx.settings.env,
            keys: ctx
                .pipeline
                .agents
                .values()
                .filter_map(Agent::key_variable)
                .collect(),
            redactor: ctx.redactor,
            folder: ctx.files.folder(Root::Project),
        };
        let (_, create) = SCHEDULERS.iter().find(|(word, _)| *word == name.word())?;
        let executor = create(commands, executors, settings)?;
        let program = settings.program.as_deref().or(ctx.program);
        Some(Self {
            name,
            executor,
            settings,
            program: program.unwrap_or("milepost").to_owned(),
        })
    }

    /// Returns the scheduler that runs the batches of a stage; `None` if they run here.
    pub(crate) fn of_stage(ctx: &Context<'a>, stage: &Stage, options: &RunOptions) -> Option<Self> {
        Self::new(ctx, options.executor_of(stage))
    }

    /// Returns its executor.
    pub(crate) fn executor(&self) -> &dyn Executor {
        &*self.executor
    }

    /// Returns what the driver of a stage needs. `is_limited` is true if the stage or `--jobs` limits the batches at once.
    pub(crate) fn remote(&self, order: &Order<'_>, is_limited: bool) -> Remote<'_> {
        let limit = match order.at_once {
            AtOnce::Batches(count) if is_limited => count as u64,
            _ => u64::MAX,
        };
        Remote {
            name: self.name,
            executor: &*self.executor,
            settings: self.settings,
            program: self.program.clone(),
            at_once: self.settings.max_jobs.min(limit),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_has_a_scheduler() {
        let names: Vec<&str> = SCHEDULERS.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ExecutorName::WORDS[1..]);
    }
}
