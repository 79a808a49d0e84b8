//! Submits waiting batches as an array of jobs.

use crate::run::batch::events::Message;
use crate::run::error::RunError;
use crate::run::remote::arrays::OpenArray;
use crate::run::remote::attach::{id_of, job_name};
use crate::run::remote::driver::{Driver, RefusedJobs};
use crate::run::remote::handover::{HandedBatch, SubmissionRecord, to_json};
use crate::run::remote::pack::{PackedArray, pack, room, wanted};
use crate::run::remote::{ExecutorError, JobArray, Remote, RemoteError};
use milepost_core::base::duration::show_duration;
use milepost_core::base::path::Root;
use milepost_core::expr::shell::quoted;
use milepost_store::store::clock::Stopwatch;
use milepost_store::store::id::new_id;
use milepost_store::store::jobs::Submission;
use std::collections::HashSet;
use std::time::Duration;

/// How often jobs are submitted until the scheduler takes them, if none runs.
const TRIES: u32 = 4;

impl Driver<'_> {
    /// Submits batches that wait. After a refusal it tries again later, and jobs run on meanwhile.
    pub(crate) fn submit(&mut self) {
        let tried = self.refused.as_ref();
        let tries = tried.map_or(0, |refused| refused.tries);
        let waits = |refused: &RefusedJobs| {
            refused.error.is_final() || refused.since.elapsed() < self.pause(tries)
        };
        if tried.is_some_and(waits) {
            return;
        }
        let mut submitted = self.submit_waiting();
        let is_final = |submitted: &Result<(), RemoteError>| {
            submitted.as_ref().is_err_and(RemoteError::is_final)
        };
        if is_final(&submitted) && !self.full_nodes.is_empty() {
            // Without these nodes there may be too few.
            self.full_nodes.clear();
            submitted = self.submit_waiting();
        }
        let is_final = is_final(&submitted);
        self.refused = submitted.err().map(|error| RefusedJobs {
            // No further try helps after a refusal for good.
            tries: if is_final { TRIES } else { tries + 1 },
            since: Stopwatch::start(),
            error,
        });
        let Some(refused) = &self.refused else {
            return;
        };
        // If the refusal ends the stage at once, the error of the stage reports it.
        if refused.tries == 1 || is_final && tries == 0 && self.has_jobs() {
            let redactor = self.shared.stage_ctx.ctx.redactor;
            let why = redactor.text(&refused.error.to_string()).into_owned();
            let again = if is_final {
                String::new()
            } else {
                format!(", trying again in {}", show_duration(self.pause(1)))
            };
            let why = format!("jobs cannot be submitted{again}: {why}");
            let _ = self.sender.send(Message::Waiting { why });
        }
    }

    /// Returns how long to wait after this many refusals in a row.
    fn pause(&self, tries: u32) -> Duration {
        self.remote.settings.poll / 5 * (1 << tries.min(5))
    }

    /// Returns true if jobs were refused so often that the run ends once no job runs: the end of one may make room.
    pub(crate) fn is_refused(&self) -> bool {
        let refused = self.refused.as_ref();
        refused.is_some_and(|refused| refused.tries >= TRIES)
    }

    /// Submits batches that wait, as far as there is room for their jobs.
    ///
    /// # Errors
    /// When the disk fails, or the scheduler refuses the jobs.
    fn submit_waiting(&mut self) -> Result<(), RemoteError> {
        let settings = self.remote.settings;
        self.look_for_unsure()?;
        while !self.waiting.is_empty() && !self.shared.stage_ctx.stop.stopping() {
            let jobs = self.arrays.iter().flat_map(|array| &array.jobs);
            let open = jobs.filter(|job| !job.is_over).count() as u64;
            let waiting = &*self.waiting.make_contiguous();
            let per_job = settings.batches_per_job;
            let limits = (self.remote.at_once, settings.max_array_size);
            let Some(most) = room(wanted(waiting, per_job), open, limits) else {
                return Ok(());
            };
            let packed = pack(waiting, per_job, most);
            let at_once = self.remote.at_once - open;
            self.submit_array(packed, at_once)?;
        }
        Ok(())
    }

    fn submit_array(&mut self, packed: PackedArray, at_once: u64) -> Result<(), RemoteError> {
        let ctx = &self.shared.stage_ctx.ctx;
        let name = new_id(ctx.clock.now())?;
        let submission = Submission::new(ctx.disk, ctx.layout, &name);
        submission.create()?;
        for (number, batches) in packed.jobs.iter().enumerate() {
            let handed = batches.iter().map(|&index| {
                let found = &self.shared.scan.batches[index];
                HandedBatch::new(found, (self.shared.order.previous)(&found.batch.key))
            });
            let handed: Vec<HandedBatch> = handed.collect();
            submission.write(&["tasks", &format!("{number}.json")], &to_json(&handed)?)?;
        }
        let project = ctx.files.folder(Root::Project).display().to_string();
        let workspace = ctx.layout.root().display().to_string();
        let script = script(self.remote, &submission, &project, &workspace);
        submission.write(&["job.sh"], script.as_bytes())?;
        let record = SubmissionRecord::new(
            self.shared.stage_ctx,
            self.remote.name,
            self.shared.scan,
            (packed.jobs.len() as u64, packed.failures),
        );
        submission.write(&["job.json"], &to_json(&record)?)?;
        let needs = self.needs();
        let needs = needs.after(packed.failures.memory, packed.failures.time);
        let asked = JobArray {
            name: job_name(&submission),
            script: submission.at(&["job.sh"]),
            output: submission.at(&["output"]),
            jobs: packed.jobs.len() as u64,
            at_once,
            resources: needs.clone(),
            avoided: self.full_nodes.iter().cloned().collect(),
        };
        let jobs = packed.jobs.into_iter();
        let jobs = jobs.map(|job| job.into_iter().map(Some).collect());
        let array = OpenArray::new(submission, record, String::new(), needs, jobs.collect());
        match self.remote.executor.submit(&asked) {
            Ok(id) => self.follow(array, id),
            Err(error) => self.not_submitted(array, error),
        }
    }

    /// Follows an array that the scheduler has under this id.
    fn follow(&mut self, mut array: OpenArray, id: String) -> Result<(), RemoteError> {
        array.submission.write(&["id"], id.as_bytes())?;
        let taken = array
            .jobs
            .iter()
            .flat_map(|job| job.batches.iter().copied());
        let taken: HashSet<usize> = taken.collect();
        self.waiting.retain(|batch| !taken.contains(&batch.index));
        let message = Message::Submitted {
            executor: self.remote.name,
            id: id.clone(),
            jobs: array.jobs.len() as u64,
            batches: taken.len() as u64,
        };
        let _ = self.sender.send(message);
        array.id = id;
        self.arrays.push(array);
        Ok(())
    }

    /// Removes a submission that the scheduler refused. If it may have the array nevertheless, nothing else is submitted before that
    /// is known.
    ///
    /// # Errors
    /// The error, unless the scheduler has the array.
    fn not_submitted(&mut self, array: OpenArray, error: ExecutorError) -> Result<(), RemoteError> {
        let executor = self.remote.executor;
        let is_refused = match &error {
            ExecutorError::Command { .. } | ExecutorError::Refused { .. } => true,
            // If the scheduler can look up names, do not trust the failure: it may have accepted the array and answered too late.
            ExecutorError::Failed { .. } => !executor.can_find(),
            _ => false,
        };
        let name = job_name(&array.submission);
        if is_refused {
            array.submission.remove()?;
        } else if !executor.can_find() {
            // The next run takes the jobs over, as after a run that was killed here.
            return Err(RemoteError::Unsure { name, error });
        } else if let Ok(Some(id)) = executor.find(&name) {
            return self.follow(array, id);
        } else {
            self.unsure = Some(array);
        }
        Err(error.into())
    }

    /// Asks for the array of which the scheduler did not say whether it has it. If it has none, its batches may be submitted again.
    ///
    /// # Errors
    /// When the scheduler does not answer, or the disk fails.
    pub(crate) fn look_for_unsure(&mut self) -> Result<(), RemoteError> {
        let Some(array) = self.unsure.take() else {
            return Ok(());
        };
        match id_of(self.remote, &array.submission) {
            Ok(Some(id)) => self.follow(array, id),
            Ok(None) if array.submission.processes()?.is_empty() => {
                array.submission.remove()?;
                Ok(())
            }
            // The jobs have ended, and the scheduler has forgotten them.
            Ok(None) => {
                let name = job_name(&array.submission);
                self.follow(array, name)
            }
            Err(error) => {
                self.unsure = Some(array);
                Err(error)
            }
        }
    }
}

