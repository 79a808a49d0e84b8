//! Asks once for a batch without questions. The answer is kept for this batch while the request stays the same.

use super::call::{CallError, Caller, asked};
use super::handle::{AgentHandle, Backend};
use super::request_parts::RequestParts;
use super::task::AgentTask;
use crate::steps::batch_context::{BatchContext, StepEvent, input_failure, parse_failure};
use crate::steps::calls::ValidAnswer;
use crate::steps::values;
use milepost_agents::answer::json::{ExtractedJson, extract_json};
use milepost_agents::answer::tap_yaml::tap_yaml;
use milepost_agents::request::{AgentRequest, Attachment, Reply, StopReason};
use milepost_core::base::digest::Digest;
use milepost_core::model::money::NanoUsd;
use milepost_core::model::outcome::{Outcome, OutcomeKind};
use milepost_core::model::record::AnswersOf;
use milepost_core::model::step::AnswerForm;
use milepost_core::model::usage::Usage;
use milepost_store::check::schema::Schema;
use serde_json::{Map, Value, json};
use std::io::Read;
use std::sync::Arc;

/// The version of this step in the address of an answer.
const VERSION: u32 = 1;

/// The most violations that are shown.
const SHOWN: usize = 20;

/// The answer to the prompt of a batch.
pub(crate) struct SingleAnswer {
    pub(crate) answer: Value,
    pub(crate) warnings: Vec<String>,
    /// The sums `input_tokens`, `output_tokens` and `cost_usd` of its requests; null if unknown.
    pub(crate) usage: Value,
    /// The call of the answer; `None` if no call was needed.
    pub(crate) from: Option<AnswersOf>,
}

/// Tokens and cost of the requests for an answer.
pub(crate) struct RequestUsage {
    /// `None` if a command line or server did not report them.
    tokens: Option<Usage>,
    cost: Option<NanoUsd>,
}

impl RequestUsage {
    pub(crate) const NOTHING: Self = Self {
        tokens: Some(Usage::NONE),
        cost: Some(NanoUsd::ZERO),
    };

    fn add(&mut self, handle: &AgentHandle, reply: &Reply) {
        // No request uses no tokens: the tool or the server reported none.
        let is_silent = matches!(handle.backend, Backend::Tool(_) | Backend::Api(_))
            && reply.usage.total() == 0;
        let tokens = self.tokens.filter(|_| !is_silent);
        self.tokens = tokens.map(|sum| sum + reply.usage);
        let batched = handle.agent.is_batched();
        let cost = handle
            .costs
            .of_call(handle.model(), batched, &reply.usage, reply.reported_cost);
        self.cost = self.cost.zip(cost).map(|(sum, one)| sum + one);
    }

    fn to_json(&self) -> Value {
        json!({
            "input_tokens": self.tokens.map(|tokens| tokens.total_input()),
            "output_tokens": self.tokens.map(|tokens| tokens.output),
            "cost_usd": self.cost.map(NanoUsd::dollars),
        })
    }
}

/// Asks an agent the prompt of a batch.
///
/// # Errors
/// When there is no valid answer after all attempts.
pub(crate) fn answer(
    ctx: &mut BatchContext<'_>,
    task: &AgentTask<'_>,
    handle: &Arc<AgentHandle>,
    schema: Option<&Schema>,
) -> Result<SingleAnswer, Outcome> {
    match &handle.backend {
        Backend::Rules(_) => Err(input_failure(
            task.agent,
            "rules only answer questions that `split` wrote",
        )),
        Backend::Jq(program) => {
            let input = ctx.scope.input_of(&program.jq)?;
            // Names that the scope lacks are null.
            let scope = values::named(ctx, program.jq.names())?;
            let answer = program.one(input, &scope, &*ctx.jq);
            let answer = answer.map_err(|error| parse_failure(error).for_good())?;
            // Text with a block is parsed like that of other agents; other values are used unchanged.
            let (answer, warnings) = match (task.answer, answer) {
                (AnswerForm::TapYaml, Value::String(text)) => block(&text, task.defaults)
                    .map_err(|why| invalid(handle, 1, OutcomeKind::Parse, vec![why]))?,
                (_, answer) => (answer, Vec::new()),
            };
            let wrong = violations(schema, &answer);
            if wrong.is_empty() {
                return Ok(SingleAnswer {
                    answer,
                    warnings,
                    usage: RequestUsage::NOTHING.to_json(),
                    from: None,
                });
            }
            Err(invalid(handle, 1, OutcomeKind::Schema, wrong))
        }
        Backend::Replay(_) | Backend::Api(_) | Backend::Tool(_) | Backend::External => {
            ask(ctx, task, handle, schema)
        }
    }
}

