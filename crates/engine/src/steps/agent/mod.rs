//! The step `agent`: asks about the questions of a batch, and joins each answer with its elements to records.

mod call;
mod costs;
mod exchange;
mod gather;
mod heard;
mod one;
pub(crate) mod outside;
pub(crate) mod parts;
pub(crate) mod ready;
pub(crate) mod sort;
mod task;
mod undeclared;

pub(crate) use ready::{AgentError, Agents, Answerers, Purpose, Who};
pub(crate) use task::Asking;

use super::work::{Said, StepResult, Work, input_failure, output_failure, parse_failure};
use super::{jq, values};
use exchange::{Asked, Form, Terms};
use milepost_core::base::source::Source;
use milepost_core::expr::select::{PathStep, Select};
use milepost_core::model::agent::Agent;
use milepost_core::model::outcome::{Outcome, OutcomeKind};
use milepost_core::model::record::FailedKeys;
use milepost_core::model::stage::Stage;
use milepost_core::model::step::AnswerForm;
use milepost_store::check::conserve::name;
use milepost_store::check::schema::Schema;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::Arc;
use undeclared::Undeclared;

/// A question of a batch, as `split` wrote it.
#[derive(Deserialize)]
struct Question {
    id: String,
    #[serde(rename = "question")]
    asked: Value,
    /// Positions of the elements that ask it.
    elements: Vec<usize>,
}

/// Asks the questions of a batch; writes an array with a record for each of its elements, in their order.
///
/// # Errors
/// When the batch has another form, an answer does not match the schema, or the join fails.
pub(crate) fn ask(work: &mut Work<'_>, asking: &Asking<'_>) -> StepResult {
    if !asking.questions {
        return ask_once(work, asking);
    }
    let Asking { out, result, .. } = *asking;
    let source = batch_file(work)?;
    let wrong = |error: &dyn std::fmt::Display| input_failure(&source.name(), error);
    let questions = read_questions(&*source)?;
    let key = key_of(work.stage);
    let found = answers(work, asking, &questions, key.is_some())?;
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
    let mut undeclared = undeclared(asking);
    let mut asked: Vec<usize> = Vec::new();
    for (index, question) in questions.iter().enumerate() {
        for &element in &question.elements {
            if asked.len() <= element {
                asked.resize(element + 1, usize::MAX);
            }
            asked[element] = index;
        }
    }
    // The step is not repeated: questions without a valid answer would be asked again, in more calls than a plan counts.
    let output = |error: io::Error| output_failure(out, error).for_good();
    let mut join = match result {
        Some(program) => {
            let scope = values::named(work, program.jq.names())?;
            let vars = program.values(&scope);
            Some(program.jq.bind(&vars).map_err(parse_failure)?)
        }
        None => None,
    };
    let mut sink = work.outs.create(out, None).map_err(output)?;
    sink.write_all(b"[").map_err(output)?;
    let (mut position, mut written) = (0, 0);
    let mut line = Vec::new();
    let elements = Select::parse(".elements[]").map_err(|error| wrong(&error))?;
    let opened = source.open().map_err(|error| wrong(&error))?;
    elements
        .read_text(opened, &mut |element, _| -> Result<(), String> {
            let index = asked.get(position).copied().unwrap_or(usize::MAX);
            let answer = answers.get(index);
            let answer =
                answer.ok_or_else(|| format!("/elements/{position} belongs to no question"))?;
            let Some(answer) = answer else {
                if let (Some(failed), Some(key)) = (failed.get_mut(&index), &key) {
                    failed.keys.push(key.of(element, position)?);
                }
                position += 1;
                return Ok(());
            };
            line.clear();
            line.extend_from_slice(if written == 0 { b"\n" } else { b",\n" });
            match &mut join {
                None => serde_json::to_writer(&mut line, answer),
                Some(bound) => {
                    bound
                        .set_text("element", element)
                        .map_err(|error| error.to_string())?;
                    let record = bound
                        .one(answer.clone())
                        .map_err(|error| error.to_string())?;
                    if let Some(undeclared) = &mut undeclared {
                        undeclared.see(answer, &record);
                    }
                    serde_json::to_writer(&mut line, &record)
                }
            }
            .map_err(|error| error.to_string())?;
            sink.write_all(&line).map_err(|error| error.to_string())?;
            position += 1;
            written += 1;
            Ok(())
        })
        .map_err(|error| wrong(&error))?;
    sink.write_all(b"\n]\n").map_err(output)?;
    sink.finish().map_err(output)?;
    warnings.extend(undeclared.into_iter().flat_map(Undeclared::warnings));
    Ok(Said {
        warnings,
        failed: failed.into_values().collect(),
        answers: found.from,
        ..Said::default()
    })
}

/// Returns how many calls an agent step makes at most for one batch with so many questions. Each attempt sends one request, or for
/// questions that many as halving makes of it until each holds one question, which happens when requests are too long.
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
/// When the file cannot be read, or has another form.
pub(crate) fn count_questions(work: &Work<'_>) -> Result<u64, Outcome> {
    let source = batch_file(work)?;
    Ok(read_questions(&*source)?.len() as u64)
}

/// Returns the counter of undeclared keys of a step whose `result` can leave keys of an answer out.
fn undeclared<'a>(asking: &Asking<'a>) -> Option<Undeclared<'a>> {
    let schema = asking.schema.filter(|_| asking.result.is_some())?;
    Some(Undeclared::of(schema.path.as_str(), &schema.text))
}

/// How an element is named that fails.
enum Key {
    /// By what conservation counts.
    Path(Select),
    /// By its place.
    Place,
}

