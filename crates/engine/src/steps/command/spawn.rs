//! Starts processes, and keeps the register of running ones.

#![allow(clippy::disallowed_methods, reason = "the one spawner")]

use milepost_store::store::read;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind, PipeReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};

use rustix::fs::{OFlags, fcntl_setfl};
use rustix::process::{Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use super::processes::kernel_id;
use super::program;
use super::spawn_error::SpawnError;
use super::spec::{ATTEMPT_VARIABLE, CommandSpec};

/// Process ids of leaders that were not reaped yet, and what they are. Only their owners may wait for them.
static LEADERS: Mutex<BTreeMap<u32, LeaderKind>> = Mutex::new(BTreeMap::new());
/// Held shared while a process is started and registered; held alone to be sure that an unregistered child is not being
/// started.
static STARTS: RwLock<()> = RwLock::new(());
static ADOPTING: AtomicBool = AtomicBool::new(false);
static STRAYED: AtomicBool = AtomicBool::new(false);

/// Makes this process the parent of orphans of its commands (`PR_SET_CHILD_SUBREAPER`), so that none escapes in a session of
/// its own. Call it once at the start of a program that runs commands; without it, all of `/proc` is searched after every
/// command. Only Linux supports it.
pub fn adopt_orphans() {
    #[cfg(target_os = "linux")]
    {
        let done = rustix::process::set_child_subreaper(Some(rustix::process::getpid())).is_ok();
        ADOPTING.store(done, Ordering::Relaxed);
    }
}

/// Returns true if orphans of our commands become our children.
pub(super) fn adopting() -> bool {
    ADOPTING.load(Ordering::Relaxed)
}

/// Returns true if no process of an ended command can still run: orphans become our children, and none strayed.
pub fn nothing_strayed() -> bool {
    adopting() && !STRAYED.load(Ordering::Relaxed)
}

/// Notes a child that belongs to no command.
pub(super) fn strayed() {
    STRAYED.store(true, Ordering::Relaxed);
}

/// The kind of process that a leader runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LeaderKind {
    /// A command, whose processes may leave its group.
    Command,
    /// A worker, which starts no process.
    Worker,
}

fn register() -> MutexGuard<'static, BTreeMap<u32, LeaderKind>> {
    LEADERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the registered leaders. One that is being started may be missing.
pub(super) fn leaders() -> BTreeSet<u32> {
    register().keys().copied().collect()
}

/// Runs `work` with the register while no command is being started or reaped.
pub(super) fn between_starts<T>(work: impl FnOnce(&BTreeMap<u32, LeaderKind>) -> T) -> T {
    let _alone = STARTS.write().unwrap_or_else(PoisonError::into_inner);
    work(&register())
}

/// The first process of a command, or a worker. Dropping it before its end, as in a panic, kills its group.
pub(in crate::steps) struct Leader {
    child: Child,
    status: Option<ExitStatus>,
}

impl Leader {
    /// Returns its process id, which is also its group.
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns true if it has ended, without reaping it.
    pub(in crate::steps) fn has_ended(&self) -> bool {
        if self.status.is_some() {
            return true;
        }
        let Some(pid) = kernel_id(self.pid()) else {
            return false;
        };
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        matches!(waitid(WaitId::Pid(pid), options), Ok(Some(_)))
    }

    /// Reaps it if it has ended, and returns its status.
    pub(super) fn reap(&mut self) -> Option<ExitStatus> {
        if self.status.is_none() {
            // The system may reuse the id after reaping, so the entry is removed under the same lock.
            let mut register = register();
            if let Ok(Some(status)) = self.child.try_wait() {
                register.remove(&self.child.id());
                self.status = Some(status);
            }
        }
        self.status
    }

