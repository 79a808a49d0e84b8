//! Agents made ready to answer, once for a run: tables compiled, clients and limits shared by all stages.

use super::costs::CallCosts;
use super::gather::{Desk, Gatherer};
use crate::steps::calls::{Calls, Pace};
use milepost_agents::api::{ClientSettings, ModelApi, connect};
use milepost_agents::cli::{Envelope, Preset, RegistryError, Tool};
use milepost_agents::http::{Cancelled, HttpError, SharedHttp};
use milepost_agents::limits::{RateLimiter, RateLimits};
use milepost_agents::prices::{PriceError, Prices};
use milepost_agents::rules::{Rules, RulesError};
use milepost_agents::secret::Secret;
use milepost_core::base::digest::Digest;
use milepost_core::base::redact::redact;
use milepost_core::model::agent::{Agent, CliCommand, Provider};
use milepost_core::model::call::{ANSWERED, Heard, Sent};
use milepost_core::model::outcome::Outcome;
use milepost_core::model::pipeline::Asset;
use milepost_core::model::record::AnswersOf;
use milepost_core::model::stage::Program;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// What agents are made ready for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To be asked.
    Run,
    /// To find out what they would be asked: they need no key, and nobody waits for their limits.
    Plan,
}

/// The agents that a run asks. Each is made ready when a stage first asks it.
pub(crate) struct Agents {
    purpose: Purpose,
    /// Values of the environment variables that hold keys.
    keys: BTreeMap<String, String>,
    prices: Prices,
    replays: Replays,
    http: SharedHttp,
    ready: Mutex<BTreeMap<String, Arc<Ready>>>,
}

/// Reads the recorded calls of a folder of the project: what was sent, and what was heard.
pub(crate) type Replays = Box<dyn Fn(&str) -> Result<Vec<(Sent, Heard)>, AgentError> + Send + Sync>;

/// The agents that a stage asks, ready to answer: by the name that the step uses, after replacements.
#[derive(Default)]
pub(crate) struct Answerers(BTreeMap<String, Arc<Ready>>);

/// An agent that is ready.
pub(crate) struct Ready {
    /// Its declaration.
    pub(crate) agent: Agent,
    /// Who answers.
    pub(crate) who: Who,
    /// Calls at once, requests and tokens a minute.
    pub(crate) limits: RateLimiter,
    /// Requests that go in batches.
    pub(crate) gatherer: Gatherer,
    /// What its calls cost.
    pub(crate) costs: CallCosts,
    /// What the first call's check said.
    pub checked: OnceLock<Result<(), milepost_agents::fault::CallFault>>,
}

