//! Validates again, without a run, what was made under other schemas or checks.

use super::context::Context;
use super::engine::RunError;
use super::keeper::Keeper;
use super::scopes;
use super::survey::{Survey, Surveyed};
use super::validate::{self, Schemas};
use crate::base::path::FilePath;
use crate::model::event::{Event, EventType};
use crate::model::outcome::Outcome;
use crate::model::record::Made;
use crate::model::stage::Stage;
use crate::plan::decide::Decision;
use std::collections::BTreeSet;

/// Judges what must be judged. Gives the places of batches that no longer hold, and how many do.
///
/// # Errors
/// When the journal cannot be written.
pub fn rejudge(
    keeper: &mut Keeper<'_>,
    stage: &Stage,
    survey: &Survey,
    schemas: &Schemas,
) -> Result<(BTreeSet<usize>, u64), RunError> {
    let mut invalid = BTreeSet::new();
    let mut valid = Vec::new();
    for (index, found) in survey.batches.iter().enumerate() {
        if !matches!(found.decision, Ok(Decision::Judge(_))) {
            continue;
        }
        let outputs = recorded(keeper, stage, found);
        match holds(&keeper.ctx, stage, found, outputs, schemas) {
            Ok(()) => valid.push(found.batch.key.clone()),
            Err(_) => {
                invalid.insert(index);
            }
        }
    }
    let count = valid.len() as u64;
    if count > 0 {
        // The checkpoint names the schemas, and the digest of a manifest that changes with this.
        super::retire::remove_checkpoints(keeper, &stage.name)?;
        let summary = format!(
            "{}: {count} batches were validated again and hold",
            stage.name
        );
        let event = Event::Judged {
            stage: stage.name.clone(),
            shared: survey.shared_id.clone(),
            facts: (*survey.shared).clone(),
            batches: valid,
        };
        keeper.record(
            EventType::Review,
            super::commit::agent(stage),
            event,
            summary,
            Vec::new(),
        )?;
    }
    Ok((invalid, count))
}

/// What is recorded as made of a batch.
fn recorded<'a>(keeper: &'a Keeper<'_>, stage: &Stage, found: &Surveyed) -> &'a [Made] {
    let known = keeper.state.stages.get(&stage.name);
    known
        .and_then(|known| known.batches.get(&found.batch.key)?.record.as_ref())
        .map_or(&[], |record| &record.outputs)
}

/// Whether these outputs of a batch hold as they lie there.
///
/// # Errors
/// How they do not.
pub fn holds(
    ctx: &Context<'_>,
    stage: &Stage,
    found: &Surveyed,
    outputs: &[Made],
    schemas: &Schemas,
) -> Result<(), Outcome> {
    let mut scope = scopes::of_inputs(ctx, stage, found)?;
    for output in &stage.outputs {
        let mut there = Vec::new();
        for made in outputs.iter().filter(|made| made.name == output.name) {
            let file = scopes::source(ctx, &FilePath::workspace(made.path.clone()))?;
            if let Some(schema) = &output.schema {
                validate::file(schemas, schema, &*file, output.stream.as_ref())?;
            }
            there.push((file, output.format));
        }
        scopes::insert(&mut scope, &output.name, output.is_many(), there);
    }
    validate::conservation(stage, &scope)?;
    validate::checks(stage, &scope)
}
