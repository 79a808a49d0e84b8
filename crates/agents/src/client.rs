//! A model API, whichever it is: what a step holds.

use super::anthropic::Anthropic;
use super::batches::{BatchResult, Known, Limit, Progress};
use super::fault::CallFault;
use super::http::{Answer, Cancelled, Http};
use super::openai::OpenAi;
use super::request::{Reply, Request};
use super::secret::Secret;
use std::sync::Arc;
use std::time::Duration;

/// Where and what to ask.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The model.
    pub model: String,
    /// Another address than the provider's own.
    pub base_url: Option<String>,
    /// The key; empty for a server that wants none.
    pub key: Secret,
    /// Whether requests go into batches: they are then never streamed.
    pub batch: bool,
}

/// A model API. Threads can share it; calls do not disturb each other.
#[derive(Debug, Clone)]
pub enum Client {
    /// Anthropic's Messages.
    Anthropic(Anthropic),
    /// OpenAI's Chat Completions, and all that speak it.
    OpenAi(OpenAi),
}

impl Client {
    /// A client of Anthropic's Messages.
    pub fn anthropic(http: Arc<Http>, settings: Settings) -> Self {
        Self::Anthropic(Anthropic::new(http, settings))
    }

    /// A client of OpenAI's Chat Completions.
    pub fn openai(http: Arc<Http>, settings: Settings) -> Self {
        Self::OpenAi(OpenAi::new(http, settings))
    }

    /// The model that is asked.
    pub fn model(&self) -> &str {
        match self {
            Self::Anthropic(client) => client.model(),
            Self::OpenAi(client) => client.model(),
        }
    }

    /// The exact bytes that are sent for a request: the same for the same request, and never the key.
    pub fn body(&self, request: &Request) -> Vec<u8> {
        match self {
            Self::Anthropic(client) => client.body(request),
            Self::OpenAi(client) => client.body(request),
        }
    }

    /// Sends what [`Client::body`] gave.
    ///
    /// # Errors
    /// Whatever goes wrong; [`super::policy::after`] says what follows.
    pub fn call(
        &self,
        body: &[u8],
        within: Duration,
        cancelled: Cancelled<'_>,
    ) -> Result<Reply, CallFault> {
        match self {
            Self::Anthropic(client) => client.call(body, within, cancelled),
            Self::OpenAi(client) => client.call(body, within, cancelled),
        }
    }

    /// Reads the kept bytes of an answer again ([`Reply::raw`]), as if it had come now.
    ///
    /// # Errors
    /// As [`Client::call`] had them for an answer of a good status.
    pub fn read(&self, raw: Vec<u8>) -> Result<Reply, CallFault> {
        let answer = Answer {
            status: 200,
            body: raw,
            ..Answer::default()
        };
        match self {
            Self::Anthropic(client) => client.read(answer),
            Self::OpenAi(client) => client.read(answer),
        }
    }

    /// How long to make no further call: answers since this was last asked said that a limit is used up.
    pub fn rest(&self) -> Option<Duration> {
        match self {
            Self::Anthropic(client) => client.wire.rest(),
            Self::OpenAi(client) => client.wire.rest(),
        }
    }

    /// Whether key and address are good. Costs nothing.
    ///
    /// # Errors
    /// `Auth` for a wrong key; else why it could not be found out.
    pub fn check(&self, within: Duration, cancelled: Cancelled<'_>) -> Result<(), CallFault> {
        match self {
            Self::Anthropic(client) => client.check(within, cancelled),
            Self::OpenAi(client) => client.check(within, cancelled),
        }
    }

    /// How much one batch may hold.
    pub fn batch_limit(&self) -> Limit {
        match self {
            Self::Anthropic(_) => Anthropic::BATCH,
            Self::OpenAi(_) => OpenAi::BATCH,
        }
    }

    /// Submits requests (an id of one's own and the bytes of [`Client::body`]) as a batch, and gives its id. Keep the id
    /// before anything else is done: nothing else leads back to the batch.
    ///
    /// # Errors
    /// When it is not taken. `BadRequest` also where it holds more than [`Client::batch_limit`] or a wrong id.
    pub fn submit(
        &self,
        requests: &[(String, Vec<u8>)],
        within: Duration,
        cancelled: Cancelled<'_>,
    ) -> Result<String, CallFault> {
        match self {
            Self::Anthropic(client) => client.submit(requests, within, cancelled),
            Self::OpenAi(client) => client.submit(requests, within, cancelled),
        }
    }

    /// How far a batch is.
    ///
    /// # Errors
    /// When it could not be found out.
    pub fn poll(
        &self,
        id: &str,
        within: Duration,
        cancelled: Cancelled<'_>,
    ) -> Result<Progress, CallFault> {
        match self {
            Self::Anthropic(client) => client.poll(id, within, cancelled),
            Self::OpenAi(client) => client.poll(id, within, cancelled),
        }
    }

    /// The results of a batch that ended, in any order. A request without a result is to be sent again, as an expired one.
    ///
    /// # Errors
    /// When they could not be fetched.
    pub fn harvest(
        &self,
        id: &str,
        within: Duration,
        cancelled: Cancelled<'_>,
    ) -> Result<Vec<(String, BatchResult)>, CallFault> {
        match self {
            Self::Anthropic(client) => client.harvest(id, within, cancelled),
            Self::OpenAi(client) => client.harvest(id, within, cancelled),
        }
    }

    /// The latest batches that the provider has, at most 100. A run that was killed after a batch was sent and before its id
    /// was kept finds it here: by when it was made, how many requests it has, and the ids in its results.
    ///
    /// # Errors
    /// When they could not be listed.
    pub fn recent(
        &self,
        within: Duration,
        cancelled: Cancelled<'_>,
    ) -> Result<Vec<Known>, CallFault> {
        match self {
            Self::Anthropic(client) => client.recent(within, cancelled),
            Self::OpenAi(client) => client.recent(within, cancelled),
        }
    }

    /// Asks the provider to end a batch. What is done by then can be harvested.
    ///
    /// # Errors
    /// When the provider could not be told.
    pub fn cancel(
        &self,
        id: &str,
        within: Duration,
        cancelled: Cancelled<'_>,
    ) -> Result<(), CallFault> {
        match self {
            Self::Anthropic(client) => client.cancel(id, within, cancelled),
            Self::OpenAi(client) => client.cancel(id, within, cancelled),
        }
    }
}
