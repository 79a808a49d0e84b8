//! Agents that are ready to answer. Each is prepared once for a run: its rules are compiled, its client and limits are shared.

use super::costs::CallCosts;
use super::provider_batch::{BatchClient, BatchQueue};
use crate::steps::calls::{Calls, Pace};
use crate::steps::command::is_executable;
use crate::steps::http::connection::{Client, Connection};
use milepost_agents::api::{ClientSettings, ModelApi, connect};
use milepost_agents::cli::{Envelope, Preset, Tool};
use milepost_agents::http::{Cancelled, HttpError};
use milepost_agents::prices::{PriceError, Prices};
use milepost_agents::rate_limits::{RateLimiter, RateLimits};
use milepost_agents::rules::{Rules, RulesError};
use milepost_agents::secret::Secret;
use milepost_core::base::digest::Digest;
use milepost_core::base::redact::redact;
use milepost_core::model::agent::{Agent, CliCommand, Provider};
use milepost_core::model::call::{ANSWERED, CallResponse, SentCall};
use milepost_core::model::outcome::Outcome;
use milepost_core::model::pipeline::Asset;
use milepost_core::model::record::AnswersOf;
use milepost_core::model::stage::Program;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The purpose for which agents are prepared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To answer.
    Run,
    /// To simulate requests: agents need no keys and have no limits.
    Plan,
}

/// The agents of a run. Each is prepared when a stage first needs it.
pub(crate) struct Agents {
    purpose: Purpose,
    /// Values of the environment variables that hold keys.
    keys: BTreeMap<String, String>,
    prices: Prices,
    replays: Replays,
    project: PathBuf,
    client: Client,
    handles: Mutex<BTreeMap<String, Arc<AgentHandle>>>,
}

/// Reads the recorded calls in a folder of the project.
pub(crate) type Replays =
    Box<dyn Fn(&str) -> Result<Vec<(SentCall, CallResponse)>, AgentError> + Send + Sync>;

/// The agents of a stage, by the name that its steps use.
#[derive(Default)]
pub(crate) struct StageAgents(BTreeMap<String, Arc<AgentHandle>>);

/// An agent that is ready to answer.
pub(crate) struct AgentHandle {
    pub(crate) agent: Agent,
    /// How an agent answers.
    pub(crate) backend: Backend,
    /// Limits of concurrent calls, and of requests and tokens per minute.
    pub(crate) limits: RateLimiter,
    /// Requests that wait for a provider batch.
    pub(crate) batch_queue: BatchQueue,
    pub(crate) costs: CallCosts,
    pub(crate) connection: Arc<Connection>,
    /// The result of the check before the first call.
    pub checked: OnceLock<Result<(), milepost_agents::fault::CallFault>>,
}

