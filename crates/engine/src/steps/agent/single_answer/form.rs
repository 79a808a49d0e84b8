//! Reads an answer in its declared form, and checks it.

use crate::steps::agent::handle::AgentHandle;
use milepost_agents::answer::json::{ExtractedJson, extract_json};
use milepost_agents::answer::reasoning::without_reasoning;
use milepost_agents::answer::tap_yaml::tap_yaml;
use milepost_agents::request::{Reply, StopReason};
use milepost_core::expr::place::excerpt;
use milepost_core::model::agent::Agent;
use milepost_core::model::outcome::{Outcome, OutcomeKind};
use milepost_core::model::step::AnswerForm;
use milepost_store::check::schema::Schema;
use serde_json::{Map, Value};

/// The most violations that are shown.
const SHOWN: usize = 20;

/// Returns the violations of an answer, one line each.
pub(super) fn violations(schema: Option<&Schema>, answer: &Value) -> Vec<String> {
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
pub(super) fn refuse(handle: &AgentHandle, reply: &Reply) -> Result<(), Outcome> {
    let outcome = |kind, what: &str| {
        let message = format!("agent `{}`: {what}", handle.agent.name);
        Err(Outcome::new(kind, message)
            .with_details(vec![reply.text.clone()])
            .for_good())
    };
    match &reply.stop {
        StopReason::Refused => outcome(OutcomeKind::Refused, "it refused to answer"),
        StopReason::Length => outcome(
            OutcomeKind::Cut,
            "the answer was cut at `max_tokens`: raise `max_tokens`",
        ),
        StopReason::Other(reason) => {
            Err(ended_early(&handle.agent, reason).with_details(vec![reply.text.clone()]))
        }
        StopReason::End => Ok(()),
    }
}

/// Returns the outcome of an answer that ended for a reason that is not its end, such as `abort` or `pause_turn`.
pub(in crate::steps::agent) fn ended_early(agent: &Agent, reason: &str) -> Outcome {
    let reason = excerpt(reason, 40);
    let message = format!("agent `{}`: the answer ended early: `{reason}`", agent.name);
    Outcome::new(OutcomeKind::Cut, message)
}

/// Returns the values of the block in a text, and a warning for each default.
pub(super) fn block(
    text: &str,
    defaults: &Map<String, Value>,
) -> Result<(Value, Vec<String>), String> {
    let block = tap_yaml(text, defaults).map_err(|error| error.to_string())?;
    let defaulted = block.defaulted.iter();
    let warnings = defaulted.map(|key| format!("the answer lacks `{key}`: its default is used"));
    let warnings = warnings.collect();
    Ok((Value::Object(block.values), warnings))
}

/// Reads an answer in its declared form, with warnings. `text` is the text of the agent, `structured` the value that it returned
/// separately. `has_schema` is true if the answer will be validated.
///
/// # Errors
/// If there is no answer in this form.
pub(crate) fn read(
    text: &str,
    structured: Option<&Value>,
    form: AnswerForm,
    defaults: &Map<String, Value>,
    has_schema: bool,
) -> Result<(Value, Vec<String>), String> {
    let written = text;
    let text = without_reasoning(written);
    match (form, structured) {
        (AnswerForm::Text, _) if text.trim().is_empty() => Err("the answer is empty".to_owned()),
        (AnswerForm::Text, _) => {
            let removed = written.len() - text.len();
            let warning = (removed > 0).then(|| {
                format!("{removed} bytes of reasoning and marks around the answer were left out")
            });
            Ok((Value::from(text), warning.into_iter().collect()))
        }
        (AnswerForm::TapYaml, _) => block(text, defaults),
        (AnswerForm::Json, Some(value)) => Ok((value.clone(), Vec::new())),
        (AnswerForm::Json, None) => match extract_json(text) {
            ExtractedJson::One {
                value,
                in_prose: false,
            } => Ok((value, Vec::new())),
            ExtractedJson::One { value, .. } if has_schema && !is_error(&value) => {
                let warning = "the JSON was found inside other text";
                Ok((value, vec![warning.to_owned()]))
            }
            ExtractedJson::One { .. } => {
                Err("the JSON is inside other text: it must be the whole answer".to_owned())
            }
            ExtractedJson::Several(count) => Err(format!("{count} JSON values: one was expected")),
            ExtractedJson::Cut => Err("the JSON does not end".to_owned()),
            ExtractedJson::Broken(why) => Err(format!("the JSON is wrong: {why}")),
            ExtractedJson::Nothing => Err("there is no JSON in it".to_owned()),
        },
    }
}

/// Returns true for an object that reports an error instead of answering.
fn is_error(value: &Value) -> bool {
    let error = value.get("error");
    error.is_some_and(|error| !matches!(error, Value::Null | Value::Bool(false)))
}
