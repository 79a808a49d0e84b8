//! A pipe to or from a worker. Who uses it waits until the worker reads or writes, or until the work is cancelled.

use crate::steps::cancel::{CancelToken, TICK};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::time::Duration;

/// A pipe that never blocks for longer than the token allows.
pub(super) struct CancellablePipe<'a, T> {
    pub(super) pipe: &'a mut T,
    pub(super) cancel: &'a CancelToken,
}

impl<T: AsFd> CancellablePipe<'_, T> {
    fn wait(&self, event: PollFlags) -> io::Result<()> {
        loop {
            self.cancel.check()?;
            if wait_for(&*self.pipe, event, TICK)? {
                return Ok(());
            }
        }
    }
}

impl<T: AsFd + Read> Read for CancellablePipe<'_, T> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.wait(PollFlags::IN)?;
        self.pipe.read(buffer)
    }
}

/// The pipe must be non-blocking: a long write to another would block.
impl<T: AsFd + Write> Write for CancellablePipe<'_, T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match self.pipe.write(bytes) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.wait(PollFlags::OUT)?,
                written => return written,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.pipe.flush()
    }
}

/// Waits until a pipe is ready for `event`, or its other end is closed. Returns false if that takes longer than `time`.
pub(super) fn wait_for(pipe: impl AsFd, event: PollFlags, time: Duration) -> io::Result<bool> {
    let time = Timespec::try_from(time).map_err(io::Error::other)?;
    loop {
        match poll(&mut [PollFd::new(&pipe, event)], Some(&time)) {
            Err(Errno::INTR) => {}
            ready => return Ok(ready? > 0),
        }
    }
}
