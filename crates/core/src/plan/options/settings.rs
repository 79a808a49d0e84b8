//! The values of a run: parameters, environment, workspace, and replaced agents.

use crate::model::agent::Agent;
use crate::model::fingerprint::FactValue;
use crate::model::pipeline::Pipeline;
use crate::model::record::Override;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The values that every scope has besides a stage's own names.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Parameters with their values.
    pub params: Map<String, Value>,
    /// Declared environment variables with their values.
    pub env: BTreeMap<String, String>,
    /// `name`, `created`, `slug`, `session_id` and, deprecated, `today`.
    pub workspace: Map<String, Value>,
    /// `--agent NAME=OTHER`.
    pub agents: BTreeMap<String, String>,
    /// The programs outside the project that commands name, as facts; those that were not found are missing.
    pub programs: BTreeMap<String, FactValue>,
    /// The version of Milepost.
    pub version: String,
    /// The accepted modifications that the current stage reports; empty outside of a stage.
    pub overrides: Vec<Override>,
}

impl Settings {
    /// Returns the agent that answers under this name, after `--agent`.
    pub fn agent<'a>(&self, pipeline: &'a Pipeline, name: &str) -> Option<&'a Agent> {
        let name = self.agents.get(name).map_or(name, String::as_str);
        pipeline.agents.get(name)
    }

    /// Returns the values that every scope has, without `paths` and `digests`, which differ by batch.
    pub fn scope(&self, pipeline: &Pipeline) -> Map<String, Value> {
        let agents: Map<String, Value> = pipeline
            .agents
            .keys()
            .filter_map(|name| {
                let agent = self.agent(pipeline, name)?;
                Some((name.clone(), Value::from(agent.describe())))
            })
            .collect();
        let mut scope = Map::new();
        scope.insert("params".into(), Value::Object(self.params.clone()));
        scope.insert("env".into(), json!(self.env));
        scope.insert("workspace".into(), Value::Object(self.workspace.clone()));
        scope.insert("agents".into(), Value::Object(agents));
        scope.insert("milepost".into(), json!({ "version": self.version }));
        scope
    }
}

/// Returns the value of `run`: the start of an attempt, in UTC.
pub fn run_scope(moment: Timestamp) -> Value {
    let at = moment.to_zoned(TimeZone::UTC);
    json!({
        "date": at.date().to_string(),
        "time": at.strftime("%H:%M:%S").to_string(),
        "timestamp": at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
    })
}
