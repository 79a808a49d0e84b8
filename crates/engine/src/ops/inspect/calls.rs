//! Calls of agents: those of a batch, their cost, and their requests and answers.

pub(crate) mod cache;
pub mod pages;

use crate::ops::project::error::OpsError;
use crate::ops::project::open_project::OpenProject;
use jiff::Timestamp;
use milepost_core::base::path::RelPath;
use milepost_core::base::redact::Redactor;
use milepost_core::model::call::{Estimated, Spent};
use milepost_core::model::event::{Event, Record};
use milepost_core::model::money::NanoUsd;
use milepost_core::model::record::{AnswersOf, BatchRecord};
use milepost_core::model::usage::Usage;
use milepost_store::store::calls::{self, CallRecord};
use milepost_store::store::journal;
use milepost_store::store::layout::{self, Layout};
use milepost_store::store::read;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// The most calls that `why` lists of a batch.
const LISTED: usize = 20;

/// A call of an agent.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct CallSummary {
    /// The id of the run.
    pub run: String,
    /// The number of the call in its run, from 1.
    pub number: u64,
    /// When it was sent, in UTC.
    #[cfg_attr(debug_assertions, schemars(with = "String"))]
    pub when: Timestamp,
    /// The stage's name.
    pub stage: String,
    /// The batch; empty for the only one.
    pub batch: String,
    /// The number of the call among those of its batch in the run, from 1.
    pub(crate) attempt: u32,
    /// The agent that was asked, after replacements.
    pub agent: String,
    /// The provider and model in one line.
    pub provider: String,
    /// The requested model, if one is named.
    pub model: Option<String>,
    /// The model that answered, by the provider's name.
    pub served: Option<String>,
    /// The digest of prompt, attachments and schema, the same for every agent.
    pub(crate) asked: String,
    /// The number of questions.
    pub questions: u64,
    /// `answered`, or the failure; `unheard` if the run ended before the answer.
    pub outcome: String,
    /// The message of the failure.
    pub message: Option<String>,
    /// The tokens used.
    pub usage: Usage,
    /// The cost in billionths of a dollar, or the most it may be if no answer came; `None` if it is not known.
    pub cost: Option<NanoUsd>,
    /// Why the cost is the reserved amount.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated: Option<Estimated>,
    /// The duration in seconds.
    pub seconds: Option<f64>,
    /// The provider's id of the request.
    pub(crate) request_id: Option<String>,
    /// The path of the request, in the workspace.
    #[cfg_attr(debug_assertions, schemars(with = "String"))]
    pub request: RelPath,
    /// The path of the answer, in the workspace.
    #[cfg_attr(debug_assertions, schemars(with = "Option<String>"))]
    pub answer: Option<RelPath>,
}

/// A call with its request and answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Exchange {
    /// The call.
    #[serde(flatten)]
    pub call: CallSummary,
    /// The text of the prompt, with the system prompt; `None` if it is no longer kept.
    pub prompt: Option<String>,
    /// The text of the answer; `None` if none came, or it is no longer kept.
    pub text: Option<String>,
    /// The violations in the answer, a line each. Its valid answers were used nevertheless.
    pub wrong: Vec<String>,
}

/// The answers that a batch used, and its calls.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct BatchCalls {
    /// The number of answers that its outputs were built from.
    pub answers: u64,
    /// The number of these answers that were kept from earlier runs.
    pub kept: u64,
    /// The calls that returned these answers.
    pub from: Vec<AnswersOf>,
    /// The runs among them that were in other workspaces, which have their records.
    pub elsewhere: Vec<String>,
    /// The latest calls of the batch, in order, with or without success.
    pub calls: Vec<CallSummary>,
    /// The number of earlier calls that `calls` leaves out.
    pub more: u64,
    /// The cost of all calls.
    pub spent: Spent,
}

