//! The agents of a project.

use crate::run::context::Context;
use crate::steps::agent::{AgentError, StageAgents};
pub(crate) use crate::steps::agent::{Agents, Purpose};
use milepost_core::model::agent::Provider;
use milepost_core::model::pipeline::Pipeline;
use milepost_core::model::stage::Stage;
use milepost_store::store::calls;
use std::collections::BTreeMap;
use std::path::Path;

/// Returns the agents of a project, with their keys from the environment.
///
/// # Errors
/// When the prices are invalid.
pub(crate) fn agents(
    purpose: Purpose,
    pipeline: &Pipeline,
    project: &Path,
    environment: &BTreeMap<String, String>,
) -> Result<Agents, AgentError> {
    let mut keys = BTreeMap::new();
    for agent in pipeline.agents.values() {
        if let Provider::Api(api) = &agent.provider
            && let Some(key) = environment.get(&api.key_env)
        {
            keys.insert(api.key_env.clone(), key.clone());
        }
    }
    let (project, replayed) = (project.to_owned(), project.to_owned());
    let replays = Box::new(move |folder: &str| {
        let folder = replayed.join(folder);
        let all = calls::read(&folder);
        let all = all.map_err(|error| AgentError::Replay {
            folder: folder.display().to_string(),
            why: error.to_string(),
        })?;
        let calls = all.into_iter();
        Ok(calls
            .filter_map(|call| Some((call.sent, call.response?)))
            .collect())
    });
    Agents::new(purpose, keys, pipeline.prices.as_ref(), replays, project)
}

/// Returns the agents of a stage, ready to answer.
///
/// # Errors
/// When an agent is not declared or unavailable.
pub(crate) fn of_stage(
    ctx: &Context<'_>,
    stage: &Stage,
    all: &Agents,
) -> Result<StageAgents, String> {
    let mut asked = Vec::new();
    for step in &stage.steps {
        if let Some(asking) = step.kind.agent() {
            let agent = &asking.agent;
            let found = ctx.settings.agent(ctx.pipeline, agent);
            asked.push((
                agent.as_str(),
                found.ok_or_else(|| format!("there is no agent `{agent}`"))?,
            ));
        }
    }
    all.of(asked).map_err(|error| error.to_string())
}
