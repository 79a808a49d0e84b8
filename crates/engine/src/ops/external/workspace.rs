//! The workspace that a lease or a submission changes for a moment.

use crate::ops::project::choices::keep;
use crate::ops::project::error::OpsError;
use crate::ops::project::hold::take;
use crate::ops::project::opened::Opened;
use crate::ops::project::request::Request;
use crate::run::record::recorder::Recorder;
use crate::run::record::recover::recover;
use milepost_core::model::stage::Stage;
use milepost_core::model::state::State;
use milepost_core::plan::options::Timing;

/// Takes the workspace for a moment, and puts in order what a killed run left in it; gives what is done with it then.
pub(super) fn with_workspace<T>(
    opened: &mut Opened,
    request: &Request,
    command: &str,
    doing: impl FnOnce(&Opened, &mut Recorder<'_>) -> Result<T, OpsError>,
) -> Result<T, OpsError> {
    let taken = take(opened, command)?;
    // Else the next run would ask other agents than those that answered here.
    keep(opened, request, &taken.run_id, None)?;
    let held = taken.read(opened)?;
    let lock = held.lock;
    let opened = &*opened;
    let mut recorder = Recorder::new(opened.context(), held.state, held.journal, command);
    recover(&mut recorder, Timing::default().grace)?;
    let done = doing(opened, &mut recorder)?;
    recorder.flush()?;
    // What was seen of files is only a cache.
    let _ = opened.cache.save(&opened.disk);
    drop(lock);
    Ok(done)
}

/// The names that a stage's external agents have, after replacements.
pub(super) fn outside(opened: &Opened, stage: &Stage) -> Vec<String> {
    let mut names = Vec::new();
    for step in &stage.steps {
        if let Some(asked) = step.kind.agent()
            && let Some(agent) = opened.settings.agent(&opened.pipeline, &asked.agent)
            && agent.is_external()
            && !names.contains(&agent.name)
        {
            names.push(agent.name.clone());
        }
    }
    names
}

/// Whether a batch is made, as far as is recorded.
pub(super) fn is_made(state: &State, stage: &str, batch: &str) -> bool {
    let known = state.stages.get(stage);
    known
        .and_then(|known| known.batches.get(batch))
        .is_some_and(|batch| batch.record.is_some())
}
