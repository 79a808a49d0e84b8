//! Processes that wait for a test: named pipes, and whether a process is alive.

use std::path::Path;

/// Makes a named pipe: a reader waits there until the test writes.
pub fn pipe(path: &Path) {
    rustix::fs::mkfifoat(rustix::fs::CWD, path, rustix::fs::Mode::RWXU).unwrap();
}

/// Returns true while a process runs; false for one that has ended but was not waited for.
pub fn is_alive(process: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit(')')
        .next()
        .is_some_and(|rest| !rest.trim().is_empty() && !rest.trim().starts_with('Z'))
}
