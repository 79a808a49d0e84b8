//! The schedulers, and the one that runs the batches of a stage, as declared and chosen.

mod command;
mod program;
mod refusal;
mod slurm;

use crate::run::batch::events::{AtOnce, Order};
use crate::run::context::Context;
use crate::run::remote::{Executor, Remote};
use command::CommandScheduler;
use milepost_core::base::path::Root;
use milepost_core::model::executor::{ExecutorName, JobSettings};
use milepost_core::model::stage::Stage;
use milepost_core::plan::options::RunOptions;
use program::SchedulerCommands;
use slurm::Slurm;

/// A scheduler.
pub(crate) struct Scheduler<'a> {
    name: ExecutorName,
    executor: Box<dyn Executor + 'a>,
    settings: &'a JobSettings,
    index: &'a str,
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
            redactor: ctx.redactor,
            folder: ctx.files.folder(Root::Project),
        };
        let (executor, index): (Box<dyn Executor + 'a>, &str) = match name {
            ExecutorName::Local => return None,
            ExecutorName::Slurm => (Box::new(Slurm::new(commands, settings)), slurm::INDEX),
            ExecutorName::Command => {
                let declared = executors.command.as_ref()?;
                let scheduler = CommandScheduler::new(commands, declared);
                (Box::new(scheduler), declared.index.as_str())
            }
        };
        let program = settings.program.as_deref().or(ctx.program);
        Some(Self {
            name,
            executor,
            settings,
            index,
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
            index: self.index,
            program: self.program.clone(),
            at_once: self.settings.max_jobs.min(limit),
        }
    }
}
