//! Running one command to its end: what it gets, what came of it, and that nothing of it is left behind.

mod family;
mod output;
mod processes;
mod program;
mod spawn;
mod spawn_error;
mod spec;
mod stop;
mod survivors;

use std::time::Duration;

pub use spawn::{adopt_orphans, nothing_strayed};
pub use spawn_error::SpawnError;
pub use spec::{CommandSpec, Exit, Started};
pub use stop::{Deadline, Stop};
pub use survivors::end_survivors;

use family::Family;
use output::{Event, Output};
use stop::{Ending, climb};

/// How often a running command is looked at for a stop, a timeout, and an end that its output does not show.
const TICK: Duration = Duration::from_millis(50);

/// How long output may stay open after everything that is known of the command has ended.
const OUTPUT_LINGERS: Duration = Duration::from_millis(200);

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