/// The reason why an agent is unavailable.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AgentError {
    /// The table of rules is invalid.
    #[error(transparent)]
    Rules(#[from] RulesError),
    /// The prices of the project are invalid.
    #[error(transparent)]
    Prices(#[from] PriceError),
    /// The HTTP client cannot be created.
    #[error(transparent)]
    Http(#[from] HttpError),
    /// No preset has this name.
    #[error("there is no command line preset `{0}`")]
    UnknownTool(String),
    /// The environment variable with its key is not set.
    #[error("agent `{agent}` needs a key: set the environment variable {variable}")]
    NoKey {
        agent: String,
        /// The variable; redacted if a key was written in its place.
        variable: String,
    },
    /// The program is not executable.
    #[error("agent `{agent}`: `{file}` is not executable: chmod +x {file}")]
    NotExecutable { agent: String, file: String },
    /// The recorded answers cannot be read.
    #[error("{folder}: {why}")]
    Replay { folder: String, why: String },
}

/// How an agent answers.
pub(crate) enum Backend {
    /// A table of rules.
    Rules(Box<Rules>),
    Jq(Program),
    /// Recorded replies, by the digest of the request.
    Replay(BTreeMap<String, CallResponse>),
    Api(Box<dyn ModelApi>),
    Tool(Tool),
    /// An external agent, which submits its answers.
    External,
}

impl Agents {
    /// Creates the agents of a run. `keys` are values of environment variables, `prices` those of the project.
    ///
    /// # Errors
    /// When the prices are invalid.
    pub(crate) fn new(
        purpose: Purpose,
        keys: BTreeMap<String, String>,
        prices: Option<&Asset>,
        replays: Replays,
        project: PathBuf,
    ) -> Result<Self, AgentError> {
        let mut known = Prices::embedded()?;
        if let Some(own) = prices {
            known = known.with(own.path.as_str(), &own.text)?;
        }
        Ok(Self {
            purpose,
            keys,
            prices: known,
            replays,
            project,
            client: Client::default(),
            handles: Mutex::default(),
        })
    }

    /// Returns the agents of a stage, by the names that it uses.
    ///
    /// # Errors
    /// When an agent cannot be prepared: its rules are invalid, its key is not set, or its recorded answers cannot be read.
    pub(crate) fn of<'a>(
        &self,
        asked: impl IntoIterator<Item = (&'a str, &'a Agent)>,
    ) -> Result<StageAgents, AgentError> {
        let mut answerers = BTreeMap::new();
        for (name, agent) in asked {
            let mut handles = self.handles.lock().unwrap_or_else(PoisonError::into_inner);
            let found = match handles.get(&agent.name) {
                Some(found) => Arc::clone(found),
                None => {
                    let made = Arc::new(self.make(agent)?);
                    handles.insert(agent.name.clone(), Arc::clone(&made));
                    made
                }
            };
            answerers.insert(name.to_owned(), found);
        }
        Ok(StageAgents(answerers))
    }

    /// Returns the words of a command line, with the absolute paths of files of the project.
    ///
    /// # Errors
    /// If the first one is such a file without execute permission.
    fn absolute(&self, agent: &Agent, words: &[String]) -> Result<Vec<String>, AgentError> {
        let mut found = Vec::new();
        for (at, word) in words.iter().enumerate() {
            let file = word
                .strip_prefix("project:")
                .map(|path| self.project.join(path));
            if let Some(file) = file
                .as_deref()
                .filter(|file| at == 0 && !is_executable(file))
            {
                return Err(AgentError::NotExecutable {
                    agent: agent.name.clone(),
                    file: file.display().to_string(),
                });
            }
            found.push(file.map_or_else(|| word.clone(), |file| file.display().to_string()));
        }
        Ok(found)
    }

    fn make(&self, agent: &Agent) -> Result<AgentHandle, AgentError> {
        let backend = match &agent.provider {
            Provider::Rules(asset) => {
                Backend::Rules(Box::new(Rules::parse(asset.path.as_str(), &asset.text)?))
            }
            Provider::Jq(program) => Backend::Jq(program.clone()),
            Provider::Replay(folder) => {
                let calls = (self.replays)(folder.as_str())?;
                let answered = calls
                    .into_iter()
                    .filter(|(_, response)| response.outcome == ANSWERED)
                    .map(|(sent, response)| (sent.asked.to_string(), response));
                Backend::Replay(answered.collect())
            }
            Provider::Api(api) => {
                let key = self.keys.get(&api.key_env).map_or("", String::as_str);
                let wants_key = self.purpose == Purpose::Run && api.base_url.is_none();
                if key.is_empty() && wants_key {
                    return Err(AgentError::NoKey {
                        agent: agent.name.clone(),
                        variable: redact(&api.key_env).into_owned(),
                    });
                }
                let settings = ClientSettings {
                    model: api.model.clone(),
                    base_url: api.base_url.clone(),
                    key: Secret::new(key),
                    batch: api.batch,
                };
                Backend::Api(connect(api.kind, self.client.http.get()?, settings))
            }
            Provider::External => Backend::External,
            Provider::Cli(cli) => Backend::Tool(match &cli.command {
                CliCommand::Known(name) => Tool::preset(
                    Preset::named(name).ok_or_else(|| AgentError::UnknownTool(name.clone()))?,
                ),
                CliCommand::List { words, .. } => Tool::generic(
                    self.absolute(agent, words)?,
                    Envelope::named(&cli.envelope).unwrap_or(Envelope::Text),
                ),
            }),
        };
        let connection = match &agent.provider {
            Provider::Api(api) => {
                let url = api.base_url.as_deref().unwrap_or(api.kind.spec().base_url);
                Connection::new(url, "base_url", api.address.as_ref())
            }
            _ => Connection::new("", "", None),
        };
        // Providers have other limits for batches.
        let by_the_minute = |limit: Option<u64>| limit.filter(|_| !agent.is_batched());
        let (allowed, checked) = match self.purpose {
            Purpose::Run => (
                RateLimits {
                    concurrent: agent.limits.concurrency.map(few),
                    requests_per_minute: by_the_minute(agent.limits.requests_per_minute).map(few),
                    tokens_per_minute: by_the_minute(agent.limits.tokens_per_minute),
                },
                OnceLock::new(),
            ),
            Purpose::Plan => (RateLimits::default(), OnceLock::from(Ok(()))),
        };
        Ok(AgentHandle {
            backend,
            limits: RateLimiter::new(allowed),
            batch_queue: BatchQueue::default(),
            costs: CallCosts::new(agent, self.prices.clone()),
            connection,
            checked,
            agent: agent.clone(),
        })
    }

    /// Polls once the provider batches that earlier runs left, and records the results of finished ones, even if no batch needs
    /// them any more. If a provider cannot be reached, a later run polls again.
    pub(crate) fn sweep<'a>(
        &self,
        agents: impl Iterator<Item = &'a Agent>,
        calls: &dyn Calls,
        stopped: Cancelled<'_>,
        pace: Pace,
    ) {
        let Some(records) = calls.batched() else {
            return;
        };
        // An agent without batch mode may have had it before.
        for agent in agents.filter(|agent| matches!(agent.provider, Provider::Api(_))) {
            let Ok(found) = self.of([(agent.name.as_str(), agent)]) else {
                continue;
            };
            if let Some(handle) = found.get(&agent.name)
                && let Backend::Api(client) = &handle.backend
                && let Some(api) = client.batches()
            {
                let client = BatchClient {
                    agent,
                    costs: &handle.costs,
                    step: "",
                    api,
                    calls,
                    records,
                    stopped,
                    running: &|| 0,
                    updated: &|_| {},
                    pace,
                };
                let _ = handle.batch_queue.sweep(&client);
            }
        }
    }

    /// Returns the HTTP client of the run.
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }
}

