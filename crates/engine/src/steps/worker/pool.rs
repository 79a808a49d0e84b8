//! The workers of this process: idle ones are kept for the next file.

use super::ARGUMENT;
use super::frames::{Answer, Broken, receive};
use super::pipe::CancellablePipe;
use crate::steps::cancel::CancelToken;
use crate::steps::command::{SpawnedWorker, start_worker};
use rustix::process::Signal;
use std::io::{self, BufReader, Read as _, Write};
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::{Mutex, OnceLock, PoisonError};

/// The most idle workers.
const KEPT: usize = 16;

/// The most that is read of what a worker printed when it ended, in bytes.
const PRINTED: u64 = 4096;

static POOL: OnceLock<WorkerPool> = OnceLock::new();

/// Reads foreign files in child processes from now on: `program` with the argument `worker`, which calls `serve`. Without it,
/// they are read in this process, and a hostile file can end it.
pub fn use_workers(program: PathBuf) {
    let idle = Mutex::default();
    // The program is chosen once.
    let _ = POOL.set(WorkerPool { program, idle });
}

/// Returns the pool; `None` if files are read in this process.
pub(super) fn pool() -> Option<&'static WorkerPool> {
    POOL.get()
}

/// The program of workers, and its idle workers.
pub(super) struct WorkerPool {
    program: PathBuf,
    idle: Mutex<Vec<Worker>>,
}

impl WorkerPool {
    /// Returns an idle worker or a new one.
    pub(super) fn worker(&self) -> io::Result<Worker> {
        while let Some(worker) = self.pop() {
            if worker.process.leader.has_ended() {
                worker.end();
            } else {
                return Ok(worker);
            }
        }
        let process = start_worker(&self.program, ARGUMENT)?;
        Ok(Worker { process, served: 0 })
    }

    fn pop(&self) -> Option<Worker> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.pop()
    }

    /// Keeps a worker for the next file, and reaps those that ended because they were idle too long.
    pub(super) fn keep(&self, worker: Worker) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let has_ended = |worker: &mut Worker| worker.process.leader.has_ended();
        let mut surplus: Vec<Worker> = idle.extract_if(.., has_ended).collect();
        if idle.len() < KEPT {
            idle.push(worker);
        } else {
            surplus.push(worker);
        }
        drop(idle);
        for worker in surplus {
            worker.end();
        }
    }
}

pub(super) struct Worker {
    process: SpawnedWorker,
    /// The number of requests that it answered.
    pub(super) served: u64,
}

impl Worker {
    /// Sends a request and receives the answer, unless the token is cancelled.
    pub(super) fn exchange(
        &mut self,
        cancel: &CancelToken,
        request: &[u8],
        sink: &mut dyn Write,
    ) -> Result<Answer, Broken> {
        let SpawnedWorker { stdin, stdout, .. } = &mut self.process;
        let mut stdin = CancellablePipe {
            pipe: stdin,
            cancel,
        };
        stdin.write_all(request).map_err(|_| Broken::Worker)?;
        let stdout = CancellablePipe {
            pipe: stdout,
            cancel,
        };
        let answer = receive(&mut BufReader::new(stdout), sink)?;
        self.served += 1;
        Ok(answer)
    }

    /// Kills the worker if it runs, and returns how it ended.
    pub(super) fn end(self) -> WorkerEnd {
        let SpawnedWorker { leader, stderr, .. } = self.process;
        let status = leader.end();
        let mut printed = Vec::new();
        // The output only explains the end.
        let _ = stderr.take(PRINTED).read_to_end(&mut printed);
        let printed = String::from_utf8_lossy(&printed).into_owned();
        WorkerEnd { status, printed }
    }
}

/// How a worker ended.
pub(super) struct WorkerEnd {
    status: Option<ExitStatus>,
    printed: String,
}

impl WorkerEnd {
    /// Returns true if it ended by itself, as idle workers do.
    pub(super) fn is_regular(&self) -> bool {
        self.status.is_some_and(|status| status.success())
    }

    /// Returns true if it could not allocate memory.
    pub(super) fn lacked_memory(&self) -> bool {
        self.printed.contains("memory allocation of")
    }

    /// Returns true if a mapped file was truncated.
    pub(super) fn lost_its_file(&self) -> bool {
        self.signal() == Some(Signal::BUS.as_raw())
    }

    /// Returns true if the cause may lie outside of the file.
    pub(super) fn is_from_outside(&self) -> bool {
        let signal = self.signal();
        [Signal::KILL, Signal::TERM]
            .map(|signal| Some(signal.as_raw()))
            .contains(&signal)
    }

    /// Returns true if it took all of its processor time.
    pub(super) fn took_its_time(&self) -> bool {
        self.signal() == Some(Signal::XCPU.as_raw())
    }

    fn signal(&self) -> Option<i32> {
        self.status.and_then(|status| status.signal())
    }

    /// Returns how it ended, for people.
    pub(super) fn description(&self) -> String {
        let Some(signal) = self.signal() else {
            let code = self.status.and_then(|status| status.code());
            return match code {
                Some(code) => format!("its process ended with exit code {code}"),
                None => "its process could not be stopped".to_owned(),
            };
        };
        let (name, cause) = match signal {
            _ if self.printed.contains("overflowed its stack") => {
                ("SIGABRT", " after a stack overflow")
            }
            signal if signal == Signal::ABORT.as_raw() => ("SIGABRT", ""),
            signal if signal == Signal::KILL.as_raw() => (
                "SIGKILL",
                ", perhaps because the machine has no memory left",
            ),
            signal if signal == Signal::SEGV.as_raw() => ("SIGSEGV", ""),
            signal if signal == Signal::TERM.as_raw() => ("SIGTERM", ""),
            signal => return format!("its process was ended by signal {signal}"),
        };
        format!("its process was ended by {name}{cause}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_that_ended_are_not_kept() {
        let pool = WorkerPool {
            program: PathBuf::from("true"),
            idle: Mutex::default(),
        };
        let ended = || {
            let process = start_worker(&pool.program, ARGUMENT).unwrap();
            while !process.leader.has_ended() {
                std::thread::yield_now();
            }
            Worker { process, served: 1 }
        };
        for _ in 0..3 {
            pool.keep(ended());
        }
        assert_eq!(pool.idle.lock().unwrap().len(), 1);
    }
}
