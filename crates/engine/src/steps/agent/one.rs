//! One request for a batch, without questions: its answer is the batch's own, and is kept for it as long as the request is the same.

use super::call::{Caller, Unanswered, asked};
use super::parts::Parts;
use super::ready::{Ready, Who};
use super::task::Asking;
use crate::steps::calls::Valid;
use crate::steps::values;
use crate::steps::work::{Told, Work, input_failure, parse_failure};
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

/// The version of this step, as far as it concerns what an answer is to.
const VERSION: u32 = 1;

/// Violations that are told.
const TOLD: usize = 20;

/// The answer to the prompt of a batch.
pub(crate) struct Answered {
    /// The answer.
    pub(crate) answer: Value,
    /// Warnings for people.
    pub(crate) warnings: Vec<String>,
    /// What its requests used: `input_tokens`, `output_tokens`, `cost_usd`, each null where it is not known.
    pub(crate) usage: Value,
    /// The call that it came with; none: it was free.
    pub(crate) from: Option<AnswersOf>,
}

/// What the requests for an answer used.
pub(crate) struct Used {
    /// None: a tool or a server did not report them.
    tokens: Option<Usage>,
    cost: Option<NanoUsd>,
}

impl Used {
    /// Nothing.
    pub(crate) const NOTHING: Self = Self {
        tokens: Some(Usage::NONE),
        cost: Some(NanoUsd::ZERO),
    };

    fn add(&mut self, ready: &Ready, reply: &Reply) {
        // No request uses no tokens: the tool or the server reported none.
        let is_silent = matches!(ready.who, Who::Tool(_) | Who::Api(_)) && reply.usage.total() == 0;
        let tokens = self.tokens.filter(|_| !is_silent);
        self.tokens = tokens.map(|sum| sum + reply.usage);
        let batched = ready.agent.is_batched();
        let cost = ready
            .costs
            .of_call(ready.model(), batched, &reply.usage, reply.reported_cost);
        self.cost = self.cost.zip(cost).map(|(sum, one)| sum + one);
    }

    fn told(&self) -> Value {
        json!({
            "input_tokens": self.tokens.map(|tokens| tokens.total_input()),
            "output_tokens": self.tokens.map(|tokens| tokens.output),
            "cost_usd": self.cost.map(NanoUsd::dollars),
        })
    }
}

/// The answer of an agent to the prompt of a batch.
///
/// # Errors
/// When it is not answered, or not validly, after all attempts.
pub(crate) fn answer(
    work: &mut Work<'_>,
    asking: &Asking<'_>,
    ready: &Arc<Ready>,
    schema: Option<&Schema>,
) -> Result<Answered, Outcome> {
    match &ready.who {
        Who::Rules(_) => Err(input_failure(
            asking.agent,
            "a table of rules answers the questions that `split` wrote, and nothing else",
        )),
        Who::Jq(program) => {
            let input = work.scope.input_of(&program.jq)?;
            // What the stage's scope lacks is null.
            let scope = values::named(work, program.jq.names())?;
            let answer = program.one(input, &scope);
            let answer = answer.map_err(|error| parse_failure(error).for_good())?;
            // A text that holds a block is read like anybody else's; values are taken as they are.
            let (answer, warnings) = match (asking.answer, answer) {
                (AnswerForm::TapYaml, Value::String(text)) => block(&text, asking.defaults)
                    .map_err(|why| invalid(ready, 1, OutcomeKind::Parse, vec![why]))?,
                (_, answer) => (answer, Vec::new()),
            };
            let wrong = violations(schema, &answer);
            if wrong.is_empty() {
                return Ok(Answered {
                    answer,
                    warnings,
                    usage: Used::NOTHING.told(),
                    from: None,
                });
            }
            Err(invalid(ready, 1, OutcomeKind::Schema, wrong))
        }
        Who::Replay(_) | Who::Api(_) | Who::Tool(_) | Who::Outside => {
            exchange(work, asking, ready, schema)
        }
    }
}

