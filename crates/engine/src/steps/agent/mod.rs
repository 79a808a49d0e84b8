//! The step `agent`: asks the questions of a batch, and joins each answer with its elements.

mod call;
mod call_context;
mod call_record;
mod command_line;
pub(crate) mod costs;
pub(crate) mod handle;
mod join;
mod prompts;
mod provider_batch;
mod questions;
pub(crate) mod reply_matcher;
pub(crate) mod request_parts;
mod single_answer;
pub(crate) mod submission;
mod task;
mod undeclared;

pub(crate) use handle::{AgentError, Agents, Backend, Purpose, StageAgents};
pub(crate) use prompts::{count_items, will_run};
pub(crate) use task::AgentTask;

use super::batch_context::{
    BatchContext, StepReport, StepResult, input_failure, output_failure, parse_failure,
};
use super::records::RecordProgram;
use super::values;
use join::{Elements, Join, RecordList};
use milepost_core::base::in_order::in_order;
use milepost_core::base::source::Source;
use milepost_core::base::texts::Texts;
use milepost_core::expr::jq::EvaluationInput;
use milepost_core::expr::select::{PathStep, Select};
use milepost_core::model::agent::Agent;
use milepost_core::model::outcome::{Outcome, OutcomeKind};
use milepost_core::model::record::FailedKeys;
use milepost_core::model::stage::{Program, Stage};
use milepost_store::check::conserve::name;
use milepost_store::check::schema::Schema;
use questions::{AnswerSchema, BatchQuestion, QuestionTask};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use undeclared::Undeclared;

/// Asks the questions of a batch, and writes an array with one record for each element, in their order.
///
/// # Errors
/// When the batch file is invalid, an answer does not match the schema, or the join fails.
#[expect(clippy::too_many_lines)]
pub(crate) fn ask(ctx: &mut BatchContext<'_>, task: &AgentTask<'_>) -> StepResult {
    if !task.questions {
        return prompts::ask(ctx, task);
    }
    let AgentTask { out, result, .. } = *task;
    let source = batch_file(ctx)?;
    let wrong = |error: &dyn std::fmt::Display| input_failure(&source.name(), error);
    let questions = read_questions(&*source)?;
    let key = key_of(ctx.stage);
    let found = answers(ctx, task, &questions, key.is_some())?;
    let mut failed: BTreeMap<usize, FailedKeys> = found
        .failed
        .into_iter()
        .map(|(index, outcome)| {
            let keys = Vec::new();
            (index, FailedKeys { keys, outcome })
        })
        .collect();
    let answers = found.of_each;
    let mut warnings = found.warnings;
    let mut undeclared = undeclared(task);
    let mut asked: Vec<usize> = Vec::new();
    for (index, question) in questions.iter().enumerate() {
        for &element in &question.elements {
            if asked.len() <= element {
                asked.resize(element + 1, usize::MAX);
            }
            asked[element] = index;
        }
    }
    // The step is not retried: a retry would ask open questions again, in more calls than a plan counts.
    let output = |error: io::Error| output_failure(out, error).for_good();
    let sink = ctx.outputs.create(out, None).map_err(output)?;
    let scope = match result {
        Some(program) => values::named(ctx, program.jq.names())?,
        None => Map::new(),
    };
    let join = result.map(|program| RecordProgram {
        program,
        scope: &scope,
        evaluator: &*ctx.jq,
    });
    let texts = answers
        .iter()
        .map(|answer| answer.as_ref().map(Value::to_string));
    let join = Join {
        answers: texts.collect(),
        ids: questions.iter().map(BatchQuestion::stable_id).collect(),
        set: set_by_elements(result),
        program: join,
    };
    let enough = join.at_once().map_err(parse_failure)?;
    let mut records = RecordList::new(sink);
    let mut position = 0;
    let elements = Select::parse(".elements[]").map_err(|error| wrong(&error))?;
    let opened = source.open().map_err(|error| wrong(&error))?;
    in_order(
        ctx.threads,
        &|| join.work(),
        |give| {
            let mut elements_read = Elements::default();
            elements
                .read_text(opened, &mut |element, _| {
                    let index = asked.get(position).copied().unwrap_or(usize::MAX);
                    let answer = answers.get(index);
                    let answer = answer
                        .ok_or_else(|| format!("/elements/{position} belongs to no question"))?;
                    position += 1;
                    if answer.is_none() {
                        if let (Some(failed), Some(key)) = (failed.get_mut(&index), &key) {
                            failed.keys.push(key.of(element, position - 1)?);
                        }
                        return Ok(());
                    }
                    elements_read.add(element, index);
                    if elements_read.texts.length() < enough {
                        return Ok(());
                    }
                    give(std::mem::take(&mut elements_read))
                })
                .map_err(|error| error.to_string())?;
            give(elements_read)
        },
        &mut |(indices, texts): (Vec<usize>, Result<Texts, String>)| -> Result<(), String> {
            for (text, index) in texts?.iter().zip(indices) {
                if let (Some(undeclared), Some(Some(answer))) =
                    (&mut undeclared, answers.get(index))
                {
                    undeclared.see(answer, text)?;
                }
                records.add(text).map_err(|error| error.to_string())?;
            }
            Ok(())
        },
    )
    .map_err(|error| wrong(&error))?;
    let sink = records.end().map_err(output)?;
    sink.finish().map_err(output)?;
    warnings.extend(undeclared.into_iter().flat_map(Undeclared::warnings));
    Ok(StepReport {
        warnings,
        failed: failed.into_values().collect(),
        answers: found.from,
        ..StepReport::default()
    })
}

