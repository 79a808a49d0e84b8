//! Answers the questions of a batch: uses kept answers, sends one request for the others, and repeats it for invalid answers.

use super::call::Caller;
use super::call_context::{CallContext, CallError};
use super::handle::AgentHandle;
use super::reply_matcher::{MatchedReply, ReplyError, match_reply};
use super::request_parts::RequestParts;
use super::single_answer::ended_early;
use super::task::AgentTask;
use crate::steps::batch_context::{BatchContext, StepEvent, cancelled, parse_failure};
use crate::steps::calls::{Calls, ValidAnswer};
use crate::steps::values;
use milepost_agents::request::{AgentRequest, StopReason};
use milepost_core::base::digest::Digest;
use milepost_core::base::words::count;
use milepost_core::expr::json;
use milepost_core::model::outcome::{Outcome, OutcomeKind};
use milepost_core::model::pipeline::Asset;
use milepost_core::model::record::AnswersOf;
use milepost_store::check::schema::{Schema, Violation};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The version of this step in the address of an answer.
const VERSION: u32 = 1;

/// The most violations that are shown.
const SHOWN: usize = 40;

/// A question of a batch, as `split` wrote it.
#[derive(Deserialize)]
pub(crate) struct BatchQuestion {
    pub(super) id: String,
    pub(super) question: Value,
    /// Positions of the elements that ask it.
    pub(super) elements: Vec<usize>,
}

impl BatchQuestion {
    /// Returns the id of the question in all batches and runs, as JSON: the start of its digest.
    pub(super) fn stable_id(&self) -> String {
        format!("\"{}\"", Digest::of(self.question.to_string()).short())
    }
}

/// The request of an agent step that answers questions.
pub(crate) struct QuestionTask<'a> {
    pub(crate) step: &'a AgentTask<'a>,
    pub(crate) handle: &'a AgentHandle,
    pub(crate) schema: Option<AnswerSchema<'a>>,
    /// True if some questions may remain without an answer.
    pub(crate) accepts_partial: bool,
}

#[derive(Clone, Copy)]
pub(crate) struct AnswerSchema<'a> {
    pub(crate) schema: &'a Schema,
    pub(crate) asset: &'a Asset,
    /// The content of the file.
    pub(crate) text: &'a Value,
}

/// The answers to the questions of a batch.
#[derive(Default)]
pub(crate) struct QuestionAnswers {
    /// The answer to each question, in their order; `None` without a valid one.
    pub(crate) of_each: Vec<Option<Value>>,
    /// The outcomes of questions without an answer, by position.
    pub(crate) failed: BTreeMap<usize, Outcome>,
    /// The calls whose answers are used.
    pub(crate) from: Vec<AnswersOf>,
    pub(crate) warnings: Vec<String>,
}