fn few(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

impl StageAgents {
    /// Returns true if one of them is a command line.
    pub(crate) fn start_programs(&self) -> bool {
        self.0
            .values()
            .any(|handle| matches!(handle.backend, Backend::Tool(_)))
    }

    /// Returns true if one of them uses provider batches.
    pub(crate) fn are_batched(&self) -> bool {
        self.0.values().any(|handle| handle.agent.is_batched())
    }

    /// Returns true if an agent limits its concurrent calls.
    pub(crate) fn limit_concurrency(&self) -> bool {
        let mut agents = self.0.values().map(|handle| &handle.agent);
        agents.any(|agent| agent.limits.concurrency.is_some())
    }

    /// Returns the names of external agents, after replacements.
    pub(crate) fn external(&self) -> Vec<String> {
        let external = self.0.values().filter(|handle| handle.agent.is_external());
        external.map(|handle| handle.agent.name.clone()).collect()
    }

    /// Returns the agent with this name, after replacements.
    pub(crate) fn named(&self, name: &str) -> Option<&Arc<AgentHandle>> {
        self.0.values().find(|handle| handle.agent.name == name)
    }

    /// Returns the agent that a step uses under this name.
    pub(crate) fn get(&self, name: &str) -> Option<&Arc<AgentHandle>> {
        self.0.get(name)
    }
}

impl AgentHandle {
    /// Returns the answers of this agent that are kept at addresses and may be used: with `since`, those of these runs.
    ///
    /// # Errors
    /// When the answers cannot be read.
    pub(crate) fn known(
        &self,
        calls: &dyn Calls,
        since: Option<&[String]>,
        addresses: &[Digest],
    ) -> Result<Vec<Option<(Value, AnswersOf)>>, Outcome> {
        if matches!(self.backend, Backend::External) {
            calls.kept(addresses)
        } else {
            calls.known(addresses, since)
        }
    }

    /// Returns the name of the model; empty if there is none.
    pub(crate) fn model(&self) -> &str {
        match &self.backend {
            Backend::Api(client) => client.model(),
            _ => "",
        }
    }

    /// Returns the most tokens of an answer; 0 if there is no limit.
    pub(crate) fn max_tokens(&self) -> u64 {
        match &self.agent.provider {
            Provider::Api(api) => api.max_tokens,
            _ => 0,
        }
    }

    /// Returns the sampling temperature, if the agent has one.
    pub(crate) fn temperature(&self) -> Option<f64> {
        match &self.agent.provider {
            Provider::Api(api) => Some(api.temperature),
            _ => None,
        }
    }
}