    /// Kills its group.
    pub(in crate::steps) fn kill(&self) {
        if let Some(group) = kernel_id(self.pid()) {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }

    /// Kills its group, waits for its own end, and returns its status. If it had ended before, that is its own.
    pub(in crate::steps) fn end(mut self) -> Option<ExitStatus> {
        self.kill();
        if let Some(pid) = kernel_id(self.pid()) {
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            while let Err(rustix::io::Errno::INTR) = waitid(WaitId::Pid(pid), options) {}
        }
        self.reap()
    }
}

impl Drop for Leader {
    fn drop(&mut self) {
        if self.reap().is_none() {
            self.kill();
        }
    }
}

/// Starts a child that is registered as a leader.
fn spawn(command: &mut Command, kind: LeaderKind) -> io::Result<Leader> {
    let _shared = STARTS.read().unwrap_or_else(PoisonError::into_inner);
    let child = command.spawn()?;
    register().insert(child.id(), kind);
    Ok(Leader {
        child,
        status: None,
    })
}

/// A worker, with the pipes of its standard streams.
pub(in crate::steps) struct SpawnedWorker {
    pub(in crate::steps) leader: Leader,
    pub(in crate::steps) stdin: ChildStdin,
    pub(in crate::steps) stdout: ChildStdout,
    pub(in crate::steps) stderr: ChildStderr,
}

/// Starts a worker in a process group of its own. Its environment is empty: what it reads may come from anywhere, and must not
/// find a key.
pub(in crate::steps) fn start_worker(program: &Path, argument: &str) -> io::Result<SpawnedWorker> {
    let mut command = Command::new(program);
    command.arg0("milepost").arg(argument).current_dir("/");
    command.env_clear().process_group(0);
    command.stdin(Stdio::piped());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut leader = spawn(&mut command, LeaderKind::Worker)?;
    let child = &mut leader.child;
    match (child.stdin.take(), child.stdout.take(), child.stderr.take()) {
        (Some(stdin), Some(stdout), Some(stderr)) => {
            fcntl_setfl(&stdin, OFlags::NONBLOCK)?;
            Ok(SpawnedWorker {
                leader,
                stdin,
                stdout,
                stderr,
            })
        }
        _ => Err(ErrorKind::BrokenPipe.into()),
    }
}

/// Starts a command in a process group of its own, and returns a pipe with its output.
pub(super) fn start(spec: &CommandSpec<'_>) -> Result<(Leader, PipeReader), SpawnError> {
    let (name, args) = spec
        .program_and_args
        .split_first()
        .ok_or(SpawnError::Empty)?;
    if name.is_empty() {
        return Err(SpawnError::Empty);
    }
    let other = |source| SpawnError::Other {
        program: name.clone(),
        source,
    };
    refuse_impossible(name, spec)?;
    let cwd = std::path::absolute(spec.cwd).map_err(other)?;
    let file = program::find(name, &cwd, spec.env)?;
    let stdin = match spec.stdin {
        None => Stdio::null(),
        Some(path) => Stdio::from(read::open(path).map_err(|source| SpawnError::Stdin {
            program: name.clone(),
            file: path.to_owned(),
            source,
        })?),
    };
    let (reader, writer) = io::pipe().map_err(other)?;
    let second = spec.errors.unwrap_or(&writer).try_clone().map_err(other)?;

    let mut command = Command::new(&file);
    command.arg0(name).args(args).current_dir(&cwd).env_clear();
    command
        .envs(spec.env.iter().map(|(key, value)| (key, value)))
        .env(ATTEMPT_VARIABLE, spec.token);
    command.stdin(stdin).stdout(writer).stderr(second);
    // Together with no `pre_exec`, uid or gid this keeps `posix_spawn`: forking a large process costs tens of milliseconds.
    command.process_group(0);

    match spawn(&mut command, LeaderKind::Command) {
        Ok(leader) => Ok((leader, reader)),
        Err(source) => Err(explain(name, file, cwd, source)),
    }
}

/// Refuses NUL bytes, which the kernel cannot take, and names with `=`, which would name another variable.
fn refuse_impossible(name: &str, spec: &CommandSpec<'_>) -> Result<(), SpawnError> {
    let refuse = |what: String| {
        Err(SpawnError::Impossible {
            program: name.to_owned(),
            what,
        })
    };
    if let Some(position) = spec
        .program_and_args
        .iter()
        .position(|word| word.contains('\0'))
    {
        return refuse(format!(
            "word {position} of the command contains a NUL byte; pass such data in a file"
        ));
    }
    for (key, value) in spec.env {
        if key.is_empty() || key.contains(['=', '\0']) {
            return refuse(format!(
                "{key:?} cannot be the name of an environment variable"
            ));
        }
        if value.contains('\0') {
            return refuse(format!(
                "the environment variable {key} contains a NUL byte"
            ));
        }
    }
    Ok(())
}

fn explain(name: &str, file: PathBuf, folder: PathBuf, source: io::Error) -> SpawnError {
    let program = name.to_owned();
    match source.kind() {
        _ if !folder.is_dir() => SpawnError::NoWorkingFolder { program, folder },
        ErrorKind::NotFound => SpawnError::NoInterpreter { program, file },
        ErrorKind::PermissionDenied => SpawnError::NotExecutable { program, file },
        ErrorKind::ArgumentListTooLong => SpawnError::TooLong { program },
        _ if source.raw_os_error() == Some(rustix::io::Errno::NOEXEC.raw_os_error()) => {
            SpawnError::NotAProgram { program, file }
        }
        _ => SpawnError::Other { program, source },
    }
}
