//! Ctrl-C and similar signals: the first one stops the run, the second one ends the program at once.

use super::print::Printer;
use milepost_engine::ops::run::{StopFlag, ignored_signals};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::flag;
use signal_hook::low_level::pipe;
use std::io::Read as _;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

/// The exit code after a signal.
pub(crate) const INTERRUPTED: u8 = 130;

pub(crate) const STOPPING: &str = "stopping: calls of agents in flight, if any, have up to 30 s to finish; run again to continue (press Ctrl-C again to exit at once)";

/// Handles signals that would otherwise lose ends of children, if the parent process ignores them, or end the program without a message
/// instead of failing a write, at the size limit of a file. The programs of steps have the system's default for both.
pub(crate) fn handle_inherited() {
    let ignored = ignored_signals();
    let is_lost = |signal: i32| signal == SIGXFSZ || ignored >> (signal - 1) & 1 == 1;
    for signal in [SIGCHLD, SIGXFSZ]
        .into_iter()
        .filter(|signal| is_lost(*signal))
    {
        // Without a handler only the message is missing.
        let _ = flag::register(signal, Arc::default());
    }
}

/// Sets the flag and calls `on_stop` at the first signal; ends the program at the second one, after which the next run recovers. A signal
/// that the parent process ignores, as `nohup` and shells do, stays ignored.
///
/// # Errors
/// If the system does not deliver signals.
#[allow(
    clippy::disallowed_methods,
    reason = "a second signal ends the program at once; the journal makes that safe"
)]
pub(crate) fn listen(
    stop: Arc<StopFlag>,
    on_stop: impl Fn() + Send + 'static,
) -> std::io::Result<()> {
    let (mut heard, sender) = UnixStream::pair()?;
    let ignored = ignored_signals();
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        if ignored >> (signal - 1) & 1 == 1 {
            continue;
        }
        pipe::register(signal, sender.try_clone()?)?;
    }
    let listening = move || {
        let mut byte = [0];
        while heard.read_exact(&mut byte).is_ok() {
            if stop.is_set() {
                std::process::exit(i32::from(INTERRUPTED));
            }
            stop.set();
            on_stop();
        }
    };
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(listening)?;
    Ok(())
}

/// Returns a flag that the first signal sets, with a message. Prints a warning if the system does not deliver signals.
pub(crate) fn stop_flag(printer: &Printer) -> Arc<StopFlag> {
    let stop = Arc::new(StopFlag::new());
    let of_thread = printer.clone();
    if let Err(error) = listen(Arc::clone(&stop), move || of_thread.say(STOPPING)) {
        printer.warning(&format!("Ctrl-C ends the program at once: {error}"));
    }
    stop
}