/// Returns the variables that each record sees: its element, and the id of its question. An input of the stage that is called
/// `question` hides the id: names of the step come last.
fn set_by_elements(result: Option<&Program>) -> &'static [&'static str] {
    let last = result.and_then(|program| program.jq.vars().last());
    if last.is_some_and(|name| name == "question") {
        &["element", "question"]
    } else {
        &["element"]
    }
}

/// Returns the most calls of an agent step for one batch with this many questions. Each attempt sends one request; a request that
/// is too long is halved, at worst until each part holds one question.
pub(crate) fn most_calls(agent: &Agent, attempts: u32, questions: Option<u64>) -> u64 {
    let requests = questions.map_or(1, |count| count.saturating_mul(2).saturating_sub(1));
    let tries = call::most_tries(agent.limits.tries, attempts);
    requests
        .saturating_mul(u64::from(attempts.max(1)))
        .saturating_mul(u64::from(tries))
}

/// Returns the number of questions in the file of a batch.
///
/// # Errors
/// When the file cannot be read or is invalid.
pub(crate) fn count_questions(ctx: &BatchContext<'_>) -> Result<u64, Outcome> {
    let source = batch_file(ctx)?;
    Ok(read_questions(&*source)?.len() as u64)
}

/// Returns the counter of undeclared keys of a step whose `result` can leave keys of an answer out.
fn undeclared<'a>(task: &AgentTask<'a>) -> Option<Undeclared<'a>> {
    let schema = task.schema.filter(|_| task.result.is_some())?;
    Some(Undeclared::of(schema.path.as_str(), &schema.text))
}

/// How a failed element is named.
enum ElementKey {
    /// By the key that conservation counts.
    Path(Select),
    /// By its position.
    Place,
}

impl ElementKey {
    /// Returns the name of an element, given as JSON, at this position of its batch.
    fn of(&self, element: &str, position: usize) -> Result<String, String> {
        let Self::Path(path) = self else {
            return Ok(format!("/elements/{position}"));
        };
        let mut keys = Vec::new();
        path.read(element.as_bytes(), &mut |key| -> Result<(), String> {
            keys.push(name(&key));
            Ok(())
        })
        .map_err(|error| format!("/elements/{position}: {error}"))?;
        keys.pop()
            .ok_or_else(|| format!("/elements/{position} has no key"))
    }
}

/// Returns how failed elements of a stage are named. `None`: the batch fails as a whole, because its stage stops at failures or
/// counts something other than its elements.
fn key_of(stage: &Stage) -> Option<ElementKey> {
    let policy = &stage.policy;
    let tolerates_failures = policy.tolerates_failures();
    if !tolerates_failures || stage.refine.is_some() {
        return None;
    }
    let Some(conserve) = &stage.conserve else {
        return Some(ElementKey::Place);
    };
    let steps = conserve.input.steps();
    let elements = |step: &PathStep| *step == PathStep::Field("elements".to_owned());
    let after = 1 + steps.iter().position(elements)?;
    let is_field = |step: &PathStep| matches!(step, PathStep::Field(_));
    let (list, fields) = steps.get(after..)?.split_first()?;
    let is_key = *list == PathStep::Each && fields.iter().all(is_field);
    (after <= 3 && is_key).then(|| ElementKey::Path(Select::of(fields.iter().cloned())))
}

