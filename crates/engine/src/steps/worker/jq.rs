//! Runs jq programs over foreign values: on a thread of this process if program and values are small, else in a worker.

use super::{Work, perform, pool};
use crate::steps::batch_context::parse_failure;
use crate::steps::cancel::CancelToken;
use milepost_core::model::outcome::Outcome;
use milepost_core::model::stage::Program;
use serde_json::Value;
use serde_json::value::to_raw_value;
use std::sync::Arc;

/// Values beyond this size, in bytes, are given to a worker. A program that is bounded makes at most a power of it.
const SMALL: usize = 16 << 10;

/// Returns the only output of a program. `memory` is the limit that its stage declares, in bytes.
///
/// # Errors
/// Errors of the program; the outcomes `memory` and `crash` if it takes too much memory or stack; `timeout` if the token is
/// cancelled.
pub(crate) fn one(
    program: &Program,
    input: Value,
    vars: Vec<Value>,
    memory: Option<u64>,
    cancel: &Arc<CancelToken>,
) -> Result<Value, Outcome> {
    let mut left = SMALL;
    let mut is_small =
        || fits(&input, &mut left) && vars.iter().all(|value| fits(value, &mut left));
    if pool::pool().is_none() || program.jq.is_bounded() && is_small() {
        let jq = Arc::clone(&program.jq);
        // jq cannot be interrupted, and it owns memory only.
        let value = cancel.run_on_thread(move || jq.one(input, &vars))?;
        return value.map_err(parse_failure);
    }
    let vars = vars.iter().map(to_raw_value).collect::<Result<_, _>>();
    let work = Work::Jq {
        name: program.jq.name().to_owned(),
        source: program.source.to_string(),
        names: program.vars.to_vec(),
        input: to_raw_value(&input).map_err(parse_failure)?,
        vars: vars.map_err(parse_failure)?,
    };
    // A long input is not kept beside its text.
    drop(input);
    perform(work, memory, cancel, "", &mut std::io::sink())
}

/// Returns true if a value takes no more than what is left, and takes it away.
fn fits(value: &Value, left: &mut usize) -> bool {
    let size = match value {
        Value::String(text) => text.len(),
        _ => 8,
    };
    let Some(rest) = left.checked_sub(size) else {
        return false;
    };
    *left = rest;
    match value {
        Value::Array(items) => items.iter().all(|item| fits(item, left)),
        Value::Object(map) => map.iter().all(|(key, item)| {
            *left = left.saturating_sub(key.len());
            fits(item, left)
        }),
        _ => true,
    }
}