fn ask(
    ctx: &mut BatchContext<'_>,
    task: &AgentTask<'_>,
    handle: &Arc<AgentHandle>,
    schema: Option<&Schema>,
) -> Result<SingleAnswer, Outcome> {
    let template = &task.prompt.template;
    let scope = values::named(ctx, template.mentions().dotted())?;
    let prompt = template
        .render(&Value::Object(scope))
        .map_err(|error| parse_failure(error).for_good())?;
    let mut attachments = Vec::new();
    for name in task.attach {
        attachments.extend(attached(ctx, name)?);
    }
    let text: Option<Value> = match task.schema {
        // A provider cannot resolve references to other files.
        Some(asset) if task.answer == AnswerForm::Json && asset.refers.is_empty() => {
            Some(serde_json::from_str(&asset.text).map_err(parse_failure)?)
        }
        _ => None,
    };
    let request = AgentRequest {
        system: None,
        prompt,
        attachments,
        schema: text,
        max_tokens: handle.max_tokens(),
        temperature: handle.temperature(),
    };
    let address = address(ctx, task, handle, &request);
    if let Some(known) = handle
        .known(ctx.calls, ctx.asked_since, &[address])?
        .pop()
        .flatten()
    {
        let (known, from) = known;
        let usage = known["usage"].clone();
        let (answer, warnings) = unwrapped(known);
        if violations(schema, &answer).is_empty() {
            return Ok(SingleAnswer {
                answer,
                warnings,
                usage,
                from: Some(from),
            });
        }
    }
    let mut caller = Caller {
        handle,
        timeout: task.timeout,
        attempts: task.attempts,
        count: 0,
    };
    let mut feedback: Vec<String> = Vec::new();
    let mut kind = OutcomeKind::Schema;
    let mut used = RequestUsage::NOTHING;
    for _ in 0..task.attempts.max(1) {
        let mut again = request.clone();
        if !feedback.is_empty() {
            again
                .prompt
                .push_str("\n\nYour last answer was not valid:\n");
            for line in &feedback {
                again.prompt.push_str(&format!("- {line}\n"));
            }
            again.prompt.push_str("Answer once more.\n");
        }
        ctx.calls.about_to_ask(&|| RequestParts {
            out: task.out.to_owned(),
            questions: Vec::new(),
            address: Some(address),
            keeps_id: true,
            request: again.clone(),
        });
        let (call, reply) = caller.call(ctx, &again, 1).map_err(|unanswered| {
            let (CallError::TooLong(outcome) | CallError::Failed(outcome)) = unanswered;
            outcome
        })?;
        used.add(handle, &reply);
        let refused = |violations: &[String]| {
            ctx.observer.event(StepEvent::Refused {
                number: call,
                valid: 0,
                violations,
            });
        };
        if let Err(outcome) = refuse(handle, &reply) {
            refused(std::slice::from_ref(&outcome.message));
            caller.mark_used(ctx, call)?;
            return Err(outcome);
        }
        match read(&reply, task.answer, task.defaults) {
            Ok((answer, warnings)) => {
                feedback = violations(schema, &answer);
                kind = OutcomeKind::Schema;
                if feedback.is_empty() {
                    ctx.calls.keep(ValidAnswer {
                        address,
                        answer: kept(&answer, &warnings, &used),
                        schema: task.schema.map(|asset| asset.digest),
                        agent: handle.agent.describe(),
                        call,
                        is_shared: false,
                    })?;
                    caller.mark_used(ctx, call)?;
                    return Ok(SingleAnswer {
                        answer,
                        warnings,
                        usage: used.to_json(),
                        from: Some(AnswersOf::one(ctx.calls.run(), call)),
                    });
                }
            }
            Err(why) => (feedback, kind) = (vec![why], OutcomeKind::Parse),
        }
        refused(&feedback);
        caller.mark_used(ctx, call)?;
    }
    Err(invalid(handle, task.attempts, kind, feedback))
}

/// Returns the outcome of a batch without a valid answer. `kind` tells what was wrong with the last one.
fn invalid(handle: &AgentHandle, attempts: u32, kind: OutcomeKind, wrong: Vec<String>) -> Outcome {
    let requests = match attempts {
        1 => "one request".to_owned(),
        many => format!("{many} requests"),
    };
    let agent = &handle.agent.name;
    let message = format!("agent `{agent}` gave no valid answer in {requests}");
    Outcome::new(kind, message).with_details(wrong).for_good()
}

/// Returns an answer as it is kept.
pub(crate) fn kept(answer: &Value, warnings: &[String], used: &RequestUsage) -> Value {
    json!({ "answer": answer, "warnings": warnings, "usage": used.to_json() })
}

