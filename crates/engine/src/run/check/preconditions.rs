//! Tests the `[[require]]`s of a batch that is about to run, before anything is started or paid.

use crate::run::check::scopes;
use crate::run::check::validate;
use crate::run::context::Context;
use crate::steps::cancel::CancelToken;
use crate::steps::command::is_executable;
use crate::steps::worker::JqWorkers;
use milepost_core::base::path::Root;
use milepost_core::model::outcome::OutcomeKind;
use milepost_core::model::stage::Stage;
use milepost_core::model::step::StepKind;
use milepost_core::plan::inputs::Missed;
use milepost_core::plan::scan::BatchScan;
use std::sync::Arc;

/// Returns a precondition that is known not to hold. If an earlier stage may still change an input, preconditions that mention
/// it are skipped. A test that fails with an error is left to the attempt, which validates the inputs first.
pub(crate) fn refused(
    ctx: &Context<'_>,
    stage: &Stage,
    found: &BatchScan,
    is_settled: bool,
) -> Option<Missed> {
    if let Some(why) = not_executable(ctx, stage) {
        return Some(why.into());
    }
    let requires = stage.requires.iter();
    let known = requires.filter(|require| is_settled || require.needs_no_input(stage));
    let known: Vec<_> = known.cloned().collect();
    if known.is_empty() {
        return None;
    }
    let moment = ctx.moment();
    let cancel = CancelToken::new(Arc::default());
    let scope = if is_settled {
        scopes::of_inputs(ctx, stage, found, moment, &cancel).ok()?
    } else {
        scopes::of_values(ctx, found, moment)
    };
    let failed = validate::checks(&known, &scope, &JqWorkers::new(stage, &cancel)).err()?;
    let is_judged = failed.kind == OutcomeKind::Check && failed.details.is_empty();
    is_judged.then(|| failed.into())
}

/// Returns the error for a program of the project without execute permission, if a command of the stage starts one.
fn not_executable(ctx: &Context<'_>, stage: &Stage) -> Option<String> {
    let commands = stage.steps.iter().filter_map(|step| match &step.kind {
        StepKind::Command(command) if !command.shell => command.arguments.first(),
        _ => None,
    });
    let mut paths = commands.filter_map(|program| program.source.strip_prefix("project:"));
    let is_wrong = |path: &&str| {
        let file = ctx.files.folder(Root::Project).join(path);
        file.is_file() && !is_executable(&file)
    };
    let path = paths.find(is_wrong)?;
    Some(format!(
        "`project:{path}` is not executable: chmod +x {path}"
    ))
}
