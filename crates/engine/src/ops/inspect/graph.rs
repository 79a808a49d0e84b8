//! The pipeline as a graph: stages, what flows between them, what people put in, what comes out, and how far each stage is.

use crate::ops::inspect::status::{StageProgress, status};
use crate::ops::project::error::OpsError;
use crate::ops::project::open::open;
use crate::ops::project::open_project::OpenProject;
use crate::ops::project::request::Request;
use milepost_core::base::glob::may_meet;
use milepost_core::base::path::Root;
use milepost_core::model::stage::{Input, InputSource, PathTemplate, Stage};
use milepost_core::plan::lineage;
use serde::Serialize;
use std::collections::BTreeSet;

/// A pipeline.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Graph {
    /// The project's name.
    pub project: String,
    /// The stages, by number.
    pub stages: Vec<GraphStage>,
    /// What flows between stages.
    pub edges: Vec<Edge>,
}

/// A stage.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct GraphStage {
    /// Its number.
    pub number: u32,
    /// Its name.
    pub stage: String,
    /// What it is for.
    pub description: Option<String>,
    /// How far it is.
    pub status: StageProgress,
    /// Whether a run would do something about it.
    pub is_due: bool,
    /// Batches that there are, as far as that is known; none as well for a stage without `each`.
    pub batches: Option<u64>,
    /// What its steps do, in turn.
    pub steps: Vec<String>,
    /// Paths and patterns that people put there, which it reads.
    pub inputs: Vec<String>,
    /// Files that it reads since another file names them.
    pub named: Vec<Named>,
    /// Paths and patterns that it writes.
    pub outputs: Vec<String>,
    /// Those of its outputs that no other stage reads.
    pub ends: Vec<String>,
}

/// Files that a file names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Named {
    /// Where they lie.
    pub files: String,
    /// The file that names them.
    pub by: String,
}

/// What flows from a stage to another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Edge {
    /// The stage that writes.
    pub from: String,
    /// The stage that reads.
    pub to: String,
    /// What of it, as the writer declares it.
    pub paths: Vec<String>,
}

/// The pipeline of a project, with how far its stages are. Nothing is written.
///
/// # Errors
/// When there is no project, its declarations are wrong, or the workspace cannot be read.
pub fn graph(request: &Request) -> Result<Graph, OpsError> {
    let opened = open(request)?;
    let known = status(request)?;
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
            .filter(|path| !written(path))
            .map(|path| as_set(&opened, path))
            .collect();
        inputs.dedup();
        GraphStage {
            number: stage.number,
            stage: stage.name.clone(),
            description: stage.description.clone(),
            status: line.map_or(StageProgress::Waiting, |line| line.status),
            is_due: line.is_some_and(|line| line.due.is_some()),
            batches: line
                .filter(|_| !stage.each.is_empty())
                .and_then(|line| line.batches),
            steps: stage
                .steps
                .iter()
                .map(|step| step.kind.name().to_owned())
                .collect(),
            inputs,
            named: stage
                .inputs
                .iter()
                .filter_map(|input| named(&opened, input))
                .collect(),
            ends: outputs
                .iter()
                .filter(|path| !read.contains(&(stage.name.clone(), (*path).clone())))
                .cloned()
                .collect(),
            outputs,
        }
    });
    Ok(Graph {
        project: pipeline.name.clone(),
        stages: stages.collect(),
        edges,
    })
}

/// The outputs of a stage that another reads.
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

/// The files of an input that a file names.
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

/// A path for people. One that is a parameter is the file that the parameter names, with the prefix `project:` for the project's.
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

/// A path for people: what differs by batch is a `*`.
fn plain(path: &PathTemplate) -> String {
    match path.root {
        Root::Workspace => path.pattern(),
        Root::Project => format!("project:{}", path.pattern()),
    }
}
