//! The pipeline as a graph: stages, the files that flow between them, inputs, outputs, and the status of each stage.

use crate::ops::inspect::status::{StageProgress, Status, status};
use crate::ops::project::error::OpsError;
use crate::ops::project::open::open_recorded;
use crate::ops::project::open_project::OpenProject;
use crate::ops::project::request::Request;
use milepost_core::base::glob::may_meet;
use milepost_core::base::path::Root;
use milepost_core::model::call::Spent;
use milepost_core::model::stage::{Input, InputSource, PathTemplate, Stage};
use milepost_core::model::stage_word::StageWord;
use milepost_core::plan::lineage;
use serde::Serialize;
use std::collections::BTreeSet;

/// The graph of a pipeline.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Graph {
    /// The project's name.
    pub project: String,
    /// The stages, in the order of their numbers.
    pub stages: Vec<GraphStage>,
    /// The files that flow between stages.
    pub edges: Vec<Edge>,
}

/// A stage in the graph.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct GraphStage {
    /// The stage's number.
    pub number: u32,
    /// The stage's name.
    pub stage: String,
    /// The stage's description.
    pub description: Option<String>,
    /// The state as screens show it.
    pub state: StageWord,
    /// The status in the words of earlier versions.
    pub status: StageProgress,
    /// True if a run would do something about it.
    pub is_due: bool,
    /// The number of batches, as far as it is known; `None` for a stage without `each`.
    pub batches: Option<u64>,
    /// Batches that are recorded without a failure.
    pub done: u64,
    /// The number of failed batches.
    pub failed: u64,
    /// The number of batches that a run builds now.
    pub running: u64,
    /// The cost of its calls in all runs; `None` if there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent: Option<Spent>,
    /// The sum of the durations of its batches in seconds; `None` without a checkpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// The actions of its steps, in order.
    pub steps: Vec<String>,
    /// The inputs of the workspace that it reads: paths and patterns.
    pub inputs: Vec<String>,
    /// Inputs that are named in another file.
    pub named: Vec<Named>,
    /// Paths and patterns of its outputs.
    pub outputs: Vec<String>,
    /// The outputs that no other stage reads.
    pub ends: Vec<String>,
}

/// Inputs that are named in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Named {
    /// The paths.
    pub files: String,
    /// The file that names them.
    pub by: String,
}

/// The files that flow from one stage to another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Edge {
    /// The stage that writes them.
    pub from: String,
    /// The stage that reads them.
    pub to: String,
    /// Paths and patterns, as the writing stage declares them.
    pub paths: Vec<String>,
}

/// Returns the graph of a pipeline with the status of its stages. Nothing is written.
///
/// # Errors
/// When there is no project, or the workspace cannot be read.
pub fn graph(request: &Request) -> Result<Graph, OpsError> {
    Ok(graph_of(&open_recorded(request)?, &status(request)?))
}

/// Returns the graph of an open project with a status that is known.
pub(crate) fn graph_of(opened: &OpenProject, known: &Status) -> Graph {
    let pipeline = &opened.pipeline;
    let mut edges = Vec::new();
    let mut read: BTreeSet<(String, String)> = BTreeSet::new();
    for stage in &pipeline.stages {
        for up in lineage::upstream(pipeline, stage) {
            let paths = flowing(up, stage);
            read.extend(paths.iter().map(|path| (up.name.clone(), path.clone())));
            edges.push(Edge {
                from: up.name.clone(),
                to: stage.name.clone(),
                paths,
            });
        }
    }
    let stages = pipeline.stages.iter().map(|stage| {
        let line = known.stages.iter().find(|line| line.stage == stage.name);
        let written = |path: &&PathTemplate| {
            path.root == Root::Workspace
                && !lineage::writers(pipeline, stage, &path.pattern()).is_empty()
        };
        let outputs: Vec<String> = stage
            .outputs
            .iter()
            .map(|output| plain(&output.path))
            .collect();
        let mut inputs: Vec<String> = lineage::reads(stage)
            .into_iter()
            .filter(|path| !written(path) && !stage.is_item(path))
            .map(|path| as_set(opened, path))
            .collect();
        inputs.dedup();
        GraphStage {
            number: stage.number,
            stage: stage.name.clone(),
            description: stage.description.clone(),
            state: line.map_or(StageWord::OutOfDate, |line| line.state),
            status: line.map_or(StageProgress::Waiting, |line| line.status),
            is_due: line.is_some_and(|line| line.due.is_some()),
            batches: line
                .filter(|_| !stage.each.is_empty())
                .and_then(|line| line.batches),
            done: line.map_or(0, |line| line.done),
            failed: line.map_or(0, |line| line.failed.len() as u64),
            running: line.map_or(0, |line| line.running.len() as u64),
            spent: line.and_then(|line| line.spent),
            seconds: line.and_then(|line| line.seconds),
            steps: stage
                .steps
                .iter()
                .map(|step| step.kind.name().to_owned())
                .collect(),
            inputs,
            named: stage
                .inputs
                .iter()
                .filter_map(|input| named(opened, input))
                .collect(),
            ends: outputs
                .iter()
                .filter(|path| !read.contains(&(stage.name.clone(), (*path).clone())))
                .cloned()
                .collect(),
            outputs,
        }
    });
    Graph {
        project: pipeline.name.clone(),
        stages: stages.collect(),
        edges,
    }
}

/// Returns the outputs of a stage that another stage reads.
fn flowing(from: &Stage, to: &Stage) -> Vec<String> {
    let reads: Vec<String> = lineage::reads(to)
        .into_iter()
        .filter(|path| path.root == Root::Workspace)
        .map(PathTemplate::pattern)
        .collect();
    from.outputs
        .iter()
        .filter(|output| {
            let written = output.path.pattern();
            reads.iter().any(|read| may_meet(&written, read))
        })
        .map(|output| plain(&output.path))
        .collect()
}

/// Returns the files of an input that are named in a file.
fn named(opened: &OpenProject, input: &Input) -> Option<Named> {
    let InputSource::From {
        file, base, whole, ..
    } = &input.source
    else {
        return None;
    };
    let root = match base.root {
        Root::Workspace => "",
        Root::Project => "project:",
    };
    let folder = if *whole {
        String::new()
    } else {
        format!("{}/", base.path)
    };
    Some(Named {
        files: format!("{root}{folder}**"),
        by: as_set(opened, file),
    })
}

/// Returns a path to show. A path that is a parameter is the file it names, with the prefix `project:` if it is in the project.
pub(crate) fn as_set(opened: &OpenProject, path: &PathTemplate) -> String {
    let value = path
        .is_whole()
        .then(|| path.text.trim_matches(['{', '}']).trim())
        .and_then(|name| opened.settings.params.get(name.strip_prefix("params.")?))
        .and_then(serde_json::Value::as_str);
    match (value, path.root) {
        (None, _) => plain(path),
        (Some(value), Root::Workspace) => value.to_owned(),
        (Some(value), Root::Project) => format!("project:{value}"),
    }
}

/// Returns a path to show, with `*` for the parts that differ by batch. Of one that is a value nothing else is known.
fn plain(path: &PathTemplate) -> String {
    match path.root {
        _ if path.is_whole() => path.text.clone(),
        Root::Workspace => path.pattern(),
        Root::Project => format!("project:{}", path.pattern()),
    }
}
