//! Answers to the questions of a batch: those that are kept, and one request for the others, again for what was not valid.

use super::call::{Caller, Unanswered};
use super::parts::Parts;
use super::ready::Ready;
use super::sort::{Sorted, Wrong, sort};
use crate::steps::calls::{Calls, Valid};
use crate::steps::values;
use crate::steps::work::{Told, Work, parse_failure};
use milepost_agents::request::{AgentRequest, StopReason};
use milepost_core::base::digest::Digest;
use milepost_core::model::outcome::{Outcome, OutcomeKind};
use milepost_core::model::pipeline::Asset;
use milepost_core::model::record::AnswersOf;
use milepost_core::model::step::TemplateFile;
use milepost_store::check::schema::{Schema, Violation};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// The version of this step, as far as it concerns what an answer is to.
const VERSION: u32 = 1;

/// Violations that are told.
const TOLD: usize = 40;

/// What is asked, and by which terms.
pub(crate) struct Terms<'a> {
    /// The output that the step makes.
    pub(crate) out: &'a str,
    /// The agent.
    pub(crate) ready: &'a Ready,
    /// The template of what it is asked.
    pub(crate) prompt: &'a TemplateFile,
    /// What an answer must be.
    pub(crate) schema: Option<Form<'a>>,
    /// Requests for one question, at most.
    pub(crate) attempts: u32,
    /// One call.
    pub(crate) timeout: Duration,
    /// Whether questions may stay without an answer.
    pub(crate) some_will_do: bool,
}

/// What an answer must be.
#[derive(Clone, Copy)]
pub(crate) struct Form<'a> {
    /// Compiled.
    pub(crate) schema: &'a Schema,
    /// Its file.
    pub(crate) asset: &'a Asset,
    /// What the file holds.
    pub(crate) text: &'a Value,
}

/// A question: its id in the batch, and what is asked.
pub(crate) struct Asked<'a> {
    /// The id.
    pub(crate) id: &'a str,
    /// What is asked.
    pub(crate) question: &'a Value,
}

/// What came of questions.
#[derive(Default)]
pub(crate) struct Answers {
    /// The answer to each, in their order; none: it has no valid one.
    pub(crate) of_each: Vec<Option<Value>>,
    /// How those that have none failed, by their place.
    pub(crate) failed: BTreeMap<usize, Outcome>,
    /// The calls that the answers came with.
    pub(crate) from: Vec<AnswersOf>,
    /// Warnings for people.
    pub(crate) warnings: Vec<String>,
}

/// Answers to questions, in their order: to all of them, or where `some_will_do` to some.
///
/// # Errors
/// When some are not answered, or not validly, after all attempts, and all must be, or none is. What was answered validly is kept
/// all the same.
pub(crate) fn answers(
    work: &mut Work<'_>,
    terms: &Terms<'_>,
    questions: &[Asked<'_>],
) -> Result<Answers, Outcome> {
    let frame = render(work, terms, &[])?;
    let addresses: Vec<Digest> = questions
        .iter()
        .map(|asked| address(terms, &frame, asked.question))
        .collect();
    let mut found = Answers {
        of_each: vec![None; questions.len()],
        ..Answers::default()
    };
    loop {
        let open = (0..questions.len()).filter(|&place| found.is_open(place));
        let open: Vec<usize> = open.collect();
        let asked: Vec<Digest> = open.iter().map(|&place| addresses[place]).collect();
        for (&place, known) in
            open.iter()
                .zip(terms.ready.known(work.calls, work.asked_since, &asked)?)
        {
            if let Some((answer, call)) = known
                // Under another schema, what was valid may not be.
                && violations(terms, &answer).is_empty()
            {
                call.add_to(&mut found.from);
                found.of_each[place] = Some(answer);
            }
        }
        let open = (0..questions.len()).filter(|&place| found.is_open(place));
        let open: Vec<usize> = open.collect();
        if open.is_empty() {
            return found.unless_none();
        }
        let claim = Claim::of(work.calls, &open, &addresses);
        if claim.mine.is_empty() {
            // Nothing of this batch's own is held meanwhile: two batches cannot wait for each other.
            work.calls
                .wait(addresses[open[0]], &|| work.alarm.rang().is_some());
            if work.is_rehearsed || work.stop.stopping() || work.alarm.rang().is_some() {
                return Err(Outcome::new(OutcomeKind::Cancelled, "the run was stopped"));
            }
            continue;
        }
        ask(
            work,
            terms,
            questions,
            &addresses,
            &frame,
            &claim.mine,
            &mut found,
        )?;
    }
}

/// Questions that no other batch of the run is asking; others may ask them when this is dropped.
struct Claim<'a> {
    calls: &'a dyn Calls,
    addresses: Vec<Digest>,
    /// Their places.
    mine: Vec<usize>,
}

