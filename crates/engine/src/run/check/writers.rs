//! Checks that an input that a value names is not an output of the stage itself or of a later one. Declared paths are checked when
//! declarations are read.

use milepost_core::base::glob::Glob;
use milepost_core::base::path::Root;
use milepost_core::model::pipeline::Pipeline;
use milepost_core::model::stage::{InputSource, PathTemplate, Stage};
use milepost_core::plan::inputs::{Missed, Resolved};

/// Checks that no input that a value names is written by the stage itself or by a later one.
///
/// # Errors
/// The input and its writer.
pub(super) fn check_inputs(
    pipeline: &Pipeline,
    stage: &Stage,
    inputs: &[Resolved],
) -> Result<(), Missed> {
    for input in inputs {
        let declared = stage.input(&input.name).map(|input| &input.source);
        let is_named = match declared {
            Some(InputSource::Path(path)) => path.is_whole() && !is_item(stage, path),
            Some(InputSource::From { .. }) => true,
            None => false,
        };
        let files = input
            .files
            .iter()
            .filter(|file| file.root == Root::Workspace);
        for file in files.filter(|_| is_named) {
            let later = pipeline.stages.iter();
            let later = later.filter(|other| other.number >= stage.number);
            let writes = |other: &&Stage| {
                let outputs = other.outputs.iter().map(|output| &output.path);
                outputs.chain(&other.marker).any(|path| {
                    Glob::parse(&path.pattern()).is_ok_and(|glob| glob.matches_hidden(&file.path))
                })
            };
            if let Some(writer) = later.into_iter().find(writes) {
                return Err(Missed::from(format!(
                    "input `{}`: `{file}` is an output of stage `{}`, and a stage reads only what earlier stages write: copy the file to `inputs/`, or name another one",
                    input.name, writer.name
                )));
            }
        }
    }
    Ok(())
}

/// Returns true if a path is that of the file of an `each`, whose pattern was checked.
fn is_item(stage: &Stage, path: &PathTemplate) -> bool {
    let names = path.template.names();
    let mut each = stage.each.iter();
    each.any(|each| names.iter().eq([&format!("{}.path", each.name)]))
}