/// Answers questions: all of them, or with `accepts_partial` at least one.
///
/// # Errors
/// When required answers are missing after all attempts. Valid answers are kept nevertheless.
pub(crate) fn answers(
    ctx: &mut BatchContext<'_>,
    task: &QuestionTask<'_>,
    questions: &[BatchQuestion],
) -> Result<QuestionAnswers, Outcome> {
    let frame = render(ctx, task, &[])?;
    let addresses_of = |text: fn(&Value) -> String| -> Vec<Digest> {
        let questions = questions.iter();
        let texts = questions.map(|asked| text(&asked.question));
        texts.map(|text| address(task, &frame, &text)).collect()
    };
    let addresses = addresses_of(json::canonical);
    // Answers that earlier versions kept, by the questions as they are written.
    let written = addresses_of(Value::to_string);
    let mut found = QuestionAnswers {
        of_each: vec![None; questions.len()],
        ..QuestionAnswers::default()
    };
    let look_up = |ctx: &mut BatchContext<'_>, found: &mut QuestionAnswers| {
        for (known_by, is_first) in [(&addresses, true), (&written, false)] {
            let differs = |place: usize| is_first || written[place] != addresses[place];
            let open = (0..questions.len()).filter(|&place| found.is_open(place) && differs(place));
            let open: Vec<usize> = open.collect();
            let asked: Vec<Digest> = open.iter().map(|&place| known_by[place]).collect();
            let known = task.handle.known(ctx.calls, ctx.asked_since, &asked)?;
            for (place, known) in open.into_iter().zip(known) {
                if let Some((answer, call)) = known
                    // The schema may have changed since the answer was kept.
                    && violations(task, &answer).is_empty()
                {
                    call.add_to(&mut found.from);
                    found.of_each[place] = Some(answer);
                }
            }
        }
        Ok::<(), Outcome>(())
    };
    loop {
        look_up(ctx, &mut found)?;
        let open = (0..questions.len()).filter(|&place| found.is_open(place));
        let open: Vec<usize> = open.collect();
        if open.is_empty() {
            return found.unless_none();
        }
        let mut claim = Claim::of(ctx, &open, &addresses)?;
        if claim.mine.is_empty() {
            // The batch holds no claim of its own meanwhile, so two batches cannot wait for each other.
            let cancel = ctx.cancel;
            let stopped = || cancel.reason().is_some();
            let waits = |run: &str| {
                let why = format!("waiting for answers that another run is asking for: {run}");
                (ctx.observer).waiting(&why);
            };
            let is_fresh = ctx.asked_since.is_some();
            (ctx.calls).wait(addresses[open[0]], is_fresh, &stopped, &waits)?;
            if ctx.is_dry_run || ctx.stop.stopping() || ctx.cancel.reason().is_some() {
                return Err(cancelled());
            }
            continue;
        }
        // Another batch may have read an answer between the look-up and the claim.
        if !ctx.is_dry_run {
            look_up(ctx, &mut found)?;
        }
        claim.mine.retain(|&place| found.is_open(place));
        if claim.mine.is_empty() {
            continue;
        }
        ask(
            ctx,
            task,
            questions,
            &addresses,
            &frame,
            &claim.mine,
            &mut found,
        )?;
    }
}

/// Questions that no other batch or run is asking. Dropping it releases them.
struct Claim<'a> {
    calls: &'a dyn Calls,
    addresses: Vec<Digest>,
    /// Their positions.
    mine: Vec<usize>,
}

impl<'a> Claim<'a> {
    fn of(ctx: &BatchContext<'a>, open: &[usize], addresses: &[Digest]) -> Result<Self, Outcome> {
        let wanted: Vec<Digest> = open.iter().map(|&place| addresses[place]).collect();
        let claimed = ctx.calls.claim(&wanted, ctx.asked_since.is_some())?;
        let mut free: BTreeSet<Digest> = claimed.iter().copied().collect();
        let mine = open.iter().copied();
        Ok(Self {
            calls: ctx.calls,
            addresses: claimed,
            mine: mine
                .filter(|&place| free.remove(&addresses[place]))
                .collect(),
        })
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        self.calls.release(&self.addresses);
    }
}

impl QuestionAnswers {
    fn is_open(&self, place: usize) -> bool {
        self.of_each[place].is_none() && !self.failed.contains_key(&place)
    }

    /// Fails the batch if no question was answered.
    fn unless_none(self) -> Result<Self, Outcome> {
        let all = self.of_each.len();
        match self.failed.first_key_value() {
            Some((_, first)) if self.failed.len() == all => {
                let message = match all {
                    1 => "the only question has no valid answer".to_owned(),
                    _ => format!("{all} of {all} questions have no valid answer"),
                };
                let mut details: Vec<String> = Vec::new();
                for line in self.failed.values().flat_map(|outcome| &outcome.details) {
                    if details.len() < SHOWN && !details.contains(line) {
                        details.push(line.clone());
                    }
                }
                let mut outcome = first.clone().with_details(details);
                outcome.message = message;
                Err(outcome)
            }
            _ => Ok(self),
        }
    }
}

