//! Reads an answer in its declared form, and checks it.

use crate::steps::agent::handle::AgentHandle;
use milepost_agents::answer::json::{ExtractedJson, extract_json};
use milepost_agents::answer::tap_yaml::tap_yaml;
use milepost_agents::request::{Reply, StopReason};
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