fn exchange(
    work: &mut Work<'_>,
    asking: &Asking<'_>,
    ready: &Arc<Ready>,
    schema: Option<&Schema>,
) -> Result<Answered, Outcome> {
    let template = &asking.prompt.template;
    let scope = values::named(work, template.mentions().dotted())?;
    let prompt = template
        .render(&Value::Object(scope))
        .map_err(|error| parse_failure(error).for_good())?;
    let mut attachments = Vec::new();
    for name in asking.attach {
        attachments.extend(attached(work, name)?);
    }
    let text: Option<Value> = match asking.schema {
        // What refers to other files, a provider does not have.
        Some(asset) if asking.answer == AnswerForm::Json && asset.refers.is_empty() => {
            Some(serde_json::from_str(&asset.text).map_err(parse_failure)?)
        }
        _ => None,
    };
    let request = AgentRequest {
        system: None,
        prompt,
        attachments,
        schema: text,
        max_tokens: ready.max_tokens(),
        temperature: ready.temperature(),
    };
    let address = address(work, asking, ready, &request);
    if let Some(known) = ready
        .known(work.calls, work.asked_since, &[address])?
        .pop()
        .flatten()
    {
        let (known, from) = known;
        let usage = known["usage"].clone();
        let (answer, warnings) = unwrapped(known);
        if violations(schema, &answer).is_empty() {
            return Ok(Answered {
                answer,
                warnings,
                usage,
                from: Some(from),
            });
        }
    }
    let mut caller = Caller {
        ready,
        timeout: asking.timeout,
        attempts: asking.attempts,
        count: 0,
    };
    let mut told: Vec<String> = Vec::new();
    let mut kind = OutcomeKind::Schema;
    let mut used = Used::NOTHING;
    for _ in 0..asking.attempts.max(1) {
        let mut again = request.clone();
        if !told.is_empty() {
            again
                .prompt
                .push_str("\n\nYour last answer was not valid:\n");
            for line in &told {
                again.prompt.push_str(&format!("- {line}\n"));
            }
            again.prompt.push_str("Answer once more.\n");
        }
        work.calls.asking(&|| Parts {
            out: asking.out.to_owned(),
            questions: Vec::new(),
            address: Some(address),
            keeps_id: true,
            request: again.clone(),
        });
        let (call, reply) = caller.call(work, &again, 1).map_err(|unanswered| {
            let (Unanswered::TooLong(outcome) | Unanswered::Failed(outcome)) = unanswered;
            outcome
        })?;
        used.add(ready, &reply);
        let refused = |violations: &[String]| {
            work.watcher.told(Told::Refused {
                number: call,
                valid: 0,
                violations,
            });
        };
        if let Err(outcome) = refuse(ready, &reply) {
            refused(std::slice::from_ref(&outcome.message));
            caller.judged(work, call)?;
            return Err(outcome);
        }
        match read(&reply, asking.answer, asking.defaults) {
            Ok((answer, warnings)) => {
                told = violations(schema, &answer);
                kind = OutcomeKind::Schema;
                if told.is_empty() {
                    work.calls.keep(Valid {
                        address,
                        answer: kept(&answer, &warnings, &used),
                        schema: asking.schema.map(|asset| asset.digest),
                        agent: ready.agent.describe(),
                        call,
                        is_shared: false,
                    })?;
                    caller.judged(work, call)?;
                    return Ok(Answered {
                        answer,
                        warnings,
                        usage: used.told(),
                        from: Some(AnswersOf::one(work.calls.run(), call)),
                    });
                }
            }
            Err(why) => (told, kind) = (vec![why], OutcomeKind::Parse),
        }
        refused(&told);
        caller.judged(work, call)?;
    }
    Err(invalid(ready, asking.attempts, kind, told))
}

/// No answer was right. What the last one was says the kind: not readable in its form, or not as its schema wants it.
fn invalid(ready: &Ready, attempts: u32, kind: OutcomeKind, wrong: Vec<String>) -> Outcome {
    let requests = match attempts {
        1 => "one request".to_owned(),
        many => format!("{many} requests"),
    };
    let agent = &ready.agent.name;
    let message = format!("agent `{agent}` gave no valid answer in {requests}");
    Outcome::new(kind, message).with_details(wrong).for_good()
}

/// An answer as it is kept.
pub(crate) fn kept(answer: &Value, warnings: &[String], used: &Used) -> Value {
    json!({ "answer": answer, "warnings": warnings, "usage": used.told() })
}

/// Answers of this kind are kept with what was said of them.
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

/// What an answer is to: the request, the agent, and the batch and round that it is for. Four runs of one prompt are four calls.
fn address(work: &Work<'_>, asking: &Asking<'_>, ready: &Ready, request: &AgentRequest) -> Digest {
    let round = work.scope.value("iteration").unwrap_or(Value::Null);
    let all = json!([
        "one",
        VERSION,
        work.name,
        asking.out,
        round,
        ready.agent.digest().to_string(),
        asked(request).to_string(),
    ]);
    Digest::of(all.to_string())
}

fn violations(schema: Option<&Schema>, answer: &Value) -> Vec<String> {
    let Some(schema) = schema else {
        return Vec::new();
    };
    let found = schema.violations(answer, "", TOLD);
    let lines = found
        .iter()
        .map(|violation| format!("{}: {}", violation.pointer, violation.message));
    lines.collect()
}

/// What ends the asking whatever else the reply says.
fn refuse(ready: &Ready, reply: &Reply) -> Result<(), Outcome> {
    let outcome = |kind, what: &str| {
        let message = format!("agent `{}`: {what}", ready.agent.name);
        Err(Outcome::new(kind, message)
            .with_details(vec![reply.text.clone()])
            .for_good())
    };
    match reply.stop {
        StopReason::Refused => outcome(OutcomeKind::Refused, "it would not answer"),
        StopReason::Length => outcome(
            OutcomeKind::Cut,
            "the answer was cut at its most tokens: raise `max_tokens`",
        ),
        StopReason::End | StopReason::Other(_) => Ok(()),
    }
}

/// The values of the block in a text, with a warning for each default; else what is wrong with it.
fn block(text: &str, defaults: &Map<String, Value>) -> Result<(Value, Vec<String>), String> {
    let block = tap_yaml(text, defaults).map_err(|error| error.to_string())?;
    let defaulted = block.defaulted.iter();
    let warnings = defaulted.map(|key| format!("the answer lacks `{key}`: its default is taken"));
    let warnings = warnings.collect();
    Ok((Value::Object(block.values), warnings))
}

/// The answer in its form, with warnings; else what is wrong with it.
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

/// The files of a name, to be sent along.
fn attached(work: &Work<'_>, name: &str) -> Result<Vec<Attachment>, Outcome> {
    let sources = work
        .scope
        .sources(name)
        .ok_or_else(|| input_failure(name, "`attach` names inputs and what earlier steps made"))?;
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

/// The media type that a file's ending tells (IANA's registry).
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
