//! The names of a project that a command line can complete. Nothing is written, and a wrong project has no names.

use crate::ops::project::error::OpsError;
use crate::ops::project::open::workspace_of;
use crate::ops::project::request::Request;
use crate::ops::project::{declarations, find_project};
use milepost_store::store::manifest;
use milepost_store::store::workspace::Workspace;
use std::collections::BTreeSet;

/// The names that a project declares.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeclaredNames {
    /// The stages, in order.
    pub stages: Vec<StageName>,
    /// The parameters with their descriptions.
    pub params: Vec<(String, Option<String>)>,
    /// The agents.
    pub agents: Vec<String>,
}

/// The name of a stage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StageName {
    /// The name.
    pub name: String,
    /// The description.
    pub description: Option<String>,
    /// True if its batches have names.
    pub has_batches: bool,
}

/// Returns the names that a project declares.
///
/// # Errors
/// When there is no project, or its declarations are wrong.
pub fn project_names(request: &Request) -> Result<DeclaredNames, OpsError> {
    let (pipeline, _) = declarations(&find_project(&request.folder)?)?;
    let stages = pipeline.stages.into_iter().map(|stage| StageName {
        has_batches: !stage.each.is_empty(),
        name: stage.name,
        description: stage.description,
    });
    let params = pipeline.params.into_iter();
    Ok(DeclaredNames {
        stages: stages.collect(),
        params: params
            .map(|param| (param.name, param.description))
            .collect(),
        agents: pipeline.agents.into_keys().collect(),
    })
}

/// Returns the first recorded batches of a stage whose names begin with `start`, at most `most`.
///
/// # Errors
/// When there is no project, or the record of the stage cannot be read.
pub fn batch_names(
    request: &Request,
    stage: &str,
    start: &str,
    most: usize,
) -> Result<Vec<String>, OpsError> {
    let project = find_project(&request.folder)?;
    let workspace = Workspace::open(&workspace_of(request, &project), request.now())?;
    let mut names: Vec<String> = Vec::new();
    manifest::keys(&workspace.layout, stage, &mut |key| {
        if key.starts_with(start) && names.last().is_none_or(|last| last != key) {
            names.push(key.to_owned());
        }
        names.len() < most
    })?;
    Ok(names)
}

/// Returns the first recorded outputs whose paths begin with `start`, at most `most`. A deeper path is cut after its next folder.
///
/// # Errors
/// When there is no project, its declarations are wrong, or a record cannot be read.
pub fn output_names(request: &Request, start: &str, most: usize) -> Result<Vec<String>, OpsError> {
    let project = find_project(&request.folder)?;
    let (pipeline, _) = declarations(&project)?;
    let workspace = Workspace::open(&workspace_of(request, &project), request.now())?;
    let mut names: BTreeSet<String> = BTreeSet::new();
    for stage in &pipeline.stages {
        manifest::outputs(&workspace.layout, &stage.name, &mut |path| {
            let Some(rest) = path.strip_prefix(start) else {
                return;
            };
            let folder = rest.find('/').map(|place| start.len() + place + 1);
            let name = &path[..folder.unwrap_or(path.len())];
            if !names.contains(name) {
                names.insert(name.to_owned());
            }
            if names.len() > most {
                names.pop_last();
            }
        })?;
    }
    Ok(names.into_iter().collect())
}
