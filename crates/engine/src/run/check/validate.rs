//! Validates inputs and outputs: schemas, conservation, checks.

use crate::run::check::scopes;
use crate::run::context::Context;
use crate::steps::cancel::CancelToken;
use crate::steps::worker::JqWorkers;
use milepost_core::base::in_order::in_order;
use milepost_core::base::redact::Redactor;
use milepost_core::base::source::Source;
use milepost_core::base::visible::visible;
use milepost_core::expr::scope::{Format, Reading, Scope};
use milepost_core::expr::select::Select;
use milepost_core::model::outcome::{Outcome, OutcomeKind};
use milepost_core::model::pipeline::Asset;
use milepost_core::model::record::Opinion;
use milepost_core::model::stage::{Check, Output, Stage};
use milepost_core::plan::scan::BatchScan;
use milepost_store::check::conserve::conserve;
use milepost_store::check::content;
use milepost_store::check::schema::{Schema, SchemaError, Violation};
use milepost_store::check::schemas::Schemas;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The most violations of one file that are kept.
const KEPT: usize = 20;

/// Validates a file by a schema; `stream` selects an array that is validated item by item. Returns the number of its items.
///
/// # Errors
/// The violations, as an outcome.
pub(crate) fn file(
    schemas: &Schemas,
    asset: &Asset,
    source: &dyn Source,
    stream: Option<&Select>,
    threads: usize,
) -> Result<u64, Outcome> {
    let schema = compiled(schemas, asset)?;
    let open = || {
        source.open().map_err(|error| {
            let message = format!("`{}` cannot be read: {error}", source.name());
            Outcome::new(OutcomeKind::Output, message)
        })
    };
    let unusable = |error: SchemaError| Outcome::new(OutcomeKind::Schema, error.to_string());
    let on_threads = match stream.filter(|_| threads > 1) {
        Some(select) => schema
            .validate_items(open()?, select, KEPT, threads)
            .map_err(unusable)?,
        None => None,
    };
    let found = match on_threads {
        Some(found) => found,
        None => schema
            .validate_stream(open()?, stream, KEPT)
            .map_err(unusable)?,
    };
    refuse(&source.name(), asset, &found.violations)?;
    Ok(found.items)
}

fn compiled(schemas: &Schemas, asset: &Asset) -> Result<Arc<Schema>, Outcome> {
    let found = schemas.get(asset);
    found.map_err(|error| Outcome::new(OutcomeKind::Schema, error.to_string()))
}

/// Validates the inputs of a batch that have a schema or declared columns.
///
/// # Errors
/// The violations, as an outcome.
pub(crate) fn inputs(
    ctx: &Context<'_>,
    stage: &Stage,
    found: &BatchScan,
    schemas: &Schemas,
    cancel: &Arc<CancelToken>,
) -> Result<(), Outcome> {
    for resolved in &found.inputs {
        let Some(declared) = stage.input(&resolved.name) else {
            continue;
        };
        if declared.schema.is_none() && declared.columns.is_none() {
            continue;
        }
        for (source, reading) in scopes::files(ctx, declared, &resolved.files, cancel)? {
            match &declared.schema {
                Some(schema) if reading.format == Format::Json => {
                    file(schemas, schema, &*source, None, 1)?;
                }
                schema => content(schemas, schema.as_ref(), &*source, &reading)?,
            }
        }
    }
    Ok(())
}

fn content(
    schemas: &Schemas,
    schema: Option<&Asset>,
    source: &dyn Source,
    reading: &Reading,
) -> Result<(), Outcome> {
    let compiled = schema.map(|schema| compiled(schemas, schema)).transpose()?;
    let schema = compiled.as_deref().zip(schema.map(|schema| &schema.path));
    content::validate(schema, source, reading)
}

/// Validates the files of an output on this many threads, as [`output()`] does each. Returns the number of items.
///
/// # Errors
/// The violations of the first file that has any.
pub(crate) fn outputs(
    schemas: &Schemas,
    declared: &Output,
    sources: &[Arc<dyn Source>],
    threads: usize,
) -> Result<u64, Outcome> {
    if let [source] = sources {
        return output(schemas, declared, &**source, threads);
    }
    let mut items = 0;
    in_order(
        threads.min(sources.len()),
        &|| Box::new(|source: &Arc<dyn Source>| output(schemas, declared, &**source, 1)),
        |each| sources.iter().try_for_each(each),
        &mut |counted: Result<u64, Outcome>| -> Result<(), Outcome> {
            items += counted?;
            Ok(())
        },
    )?;
    Ok(items)
}

