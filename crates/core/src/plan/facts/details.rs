//! The details of larger facts: a reason names the part that changed, with its old and new value.

use crate::base::digest::Digest;
use crate::model::agent::{Agent, Cli, CliCommand, Provider};
use crate::model::fingerprint::{FactKind, FactValue, Facts};
use crate::model::pipeline::Asset;
use serde_json::{Value, json};

/// The value of a fact is kept up to this length, else its digest.
const FACT_LENGTH: usize = 160;

/// The text of a part is kept up to this length, else its digest.
const PART_LENGTH: usize = 1000;

/// Returns the value of a fact as it is recorded.
pub(crate) fn shown(value: &Value) -> String {
    let text = value.to_string();
    if text.len() <= FACT_LENGTH {
        text
    } else {
        Digest::of(text).to_string()
    }
}

/// Adds a part of the declaration: as a whole, for records without details, and key by key.
pub(crate) fn add_part(facts: &mut Facts, kind: FactKind, part: &str, value: &Value) {
    facts.add(kind, part, shown(value));
    let mut leaves = Vec::new();
    // Keys of steps speak for themselves.
    let place = if part == "step" { "" } else { part };
    flatten(place, value, &mut leaves);
    for (name, value) in leaves {
        facts.add_detail((kind, part), (kind, &name), value);
    }
}

fn flatten(place: &str, value: &Value, leaves: &mut Vec<(String, FactValue)>) {
    let inside = |key: &str| match place {
        "" => key.to_owned(),
        place => format!("{place}.{key}"),
    };
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (key, value) in map {
                flatten(&inside(key), value, leaves);
            }
        }
        // A list of one step is that step.
        Value::Array(list) if place.is_empty() && list.len() == 1 => {
            flatten(place, &list[0], leaves);
        }
        Value::Array(list) if place.is_empty() => {
            for (at, value) in list.iter().enumerate() {
                flatten(&inside(&(at + 1).to_string()), value, leaves);
            }
        }
        Value::String(text) => leaves.push((place.to_owned(), kept(text.clone()))),
        other => leaves.push((place.to_owned(), kept(other.to_string()))),
    }
}

fn kept(text: String) -> FactValue {
    if text.len() <= PART_LENGTH {
        text.into()
    } else {
        Digest::of(text).into()
    }
}

/// Adds what an agent is: all of it that an answer may depend on.
pub(crate) fn add_agent(facts: &mut Facts, name: &str, agent: &Agent) {
    let of = (FactKind::Agent, name);
    let mut add = |field: &str, value: String| {
        facts.add_detail(
            of,
            (FactKind::Agent, &format!("{name}.{field}")),
            kept(value),
        );
    };
    let file = match &agent.provider {
        Provider::Rules(asset) => {
            add("provider", "rules".to_owned());
            Some((asset, asset.meaning()))
        }
        Provider::Jq(program) => {
            add("provider", "jq".to_owned());
            match &program.asset {
                Some(asset) => Some((asset, asset.digest)),
                None => {
                    add("jq", program.source.to_string());
                    None
                }
            }
        }
        Provider::Replay(folder) => {
            add("provider", "replay".to_owned());
            add("replay", folder.to_string());
            None
        }
        Provider::Api(api) => {
            add("provider", api.kind.name().to_owned());
            add("model", api.model.clone());
            add("base_url", api.base_url.clone().unwrap_or_default());
            add("temperature", api.temperature.to_string());
            None
        }
        Provider::Cli(Cli { command, envelope }) => {
            add("provider", "cli".to_owned());
            match command {
                CliCommand::Known(name) => add("cli", name.clone()),
                CliCommand::List { words, files } => {
                    add("cli", json!(words).to_string());
                    add("envelope", envelope.clone());
                    for (path, digest) in files {
                        facts.add_detail(of, (FactKind::File, path.as_str()), *digest);
                    }
                }
            }
            None
        }
        Provider::External => {
            add("provider", "external".to_owned());
            add("external", agent.name.clone());
            None
        }
    };
    let included: &[Asset] = match &agent.provider {
        Provider::Jq(program) => &program.included,
        _ => &[],
    };
    let included = included.iter().map(|asset| (asset, asset.digest));
    for (asset, digest) in file.into_iter().chain(included) {
        facts.add_detail(of, (FactKind::File, asset.path.as_str()), digest);
    }
}
