//! Agents as they are declared: who answers, with which settings and within which limits.

use super::asset::Asset;
use super::expression::{Program, Text};
use crate::base::digest::Digest;
use crate::base::path::RelPath;
use crate::model::api_kind::ApiKind;
use crate::model::money::NanoUsd;
use serde_json::json;

/// Something that answers a request.
#[derive(Debug, Clone)]
pub struct Agent {
    /// Its name in `[agents.NAME]`.
    pub name: String,
    /// Who answers.
    pub provider: Provider,
    /// What it may be asked, over all stages of a run.
    pub limits: AgentLimits,
}

/// Who answers for an agent.
#[derive(Debug, Clone)]
pub enum Provider {
    /// A table of rules.
    Rules(Asset),
    /// A jq program: `.` is the question, or the scope of the stage where there is none.
    Jq(Program),
    /// Answers that an earlier run recorded, in a folder of the project.
    Replay(RelPath),
    /// A model API.
    Api(Api),
    /// A command line.
    Cli(Cli),
    /// Someone outside: their answers are handed in, batch by batch.
    External,
}

/// A model API.
#[derive(Debug, Clone)]
pub struct Api {
    /// The provider.
    pub kind: ApiKind,
    /// The model.
    pub model: String,
    /// Another address than the provider's own, as declared.
    pub address: Option<Text>,
    /// The same with its names filled in, where it gives one; the provider's own where it gives nothing. Until a workspace is
    /// open, nothing.
    pub base_url: Option<String>,
    /// The environment variable that holds the key.
    pub key_env: String,
    /// The most tokens of an answer.
    pub max_tokens: u64,
    /// How much chance there is in an answer.
    pub temperature: f64,
    /// Whether requests go in batches, which are answered within a day at a lower price.
    pub batch: bool,
}

/// The command lines that are known by a name: how they are asked, and what they print.
pub const KNOWN_TOOLS: [&str; 6] = [
    "claude",
    "claude-code",
    "opencode",
    "cursor",
    "codex",
    "gemini",
];

/// A command line that answers.
#[derive(Debug, Clone)]
pub struct Cli {
    /// What is started.
    pub command: CliCommand,
    /// What it prints: `text`, `json` or `ndjson`.
    pub envelope: String,
}

/// What is started for a request.
#[derive(Debug, Clone)]
pub enum CliCommand {
    /// A command line that is known by this name.
    Known(String),
    /// The agent of this name in a registry file.
    Registry {
        /// The file.
        file: Asset,
        /// The agent's name in it.
        agent: String,
    },
    /// A program and its arguments.
    List(Vec<String>),
}

/// What an agent may be asked, over all stages of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AgentLimits {
    /// Calls at once.
    pub concurrency: Option<u64>,
    /// Requests a minute.
    pub requests_per_minute: Option<u64>,
    /// Tokens a minute.
    pub tokens_per_minute: Option<u64>,
    /// How often a request is sent at most, as long as nobody answers it; by default the caller's to know.
    pub tries: Option<u32>,
    /// What a call costs at most, where no price tells.
    pub max_usd_per_call: Option<NanoUsd>,
}

impl Agent {
    /// One line for reports: the provider, and what it is asked by. A table of rules is named with the digest of its data: a
    /// comment in it makes no other report.
    pub fn describe(&self) -> String {
        match &self.provider {
            Provider::Rules(asset) => format!("{} ({})", self.label(), asset.meaning()),
            _ => self.describe_by_bytes(),
        }
    }

    /// The same with the digest of the bytes of a table of rules, as earlier versions recorded it.
    pub(crate) fn describe_by_bytes(&self) -> String {
        match &self.provider {
            Provider::Rules(asset) => format!("{} ({})", self.label(), asset.digest),
            Provider::Jq(program) => match &program.asset {
                Some(asset) => format!("{} ({})", self.label(), asset.digest),
                None => format!("jq {}", Digest::of(program.source.as_bytes())),
            },
            _ => self.label(),
        }
    }

    /// Who it is in short, without digests.
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
                CliCommand::Registry { file, agent } => format!("cli {} {agent}", file.path),
                CliCommand::List(list) => format!("cli {}", list.join(" ")),
            },
            Provider::External => "external".to_owned(),
        }
    }

    /// Everything of the agent that an answer may depend on. How long an answer may be is not: one that is whole is. Nor is
    /// whether it came in a batch.
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
                CliCommand::Registry { file, agent } => {
                    json!(["cli", file.digest.to_string(), agent])
                }
                CliCommand::List(list) => json!(["cli", list, cli.envelope]),
            },
            // Who it is, only its name says.
            Provider::External => json!(["external", self.name]),
        };
        Digest::of(said.to_string())
    }

    /// Whether its requests go in batches.
    pub fn is_batched(&self) -> bool {
        matches!(&self.provider, Provider::Api(api) if api.batch)
    }

    /// Whether someone outside answers: a run sends nothing, and waits for what is handed in.
    pub fn is_external(&self) -> bool {
        matches!(self.provider, Provider::External)
    }

    /// Whether it costs nothing and says the same again: its answers are not kept.
    pub fn is_free(&self) -> bool {
        matches!(self.provider, Provider::Rules(_) | Provider::Jq(_))
    }
}
