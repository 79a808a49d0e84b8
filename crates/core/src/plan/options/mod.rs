//! The options of a run: the same type from the command line, from an MCP client and from `watch`.

pub mod flags;
pub mod invocation;
pub mod selection;
pub mod settings;

use crate::model::executor::ExecutorName;
use crate::model::money::NanoUsd;
use crate::model::stage::Stage;
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::num::NonZeroU16;
use std::time::Duration;

/// What to run, and how. The default runs every stage that is out of date.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of its own, by its name"
)]
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct RunOptions {
    /// Stages or batches to run, each as STAGE or STAGE/BATCH; none: all stages
    #[cfg_attr(debug_assertions, schemars(with = "Vec<TextOrNumber>"))]
    pub targets: Vec<String>,
    /// Stop after this stage
    #[cfg_attr(debug_assertions, schemars(with = "Option<TextOrNumber>"))]
    pub until: Option<String>,
    /// Run at most this many batches, over all stages
    pub limit: Option<u64>,
    /// Run only batches that failed last time
    pub failed: bool,
    /// Run the selected batches even if they are up to date; files modified by hand go to quarantine
    pub force: bool,
    /// Forget that an earlier `force` did not reach the selected batches, and keep those that are up to date
    pub no_force: bool,
    /// Continue after a batch has failed
    pub keep_going: bool,
    /// Ask agents again, even where an answer is stored
    pub fresh: bool,
    /// Run everything that is free, and make no paid call
    pub until_paid: bool,
    /// Make no call that this run could not pay for from this many dollars, such as "2.50"
    #[serde(deserialize_with = "dollars")]
    #[cfg_attr(debug_assertions, schemars(with = "Option<TextOrNumber>"))]
    pub budget_usd: Option<NanoUsd>,
    /// Batches to run at once, in stages that declare no concurrency
    pub jobs: Option<NonZeroU16>,
    /// Where batches run: `local`, or a scheduler such as `slurm`. It wins over what stages declare; batches that cannot run elsewhere run here
    pub executor: Option<ExecutorName>,
    /// The failures that `watch` knows of: such a batch waits until one of its facts changes. `None`: not a run of `watch`.
    #[serde(skip)]
    pub known_failures: Option<KnownFailures>,
    /// How long to wait for another run in the workspace to end; `None`: not at all
    #[serde(skip)]
    pub wait: Option<Duration>,
    /// Waits that only tests change.
    #[serde(skip)]
    pub timing: Timing,
}

/// The digest of the facts that each batch failed with, by stage and batch.
pub(crate) type KnownFailures = BTreeMap<String, BTreeMap<String, String>>;

/// How long a run waits for other processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// From SIGTERM to SIGKILL.
    pub grace: Duration,
    /// For calls of agents that are in flight when the run is stopped.
    pub calls: Duration,
    /// Before the second attempt.
    pub backoff: Duration,
    /// Between two looks for a file that another process writes.
    pub poll: Duration,
    /// Since the last change of such a file, until it counts as written.
    pub stable: Duration,
    /// Until a service answers for the first time, at most.
    pub ready: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            grace: Duration::from_secs(5),
            calls: Duration::from_secs(30),
            backoff: Duration::from_secs(1),
            poll: Duration::from_secs(5),
            stable: Duration::from_secs(1),
            ready: Duration::from_mins(1),
        }
    }
}

/// Values that replace declared ones. The workspace keeps them.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Values {
    /// Parameters to set for this workspace, each as NAME=VALUE
    pub set: Vec<String>,
    /// Parameters that use their defaults again, each as NAME
    pub unset: Vec<String>,
    /// Agents that answer in place of others, each as NAME=OTHER; NAME=default undoes it
    pub agents: Vec<String>,
}

impl RunOptions {
    /// Returns where the batches of a stage run.
    pub fn executor_of(&self, stage: &Stage) -> ExecutorName {
        if stage.stays_local().is_some() {
            return ExecutorName::LOCAL;
        }
        let declared = self.executor.or(stage.executor);
        declared.unwrap_or(ExecutorName::LOCAL)
    }
}

/// A text that a client may also write as a number: an amount, or the number of a stage.
#[cfg(debug_assertions)]
pub struct TextOrNumber;

#[cfg(debug_assertions)]
impl schemars::JsonSchema for TextOrNumber {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "TextOrNumber".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": ["string", "number"]})
    }
}

/// Reads an amount that is written as text.
fn dollars<'de, D: Deserializer<'de>>(reader: D) -> Result<Option<NanoUsd>, D::Error> {
    let text: Option<String> = Option::deserialize(reader)?;
    let amount = text.as_deref().map(str::parse).transpose();
    amount.map_err(|error| serde::de::Error::custom(format!("`budget_usd`: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_text_in_dollars() {
        let read = serde_json::from_str::<RunOptions>;
        let options = read(r#"{"budget_usd": "2.50"}"#).unwrap();
        assert_eq!(options.budget_usd, Some(NanoUsd(2_500_000_000)));
        let error = read(r#"{"budget_usd": "much"}"#).unwrap_err().to_string();
        assert!(
            error.contains("`budget_usd`: `much` is not an amount"),
            "{error}"
        );
    }
}
