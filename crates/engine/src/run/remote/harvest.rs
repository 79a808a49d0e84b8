//! Takes over what a process of a job made: once its files are visible here, and are what its record says, its folder is the scratch
//! of the batch.

use crate::run::batch::events;
use crate::run::batch::stage_context::{AttemptResult, Produced};
use crate::run::remote::driver::{Driver, Finished};
use crate::run::remote::outcomes::{LOSSES, memory_grows};
use crate::run::remote::worker_log::{BatchResult, ScarceResource};
use milepost_core::base::duration::show_duration;
use milepost_core::base::glob::{Glob, is_starred};
use milepost_core::base::path::RelPath;
use milepost_core::model::job::JobOfBatch;
use milepost_core::model::outcome::{Outcome, OutcomeKind};
use milepost_store::store::layout;
use milepost_store::store::scratch::Scratch;
use std::path::Path;
use std::time::Duration;

impl Driver<'_> {
    /// Takes over finished batches whose files are visible.
    pub(crate) fn harvest(&mut self) {
        let visible = self.remote.settings.visible;
        for finished in std::mem::take(&mut self.finished) {
            let fits = self.check_paths(&finished);
            let hidden = fits.is_ok().then(|| self.invisible(&finished.result));
            if let Some(file) = hidden.flatten() {
                if finished.since.elapsed() < visible {
                    self.finished.push(finished);
                } else {
                    let outcome = never_visible(&file, &finished.job, &show_duration(visible));
                    self.discard(finished.index, outcome);
                }
                continue;
            }
            let Finished {
                index, result, job, ..
            } = finished;
            if result.lacked == Some(ScarceResource::Space) {
                self.full_nodes.insert(job.node.clone());
            }
            if let Some(outcome) = self.lacked(index, &result) {
                self.retry(index, outcome);
                continue;
            }
            let took = Duration::from_millis(result.took_ms);
            if fits.is_ok() {
                self.begin(index);
                events::replay(self.shared, self.sender, index, &result.steps);
            }
            match fits.and_then(|()| self.adopt(result, &job)) {
                Ok(done) => self.finish(index, done, took),
                Err(why) => self.discard(index, not_valid(&job, &why)),
            }
        }
    }

    /// Discards a record. Its batch gets another job, once.
    fn discard(&mut self, index: usize, outcome: Outcome) {
        if self.open.get(&index).is_some_and(|batch| batch.losses > 0) {
            self.fail(index, outcome);
        } else {
            self.retry(index, outcome);
        }
    }

    /// Checks that a record names the folder that its process had for the batch, and only outputs of the batch in it.
    ///
    /// # Errors
    /// The first mismatch.
    fn check_paths(&self, finished: &Finished) -> Result<(), String> {
        let (array, number) = finished.place;
        let array = &self.arrays[array];
        let mut handed = array.jobs[number].handed.iter();
        let place = handed.position(|&index| index == Some(finished.index));
        let place = place.map(|place| place.to_string()).unwrap_or_default();
        let parts = ["work", &finished.process, &place];
        let folder = array.submission.inside(&parts);
        let result = &finished.result;
        if result.folder != folder {
            return Err(format!("its folder is `{}`", result.folder));
        }
        let Ok(made) = &result.result else {
            return Ok(());
        };
        let targets = &self.shared.scan.batches[finished.index].targets;
        for (made, at) in &made.files {
            let target = targets.get(&made.name);
            if !target.is_some_and(|target| makes(target, &made.path)) {
                return Err(format!("`{}` is not an output of the batch", made.path));
            }
            if *at != folder.with(&made.path) {
                return Err(format!("`{}` was read from `{at}`", made.path));
            }
        }
        Ok(())
    }

    /// Returns a file of a result that is not visible here in its full size; `None` if all are.
    fn invisible(&self, result: &BatchResult) -> Option<String> {
        let made = result.result.as_ref().ok()?;
        let layout = self.shared.stage_ctx.ctx.layout;
        // One that is longer is not what the record says.
        let is_whole = |path: &Path, size: u64| {
            let found = std::fs::symlink_metadata(path);
            found.is_ok_and(|found| found.len() >= size)
        };
        let mut files = made.files.iter();
        let hidden = files.find(|(made, at)| !is_whole(&layout.at(at), made.size));
        hidden.map(|(_, at)| at.to_string())
    }

    /// Returns the result of a batch as if it had run here.
    ///
    /// # Errors
    /// How a file differs from its record.
    fn adopt(&self, result: BatchResult, job: &JobOfBatch) -> Result<AttemptResult, String> {
        let ctx = &self.shared.stage_ctx.ctx;
        let scratch = Scratch::of_job(ctx.disk, ctx.files, ctx.layout, &result.folder);
        let result_of = match result.result {
            Ok(mut produced) => {
                check_content(&scratch, &produced)?;
                produced.job = Some(job.clone());
                Ok(produced)
            }
            Err(mut outcome) => {
                outcome.details.insert(0, job.to_string());
                Err(outcome)
            }
        };
        Ok(AttemptResult {
            result: result_of,
            scratch: Some(scratch),
            log: result.log.filter(|log| is_log(log)),
        })
    }

    /// Returns how a batch failed, if its node lacked something that its next job may get.
    fn lacked(&self, index: usize, result: &BatchResult) -> Option<Outcome> {
        let (outcome, batch) = (result.failure()?, self.open.get(&index)?);
        let gets = match result.lacked? {
            ScarceResource::Memory => {
                result.result.is_err() && memory_grows(&self.needs(), batch.failures)
            }
            ScarceResource::Space => batch.losses < LOSSES,
        };
        gets.then(|| outcome.clone())
    }
}

/// Returns true if a path is an output, or matches its pattern.
fn makes(target: &RelPath, path: &RelPath) -> bool {
    target == path
        || is_starred(target) && Glob::of_output(target).is_ok_and(|glob| glob.matches_hidden(path))
}

/// Returns true if a path is one of a log of an attempt.
fn is_log(path: &str) -> bool {
    let logs = layout::log("run", "stage", "batch", 0);
    let folder = |path: &RelPath| path.parent().and_then(|run| run.parent());
    RelPath::parse(path).is_ok_and(|path| folder(&path) == folder(&logs))
}

/// Checks that the files in a scratch are what a record says.
///
/// # Errors
/// How one differs.
fn check_content(scratch: &Scratch, produced: &Produced) -> Result<(), String> {
    for (made, _) in &produced.files {
        let found = scratch.content(&made.path).map_err(|e| e.to_string())?;
        let is_same =
            found.is_some_and(|found| (found.digest, found.size) == (made.digest, made.size));
        if !is_same {
            return Err(format!("`{}` has different content", made.path));
        }
    }
    Ok(())
}

/// Returns the outcome of a batch whose record is not valid.
fn not_valid(job: &JobOfBatch, why: &str) -> Outcome {
    let message = format!("the record of {job} is not valid: {why}");
    Outcome::new(OutcomeKind::Job, message)
}

/// Returns the outcome of a batch whose files did not become visible in time.
fn never_visible(file: &str, job: &JobOfBatch, limit: &str) -> Outcome {
    let message = format!(
        "`{file}` of {job} is not visible here after {limit}: check that the node writes to the same file system, or raise `visible` under [executor.{}]",
        job.executor
    );
    Outcome::new(OutcomeKind::Job, message)
}
