//! Runs one command to its end, and leaves none of its processes behind.

mod depfile;
mod output;
mod process_tree;
mod processes;
mod program;
mod spawn;
mod spawn_error;
mod spec;
mod stop;
mod survivors;

use std::time::Duration;

pub(in crate::steps) use depfile::prerequisites;
pub(crate) use program::{find as find_program, is_executable};
pub(in crate::steps) use spawn::{SpawnedWorker, start_worker};
pub use spawn::{adopt_orphans, nothing_strayed};
pub use spawn_error::SpawnError;
pub(crate) use spec::ATTEMPT_VARIABLE;
pub use spec::{CommandSpec, Exit, StartedProcess};
pub use stop::{Deadline, StopSignal, StopTime};
pub use survivors::end_survivors;

use output::{OutputEvent, OutputReader};
use process_tree::ProcessTree;
use stop::{Terminate, terminate};

/// How often a running command is checked for a stop, a timeout, and an end that its output does not show.
const TICK: Duration = Duration::from_millis(50);

/// How long output may stay open after all known processes of the command have ended.
const OUTPUT_LINGERS: Duration = Duration::from_millis(200);

/// Runs a command and returns when none of its processes runs any more: not the leader, not its group, and (on Linux, after
/// [`adopt_orphans`]) no process that left the group for a session of its own. After the leader's end, a timeout or a stop, the
/// remaining processes get `SIGTERM`, `spec.grace`, `SIGKILL`. With `spec.may_leave`, those that remain after the leader's own end stay.
///
/// `started` is called once, as soon as the process exists and before its output is read.
///
/// # Errors
/// [`SpawnError`] if the command could not be started, or its log could not be written (it has then run to its end).
pub fn run_command(
    spec: CommandSpec<'_>,
    stop: &dyn StopSignal,
    started: &mut dyn FnMut(&StartedProcess),
) -> Result<Exit, SpawnError> {
    if stop.stopping() {
        return Ok(Exit::Cancelled);
    }
    let deadline = Deadline::after(spec.timeout);
    let (leader, pipe) = spawn::start(&spec)?;
    let program = spec.program_and_args[0].as_str();
    let mut tree = ProcessTree::new(leader, spec.token);
    started(tree.started());
    let mut output =
        OutputReader::read(pipe, tree.started().pid, spec.log, spec.log_cap, spec.live).map_err(
            |source| SpawnError::Other {
                program: program.to_owned(),
                source,
            },
        )?;

    let ended_by_us = watch(&mut tree, &mut output, &deadline, stop);
    if ended_by_us.is_some() || !spec.may_leave && tree.lives() {
        terminate(&mut tree, spec.grace, &mut |time| output.pump_for(time));
    }
    output.drain(OUTPUT_LINGERS);
    output.finish().map_err(|source| SpawnError::Log {
        program: program.to_owned(),
        source,
    })?;
    match (ended_by_us, tree.status()) {
        (Some(exit), _) | (None, Some(exit)) => Ok(exit),
        (None, None) => Err(SpawnError::Unending {
            program: program.to_owned(),
            pid: tree.started().pid,
        }),
    }
}

/// Waits for the end of the leader; returns `Some` if the command must be ended.
fn watch(
    tree: &mut ProcessTree<'_>,
    output: &mut OutputReader<'_>,
    deadline: &Deadline,
    stop: &dyn StopSignal,
) -> Option<Exit> {
    let mut look = Deadline::after(TICK);
    loop {
        let ended = output.pump(TICK.min(deadline.left())) == OutputEvent::LeaderEnded;
        // The leader is also checked by the clock: a command may print without pause, and a daemon may keep its output open.
        if ended || look.is_over() || deadline.is_over() {
            if tree.leader_has_ended() {
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
