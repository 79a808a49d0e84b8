//! Takes over what a process of a job made: once its files are visible here, its folder is the scratch of the batch.

use crate::run::batch::stage_context::{AttemptResult, StageContext};
use crate::run::remote::worker_log::BatchResult;
use milepost_core::model::job::JobOfBatch;
use milepost_core::model::outcome::{Outcome, OutcomeKind};
use milepost_store::store::scratch::Scratch;

/// Returns a file of a result that is not visible here in its full size; `None` if all are.
pub(crate) fn invisible(stage_ctx: &StageContext<'_>, result: &BatchResult) -> Option<String> {
    let made = result.result.as_ref().ok()?;
    let layout = stage_ctx.ctx.layout;
    let is_whole = |path: &std::path::Path, size: u64| {
        let found = std::fs::symlink_metadata(path);
        found.is_ok_and(|found| found.is_file() && found.len() == size)
    };
    let mut files = made.files();
    let hidden = files.find(|(path, size)| !is_whole(&layout.at(path), *size));
    hidden.map(|(path, _)| path.to_string())
}

/// Returns the result of a batch as if it had run here.
pub(crate) fn adopt(
    stage_ctx: &StageContext<'_>,
    result: BatchResult,
    job: &JobOfBatch,
) -> AttemptResult {
    let ctx = &stage_ctx.ctx;
    let scratch = Scratch::of_job(ctx.disk, ctx.files, ctx.layout, &result.folder);
    let result_of = match result.result {
        Ok(made) => {
            let mut produced = crate::run::batch::stage_context::Produced::from(made);
            produced.job = Some(job.clone());
            Ok(produced)
        }
        Err(mut outcome) => {
            outcome.details.insert(0, job.to_string());
            Err(outcome)
        }
    };
    AttemptResult {
        result: result_of,
        scratch: Some(scratch),
        log: result.log,
    }
}

/// Returns the outcome of a batch whose files did not become visible in time.
pub(crate) fn never_visible(file: &str, job: &JobOfBatch, limit: &str) -> Outcome {
    let message = format!(
        "`{file}` of {job} is not visible here after {limit}: check that the node writes to the same file system, or raise `visible` under [executor.{}]",
        job.executor
    );
    Outcome::new(OutcomeKind::Job, message)
}