/// The spending of a workspace, and the rest of its limits.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Spending {
    /// The cost of all runs, failed ones included.
    pub spent: Spent,
    /// The records of calls that cannot be read, whose cost is missing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<String>,
    /// The limit of money, in billionths of a dollar.
    pub usd: Option<Limit>,
    /// The limit of tokens.
    pub tokens: Option<Limit>,
    /// The limit of calls.
    pub calls: Option<Limit>,
    /// The limit of time spent in calls, in milliseconds.
    pub time: Option<Limit>,
}

/// A limit of `[limits]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Limit {
    /// The declared limit.
    pub limit: u64,
    /// The part that is left.
    pub left: u64,
}

impl CallSummary {
    /// Returns the provider's id of the request, if it names one.
    pub fn request_id(&self) -> Option<&str> {
        self.request_id.as_deref()
    }

    /// Describes a recorded call.
    pub(crate) fn of(call: CallRecord) -> Self {
        let CallRecord {
            run,
            number,
            when,
            sent,
            response,
            ..
        } = call;
        let response = response.as_ref();
        Self {
            request: layout::call(&run, number, "request"),
            answer: response.map(|_| layout::call(&run, number, "answer")),
            run,
            number,
            when,
            stage: sent.stage,
            batch: sent.batch,
            attempt: sent.attempt,
            agent: sent.agent,
            provider: sent.provider,
            model: (!sent.model.is_empty()).then_some(sent.model),
            served: response.and_then(|response| response.served.clone()),
            asked: sent.asked.to_string(),
            questions: sent.questions,
            outcome: response
                .map_or_else(|| "unheard".to_owned(), |response| response.outcome.clone()),
            message: response.and_then(|response| response.message.clone()),
            usage: response.map(|response| response.usage).unwrap_or_default(),
            cost: response.map_or(sent.reserved, |response| response.cost),
            estimated: response.map_or(Some(Estimated::NoUsage), |response| response.estimated),
            seconds: response.map(|response| response.took_ms as f64 / 1000.0),
            request_id: response.and_then(|response| response.request_id.clone()),
        }
    }
}

/// Returns the calls of a stage or of one of its batches, in the order of their runs.
pub(crate) fn calls(
    opened: &OpenProject,
    stage: Option<&str>,
    batch: Option<&str>,
) -> Result<Vec<CallRecord>, OpsError> {
    let folder = opened.workspace.layout.calls();
    let is_wanted = |sent: &milepost_core::model::call::SentCall| {
        stage.is_none_or(|stage| sent.stage == stage)
            && batch.is_none_or(|batch| sent.batch == batch)
    };
    calls::read_some(&folder, &is_wanted).map_err(OpsError::unreadable(&folder.display()))
}

/// Returns the answers and calls of a batch; `None` if it called no agent.
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
        spent += Spent::of(&call.sent, call.response.as_ref());
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

/// Returns calls with their requests and answers.
pub(crate) fn exchanges(opened: &OpenProject, calls: Vec<CallRecord>) -> Vec<Exchange> {
    exchanges_with(opened, calls, &refused(&opened.workspace.layout))
}

/// The violations in answers, by run and number of the call.
pub(crate) type Refused = BTreeMap<(String, u64), Vec<String>>;

/// Returns calls with their requests and answers, and the violations among these.
pub(crate) fn exchanges_with(
    opened: &OpenProject,
    calls: Vec<CallRecord>,
    refused: &Refused,
) -> Vec<Exchange> {
    let layout = &opened.workspace.layout;
    let mut all = Vec::with_capacity(calls.len());
    for call in calls {
        let answered = call
            .response
            .as_ref()
            .and_then(|response| response.text.clone());
        let summary = CallSummary::of(call);
        // A request that is gone is left out; its call is not.
        let bytes = read::bytes(layout.at(&summary.request)).ok();
        let text = answered.or_else(|| {
            let bytes = read::bytes(layout.at(summary.answer.as_ref()?)).ok()?;
            Some(String::from_utf8_lossy(&bytes).into_owned())
        });
        let hide = |text: String| opened.redactor.text(&text).into_owned();
        all.push(Exchange {
            prompt: bytes.map(|bytes| prompt(&bytes, &opened.redactor)),
            text: text.map(hide),
            wrong: refused
                .get(&(summary.run.clone(), summary.number))
                .cloned()
                .unwrap_or_default(),
            call: summary,
        });
    }
    all
}

