//! Answers to whole prompts: one for a batch without questions, or one for each item. An answer is kept for its batch while the
//! request stays the same.

mod exchange;
mod form;

pub(crate) use exchange::{RequestUsage, SingleAnswer, kept};
pub(super) use form::ended_early;
pub(crate) use form::read;

use super::call::asked;
use super::call_context::CallContext;
use super::handle::{AgentHandle, Backend};
use super::task::AgentTask;
use crate::steps::batch_context::{BatchContext, input_failure, parse_failure};
use crate::steps::pdf_text;
use crate::steps::values;
use exchange::{PreparedRequest, exchange, invalid, reread};
use form::{block, violations};
use milepost_agents::request::{AgentRequest, Attachment};
use milepost_core::base::digest::Digest;
use milepost_core::model::outcome::{Outcome, OutcomeKind};
use milepost_core::model::step::AnswerForm;
use milepost_store::check::schema::Schema;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::Read;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// The version of this step in the address of an answer.
const VERSION: u32 = 1;

/// The most requests of a batch that are sent at once.
const AT_ONCE: usize = 256;

/// The subject of a prompt: the name and value of an item; `None` if the prompt is about the batch.
pub(crate) type Subject<'a> = Option<(&'a str, &'a Value)>;

/// Returns the result of `work` in the scope of a subject.
pub(crate) fn about<T>(
    ctx: &mut BatchContext<'_>,
    subject: Subject<'_>,
    work: impl FnOnce(&BatchContext<'_>) -> T,
) -> T {
    let Some((name, value)) = subject else {
        return work(ctx);
    };
    let scope = ctx.scope.clone();
    ctx.scope.insert_value(name, value.clone());
    let done = work(ctx);
    ctx.scope = scope;
    done
}

/// Returns the answer about each subject, or why there is none. Requests are sent at once.
///
/// # Errors
/// When a request cannot be made or kept answers cannot be read.
pub(crate) fn answers(
    ctx: &mut BatchContext<'_>,
    task: &AgentTask<'_>,
    handle: &AgentHandle,
    schema: Option<&Schema>,
    subjects: &[Subject<'_>],
) -> Result<Vec<Result<SingleAnswer, Outcome>>, Outcome> {
    match &handle.backend {
        Backend::Rules(_) => Err(input_failure(
            task.agent,
            "rules only answer questions that `split` wrote",
        )),
        Backend::Jq(_) => {
            let subjects = subjects.iter();
            let answers = subjects
                .map(|subject| about(ctx, *subject, |ctx| computed(ctx, task, handle, schema)));
            Ok(answers.collect())
        }
        Backend::Replay(_) | Backend::Api(_) | Backend::Tool(_) | Backend::External => {
            let mut prepared = prepare(ctx, task, handle, subjects)?;
            let known = known(ctx, task, handle, schema, &prepared)?;
            let is_limited =
                ctx.calls.is_limited() || handle.agent.limits.tokens_per_minute.is_some();
            let all = prepared.iter_mut().zip(&known);
            for (one, _) in all.filter(|(_, known)| is_limited && known.is_none()) {
                count_pages(ctx, task, &mut one.request)?;
            }
            Ok(ask(ctx, task, handle, schema, &prepared, known))
        }
    }
}

/// Returns the answer that a jq agent computes.
fn computed(
    ctx: &BatchContext<'_>,
    task: &AgentTask<'_>,
    handle: &AgentHandle,
    schema: Option<&Schema>,
) -> Result<SingleAnswer, Outcome> {
    let Backend::Jq(program) = &handle.backend else {
        return Err(input_failure(task.agent, "it computes no answers"));
    };
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
    if !wrong.is_empty() {
        return Err(invalid(handle, 1, OutcomeKind::Schema, wrong));
    }
    Ok(SingleAnswer {
        answer,
        warnings,
        usage: RequestUsage::NOTHING.to_json(),
        from: None,
    })
}

/// Returns the request about each subject.
fn prepare(
    ctx: &mut BatchContext<'_>,
    task: &AgentTask<'_>,
    handle: &AgentHandle,
    subjects: &[Subject<'_>],
) -> Result<Vec<PreparedRequest>, Outcome> {
    let mut attachments = Vec::new();
    for name in task.attach {
        attachments.extend(attached(ctx, name)?);
    }
    let schema: Option<Value> = match task.schema {
        // A provider cannot resolve references to other files.
        Some(asset) if task.answer == AnswerForm::Json && asset.refers.is_empty() => {
            Some(serde_json::from_str(&asset.text).map_err(parse_failure)?)
        }
        _ => None,
    };
    let template = &task.prompt.template;
    let mut same: BTreeMap<Digest, u64> = BTreeMap::new();
    let mut prepared = Vec::with_capacity(subjects.len());
    for subject in subjects {
        let prompt = about(ctx, *subject, |ctx| -> Result<String, Outcome> {
            let scope = values::named(ctx, template.mentions().dotted())?;
            let prompt = template.render(&Value::Object(scope));
            prompt.map_err(|error| parse_failure(error).for_good())
        })?;
        let request = AgentRequest {
            system: None,
            prompt,
            attachments: attachments.clone(),
            schema: schema.clone(),
            max_tokens: handle.max_tokens(),
            temperature: handle.temperature(),
        };
        let content = asked(&request);
        let nth = same.entry(content).or_default();
        let address = address(ctx, task, handle, content, subject.map(|_| *nth));
        *nth += 1;
        prepared.push(PreparedRequest { request, address });
    }
    Ok(prepared)
}

/// Returns the valid kept answer to each request.
fn known(
    ctx: &BatchContext<'_>,
    task: &AgentTask<'_>,
    handle: &AgentHandle,
    schema: Option<&Schema>,
    prepared: &[PreparedRequest],
) -> Result<Vec<Option<SingleAnswer>>, Outcome> {
    let addresses: Vec<Digest> = prepared.iter().map(|one| one.address).collect();
    let found = handle.known(ctx.calls, ctx.asked_since, &addresses)?;
    let answers = found.into_iter().map(|found| {
        let (known, from) = found?;
        let usage = known["usage"].clone();
        let (answer, warnings) = reread(known, task, schema.is_some())?;
        // The schema may have changed since the answer was kept.
        violations(schema, &answer)
            .is_empty()
            .then_some(SingleAnswer {
                answer,
                warnings,
                usage,
                from: Some(from),
            })
    });
    Ok(answers.collect())
}

/// Sends the requests that have no known answer, all at once.
fn ask(
    ctx: &mut BatchContext<'_>,
    task: &AgentTask<'_>,
    handle: &AgentHandle,
    schema: Option<&Schema>,
    prepared: &[PreparedRequest],
    known: Vec<Option<SingleAnswer>>,
) -> Vec<Result<SingleAnswer, Outcome>> {
    let open: Vec<usize> = (0..prepared.len())
        .filter(|&at| known[at].is_none())
        .collect();
    let shared = CallContext::of(ctx, open.len());
    let next = AtomicUsize::new(0);
    let came: Mutex<BTreeMap<usize, Result<SingleAnswer, Outcome>>> = Mutex::default();
    let work = || {
        while let Some(&at) = open.get(next.fetch_add(1, Ordering::Relaxed)) {
            let place = match prepared {
                [_] => String::new(),
                _ => format!("_{}", at + 1),
            };
            let answer = exchange(&shared, task, handle, schema, &prepared[at], &place);
            shared.ended();
            let mut came = came.lock().unwrap_or_else(PoisonError::into_inner);
            came.insert(at, answer);
        }
    };
    // In a dry run the first request is that of the first item.
    let more = if shared.is_dry_run { 0 } else { open.len() };
    thread::scope(|scope| {
        for _ in 1..more.min(AT_ONCE) {
            // Without a thread, the others send its request later.
            if thread::Builder::new().spawn_scoped(scope, work).is_err() {
                break;
            }
        }
        work();
    });
    let mut came = came.into_inner().unwrap_or_else(PoisonError::into_inner);
    let answers = known.into_iter().enumerate().map(|(at, known)| {
        known
            .map(Ok)
            .or_else(|| came.remove(&at))
            .unwrap_or_else(|| Err(crate::steps::batch_context::cancelled()))
    });
    answers.collect()
}

/// Returns the address of an answer. It contains the batch and iteration, so that the same prompt in four batches is four
/// calls; and for an item its number among those with the same prompt.
fn address(
    ctx: &BatchContext<'_>,
    task: &AgentTask<'_>,
    handle: &AgentHandle,
    content: Digest,
    nth: Option<u64>,
) -> Digest {
    let round = ctx.scope.value("iteration").unwrap_or(Value::Null);
    let mut all = vec![
        json!("one"),
        json!(VERSION),
        json!(ctx.name),
        json!(task.out),
        round,
        json!(handle.agent.digest().to_string()),
        json!(content.to_string()),
    ];
    all.extend(nth.map(|nth| json!(nth)));
    Digest::of(Value::Array(all).to_string())
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
            pages: None,
        });
    }
    Ok(files)
}

/// Counts the pages of attached PDFs. Each PDF must be read, so this is only done for limits.
fn count_pages(
    ctx: &BatchContext<'_>,
    task: &AgentTask<'_>,
    request: &mut AgentRequest,
) -> Result<(), Outcome> {
    let names = task.attach.iter();
    let sources = names.filter_map(|name| ctx.scope.sources(name)).flatten();
    let files = request.attachments.iter_mut().zip(sources);
    for (file, source) in files.filter(|(file, _)| file.is_pdf()) {
        file.pages = pdf_text::pages(ctx, &*source, &file.bytes)?;
    }
    Ok(())
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
