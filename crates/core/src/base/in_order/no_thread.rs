//! The error that the system cannot start more threads or processes, for messages.

use std::any::Any;
use std::fmt::Display;

/// Texts of panics of libraries whose thread could not be started: of the standard library, tokio and rayon.
const PANICS: [&str; 3] = [
    "failed to spawn thread",
    "OS can't spawn worker thread",
    "The global thread pool has not been initialized",
];

/// Returns the message for a thread or process that could not be started.
pub fn no_thread(cause: &dyn Display) -> String {
    format!(
        "the system cannot start more threads ({cause}): end other programs, or raise the limit of processes (`ulimit -u`, `pids.max`) or of memory, then run again"
    )
}

/// Returns the message if a panic means that a thread could not be started.
pub fn of_panic(panic: &(dyn Any + Send)) -> Option<String> {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    of_text(text?)
}

/// Returns the message if the text of a panic means that a thread could not be started.
pub fn of_text(text: &str) -> Option<String> {
    let is_known = PANICS.iter().any(|known| text.starts_with(known));
    is_known.then(|| no_thread(&text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_for_want_of_a_thread_is_no_defect() {
        let text = "failed to spawn thread: Os { code: 11, kind: WouldBlock, message: \"Resource temporarily unavailable\" }";
        let message = no_thread(&text);
        assert!(message.contains("`ulimit -u`"), "{message}");
        assert_eq!(of_panic(&text.to_owned()), Some(message.clone()));
        assert_eq!(of_text(text), Some(message));
        assert!(of_panic(&"OS can't spawn worker thread: 11").is_some());
        assert_eq!(of_panic(&"index out of bounds"), None);
        assert_eq!(of_panic(&7), None);
    }
}
