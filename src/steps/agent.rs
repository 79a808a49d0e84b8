//! The step `agent`: asks about the questions of a batch, and joins each answer with its elements to records.

use super::values;
use super::work::{Said, StepResult, Work, input_failure, output_failure, parse_failure};
use crate::agents::rules::Rules;
use crate::base::source::Source;
use crate::check::schema::Schema;
use crate::expr::select::Select;
use crate::model::outcome::{Outcome, OutcomeKind};
use crate::model::agent::{Agent, Provider};
use crate::model::pipeline::Asset;
use crate::model::stage::Program;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::Arc;

/// The agents that a stage asks, ready to answer: by the name that the step uses, after replacements.
#[derive(Default)]
pub struct Answerers(BTreeMap<String, Rules>);

impl Answerers {
    /// Makes the agents of these names ready.
    ///
    /// # Errors
    /// When a table of rules is wrong.
    pub fn of<'a>(agents: impl IntoIterator<Item = (&'a str, &'a Agent)>) -> Result<Self, String> {
        let mut ready = BTreeMap::new();
        for (name, agent) in agents {
            let Provider::Rules(asset) = &agent.provider;
            let rules = Rules::parse(asset.path.as_str(), &asset.text);
            ready.insert(name.to_owned(), rules.map_err(|error| error.to_string())?);
        }
        Ok(Self(ready))
    }
}

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
pub fn ask(
    work: &mut Work<'_>,
    out: &str,
    agent: &str,
    schema: Option<&Asset>,
    result: Option<&Program>,
) -> StepResult {
    let source = batch_file(work)?;
    let failed = |error: &dyn std::fmt::Display| input_failure(&source.name(), error);
    let questions = read_questions(&*source)?;
    let rules = work
        .agents
        .0
        .get(agent)
        .ok_or_else(|| input_failure(agent, "this agent has no table of rules"))?;
    let schema = schema.map(|asset| work.schemas.get(asset));
    let schema = schema
        .transpose()
        .map_err(|error| Outcome::new(OutcomeKind::Schema, error.to_string()))?;
    let mut answers: Vec<Value> = Vec::with_capacity(questions.len());
    let mut asked: Vec<usize> = Vec::new();
    for (index, question) in questions.iter().enumerate() {
        let answer = rules.answer(&question.asked);
        if let Some(schema) = &schema {
            refuse_wrong(schema, &answer, &question.id)?;
        }
        answers.push(answer);
        for &element in &question.elements {
            if asked.len() <= element {
                asked.resize(element + 1, usize::MAX);
            }
            asked[element] = index;
        }
    }
    let output = |error: io::Error| output_failure(out, error);
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
    let mut position = 0;
    let mut line = Vec::new();
    let elements = Select::parse(".elements[]").map_err(|error| failed(&error))?;
    let opened = source.open().map_err(|error| failed(&error))?;
    elements
        .read_text(opened, &mut |element, _| -> Result<(), String> {
            let answer = asked.get(position).and_then(|&index| answers.get(index));
            let answer =
                answer.ok_or_else(|| format!("/elements/{position} belongs to no question"))?;
            line.clear();
            line.extend_from_slice(if position == 0 { b"\n" } else { b",\n" });
            match &mut join {
                None => serde_json::to_writer(&mut line, answer),
                Some(bound) => {
                    bound
                        .set_text("element", element)
                        .map_err(|error| error.to_string())?;
                    let record = bound
                        .one(answer.clone())
                        .map_err(|error| error.to_string())?;
                    serde_json::to_writer(&mut line, &record)
                }
            }
            .map_err(|error| error.to_string())?;
            sink.write_all(&line).map_err(|error| error.to_string())?;
            position += 1;
            Ok(())
        })
        .map_err(|error| failed(&error))?;
    sink.write_all(b"\n]\n").map_err(output)?;
    sink.finish().map_err(output)?;
    Ok(Said::default())
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
