//! One process from start to end: wall time, CPU time and peak memory of it and what it started.

use crate::Result;
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use wait4::Wait4 as _;

/// What one run took.
#[derive(Debug, Clone, Copy)]
pub struct Sample {
    /// From its start to its end.
    pub wall: Duration,
    /// In user mode and in the kernel, of all its processes. None for what the harness does itself.
    pub cpu: Option<Duration>,
    /// Peak resident set in bytes of its largest process; none as for `cpu`. A program starts with the pages of the one that
    /// starts it, so nothing is below the harness's own (some 5 MB).
    pub memory: Option<u64>,
    /// What flushing everything to the disk takes after it, where that was measured.
    pub flush: Option<Duration>,
}

impl Sample {
    /// A sample of what the harness does itself.
    pub fn of_wall(wall: Duration) -> Self {
        Self {
            wall,
            cpu: None,
            memory: None,
            flush: None,
        }
    }

    /// The same, with the time that flushing everything takes now.
    pub fn flushed(self) -> Self {
        let began = Instant::now();
        rustix::fs::sync();
        Self {
            flush: Some(began.elapsed()),
            ..self
        }
    }
}

/// Runs a program to its end. What it says goes to a file, whose end is told when its exit code is none of `accepted`.
pub fn run(command: &mut Command, said: &Path, accepted: &[i32]) -> Result<Sample> {
    let output = File::create(said)?;
    command
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output);
    let began = Instant::now();
    let mut child = command
        .spawn()
        .map_err(|error| format!("{}: {error}", command.get_program().display()))?;
    let used = child.wait4()?;
    let wall = began.elapsed();
    if !used
        .status
        .code()
        .is_some_and(|code| accepted.contains(&code))
    {
        let text = std::fs::read_to_string(said).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        let end = lines[lines.len().saturating_sub(12)..].join("\n");
        return Err(format!("{command:?} ended with {}:\n{end}", used.status).into());
    }
    Ok(Sample {
        wall,
        cpu: Some(used.rusage.utime + used.rusage.stime),
        memory: Some(used.rusage.maxrss),
        flush: None,
    })
}
