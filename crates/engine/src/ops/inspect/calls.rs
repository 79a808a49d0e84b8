//! What agents were asked and answered: the calls of a batch, what they cost, and the bytes that went and came.

use crate::ops::project::error::OpsError;
use crate::ops::project::open_project::OpenProject;
use jiff::Timestamp;
use milepost_core::base::path::RelPath;
use milepost_core::base::redact::Redactor;
use milepost_core::model::call::Spent;
use milepost_core::model::event::{Event, Record};
use milepost_core::model::money::NanoUsd;
use milepost_core::model::record::{AnswersOf, BatchRecord};
use milepost_core::model::usage::Usage;
use milepost_store::store::calls::{self, CallRecord};
use milepost_store::store::journal;
use milepost_store::store::layout::{self, Layout};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// Calls that `why` lists of a batch: the latest.
const LISTED: usize = 20;

/// A call of an agent.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct CallSummary {
    /// The run that called.
    pub run: String,
    /// Which of its calls it was, from 1 on.
    pub number: u64,
    /// When it was sent, in UTC.
    #[cfg_attr(debug_assertions, schemars(with = "String"))]
    pub when: Timestamp,
    /// The stage.
    pub stage: String,
    /// The batch; empty for the only one.
    pub batch: String,
    /// Which call of its batch it was in that run, from 1 on.
    pub(crate) attempt: u32,
    /// The agent that was asked, after replacements.
    pub agent: String,
    /// Who that is, in one line.
    pub provider: String,
    /// The model that was asked, where one is named.
    pub model: Option<String>,
    /// The model that answered, as the provider names it.
    pub served: Option<String>,
    /// The digest of what was asked, whoever is asked: prompt, attachments and schema.
    pub(crate) asked: String,
    /// Questions in it.
    pub questions: u64,
    /// `answered`, or how it failed; `unheard` when the run ended before.
    pub outcome: String,
    /// What was wrong, in words.
    pub message: Option<String>,
    /// Tokens used.
    pub usage: Usage,
    /// What it cost, or may have cost at most where nothing was heard, in billionths of a dollar; none: nobody knows.
    pub cost: Option<NanoUsd>,
    /// How long it took, in seconds.
    pub seconds: Option<f64>,
    /// The provider's id of the request.
    pub(crate) request_id: Option<String>,
    /// Where the bytes of the request lie, in the workspace.
    #[cfg_attr(debug_assertions, schemars(with = "String"))]
    pub request: RelPath,
    /// Where the bytes of the answer lie, in the workspace.
    #[cfg_attr(debug_assertions, schemars(with = "Option<String>"))]
    pub answer: Option<RelPath>,
}

/// A call with what was asked and answered.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Exchange {
    /// The call.
    #[serde(flatten)]
    pub call: CallSummary,
    /// What the agent was told: system and prompt; none: it is not kept any more.
    pub prompt: Option<String>,
    /// What it answered; none: nothing was heard, or it is not kept any more.
    pub text: Option<String>,
    /// What was wrong with the answer, a line each. Valid answers in it were used all the same.
    pub wrong: Vec<String>,
}

/// Where the answers of a batch come from.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct BatchCalls {
    /// Answers that its outputs were made from.
    pub answers: u64,
    /// Those that the run that made them did not ask for: they were kept.
    pub kept: u64,
    /// The calls that they came with.
    pub from: Vec<AnswersOf>,
    /// Runs among those that were of other workspaces: their calls are recorded there.
    pub elsewhere: Vec<String>,
    /// The latest calls of the batch, whatever came of them, in order.
    pub calls: Vec<CallSummary>,
    /// Earlier calls that `calls` leaves out.
    pub more: u64,
    /// What all of its calls cost.
    pub spent: Spent,
}

/// What a workspace spent, and what of its limits is left.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Spending {
    /// In all runs, those that failed among them.
    pub spent: Spent,
    /// Spending under `[limits]`, in billionths of a dollar.
    pub usd: Option<Limit>,
    /// Tokens under `[limits]`.
    pub tokens: Option<Limit>,
    /// Calls under `[limits]`.
    pub calls: Option<Limit>,
    /// Time of calls under `[limits]`, in milliseconds.
    pub time: Option<Limit>,
}

