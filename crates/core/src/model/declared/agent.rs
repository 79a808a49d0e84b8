//! Agents as declared: provider, settings and limits.

use super::asset::Asset;
use super::expression::{Program, Text};
use crate::base::digest::Digest;
use crate::base::path::RelPath;
use crate::model::api_kind::ApiKind;
use crate::model::money::NanoUsd;
use serde_json::json;

#[derive(Debug, Clone)]
pub struct Agent {
    /// The name in `[agents.NAME]`.
    pub name: String,
    pub provider: Provider,
    /// The limits of its calls, over all stages of a run.
    pub limits: AgentLimits,
}

/// The provider of an agent's answers.
#[derive(Debug, Clone)]
pub enum Provider {
    /// A table of rules.
    Rules(Asset),
    /// A jq program: `.` is the question, or the scope if there are no questions.
    Jq(Program),
    /// Answers that an earlier run recorded, in a folder of the project.
    Replay(RelPath),
    Api(Api),
    Cli(Cli),
    /// An external agent, which submits answers batch by batch.
    External,
}

#[derive(Debug, Clone)]
pub struct Api {
    pub kind: ApiKind,
    pub model: String,
    /// The declared address, if it is not the provider's own.
    pub address: Option<Text>,
    /// The rendered address; `None` for the provider's own, and until a workspace is open.
    pub base_url: Option<String>,
    /// The environment variable that holds the key.
    pub key_env: String,
    /// The most tokens of an answer.
    pub max_tokens: u64,
    pub temperature: f64,
    /// True if requests go into provider batches, which are answered within a day at a lower price.
    pub batch: bool,
}

/// The names of the command lines that Milepost knows.
pub const KNOWN_TOOLS: [&str; 6] = [
    "claude",
    "claude-code",
    "opencode",
    "cursor",
    "codex",
    "gemini",
];

/// A command line that answers requests.
#[derive(Debug, Clone)]
pub struct Cli {
    pub command: CliCommand,
    /// The form of its output: `text`, `json` or `ndjson`.
    pub envelope: String,
}

/// The program that is started for a request.
#[derive(Debug, Clone)]
pub enum CliCommand {
    /// A command line that Milepost knows.
    Known(String),
    /// A program and its arguments.
    List {
        /// The words; `project:PATH` is a file of the project.
        words: Vec<String>,
        /// The files of the project among them, with their digests.
        files: Vec<(RelPath, Digest)>,
    },
}

/// The limits of an agent's calls, over all stages of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AgentLimits {
    /// The most calls at once.
    pub concurrency: Option<u64>,
    /// The most requests a minute.
    pub requests_per_minute: Option<u64>,
    /// The most tokens a minute.
    pub tokens_per_minute: Option<u64>,
    /// Maximum number of tries of an unanswered request; `None` for the default.
    pub tries: Option<u32>,
    /// The most that a call costs, if no price is known.
    pub max_usd_per_call: Option<NanoUsd>,
}

impl Agent {
    /// Returns one line for reports: the provider and its settings. A table of rules is named by the digest of its data, which
    /// ignores comments.
    pub fn describe(&self) -> String {
        match &self.provider {
            Provider::Rules(asset) => format!("{} ({})", self.label(), asset.meaning()),
            _ => self.describe_by_bytes(),
        }
    }

    /// Returns the same with the digest of the bytes of a table of rules, as earlier versions recorded it.
    pub(crate) fn describe_by_bytes(&self) -> String {
        match &self.provider {
            Provider::Rules(asset) => format!("{} ({})", self.label(), asset.digest),
            Provider::Jq(program) => match &program.asset {
                Some(_) => {
                    let digest = Digest::of(program.source.as_bytes());
                    format!("{} ({digest})", self.label())
                }
                None => format!("jq {}", Digest::of(program.source.as_bytes())),
            },
            _ => self.label(),
        }
    }

    /// Returns a short description without digests.
    pub fn label(&self) -> String {
        match &self.provider {
            Provider::Rules(asset) => format!("rules {}", asset.path),
            Provider::Jq(program) => match &program.asset {
                Some(asset) => format!("jq {}", asset.path),
                None => "jq in milepost.toml".to_owned(),
            },
            Provider::Replay(folder) => format!("replay {folder}"),
            Provider::Api(api) => format!("{} {}", api.kind.name(), api.model),
            Provider::Cli(cli) => match &cli.command {
                CliCommand::Known(name) => format!("cli {name}"),
                CliCommand::List { words, .. } => format!("cli {}", words.join(" ")),
            },
            Provider::External => "external".to_owned(),
        }
    }

    /// Returns the digest of everything that a complete answer may depend on: not the length limit, and not whether requests go
    /// into provider batches.
    pub fn digest(&self) -> Digest {
        let said = match &self.provider {
            Provider::Rules(asset) => return Digest::of(format!("rules {}", asset.digest)),
            Provider::Jq(program) => json!(["jq", &*program.source]),
            Provider::Replay(folder) => json!(["replay", folder.as_str()]),
            Provider::Api(api) => {
                json!([api.kind.name(), api.model, api.base_url, api.temperature])
            }
            Provider::Cli(cli) => match &cli.command {
                CliCommand::Known(name) => json!(["cli", name]),
                CliCommand::List { words, files } if files.is_empty() => {
                    json!(["cli", words, cli.envelope])
                }
                CliCommand::List { words, files } => {
                    let digests = files.iter().map(|(_, digest)| digest.to_string());
                    json!(["cli", words, cli.envelope, digests.collect::<Vec<_>>()])
                }
            },
            // Who it is, only its name says.
            Provider::External => json!(["external", self.name]),
        };
        Digest::of(said.to_string())
    }

    /// Returns true if its requests go into provider batches.
    pub fn is_batched(&self) -> bool {
        matches!(&self.provider, Provider::Api(api) if api.batch)
    }

    /// Returns true for an external agent: a run sends nothing, and waits for submitted answers.
    pub fn is_external(&self) -> bool {
        matches!(self.provider, Provider::External)
    }

    /// Returns the environment variable that holds its key, if it has one.
    pub fn key_variable(&self) -> Option<&str> {
        match &self.provider {
            Provider::Api(api) => Some(&api.key_env),
            _ => None,
        }
    }

    /// Returns true if its answers are free and always the same, so that they are not kept.
    pub fn is_free(&self) -> bool {
        matches!(self.provider, Provider::Rules(_) | Provider::Jq(_))
    }
}
