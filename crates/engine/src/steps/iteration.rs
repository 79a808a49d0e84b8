//! One iteration of an attempt: the steps in turn, each with its tries.

use super::alarm::Rang;
use super::work::{Said, Told, Work, output_failure, parse_failure};
use super::{agent, files, http, jq, merge, pdf_text, process, split, values, wait, workbook};
use milepost_core::expr::scope::{Format, Reading};
use milepost_core::model::outcome::{Outcome, OutcomeKind};
use milepost_core::model::retry;
use milepost_core::model::stage::{Output, Stage};
use milepost_core::model::step::{
    Outputs, PROGRAM_TIMEOUT, Step, StepKind, TemplateChoice, TemplateFile, WAIT_TIMEOUT,
};
use serde_json::Value;
use std::time::Duration;

/// How long a program may take when its step does not say.
const COMMAND_TIMEOUT: Duration = Duration::from_mins(10);

/// Does the steps in turn, in the round of this number, from 1 on. In a later round what a step made that is skipped stands.
///
/// # Errors
/// The outcome of the step that failed for good.
pub(crate) fn round(work: &mut Work<'_>, number: u32) -> Result<Said, Outcome> {
    let stage = work.stage;
    let mut said = Said::default();
    for (index, step) in stage.steps.iter().enumerate() {
        if work.stop.stopping() {
            return Err(cancelled());
        }
        if is_over(work) {
            return Err(stage_is_over(stage));
        }
        work.alarm.set((work.left)());
        if !wanted(work, step).map_err(|outcome| ended(work, None, outcome))? {
            if number == 1 {
                work.scope.absent(&step.out);
            }
            continue;
        }
        let round = stage.refine.as_ref().map(|_| number);
        work.watcher.told(Told::Step(step, round));
        if number > 1 {
            for name in written_by(work.stage, step) {
                clear(work, name)?;
                work.scope.absent(name);
            }
        }
        said.add(tries(work, step, index)?);
        if made_by_program(step) {
            let written = written_by(stage, step);
            for output in &stage.outputs {
                // What another step made in an earlier round stands.
                let own = number == 1 || written.contains(&output.name.as_str());
                if own || is_there(work, &output.name)? {
                    take(work, &output.name)?;
                }
            }
        } else {
            take(work, &step.out)?;
        }
    }
    Ok(said)
}

/// The outputs, or the `out`, that a step writes: the one that it names, and a program those too that no other step names.
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

/// Takes away what was written of an output or `out`.
fn clear(work: &Work<'_>, name: &str) -> Result<(), Outcome> {
    work.outs
        .clear(name)
        .map_err(|error| output_failure(name, error))
}

fn is_there(work: &Work<'_>, name: &str) -> Result<bool, Outcome> {
    let made = work.outs.made(name);
    made.map(|files| !files.is_empty())
        .map_err(|error| output_failure(name, error))
}

fn wanted(work: &mut Work<'_>, step: &Step) -> Result<bool, Outcome> {
    let Some(when) = &step.when else {
        return Ok(true);
    };
    let (input, vars) = values::scope_of(work, when)?;
    match when.jq.one(input, &vars).map_err(parse_failure)? {
        Value::Bool(yes) => Ok(yes),
        other => Err(parse_failure(format!(
            "`when` gave {other}: true or false was expected"
        ))),
    }
}

fn tries(work: &mut Work<'_>, step: &Step, index: usize) -> Result<Said, Outcome> {
    let mut failed = 0;
    loop {
        let outcome = match once(work, step) {
            Ok(said) => return Ok(said),
            Err(outcome) => outcome,
        };
        failed += 1;
        let jitter = retry::jitter(&format!("{} {index}", work.name), failed);
        let wait = retry::wait(work.limits.backoff, failed, outcome.wait, jitter);
        let has_time = (work.left)().is_none_or(|left| left > wait);
        let is_final = !outcome.is_worth_another_try() || is_certain(&step.kind, &outcome);
        if failed >= step.attempts || is_final || !has_time {
            return Err(outcome);
        }
        for name in written_by(work.stage, step) {
            clear(work, name)?;
        }
        work.watcher.trying_again(failed, &outcome, wait);
        work.stop.wait(wait);
        if work.stop.stopping() {
            return Err(cancelled());
        }
    }
}

/// Returns true if the step computes, so that the same failure would follow from the same inputs. An agent that costs something is
/// asked again inside of its step, and what fails after that is computed too. Time and disk are not computed.
fn is_certain(kind: &StepKind, outcome: &Outcome) -> bool {
    !kind.info().reaches_out && !matches!(outcome.kind, OutcomeKind::Timeout | OutcomeKind::Output)
}

fn cancelled() -> Outcome {
    Outcome::new(OutcomeKind::Cancelled, "the run was stopped")
}

fn is_over(work: &Work<'_>) -> bool {
    (work.left)().is_some_and(|left| left.is_zero())
}

/// How a batch ends when its stage has no time left.
pub(crate) fn stage_is_over(stage: &Stage) -> Outcome {
    let message = format!(
        "the time of stage `{}` is over: raise `timeout` under [policy], or run again to go on",
        stage.name
    );
    Outcome::new(OutcomeKind::Timeout, message)
}

