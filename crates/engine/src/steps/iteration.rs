//! One iteration of an attempt: runs the steps in order and retries those that fail.

use super::batch_context::{
    BatchContext, StepEvent, StepReport, cancelled, output_failure, parse_failure,
};
use super::cancel::CancelReason;
use super::{agent, diff, files, http, jq, merge, pdf_text, process, split, wait, workbook};
use milepost_core::expr::scope::{Format, Reading};
use milepost_core::model::outcome::{Outcome, OutcomeKind};
use milepost_core::model::retry;
use milepost_core::model::stage::{Output, Stage, Templated};
use milepost_core::model::step::{
    Outputs, PROGRAM_TIMEOUT, Step, StepKind, TemplateChoice, TemplateFile, WAIT_TIMEOUT,
};
use serde_json::{Value, json};
use std::time::Duration;

/// The time limit of a program whose step declares no `timeout`.
const COMMAND_TIMEOUT: Duration = Duration::from_mins(10);

/// Runs the steps in order. `number` is the number of the iteration, from 1. If a step is skipped in a later iteration, its
/// earlier output is kept.
///
/// # Errors
/// The outcome of the step that failed after its last attempt.
pub(crate) fn run_steps(ctx: &mut BatchContext<'_>, number: u32) -> Result<StepReport, Outcome> {
    let stage = ctx.stage;
    let mut report = StepReport::default();
    for (index, step) in stage.steps.iter().enumerate() {
        if ctx.stop.stopping() {
            return Err(cancelled());
        }
        if is_over(ctx) {
            return Err(stage_is_over(stage, ctx.sent.get().is_some()));
        }
        ctx.cancel.set_time((ctx.left)());
        if !is_wanted(ctx, step).map_err(|outcome| cause_of(ctx, None, outcome))? {
            // Of two steps with one `out`, the one that ran gave it its value.
            let is_new = stage.steps[..index].iter().all(|it| it.out != step.out);
            if number == 1 && is_new {
                ctx.scope.absent(&step.out);
            }
            continue;
        }
        let iteration = stage.refine.as_ref().map(|_| number);
        ctx.observer.event(StepEvent::Step(step, iteration));
        if number > 1 {
            for name in written_by(ctx.stage, step) {
                clear(ctx, name)?;
                ctx.scope.absent(name);
            }
        }
        match run_with_retries(ctx, step, index) {
            Err(_) if ctx.is_dry_run && asks_no_more(stage, index) => return Ok(report),
            done => report.add(done?),
        }
        tracing::debug!(record = %json!({ "step": step.kind.name(), "out": step.out }));
        if made_by_program(step) {
            let written = written_by(stage, step);
            for output in &stage.outputs {
                // Output that another step wrote in an earlier iteration is kept.
                let own = number == 1 || written.contains(&output.name.as_str());
                if own || is_there(ctx, &output.name)? {
                    add_to_scope(ctx, &output.name)?;
                }
            }
        } else {
            add_to_scope(ctx, &step.out)?;
        }
        if stage.tells_steps() && !ctx.is_dry_run {
            let summary = summary_of(ctx, step);
            ctx.observer
                .event(StepEvent::Finished(step, iteration, summary));
        }
    }
    Ok(report)
}

/// Returns true if a dry run, which cannot run this step, knows everything that the batch asks.
fn asks_no_more(stage: &Stage, index: usize) -> bool {
    let mut rest = stage.steps[index..].iter();
    let is_agent = |step: &Step| step.kind.agent().is_some();
    stage.refine.is_none() && !stage.steps[index].kind.info().computes && !rest.any(is_agent)
}

/// Returns the result of the step's `summary`, without keys; `None` if it cannot be computed.
fn summary_of(ctx: &BatchContext<'_>, step: &Step) -> Option<Value> {
    let program = step.summary.as_ref()?;
    let mut summary = ctx.jq.one(program, &ctx.scope).ok()?;
    ctx.calls.redactor().known_value(&mut summary);
    Some(summary)
}

/// Returns the names that a step writes: its `out`, and for a program also the outputs that no other step names.
fn written_by<'a>(stage: &'a Stage, step: &'a Step) -> Vec<&'a str> {
    let mut written = vec![step.out.as_str()];
    if made_by_program(step) {
        let steps = &stage.steps;
        let outputs = stage.outputs.iter();
        let free = outputs.filter(|output| steps.iter().all(|step| step.out != output.name));
        written.extend(free.map(|output| output.name.as_str()));
    }
    written
}

fn clear(ctx: &BatchContext<'_>, name: &str) -> Result<(), Outcome> {
    ctx.outputs
        .clear(name)
        .map_err(|error| output_failure(name, error))
}

