//! What a client is made with.

use crate::secret::Secret;

/// The model to ask, and where.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The model's name, as the provider knows it.
    pub model: String,
    /// An address in the place of the provider's own.
    pub base_url: Option<String>,
    /// The key; empty for a server that needs none.
    pub key: Secret,
    /// Whether requests go in batches: they are then never streamed.
    pub batch: bool,
}