/// How work ended that failed: when the alarm rang, that is why, whatever it says. `time` is what the step had.
fn ended(work: &Work<'_>, time: Option<(&str, Duration)>, outcome: Outcome) -> Outcome {
    if outcome.kind == OutcomeKind::Cancelled {
        return outcome;
    }
    match (work.alarm.rang(), time) {
        (None, _) => outcome,
        (Some(Rang::Stop), _) => cancelled(),
        (Some(Rang::Time), Some((step, time))) if !is_over(work) => {
            let default = match step {
                "wait" => WAIT_TIMEOUT,
                _ => PROGRAM_TIMEOUT,
            };
            Outcome::new(
                OutcomeKind::Timeout,
                super::process::took_longer(step, time, default),
            )
        }
        (Some(Rang::Time), _) => stage_is_over(work.stage).with_details(outcome.details),
    }
}

fn once(work: &mut Work<'_>, step: &Step) -> Result<Said, Outcome> {
    let is_program = made_by_program(step);
    let ends_itself = step.kind.info().ends_itself;
    let time = match &step.timeout {
        Some(timeout) => Some(timeout.duration(&work.base).map_err(parse_failure)?),
        None => is_program.then_some(COMMAND_TIMEOUT),
    };
    let left = (work.left)();
    let least = time.map_or(left, |time| Some(left.map_or(time, |left| left.min(time))));
    // A program is ended by whoever watches it, and gets the time to end itself; what waits for others says itself for what.
    work.alarm.set(if ends_itself { left } else { least });
    let done = doing(work, step, least.unwrap_or(COMMAND_TIMEOUT));
    let named = time.filter(|_| !ends_itself);
    let named = named.map(|time| (step.kind.name(), time));
    let done = done.map_err(|outcome| ended(work, named, outcome));
    work.alarm.set((work.left)());
    done
}

fn doing(work: &mut Work<'_>, step: &Step, timeout: Duration) -> Result<Said, Outcome> {
    if work.is_rehearsed && !step.kind.info().computes {
        let why = format!("it depends on what `{}` makes", step.kind.name());
        return Err(Outcome::new(OutcomeKind::Cancelled, why).for_good());
    }
    let out = &step.out;
    match &step.kind {
        StepKind::Command(kind) => process::command(work, kind, timeout),
        StepKind::Agent(kind) => {
            let asking = agent::Asking {
                out,
                questions: kind.questions,
                answer: kind.answer,
                attach: &kind.attach,
                defaults: &kind.defaults,
                agent: &kind.agent,
                prompt: picked(work, "prompt", &kind.prompt)?,
                schema: kind.schema.as_ref(),
                result: kind.result.as_ref(),
                attempts: step.attempts,
                timeout,
            };
            agent::ask(work, &asking)
        }
        StepKind::Http(kind) => http::call(work, out, kind, timeout),
        StepKind::Jq(kind) => jq::jq(work, out, &kind.program, kind.stream.as_ref()),
        StepKind::Render(kind) => {
            let template = picked(work, "render", &kind.template)?;
            files::render(work, out, template)
        }
        StepKind::Xlsx(kind) => workbook::write(work, out, &kind.workbook),
        StepKind::Ifc(kind) => files::model(work, out, &kind.input),
        StepKind::Pdf(kind) => files::document(work, out, &kind.input),
        StepKind::PdfText(kind) => {
            pdf_text::pdf_text(work, out, &kind.input, &kind.engines, timeout)
        }
        StepKind::Copy(kind) => files::copy(work, out, &kind.input),
        StepKind::Wait(kind) => wait::wait(work, out, &kind.path, kind.marker.as_ref(), timeout),
        StepKind::Split(kind) => split::split(work, out, kind),
        StepKind::Merge(kind) => merge::merge(work, out, kind),
    }
}

/// The template of a step for this batch.
fn picked<'s>(
    work: &Work<'_>,
    key: &str,
    template: &'s TemplateChoice,
) -> Result<&'s TemplateFile, Outcome> {
    if let TemplateChoice::One(file) = template {
        return Ok(file);
    }
    let found = template.of(&Value::Object(work.base.clone()));
    found.map_err(|why| {
        let message = format!("`{key}`: {why}");
        Outcome::new(OutcomeKind::Input, message)
    })
}

fn made_by_program(step: &Step) -> bool {
    step.kind.info().outputs == Outputs::Any
}

/// Takes what was written into the scope.
///
/// # Errors
/// When what was written cannot be looked at.
pub(crate) fn take(work: &mut Work<'_>, name: &str) -> Result<(), Outcome> {
    let made = work
        .outs
        .made(name)
        .map_err(|error| output_failure(name, error))?;
    let output = work.stage.output(name);
    let reading = output.map(Output::reading);
    if output.is_some_and(|output| output.is_many() && !output.per_round) {
        let files = made.into_iter().map(|file| {
            let reading = reading.clone();
            let reading = reading.unwrap_or_else(|| Format::of_path(&file.name()).into());
            (file, reading)
        });
        work.scope.insert_files(name, files.collect());
        return Ok(());
    }
    match made.into_iter().next() {
        Some(file) => {
            let reading = reading.unwrap_or_else(|| Reading::from(intermediate(work, name)));
            work.scope.insert_file(name, file, reading);
        }
        None => work.scope.absent(name),
    }
    Ok(())
}

/// How the content of an `out` that is no output is read back: `render` and `copy` give text, a file
/// that was waited for is what its name says, the others JSON.
fn intermediate(work: &Work<'_>, name: &str) -> Format {
    let step = work.stage.steps.iter().find(|step| step.out == name);
    step.map_or(Format::Json, |step| step.kind.out_format())
}
