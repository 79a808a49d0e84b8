//! Ctrl-C and its kin: the first stops the run in order, the second ends the program at once.

use super::print::Printer;
use milepost_engine::ops::run::StopFlag;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::low_level::pipe;
use std::io::Read as _;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

/// The exit code of what was interrupted.
pub(crate) const INTERRUPTED: u8 = 130;

/// Said when a run is stopped.
pub(crate) const STOPPING: &str =
    "stopping: what runs is cancelled; run again to go on (once more: end at once)";

/// Sets the flag at the first signal, of which `told` is told, and ends the program at the second. What is left then is put in order by the next run.
///
/// # Errors
/// When the system does not let signals be heard.
#[allow(
    clippy::disallowed_methods,
    reason = "whoever asks twice does not want to wait; the journal makes an end at any moment safe"
)]
pub(crate) fn listen(stop: Arc<StopFlag>, told: impl Fn() + Send + 'static) -> std::io::Result<()> {
    let (mut heard, sender) = UnixStream::pair()?;
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        pipe::register(signal, sender.try_clone()?)?;
    }
    let listening = move || {
        let mut byte = [0];
        while heard.read_exact(&mut byte).is_ok() {
            if stop.is_set() {
                std::process::exit(i32::from(INTERRUPTED));
            }
            stop.set();
            told();
        }
    };
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(listening)?;
    Ok(())
}

/// The same for a command that is one run: the printer says that it is stopped.
///
/// Gives the flag. Where signals cannot be heard, this is said.
pub(crate) fn stop_flag(printer: &Printer) -> Arc<StopFlag> {
    let stop = Arc::new(StopFlag::new());
    let of_thread = printer.clone();
    if let Err(error) = listen(Arc::clone(&stop), move || of_thread.say(STOPPING)) {
        printer.warning(&format!("Ctrl-C ends the program at once: {error}"));
    }
    stop
}
