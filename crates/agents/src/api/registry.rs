//! The registry of providers: which client speaks to which.

use super::anthropic::Anthropic;
use super::openai::OpenAi;
use super::{ModelApi, Settings};
use crate::http::Http;
use milepost_core::model::api_kind::ApiKind;
use std::sync::Arc;

/// Returns a client of a provider.
pub fn connect(kind: ApiKind, http: Arc<Http>, settings: Settings) -> Box<dyn ModelApi> {
    match kind {
        ApiKind::Anthropic => Box::new(Anthropic::new(http, settings)),
        ApiKind::OpenAi => Box::new(OpenAi::new(http, settings)),
    }
}
