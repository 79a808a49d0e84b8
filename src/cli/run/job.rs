//! One job of a scheduler, as a submission starts it: `milepost job-worker PROJECT WORKSPACE SUBMISSION JOB VISIBLE_MS`.

use crate::cli::args::Everywhere;
use crate::cli::env::Environment;
use crate::cli::signals::{self, INTERRUPTED};
use crate::cli::{failure, settings};
use milepost_engine::ops::project::{OpsError, Request};
use milepost_engine::ops::run::{StopFlag, adopt_orphans, run_job};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Runs the batches of the job, and returns the exit code.
pub(crate) fn run(environment: &Environment) -> u8 {
    let printer = settings::printer(&Everywhere::default(), environment, false);
    let stop = Arc::new(StopFlag::new());
    match job(environment, &stop) {
        // The batches are not finished, and the scheduler says why.
        Ok(()) if stop.is_set() => INTERRUPTED,
        Ok(()) => 0,
        Err(error) => failure::print(&printer, &error),
    }
}

fn job(environment: &Environment, stop: &Arc<StopFlag>) -> Result<(), OpsError> {
    let words: Vec<&str> = environment.arguments[2..]
        .iter()
        .filter_map(|word| word.to_str())
        .collect();
    let [project, workspace, submission, job, visible] = words.as_slice() else {
        return Err(OpsError::Usage(
            "`job-worker` is for the jobs that `milepost run` submits".to_owned(),
        ));
    };
    let number = |text: &str, what: &str| {
        let not = |_| OpsError::Usage(format!("`{text}` is not {what}"));
        text.parse::<u64>().map_err(not)
    };
    let job = number(job, "the index of a job")?;
    let visible = Duration::from_millis(number(visible, "a number of milliseconds")?);
    let mut request = Request::new(PathBuf::from(project), environment.variables.clone());
    request.not_utf8.clone_from(&environment.not_utf8);
    request.workspace = Some(PathBuf::from(workspace));
    adopt_orphans();
    // Without signals the scheduler kills the job, and its batch runs again.
    let _ = signals::listen(Arc::clone(stop), || ());
    run_job(&request, submission, job, visible, stop)
}
