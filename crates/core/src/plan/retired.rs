//! The files that a run moves to quarantine because nothing makes them any more, as far as a plan can tell.

use crate::base::glob::is_starred;
use crate::base::path::RelPath;
use crate::model::record::Made;
use crate::model::stage::Stage;
use crate::model::state::{BatchState, StageState};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// Names whose values are known before a batch runs.
const KNOWN: [&str; 5] = ["params", "env", "workspace", "agents", "milepost"];

/// Returns the files of the batches that are gone, with the batch of each.
pub fn of_gone<'a>(known: &'a StageState, gone: &'a [String]) -> Vec<(&'a str, &'a RelPath)> {
    let batches = gone
        .iter()
        .filter_map(|key| Some((key.as_str(), known.batches.get(key)?)));
    batches
        .flat_map(|(key, batch)| batch.files().map(move |path| (key, path)))
        .collect()
}

/// Returns the files that a batch made and will not make when it runs: an output that is no longer declared, has another path, or
/// whose steps are all skipped by conditions that are known before they run. Outputs of steps that run, and files of a `*`, are not
/// known.
pub(crate) fn of_batch<'a>(
    stage: &Stage,
    batch: &'a BatchState,
    targets: &BTreeMap<String, RelPath>,
    scope: &Map<String, Value>,
) -> Vec<&'a RelPath> {
    let Some(record) = &batch.record else {
        return Vec::new();
    };
    let skipped = skipped(stage, scope);
    let leaves = |made: &&Made| match targets.get(&made.name) {
        None => true,
        Some(_) if stage.keeps_former(&made.name) => false,
        Some(_) if skipped.contains(made.name.as_str()) => true,
        Some(target) => !is_starred(target) && *target != made.path,
    };
    let outputs = record.outputs.iter().filter(leaves);
    outputs.map(|made| &made.path).collect()
}

/// Returns the outputs all of whose steps have a `when` that is false by what is known before they run.
fn skipped<'a>(stage: &'a Stage, scope: &Map<String, Value>) -> BTreeSet<&'a str> {
    let is_skipped = |out: &str| {
        let mut steps = stage.steps.iter().filter(|step| step.out == out).peekable();
        let is_made = steps.peek().is_some();
        is_made
            && steps.all(|step| {
                let Some(when) = &step.when else {
                    return false;
                };
                let mut names = when.jq.roots().dotted().iter();
                let is_known = names.all(|name| {
                    let root = name.split('.').next().unwrap_or_default();
                    KNOWN.contains(&root)
                });
                if !is_known || when.jq.takes_whole() || !when.jq.is_bounded() {
                    return false;
                }
                let input = Value::Object(scope.clone());
                let given = when.jq.one(input, &when.values(scope));
                matches!(given, Ok(Value::Bool(false)))
            })
    };
    let names = stage.outputs.iter().map(|output| output.name.as_str());
    names.filter(|name| is_skipped(name)).collect()
}
