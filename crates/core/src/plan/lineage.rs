//! The stages that a stage reads from, and those that read from it.

use crate::base::glob::may_meet;
use crate::base::path::Root;
use crate::model::pipeline::Pipeline;
use crate::model::stage::{EachSource, InputSource, PathTemplate, Stage};

/// Returns the paths and patterns that a stage reads, as declared.
pub fn reads(stage: &Stage) -> Vec<&PathTemplate> {
    let each = stage.each.iter().filter_map(|each| match &each.source {
        EachSource::Path(path) => Some(path),
        EachSource::From { file, .. } => Some(file),
        EachSource::Values(_) | EachSource::Count(_) => None,
    });
    let inputs = stage.inputs.iter().map(|input| match &input.source {
        InputSource::Path(path) => path,
        InputSource::From { file, .. } => file,
    });
    each.chain(inputs).chain(&stage.reads).collect()
}

/// Returns the earlier stages whose outputs can match a pattern.
pub fn writers<'a>(pipeline: &'a Pipeline, before: &Stage, pattern: &str) -> Vec<&'a Stage> {
    let earlier = pipeline
        .stages
        .iter()
        .filter(|stage| stage.number < before.number);
    earlier.filter(|stage| writes(stage, pattern)).collect()
}

/// Returns true if a stage writes something that matches a pattern over the workspace.
pub(crate) fn writes(stage: &Stage, pattern: &str) -> bool {
    let outputs = stage
        .outputs
        .iter()
        .map(|output| &output.path)
        .chain(&stage.marker);
    outputs
        .into_iter()
        .any(|path| may_meet(&path.pattern(), pattern))
}

/// Returns the earlier stages that a stage reads from, each once, by number.
pub fn upstream<'a>(pipeline: &'a Pipeline, stage: &Stage) -> Vec<&'a Stage> {
    let earlier = pipeline
        .stages
        .iter()
        .filter(|other| other.number < stage.number);
    let patterns: Vec<String> = reads(stage)
        .into_iter()
        .filter(|path| path.root == Root::Workspace)
        .map(PathTemplate::pattern)
        .collect();
    earlier
        .filter(|other| patterns.iter().any(|pattern| writes(other, pattern)))
        .collect()
}

/// Returns the earlier stages that a stage reads from, directly or through others, by number.
pub(crate) fn ancestors<'a>(pipeline: &'a Pipeline, stage: &Stage) -> Vec<&'a Stage> {
    let mut found: Vec<&Stage> = upstream(pipeline, stage);
    let mut next = 0;
    while next < found.len() {
        for up in upstream(pipeline, found[next]) {
            if !found.iter().any(|known| known.name == up.name) {
                found.push(up);
            }
        }
        next += 1;
    }
    found.sort_by_key(|stage| stage.number);
    found
}

/// Returns the stages that read from a stage, directly or through others, by number.
pub fn downstream<'a>(pipeline: &'a Pipeline, stage: &str) -> Vec<&'a Stage> {
    let mut reached: Vec<&str> = vec![stage];
    let mut found = Vec::new();
    for other in &pipeline.stages {
        let reads_one = upstream(pipeline, other)
            .iter()
            .any(|up| reached.contains(&up.name.as_str()));
        if reads_one {
            reached.push(&other.name);
            found.push(other);
        }
    }
    found
}
