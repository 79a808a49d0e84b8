//! Asks whole prompts: one for the batch, or one for each item of a list.

use super::single_answer::{self, SingleAnswer, Subject, about};
use super::task::AgentTask;
use super::undeclared;
use crate::steps::batch_context::{BatchContext, StepReport, StepResult, parse_failure};
use crate::steps::{jq, values};
use milepost_core::base::words::count;
use milepost_core::model::outcome::{Outcome, OutcomeKind};
use milepost_core::model::stage::Program;
use milepost_core::model::step::{AnswerForm, Items, Step};
use serde_json::Value;

/// The characters of an item that a message shows.
const SHOWN: usize = 60;

/// Asks an agent. The output is the answer, or what `result` makes of it; with `each` a list of these, in the order of the items.
///
/// # Errors
/// When an answer is missing after all attempts, or the output cannot be made. Valid answers are kept nevertheless.
pub(super) fn ask(ctx: &mut BatchContext<'_>, task: &AgentTask<'_>) -> StepResult {
    let (handle, schema) = task.resolved(ctx)?;
    let schema = schema.filter(|_| task.answer != AnswerForm::Text);
    let items = match task.each {
        Some(each) => items(ctx, each)?,
        None => Vec::new(),
    };
    let subjects: Vec<Subject<'_>> = match task.each {
        Some(each) => {
            let items = items.iter();
            items.map(|item| Some((each.name.as_str(), item))).collect()
        }
        None => vec![None],
    };
    let answers = single_answer::answers(ctx, task, &handle, schema.as_deref(), &subjects)?;
    let answers = all_of(ctx, task, &subjects, answers)?;
    let mut report = StepReport::default();
    let mut undeclared = undeclared(task);
    let mut made = Vec::with_capacity(answers.len());
    for (at, (answered, &subject)) in answers.into_iter().zip(&subjects).enumerate() {
        let SingleAnswer {
            answer,
            warnings,
            usage,
            from,
        } = answered;
        let warnings = warnings.into_iter().map(|warning| match subject {
            Some((name, _)) => format!("{name} {}: {warning}", at + 1),
            None => warning,
        });
        report.warnings.extend(warnings);
        if let Some(from) = from {
            from.add_to(&mut report.answers);
        }
        let Some(program) = task.result else {
            made.push(answer);
            continue;
        };
        let record = about(ctx, subject, |ctx| record(ctx, program, &answer, usage))?;
        if let Some(undeclared) = &mut undeclared {
            let text = record.to_string();
            undeclared.see(&answer, &text).map_err(parse_failure)?;
        }
        made.push(record);
    }
    if let Some(undeclared) = undeclared {
        report.warnings.extend(undeclared.warnings());
    }
    let made = match task.each {
        Some(_) => Value::Array(made),
        None => made.pop().unwrap_or(Value::Null),
    };
    jq::write(ctx, task.out, &made)?;
    Ok(report)
}

/// Returns what `result` makes of an answer.
fn record(
    ctx: &BatchContext<'_>,
    program: &Program,
    answer: &Value,
    usage: Value,
) -> Result<Value, Outcome> {
    let mut scope = values::named(ctx, program.jq.names())?;
    scope.insert("usage".to_owned(), usage);
    let record = program.one(answer.clone(), &scope, &*ctx.jq);
    record.map_err(parse_failure)
}

/// Returns the items of a step.
fn items(ctx: &BatchContext<'_>, each: &Items) -> Result<Vec<Value>, Outcome> {
    let items = ctx.scope.all(&each.program.jq, &*ctx.jq)?;
    items.map_err(|error| parse_failure(error).for_good())
}

/// Returns the number of items of a step that was not reached; `None` if an earlier step decides it.
pub(crate) fn count_items(ctx: &BatchContext<'_>, each: &Items) -> Option<u64> {
    if is_open(ctx, &each.program) {
        return None;
    }
    items(ctx, each).ok().map(|items| items.len() as u64)
}

