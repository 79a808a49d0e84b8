//! The answers that a batch was built from: their calls with prompt and answer, or the rule that gave them.

use super::calls::calls_of;
use super::station::{StationKind, TracedAnswer, TracedRule};
use super::tracer::{BatchRef, Tracer};
use crate::ops::inspect::calls::{Exchange, calls, exchanges_with};
use crate::ops::project::error::OpsError;
use milepost_core::model::agent::{Agent, Provider};
use milepost_core::model::batched::CallId;
use milepost_core::model::fingerprint::FactKind;
use milepost_core::model::pipeline::Asset;
use milepost_core::model::stage::Stage;
use serde_json::Value;

/// The most answers of a batch that are shown.
const SHOWN: usize = 20;

/// An element in a request to an agent.
#[derive(Clone, Copy)]
pub(super) struct AskedElement<'e> {
    pub(super) key: &'e str,
    /// The question; elements with the same question share it.
    pub(super) question: Option<&'e Value>,
    /// The record that was built from the answer, or the record in the request.
    pub(super) record: &'e Value,
}

impl<'a> Tracer<'a> {
    /// Returns true if the stage of a batch asks an agent.
    pub(super) fn asks(&self, batch: BatchRef<'a>) -> bool {
        !batch.record.answers.is_empty() || !self.agents(batch).is_empty()
    }

    /// Returns the names of the agents that a batch was recorded with, if its stage asks agents.
    fn agents(&self, batch: BatchRef<'a>) -> Vec<String> {
        let stage = self.declared(batch);
        let asks = |stage: &Stage| stage.steps.iter().any(|step| step.kind.agent().is_some());
        if !stage.is_some_and(asks) {
            return Vec::new();
        }
        let facts = self.facts(batch).into_iter();
        let agents = facts.filter(|(key, _)| key.kind == FactKind::Agent);
        agents.map(|(key, _)| key.name.to_string()).collect()
    }

    /// Adds the answers of a batch, which lead to station `to`.
    ///
    /// # Errors
    /// When the records of calls cannot be read.
    pub(super) fn add_answers(
        &mut self,
        batch: BatchRef<'a>,
        element: Option<AskedElement<'_>>,
        to: usize,
    ) -> Result<(), OpsError> {
        let agents = self.agents(batch);
        if batch.record.answers.is_empty() {
            for name in agents {
                let answer = self.without_call(&name, element.map(|element| element.record));
                self.add(Some(to), None, StationKind::Answer(Box::new(answer)));
            }
            return Ok(());
        }
        let folder = self.opened.workspace.layout.calls();
        let mut known = calls_of(self.opened, batch.record)?;
        let (mut found, mut others) = (Vec::new(), Vec::new());
        for from in &batch.record.answers {
            let (run, call) = (from.run.clone(), from.call);
            let id = CallId {
                run: run.clone(),
                number: call,
            };
            match known.remove(&id) {
                Some(record) => found.push(record),
                None if folder.join(format!("{run}.jsonl")).exists() => {
                    others.push(TracedAnswer::Removed { run, call });
                }
                None => others.push(TracedAnswer::Elsewhere { run, call }),
            }
        }
        let exchanges = exchanges_with(self.opened, found, self.violations.read(self.opened));
        let mut answers: Vec<TracedAnswer> = exchanges
            .into_iter()
            .map(|exchange| of_call(exchange, element))
            .collect();
        if answers.iter().any(names_it) {
            answers.retain(names_it);
        } else {
            answers.extend(others);
        }
        self.add_some(answers, to);
        Ok(())
    }

    /// Adds the calls of a batch about an element that had no valid answer.
    ///
    /// # Errors
    /// When the records of calls cannot be read.
    pub(super) fn add_refused_answers(
        &mut self,
        batch: BatchRef<'a>,
        element: AskedElement<'_>,
        to: usize,
    ) -> Result<(), OpsError> {
        let calls = calls(self.opened, Some(batch.stage), Some(&batch.record.key))?;
        let violations = self.violations.read(self.opened);
        let exchanges = exchanges_with(self.opened, calls, violations).into_iter();
        let answers = exchanges.map(|exchange| of_call(exchange, Some(element)));
        let mut answers: Vec<TracedAnswer> = answers.collect();
        if answers.iter().any(names_it) {
            answers.retain(names_it);
        }
        self.add_some(answers, to);
        Ok(())
    }