/// Asks the questions at these positions, and repeats those without a valid answer.
#[expect(clippy::too_many_arguments)]
fn ask(
    ctx: &mut BatchContext<'_>,
    task: &QuestionTask<'_>,
    questions: &[BatchQuestion],
    addresses: &[Digest],
    frame: &str,
    places: &[usize],
    found: &mut QuestionAnswers,
) -> Result<(), Outcome> {
    let mut caller = Caller {
        handle: task.handle,
        step: task.step.out,
        timeout: task.step.timeout,
        attempts: task.step.attempts,
        count: 0,
        place: String::new(),
    };
    let mut feedback: Vec<ReplyError> = Vec::new();
    for _ in 0..task.step.attempts.max(1) {
        let open: Vec<usize> = places
            .iter()
            .copied()
            .filter(|&place| found.of_each[place].is_none())
            .collect();
        if open.is_empty() {
            return Ok(());
        }
        let last = std::mem::take(&mut feedback);
        let wrong: Vec<String> = last.iter().take(SHOWN).map(ReplyError::line).collect();
        let mut parts = vec![open];
        while let Some(part) = parts.pop() {
            let asked: Vec<&BatchQuestion> = part.iter().map(|&index| &questions[index]).collect();
            let to: Vec<Digest> = part.iter().map(|&index| addresses[index]).collect();
            let round = round(ctx, task, &mut caller, frame, (&asked, &to), &wrong);
            match round {
                Ok((call, matched)) => {
                    let valid = matched.answers.iter().map(|(place, answer)| ValidAnswer {
                        address: addresses[part[*place]],
                        answer: answer.clone(),
                        schema: task.schema.map(|form| form.asset.digest),
                        agent: task.handle.agent.describe(),
                        call,
                        is_shared: true,
                    });
                    ctx.calls.keep(valid.collect())?;
                    found.warnings.extend(matched.invented().map(|id| {
                        let agent = &task.handle.agent.name;
                        format!("call {call}: agent `{agent}` answered `{id}`, a question that was not asked: left out")
                    }));
                    for (place, answer) in matched.answers {
                        AnswersOf::one(ctx.calls.run(), call).add_to(&mut found.from);
                        found.of_each[part[place]] = Some(answer);
                    }
                    caller.mark_used(ctx.calls, call)?;
                    feedback.extend(matched.wrong);
                }
                Err(CallError::TooLong(_)) if part.len() > 1 => {
                    let rest = part.len() / 2;
                    parts.push(part[rest..].to_vec());
                    parts.push(part[..rest].to_vec());
                }
                Err(CallError::TooLong(outcome) | CallError::Failed(outcome)) => {
                    return Err(outcome);
                }
            }
        }
    }
    let open = places.iter().copied();
    let open: Vec<usize> = open
        .filter(|&place| found.of_each[place].is_none())
        .collect();
    if open.is_empty() {
        return Ok(());
    }
    let tried = task.step.attempts.max(1);
    if task.accepts_partial {
        let failed = open.iter().map(|&place| {
            let outcome = unanswered(&questions[place].id, tried, &feedback);
            (place, outcome)
        });
        found.failed.extend(failed);
        return Ok(());
    }
    let message = format!(
        "{} of {} {} no valid answer after {}",
        open.len(),
        count(questions.len() as u64, "question", "questions"),
        if open.len() == 1 { "has" } else { "have" },
        count(tried.into(), "request", "requests")
    );
    Err(Outcome::new(OutcomeKind::Schema, message)
        .with_details(feedback.iter().take(SHOWN).map(ReplyError::line).collect())
        .for_good())
}

