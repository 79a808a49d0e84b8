//! The loop of `[refine]`: repeats the steps until `until` is true.

use super::batch_context::{
    BatchContext, StepEvent, StepReport, input_failure, output_failure, parse_failure,
};
use super::iteration::{add_to_scope, run_steps};
use milepost_core::base::digest::Digest;
use milepost_core::base::words::count;
use milepost_core::model::event::Round;
use milepost_core::model::outcome::{Outcome, OutcomeKind};
use milepost_core::model::stage::{Program, Refine};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read as _, Write as _};

/// The best iteration so far.
struct BestIteration {
    number: u32,
    score: f64,
    /// The content of each output and `out`; `None` if it did not exist.
    files: Vec<(String, Option<Vec<u8>>)>,
}

/// The facts about a finished iteration that a continued loop needs.
#[derive(Serialize, Deserialize)]
struct IterationNote {
    number: u32,
    how: String,
    /// True if `until` was true: the iteration is the result.
    #[serde(default)]
    right: bool,
    score: Option<f64>,
    #[serde(rename = "said")]
    report: StepReport,
    /// For outputs with `{{ iteration }}`: the iteration whose file the name stands for; `None`: the name is null.
    stands: BTreeMap<String, Option<u32>>,
    /// The digest of every output and `out`, if the best iteration can be the result.
    files: Vec<(String, Option<Digest>)>,
}

/// The state of the loop after some iterations.
#[derive(Default)]
struct RefineState {
    /// True if `until` was true in the last iteration.
    is_right: bool,
    report: StepReport,
    history: Vec<String>,
    best: Option<BestIteration>,
    /// The iteration with the highest score, and that score.
    highest: Option<(u32, f64)>,
}

/// Runs the iterations. Each sees its number as `iteration` and the results of the one before as `previous`. Iterations that an
/// earlier run finished do not run again.
///
/// # Errors
/// The outcome of a step that failed, or of a loop that reached its last iteration.
pub(crate) fn refine(ctx: &mut BatchContext<'_>, refine: &Refine) -> Result<StepReport, Outcome> {
    let most = refine.max_iterations.number(&ctx.base);
    let most = u32::try_from(most.map_err(parse_failure)?.max(1)).unwrap_or(u32::MAX);
    let mut done = RefineState::default();
    ctx.scope.absent("previous");
    let finished = resume(ctx, refine, &mut done)?;
    if done.is_right {
        ctx.iterations.over();
        return Ok(done.report);
    }
    for number in finished + 1..=most {
        if let Some(how) = done.history.last() {
            ctx.observer.event(StepEvent::Revises(number, how));
        }
        begin(ctx, number);
        let report = run_steps(ctx, number)?;
        if is_right(ctx, &refine.until)? {
            log_result(ctx, number, "right");
            // A right iteration is the result, independent of its score.
            let score = score(ctx, refine.score.as_ref()).unwrap_or_default();
            report_iteration(ctx, number, true, score);
            let note = IterationNote {
                number,
                how: "right".to_owned(),
                right: true,
                score,
                report,
                files: Vec::new(),
                stands: stands(ctx, number)?,
            };
            keep(ctx, &note)?;
            done.report.add(note.report);
            ctx.iterations.over();
            return Ok(done.report);
        }
        let score = score(ctx, refine.score.as_ref())?;
        report_iteration(ctx, number, false, score);
        let how = score.map_or_else(
            || "not right".to_owned(),
            |score| format!("not right, score {score}"),
        );
        log_result(ctx, number, &how);
        let held = if refine.best { files(ctx)? } else { Vec::new() };
        let digests = held.iter().map(|(name, bytes)| {
            let digest = bytes.as_ref().map(Digest::of);
            (name.clone(), digest)
        });
        let note = IterationNote {
            number,
            how,
            right: false,
            score,
            report,
            files: digests.collect(),
            stands: stands(ctx, number)?,
        };
        keep(ctx, &note)?;
        if number < most {
            set_previous(ctx);
        }
        done.take(note, refine, || Ok(held))?;
    }
    ctx.iterations.over();
    let RefineState {
        mut report,
        history,
        best,
        highest,
        is_right: _,
    } = done;
    let Some(best) = best else {
        let message = message(ctx, refine, most, highest);
        return Err(Outcome::new(OutcomeKind::Refine, message).with_details(history));
    };
    report.warnings.push(format!(
        "`until` was true in none of {}: iteration {} is used, with the score {}",
        count(most.into(), "iteration", "iterations"),
        best.number,
        best.score
    ));
    restore(ctx, best)?;
    Ok(report)
}

