//! Parameters used as counts, durations and words: checks the values that `--set` gives them.

use crate::ops::project::error::OpsError;
use crate::ops::project::open_project::OpenProject;
use milepost_core::model::policy::Concurrency;
use milepost_core::model::stage::{EachSource, ExpressionError, Stage, Templated};
use milepost_core::model::step::Part;
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::Duration;

/// Checks the set parameters that declarations use as a count, a duration or a word.
///
/// # Errors
/// When a value is no count, duration or known word.
pub(crate) fn check(opened: &OpenProject) -> Result<(), OpsError> {
    if opened.set.is_empty() {
        return Ok(());
    }
    let scope = opened.settings.scope(&opened.pipeline);
    for stage in &opened.pipeline.stages {
        for count in counts(stage) {
            refuse(opened, count, count.number(&scope).map(|_| ()))?;
        }
        for time in times(stage) {
            refuse(opened, time, time.duration(&scope).map(|_| ()))?;
        }
        for step in &stage.steps {
            for (_, part) in step.kind.parts() {
                if let Part::Geometry(word) = part {
                    refuse(opened, word, word.geometry(&scope).map(|_| ()))?;
                }
            }
        }
    }
    Ok(())
}

fn counts(stage: &Stage) -> Vec<&Templated<u64>> {
    let mut found = Vec::new();
    for each in &stage.each {
        if let EachSource::Count(count) = &each.source {
            found.push(count);
        }
    }
    for step in &stage.steps {
        for (_, part) in step.kind.parts() {
            if let Part::Count(count) = part {
                found.push(count);
            }
        }
    }
    match &stage.policy.concurrency {
        Some(Concurrency::Batches(count) | Concurrency::Values(_, count)) => found.push(count),
        None => {}
    }
    found.extend(stage.refine.iter().map(|refine| &refine.max_iterations));
    found
}

fn times(stage: &Stage) -> impl Iterator<Item = &Templated<Duration>> {
    let steps = stage.steps.iter().filter_map(|step| step.timeout.as_ref());
    steps.chain(&stage.policy.timeout)
}

/// Returns the error of a value that depends only on `--set`.
fn refuse<T>(
    opened: &OpenProject,
    value: &Templated<T>,
    came: Result<(), ExpressionError>,
) -> Result<(), OpsError> {
    let (Templated::Template(template), Err(why)) = (value, came) else {
        return Ok(());
    };
    let names = template.names();
    // A value that depends on the batch is checked with the batch.
    let known = |name: &String| {
        let first = name.split('.').next().unwrap_or_default();
        ["params", "env", "workspace"].contains(&first)
    };
    let set: BTreeSet<&str> = names
        .iter()
        .filter_map(|name| name.strip_prefix("params.")?.split('.').next())
        .filter(|name| opened.set.contains_key(*name))
        .collect();
    if set.is_empty() || !names.iter().all(known) {
        return Ok(());
    }
    let shown = |name: &&str| match opened.set.get(*name) {
        Some(Value::String(text)) => format!("`--set {name}={text}`"),
        other => format!("`--set {name}={}`", other.unwrap_or(&Value::Null)),
    };
    let settings: Vec<String> = set.iter().map(shown).collect();
    Err(OpsError::Usage(format!("{}: {why}", settings.join(", "))))
}
