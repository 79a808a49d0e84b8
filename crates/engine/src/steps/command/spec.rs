//! A command: its specification, its process, and its end.

use serde::{Deserialize, Serialize};
use std::io::{PipeWriter, Write};
use std::path::Path;
use std::time::Duration;

/// The environment variable with the id of the attempt. Every process of a command inherits it, so that processes that left the
/// group can be found.
pub(crate) const ATTEMPT_VARIABLE: &str = "MILEPOST_ATTEMPT";

/// A command. Its process inherits only the user and the resource limits.
pub struct CommandSpec<'a> {
    /// Program and arguments, without a shell. A name without `/` is searched in `PATH` of `env`.
    pub program_and_args: &'a [String],
    /// The working folder, in which a relative program path starts.
    pub cwd: &'a Path,
    /// The complete environment. Only [`ATTEMPT_VARIABLE`] is added.
    pub env: &'a [(String, String)],
    /// The file for standard input; empty without one.
    pub stdin: Option<&'a Path>,
    /// The time limit; [`Duration::MAX`] means none.
    pub timeout: Duration,
    /// The time between `SIGTERM` and `SIGKILL`.
    pub grace: Duration,
    /// The unique id of the attempt.
    pub token: &'a str,
    /// True if processes that it leaves running are not ended, such as a job that a scheduler's command starts on this machine.
    pub may_leave: bool,
    /// Receives standard output and standard error as they arrive.
    pub log: &'a mut dyn Write,
    /// Receives standard error instead of `log`.
    pub errors: Option<&'a PipeWriter>,
    /// The most bytes that `log` receives: the first and the last half, and between them a line with the size of the rest.
    pub log_cap: u64,
    /// Is called with all output as it arrives.
    pub live: &'a dyn Fn(&[u8]),
}

/// A started process, as it is recorded so that the next run can end it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct StartedProcess {
    /// Process id of the command's leader.
    pub pid: u32,
    /// The process group, which for a command is the process id of its leader.
    pub group: u32,
    /// The start time of the leader, in clock ticks since boot (`/proc/PID/stat`, field 22); 0 if unknown.
    pub start_time: u64,
    /// The id of the boot (`/proc/sys/kernel/random/boot_id`); empty if unknown.
    pub boot_id: String,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// It ended with this code.
    Code(i32),
    /// Another process ended it with this signal.
    Signal(i32),
    /// It was ended after its time limit.
    TimedOut,
    /// It was ended or not started, because the run is stopped.
    Cancelled,
}