fn is_there(ctx: &BatchContext<'_>, name: &str) -> Result<bool, Outcome> {
    let made = ctx.outputs.written(name);
    made.map(|files| !files.is_empty())
        .map_err(|error| output_failure(name, error))
}

fn is_wanted(ctx: &mut BatchContext<'_>, step: &Step) -> Result<bool, Outcome> {
    let Some(when) = &step.when else {
        return Ok(true);
    };
    match ctx.jq.one(when, &ctx.scope)? {
        Value::Bool(yes) => Ok(yes),
        other => Err(parse_failure(format!(
            "`when`: expected true or false, found {other}"
        ))),
    }
}

fn run_with_retries(
    ctx: &mut BatchContext<'_>,
    step: &Step,
    index: usize,
) -> Result<StepReport, Outcome> {
    let mut failed = 0;
    loop {
        let outcome = match run_limited(ctx, step) {
            Ok(report) => return Ok(report),
            Err(outcome) => outcome,
        };
        failed += 1;
        let jitter = retry::jitter(&format!("{} {index}", ctx.name), failed);
        let wait = retry::wait(ctx.limits.backoff, failed, outcome.wait, jitter);
        let has_time = (ctx.left)().is_none_or(|left| left > wait);
        let is_final = !outcome.is_worth_another_try() || is_certain(&step.kind, &outcome);
        if failed >= step.attempts || is_final || !has_time {
            return Err(step.named(http::given_up(ctx, step, outcome)));
        }
        for name in written_by(ctx.stage, step) {
            clear(ctx, name)?;
        }
        ctx.observer.trying_again(failed, &outcome, wait);
        ctx.stop.wait(wait);
        if ctx.stop.stopping() {
            return Err(cancelled());
        }
    }
}

/// Returns true if a retry must fail in the same way, because the step computes its result from its inputs. Agents that cost
/// money are retried inside their step. Timeouts and disk errors are always worth a retry; a crash says itself whether it is.
fn is_certain(kind: &StepKind, outcome: &Outcome) -> bool {
    !kind.info().reaches_out
        && !matches!(
            outcome.kind,
            OutcomeKind::Timeout | OutcomeKind::Output | OutcomeKind::Crash
        )
}

fn is_over(ctx: &BatchContext<'_>) -> bool {
    (ctx.left)().is_some_and(|left| left.is_zero())
}

/// Returns the outcome of a batch whose stage has used up its time. `is_final`: another run does not continue it.
pub(crate) fn stage_is_over(stage: &Stage, is_final: bool) -> Outcome {
    let again = if is_final {
        ""
    } else {
        ", or run again to continue"
    };
    let name = &stage.name;
    let message =
        format!("stage `{name}` exceeded its time limit: raise `timeout` under [policy]{again}");
    Outcome::new(OutcomeKind::Timeout, message)
}

/// Returns the real cause of a failure: if the attempt was cancelled, that is the cause. `time` is the name and time limit of
/// the step.
fn cause_of(ctx: &BatchContext<'_>, time: Option<(&str, Duration)>, outcome: Outcome) -> Outcome {
    if outcome.kind == OutcomeKind::Cancelled {
        return outcome;
    }
    match (ctx.cancel.reason(), time) {
        (None, _) => outcome,
        (Some(CancelReason::Stopped), _) => cancelled(),
        (Some(CancelReason::TimedOut), Some((step, time))) if !is_over(ctx) => {
            let default = match step {
                "wait" => WAIT_TIMEOUT,
                _ => PROGRAM_TIMEOUT,
            };
            Outcome::new(
                OutcomeKind::Timeout,
                super::process::took_longer(step, time, default),
            )
        }
        (Some(CancelReason::TimedOut), _) => {
            stage_is_over(ctx.stage, ctx.sent.get().is_some()).with_details(outcome.details)
        }
    }
}

/// Runs a step once, within its time limit.
///
/// # Errors
/// The outcome of the step.
pub(crate) fn run_limited(ctx: &mut BatchContext<'_>, step: &Step) -> Result<StepReport, Outcome> {
    let is_program = made_by_program(step);
    let ends_itself = step.kind.info().ends_itself;
    let time = match &step.timeout {
        Some(Templated::Fixed(time)) => Some(*time),
        Some(timeout) => Some(timeout.duration(&ctx.base).map_err(parse_failure)?),
        None => is_program.then_some(COMMAND_TIMEOUT),
    };
    let left = (ctx.left)();
    let least = time.map_or(left, |time| Some(left.map_or(time, |left| left.min(time))));
    // `run_command` ends a program and gives it time to shut down. `wait` reports the missing file itself.
    ctx.cancel.set_time(if ends_itself { left } else { least });
    let done = run_step(ctx, step, least.unwrap_or(COMMAND_TIMEOUT));
    let done = ctx.jq.named(done);
    let named = time.filter(|_| !ends_itself);
    let named = named.map(|time| (step.kind.name(), time));
    let done = done.map_err(|outcome| cause_of(ctx, named, outcome));
    ctx.cancel.set_time((ctx.left)());
    done
}