    fn add_some(&mut self, answers: Vec<TracedAnswer>, to: usize) {
        let more = answers.len().saturating_sub(SHOWN);
        for answer in answers.into_iter().take(SHOWN) {
            self.add(Some(to), None, StationKind::Answer(Box::new(answer)));
        }
        if let StationKind::Batch(batch) = &mut self.stations[to].about {
            batch.more_answers = more as u64;
        }
    }

    /// Returns the answer of an agent without a recorded call.
    fn without_call(&self, name: &str, record: Option<&Value>) -> TracedAnswer {
        let (agent, declared) = (name.to_owned(), self.opened.pipeline.agents.get(name));
        let provider = declared.map(Agent::label).unwrap_or_default();
        match declared {
            Some(declared) if declared.is_free() => TracedAnswer::Computed {
                rule: match &declared.provider {
                    Provider::Rules(asset) => record.and_then(|record| rule(asset, record)),
                    _ => None,
                },
                agent,
                provider,
            },
            _ => TracedAnswer::Unrecorded { agent, provider },
        }
    }
}

fn names_it(answer: &TracedAnswer) -> bool {
    matches!(
        answer,
        TracedAnswer::Call {
            names_element: Some(true),
            ..
        }
    )
}

/// Returns the answer of a call, with its part about an element.
fn of_call(exchange: Exchange, element: Option<AskedElement<'_>>) -> TracedAnswer {
    let prompt = exchange.prompt.as_deref().unwrap_or_default();
    let spellings = element.map(AskedElement::spellings).unwrap_or_default();
    let place = spellings.iter().find_map(|text| prompt.find(text));
    let part = place.and_then(|place| {
        let before = prompt[..place].strip_suffix("\"question\":")?;
        let (_, id) = before.rsplit_once("\"id\":")?;
        let id = id.trim().trim_end_matches(',').trim_matches('"');
        part_of(exchange.text.as_deref()?, id)
    });
    TracedAnswer::Call {
        names_element: element.map(|_| place.is_some()),
        exchange: Box::new(exchange),
        part,
    }
}

impl AskedElement<'_> {
    /// Returns the texts that name the element in a request: its question as JSON and as templates write it, or its key.
    fn spellings(self) -> Vec<String> {
        let Some(question) = self.question else {
            // A shorter key is part of other words.
            let key = Some(self.key).filter(|key| key.len() >= 4);
            return key.map(str::to_owned).into_iter().collect();
        };
        let plain = question.to_string();
        let escaped = [
            ("<", "\\u003c"),
            (">", "\\u003e"),
            ("&", "\\u0026"),
            ("'", "\\u0027"),
        ];
        let escaped = escaped.iter().fold(plain.clone(), |text, (char, escape)| {
            text.replace(char, escape)
        });
        vec![plain, escaped]
    }
}

/// Returns the object with an id in the JSON of an answer.
fn part_of(answer: &str, id: &str) -> Option<Value> {
    fn find(value: &Value, id: &str) -> Option<Value> {
        match value {
            Value::Object(fields) if fields.get("id").is_some_and(|it| it == id) => {
                Some(value.clone())
            }
            Value::Object(fields) => fields.values().find_map(|value| find(value, id)),
            Value::Array(items) => items.iter().find_map(|value| find(value, id)),
            _ => None,
        }
    }
    let list = || answer.get(answer.find('[')?..=answer.rfind(']')?);
    let whole = serde_json::from_str(answer).ok();
    let value: Value = whole.or_else(|| serde_json::from_str(list()?).ok())?;
    find(&value, id)
}

/// Returns the rule that a record names, as its file has it.
fn rule(asset: &Asset, record: &Value) -> Option<TracedRule> {
    let name = record.get("rule")?.as_str()?;
    let quoted = Value::from(name).to_string();
    let lines: Vec<&str> = asset.text.lines().collect();
    let names_it = |line: &&str| {
        let (key, value) = line.split_once('=').unwrap_or_default();
        key.trim() == "name" && value.trim_start().starts_with(&quoted)
    };
    let at = lines.iter().position(names_it)?;
    let is_head = |line: &&str| line.starts_with("[[");
    let start = lines[..at].iter().rposition(is_head).unwrap_or(at);
    let end = lines[at..].iter().position(is_head);
    let end = end.map_or(lines.len(), |length| at + length);
    Some(TracedRule {
        name: name.to_owned(),
        line: at as u64 + 1,
        text: lines[start..end].join("\n").trim_end().to_owned(),
    })
}
