//! The agents of a project, ready to be asked by the stages of a run.

use crate::model::agent::Provider;
use crate::model::pipeline::Pipeline;
use crate::steps::agent::Agents;
use crate::store::calls;
use std::collections::BTreeMap;
use std::path::Path;

/// The agents of a project in a folder, with the keys that they need out of the environment.
///
/// # Errors
/// When the table of prices is wrong: a defect of Milepost.
pub fn agents(
    pipeline: &Pipeline,
    project: &Path,
    environment: &BTreeMap<String, String>,
) -> Result<Agents, String> {
    let mut keys = BTreeMap::new();
    for agent in pipeline.agents.values() {
        if let Provider::Api(api) = &agent.provider
            && let Some(key) = environment.get(&api.key_env)
        {
            keys.insert(api.key_env.clone(), key.clone());
        }
    }
    let project = project.to_owned();
    let replays = Box::new(move |folder: &str| {
        let folder = project.join(folder);
        let all = calls::read(&folder, &|_| true);
        let all = all.map_err(|error| format!("{}: {error}", folder.display()))?;
        let heard = all.into_iter();
        Ok(heard
            .filter_map(|call| Some((call.sent, call.heard?)))
            .collect())
    });
    Agents::new(keys, replays)
}
