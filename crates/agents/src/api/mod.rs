//! Model APIs: what each provider's client can do, whatever it speaks.

mod batches;
mod providers;
mod schema_fit;
mod settings;
mod sse;
mod versions;
mod wire;

pub use batches::{BatchApi, BatchFault, BatchLimit, BatchProgress, BatchResult, SubmittedBatch};
pub use providers::connect;
pub use settings::Settings;

pub(crate) use providers::{stop_of, usage_of};
pub(crate) use schema_fit::{Rules, fit, told};
pub(crate) use wire::{count, text};

use crate::fault::CallFault;
use crate::http::Cancelled;
use crate::request::{Reply, Request};
use std::fmt::Debug;
use std::time::Duration;

/// A client of a provider's API for one model. Threads share it.
pub trait ModelApi: Debug + Send + Sync {
    /// Returns the name of the model.
    fn model(&self) -> &str;

    /// Returns the exact bytes that are sent for a request: the same for the same request, and never the key.
    fn body(&self, request: &Request) -> Vec<u8>;

    /// Sends what [`ModelApi::body`] returned.
    ///
    /// # Errors
    /// When no answer comes, or none that can be read; [`crate::policy::after`] decides what follows.
    fn call(
        &self,
        body: &[u8],
        within: Duration,
        cancelled: Cancelled<'_>,
    ) -> Result<Reply, CallFault>;

    /// Reads the kept bytes of an answer ([`Reply::raw`]), as if it had come now.
    ///
    /// # Errors
    /// As [`ModelApi::call`] for an answer with a good status.
    fn read(&self, raw: Vec<u8>) -> Result<Reply, CallFault>;

    /// Returns how long to make no further call: answers since the last question said that a limit is used up.
    fn rest(&self) -> Option<Duration>;

    /// Checks the key and the address, at no cost.
    ///
    /// # Errors
    /// `Auth` if the key is refused; otherwise the reason why that is not known.
    fn check(&self, within: Duration, cancelled: Cancelled<'_>) -> Result<(), CallFault>;

    /// Returns the provider's batch API; `None` if it has none, and every request is sent by itself.
    fn batches(&self) -> Option<&dyn BatchApi> {
        None
    }
}