fn run_step(
    ctx: &mut BatchContext<'_>,
    step: &Step,
    timeout: Duration,
) -> Result<StepReport, Outcome> {
    if ctx.is_dry_run && !step.kind.info().computes {
        if let StepKind::Command(kind) = &step.kind
            && ctx.observer.wants_plan()
            && let Ok(program) = process::planned(ctx, kind)
        {
            ctx.observer.would_start(program);
        }
        let why = format!("it depends on the output of `{}`", step.kind.name());
        return Err(Outcome::new(OutcomeKind::Cancelled, why).for_good());
    }
    let out = &step.out;
    match &step.kind {
        StepKind::Command(kind) => process::command(ctx, kind, timeout),
        StepKind::Agent(kind) => {
            let task = agent::AgentTask {
                out,
                questions: kind.questions,
                each: kind.each.as_deref(),
                answer: kind.answer,
                attach: &kind.attach,
                defaults: &kind.defaults,
                agent: &kind.agent,
                prompt: selected(ctx, "prompt", &kind.prompt)?,
                schema: kind.schema.as_ref(),
                result: kind.result.as_ref(),
                errors: &step.errors,
                attempts: step.attempts,
                timeout,
            };
            agent::ask(ctx, &task)
        }
        StepKind::Http(kind) => http::call(ctx, out, kind, timeout),
        StepKind::Jq(kind) => jq::jq(ctx, out, &kind.program, kind.stream.as_ref()),
        StepKind::Render(kind) => {
            let template = selected(ctx, "render", &kind.template)?;
            files::render(ctx, out, template)
        }
        StepKind::Xlsx(kind) => workbook::write(ctx, out, &kind.workbook),
        StepKind::Ifc(kind) => files::model(ctx, out, kind),
        StepKind::Pdf(kind) => files::document(ctx, out, &kind.input),
        StepKind::PdfText(kind) => {
            pdf_text::pdf_text(ctx, out, &kind.input, &kind.engines, timeout)
        }
        StepKind::Copy(kind) => files::copy(ctx, out, &kind.input),
        StepKind::Wait(kind) => wait::wait(ctx, out, &kind.path, kind.marker.as_ref(), timeout),
        StepKind::Split(kind) => split::split(ctx, out, kind),
        StepKind::Merge(kind) => merge::merge(ctx, out, kind),
        StepKind::Diff(kind) => diff::diff(ctx, out, kind),
    }
}

/// Returns the template that the step selects for this batch.
fn selected<'s>(
    ctx: &BatchContext<'_>,
    key: &str,
    template: &'s TemplateChoice,
) -> Result<&'s TemplateFile, Outcome> {
    if let TemplateChoice::One(file) = template {
        return Ok(file);
    }
    let found = template.of(&Value::Object(ctx.base.clone()));
    found.map_err(|why| {
        let message = format!("`{key}`: {why}");
        Outcome::new(OutcomeKind::Input, message)
    })
}

fn made_by_program(step: &Step) -> bool {
    step.kind.info().outputs == Outputs::Any
}

/// Adds the files that were written for an output or `out` to the scope.
///
/// # Errors
/// When the files cannot be listed.
pub(crate) fn add_to_scope(ctx: &mut BatchContext<'_>, name: &str) -> Result<(), Outcome> {
    let made = ctx
        .outputs
        .written(name)
        .map_err(|error| output_failure(name, error))?;
    let output = ctx.stage.output(name);
    let reading = output.map(Output::reading);
    if output.is_some_and(|output| output.is_many() && !output.per_round) {
        let files = made.into_iter().map(|file| {
            let reading = reading.clone();
            let reading = reading.unwrap_or_else(|| Format::of_path(&file.name()).into());
            (file, reading)
        });
        ctx.scope.insert_files(name, files.collect());
        return Ok(());
    }
    match made.into_iter().next() {
        Some(file) => {
            let reading = reading.unwrap_or_else(|| Reading::from(intermediate(ctx, name)));
            ctx.scope.insert_file(name, file, reading);
        }
        None => ctx.scope.absent(name),
    }
    Ok(())
}

/// Returns the format of an `out` that is not an output, as the kind of its step declares it; JSON if no step makes it.
fn intermediate(ctx: &BatchContext<'_>, name: &str) -> Format {
    let step = ctx.stage.steps.iter().find(|step| step.out == name);
    step.map_or(Format::Json, |step| step.kind.out_format())
}