/// Saves an iteration, so that it does not run again after a kill.
fn keep(ctx: &BatchContext<'_>, note: &IterationNote) -> Result<(), Outcome> {
    let value = serde_json::to_value(note).map_err(parse_failure)?;
    ctx.iterations.keep(note.number, value)
}

impl RefineState {
    /// Adds an iteration.
    fn take(
        &mut self,
        note: IterationNote,
        refine: &Refine,
        files: impl FnOnce() -> Result<Vec<(String, Option<Vec<u8>>)>, Outcome>,
    ) -> Result<(), Outcome> {
        let IterationNote { number, how, .. } = note;
        self.report.add(note.report);
        self.is_right = note.right;
        if note.right {
            return Ok(());
        }
        self.history.push(format!("iteration {number}: {how}"));
        if let Some(score) = note.score
            && self.highest.is_none_or(|(_, highest)| score > highest)
        {
            self.highest = Some((number, score));
        }
        if let Some(score) = note.score.filter(|_| refine.best)
            && self.best.as_ref().is_none_or(|best| score > best.score)
        {
            let files = files()?;
            self.best = Some(BestIteration {
                number,
                score,
                files,
            });
        }
        Ok(())
    }
}

/// Returns the message of a loop that reached its last iteration.
fn message(
    ctx: &mut BatchContext<'_>,
    refine: &Refine,
    most: u32,
    highest: Option<(u32, f64)>,
) -> String {
    let until = refine.until.source.trim();
    let rounds = if most == 1 {
        "the only iteration".to_owned()
    } else {
        format!("{most} iterations")
    };
    let plain = format!("after {rounds}, `{until}` is not true");
    let Some(template) = &refine.message else {
        return plain;
    };
    let (iteration, score) = highest.unzip();
    // A whole score is shown without a decimal point, as the program returned it.
    let score = score.map(|score| format!("{score}").parse::<Number>().ok());
    let best = json!({ "iteration": iteration, "score": score });
    ctx.scope.insert_value("best", best);
    let values = ctx.scope.context_of(template).ok();
    let rendered = values.and_then(|values| template.render(&values).ok());
    rendered.unwrap_or(plain)
}

/// Restores the state after the iterations that an earlier run finished, and returns the number of the last.
fn resume(
    ctx: &mut BatchContext<'_>,
    refine: &Refine,
    done: &mut RefineState,
) -> Result<u32, Outcome> {
    let mut last = None;
    for note in ctx.iterations.resume()? {
        let note: IterationNote = serde_json::from_value(note).map_err(parse_failure)?;
        log_result(
            ctx,
            note.number,
            &format!("{}, by an earlier run", note.how),
        );
        let kept = note.files.clone();
        let rounds = ctx.iterations;
        last = Some((note.number, note.stands.clone()));
        done.take(note, refine, || {
            let read = |(name, digest): (String, Option<Digest>)| {
                let bytes = digest.map(|digest| rounds.content(digest)).transpose();
                Ok((name, bytes?))
            };
            kept.into_iter().map(read).collect()
        })?;
    }
    let Some((number, stands)) = last else {
        return Ok(0);
    };
    for name in made_names(ctx) {
        match stands.get(&name) {
            Some(None) => ctx.scope.absent(&name),
            Some(Some(round)) => {
                ctx.outputs.set_iteration(*round);
                add_to_scope(ctx, &name)?;
            }
            None => add_to_scope(ctx, &name)?,
        }
    }
    begin(ctx, number);
    set_previous(ctx);
    Ok(number)
}

/// Sets `previous` to the results of this iteration.
fn set_previous(ctx: &mut BatchContext<'_>) {
    let previous = previous(ctx);
    ctx.scope.insert_value("previous", previous);
}

/// For outputs with `{{ iteration }}`, returns the iteration whose file the name stands for. If a step was skipped, that is an
/// earlier one.
fn stands(ctx: &BatchContext<'_>, number: u32) -> Result<BTreeMap<String, Option<u32>>, Outcome> {
    let mut stands = BTreeMap::new();
    for output in ctx.stage.outputs.iter().filter(|output| output.per_round) {
        let name = &output.name;
        let shown = ctx.scope.source(name).map(|source| source.name());
        let mut found = None;
        for round in (1..=number).rev().filter(|_| shown.is_some()) {
            ctx.outputs.set_iteration(round);
            let made = ctx.outputs.written(name);
            let made = made.map_err(|error| output_failure(name, error))?;
            if made.first().map(|file| file.name()) == shown {
                found = Some(round);
                break;
            }
        }
        stands.insert(name.clone(), found);
    }
    ctx.outputs.set_iteration(number);
    Ok(stands)
}

