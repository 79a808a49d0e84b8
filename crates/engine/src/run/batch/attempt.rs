//! One try at one batch, on a thread of its own: scope, steps, judgement; what was made lies hashed in scratch.

use crate::run::batch::iterations::KeptRounds;
use crate::run::batch::output_dir::{ScratchFile, ScratchOuts};
use crate::run::batch::placeholder::placeholder;
use crate::run::batch::printed::Printed;
use crate::run::batch::stage_context::{
    AttemptResult, Produced, StageContext, add_marker, content, stale,
};
use crate::run::check::scopes;
use crate::run::check::validate;
use crate::steps::alarm::{Alarm, Rang};
use crate::steps::attempt::{attempt, stage_is_over};
use crate::steps::work::{Watcher, Work};
use milepost_core::base::path::{FilePath, RelPath, Root};
use milepost_core::base::source::Source;
use milepost_core::expr::scope::Scope;
use milepost_core::model::outcome::{Outcome, OutcomeKind};
use milepost_core::model::record::Made;
use milepost_core::model::stage::Stage;
use milepost_core::model::step::Outputs;
use milepost_core::plan::expand::batch_name;
use milepost_core::plan::scan::BatchScan;
use milepost_store::store::scratch::{self, Scratch};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Does a batch. `previous` gives the files that it made last time.
pub(crate) fn run(
    stage_ctx: &StageContext<'_>,
    found: &BatchScan,
    serial: u64,
    watcher: &dyn Watcher,
    previous: &BTreeMap<String, RelPath>,
) -> AttemptResult {
    let name = batch_name(&stage_ctx.stage.name, &found.batch.key);
    let scratch = Scratch::create(
        stage_ctx.ctx.disk,
        stage_ctx.ctx.files,
        stage_ctx.ctx.layout,
        &scratch::AttemptName {
            run: stage_ctx.run_id,
            stage: &stage_ctx.stage.name,
            batch: &found.batch.key,
            number: serial,
        },
        (wants_folder(stage_ctx.stage) || stage_ctx.agents.start_programs())
            .then_some(&stage_ctx.spares),
        &mut found.targets.values(),
    );
    let scratch = match scratch {
        Ok(scratch) => scratch,
        Err(error) => {
            return AttemptResult {
                result: Err(Outcome::new(OutcomeKind::Output, error.to_string())),
                scratch: None,
                log: None,
            };
        }
    };
    let alarm = Alarm::new(Arc::clone(&stage_ctx.wished));
    alarm.set(stage_ctx.left());
    let mut log = Printed::new(stage_ctx, &name, serial);
    let outs = ScratchOuts::new(&scratch, stage_ctx.stage, &found.targets, &alarm);
    let rounds = KeptRounds::new(stage_ctx, found, &scratch);
    let result = within(
        stage_ctx, found, &name, &scratch, &outs, &rounds, &mut log, watcher, previous, &alarm,
    );
    let result = result.or_else(|outcome| rounds.failed().and(Err(outcome)));
    let result = result.map_err(|outcome| match alarm.rang() {
        Some(Rang::Stop) => Outcome::new(OutcomeKind::Cancelled, "the run was stopped"),
        // Reading and writing end with it, and say so in their own words.
        Some(Rang::Time) if outcome.kind != OutcomeKind::Timeout => {
            stage_is_over(stage_ctx.stage).with_details(vec![outcome.to_string()])
        }
        _ => outcome.without_keys(stage_ctx.ctx.redactor),
    });
    let result = match result {
        // What was not tried has not failed: it is held.
        Err(outcome)
            if !matches!(
                outcome.kind,
                OutcomeKind::Cancelled | OutcomeKind::Budget | OutcomeKind::Awaited
            ) =>
        {
            placeholder(stage_ctx, found, &scratch, stage_ctx.stage.named(outcome))
        }
        result => result,
    };
    AttemptResult {
        result,
        log: log.kept(),
        scratch: Some(scratch),
    }
}

/// Whether a step writes files by their paths: programs do, and workbooks are put together from parts.
fn wants_folder(stage: &Stage) -> bool {
    let mut steps = stage.steps.iter();
    steps.any(|step| step.kind.info().writes_by_path)
}

/// What names an attempt in the environment of its programs, so that a later run finds those that outlived this one.
pub(crate) fn token(run: &str, stage: &str, batch: &str) -> String {
    format!("{run}/{stage}/{batch}")
}