/// Returns whether a step that was not reached will run; `None` if an earlier step decides it.
pub(crate) fn will_run(ctx: &BatchContext<'_>, step: &Step) -> Option<bool> {
    let Some(when) = &step.when else {
        return Some(true);
    };
    if is_open(ctx, when) {
        return None;
    }
    ctx.jq.one(when, &ctx.scope).ok()?.as_bool()
}

/// Returns true if a program reads what a step that was not reached makes.
fn is_open(ctx: &BatchContext<'_>, program: &Program) -> bool {
    let jq = &program.jq;
    let steps = ctx.stage.steps.iter().map(|step| step.out.as_str());
    let outputs = ctx.stage.outputs.iter().map(|output| output.name.as_str());
    let is_missing = |name: &str| !ctx.scope.has(name) && jq.roots().has(name);
    jq.takes_whole() || steps.chain(outputs).any(is_missing)
}

/// Returns all answers.
///
/// # Errors
/// When one is missing. The outcome names each of them with its reason.
fn all_of(
    ctx: &BatchContext<'_>,
    task: &AgentTask<'_>,
    subjects: &[Subject<'_>],
    answers: Vec<Result<SingleAnswer, Outcome>>,
) -> Result<Vec<SingleAnswer>, Outcome> {
    let mut right = Vec::with_capacity(answers.len());
    let mut failed = Vec::new();
    for (at, answer) in answers.into_iter().enumerate() {
        match answer {
            Ok(answer) => right.push(answer),
            Err(outcome) => failed.push((at, outcome)),
        }
    }
    let has = |kind| move |(_, outcome): &&(usize, Outcome)| outcome.kind == kind;
    let is_final = |(_, outcome): &&(usize, Outcome)| !outcome.kind.waits();
    // A stop and an exhausted budget end the run, so they come before other failures.
    let first = (failed.iter().find(has(OutcomeKind::Cancelled)))
        .or_else(|| failed.iter().find(has(OutcomeKind::Budget)))
        .or_else(|| failed.iter().find(is_final))
        .or_else(|| failed.first());
    let Some((at, first)) = first else {
        return Ok(right);
    };
    let Some((name, item)) = subjects[*at] else {
        return Err(first.clone());
    };
    if first.kind.waits() && first.kind != OutcomeKind::Budget {
        return Err(first.clone());
    }
    let label = |at: usize, item: &Value| {
        let item = item.to_string();
        let mut shown: String = item.chars().take(SHOWN).collect();
        if shown.len() < item.len() {
            shown.push('…');
        }
        format!("{name} {} ({shown})", at + 1)
    };
    let mut outcome = first.clone();
    if let [_] = failed.as_slice() {
        outcome.message = format!("{}: {}", label(*at, item), outcome.message);
        return Err(outcome);
    }
    let missing = failed.len();
    outcome.message = format!(
        "{missing} of {} {} missing; {name} {}: {}",
        count(subjects.len() as u64, "answer", "answers"),
        if missing == 1 { "is" } else { "are" },
        at + 1,
        outcome.message
    );
    outcome.details = Vec::new();
    for (at, one) in &failed {
        let code = task.errors.get(one.kind.name());
        let code = code.or_else(|| ctx.stage.errors.get(one.kind.name()));
        let code = code.unwrap_or(&one.code);
        let item = subjects[*at].map_or(&Value::Null, |(_, item)| item);
        let mut line = format!("{}: {code}: {}", label(*at, item), one.message);
        let details: Vec<&str> = one.details.iter().map(String::as_str).collect();
        if !details.is_empty() {
            // A violation of the whole answer has an empty pointer.
            let details = details.join("; ");
            line.push_str(": ");
            line.push_str(details.strip_prefix(": ").unwrap_or(&details));
        }
        outcome.details.push(line);
    }
    Err(outcome)
}