/// Validates a file of an output by its schema and declared columns; tables and NDJSON row by row. Without both, the file must be of its
/// format. Returns the number of items
/// that were validated one by one.
///
/// # Errors
/// The violations, as an outcome.
pub(crate) fn output(
    schemas: &Schemas,
    output: &Output,
    source: &dyn Source,
    threads: usize,
) -> Result<u64, Outcome> {
    if output.schema.is_none() && output.columns.is_none() {
        return content::check_format(source, output.format).map(|()| 0);
    }
    if let (Some(schema), Format::Json | Format::Binary) = (&output.schema, output.format) {
        return file(schemas, schema, source, output.stream.as_ref(), threads);
    }
    let judged = content(schemas, output.schema.as_ref(), source, &output.reading());
    judged.map(|()| 0).map_err(|outcome| match outcome.kind {
        // A file that cannot be read in its declared format violates its declaration.
        OutcomeKind::Input => Outcome::new(OutcomeKind::Schema, outcome.message),
        _ => outcome,
    })
}

fn refuse(name: &str, asset: &Asset, violations: &[Violation]) -> Result<(), Outcome> {
    let Some(first) = violations.first() else {
        return Ok(());
    };
    let at = if first.pointer.is_empty() {
        String::new()
    } else {
        format!(" at {}", first.pointer)
    };
    let message = format!(
        "`{name}` does not match {}: {}{at}",
        asset.path, first.message
    );
    let details = violations.iter().map(|violation| {
        let at = if violation.pointer.is_empty() {
            "/"
        } else {
            &violation.pointer
        };
        visible(&format!("{at}: {}", violation.message)).into_owned()
    });
    Err(Outcome::new(OutcomeKind::Schema, message).with_details(details.collect()))
}

/// Checks conservation, except for keys that are recorded as failed. Returns the number of output elements.
///
/// # Errors
/// An outcome with the keys that were lost, duplicated or invented.
pub(crate) fn conservation(
    stage: &Stage,
    scope: &Scope,
    failed: &BTreeSet<String>,
    threads: usize,
) -> Result<Option<u64>, Outcome> {
    let Some(conserve_of) = &stage.conserve else {
        return Ok(None);
    };
    let found = conserve::<Outcome>(
        &|each| {
            scope
                .select(&conserve_of.input, &mut |key| each(&key))
                .map(|_| ())
        },
        &|each| {
            scope
                .select(&conserve_of.output, &mut |key| each(&key))
                .map(|_| ())
        },
        failed,
        threads,
    )
    .map_err(|outcome| Outcome {
        kind: OutcomeKind::Conserve,
        code: "CONSERVE".to_owned(),
        ..outcome
    })?;
    if found.holds() {
        return Ok(Some(found.came_out));
    }
    let details = [
        ("lost", &found.lost),
        ("invented", &found.invented),
        ("doubled", &found.doubled),
    ]
    .into_iter()
    .flat_map(|(what, keys)| {
        keys.first
            .iter()
            .map(move |key| format!("{what}: {}", visible(key)))
    })
    .collect();
    let message = format!(
        "{} went in, {} came out: {} ({} → {})",
        found.went_in,
        found.came_out,
        found.message(),
        conserve_of.input,
        conserve_of.output
    );
    Err(Outcome::new(OutcomeKind::Conserve, message).with_details(details))
}

/// Tests `[[check]]`s or `[[require]]`s.
///
/// # Errors
/// The declared error of the first test that is not true, with details if the test itself failed.
pub(crate) fn checks(checks: &[Check], scope: &Scope, workers: &JqWorkers) -> Result<(), Outcome> {
    for check in checks {
        let failed = match workers.one(&check.test, scope) {
            Ok(Value::Bool(true)) => continue,
            Ok(Value::Bool(false)) => None,
            Ok(other) => Some(format!("expected true or false, found {other}")),
            Err(outcome) if outcome.is_about_limits() => return Err(outcome),
            Err(outcome) => Some(outcome.message),
        };
        let message = match &check.message {
            Some(template) => {
                let values = scope.context_of(template)?;
                template
                    .render(&values)
                    .unwrap_or_else(|error| error.to_string())
            }
            None => format!("`{}` is not true", check.test.source.trim()),
        };
        let mut outcome = Outcome::new(OutcomeKind::Check, message);
        outcome.code.clone_from(&check.error);
        outcome.details.extend(failed);
        return Err(outcome);
    }
    Ok(())
}

/// Returns the summary, without keys, and the verdict of a batch. `said` is the summary of its steps, which is used if the stage
/// declares none.
///
/// # Errors
/// When `summary` or `verdict` fails.
pub(crate) fn opinion(
    stage: &Stage,
    scope: &Scope,
    said: Option<Value>,
    workers: &JqWorkers,
    redactor: &Redactor,
) -> Result<Opinion, Outcome> {
    let verdict = stage.verdict.as_ref();
    let verdict = verdict.map(|program| workers.one(program, scope));
    let verdict = verdict.transpose()?;
    let (summary, said) = match &stage.summary {
        Some(program) => (Some(workers.one(program, scope)?), said),
        None => (said, None),
    };
    let without_keys = |mut value: Value| {
        redactor.known_value(&mut value);
        Box::new(value)
    };
    Ok(Opinion {
        summary: summary.map(without_keys),
        said: said.map(without_keys),
        verdict: verdict.map(|verdict| verdict == Value::Bool(true)),
    })
}