/// A limit of a workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Limit {
    /// What there is.
    pub limit: u64,
    /// What is left of it.
    pub left: u64,
}

impl CallSummary {
    fn of(call: CallRecord) -> Self {
        let CallRecord {
            run,
            number,
            when,
            sent,
            heard,
            ..
        } = call;
        let heard = heard.as_ref();
        Self {
            request: layout::call(&run, number, "request"),
            answer: heard.map(|_| layout::call(&run, number, "answer")),
            run,
            number,
            when,
            stage: sent.stage,
            batch: sent.batch,
            attempt: sent.attempt,
            agent: sent.agent,
            provider: sent.provider,
            model: (!sent.model.is_empty()).then_some(sent.model),
            served: heard.and_then(|heard| heard.served.clone()),
            asked: sent.asked.to_string(),
            questions: sent.questions,
            outcome: heard.map_or_else(|| "unheard".to_owned(), |heard| heard.outcome.clone()),
            message: heard.and_then(|heard| heard.message.clone()),
            usage: heard.map(|heard| heard.usage).unwrap_or_default(),
            cost: heard.map_or(sent.reserved, |heard| heard.cost),
            seconds: heard.map(|heard| heard.took_ms as f64 / 1000.0),
            request_id: heard.and_then(|heard| heard.request_id.clone()),
        }
    }
}

/// The calls of a stage, or of one of its batches, in the order of their runs.
pub(crate) fn calls(
    opened: &OpenProject,
    stage: Option<&str>,
    batch: Option<&str>,
) -> Result<Vec<CallRecord>, OpsError> {
    let folder = opened.workspace.layout.calls();
    let is_wanted = |sent: &milepost_core::model::call::Sent| {
        stage.is_none_or(|stage| sent.stage == stage)
            && batch.is_none_or(|batch| sent.batch == batch)
    };
    calls::read_some(&folder, &is_wanted).map_err(|error| unread(&opened.workspace.layout, &error))
}

fn unread(layout: &Layout, error: &std::io::Error) -> OpsError {
    OpsError::World(format!(
        "cannot read `{}`: {error}",
        layout.calls().display()
    ))
}

/// What is known of what a batch asked; none: it asked nobody.
pub(crate) fn batch_calls(
    opened: &OpenProject,
    stage: &str,
    batch: &str,
    record: Option<&BatchRecord>,
) -> Result<Option<BatchCalls>, OpsError> {
    let mut calls = calls(opened, Some(stage), Some(batch))?;
    let from = record.map(|record| record.answers.clone());
    let from = from.unwrap_or_default();
    if calls.is_empty() && from.is_empty() {
        return Ok(None);
    }
    let mut spent = Spent::default();
    for call in &calls {
        spent += Spent::of(&call.sent, call.heard.as_ref());
    }
    let made_by = record.map(|record| record.run.as_str());
    let kept = from.iter().filter(|one| Some(one.run.as_str()) != made_by);
    let more = calls.len().saturating_sub(LISTED);
    let folder = opened.workspace.layout.calls();
    let mut elsewhere: Vec<String> = from.iter().map(|one| one.run.clone()).collect();
    elsewhere.sort();
    elsewhere.dedup();
    elsewhere.retain(|run| !folder.join(format!("{run}.jsonl")).exists());
    Ok(Some(BatchCalls {
        elsewhere,
        answers: from.iter().map(|one| one.answers).sum(),
        kept: kept.map(|one| one.answers).sum(),
        from,
        calls: calls
            .split_off(more)
            .into_iter()
            .map(CallSummary::of)
            .collect(),
        more: more as u64,
        spent,
    }))
}

/// Calls with what was asked and answered.
pub(crate) fn exchanges(opened: &OpenProject, calls: Vec<CallRecord>) -> Vec<Exchange> {
    let layout = &opened.workspace.layout;
    let mut refused = refused(layout);
    let mut all = Vec::with_capacity(calls.len());
    for call in calls {
        let answered = call.heard.as_ref().and_then(|heard| heard.text.clone());
        let told = CallSummary::of(call);
        // Bytes that are gone say nothing; the call is told all the same.
        let bytes = std::fs::read(layout.at(&told.request)).ok();
        let text = answered.or_else(|| {
            let bytes = std::fs::read(layout.at(told.answer.as_ref()?)).ok()?;
            Some(String::from_utf8_lossy(&bytes).into_owned())
        });
        let hide = |text: String| opened.redactor.text(&text).into_owned();
        all.push(Exchange {
            prompt: bytes.map(|bytes| prompt(&bytes, &opened.redactor)),
            text: text.map(hide),
            wrong: refused
                .remove(&(told.run.clone(), told.number))
                .unwrap_or_default(),
            call: told,
        });
    }
    all
}

