//! Model APIs: the trait that the client of each provider implements.

mod batches;
mod providers;
mod schema_fit;
mod settings;
mod sse;
mod versions;
mod wire;

pub use batches::{BatchApi, BatchFault, BatchLimit, BatchProgress, BatchResult, SubmittedBatch};
pub use providers::connect;
pub use settings::ClientSettings;

pub(crate) use providers::{stop_of, usage_of};
pub(crate) use schema_fit::{SchemaDialect, fit, schema_instruction};
pub(crate) use wire::{count, text, tokens};

use crate::fault::CallFault;
use crate::http::CallLimit;
use crate::request::{AgentRequest, Reply};
use std::fmt::Debug;
use std::time::Duration;

/// A client of a provider's API for one model. All threads of a run share it.
pub trait ModelApi: Debug + Send + Sync {
    /// Returns the name of the model.
    fn model(&self) -> &str;

    /// Returns the exact bytes to send for a request. Equal requests have equal bytes, and the key is never among them.
    fn body(&self, request: &AgentRequest) -> Vec<u8>;

    /// Sends a body made by [`ModelApi::body`] and returns the reply.
    ///
    /// # Errors
    /// Fails if no reply arrives or the reply cannot be read. [`crate::policy::after`] decides what to do then.
    fn call(&self, body: &[u8], limit: CallLimit<'_>) -> Result<Reply, CallFault>;

    /// Reads the recorded bytes of a reply ([`Reply::raw`]) as if it had just arrived.
    ///
    /// # Errors
    /// Fails if the bytes cannot be read as a reply.
    fn read(&self, raw: Vec<u8>) -> Result<Reply, CallFault>;

    /// Returns how long to wait before the next call, if replies since the last time reported that a rate limit is used up.
    fn cooldown(&self) -> Option<Duration>;

    /// Checks the key and the address. It costs nothing.
    ///
    /// # Errors
    /// Fails with [`FaultKind::Auth`](crate::fault::FaultKind::Auth) if the provider refuses the key, and with another kind if
    /// the check itself failed.
    fn check(&self, limit: CallLimit<'_>) -> Result<(), CallFault>;

    /// Returns the provider's batch API; `None` if it has none.
    fn batches(&self) -> Option<&dyn BatchApi> {
        None
    }
}
