//! The registry of `riteway ai`: names of agents and their command lines, in `riteway.agent-config.json`.

use super::{Envelope, PromptPosition, Tool};
use serde::Deserialize;
use std::collections::BTreeMap;

/// The name of the registry file.
pub const REGISTRY: &str = "riteway.agent-config.json";

/// One agent, as <https://github.com/paralleldrive/riteway> reads it (`source/agent-config.js`).
#[derive(Deserialize)]
struct AgentEntry {
    command: String,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default, rename = "outputFormat")]
    output_format: OutputFormat,
}

#[derive(Deserialize, Default, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum OutputFormat {
    #[default]
    Json,
    Ndjson,
    Text,
}

/// A file that holds one agent, or many by name.
#[derive(Deserialize)]
#[serde(untagged)]
enum RegistryFile {
    One(AgentEntry),
    Many(BTreeMap<String, AgentEntry>),
}

/// A registry without a usable command line.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum RegistryError {
    /// The file does not have the form of a registry.
    #[error(
        "{file}: write `{{\"NAME\": {{\"command\": \"…\", \"args\": […], \"outputFormat\": \"json\" or \"ndjson\"}}}}`: {why}"
    )]
    Form { file: String, why: String },
    /// There is no such agent.
    #[error("{file}: there is no agent `{name}`; it has {}", known.join(", "))]
    Unknown {
        file: String,
        name: String,
        /// The names in the file.
        known: Vec<String>,
    },
}

impl Tool {
    /// Returns the agent with this name, or the only agent of a file that has one without a name. The prompt is the last argument, as
    /// in `riteway ai`.
    ///
    /// # Errors
    /// Fails if the file is not a registry or has no such agent.
    pub fn of_registry(file: &str, text: &str, name: &str) -> Result<Self, RegistryError> {
        let form = |why: String| RegistryError::Form {
            file: file.to_owned(),
            why,
        };
        let read: RegistryFile =
            serde_json::from_str(text).map_err(|error| form(error.to_string()))?;
        let entry = match read {
            RegistryFile::One(entry) => entry,
            RegistryFile::Many(mut entries) => {
                entries.remove(name).ok_or_else(|| RegistryError::Unknown {
                    file: file.to_owned(),
                    name: name.to_owned(),
                    known: entries.into_keys().collect(),
                })?
            }
        };
        if entry.command.is_empty() {
            return Err(form(format!("`{name}` has no command")));
        }
        let envelope = match entry.output_format {
            OutputFormat::Json => Envelope::Json,
            OutputFormat::Ndjson => Envelope::Ndjson,
            OutputFormat::Text => Envelope::Text,
        };
        let command = std::iter::once(entry.command).chain(entry.args).collect();
        let tool = Self::generic(command, envelope);
        let place = if tool.place == PromptPosition::Within {
            PromptPosition::Within
        } else {
            PromptPosition::Last
        };
        Ok(Self { place, ..tool })
    }
}