#[expect(
    clippy::too_many_arguments,
    reason = "the parts of one attempt, used once"
)]
fn within(
    stage_ctx: &StageContext<'_>,
    found: &BatchScan,
    name: &str,
    scratch: &Scratch,
    outs: &ScratchOuts<'_>,
    rounds: &KeptRounds<'_>,
    log: &mut Printed<'_>,
    watcher: &dyn Watcher,
    previous: &BTreeMap<String, RelPath>,
    alarm: &Arc<Alarm>,
) -> Result<Produced, Outcome> {
    if let Err(why) = &found.decision {
        return Err(why.outcome());
    }
    if let Some(lacks) = &stage_ctx.lacks {
        return Err(lacks.clone());
    }
    validate::inputs(
        &stage_ctx.ctx,
        stage_ctx.stage,
        found,
        stage_ctx.schemas,
        alarm,
    )?;
    let moment = stage_ctx.ctx.moment();
    let scope = scopes::of_inputs(&stage_ctx.ctx, stage_ctx.stage, found, moment, alarm)?;
    validate::checks(&stage_ctx.stage.requires, &scope).map_err(Outcome::for_good)?;
    let token = token(stage_ctx.run_id, &stage_ctx.stage.name, &found.batch.key);
    let files = stage_ctx.ctx.files;
    let earlier = |output: &str| -> Option<Arc<dyn Source>> {
        let source = files
            .source(&FilePath::workspace(previous.get(output)?.clone()))
            .ok()?;
        Some(alarm.source(source))
    };
    let mut work = Work {
        stage: stage_ctx.stage,
        name,
        scope,
        base: found.base(stage_ctx.ctx.pipeline, stage_ctx.ctx.settings, moment),
        moment,
        outs,
        rounds,
        log,
        stop: stage_ctx.stop,
        alarm,
        left: &|| stage_ctx.left(),
        watcher,
        schemas: stage_ctx.schemas,
        agents: stage_ctx.agents,
        calls: stage_ctx.calls,
        asked_since: if stage_ctx.fresh {
            Some(&stage_ctx.this_run)
        } else {
            found.asked_since.as_deref()
        },
        http: stage_ctx.http,
        environment: stage_ctx.environment,
        declared_env: &stage_ctx.ctx.settings.env,
        folder: scratch.path(),
        project: files.folder(Root::Project),
        token: &token,
        previous: &earlier,
        find: &|file: &FilePath| scopes::awaited(&stage_ctx.ctx, file, alarm),
        limits: stage_ctx.limits,
        is_rehearsed: false,
    };
    let said = attempt(&mut work)?;
    let mut scope = work.scope;
    let (mut made, items) = collect(stage_ctx, outs, scratch, &mut scope, alarm)?;
    let failed = said.failed.iter().flat_map(|failed| failed.keys.clone());
    let counted = validate::conservation(stage_ctx.stage, &scope, &failed.collect())?;
    validate::checks(&stage_ctx.stage.checks, &scope)?;
    let elements = counted.or(items);
    let opinion = validate::opinion(stage_ctx.stage, &scope, said.summary)?;
    add_marker(stage_ctx, found, scratch, &mut made)?;
    let mut warnings = said.warnings;
    for warning in opinion.warnings() {
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }
    Ok(Produced {
        files: made,
        elements,
        opinion,
        warnings,
        placeholder: None,
        failed: said.failed,
        answers: said.answers,
        stale: stale(stage_ctx, found)?,
    })
}

/// The outputs, hashed and judged by their schemas, and in the scope.
fn collect(
    stage_ctx: &StageContext<'_>,
    outs: &ScratchOuts<'_>,
    scratch: &Scratch,
    scope: &mut Scope,
    alarm: &Arc<Alarm>,
) -> Result<(Vec<(Made, RelPath)>, Option<u64>), Outcome> {
    let failed = |name: &str, error: &dyn std::fmt::Display| {
        Outcome::new(OutcomeKind::Output, format!("output `{name}`: {error}"))
    };
    let mut made = Vec::new();
    let mut items = None;
    for output in &stage_ctx.stage.outputs {
        let files = outs
            .files(&output.name)
            .map_err(|error| failed(&output.name, &error))?;
        let skipped = may_be_skipped(stage_ctx.stage, &output.name);
        if files.is_empty() && !output.is_many() && !skipped {
            let place = outs
                .pattern(&output.name)
                .map_or_else(|_| output.path.shown(), |path| path.to_string());
            return Err(failed(&output.name, &format!("no step wrote `{place}`")));
        }
        for file in files {
            if output.schema.is_some() || output.columns.is_some() {
                let source = alarm.source(Arc::new(ScratchFile::new(scratch, &file)));
                let counted = validate::output(stage_ctx.schemas, output, &*source)?;
                if output.stream.is_some() {
                    items = Some(items.unwrap_or(0) + counted);
                }
            }
            let (digest, size) = content(scratch, &file)?;
            let from = scratch.inside(&file);
            made.push((
                Made {
                    name: output.name.clone(),
                    path: file,
                    digest,
                    size,
                },
                from,
            ));
        }
        if scope.source(&output.name).is_none() && !scope.is_list(&output.name) {
            scope.absent(&output.name);
        }
    }
    Ok((made, items))
}

/// Whether a step with `when` makes an output. A program makes those too that no other step is said to make.
fn may_be_skipped(stage: &Stage, output: &str) -> bool {
    let is_named = stage.steps.iter().any(|step| step.out == output);
    stage.steps.iter().any(|step| {
        let is_program = step.kind.info().outputs == Outputs::Any;
        step.when.is_some() && (step.out == output || is_program && !is_named)
    })
}
