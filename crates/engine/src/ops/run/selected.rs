//! The stages and batches that a run selects.

use crate::ops::project::error::OpsError;
use crate::ops::project::open_project::OpenProject;
use milepost_core::model::executor::ExecutorName;
use milepost_core::plan::options::RunOptions;
use milepost_core::plan::selection::{Selection, Target};

/// Finds the selected stages and batches in the pipeline.
///
/// # Errors
/// When the options contradict each other, or name a stage that is not declared.
pub(crate) fn selection(opened: &OpenProject, options: &RunOptions) -> Result<Selection, OpsError> {
    if let Some(name) = options.executor
        && name != ExecutorName::LOCAL
        && opened.pipeline.executors.settings(name).is_none()
    {
        return Err(OpsError::Usage(format!(
            "the project has no `[executor.{name}]`: declare it in milepost.toml"
        )));
    }
    if let Some((one, other)) = options.conflict() {
        return Err(OpsError::Usage(format!(
            "`{one}` and `{other}` contradict each other"
        )));
    }
    let parse = |text: &String| {
        Target::parse(&opened.pipeline, text).map_err(|error| {
            let help = file_help(opened, text).unwrap_or_default();
            OpsError::Usage(format!("{error}{help}"))
        })
    };
    let until = options.until.as_ref().map(parse).transpose()?;
    Ok(Selection {
        targets: options
            .targets
            .iter()
            .map(parse)
            .collect::<Result<_, _>>()?,
        until: until.map(|target| target.stage),
        options: options.clone(),
    })
}

/// Returns what to type instead, if the text names a file and not a stage.
fn file_help(opened: &OpenProject, text: &str) -> Option<String> {
    let inside = opened.workspace.layout.root().join(text);
    if ![opened.folder.join(text), inside]
        .iter()
        .any(|path| path.is_file())
    {
        return None;
    }
    let params = opened
        .pipeline
        .params
        .iter()
        .filter(|param| param.file.is_some());
    let ways: Vec<String> = params
        .map(|param| {
            let setting = format!("{}={text}", param.name);
            format!("`{}`", opened.invocation.run(&["--set", &setting]))
        })
        .collect();
    Some(if ways.is_empty() {
        format!(
            "\nhelp: `{text}` is a file, and no parameter of this project takes one: put it under `inputs/` of the workspace, and run without it"
        )
    } else {
        format!(
            "\nhelp: `{text}` is a file; to read it: {}",
            ways.join(" or ")
        )
    })
}
