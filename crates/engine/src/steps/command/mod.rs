//! Running one command to its end: what it gets, what came of it, and that nothing of it is left behind.

mod family;
mod output;
mod processes;
mod program;
mod spawn;
mod stop;
mod survivors;

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use spawn::{SpawnError, adopt_orphans, nothing_strayed};
pub use stop::{Deadline, Stop};
pub use survivors::end_survivors;

use family::Family;
use output::{Event, Output};
use stop::{Ending, climb};

/// The environment variable that names the attempt to which a process belongs; every process that a command starts
/// inherits it, and by it those that left the command's group are found.
pub(crate) const ATTEMPT_VARIABLE: &str = "MILEPOST_ATTEMPT";

/// How often a running command is looked at for a stop, a timeout, and an end that its output does not show.
const TICK: Duration = Duration::from_millis(50);

/// How long output may stay open after everything that is known of the command has ended.
const OUTPUT_LINGERS: Duration = Duration::from_millis(200);

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
pub struct Started {
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

/// Runs a command to its end and returns when nothing of it runs any more: not the leader, not its group, not (on Linux, after
/// [`adopt_orphans`]) a process that left the group for a session of its own. What is left after the leader's end, and all of it
/// at a timeout or a stop, gets `SIGTERM`, `spec.grace`, `SIGKILL`.
///
/// `started` is called once, as soon as the process exists and before its output is read.
///
/// # Errors
/// [`SpawnError`] if the command could not be started, or its log could not be written (it has then run to its end).
pub fn run_command(
    spec: CommandSpec<'_>,
    stop: &dyn Stop,
    started: &mut dyn FnMut(&Started),
) -> Result<Exit, SpawnError> {
    if stop.stopping() {
        return Ok(Exit::Cancelled);
    }
    let deadline = Deadline::after(spec.timeout);
    let (leader, pipe) = spawn::start(&spec)?;
    let program = spec.program_and_args[0].as_str();
    let mut family = Family::new(leader, spec.token);
    started(family.started());
    let mut output =
        Output::read(pipe, family.started().pid, spec.log, spec.log_cap).map_err(|source| {
            SpawnError::Other {
                program: program.to_owned(),
                source,
            }
        })?;

    let ended_by_us = watch(&mut family, &mut output, &deadline, stop);
    if ended_by_us.is_some() || family.lives() {
        climb(&mut family, spec.grace, &mut |time| output.pump_for(time));
    }
    output.drain(OUTPUT_LINGERS);
    output.finish().map_err(|source| SpawnError::Log {
        program: program.to_owned(),
        source,
    })?;
    match (ended_by_us, family.status()) {
        (Some(exit), _) | (None, Some(exit)) => Ok(exit),
        (None, None) => Err(SpawnError::Unending {
            program: program.to_owned(),
            pid: family.started().pid,
        }),
    }
}

/// Waits for the leader's end; `Some` if it has to be ended by us.
fn watch(
    family: &mut Family<'_>,
    output: &mut Output<'_>,
    deadline: &Deadline,
    stop: &dyn Stop,
) -> Option<Exit> {
    let mut look = Deadline::after(TICK);
    loop {
        let ended = output.pump(TICK.min(deadline.left())) == Event::LeaderEnded;
        // A command that never stops talking, or whose output a daemon keeps open, is looked at by the clock as well.
        if ended || look.is_over() || deadline.is_over() {
            if family.leader_has_ended() {
                return None;
            }
            look = Deadline::after(TICK);
        }
        if stop.stopping() {
            return Some(Exit::Cancelled);
        }
        if deadline.is_over() {
            return Some(Exit::TimedOut);
        }
    }
}
