//! The asynchronous runtime of a server.

use milepost_engine::ops::project::OpsError;
use milepost_engine::ops::run::{StopFlag, adopt_orphans};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot::{Receiver, channel};

/// Runs a server to its end. It gets a channel that is signalled when `stop` is set. `end` is called while its threads still run.
///
/// # Errors
/// If the system has no threads for it, or the server fails.
pub(crate) fn until_stopped<S: Future<Output = Result<(), OpsError>>>(
    stop: &Arc<StopFlag>,
    server: impl FnOnce(Receiver<()>) -> S,
    end: impl FnOnce(),
) -> Result<(), OpsError> {
    adopt_orphans();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| OpsError::World(format!("cannot start the server: {error}")))?;
    let served = runtime.block_on(server(stopped(stop)));
    end();
    runtime.shutdown_timeout(Duration::ZERO);
    served
}

/// Returns a channel that is signalled when the flag is set.
fn stopped(stop: &Arc<StopFlag>) -> Receiver<()> {
    let (sender, receiver) = channel();
    let stop = Arc::clone(stop);
    let waiting = move || {
        while !stop.is_set() {
            stop.pause(Duration::from_hours(1));
        }
        // The receiver is gone if the server has ended.
        let _ = sender.send(());
    };
    // Without the thread, the sender is dropped, which the receiver takes for a signal.
    let _ = std::thread::Builder::new()
        .name("stop".to_owned())
        .spawn(waiting);
    receiver
}
