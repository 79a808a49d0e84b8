//! What talks to models, held against a server of scripts, recorded outputs of command lines, and a mock that is not ours.

mod aimock;
mod answers;
mod anthropic;
pub mod audit;
pub mod batch_mode;
mod batches;
mod bounds;
mod each;
mod flags;
mod http;
mod keys;
mod loops;
mod lost;
mod money;
mod openai;
pub mod pipeline;
mod revisions;
pub mod server;
mod settings;
mod single;
mod stopping;
mod tools;
mod tries;
mod waiting;

use milepost_agents::api::{ClientSettings, ModelApi, connect};
use milepost_agents::http::{CallLimit, Http};
use milepost_agents::secret::Secret;
use milepost_core::model::api_kind::ApiKind;
use std::sync::Arc;
use std::time::Duration;

/// Longer than anything here takes.
const LONG: Duration = Duration::from_mins(1);

/// The limit of calls that come to their end.
const LIMIT: CallLimit<'static> = CallLimit {
    within: LONG,
    cancelled: &never,
};

/// A key that must not be found anywhere.
const KEY: &str = "sk-test-0123456789abcdef";

fn settings(url: &str, model: &str) -> ClientSettings {
    ClientSettings {
        model: model.to_owned(),
        base_url: Some(url.to_owned()),
        key: Secret::new(KEY),
        batch: false,
    }
}

fn client(kind: ApiKind, settings: ClientSettings) -> Box<dyn ModelApi> {
    connect(kind, Arc::new(Http::new(None).unwrap()), settings)
}

fn anthropic(url: &str, model: &str) -> Box<dyn ModelApi> {
    client(ApiKind::Anthropic, settings(url, model))
}

fn openai(url: &str, model: &str) -> Box<dyn ModelApi> {
    client(ApiKind::OpenAi, settings(&format!("{url}/v1"), model))
}

fn never() -> bool {
    false
}
