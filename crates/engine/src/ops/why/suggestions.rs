//! Suggests names similar to one that is not known.

use crate::ops::project::error::OpsError;
use crate::ops::project::open_project::OpenProject;
use milepost_core::model::stage::PathTemplate;
use milepost_core::model::state::State;
use milepost_core::plan::expand::batch_name;
use milepost_core::plan::lineage;

/// The most names suggested.
const SUGGESTED: usize = 3;

/// Returns the error for an unknown name, with the most similar names.
pub(super) fn unknown(opened: &OpenProject, state: &State, what: &str) -> OpsError {
    let mut names: Vec<String> = Vec::new();
    for stage in &opened.pipeline.stages {
        names.push(stage.name.clone());
        if let Some(known) = state.stages.get(&stage.name) {
            names.extend(
                known
                    .batches
                    .keys()
                    .map(|batch| batch_name(&stage.name, batch)),
            );
        }
        let paths = lineage::reads(stage).into_iter().map(PathTemplate::shown);
        names.extend(paths.filter(|path| !path.contains(['*', '{'])));
    }
    for stage in state.stages.values() {
        names.extend(stage.outputs().map(|(_, made)| made.path.to_string()));
    }
    let mut near: Vec<(f64, String)> = names
        .into_iter()
        .map(|name| (strsim::jaro_winkler(what, &name), name))
        .filter(|(score, _)| *score > 0.75)
        .collect();
    near.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    near.dedup();
    let best = near.first().map_or(0.0, |(score, _)| *score);
    near.retain(|(score, _)| *score > best - 0.1);
    let near: Vec<String> = near
        .into_iter()
        .take(SUGGESTED)
        .map(|(_, name)| format!("`{name}`"))
        .collect();
    let hint = if near.is_empty() {
        "name a stage, a batch as STAGE/BATCH, or a file of the workspace".to_owned()
    } else {
        format!("did you mean {}?", near.join(" or "))
    };
    OpsError::Usage(format!(
        "`{what}` is not a stage, a batch or a known file: {hint}"
    ))
}