/// Returns the outcome of a question without a valid answer.
fn unanswered(id: &str, tried: u32, wrong: &[ReplyError]) -> Outcome {
    let of = |id: Option<&str>| {
        let lines = wrong.iter().filter(|wrong| wrong.id.as_deref() == id);
        lines
            .take(SHOWN)
            .map(ReplyError::line)
            .collect::<Vec<String>>()
    };
    let mut details = of(Some(id));
    if details.is_empty() {
        details = of(None);
    }
    let tried = count(tried.into(), "request", "requests");
    let message = format!("{id} has no valid answer after {tried}");
    Outcome::new(OutcomeKind::Schema, message)
        .with_details(details)
        .for_good()
}

/// Returns the address of an answer to a question as JSON text.
fn address(task: &QuestionTask<'_>, frame: &str, question: &str) -> Digest {
    let agent = task.handle.agent.digest();
    let frame = Digest::of(frame);
    Digest::of(format!("[{VERSION},\"{agent}\",\"{frame}\",{question}]"))
}

fn violations(task: &QuestionTask<'_>, answer: &Value) -> Vec<Violation> {
    let found = task.schema;
    found.map_or_else(Vec::new, |form| form.schema.violations(answer, "", 5))
}

/// Sends one request with these questions.
fn round(
    ctx: &mut BatchContext<'_>,
    task: &QuestionTask<'_>,
    caller: &mut Caller<'_>,
    frame: &str,
    (asked, addresses): (&[&BatchQuestion], &[Digest]),
    wrong: &[String],
) -> Result<(u64, MatchedReply), CallError> {
    let mut prompt = render(ctx, task, asked).map_err(CallError::Failed)?;
    if !wrong.is_empty() {
        prompt.push_str("\n\nYour last answer was not valid:\n");
        for line in wrong {
            prompt.push_str("- ");
            prompt.push_str(line);
            prompt.push('\n');
        }
        prompt.push_str("Answer the questions above once more, each exactly once.\n");
    }
    let (system, prompt) = divided(frame, prompt);
    let request = AgentRequest {
        system,
        prompt,
        attachments: Vec::new(),
        schema: task.schema.and_then(listed),
        max_tokens: task.handle.max_tokens(),
        temperature: task.handle.temperature(),
    };
    ctx.calls.about_to_ask(&|| RequestParts {
        out: task.step.out.to_owned(),
        questions: asked
            .iter()
            .zip(addresses)
            .map(|(asked, &address)| (asked.id.clone(), asked.question.clone(), address))
            .collect(),
        address: None,
        keeps_id: keeps_id(task),
        request: request.clone(),
    });
    let to = CallContext::of(ctx, 1);
    let (call, reply) = caller.call(&to, &request, asked.len() as u64)?;
    let refused = |valid: usize, violations: &[String]| {
        ctx.observer.event(StepEvent::Refused {
            number: call,
            valid: valid as u64,
            violations,
        });
    };
    let broken = |kind, what: &str| {
        refused(0, &[what.to_owned()]);
        let message = format!("agent `{}`: {what}", task.handle.agent.name);
        Outcome::new(kind, message).for_good()
    };
    if reply.stop != StopReason::End {
        caller
            .mark_used(ctx.calls, call)
            .map_err(CallError::Failed)?;
    }
    match reply.stop {
        // Fewer answers may fit.
        StopReason::Length if asked.len() > 1 => {
            return Err(CallError::TooLong(broken(
                OutcomeKind::Cut,
                "the answer was cut at `max_tokens`",
            )));
        }
        StopReason::Length => {
            return Err(CallError::Failed(broken(
                OutcomeKind::Cut,
                "the answer to one question was cut: raise `max_tokens`",
            )));
        }
        StopReason::Refused => {
            return Err(CallError::Failed(
                broken(OutcomeKind::Refused, "it refused to answer").with_details(vec![reply.text]),
            ));
        }
        StopReason::Other(reason) => {
            let outcome = ended_early(&task.handle.agent, &reason);
            return Err(CallError::Failed(outcome.with_details(vec![reply.text])));
        }
        StopReason::End => {}
    }
    let ids: Vec<&str> = asked.iter().map(|asked| &*asked.id).collect();
    let matched = match_reply(
        &reply,
        &ids,
        &|answer| violations(task, answer),
        keeps_id(task),
        false,
    );
    if !matched.wrong.is_empty() {
        refused(matched.answers.len(), &matched.violations());
    }
    Ok((call, matched))
}