impl Key {
    /// The name of an element, given as JSON, at this place of its batch.
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

/// How elements of a stage are named that fail; none: the batch fails as a whole, since its stage stops at failures, or counts
/// something else than its elements.
fn key_of(stage: &Stage) -> Option<Key> {
    let policy = &stage.policy;
    let goes_on = policy.tolerates_failures();
    if !goes_on || stage.refine.is_some() {
        return None;
    }
    let Some(conserve) = &stage.conserve else {
        return Some(Key::Place);
    };
    let steps = conserve.input.steps();
    let elements = |step: &PathStep| *step == PathStep::Field("elements".to_owned());
    let after = 1 + steps.iter().position(elements)?;
    let is_field = |step: &PathStep| matches!(step, PathStep::Field(_));
    let (list, fields) = steps.get(after..)?.split_first()?;
    let is_key = *list == PathStep::Each && fields.iter().all(is_field);
    (after <= 3 && is_key).then(|| Key::Path(Select::of(fields.iter().cloned())))
}

/// The file that `split` wrote: the item of the batch.
fn batch_file(work: &Work<'_>) -> Result<Arc<dyn Source>, Outcome> {
    let files = work
        .stage
        .each
        .iter()
        .filter_map(|each| work.scope.source(&format!("{}.data", each.name)));
    let inputs = work
        .stage
        .inputs
        .iter()
        .filter_map(|input| work.scope.source(&input.name));
    files.chain(inputs).next().ok_or_else(|| {
        input_failure(work.name, "`questions = true` reads a batch that `split` wrote: give the stage an [each.NAME] with `path`")
    })
}

fn read_questions(source: &dyn Source) -> Result<Vec<Question>, Outcome> {
    let failed = |error: &dyn std::fmt::Display| input_failure(&source.name(), error);
    let opened = source.open().map_err(|error| failed(&error))?;
    let mut questions = Vec::new();
    let select = Select::parse(".questions[]").map_err(|error| failed(&error))?;
    select
        .read(opened, &mut |value| -> Result<(), String> {
            questions.push(
                serde_json::from_value::<Question>(value).map_err(|error| error.to_string())?,
            );
            Ok(())
        })
        .map_err(|error| failed(&error))?;
    Ok(questions)
}

/// Asks once for the batch; what it answers, or `result` makes of that, is the output.
fn ask_once(work: &mut Work<'_>, asking: &Asking<'_>) -> StepResult {
    let ready = work.agents.get(asking.agent);
    let ready = ready.ok_or_else(|| input_failure(asking.agent, "this agent is not declared"))?;
    let ready = Arc::clone(ready);
    let schema = asking.schema.map(|asset| work.schemas.get(asset));
    let schema = schema
        .transpose()
        .map_err(|error| Outcome::new(OutcomeKind::Schema, error.to_string()))?;
    let schema = schema.filter(|_| asking.answer != AnswerForm::Text);
    let one::Answered {
        answer,
        mut warnings,
        usage,
        from,
    } = one::answer(work, asking, &ready, schema.as_deref())?;
    let made = match asking.result {
        Some(program) => {
            let mut scope = values::named(work, program.jq.names())?;
            scope.insert("usage".to_owned(), usage);
            let record = program.one(answer.clone(), &scope).map_err(parse_failure)?;
            if let Some(mut undeclared) = undeclared(asking) {
                undeclared.see(&answer, &record);
                warnings.extend(undeclared.warnings());
            }
            record
        }
        None => answer,
    };
    jq::write(work, asking.out, &made)?;
    Ok(Said {
        warnings,
        answers: from.into_iter().collect(),
        ..Said::default()
    })
}

/// The answer to each question.
fn answers(
    work: &mut Work<'_>,
    asking: &Asking<'_>,
    questions: &[Question],
    some_will_do: bool,
) -> Result<exchange::Answers, Outcome> {
    let ready = work
        .agents
        .get(asking.agent)
        .ok_or_else(|| input_failure(asking.agent, "this agent is not declared"))?;
    let schema = asking.schema.map(|asset| work.schemas.get(asset));
    let schema = schema
        .transpose()
        .map_err(|error| Outcome::new(OutcomeKind::Schema, error.to_string()))?;
    let one_by_one = |answer: &dyn Fn(&Value) -> Result<Value, Outcome>| {
        let mut answers = Vec::with_capacity(questions.len());
        for question in questions {
            let answer = answer(&question.asked)?;
            if let Some(schema) = &schema {
                refuse_wrong(schema, &answer, &question.id)?;
            }
            answers.push(Some(answer));
        }
        Ok(exchange::Answers {
            of_each: answers,
            ..exchange::Answers::default()
        })
    };
    match &ready.who {
        Who::Rules(rules) => one_by_one(&|question| Ok(rules.answer(question))),
        Who::Jq(program) => {
            let base = work.base.clone();
            one_by_one(&|question| {
                let answer = program.one(question.clone(), &base);
                answer.map_err(|error| parse_failure(error).for_good())
            })
        }
        Who::Replay(_) | Who::Api(_) | Who::Tool(_) | Who::Outside => {
            let ready = Arc::clone(ready);
            let text: Option<Value> = match asking.schema {
                Some(asset) => Some(serde_json::from_str(&asset.text).map_err(parse_failure)?),
                None => None,
            };
            let schema = match (&schema, &text, asking.schema) {
                (Some(schema), Some(text), Some(asset)) => Some(Form {
                    schema,
                    asset,
                    text,
                }),
                _ => None,
            };
            let terms = Terms {
                out: asking.out,
                ready: &ready,
                prompt: asking.prompt,
                schema,
                attempts: asking.attempts,
                timeout: asking.timeout,
                some_will_do,
            };
            let asked: Vec<Asked<'_>> = questions
                .iter()
                .map(|question| Asked {
                    id: &question.id,
                    question: &question.asked,
                })
                .collect();
            exchange::answers(work, &terms, &asked)
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
