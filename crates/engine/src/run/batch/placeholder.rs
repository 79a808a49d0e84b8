//! Writes the declared placeholder of a failed batch in place of its first output.

use crate::run::batch::output_dir::ScratchFile;
use crate::run::batch::stage_context::{Produced, StageContext, add_marker, content};
use crate::run::check::validate;
use crate::steps::cancel::CancelToken;
use crate::steps::worker::JqWorkers;
use milepost_core::model::call::Spent;
use milepost_core::model::money::NanoUsd;
use milepost_core::model::outcome::Outcome;
use milepost_core::model::record::Made;
use milepost_core::plan::scan::BatchScan;
use milepost_store::store::scratch::Scratch;
use serde_json::{Value, json};
use std::io::Write;
use std::sync::Arc;

/// Writes the placeholder of a batch that failed with this outcome, after calls that cost this much.
///
/// # Errors
/// The outcome, if the stage declares no placeholder or the placeholder fails too.
pub(crate) fn placeholder(
    stage_ctx: &StageContext<'_>,
    found: &BatchScan,
    scratch: &Scratch,
    outcome: Outcome,
    spent: Spent,
) -> Result<Produced, Outcome> {
    let (Some(program), Some(output)) = (
        &stage_ctx.stage.policy.placeholder,
        stage_ctx.stage.outputs.first(),
    ) else {
        return Err(outcome);
    };
    let failed = |error: &dyn std::fmt::Display| {
        let mut outcome = outcome.clone();
        outcome
            .details
            .push(format!("its placeholder failed too: {error}"));
        outcome.for_record(stage_ctx.ctx.redactor)
    };
    let input = json!({
        "outcome": outcome.kind.name(), "error_code": outcome.code, "message": outcome.message, "usage": usage(&spent),
    });
    let value = program
        .one(
            input,
            &found.base(
                stage_ctx.ctx.pipeline,
                stage_ctx.ctx.settings,
                stage_ctx.ctx.moment(),
            ),
            &JqWorkers::new(
                stage_ctx.stage,
                &CancelToken::new(Arc::clone(&stage_ctx.stopped)),
            ),
        )
        .map_err(|error| failed(&error))?;
    let path = found
        .targets
        .get(&output.name)
        .ok_or_else(|| failed(&"its output has no path"))?;
    let mut sink = scratch.sink(path).map_err(|error| failed(&error))?;
    serde_json::to_writer_pretty(&mut sink, &value).map_err(|error| failed(&error))?;
    sink.write_all(b"\n").map_err(|error| failed(&error))?;
    sink.finish().map_err(|error| failed(&error))?;
    if let Some(schema) = &output.schema {
        let source = ScratchFile::new(scratch, path);
        validate::file(stage_ctx.schemas, schema, &source, None, 1)
            .map_err(|wrong| failed(&wrong.message))?;
    }
    let (digest, size) = content(scratch, path)?;
    let mut files = vec![(
        Made {
            name: output.name.clone(),
            path: path.clone(),
            digest,
            size,
        },
        scratch.inside(path),
    )];
    add_marker(stage_ctx, found, scratch, &mut files)?;
    Ok(Produced {
        files,
        sent: outcome.accepted.as_ref().map(|_| outcome.message.clone()),
        placeholder: Some(outcome),
        ..Produced::default()
    })
}

/// Returns `input_tokens`, `output_tokens` and `cost_usd` of the calls; null if unknown.
fn usage(spent: &Spent) -> Value {
    let tokens = (spent.estimated == 0).then_some(spent.usage);
    let cost = (spent.unpriced == 0).then_some(spent.cost);
    json!({
        "input_tokens": tokens.map(|usage| usage.total_input()),
        "output_tokens": tokens.map(|usage| usage.output),
        "cost_usd": cost.map(NanoUsd::dollars),
    })
}
