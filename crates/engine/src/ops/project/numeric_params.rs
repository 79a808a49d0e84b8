//! Parameters used as counts, durations and words: checks the values of `--set` and of the workspace. Defaults are checked with the
//! declarations.

use crate::ops::project::error::OpsError;
use crate::ops::project::open_project::OpenProject;
use milepost_core::model::param::shown_setting;
use milepost_core::model::policy::Concurrency;
use milepost_core::model::stage::{EachSource, ExpressionError, Stage, Templated};
use milepost_core::model::step::Part;
use std::collections::BTreeSet;
use std::time::Duration;

/// Checks the parameters with another value than the default that declarations use as a count, a duration or a word.
///
/// # Errors
/// When a value is not a count, duration or known word.
pub(crate) fn check(opened: &OpenProject) -> Result<(), OpsError> {
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

/// Returns the error of a value that depends on `--set` or on a stored value, and on nothing that is known later.
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
    let stored = &opened.workspace.identity.params;
    let setting = |name: &String| {
        let name = name.strip_prefix("params.")?.split('.').next()?;
        if let Some(value) = opened.set.get(name) {
            return Some(format!("`--set {}`", shown_setting(name, value)));
        }
        let value = stored.get(name).filter(|_| !opened.unset.contains(name))?;
        let value = shown_setting(name, value);
        Some(format!(
            "`{value}`, which this workspace stores (`--unset {name}` restores the default)"
        ))
    };
    let settings: BTreeSet<String> = names.iter().filter_map(setting).collect();
    if settings.is_empty() || !names.iter().all(known) {
        return Ok(());
    }
    let settings: Vec<String> = settings.into_iter().collect();
    Err(OpsError::Usage(format!("{}: {why}", settings.join(", "))))
}