/// Returns the script of all jobs of a submission.
fn script(remote: &Remote<'_>, submission: &Submission, project: &str, workspace: &str) -> String {
    let setup: String = remote
        .settings
        .setup
        .iter()
        .map(|line| format!("{line}\n"))
        .collect();
    let id = quoted(&submission.at(&["id"]).display().to_string());
    // The run may be killed before it notes the id.
    let note = remote.executor.array_variable().map_or_else(String::new, |array| {
        format!(
            "[ -z \"${array}\" ] || [ -e {id} ] || {{ echo \"${array}\" >{id}.\"$job\" && mv -f {id}.\"$job\" {id}; }}\n"
        )
    });
    let exit = quoted(&submission.at(&["output"]).display().to_string());
    let words = [remote.program.as_str(), "job-worker", project, workspace];
    let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    let (words, name) = (words.join(" "), submission.name());
    let index = remote.executor.index_variable();
    let visible = remote.settings.visible.as_millis();
    format!(
        "#!/bin/bash\n\
         unset MILEPOST_ATTEMPT\n\
         job=\"${{{index}:?the scheduler sets no {index}}}\"\n\
         {note}\
         set -e\n\
         {setup}\
         set +e\n\
         {words} {name} \"$job\" {visible}\n\
         code=$?\n\
         # After a signal, only the scheduler knows why the job ended.\n\
         [ \"$code\" = 130 ] || echo \"$code\" >{exit}/\"$job\".exit\n\
         exit \"$code\"\n"
    )
}

impl From<RemoteError> for RunError {
    fn from(error: RemoteError) -> Self {
        Self::World(error.to_string())
    }
}
