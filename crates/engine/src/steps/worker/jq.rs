//! The evaluator of jq programs: workers, or a thread of this process if the program has none.

use super::work::{JqInput, JqValues};
use super::{Work, perform};
use crate::steps::batch_context::parse_failure;
use crate::steps::cancel::CancelToken;
use milepost_core::expr::jq::{Evaluation, Evaluator, JqError, Limit};
use milepost_core::expr::scope::Scope;
use milepost_core::model::outcome::{Outcome, OutcomeKind};
use milepost_core::model::stage::{Program, Stage};
use milepost_core::model::step::PROGRAM_TIMEOUT;
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Evaluates programs in workers. The default has no limit of a stage, and nothing cancels it.
#[derive(Debug, Default)]
pub struct JqWorkers {
    /// The limit that the stage declares, in bytes.
    memory: Option<u64>,
    cancel: Arc<CancelToken>,
    /// The outcome of the last program that a limit ended. Errors of programs pass through readers that know texts only.
    ended: Mutex<Option<Outcome>>,
}

impl JqWorkers {
    /// Returns the evaluator for a stage. Programs end when the token is cancelled.
    pub(crate) fn new(stage: &Stage, cancel: &Arc<CancelToken>) -> Self {
        Self {
            memory: stage.policy.memory,
            cancel: Arc::clone(cancel),
            ended: Mutex::default(),
        }
    }

    /// Returns the only output of a program over a scope.
    ///
    /// # Errors
    /// When a file that the program mentions cannot be read; errors of the program; the outcomes `memory` and `crash` if it takes
    /// too much memory or stack; `timeout` if the token is cancelled.
    pub(crate) fn one(&self, program: &Program, scope: &Scope) -> Result<Value, Outcome> {
        let found = scope.one(&program.jq, self)?;
        self.named(found.map_err(parse_failure))
    }

    /// Returns a result, or the outcome of a program that a limit ended meanwhile.
    ///
    /// # Errors
    /// The error of `result`, or the outcome of the program.
    pub(crate) fn named<T>(&self, result: Result<T, Outcome>) -> Result<T, Outcome> {
        self.ended().take().map_or(result, Err)
    }
}

impl JqWorkers {
    fn ended(&self) -> MutexGuard<'_, Option<Outcome>> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Evaluator for JqWorkers {
    fn evaluate(
        &self,
        evaluation: Evaluation<'_>,
    ) -> Result<Vec<Result<Vec<Value>, String>>, JqError> {
        let failed =
            |error: serde_json::Error| JqError::running(evaluation.jq.name(), &error.to_string());
        let raw = |text: &Cow<'_, str>| RawValue::from_string(text.clone().into_owned());
        let inputs = evaluation.inputs.iter().map(|input| {
            Ok(JqInput {
                value: raw(&input.value)?,
                variables: input.variables.iter().map(raw).collect::<Result<_, _>>()?,
            })
        });
        let work = Work::Jq {
            program: JqValues::new(evaluation.jq, evaluation.vars).map_err(failed)?,
            set: evaluation.set.iter().map(|&name| name.to_owned()).collect(),
            inputs: inputs.collect::<Result<_, _>>().map_err(failed)?,
            only: evaluation.only,
        };
        let cancel = self.cancel.or_within(PROGRAM_TIMEOUT);
        let found: Vec<Result<Vec<Box<RawValue>>, String>> =
            perform(work, self.memory, &cancel, "", &mut std::io::sink()).map_err(|outcome| {
                let limit = match outcome.kind {
                    OutcomeKind::Memory => Limit::Memory,
                    OutcomeKind::Timeout => Limit::Time,
                    OutcomeKind::Crash => Limit::Crash,
                    _ => return JqError::running(evaluation.jq.name(), &outcome.message),
                };
                let error = JqError::limited(limit, &outcome.message);
                self.ended().replace(outcome);
                error
            })?;
        let values = |found: Vec<Box<RawValue>>| {
            // Each has the depth that JSON may have.
            let values = found.iter().map(|raw| serde_json::from_str(raw.get()));
            values
                .collect::<Result<_, _>>()
                .map_err(|error| error.to_string())
        };
        Ok(found
            .into_iter()
            .map(|found| found.and_then(values))
            .collect())
    }
}
