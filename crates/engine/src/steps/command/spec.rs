//! A command: what its process gets, which process it is, and how it ended.

use serde::{Deserialize, Serialize};
use std::io::Write;
use std::path::Path;
use std::time::Duration;

/// The environment variable that names the attempt to which a process belongs; every process that a command starts
/// inherits it, and by it those that left the command's group are found.
pub(crate) const ATTEMPT_VARIABLE: &str = "MILEPOST_ATTEMPT";

/// One command: the whole of what its process gets. Nothing is inherited but the user and the resource limits.
pub struct CommandSpec<'a> {
    /// Program and arguments. No shell reads them. A name without `/` is looked for in `PATH` of `env`.
    pub program_and_args: &'a [String],
    /// Working folder; a relative program path starts here.
    pub cwd: &'a Path,
    /// The complete environment, to which only [`ATTEMPT_VARIABLE`] is added.
    pub env: &'a [(String, String)],
    /// File that is standard input; without one, standard input is empty.
    pub stdin: Option<&'a Path>,
    /// Time from the start until the command is ended; [`Duration::MAX`] is no limit.
    pub timeout: Duration,
    /// Time between the request to end (`SIGTERM`) and the end by force (`SIGKILL`).
    pub grace: Duration,
    /// Unique id of this attempt.
    pub token: &'a str,
    /// Receives standard output and standard error, as they come.
    pub log: &'a mut dyn Write,
    /// Bytes of output that `log` receives at most: the first half and the last, and a line between that says how much was left out.
    pub log_cap: u64,
}

/// A process that was started, in words that outlive its runner: the next run ends it if it is still there.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct StartedProcess {
    /// Process id of the command's leader.
    pub pid: u32,
    /// Its process group; of a command it is the leader's process id.
    pub group: u32,
    /// When the leader was started, in clock ticks since boot (`/proc/PID/stat`, field 22); 0 where the system does not say.
    pub start_time: u64,
    /// Which boot that was (`/proc/sys/kernel/random/boot_id`); empty where the system does not say.
    pub boot_id: String,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// It ended by itself with this code.
    Code(i32),
    /// A signal that was not ours ended it.
    Signal(i32),
    /// Its time was over and it was ended.
    TimedOut,
    /// The run is stopping and it was ended, or not even started.
    Cancelled,
}