/// Returns a kept answer and its warnings.
fn unwrapped(kept: Value) -> (Value, Vec<String>) {
    let warnings = kept["warnings"].as_array().into_iter().flatten();
    let warnings = warnings.filter_map(|line| Some(line.as_str()?.to_owned()));
    let warnings = warnings.collect();
    let answer = match kept {
        Value::Object(mut kept) => kept.remove("answer").unwrap_or(Value::Null),
        other => other,
    };
    (answer, warnings)
}

/// Returns the address of an answer. It contains the batch and iteration, so that the same prompt in four batches is four
/// calls.
fn address(
    ctx: &BatchContext<'_>,
    task: &AgentTask<'_>,
    handle: &AgentHandle,
    request: &AgentRequest,
) -> Digest {
    let round = ctx.scope.value("iteration").unwrap_or(Value::Null);
    let all = json!([
        "one",
        VERSION,
        ctx.name,
        task.out,
        round,
        handle.agent.digest().to_string(),
        asked(request).to_string(),
    ]);
    Digest::of(all.to_string())
}

fn violations(schema: Option<&Schema>, answer: &Value) -> Vec<String> {
    let Some(schema) = schema else {
        return Vec::new();
    };
    let found = schema.violations(answer, "", SHOWN);
    let lines = found
        .iter()
        .map(|violation| format!("{}: {}", violation.pointer, violation.message));
    lines.collect()
}

/// Fails if the reply was refused or cut.
fn refuse(handle: &AgentHandle, reply: &Reply) -> Result<(), Outcome> {
    let outcome = |kind, what: &str| {
        let message = format!("agent `{}`: {what}", handle.agent.name);
        Err(Outcome::new(kind, message)
            .with_details(vec![reply.text.clone()])
            .for_good())
    };
    match reply.stop {
        StopReason::Refused => outcome(OutcomeKind::Refused, "it refused to answer"),
        StopReason::Length => outcome(
            OutcomeKind::Cut,
            "the answer was cut at `max_tokens`: raise `max_tokens`",
        ),
        StopReason::End | StopReason::Other(_) => Ok(()),
    }
}

/// Returns the values of the block in a text, and a warning for each default.
fn block(text: &str, defaults: &Map<String, Value>) -> Result<(Value, Vec<String>), String> {
    let block = tap_yaml(text, defaults).map_err(|error| error.to_string())?;
    let defaulted = block.defaulted.iter();
    let warnings = defaulted.map(|key| format!("the answer lacks `{key}`: its default is used"));
    let warnings = warnings.collect();
    Ok((Value::Object(block.values), warnings))
}

/// Reads the answer in its declared form, with warnings.
pub(crate) fn read(
    reply: &Reply,
    form: AnswerForm,
    defaults: &Map<String, Value>,
) -> Result<(Value, Vec<String>), String> {
    match form {
        AnswerForm::Text => Ok((Value::String(reply.text.clone()), Vec::new())),
        AnswerForm::TapYaml => block(&reply.text, defaults),
        AnswerForm::Json => match (&reply.structured, extract_json(&reply.text)) {
            (Some(value), _) => Ok((value.clone(), Vec::new())),
            (None, ExtractedJson::One { value, .. }) => Ok((value, Vec::new())),
            (None, ExtractedJson::Several { count, .. }) => {
                Err(format!("{count} JSON values: one was expected"))
            }
            (None, ExtractedJson::Cut) => Err("the JSON does not end".to_owned()),
            (None, ExtractedJson::Broken(why)) => Err(format!("the JSON is wrong: {why}")),
            (None, ExtractedJson::Nothing) => Err("there is no JSON in it".to_owned()),
        },
    }
}

/// Returns the files of a name as attachments.
fn attached(ctx: &BatchContext<'_>, name: &str) -> Result<Vec<Attachment>, Outcome> {
    let sources = ctx.scope.sources(name).ok_or_else(|| {
        input_failure(
            name,
            "`attach` must name inputs or outputs of earlier steps",
        )
    })?;
    let mut files = Vec::new();
    for source in sources {
        let mut bytes = Vec::new();
        source
            .open()
            .and_then(|mut file| file.read_to_end(&mut bytes))
            .map_err(|error| input_failure(&source.name(), error))?;
        let path = source.name();
        let file = path.rsplit('/').next().unwrap_or(&path).to_owned();
        files.push(Attachment {
            media_type: media_type(&file).to_owned(),
            name: file,
            bytes,
        });
    }
    Ok(files)
}

/// Returns the media type of a file extension (IANA registry).
fn media_type(file: &str) -> &'static str {
    let ending = file.rsplit_once('.').map_or("", |(_, ending)| ending);
    match ending.to_lowercase().as_str() {
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "pdf" => "application/pdf",
        "json" => "application/json",
        "csv" => "text/csv",
        "md" => "text/markdown",
        "html" => "text/html",
        _ => "text/plain",
    }
}