/// Returns true if the schema of an answer declares `id`.
fn keeps_id(task: &QuestionTask<'_>) -> bool {
    task.schema
        .is_some_and(|form| form.text["properties"].get("id").is_some())
}

/// Renders the prompt with these questions.
fn render(
    ctx: &BatchContext<'_>,
    task: &QuestionTask<'_>,
    asked: &[&BatchQuestion],
) -> Result<String, Outcome> {
    let template = &task.step.prompt.template;
    let mut scope = scope(ctx, template.mentions().dotted())?;
    let questions = asked
        .iter()
        .map(|asked| json!({ "id": asked.id, "question": asked.question }));
    scope.insert("questions".to_owned(), questions.collect());
    template
        .render(&Value::Object(scope))
        .map_err(|error| parse_failure(error).for_good())
}

/// Returns the names that a template mentions, without the questions.
pub(crate) fn scope(
    ctx: &BatchContext<'_>,
    names: &std::collections::BTreeSet<String>,
) -> Result<Map<String, Value>, Outcome> {
    let is_ours = |name: &String| name == "questions" || name.starts_with("questions.");
    let names = names.iter().filter(|name| !is_ours(name)).cloned();
    values::named(ctx, &names.collect())
}

/// Divides a prompt into the part that all requests share and the rest, so that a provider can cache the first.
fn divided(frame: &str, prompt: String) -> (Option<String>, String) {
    let common = frame
        .bytes()
        .zip(prompt.bytes())
        .take_while(|(a, b)| a == b)
        .count();
    match prompt.as_bytes()[..common]
        .iter()
        .rposition(|&byte| byte == b'\n')
    {
        Some(end) if end + 1 < prompt.len() && end > 0 => {
            let rest = prompt[end + 1..].to_owned();
            let mut system = prompt;
            system.truncate(end + 1);
            (Some(system), rest)
        }
        _ => (None, prompt),
    }
}

/// Returns the schema of a whole reply: answers with the ids of their questions. `None` if the schema of an answer refers to
/// other files.
fn listed(form: AnswerSchema<'_>) -> Option<Value> {
    if !form.asset.refers.is_empty() {
        return None;
    }
    let mut one = form.text.clone();
    let id = json!({ "type": "string", "description": "the id of the question" });
    let mut top = Map::new();
    let object = one.as_object_mut()?;
    for key in ["$schema", "$id"] {
        object.remove(key);
    }
    for key in ["$defs", "definitions"] {
        if let Some(definitions) = object.remove(key) {
            top.insert(key.to_owned(), definitions);
        }
    }
    let is_flat = object.get("type") == Some(&json!("object"))
        && object.get("properties").is_some_and(Value::is_object);
    let item = if is_flat {
        if let Some(Value::Object(properties)) = object.get_mut("properties") {
            properties.insert("id".to_owned(), id);
        }
        let required = object.entry("required").or_insert_with(|| json!([]));
        if let Some(names) = required.as_array_mut()
            && !names.contains(&json!("id"))
        {
            names.insert(0, json!("id"));
        }
        one
    } else {
        json!({
            "type": "object",
            "additionalProperties": false,
            "required": ["id", "answer"],
            "properties": { "id": id, "answer": one },
        })
    };
    top.insert("type".to_owned(), json!("object"));
    top.insert("additionalProperties".to_owned(), json!(false));
    top.insert("required".to_owned(), json!(["answers"]));
    top.insert(
        "properties".to_owned(),
        json!({ "answers": { "type": "array", "items": item } }),
    );
    Some(Value::Object(top))
}