/// Why an agent cannot be asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AgentError {
    /// Its table of rules is wrong.
    #[error(transparent)]
    Rules(#[from] RulesError),
    /// The project's prices are wrong.
    #[error(transparent)]
    Prices(#[from] PriceError),
    /// Its registry does not name it.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// No HTTP client can be made.
    #[error(transparent)]
    Http(#[from] HttpError),
    /// No preset has the name of its command line.
    #[error("`{0}` is not known")]
    UnknownTool(String),
    /// The environment variable with its key is not set.
    #[error("agent `{agent}` needs a key: set the environment variable {variable}")]
    NoKey {
        /// The agent.
        agent: String,
        /// The variable; hidden if a key was written in the place of its name.
        variable: String,
    },
    /// Its recorded answers cannot be read.
    #[error("{folder}: {why}")]
    Replay {
        /// The folder.
        folder: String,
        /// What the disk or the records say.
        why: String,
    },
}

/// Who answers.
pub(crate) enum Who {
    /// A table of rules.
    Rules(Box<Rules>),
    /// A jq program.
    Jq(Program),
    /// What was heard before, by what was asked.
    Replay(BTreeMap<String, Heard>),
    /// A model API.
    Api(Box<dyn ModelApi>),
    /// A command line.
    Tool(Tool),
    /// Someone outside, whose answers are handed in.
    Outside,
}

impl Agents {
    /// The agents of a run. `keys` are values of environment variables, `prices` the project's own.
    ///
    /// # Errors
    /// When the prices are wrong.
    pub(crate) fn new(
        purpose: Purpose,
        keys: BTreeMap<String, String>,
        prices: Option<&Asset>,
        replays: Replays,
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
            http: SharedHttp::default(),
            ready: Mutex::default(),
        })
    }

    /// Those that a stage asks, by the names that it uses.
    ///
    /// # Errors
    /// When one cannot be made ready: a table of rules is wrong, a key is not set, recorded answers cannot be read.
    pub(crate) fn of<'a>(
        &self,
        asked: impl IntoIterator<Item = (&'a str, &'a Agent)>,
    ) -> Result<Answerers, AgentError> {
        let mut answerers = BTreeMap::new();
        for (name, agent) in asked {
            let mut ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
            let found = match ready.get(&agent.name) {
                Some(found) => Arc::clone(found),
                None => {
                    let made = Arc::new(self.make(agent)?);
                    ready.insert(agent.name.clone(), Arc::clone(&made));
                    made
                }
            };
            answerers.insert(name.to_owned(), found);
        }
        Ok(Answerers(answerers))
    }

    fn make(&self, agent: &Agent) -> Result<Ready, AgentError> {
        let who = match &agent.provider {
            Provider::Rules(asset) => {
                Who::Rules(Box::new(Rules::parse(asset.path.as_str(), &asset.text)?))
            }
            Provider::Jq(program) => Who::Jq(program.clone()),
            Provider::Replay(folder) => {
                let calls = (self.replays)(folder.as_str())?;
                let answered = calls
                    .into_iter()
                    .filter(|(_, heard)| heard.outcome == ANSWERED)
                    .map(|(sent, heard)| (sent.asked.to_string(), heard));
                Who::Replay(answered.collect())
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
                Who::Api(connect(api.kind, self.http.get()?, settings))
            }
            Provider::External => Who::Outside,
            Provider::Cli(cli) => Who::Tool(match &cli.command {
                CliCommand::Known(name) => Tool::preset(
                    Preset::named(name).ok_or_else(|| AgentError::UnknownTool(name.clone()))?,
                ),
                CliCommand::Registry { file, agent } => {
                    Tool::of_registry(file.path.as_str(), &file.text, agent)?
                }
                CliCommand::List(list) => Tool::generic(
                    list.clone(),
                    Envelope::named(&cli.envelope).unwrap_or(Envelope::Text),
                ),
            }),
        };
        // A provider counts what comes in batches apart.
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
        Ok(Ready {
            who,
            limits: RateLimiter::new(allowed),
            gatherer: Gatherer::default(),
            costs: CallCosts::new(agent, self.prices.clone()),
            checked,
            agent: agent.clone(),
        })
    }

    /// Looks once after the batches that runs left of these agents at their providers, and records the results of those that are
    /// done, also if nobody asks for them any more. What cannot be asked is left for the next time.
    pub(crate) fn sweep<'a>(
        &self,
        agents: impl Iterator<Item = &'a Agent>,
        calls: &dyn Calls,
        stopped: Cancelled<'_>,
        pace: Pace,
    ) {
        let Some(book) = calls.batched() else {
            return;
        };
        // One that is asked directly today may have been asked in batches before.
        for agent in agents.filter(|agent| matches!(agent.provider, Provider::Api(_))) {
            let Ok(found) = self.of([(agent.name.as_str(), agent)]) else {
                continue;
            };
            if let Some(ready) = found.get(&agent.name)
                && let Who::Api(client) = &ready.who
                && let Some(api) = client.batches()
            {
                let desk = Desk {
                    agent,
                    costs: &ready.costs,
                    api,
                    calls,
                    book,
                    stopped,
                    running: &|| 0,
                    updated: &|_| {},
                    pace,
                };
                let _ = ready.gatherer.sweep(&desk);
            }
        }
    }

    /// Returns the HTTP client of the run.
    pub(crate) fn http(&self) -> &SharedHttp {
        &self.http
    }
}

fn few(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

impl Answerers {
    /// Whether one of them is a program.
    pub(crate) fn start_programs(&self) -> bool {
        self.0
            .values()
            .any(|ready| matches!(ready.who, Who::Tool(_)))
    }

    /// Whether requests of one of them go in batches.
    pub(crate) fn are_batched(&self) -> bool {
        self.0.values().any(|ready| ready.agent.is_batched())
    }

    /// The names of those that are someone outside, after replacements.
    pub(crate) fn external(&self) -> Vec<String> {
        let external = self.0.values().filter(|ready| ready.agent.is_external());
        external.map(|ready| ready.agent.name.clone()).collect()
    }

    /// The agent of this name, after replacements.
    pub(crate) fn named(&self, name: &str) -> Option<&Arc<Ready>> {
        self.0.values().find(|ready| ready.agent.name == name)
    }

    /// The agent that a step calls by this name.
    pub(crate) fn get(&self, name: &str) -> Option<&Arc<Ready>> {
        self.0.get(name)
    }
}

impl Ready {
    /// Returns the answers of this agent that are kept at addresses and may be used: with `since`, those of these runs.
    ///
    /// # Errors
    /// When what is kept cannot be read.
    pub(crate) fn known(
        &self,
        calls: &dyn Calls,
        since: Option<&[String]>,
        addresses: &[Digest],
    ) -> Result<Vec<Option<(Value, AnswersOf)>>, Outcome> {
        if matches!(self.who, Who::Outside) {
            calls.kept(addresses)
        } else {
            calls.known(addresses, since)
        }
    }

    /// The model that is asked, where one is named.
    pub(crate) fn model(&self) -> &str {
        match &self.who {
            Who::Api(client) => client.model(),
            _ => "",
        }
    }

    /// The most tokens of an answer.
    pub(crate) fn max_tokens(&self) -> u64 {
        match &self.agent.provider {
            Provider::Api(api) => api.max_tokens,
            _ => 0,
        }
    }

    /// How much chance there is in an answer, where that can be said.
    pub(crate) fn temperature(&self) -> Option<f64> {
        match &self.agent.provider {
            Provider::Api(api) => Some(api.temperature),
            _ => None,
        }
    }
}
