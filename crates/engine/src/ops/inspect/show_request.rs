//! Shows the first request that a batch would send to an agent. Nothing is sent or written.

use crate::ops::plan::simulation::Simulation;
use crate::ops::project::error::OpsError;
use crate::ops::project::open::open;
use crate::ops::project::open_project::state_for_reading;
use crate::ops::project::request::Request;
use crate::run::agents::estimate::CostEstimator;
use crate::run::check::batch_scanner::Keep;
use milepost_core::model::money::NanoUsd;
use milepost_core::plan::options::RunOptions;
use milepost_core::plan::selection::{Selection, Target};
use serde::Serialize;
use serde_json::Value;

/// The first request of a batch, if it sends one.
#[derive(Debug, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct FirstRequest {
    /// The batch as `STAGE/BATCH`.
    pub batch: String,
    /// The request; `None` if nothing is sent.
    pub request: Option<ShownRequest>,
    /// Why nothing is sent, or the request cannot be known before the batch runs.
    pub why_not: Option<String>,
}

/// A request, with its estimate.
#[derive(Debug, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct ShownRequest {
    /// The agent's name.
    pub agent: String,
    /// The provider and model in one line.
    pub provider: String,
    /// The number of questions.
    pub questions: u64,
    /// The tokens it probably has.
    pub likely_input: u64,
    /// Maximum tokens of the answer; 0 without a declared limit.
    pub most_output: u64,
    /// The amount that a budget reserves for it; `None` without a known price.
    pub most: Option<NanoUsd>,
    /// The body of the request; of a command line its input.
    pub body: Value,
}

/// Returns the first request that a batch would send.
///
/// # Errors
/// When there is no such batch, the declarations are wrong, or the workspace cannot be read.
pub fn show_request(request: &Request, target: &str) -> Result<FirstRequest, OpsError> {
    let opened = open(request)?;
    let parsed = Target::parse(&opened.pipeline, target)?;
    let key = parsed.batch.as_deref().unwrap_or_default();
    let stage = opened.stage(&parsed.stage)?;
    let known = state_for_reading(&opened)?;
    let everything = Selection::default();
    let mut simulation = Simulation::new(&opened, &known, &everything, None);
    let found = simulation
        .scan(stage, Keep::And(key))
        .map_err(OpsError::World)?;
    let batches: Vec<&str> = found
        .batches
        .iter()
        .map(|batch| batch.batch.key.as_str())
        .collect();
    let Some(batch) = found.batches.iter().find(|batch| batch.batch.key == key) else {
        return Err(OpsError::Usage(match (key, batches.as_slice()) {
            (_, []) => format!(
                "stage `{}` has no batches yet: run the stages before it first, with `{}`",
                stage.name,
                request.invocation.run(&["--until-paid"])
            ),
            ("", [first, ..]) => format!(
                "name a batch of stage `{}`, such as {0}/{first}",
                stage.name
            ),
            (_, [first, ..]) => format!(
                "stage `{}` has no batch `{key}`: it has {first} and {} more",
                stage.name,
                batches.len() - 1
            ),
        }));
    };
    let agents = opened.planned_agents(request)?;
    let estimator = CostEstimator::new(opened.context(), &agents, &RunOptions::default());
    let request = estimator.request(stage, batch).map_err(OpsError::World)?;
    let (shown, why_not) = match request {
        Ok(request) => {
            let body = opened.redactor.bytes(&request.body);
            let body = String::from_utf8_lossy(&body);
            let shown = ShownRequest {
                agent: request.sent.agent,
                provider: request.sent.provider,
                questions: request.sent.questions,
                likely_input: request.sent.likely_input,
                most_output: request.sent.most_output,
                most: request.sent.reserved,
                body: serde_json::from_str(&body).unwrap_or_else(|_| body.into_owned().into()),
            };
            (Some(shown), None)
        }
        Err(why) => (None, Some(why)),
    };
    Ok(FirstRequest {
        batch: target.to_owned(),
        request: shown,
        why_not,
    })
}