/// Returns what was wrong with the answers of calls, by run and number. A journal that is broken tells what stands before the break.
fn refused(layout: &Layout) -> BTreeMap<(String, u64), Vec<String>> {
    let mut all = BTreeMap::new();
    let _ = journal::read_all(layout, &mut |_, record: Record| {
        if let Event::AnswersRefused {
            number, violations, ..
        } = record.event
        {
            all.insert((record.run_id, number), violations);
        }
    });
    all
}

/// What an agent is told by a request: the texts in it, in order, without what is only of the wire.
fn prompt(request: &[u8], redactor: &Redactor) -> String {
    let whole = String::from_utf8_lossy(request);
    let texts = serde_json::from_str::<Value>(&whole).ok().map(|body| {
        let mut texts = Vec::new();
        for key in ["system", "messages", "prompt"] {
            add_texts(&body[key], &mut texts);
        }
        texts
    });
    let texts = texts.filter(|texts| !texts.is_empty());
    let text = texts.map_or_else(|| whole.into_owned(), |texts| texts.join("\n"));
    redactor.text(&text).into_owned()
}

fn add_texts(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::String(text) => texts.push(text.clone()),
        Value::Array(parts) => parts.iter().for_each(|part| add_texts(part, texts)),
        Value::Object(part) => match (part.get("text"), part.get("content"), part.get("type")) {
            (Some(text), _, _) => add_texts(text, texts),
            (None, Some(content), _) => add_texts(content, texts),
            (None, None, Some(kind)) => {
                texts.push(format!("[{}]", kind.as_str().unwrap_or("file")));
            }
            _ => {}
        },
        _ => {}
    }
}

/// What each stage spent in all runs, by its name, and the workspace; none: nobody was asked.
pub(crate) fn spending(
    opened: &OpenProject,
) -> Result<Option<(Spending, BTreeMap<String, Spent>)>, OpsError> {
    let layout = &opened.workspace.layout;
    let stages = calls::spent_by_stage(layout).map_err(|error| unread(layout, &error))?;
    let limits = &opened.pipeline.limits;
    let time = limits.time.map(|time| time.as_millis() as u64);
    let is_limited = limits.usd.is_some() || limits.tokens.is_some() || limits.calls.is_some();
    let is_limited = is_limited || time.is_some();
    if stages.is_empty() && !is_limited {
        return Ok(None);
    }
    let mut spent = Spent::default();
    for one in stages.values() {
        spent += *one;
    }
    let left = |limit: Option<u64>, used: u64| {
        limit.map(|limit| Limit {
            limit,
            left: limit.saturating_sub(used),
        })
    };
    let money = Spending {
        usd: left(limits.usd.map(|usd| usd.0), spent.cost.0),
        tokens: left(limits.tokens, spent.usage.total()),
        calls: left(limits.calls, spent.calls),
        time: left(time, spent.took_ms),
        spent,
    };
    Ok(Some((money, stages)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_prompt_is_told_without_its_wire() {
        let told = |body: Value| prompt(body.to_string().as_bytes(), &Redactor::default());
        let anthropic = json!({
            "model": "m", "system": [{"type": "text", "text": "Be brief."}],
            "messages": [{"role": "user", "content": [
                {"type": "image", "source": {"data": "AAAA"}}, {"type": "text", "text": "What is it?"},
            ]}],
        });
        assert_eq!(told(anthropic), "Be brief.\n[image]\nWhat is it?");
        let openai = json!({"messages": [
            {"role": "system", "content": "Be brief."}, {"role": "user", "content": "sk-0123456789abcdef0"},
        ]});
        assert_eq!(told(openai), "Be brief.\n[key]");
        let tool = json!({"system": null, "prompt": "Say it.", "attachments": [], "schema": {}});
        assert_eq!(told(tool), "Say it.");
        assert_eq!(prompt(b"plain", &Redactor::default()), "plain");
    }
}