/// Returns the violations in the answers of calls. A journal that cannot be read has none.
pub(crate) fn refused(layout: &Layout) -> Refused {
    let mut all = BTreeMap::new();
    let kind = [r#""kind":"answers_refused""#.to_owned()];
    let _ = journal::read_with(layout, &kind, &mut |record: Record| {
        if let Event::AnswersRefused {
            number, violations, ..
        } = record.event
        {
            all.insert((record.run_id, number), violations);
        }
    });
    all
}

/// Returns the texts in a request, in order.
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

/// The spending of a workspace, and of each stage by name.
pub(crate) type SpentByStage = (Spending, BTreeMap<String, Spent>);

/// Returns the spending of the workspace and its stages; `None` if no agent was called and no limit is declared.
pub(crate) fn spending(opened: &OpenProject) -> Result<Option<SpentByStage>, OpsError> {
    let layout = &opened.workspace.layout;
    let stages = calls::spent_by_stage(layout);
    let (stages, unreadable) = stages.map_err(OpsError::unreadable(&layout.calls().display()))?;
    let unreadable = unreadable.iter().map(ToString::to_string).collect();
    let money = spending_of(opened, stages.values(), unreadable);
    Ok(money.map(|money| (money, stages)))
}

/// Returns the spending of the workspace by the cost of its stages; `None` if no agent was called and no limit is declared.
pub(crate) fn spending_of<'a>(
    opened: &OpenProject,
    stages: impl Iterator<Item = &'a Spent>,
    unreadable: Vec<String>,
) -> Option<Spending> {
    let mut spent = Spent::default();
    for one in stages {
        spent += *one;
    }
    let limits = &opened.pipeline.limits;
    let time = limits.time.map(|time| time.as_millis() as u64);
    let is_limited = limits.usd.is_some() || limits.tokens.is_some() || limits.calls.is_some();
    let is_limited = is_limited || time.is_some();
    if spent.calls == 0 && unreadable.is_empty() && !is_limited {
        return None;
    }
    let left = |limit: Option<u64>, used: u64| {
        limit.map(|limit| Limit {
            limit,
            left: limit.saturating_sub(used),
        })
    };
    Some(Spending {
        usd: left(limits.usd.map(|usd| usd.0), spent.cost.0),
        tokens: left(limits.tokens, spent.usage.total()),
        calls: left(limits.calls, spent.calls),
        time: left(time, spent.took_ms),
        unreadable,
        spent,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_prompt_is_told_without_its_wire() {
        let shown = |body: Value| prompt(body.to_string().as_bytes(), &Redactor::default());
        let anthropic = json!({
            "model": "m", "system": [{"type": "text", "text": "Be brief."}],
            "messages": [{"role": "user", "content": [
                {"type": "image", "source": {"data": "AAAA"}}, {"type": "text", "text": "What is it?"},
            ]}],
        });
        assert_eq!(shown(anthropic), "Be brief.\n[image]\nWhat is it?");
        let openai = json!({"messages": [
            {"role": "system", "content": "Be brief."}, {"role": "user", "content": "sk-0123456789abcdef0"},
        ]});
        assert_eq!(shown(openai), "Be brief.\n[key]");
        let tool = json!({"system": null, "prompt": "Say it.", "attachments": [], "schema": {}});
        assert_eq!(shown(tool), "Say it.");
        assert_eq!(prompt(b"plain", &Redactor::default()), "plain");
    }
}
