//! Agents made ready to answer, once for a run: tables compiled, clients and limits shared by all stages.

use super::gather::{Desk, Gatherer};
use crate::steps::work::{Calls, Pace, Work};
use milepost_agents::api::{ModelApi, Settings, connect};
use milepost_agents::cli::{Envelope, Preset, RegistryError, Tool};
use milepost_agents::http::{Cancelled, HttpError, SharedHttp};
use milepost_agents::limits::{Allowed, Limits};
use milepost_agents::prices::{Mode, PriceError, Prices};
use milepost_agents::rules::{Rules, RulesError};
use milepost_agents::secret::Secret;
use milepost_core::base::digest::Digest;
use milepost_core::base::redact::redact;
use milepost_core::model::agent::{Agent, CliCommand, Provider};
use milepost_core::model::call::{ANSWERED, Heard, Sent};
use milepost_core::model::money::NanoUsd;
use milepost_core::model::outcome::Outcome;
use milepost_core::model::pipeline::Asset;
use milepost_core::model::record::AnswersOf;
use milepost_core::model::stage::Program;
use milepost_core::model::usage::Usage;
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
    pub(crate) limits: Limits,
    /// Requests that go in batches.
    pub(crate) gatherer: Gatherer,
    prices: Prices,
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
                let settings = Settings {
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
                Allowed {
                    concurrent: agent.limits.concurrency.map(few),
                    requests_per_minute: by_the_minute(agent.limits.requests_per_minute).map(few),
                    tokens_per_minute: by_the_minute(agent.limits.tokens_per_minute),
                },
                OnceLock::new(),
            ),
            Purpose::Plan => (Allowed::default(), OnceLock::from(Ok(()))),
        };
        Ok(Ready {
            who,
            limits: Limits::new(allowed),
            gatherer: Gatherer::default(),
            prices: self.prices.clone(),
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
                    ready,
                    api,
                    calls,
                    book,
                    stopped,
                    running: &|| 0,
                    tell: &|_| {},
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

/// How a request is made.
fn mode(batched: bool) -> Mode {
    if batched { Mode::Batch } else { Mode::Direct }
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
    /// The answers of this agent that are kept at addresses and may be used.
    ///
    /// # Errors
    /// When what is kept cannot be read.
    pub(crate) fn known(
        &self,
        work: &Work<'_>,
        addresses: &[Digest],
    ) -> Result<Vec<Option<(Value, AnswersOf)>>, Outcome> {
        if matches!(self.who, Who::Outside) {
            work.calls.kept(addresses)
        } else {
            work.calls.known(addresses, work.asked_since)
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

    /// What a call with so much input may cost at most; none when nobody knows.
    pub(crate) fn most(&self, input: u64) -> Option<NanoUsd> {
        match &self.who {
            Who::Rules(_) | Who::Jq(_) | Who::Replay(_) | Who::Outside => Some(NanoUsd::ZERO),
            Who::Api(client) => self
                .prices
                .most(
                    client.model(),
                    input,
                    self.max_tokens(),
                    mode(self.agent.is_batched()),
                )
                .or(self.agent.limits.max_usd_per_call),
            Who::Tool(_) => self.agent.limits.max_usd_per_call,
        }
    }

    /// What a call of a model cost; none when nobody knows. A model that runs elsewhere than at its provider has no price unless one is
    /// declared.
    pub(crate) fn cost(
        &self,
        model: &str,
        batched: bool,
        usage: &Usage,
        told: Option<NanoUsd>,
    ) -> Option<NanoUsd> {
        if told.is_some() {
            return told;
        }
        match &self.who {
            Who::Rules(_) | Who::Jq(_) | Who::Replay(_) | Who::Outside => Some(NanoUsd::ZERO),
            // No request uses no tokens: the server reported none. Without them only a model whose price is zero has a cost.
            Who::Api(_) if usage.total() == 0 => {
                let most = self.prices.most(model, 1, 1, mode(batched));
                most.filter(|&most| most == NanoUsd::ZERO)
            }
            Who::Api(_) => self.prices.cost(model, usage, mode(batched)),
            Who::Tool(_) => None,
        }
    }
}
