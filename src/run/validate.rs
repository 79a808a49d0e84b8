//! Judges what was made: schemas, conservation, checks.

use super::context::Context;
use super::scopes;
use super::survey::Surveyed;
use crate::base::path::RelPath;
use crate::base::source::Source;
use crate::check::conserve::conserve;
use crate::check::schema::{Schema, Violation};
use crate::check::schemas::Schemas;
use crate::expr::scope::{Format, Scope, lines};
use crate::expr::select::Select;
use crate::model::outcome::{Outcome, OutcomeKind};
use crate::model::pipeline::Asset;
use crate::model::record::Opinion;
use crate::model::stage::{Program, Stage};
use crate::steps::alarm::Alarm;
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::BufReader;
use std::sync::Arc;

/// Violations that are kept of one file.
const KEPT: usize = 20;

/// Judges one file by a schema; `stream` names the array that is judged item by item. Gives the number of its items.
///
/// # Errors
/// The violations, as an outcome.
pub fn file(
    schemas: &Schemas,
    asset: &Asset,
    source: &dyn Source,
    stream: Option<&Select>,
) -> Result<u64, Outcome> {
    let schema = compiled(schemas, asset)?;
    let opened = source.open().map_err(|error| {
        let message = format!("`{}` cannot be read: {error}", source.name());
        Outcome::new(OutcomeKind::Output, message)
    })?;
    let found = schema
        .validate_stream(BufReader::with_capacity(1 << 16, opened), stream, KEPT)
        .map_err(|error| Outcome::new(OutcomeKind::Schema, error.to_string()))?;
    refuse(&source.name(), asset, &found.violations)?;
    Ok(found.items)
}

fn compiled(schemas: &Schemas, asset: &Asset) -> Result<Arc<Schema>, Outcome> {
    let found = schemas.get(asset);
    found.map_err(|error| Outcome::new(OutcomeKind::Schema, error.to_string()))
}

/// Judges the inputs of a batch that have a schema.
///
/// # Errors
/// The violations, as an outcome.
pub fn inputs(
    ctx: &Context<'_>,
    stage: &Stage,
    found: &Surveyed,
    schemas: &Schemas,
    alarm: &Arc<Alarm>,
) -> Result<(), Outcome> {
    for resolved in &found.inputs {
        let Some(declared) = stage.input(&resolved.name) else {
            continue;
        };
        let Some(schema) = &declared.schema else {
            continue;
        };
        for (source, format) in scopes::files(ctx, declared, &resolved.files, alarm)? {
            input(schemas, schema, &*source, format)?;
        }
    }
    Ok(())
}

/// The schema of a table is that of one row, as the schema of NDJSON is that of one line.
fn input(
    schemas: &Schemas,
    schema: &Asset,
    source: &dyn Source,
    format: Format,
) -> Result<(), Outcome> {
    if matches!(format, Format::Json) {
        return file(schemas, schema, source, None).map(|_| ());
    }
    let compiled = compiled(schemas, schema)?;
    let content = crate::expr::scope::parse(&source.name(), source, format)
        .map_err(|error| Outcome::new(OutcomeKind::Input, error.to_string()))?;
    let rows = match content {
        Value::Array(rows) if matches!(format, Format::Csv | Format::Ndjson) => rows,
        other => vec![other],
    };
    self::rows(&compiled, &schema.path, source, format, &rows)
}