/// Returns the batch file that `split` wrote.
fn batch_file(ctx: &BatchContext<'_>) -> Result<Arc<dyn Source>, Outcome> {
    let files = ctx
        .stage
        .each
        .iter()
        .filter_map(|each| ctx.scope.source(&format!("{}.data", each.name)));
    let inputs = ctx
        .stage
        .inputs
        .iter()
        .filter_map(|input| ctx.scope.source(&input.name));
    files.chain(inputs).next().ok_or_else(|| {
        input_failure(ctx.name, "`questions = true` reads a batch that `split` wrote: give the stage an [each.NAME] with `path`")
    })
}

fn read_questions(source: &dyn Source) -> Result<Vec<BatchQuestion>, Outcome> {
    let failed = |error: &dyn std::fmt::Display| input_failure(&source.name(), error);
    let opened = source.open().map_err(|error| failed(&error))?;
    let mut questions = Vec::new();
    let select = Select::parse(".questions[]").map_err(|error| failed(&error))?;
    select
        .read(opened, &mut |value| -> Result<(), String> {
            questions.push(
                serde_json::from_value::<BatchQuestion>(value)
                    .map_err(|error| error.to_string())?,
            );
            Ok(())
        })
        .map_err(|error| failed(&error))?;
    Ok(questions)
}

/// Returns the answer to each question.
fn answers(
    ctx: &mut BatchContext<'_>,
    task: &AgentTask<'_>,
    questions: &[BatchQuestion],
    accepts_partial: bool,
) -> Result<questions::QuestionAnswers, Outcome> {
    let (handle, schema) = task.resolved(ctx)?;
    let checked = |answers: Vec<Value>| {
        for (question, answer) in questions.iter().zip(&answers) {
            if let Some(schema) = &schema {
                refuse_wrong(schema, answer, &question.id)?;
            }
        }
        Ok(questions::QuestionAnswers {
            of_each: answers.into_iter().map(Some).collect(),
            ..questions::QuestionAnswers::default()
        })
    };
    match &handle.backend {
        Backend::Rules(rules) => {
            let answers = questions
                .iter()
                .map(|question| rules.answer(&question.question));
            checked(answers.collect())
        }
        Backend::Jq(program) => {
            let inputs = questions
                .iter()
                .map(|question| question.question.to_string().into());
            let inputs: Vec<EvaluationInput<'_>> = inputs.collect();
            let limited = program.limited(&ctx.base, &*ctx.jq);
            let answers = limited.and_then(|mut jq| jq.one_of_each(&[], &inputs));
            checked(answers.map_err(|error| parse_failure(error).for_good())?)
        }
        Backend::Replay(_) | Backend::Api(_) | Backend::Tool(_) | Backend::External => {
            let text: Option<Value> = match task.schema {
                Some(asset) => Some(serde_json::from_str(&asset.text).map_err(parse_failure)?),
                None => None,
            };
            let schema = match (&schema, &text, task.schema) {
                (Some(schema), Some(text), Some(asset)) => Some(AnswerSchema {
                    schema,
                    asset,
                    text,
                }),
                _ => None,
            };
            let terms = QuestionTask {
                step: task,
                handle: &handle,
                schema,
                accepts_partial,
            };
            questions::answers(ctx, &terms, questions)
        }
    }
}

fn refuse_wrong(schema: &Schema, answer: &Value, id: &str) -> Result<(), Outcome> {
    let violations = schema.violations(answer, "", 20);
    if violations.is_empty() {
        return Ok(());
    }
    let details = violations
        .iter()
        .map(|violation| format!("{}: {}", violation.pointer, violation.message))
        .collect();
    Err(Outcome::new(
        OutcomeKind::Schema,
        format!("the answer to {id} does not match its schema"),
    )
    .with_details(details))
}
