//! The providers of model APIs: one file or folder each, and which one speaks to which API.

mod anthropic;
mod openai;

pub(crate) use anthropic::{stop_of, usage_of};

use super::{ModelApi, Settings};
use crate::http::Http;
use anthropic::Anthropic;
use milepost_core::model::api_kind::ApiKind;
use openai::OpenAi;
use std::sync::Arc;

/// Returns a client of a provider.
pub fn connect(kind: ApiKind, http: Arc<Http>, settings: Settings) -> Box<dyn ModelApi> {
    match kind {
        ApiKind::Anthropic => Box::new(Anthropic::new(http, settings)),
        ApiKind::OpenAi => Box::new(OpenAi::new(http, settings)),
    }
}