impl<'a> Claim<'a> {
    fn of(calls: &'a dyn Calls, open: &[usize], addresses: &[Digest]) -> Self {
        let mine = open.iter().copied();
        let mine: Vec<usize> = mine
            .filter(|&place| calls.claim(addresses[place]))
            .collect();
        Self {
            calls,
            addresses: mine.iter().map(|&place| addresses[place]).collect(),
            mine,
        }
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        self.calls.release(&self.addresses);
    }
}

impl Answers {
    fn is_open(&self, place: usize) -> bool {
        self.of_each[place].is_none() && !self.failed.contains_key(&place)
    }

    /// A batch of which no question was answered has failed as a whole.
    fn unless_none(self) -> Result<Self, Outcome> {
        let all = self.of_each.len();
        match self.failed.first_key_value() {
            Some((_, first)) if self.failed.len() == all => {
                let message = format!("{all} of {all} questions have no valid answer");
                let mut details: Vec<String> = Vec::new();
                for line in self.failed.values().flat_map(|outcome| &outcome.details) {
                    if details.len() < TOLD && !details.contains(line) {
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

/// Asks the questions at these places, again what was not answered validly.
fn ask(
    work: &mut Work<'_>,
    terms: &Terms<'_>,
    questions: &[Asked<'_>],
    addresses: &[Digest],
    frame: &str,
    places: &[usize],
    found: &mut Answers,
) -> Result<(), Outcome> {
    let mut caller = Caller {
        ready: terms.ready,
        timeout: terms.timeout,
        attempts: terms.attempts,
        count: 0,
    };
    let mut told: Vec<Wrong> = Vec::new();
    for _ in 0..terms.attempts.max(1) {
        let open: Vec<usize> = places
            .iter()
            .copied()
            .filter(|&place| found.of_each[place].is_none())
            .collect();
        if open.is_empty() {
            return Ok(());
        }
        let last = std::mem::take(&mut told);
        let wrong: Vec<String> = last.iter().take(TOLD).map(Wrong::line).collect();
        let mut parts = vec![open];
        while let Some(part) = parts.pop() {
            let asked: Vec<&Asked<'_>> = part.iter().map(|&index| &questions[index]).collect();
            let to: Vec<Digest> = part.iter().map(|&index| addresses[index]).collect();
            let round = round(work, terms, &mut caller, frame, (&asked, &to), &wrong);
            match round {
                Ok((call, sorted)) => {
                    let valid = sorted.answers.iter().map(|(place, answer)| Valid {
                        address: addresses[part[*place]],
                        answer: answer.clone(),
                        schema: terms.schema.map(|form| form.asset.digest),
                        agent: terms.ready.agent.describe(),
                        call,
                        is_shared: true,
                    });
                    work.calls.keep_all(valid.collect())?;
                    found.warnings.extend(sorted.invented().map(|id| {
                        let agent = &terms.ready.agent.name;
                        format!("call {call}: agent `{agent}` answered `{id}`, a question that was not asked: left out")
                    }));
                    for (place, answer) in sorted.answers {
                        AnswersOf::one(work.calls.run(), call).add_to(&mut found.from);
                        found.of_each[part[place]] = Some(answer);
                    }
                    caller.judged(work, call)?;
                    told.extend(sorted.wrong);
                }
                Err(Unanswered::TooLong(_)) if part.len() > 1 => {
                    let rest = part.len() / 2;
                    parts.push(part[rest..].to_vec());
                    parts.push(part[..rest].to_vec());
                }
                Err(Unanswered::TooLong(outcome) | Unanswered::Failed(outcome)) => {
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
    let tried = terms.attempts.max(1);
    if terms.some_will_do {
        let failed = open.iter().map(|&place| {
            let outcome = unanswered(questions[place].id, tried, &told);
            (place, outcome)
        });
        found.failed.extend(failed);
        return Ok(());
    }
    let message = format!(
        "{} of {} questions have no valid answer after {}",
        open.len(),
        questions.len(),
        requests(tried)
    );
    Err(Outcome::new(OutcomeKind::Schema, message)
        .with_details(told.iter().take(TOLD).map(Wrong::line).collect())
        .for_good())
}

fn requests(count: u32) -> String {
    match count {
        1 => "1 request".to_owned(),
        many => format!("{many} requests"),
    }
}

/// How a question failed, of all that was wrong with the last answers.
fn unanswered(id: &str, tried: u32, wrong: &[Wrong]) -> Outcome {
    let of = |id: Option<&str>| {
        let lines = wrong.iter().filter(|wrong| wrong.id.as_deref() == id);
        lines.take(TOLD).map(Wrong::line).collect::<Vec<String>>()
    };
    let mut details = of(Some(id));
    if details.is_empty() {
        details = of(None);
    }
    let message = format!("{id} has no valid answer after {}", requests(tried));
    Outcome::new(OutcomeKind::Schema, message)
        .with_details(details)
        .for_good()
}

/// What an answer is to.
fn address(terms: &Terms<'_>, frame: &str, question: &Value) -> Digest {
    let all = json!([
        VERSION,
        terms.ready.agent.digest().to_string(),
        Digest::of(frame).to_string(),
        question,
    ]);
    Digest::of(all.to_string())
}

fn violations(terms: &Terms<'_>, answer: &Value) -> Vec<Violation> {
    let found = terms.schema;
    found.map_or_else(Vec::new, |form| form.schema.violations(answer, "", 5))
}

/// One request with these questions.
fn round(
    work: &mut Work<'_>,
    terms: &Terms<'_>,
    caller: &mut Caller<'_>,
    frame: &str,
    (asked, addresses): (&[&Asked<'_>], &[Digest]),
    wrong: &[String],
) -> Result<(u64, Sorted), Unanswered> {
    let mut prompt = render(work, terms, asked).map_err(Unanswered::Failed)?;
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
        schema: terms.schema.and_then(listed),
        max_tokens: terms.ready.max_tokens(),
        temperature: terms.ready.temperature(),
    };
    work.calls.asking(&|| Parts {
        out: terms.out.to_owned(),
        questions: asked
            .iter()
            .zip(addresses)
            .map(|(asked, &address)| (asked.id.to_owned(), asked.question.clone(), address))
            .collect(),
        address: None,
        keeps_id: keeps_id(terms),
        request: request.clone(),
    });
    let (call, reply) = caller.call(work, &request, asked.len() as u64)?;
    let refused = |valid: usize, violations: &[String]| {
        work.watcher.told(Told::Refused {
            number: call,
            valid: valid as u64,
            violations,
        });
    };
    let broken = |kind, what: &str| {
        refused(0, &[what.to_owned()]);
        let message = format!("agent `{}`: {what}", terms.ready.agent.name);
        Outcome::new(kind, message).for_good()
    };
    if matches!(reply.stop, StopReason::Length | StopReason::Refused) {
        caller.judged(work, call).map_err(Unanswered::Failed)?;
    }
    match reply.stop {
        // So many answers do not fit: fewer may.
        StopReason::Length if asked.len() > 1 => {
            return Err(Unanswered::TooLong(broken(
                OutcomeKind::Cut,
                "the answer was cut at its most tokens",
            )));
        }
        StopReason::Length => {
            return Err(Unanswered::Failed(broken(
                OutcomeKind::Cut,
                "the answer to one question was cut: raise `max_tokens`",
            )));
        }
        StopReason::Refused => {
            return Err(Unanswered::Failed(
                broken(OutcomeKind::Refused, "it would not answer").with_details(vec![reply.text]),
            ));
        }
        StopReason::End | StopReason::Other(_) => {}
    }
    let ids: Vec<&str> = asked.iter().map(|asked| asked.id).collect();
    let sorted = sort(
        &reply,
        &ids,
        &|answer| violations(terms, answer),
        keeps_id(terms),
        false,
    );
    if !sorted.wrong.is_empty() {
        refused(sorted.answers.len(), &sorted.violations());
    }
    Ok((call, sorted))
}

/// Whether `id` is part of what an answer must be, and not only its sign.
fn keeps_id(terms: &Terms<'_>) -> bool {
    terms
        .schema
        .is_some_and(|form| form.text["properties"].get("id").is_some())
}

/// The prompt with these questions.
fn render(work: &Work<'_>, terms: &Terms<'_>, asked: &[&Asked<'_>]) -> Result<String, Outcome> {
    let template = &terms.prompt.template;
    let mut scope = scope(work, template.mentions().dotted())?;
    let questions = asked
        .iter()
        .map(|asked| json!({ "id": asked.id, "question": asked.question }));
    scope.insert("questions".to_owned(), questions.collect());
    template
        .render(&Value::Object(scope))
        .map_err(|error| parse_failure(error).for_good())
}

/// What a template mentions, without the questions.
pub(crate) fn scope(
    work: &Work<'_>,
    names: &std::collections::BTreeSet<String>,
) -> Result<Map<String, Value>, Outcome> {
    let is_ours = |name: &String| name == "questions" || name.starts_with("questions.");
    let names = names.iter().filter(|name| !is_ours(name)).cloned();
    values::named(work, &names.collect())
}

/// What all requests begin with, apart from the rest, so that a provider can cache it.
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

/// The schema of a whole reply: answers with the ids of their questions. None where the schema of one refers to other files.
fn listed(form: Form<'_>) -> Option<Value> {
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
