//! The providers of model APIs, a file or folder each, and the choice among them.

mod anthropic;
mod openai;

pub(crate) use anthropic::{stop_of, usage_of};

use super::{ClientSettings, ModelApi};
use crate::http::Http;
use anthropic::Anthropic;
use milepost_core::model::api_kind::ApiKind;
use openai::OpenAi;
use std::sync::Arc;

/// Returns a client of the provider that has this kind of API.
pub fn connect(kind: ApiKind, http: Arc<Http>, settings: ClientSettings) -> Box<dyn ModelApi> {
    match kind {
        ApiKind::Anthropic => Box::new(Anthropic::new(http, settings)),
        ApiKind::OpenAi => Box::new(OpenAi::new(http, settings)),
    }
}
