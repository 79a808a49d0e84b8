//! The registry of `riteway ai`: `riteway.agent-config.json`, names and their command lines.

use super::{Envelope, PromptPosition, Tool};
use serde::Deserialize;
use std::collections::BTreeMap;

/// The name of the file.
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

/// Why a registry gives no command line.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum RegistryError {
    /// It is no JSON of this form.
    #[error(
        "{file}: write `{{\"NAME\": {{\"command\": \"…\", \"args\": […], \"outputFormat\": \"json\" or \"ndjson\"}}}}`: {why}"
    )]
    Form {
        /// The file.
        file: String,
        /// What is wrong.
        why: String,
    },
    /// It has no such agent.
    #[error("{file}: there is no agent `{name}`; it has {}", known.join(", "))]
    Unknown {
        /// The file.
        file: String,
        /// The name that was asked for.
        name: String,
        /// The names that it has.
        known: Vec<String>,
    },
}

impl Tool {
    /// The agent of this name in a registry, or the only one of a file that holds one without a name. The prompt is the
    /// last argument, as `riteway ai` has it.
    ///
    /// # Errors
    /// When the file has another form, or no such agent.
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
