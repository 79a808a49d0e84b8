//! The workspace, locked for a lease or a submission.

use crate::ops::project::error::OpsError;
use crate::ops::project::lock::lock;
use crate::ops::project::open_project::OpenProject;
use crate::ops::project::request::Request;
use crate::ops::project::stored_values::keep;
use crate::run::record::recorder::Recorder;
use milepost_core::model::stage::Stage;
use milepost_core::model::state::State;

/// Locks the workspace, recovers what a killed run left, calls `change`, and returns its result.
pub(super) fn with_workspace<T>(
    opened: &mut OpenProject,
    request: &Request,
    command: &str,
    change: impl FnOnce(&OpenProject, &mut Recorder<'_>) -> Result<T, OpsError>,
) -> Result<T, OpsError> {
    let lock = lock(opened, command)?;
    // Without these, the next run would ask other agents than those that answered here.
    keep(opened, request, &lock.run_id, None)?;
    let locked = lock.read(opened)?;
    let opened = &*opened;
    let (lock, mut recorder, _) = locked.recover(opened, command)?;
    let done = change(opened, &mut recorder)?;
    recorder.flush()?;
    // Only a cache.
    let _ = opened.cache.save(&opened.disk);
    drop(lock);
    Ok(done)
}

/// Returns the names of a stage's external agents, after replacements.
pub(super) fn external_agents(opened: &OpenProject, stage: &Stage) -> Vec<String> {
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

/// Returns true if the outputs of a batch are recorded.
pub(super) fn is_made(state: &State, stage: &str, batch: &str) -> bool {
    let known = state.stages.get(stage);
    known
        .and_then(|known| known.batches.get(batch))
        .is_some_and(|batch| batch.record.is_some())
}
