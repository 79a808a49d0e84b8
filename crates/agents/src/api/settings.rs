//! The settings of a client of a model API.

use crate::secret::Secret;

/// The settings of a client: the model, its address and the key.
#[derive(Debug, Clone, Default)]
pub struct ClientSettings {
    /// The model's name, as the provider knows it.
    pub model: String,
    /// The base URL of the API; `None` for the provider's own.
    pub base_url: Option<String>,
    /// The key; empty for a server that needs none.
    pub key: Secret,
    /// True if requests are sent in provider batches. Such requests are never streamed.
    pub batch: bool,
}