fn begin(ctx: &mut BatchContext<'_>, number: u32) {
    ctx.outputs.set_iteration(number);
    ctx.scope.insert_value("iteration", number.into());
}

/// Writes the result of an iteration to the log of the attempt.
fn log_result(ctx: &mut BatchContext<'_>, number: u32, how: &str) {
    // A log that cannot be written does not fail the batch.
    let _ = writeln!(ctx.log, "iteration {number}: {how}");
}

/// Reports the result of an iteration, with the stage's `summary` if it can be computed.
fn report_iteration(ctx: &BatchContext<'_>, round: u32, right: bool, score: Option<f64>) {
    let summary = ctx.stage.summary.as_ref();
    let mut summary = summary.and_then(|program| value(ctx, program).ok());
    if let Some(summary) = &mut summary {
        ctx.calls.redactor().known_value(summary);
    }
    ctx.observer.event(StepEvent::Judged(Round {
        round,
        right,
        score,
        summary,
    }));
}

fn is_right(ctx: &BatchContext<'_>, until: &Program) -> Result<bool, Outcome> {
    match value(ctx, until)? {
        Value::Bool(yes) => Ok(yes),
        other => Err(parse_failure(format!(
            "`until`: expected true or false, found {other}"
        ))),
    }
}

fn score(ctx: &BatchContext<'_>, program: Option<&Program>) -> Result<Option<f64>, Outcome> {
    let Some(program) = program else {
        return Ok(None);
    };
    match value(ctx, program)? {
        Value::Number(score) => Ok(score.as_f64()),
        Value::Null => Ok(None),
        other => Err(parse_failure(format!(
            "`score`: expected a number, found {other}"
        ))),
    }
}

fn value(ctx: &BatchContext<'_>, program: &Program) -> Result<Value, Outcome> {
    ctx.jq.one(program, &ctx.scope)
}

/// Returns the name of every output and `out` once.
fn made_names(ctx: &BatchContext<'_>) -> BTreeSet<String> {
    let outputs = ctx.stage.outputs.iter().map(|output| &output.name);
    let outs = ctx.stage.steps.iter().map(|step| &step.out);
    outputs.chain(outs).cloned().collect()
}

/// Returns the results of the iteration as values, because the next one overwrites its files.
fn previous(ctx: &BatchContext<'_>) -> Value {
    let mut previous = Map::new();
    for name in made_names(ctx) {
        // Binary files have no value.
        let value = ctx.scope.value(&name).unwrap_or_default();
        previous.insert(name, value);
    }
    Value::Object(previous)
}

/// Returns the content of the files that the next iteration overwrites.
#[expect(clippy::type_complexity)]
fn files(ctx: &BatchContext<'_>) -> Result<Vec<(String, Option<Vec<u8>>)>, Outcome> {
    let mut files = Vec::new();
    for name in made_names(ctx) {
        let bytes = match ctx.scope.source(&name) {
            None => None,
            Some(source) => {
                let mut bytes = Vec::new();
                let read = source
                    .open()
                    .and_then(|mut file| file.read_to_end(&mut bytes));
                read.map_err(|error| input_failure(&source.name(), error))?;
                Some(bytes)
            }
        };
        files.push((name, bytes));
    }
    Ok(files)
}

/// Writes the files of an iteration back as the outputs of the attempt.
fn restore(ctx: &mut BatchContext<'_>, kept: BestIteration) -> Result<(), Outcome> {
    begin(ctx, kept.number);
    for (name, bytes) in kept.files {
        let output = ctx.stage.output(&name);
        if output.is_none_or(|output| !output.per_round) {
            let failed = |error| output_failure(&name, error);
            ctx.outputs.clear(&name).map_err(failed)?;
            if let Some(bytes) = bytes {
                let mut sink = ctx.outputs.create(&name, None).map_err(failed)?;
                sink.write_all(&bytes).map_err(failed)?;
                sink.finish().map_err(failed)?;
            }
        }
        add_to_scope(ctx, &name)?;
    }
    Ok(())
}