/// Judges the rows of a table or of NDJSON, each by the schema; what is wrong is named by its line.
///
/// # Errors
/// The violations, as an outcome.
fn rows(
    schema: &Schema,
    path: &RelPath,
    source: &dyn Source,
    format: Format,
    rows: &[Value],
) -> Result<(), Outcome> {
    let mut found = Vec::new();
    for (number, row) in rows.iter().enumerate() {
        let left = KEPT - found.len();
        let violations = schema.violations(row, "", left).into_iter();
        found.extend(violations.map(|violation| (number, violation)));
        if found.len() >= KEPT {
            break;
        }
    }
    if found.is_empty() {
        return Ok(());
    }
    let lines = lines(source, format).unwrap_or_default();
    let name = source.name();
    let mut details: Vec<String> = Vec::new();
    for (number, violation) in found {
        let field = violation.pointer.trim_start_matches('/');
        let is_column =
            format == Format::Csv && field.is_empty() && violation.keyword == "required";
        let detail = if is_column {
            // What one row lacks, all do.
            let columns = rows.first().and_then(Value::as_object);
            let columns = columns.map(|row| row.keys().map(String::as_str).collect::<Vec<_>>());
            let what = violation.message.replace(" in object", " in the header");
            format!(
                "{name}:1: {what}, which has {}",
                columns.unwrap_or_default().join(", ")
            )
        } else {
            let at = match lines.get(number) {
                Some(line) => format!("{name}:{line}"),
                None => format!("{name}, row {}", number + 1),
            };
            let field = if field.is_empty() {
                String::new()
            } else {
                format!("{field}: ")
            };
            format!("{at}: {field}{}", violation.message)
        };
        if !details.contains(&detail) {
            details.push(detail);
        }
    }
    let first = details.remove(0);
    let message = format!("{first} (by {path})");
    Err(Outcome::new(OutcomeKind::Schema, message).with_details(details))
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
        format!("{at}: {}", violation.message)
    });
    Err(Outcome::new(OutcomeKind::Schema, message).with_details(details.collect()))
}

/// Judges conservation, where these keys are named as failed. Gives the number of elements that came out.
///
/// # Errors
/// What was lost, doubled or invented, as an outcome.
pub fn conservation(
    stage: &Stage,
    scope: &Scope,
    failed: &BTreeSet<String>,
) -> Result<Option<u64>, Outcome> {
    let Some(conserve_of) = &stage.conserve else {
        return Ok(None);
    };
    let found = conserve::<Outcome>(
        &mut |each| {
            scope
                .select(&conserve_of.input, &mut |key| each(&key))
                .map(|_| ())
        },
        &mut |each| {
            scope
                .select(&conserve_of.output, &mut |key| each(&key))
                .map(|_| ())
        },
        failed,
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
    .flat_map(|(what, keys)| keys.first.iter().map(move |key| format!("{what}: {key}")))
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

/// Judges the `[[check]]`s of a stage.
///
/// # Errors
/// The first that is not true, with its declared error.
pub fn checks(stage: &Stage, scope: &Scope) -> Result<(), Outcome> {
    for check in &stage.checks {
        let failed = match value(scope, &check.test) {
            Ok(Value::Bool(true)) => continue,
            Ok(Value::Bool(false)) => None,
            Ok(other) => Some(format!("it gave {other}, where true or false was expected")),
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

/// The value of a program of the stage over the scope: `summary`, `verdict`.
///
/// # Errors
/// When it fails.
pub fn value(scope: &Scope, program: &Program) -> Result<Value, Outcome> {
    let input = scope.input_of(&program.jq)?;
    let vars = scope.vars_of(&program.jq)?;
    program
        .jq
        .one(input, &vars)
        .map_err(|error| Outcome::new(OutcomeKind::Parse, error.to_string()))
}

/// What the stage says of a batch that was made: `said` is what its steps said, which stands where it declares no `summary`.
///
/// # Errors
/// When `summary` or `verdict` fails.
pub fn opinion(stage: &Stage, scope: &Scope, said: Option<Value>) -> Result<Opinion, Outcome> {
    let verdict = stage.verdict.as_ref();
    let verdict = verdict.map(|program| value(scope, program)).transpose()?;
    let (summary, said) = match &stage.summary {
        Some(program) => (Some(value(scope, program)?), said),
        None => (said, None),
    };
    Ok(Opinion {
        summary: summary.map(Box::new),
        said: said.map(Box::new),
        verdict: verdict.map(|verdict| verdict == Value::Bool(true)),
    })
}
